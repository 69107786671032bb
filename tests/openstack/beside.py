"""A service beside an OpenStack, of which every request to it is noted."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import heatclient.client
import yaml
from heatclient.exc import HTTPNotFound
from heatclient.v1.client import Client
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from tests.cli.conftest import Home
from tests.openstack.adapter import clouds_yaml
from tests.openstack.projects import Project
from tests.openstack.wire_log import WireLog, wire_log
from tests.waiting import until

SETTLES_S = 900.0
LOOK_S = 0.5


@dataclass(frozen=True)
class Beside(Home):
    """A state directory of a service beside an OpenStack."""

    clouds: str = ""
    proxy: str = ""

    def environment(self) -> dict[str, str]:
        own = {"OS_CLIENT_CONFIG_FILE": self.clouds, "http_proxy": self.proxy, "no_proxy": "", "NO_PROXY": ""}
        return {**super().environment(), **own}


@dataclass(frozen=True)
class World:
    """A project, and a service that makes stacks in it as its user.

    heat — client of its API. log — what it has asked of the OpenStack. home — of its commands.
    """

    project: Project
    heat: Client
    log: WireLog
    home: Beside


@contextlib.contextmanager
def serving(project: Project, auth: dict[str, str], folder: Path, program: Path) -> Iterator[World]:
    clouds = clouds_yaml(project, folder)
    clouds.write_text(yaml.safe_dump({"clouds": {"own": {"auth": auth, "region_name": "RegionOne"}}}))
    with wire_log() as log:
        home = Beside(folder / "state", (str(program),), str(clouds), log.url)
        try:
            started = home.run("serve", "--detach", "--port", "0", "--cloud", "openstack", "--os-cloud", "own")
            assert started.code == 0, started.err
            session = Session(auth=NoAuth(endpoint=f"{home.running().url}/v1/{project.id}"))
            heat = heatclient.client.Client("1", session=session, service_type="orchestration")
            yield World(project, heat, log, home)
        finally:
            home.stop()


@dataclass(frozen=True)
class Stack:
    """A stack of a world's service."""

    world: World
    name: str

    def resources(self) -> list[Any]:
        found: list[Any] = self.world.heat.resources.list(self.name, nested_depth=5)
        return found

    def settles(self, action: str) -> None:
        """Wait until an action has ended well, and meanwhile say what resources wait for."""

        def has_ended() -> bool:
            stack = self.world.heat.stacks.get(self.name)
            if stack.stack_status == f"{action}_IN_PROGRESS":
                self.signal()
            assert stack.stack_status != f"{action}_FAILED", self._why(stack)
            return bool(stack.stack_status == f"{action}_COMPLETE")

        until(has_ended, f"{self.name} to {action}", lambda _: time.sleep(LOOK_S), SETTLES_S)

    def signal(self) -> None:
        """Say what resources wait for."""

    def _why(self, stack: Any) -> str:
        failed = [f"{each.resource_name}: {each.resource_status_reason}" for each in self.resources()]
        return f"{stack.stack_status_reason}; {failed}"

    def check(self) -> None:
        self.world.heat.actions.check(self.name)
        self.settles("CHECK")

    def delete(self) -> None:
        self.world.heat.stacks.delete(self.name)

        def is_gone() -> bool:
            try:
                stack = self.world.heat.stacks.get(self.name)
            except HTTPNotFound:
                return True
            assert stack.stack_status != "DELETE_FAILED", self._why(stack)
            return False

        until(is_gone, f"{self.name} to be gone", lambda _: time.sleep(LOOK_S), SETTLES_S)
