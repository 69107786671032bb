"""A running OpenStack as tests use it."""

import contextlib
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from openstack.config import OpenStackConfig
from openstack.connection import Connection

from tests.openstack.cloud import configuration, faults
from tests.openstack.cloud.cloud import Cloud, open_cloud, working
from tests.openstack.cloud.site import Site
from tests.waiting import PATIENCE_S, until

REQUEST_S = 120.0
ASK_S = 0.2
Found = TypeVar("Found")


def eventually(ask: Callable[[], Found | None], what: str, within_s: float = PATIENCE_S) -> Found:
    """Wait as `until` does, without keeping the services busy with questions."""
    return until(ask, what, lambda _: time.sleep(ASK_S), within_s)


@dataclass(frozen=True, slots=True)
class OpenStack:
    """directory — of its state, as `python -m tests.openstack.cloud --dir` takes it."""

    directory: Path

    @property
    def _cloud(self) -> Cloud:
        return open_cloud(self.directory)

    @property
    def clouds_yaml(self) -> Path:
        return self._cloud.site.clouds_yaml

    @property
    def env(self) -> dict[str, str]:
        """What makes clients ask this cloud, as user `demo` of project `demo`, in place of all OS_ variables."""
        return {"OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml), "OS_CLOUD": configuration.USER}

    @property
    def auth_url(self) -> str:
        return self._cloud.site.url("keystone", "/v3")

    @property
    def transport_url(self) -> str:
        """Of RabbitMQ; exchange `nova`, topics `notifications` and `versioned_notifications`."""
        return self._cloud.site.transport_url

    @property
    def services(self) -> tuple[str, ...]:
        """The optional ones that it has."""
        return self._cloud.site.settings.services

    @property
    def roles(self) -> list[str]:
        """What users need besides `member`, by the default policies."""
        return [role for each in self._cloud.services for role in each.roles]

    def admin(self) -> Connection:
        """As `admin` of project `admin`."""
        return self._connection(configuration.ADMIN)

    def user(self) -> Connection:
        """As `demo` of project `demo`, which has a network `private` with a router to `public`."""
        return self._connection(configuration.USER)

    def _connection(self, name: str) -> Connection:
        config = OpenStackConfig(config_files=[str(self.clouds_yaml)], load_envvars=False)
        return Connection(config=config.get_one(name, api_timeout=REQUEST_S))

    @contextlib.contextmanager
    def fault(self, kind: str, **rule: object) -> Iterator["Fault"]:
        """Let something fail meanwhile: the rules of `cloud/README.md`."""
        rule_id = faults.add(self._cloud.site, {"kind": kind, **rule})
        try:
            yield Fault(self._cloud.site, rule_id)
        finally:
            faults.remove(self._cloud.site, rule_id)

    def vm(self, what: str, server_id: str) -> None:
        """Change a guest behind Nova's back: off, on, pause, resume, crash or gone."""
        faults.change_guest(self._cloud.site, what, server_id)

    def member(self, what: str, member: str) -> None:
        """Say how members of Octavia's pools are: up, down, drain or maint. member — id or address."""
        faults.change_member(self._cloud.site, member, what)

    def event(self, event_type: str, **traits: str) -> None:
        """Send an event to Aodh's alarms, for those of the project `project_id`."""
        faults.send_event(self._cloud.site, event_type, [f"{name}={value}" for name, value in traits.items()])

    def stop(self, process: str, by: signal.Signals = signal.SIGTERM) -> None:
        """Returns when it has ended. process — as `status` names them."""
        with working(self.directory):
            self._cloud.stop(process, by)

    def start(self, process: str) -> None:
        """Returns when it answers, if it is an API."""
        with working(self.directory):
            self._cloud.start(process)

    @contextlib.contextmanager
    def stopped(self, process: str, by: signal.Signals = signal.SIGTERM) -> Iterator[None]:
        """A process does not run meanwhile."""
        self.stop(process, by)
        try:
            yield
        finally:
            self.start(process)

    @contextlib.contextmanager
    def notifications(self) -> Iterator["Notifications"]:
        """All events of Nova from now on."""
        site, pool = self._cloud.site, f"tests-{uuid.uuid4()}"
        with (
            site.log("listen").open("ab") as log,
            subprocess.Popen(
                [site.program("python"), "-m", "minios.listen", site.transport_url, pool],
                stdout=subprocess.PIPE,
                stderr=log,
                env=site.environment(),
            ) as process,
        ):
            try:
                assert process.stdout is not None
                os.set_blocking(process.stdout.fileno(), False)
                heard = Notifications(process)
                until(lambda: {} in heard.all(), "the listener to notifications")
                yield heard
            finally:
                process.terminate()


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule by which something fails."""

    _site: Site
    _id: str

    def hits(self) -> list[dict[str, str]]:
        """What it has hit, if it is one for HTTP: service, method, path, agent, and the status that was `lost`."""
        return faults.hits(self._site, self._id)


@dataclass(slots=True)
class Notifications:
    """What a listener has heard."""

    _process: subprocess.Popen[bytes]
    _rest: bytes = b""
    _heard: list[dict[str, Any]] = field(default_factory=list)

    def all(self) -> list[dict[str, Any]]:
        """Those until now. Each has event_type, publisher_id, payload. Fails: AssertionError if the listener died."""
        assert self._process.stdout is not None
        read = self._process.stdout.read()
        assert read != b"", "the listener to notifications has died: see listen.log"
        *lines, self._rest = (self._rest + (read or b"")).split(b"\n")
        self._heard += [json.loads(line) for line in lines]
        return self._heard

    def of_server(self, server_id: str) -> list[str]:
        """Types of the events about a server, in the order in which they came; of both formats."""
        return [
            each["event_type"]
            for each in self.all()
            if each and server_id in (each["payload"].get("uuid"), each["payload"].get("instance_id"))
        ]
