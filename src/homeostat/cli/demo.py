"""The demonstration: a web tier on this machine comes up, is broken, heals, survives a crash, and is removed.

    python -m homeostat.cli.demo

Uses a state directory and ports of its own. Ends with 0 when all its checks hold; otherwise with 1 and the one that did
not.
"""

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
from typing import TypeVar

import httpx
from rich.console import Console
from rich.text import Text

from homeostat.cli.client import Client
from homeostat.cli.errors import FAILED, OK, Problem
from homeostat.cli.follow import look
from homeostat.cli.settings import ClientSettings
from homeostat.cli.state_directory import Service, State
from homeostat.cli.views import IN_PROGRESS, ResourceView, Snapshot
from homeostat.clouds.local import LocalCloud, processes
from homeostat.resources.registry import type_of

TEMPLATE = Path(__file__).parents[3] / "examples" / "web-tier.yaml"
STACK = "web-tier"
GREETING = "Hello"
NEW_GREETINGS = ("Welcome", "Good day", "Good morning", "Good evening", "Good night")
"""Texts of successive updates: if one completes before it is seen half done, the next one is tried."""
SERVERS = 3
SEEN_S_MAX = 1.0
"""Longest time until the death of a server is noticed."""
HEALED_S_MAX = 5.0
"""Longest time until it serves again."""
NEXT = """Try next:
  homeostat up examples/web-tier.yaml       the same by hand; it starts a service if none runs
  homeostat explain web-tier                what is not at rest, and why
  export OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:8004/v1/default
  openstack stack list                      the usual client works too"""
_LOOK_S = 0.01
_WAIT_S = 60.0

Found = TypeVar("Found")


