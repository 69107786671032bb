"""The service as processes: an API, and workers that may be killed."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx

from homeostat.store.database import Database
from tests.openstack.adapter import clouds_yaml
from tests.openstack.projects import Project
from tests.openstack.storm.worker import run_command
from tests.real.processes import CONTEXT, end_with_the_tests
from tests.waiting import PATIENCE_S, until

START_S = 600.0
"""For the API, beside a whole OpenStack that starts too."""
CONTEXT.set_forkserver_preload(["tests.openstack.storm.worker"])


@dataclass(slots=True)
class Stacks:
    """The stacks of the service, as its users see them."""

    _http: httpx.Client

    def create(self, name: str, template: dict[str, Any]) -> str:
        """Gives the id."""
        answer = self._http.post("stacks", json={"stack_name": name, "template": template})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["stack"]["id"])

    def update(self, name: str, stack_id: str, template: dict[str, Any]) -> None:
        answer = self._http.put(f"stacks/{name}/{stack_id}", json={"template": template})
        assert answer.status_code == 202, answer.text

    def delete(self, name: str, stack_id: str) -> None:
        answer = self._http.delete(f"stacks/{name}/{stack_id}")
        assert answer.status_code == 204, answer.text

    def listed(self) -> list[dict[str, Any]]:
        """Those that are not deleted."""
        return list(self._answer("stacks")["stacks"])

    def resources(self, stack: dict[str, Any]) -> list[dict[str, Any]]:
        return list(self._answer(f"stacks/{stack['stack_name']}/{stack['id']}/resources")["resources"])

    def _answer(self, path: str) -> dict[str, Any]:
        answer = self._http.get(path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@dataclass(slots=True)
class Service:
    """An API, and workers. agent — a word in the names of these workers as clients: faults are to hit no others."""

    directory: Path
    stacks: Stacks
    agent: str
    _flags: list[str]
    _environment: dict[str, str]
    _workers: list[BaseProcess] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.directory / "workers.log"

    def start_worker(self) -> None:
        arguments = ["worker", *self._flags]
        worker = CONTEXT.Process(target=run_command, args=(arguments, self._environment, self.log, self.agent))
        worker.start()
        self._workers.append(worker)

    def kill_worker(self, rng: random.Random) -> None:
        """kill -9 any of them, and start another one. Fails: AssertionError where one has ended by itself."""
        dead = [worker.exitcode for worker in self._workers if not worker.is_alive()]
        assert not dead, f"workers have ended by themselves, with {dead}: see {self.log}"
        victim = self._workers.pop(rng.randrange(len(self._workers)))
        victim.kill()
        victim.join()
        self.start_worker()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.join()


@contextlib.contextmanager
def serving(project: Project, database_url: str, directory: Path, workers: int) -> Iterator[Service]:
    """The service of one project of an OpenStack."""
    with contextlib.closing(Database(database_url, time.time)) as db:
        db.migrate()
    flags = ["--state-dir", str(directory), "--database", database_url, "--encryption-keys", "none"]
    flags += ["--cloud", "openstack", "--os-cloud", "own"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
    environment = {**own, "OS_CLIENT_CONFIG_FILE": str(clouds_yaml(project, directory))}
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        api = subprocess.Popen(
            [sys.executable, "-m", "homeostat", "api", "--fd", str(listening.fileno()), *flags],
            env=environment,
            pass_fds=[listening.fileno()],
            stdout=stack.enter_context((directory / "api.log").open("ab")),
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_the_tests,
        )
        stack.callback(api.wait)
        stack.callback(api.kill)
        root = f"http://127.0.0.1:{listening.getsockname()[1]}"
        until(lambda: api.poll() is not None or _answers(root), "the API", within_s=START_S)
        assert api.poll() is None, (directory / "api.log").read_text()
        http = stack.enter_context(httpx.Client(base_url=f"{root}/v1/{project.id}/", timeout=PATIENCE_S))
        made = Service(directory, Stacks(http), project.name, flags, environment)
        service = stack.enter_context(contextlib.closing(made))
        for _ in range(workers):
            service.start_worker()
        yield service


def _answers(root: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(root, timeout=PATIENCE_S).status_code < 500
    return False
