"""One machine, one file: the API and a worker are killed in the middle of what they do, and start again."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.store.database import sqlite_url
from tests.real.processes import end_with_the_tests
from tests.real.templates import generation
from tests.real.world import RealWorld, world_on
from tests.waiting import PATIENCE_S

KILLS = 6
pytestmark = pytest.mark.real


class Api:
    """A genuine API process that may be killed; requests that come meanwhile wait for the next one."""

    def __init__(self, database_url: str, directory: Path) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        number = str(self._listening.fileno())
        self._command = [sys.executable, "-m", "homeostat", "api", "--fd", number, "--state-dir", str(directory)]
        self._command += ["--database", database_url, "--cloud", "simulated", "--log-level", "warning"]
        self._command += ["--encryption-keys", "none"]  # the workers of the tests have none
        self._running = self._start()
        self._http = httpx.Client(
            base_url=f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1/p/", timeout=PATIENCE_S
        )

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
        return subprocess.Popen(
            self._command, env=environment, pass_fds=[self._listening.fileno()], preexec_fn=end_with_the_tests
        )

    def kill(self) -> None:
        self._running.kill()
        self._running.wait()

    def restart(self) -> None:
        self.kill()
        self._running = self._start()

    def close(self) -> None:
        self.kill()
        self._http.close()
        self._listening.close()

    def create(self, name: str) -> str:
        """Whether a request that was cut off has made the stack, the next one tells. Gives the stack's id."""
        body = {"stack_name": name, "template": generation(name, 0)}
        assert self._answer(lambda: self._http.post("stacks", json=body)).status_code in (201, 409)
        found: dict[str, Any] = self._answer(lambda: self._http.get(f"stacks/{name}", follow_redirects=True)).json()
        return str(found["stack"]["id"])

    def update(self, name: str, stack_id: str, number: int) -> None:
        body = {"template": generation(name, number)}
        assert self._answer(lambda: self._http.put(f"stacks/{name}/{stack_id}", json=body)).status_code == 202

    def delete(self, name: str, stack_id: str) -> None:
        assert self._answer(lambda: self._http.delete(f"stacks/{name}/{stack_id}")).status_code in (204, 404)

    def _answer(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send again as long as the connection breaks; any answer counts."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return send()
            except httpx.TransportError:
                if time.monotonic() > deadline:
                    raise


@contextmanager
def api_on(world: RealWorld) -> Iterator[Api]:
    api = Api(world.db.url, world.directory)
    try:
        yield api
    finally:
        api.close()


@pytest.mark.shows("CV5")
def test_api_and_worker_are_killed(tmp_path: Path) -> None:
    """Everything that was accepted is carried out, and nothing twice."""
    rng = random.Random(6)
    url = sqlite_url(tmp_path / "homeostat.sqlite")
    with world_on(url, tmp_path) as world, api_on(world) as api, ThreadPoolExecutor(1) as user:
        world.start_worker()
        ids = {name: api.create(name) for name in ("stays", "goes")}
        for number in range(1, KILLS + 1):
            update = user.submit(api.update, "stays", ids["stays"], number)
            time.sleep(rng.uniform(0.0, 0.3))  # anywhere in the request
            api.restart()
            world.kill(rng.choice(world.get_under_way(rng)))
            world.start_worker()
            update.result()
        api.delete("goes", ids["goes"])
        world.kill(rng.choice(world.get_under_way(rng)))
        world.start_worker()
        world.check()
        states = {row.name: (row.action, row.status) for row in world.all_stacks() if row.parent_id is None}
        assert states == {"stays": ("UPDATE", "COMPLETE"), "goes": ("DELETE", "COMPLETE")}