class Demo:
    """One run. Its steps, in the order of `STEPS`, raise Problem when a check does not hold."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._state = State(root)
        self._settings = ClientSettings(root)
        self._port = free_port()
        self._url = ""
        self._out = Console(highlight=False)
        self._cloud = LocalCloud(self._state.cloud)
        self._before = self._things()

    # -- the story -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._title("A service starts: API and worker, each a process of its own")
        self._homeostat("serve", "--detach", "--port", "0")

    def bring_up(self) -> None:
        self._title("A web tier comes up")
        self._homeostat("up", str(TEMPLATE), "-P", f"port={self._port}")
        outputs = {each["output_key"]: each["output_value"] for each in self._snapshot().stack["outputs"]}
        self._url = str(outputs["url"])
        pages = self._until(lambda: self._pages_of_all(GREETING), "all servers to answer")
        self._check(len(pages) == SERVERS, f"{SERVERS} servers answer in turn", " | ".join(sorted(pages)))

    def kill_a_server(self) -> None:
        self._title("One server is killed")
        victim = self._resource("server_2")
        [seen] = self._cloud.observe("server", [victim.handle])
        address, pid = seen.properties["address"], int(seen.properties["pid"])
        with self._client() as client:
            stack = client.stack(STACK)
            newest = client.newest_event(stack)
            self._print(f"$ kill -9 {pid}")
            killed_at = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            self._until(
                lambda: any(event["resource_name"] == victim.name for event in client.events(stack, newest)),
                "the death of server_2 to be noticed",
            )
            seen_s = time.monotonic() - killed_at
        self._until(lambda: fetched(f"http://{address}:8000/"), "server_2 to serve again")
        healed_s = time.monotonic() - killed_at
        self._check(seen_s <= SEEN_S_MAX, f"seen after {seen_s:.2f} s", f"at most {SEEN_S_MAX:.0f} s")
        self._check(healed_s <= HEALED_S_MAX, f"serves again after {healed_s:.2f} s", f"at most {HEALED_S_MAX:.0f} s")
        self._until(lambda: self._snapshot_at_rest(), "the stack to be at rest")
        after = self._resource("server_2")
        self._check(after.handle == victim.handle, "it is the same server, with its address and its data", address)

    def kill_the_service(self) -> None:
        self._title("The whole service is killed in the middle of an update")
        service = self._running()
        pids = [service.pid, *service.children.values()]
        middle = next(filter(None, (self._kill_in_the_middle(greeting, pids) for greeting in NEW_GREETINGS)), None)
        if middle is None:
            raise Problem("every update was over before it could be interrupted")
        self._print(f"$ kill -9 {' '.join(map(str, pids))}")
        moving = ", ".join(each.name for each in middle.resources if not each.at_rest)
        self._check(not middle.at_rest, "the update is half done", f"in progress: {moving}")
        self._until(lambda: self._state.running() is None, "the service to be dead")
        pages = self._until(self._pages, "a page: a server that has just become active begins to serve on its own")
        self._check(bool(pages), "the pages are served all the same", "")

    def _kill_in_the_middle(self, greeting: str, pids: Sequence[int]) -> Snapshot | None:
        """Change the greeting, and kill these processes while the update is half done.

        Returns:
            The half-done stack; None when the update completed before it was seen.
        """
        self._greeting = greeting
        changed = ("up", str(TEMPLATE), "-P", f"port={self._port}", "-P", f"message={greeting}", "--no-wait")
        with self._client() as client:
            stack = client.stack(STACK)
            before = client.newest_event(stack)

            def half_done_or_over() -> Snapshot | None:
                reported = client.newest_event(stack) != before
                seen = look(client, STACK)
                return seen if half_done(seen) or (reported and seen.at_rest) else None

            with self._started(*changed):
                seen = self._until(half_done_or_over, "the update to be under way")
                if seen.at_rest:
                    return None
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):  # a child dies together with its supervisor
                        os.kill(pid, signal.SIGKILL)
        return seen

    def recover(self) -> None:
        self._title("It starts again and finishes what it had begun")
        self._homeostat("serve", "--detach", "--port", "0")
        self._homeostat("watch", STACK, "--until-complete")
        snapshot = self._snapshot()
        self._check(snapshot.stack["stack_status"] == "UPDATE_COMPLETE", "the update is complete", "")
        wanted = {(kind, each.handle) for each in snapshot.resources if (kind := type_of(each.type).kind)}
        there = {thing for thing in self._things() - self._before if thing[0] in {kind for kind, _ in wanted}}
        # Servers create ports implicitly; no resource of the template is a port.
        made = {thing for thing in there if thing[0] != "port"}
        self._check(made >= wanted, "nothing is lost", f"{len(wanted)} resources, all in the cloud")
        doubled = [" ".join(each) for each in sorted(made - wanted)]
        self._check(not doubled, "nothing is doubled", ", ".join(doubled) or f"{len(made)} things in the cloud")
        pages = self._until(lambda: self._pages_of_all(self._greeting), "all servers to say the new text")
        self._check(len(pages) == SERVERS, "all servers say the new text", " | ".join(sorted(pages)))

    def take_down(self) -> None:
        self._title("Everything is deleted")
        self._homeostat("down", STACK, "-y")
        left = self._things() - self._before
        self._check(not left, "nothing is left in the cloud", ", ".join(sorted(kind for kind, _ in left)))
        running = guests(self._root)
        self._check(not running, "and no process of it on this machine", " ".join(map(str, running)))

    def clean_up(self) -> None:
        """Stop the service and remove everything that was created, also after a failure."""
        service = self._state.running()
        if service is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(service.pid, signal.SIGTERM)
            deadline = time.monotonic() + _WAIT_S
            while self._state.running() is not None and time.monotonic() < deadline:
                time.sleep(_LOOK_S)
        self._cloud.destroy()
        shutil.rmtree(self._root)

    # -- output --------------------------------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self._out.print()
        self._out.print(Text(text, style="bold"))

    def _print(self, text: str) -> None:
        self._out.print(Text(f"  {text}", style="dim"), soft_wrap=True)

    def _check(self, holds: bool, text: str, more: str) -> None:
        if not holds:
            raise Problem(f"this does not hold: {text} ({more})")
        self._out.print(Text.assemble(("  ✓ ", "green"), text, (f"   {more}" if more else "", "dim")), soft_wrap=True)

    # -- commands and state --------------------------------------------------------------------------------------------

    def _homeostat(self, *arguments: str) -> None:
        with self._started(*arguments) as command:
            code = command.wait()
        if code:
            raise Problem(f"homeostat {arguments[0]} ended with {code}")

    @contextlib.contextmanager
    def _started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command in parallel; it is terminated at the latest when the context ends."""
        shown = [os.path.relpath(each) if each == str(TEMPLATE) else each for each in arguments]
        self._print(f"$ homeostat {' '.join(shown)}")
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
            return look(client, STACK, outputs=True)

    def _snapshot_at_rest(self) -> bool:
        snapshot = self._snapshot()
        return snapshot.at_rest and all(each.at_rest for each in snapshot.resources)

    def _resource(self, name: str) -> ResourceView:
        return next(each for each in self._snapshot().resources if each.name == name)

    def _things(self) -> set[tuple[str, str]]:
        """Return (kind, id) of everything in the local cloud."""
        kinds = {kind: self._state.cloud / f"{kind}s" for kind in self._cloud.kinds}
        return {
            (kind, each.name)
            for kind, path in kinds.items()
            if path.is_dir()
            for each in path.iterdir()
            if not each.name.startswith(".")
        }

    def _pages(self) -> set[str]:
        """Return the distinct pages of the load balancer, requested twice as often as there are servers."""
        return {page for _ in range(2 * SERVERS) if (page := fetched(self._url))}

    def _pages_of_all(self, greeting: str) -> set[str] | None:
        """Return the pages once every server answers with this greeting: servers are active before they serve pages."""
        pages = self._pages()
        return pages if len(pages) >= SERVERS and all(page.startswith(greeting) for page in pages) else None

    def _until(self, poll: Callable[[], Found | None], what: str) -> Found:
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            if found := poll():
                return found
            time.sleep(_LOOK_S)
        raise Problem(f"waited {_WAIT_S:.0f} s in vain for {what}")


STEPS: Sequence[Callable[[Demo], None]] = (
    Demo.start,
    Demo.bring_up,
    Demo.kill_a_server,
    Demo.kill_the_service,
    Demo.recover,
    Demo.take_down,
)


def half_done(snapshot: Snapshot) -> bool:
    """Return whether a resource of the stack is being updated."""
    return snapshot.action == "UPDATE" and any(each.status == IN_PROGRESS for each in snapshot.resources)


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
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in path.read_bytes():
                found.append(int(path.parent.name))
    return found


@contextlib.contextmanager
def demo() -> Iterator[Demo]:
    """Provide a demo with a directory of its own; everything is removed afterwards."""
    if not TEMPLATE.is_file():
        raise Problem(f"there is no {TEMPLATE}: run the demo from a checkout of the project")
    run = Demo(Path(tempfile.mkdtemp(prefix="homeostat-demo-")).resolve())
    try:
        yield run
    finally:
        run.clean_up()


def main() -> int:
    out = Console(highlight=False)
    begun_at = time.monotonic()
    try:
        with demo() as run:
            for step in STEPS:
                step(run)
    except Problem as problem:
        out.print(Text.assemble(("\n✗ the demo failed: ", "red"), str(problem)), soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        out.print("\nstopped; all that it made is removed")
        return 128 + signal.SIGINT
    out.print(f"\nAll of it held, in {time.monotonic() - begun_at:.0f} s. {NEXT}", soft_wrap=True)
    return OK


if __name__ == "__main__":
    sys.exit(main())
