"""A real service under attack: its processes, what they use, and a neighbour who keeps working."""

import contextlib
import itertools
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from homeostat.cli.state_directory import Service, State
from tests.waiting import PATIENCE_S, QUIET, until

ADDRESS_SPACE = 4 * 1024**3
"""Bytes that a process of the service may map: a bomb without a bound ends the process, not the machine."""
MEMORY_MAX_MB = 500
READ_S, SMALL_STACK_S, DELETED_S = (0.25, 5.0, 5.0) if QUIET else (10.0, 60.0, 60.0)
"""Promised to others: the 99th percentile of their reads, their small stacks; and the end of the culprit."""
NEIGHBOUR = "neighbour"
SMALL = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "name": {"type": "OS::Heat::RandomString"},
        "server": {"type": "OS::Nova::Server", "properties": {"image": "cirros", "flavor": "m1.tiny"}},
    },
}
_NUMBERS = itertools.count(1)


@dataclass(slots=True)
class Attacked:
    """A service of its own processes: one API, one worker, SQLite, the simulated cloud.

    login — name and password, where the service asks for them.
    """

    home: Path
    login: tuple[str, str] | None = None

    @property
    def service(self) -> Service:
        found = State(self.home).running()
        assert found is not None, "no service runs"
        return found

    def client(self, project: str) -> httpx.Client:
        base_url = f"{self.service.url}/v1/{project}"
        return httpx.Client(base_url=base_url, timeout=PATIENCE_S, follow_redirects=True, auth=self.login)

    def pids(self) -> dict[str, int]:
        """Process id of the API and of the worker."""
        return dict(self.service.children)

    def forget_peaks(self) -> None:
        """From now on `peaks_mb` is about what comes."""
        for pid in self.pids().values():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peaks_mb(self) -> dict[str, float]:
        """Largest resident memory of each process since `forget_peaks`."""
        return {name: _peak_mb(pid) for name, pid in self.pids().items()}


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024


@contextlib.contextmanager
def serving(home: Path, *flags: str, login: tuple[str, str] | None = None) -> Iterator[Attacked]:
    """A service with its state in `home`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
    arguments = ["serve", "--port", "0", "--cloud", "simulated", *flags]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "homeostat", *arguments],
            env={**environment, "HOMEOSTAT_STATE_DIR": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        )
        try:
            until(lambda: process.poll() is not None or State(home).running(), "the service to run")
            assert process.poll() is None, (home / "log").read_text()
            attacked = Attacked(home, login)
            until(lambda: _answers(attacked), "the API to answer")
            yield attacked
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(attacked: Attacked) -> bool:
    try:
        with attacked.client(NEIGHBOUR if attacked.login is None else attacked.login[0]) as http:
            return http.get("stacks").status_code == 200
    except httpx.TransportError:
        return False


@dataclass(slots=True)
class Neighbour:
    """Another user, who reads and makes small stacks all the time. Times in seconds."""

    attacked: Attacked
    project: str = NEIGHBOUR
    reads: list[float] = field(default_factory=list)
    stacks: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def living(self) -> Iterator["Neighbour"]:
        threads = [threading.Thread(target=self._until_stopped, args=(act,)) for act in (self._read, self._make)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _until_stopped(self, act: Any) -> None:
        with self.attacked.client(self.project) as http:
            while not self._stop.wait(0.05):
                try:
                    act(http)
                except (AssertionError, httpx.TransportError) as error:
                    self.errors.append(f"{error!r}")
                    self._stop.wait(1.0)

    def _read(self, http: httpx.Client) -> None:
        began = time.monotonic()
        answer = http.get("stacks")
        self.reads.append(time.monotonic() - began)
        assert answer.status_code == 200, answer.text

    def _make(self, http: httpx.Client) -> None:
        """A small stack, from the request to its end, and back."""
        name, began = f"small-{next(_NUMBERS)}", time.monotonic()
        made = http.post("stacks", json={"stack_name": name, "template": SMALL})
        assert made.status_code == 201, made.text
        stack_id = made.json()["stack"]["id"]
        stack = ended(http, stack_id)
        assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
        self.stacks.append(time.monotonic() - began)
        delete(http, stack_id)
        self._stop.wait(0.5)

    def percentile(self, times: list[float], share: int) -> float:
        return statistics.quantiles(times, n=100)[share - 1] if len(times) > 1 else max(times, default=0.0)


def create(http: httpx.Client, name: str, template: Any, **more: Any) -> httpx.Response:
    return http.post("stacks", json={"stack_name": name, "template": template, **more})


def ended(http: httpx.Client, stack_id: str, within_s: float = PATIENCE_S) -> dict[str, Any]:
    """The stack, once nothing is in progress."""

    def at_rest() -> dict[str, Any] | None:
        stack: dict[str, Any] = http.get(f"stacks/{stack_id}").json()["stack"]
        return None if stack["stack_status"].endswith("IN_PROGRESS") else stack

    return until(at_rest, f"stack {stack_id} to come to rest", within_s=within_s)


def delete(http: httpx.Client, stack_id: str) -> float:
    """Seconds from the request to the end of the stack."""
    began = time.monotonic()
    address = http.get(f"stacks/{stack_id}").json()["stack"]["links"][0]["href"]

    def accepted() -> httpx.Response | None:
        answer = http.delete(address)
        return answer if answer.status_code in (204, 404) else None

    until(accepted, f"the deletion of {stack_id} to be accepted")
    until(lambda: http.get(f"stacks/{stack_id}").json()["stack"]["stack_status"] == "DELETE_COMPLETE")
    return time.monotonic() - began
