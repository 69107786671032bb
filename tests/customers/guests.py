"""Guests of servers, as far as stacks see them: agents report deployments, and scripts in user data run."""

import base64
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keystoneauth1.exceptions import NotFound
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from openstack.connection import Connection
from openstack.exceptions import SDKException

LOG = logging.getLogger(__name__)
DEPTH = 5
SERVER = "OS::Nova::Server"
DEPLOYMENTS = ("OS::Heat::SoftwareDeployment", "OS::Heat::SoftwareDeploymentGroup")
OUTCOME = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}


@dataclass(slots=True)
class Guests:
    """Of the servers of one stack and those below it. user — sees the stack.

    Each deployment is reported by its own user, as the agents in a guest do; never twice.
    """

    user: Connection
    stack_id: str
    _done: set[str] = field(default_factory=set)

    def report(self) -> None:
        """Signal all deployments that were not yet, if any resource waits for one."""
        answer = self._orchestration.get(f"/stacks/{self.stack_id}/resources", params={"nested_depth": DEPTH})
        found = answer.json().get("resources", [])
        if not any(
            each["resource_type"] in DEPLOYMENTS and "_IN_PROGRESS" in each["resource_status"] for each in found
        ):
            return
        for deployment in self._deployments(_paths(found, SERVER)):
            if deployment["id"] not in self._done:
                inputs = {each["name"]: each["value"] for each in deployment["inputs"]}
                if inputs.get("deploy_signal_transport") == "HEAT_SIGNAL":
                    self._signal(inputs)
                    self._done.add(deployment["id"])

    def _deployments(self, servers: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for server in servers:
            with contextlib.suppress(NotFound):  # it has gone meanwhile
                answer = self._orchestration.get(f"{server}/metadata")
                found += answer.json()["metadata"].get("deployments", [])
        return found

    @property
    def _orchestration(self) -> Any:
        return self.user.orchestration

    def _signal(self, inputs: dict[str, str]) -> None:
        login = Password(
            auth_url=inputs["deploy_auth_url"],
            user_id=inputs["deploy_user_id"],
            password=inputs["deploy_password"],
            project_id=inputs["deploy_project_id"],
        )
        path = f"/stacks/{inputs['deploy_stack_id']}/resources/{inputs['deploy_resource_name']}/signal"
        Session(auth=login).post(path, endpoint_filter={"service_type": "orchestration"}, json=OUTCOME)


def _paths(resources: Sequence[Mapping[str, Any]], type_name: str) -> list[str]:
    """Return the paths of those of a type."""
    stacks = [
        (each["resource_name"], next(link["href"] for link in each["links"] if link["rel"] == "stack"))
        for each in resources
        if each["resource_type"] == type_name
    ]
    return [f"/stacks/{'/'.join(href.split('/')[-2:])}/resources/{name}" for name, href in stacks]


@dataclass(slots=True)
class Scripts:
    """Guests of all servers of a cloud whose hypervisor boots none: the scripts in user data run on this machine.

    Each runs once its server is ACTIVE, and ends with it. admin — sees all servers. place — a directory for scripts.
    """

    admin: Connection
    place: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._go_on, name="guests", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            for each in self._running.values():
                _end(each)

    def _go_on(self) -> None:
        while not self._stop.wait(1.0):
            try:
                servers = self._servers()
            except SDKException as error:
                LOG.warning("the servers cannot be listed now: %s", error)
                continue
            for id in self._running.keys() - servers.keys():
                _end(self._running.pop(id))
            for id in servers.keys() - self._running.keys():
                script = _script_of(servers[id])
                if script:
                    self._running[id] = self._started(id, script)

    def _servers(self) -> dict[str, str]:
        """Return the user data of the servers that are ACTIVE, by id."""
        compute: Any = self.admin.compute
        answer = compute.get("/servers/detail", params={"all_tenants": 1, "status": "ACTIVE"}, microversion="2.3")
        return {each["id"]: each["OS-EXT-SRV-ATTR:user_data"] or "" for each in answer.json()["servers"]}

    def _started(self, id: str, script: bytes) -> subprocess.Popen[bytes]:
        path = self.place / id
        path.write_bytes(script)
        # A script that listens again and again would keep a processor busy where there is nothing to listen with.
        environment = (
            os.environ if shutil.which("nc") else {**os.environ, "PATH": f"{self._idle()}:{os.environ['PATH']}"}
        )
        with (self.place / f"{id}.out").open("wb") as out:
            return subprocess.Popen(
                ["sh", path], stdout=out, stderr=out, cwd=self.place, env=environment, start_new_session=True
            )

    def _idle(self) -> Path:
        """Return a directory with an `nc` that listens to nothing."""
        program = self.place / "bin" / "nc"
        if not program.exists():
            program.parent.mkdir()
            program.write_text("#!/bin/sh\nexec sleep 3600\n")
            program.chmod(0o755)
        return program.parent


def _script_of(user_data: str) -> bytes:
    """Return the script that user data is; empty where it is something else."""
    data = base64.b64decode(user_data)
    return data if data.startswith(b"#!") else b""


def _end(script: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(script.pid, signal.SIGKILL)
    script.wait()
