"""Base of demonstrations: a separate service, commands, checks, and cleaning up."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

import httpx
from rich.console import Console
from rich.text import Text

from homeostat.cli.client import Client
from homeostat.cli.errors import FAILED, OK, Problem
from homeostat.cli.follow import look
from homeostat.cli.settings import ClientSettings
from homeostat.cli.state_directory import Service, State
from homeostat.cli.views import Snapshot
from homeostat.clouds.local import LocalCloud, processes

EXAMPLES = Path(__file__).parents[3] / "examples"
LOOK_S = 0.01
WAIT_S = 60.0

Found = TypeVar("Found")
Shown = TypeVar("Shown", bound="Demonstration")


class Demonstration:
    """A run of a demonstration. Steps raise Problem when a check fails."""

    template: ClassVar[Path]
    stack: ClassVar[str]

    def __init__(self, root: Path) -> None:
        """Use a new directory for all files."""
        self._root = root
        self._state = State(root)
        self._settings = ClientSettings(root)
        self._out = Console(highlight=False)
        self._cloud = LocalCloud(self._state.cloud)
        self._before = self._things()

    # -- the steps that all have ---------------------------------------------------------------------------------------

    def start(self) -> None:
        self._title("A service starts: API and worker, each a process of its own")
        self._homeostat("serve", "--detach", "--port", "0")

    def take_down(self) -> None:
        self._title("Everything is deleted")
        self._homeostat("down", self.stack, "-y")
        left = self._things() - self._before
        self._check(not left, "nothing is left in the cloud", ", ".join(sorted(kind for kind, _ in left)))
        running = guests(self._root)
        self._check(not running, "and no process of it on this machine", " ".join(map(str, running)))

    def clean_up(self) -> None:
        """Stop the service and remove everything, also after a failure."""
        service = self._state.running()
        if service is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(service.pid, signal.SIGTERM)
            deadline = time.monotonic() + WAIT_S
            while self._state.running() is not None and time.monotonic() < deadline:
                time.sleep(LOOK_S)
        self._cloud.destroy()
        shutil.rmtree(self._root)

    # -- output --------------------------------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self._out.print()
        self._out.print(Text(text, style="bold"), soft_wrap=True)

    def _print(self, text: str) -> None:
        self._out.print(Text(f"  {text}", style="dim"), soft_wrap=True)

    def _check(self, holds: bool, text: str, more: str) -> None:
        if not holds:
            raise Problem(f"this does not hold: {text} ({more})")
        self._out.print(Text.assemble(("  ✓ ", "green"), text, (f"   {more}" if more else "", "dim")), soft_wrap=True)

    def _check_time(self, seconds: float, text: str, promise_s: float, since: str = "") -> None:
        """Print a time beside the one promised. A busy machine may break the promise."""
        promise = f"at most {promise_s:.0f} s {since}".strip()
        if seconds <= promise_s:
            self._check(True, f"{text} after {seconds:.2f} s", promise)
            return
        reason = f"{promise} where nothing else runs; the load of this machine is {os.getloadavg()[0]:.1f}"
        line = Text.assemble(("  ! ", "yellow"), f"{text} after {seconds:.2f} s", (f"   {reason}", "dim"))
        self._out.print(line, soft_wrap=True)

    # -- commands and state --------------------------------------------------------------------------------------------

    def _homeostat(self, *arguments: str, code: int = OK) -> None:
        with self._started(*arguments) as command:
            ended = command.wait()
        if ended != code:
            raise Problem(f"homeostat {arguments[0]} ended with {ended}, not {code}")

    @contextlib.contextmanager
    def _started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command in the background; terminate it when the context ends."""
        words = [os.path.relpath(argument) if argument == str(self.template) else argument for argument in arguments]
        self._print(f"$ homeostat {' '.join(words)}")
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("HOMEOSTAT_")}
        environment = {**foreign, "HOMEOSTAT_STATE_DIR": str(self._root)}
        with subprocess.Popen([sys.executable, "-m", "homeostat", *arguments], env=environment) as command:
            try:
                yield command
            finally:
                command.terminate()

    def _running(self) -> Service:
        service = self._state.running()
        if service is None:
            raise Problem(f"the service has gone; its log is {self._state.log}")
        return service

    def _client(self) -> Client:
        return Client(self._running().url, self._settings)

    def _snapshot(self) -> Snapshot:
        with self._client() as client:
            return look(client, self.stack, outputs=True)

    def _snapshot_at_rest(self) -> bool:
        snapshot = self._snapshot()
        return snapshot.at_rest and all(resource.at_rest for resource in snapshot.resources)

    def _things(self) -> set[tuple[str, str]]:
        """Return (kind, id) of everything in the local cloud."""
        kinds = {kind: self._state.cloud / f"{kind}s" for kind in self._cloud.kinds}
        return {
            (kind, entry.name)
            for kind, path in kinds.items()
            if path.is_dir()
            for entry in path.iterdir()
            if not entry.name.startswith(".")
        }

    def _until(self, poll: Callable[[], Found | None], what: str) -> Found:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if result := poll():
                return result
            time.sleep(LOOK_S)
        raise Problem(f"waited {WAIT_S:.0f} s in vain for {what}")


def fetched(url: str) -> str:
    """Fetch a page over a new connection; "" when there is none."""
    try:
        answer = httpx.get(url, timeout=2.0)
    except httpx.TransportError:
        return ""
    return answer.text.strip() if answer.is_success else ""


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])


def guests(root: Path) -> list[int]:
    """Return the ids of processes that belong to the local cloud below `root`."""
    mark = f"{processes.MARK}={root}/".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            if mark in path.read_bytes():
                pids.append(int(path.parent.name))
    return pids


@contextlib.contextmanager
def made(kind: type[Shown]) -> Iterator[Shown]:
    """Provide a demonstration with a new directory, and remove everything afterwards."""
    if not kind.template.is_file():
        raise Problem(f"there is no {kind.template}: run the demo from a checkout of the project")
    run = kind(Path(tempfile.mkdtemp(prefix="homeostat-demo-")).resolve())
    try:
        yield run
    finally:
        run.clean_up()


def play(kind: type[Shown], steps: Sequence[Callable[[Shown], None]], more: str) -> int:
    """Run the steps of a demonstration, and print the result, on success followed by `more`.

    Returns:
        The exit code: 0 when all checks hold.
    """
    out = Console(highlight=False)
    begun_at = time.monotonic()
    try:
        with made(kind) as run:
            for step in steps:
                step(run)
    except Problem as problem:
        out.print(Text.assemble(("\n✗ the demo failed: ", "red"), str(problem)), soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        out.print("\nstopped; all that it made is removed")
        return 128 + signal.SIGINT
    out.print(f"\nAll of it held, in {time.monotonic() - begun_at:.0f} s. {more}", soft_wrap=True)
    return OK
