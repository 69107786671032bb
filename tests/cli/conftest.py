"""A real service for the commands to talk to, and a way to run them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from homeostat.cli.state_directory import Service, State
from homeostat.clouds.local import LocalCloud
from tests.waiting import PATIENCE_S, until

GENUINE = (sys.executable, "-m", "homeostat")
"""The command as users have it. Most tests have one that is forked, see `tests.forked`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Home:
    """One state directory; commands run with it, and with no other setting of this machine."""

    root: Path
    command: Sequence[str] = GENUINE

    @property
    def state(self) -> State:
        return State(self.root)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command that gets signals: a genuine one."""
        return self._start(GENUINE, arguments)

    def _start(self, command: Sequence[str], arguments: Sequence[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*command, *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> Ended:
        with self._start(self.command, arguments) as command:
            try:
                out, err = command.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                raise
        return Ended(command.returncode, out, err)

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEOSTAT_", "OS_"))}
        warning = "default::DeprecationWarning"
        return {**inherited, "HOMEOSTAT_STATE_DIR": str(self.root), "COLUMNS": "160", "PYTHONWARNINGS": warning}

    def running(self) -> Service:
        service = self.state.running()
        assert service is not None, "no service runs"
        return service

    def end_service(self) -> None:
        """End the service alone: what its cloud runs goes on."""
        service = self.state.running()
        if service is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(service.pid, signal.SIGTERM)
            until(lambda: self.state.running() is None)

    def stop(self) -> None:
        """End the service and all that its cloud runs."""
        self.end_service()
        if self.state.cloud.exists():
            LocalCloud(self.state.cloud).destroy()


@contextlib.contextmanager
def home_below(directory: Path, program: Path) -> Iterator[Home]:
    found = Home(directory / "state", (str(program),))
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def home(tmp_path: Path, homeostat_program: Path) -> Iterator[Home]:
    """A state directory in which nothing runs yet; whatever a test starts in it is stopped."""
    with home_below(tmp_path, homeostat_program) as found:
        yield found


@pytest.fixture
def genuine(home: Home) -> Home:
    """The same, with the command as users have it."""
    return replace(home, command=GENUINE)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, homeostat_program: Path) -> Iterator[Home]:
    """A service on the simulated cloud, shared by the tests of a module."""
    with home_below(tmp_path_factory.mktemp("service"), homeostat_program) as found:
        started = found.run("serve", "--detach", "--port", "0", "--cloud", "simulated")
        assert started.code == 0, started.err
        yield found
        assert "DeprecationWarning" not in found.state.log.read_text()


def lives(pid: int) -> bool:
    """A process that has ended but was not collected counts as dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")
