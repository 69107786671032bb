"""The demonstration: a web tier on this machine comes up, is broken, heals, survives a crash, and is removed.

    python -m homeostat.cli.demo

Uses a new state directory and free ports. Ends with 0 when all its checks hold; otherwise with 1 and the failed check.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from homeostat.cli.demonstration import EXAMPLES, Demonstration, fetched, free_port, play
from homeostat.cli.errors import Problem
from homeostat.cli.follow import look
from homeostat.cli.views import IN_PROGRESS, ResourceView, Snapshot
from homeostat.resources.registry import type_of

TEMPLATE = EXAMPLES / "web-tier.yaml"
STACK = "web-tier"
GREETING = "Hello"
NEW_GREETINGS = ("Welcome", "Good day", "Good morning", "Good evening", "Good night")
"""Texts of successive updates: if an update completes before it is seen half done, the next is tried."""
SERVERS = 3
SEEN_S_MAX = 1.0
"""Longest time until the death of a server is noticed."""
HEALED_S_MAX = 5.0
"""Longest time until the server serves again."""
NEXT = """Try next:
  homeostat up examples/web-tier.yaml       the same by hand; it starts a service if none runs
  homeostat explain web-tier                what is not at rest, and why
  export OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:8004/v1/default
  openstack stack list                      the usual client works too"""


class Demo(Demonstration):
    """The story of the web tier; its steps are in the order of `STEPS`."""

    template = TEMPLATE
    stack = STACK

    def __init__(self, root: Path) -> None:
        """Use a new directory, and a free port for the load balancer."""
        super().__init__(root)
        self._port = free_port()
        self._url = ""

    # -- the story -----------------------------------------------------------------------------------------------------

    def bring_up(self) -> None:
        self._title("A web tier comes up")
        self._homeostat("up", str(TEMPLATE), "-P", f"port={self._port}")
        outputs = {output["output_key"]: output["output_value"] for output in self._snapshot().stack["outputs"]}
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
        self._check_time(seen_s, "seen", SEEN_S_MAX)
        self._check_time(healed_s, "serves again", HEALED_S_MAX)
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
        moving = ", ".join(resource.name for resource in middle.resources if not resource.at_rest)
        self._check(not middle.at_rest, "the update is half done", f"in progress: {moving}")
        self._until(lambda: self._state.running() is None, "the service to be dead")
        pages = self._until(self._pages, "a page: a server that has just become active begins to serve on its own")
        self._check(bool(pages), "the pages are served all the same", "")

    def _kill_in_the_middle(self, greeting: str, pids: Sequence[int]) -> Snapshot | None:
        """Change the greeting, and kill the processes while the update is half done.

        Returns:
            The half-done stack; None if the update completed too early.
        """
        self._greeting = greeting
        changed = ("up", str(TEMPLATE), "-P", f"port={self._port}", "-P", f"message={greeting}", "-y", "--no-wait")
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
        wanted = {(kind, resource.handle) for resource in snapshot.resources if (kind := type_of(resource.type).kind)}
        things = {thing for thing in self._things() - self._before if thing[0] in {kind for kind, _ in wanted}}
        # Servers create ports implicitly; no resource of the template is a port.
        created = {thing for thing in things if thing[0] != "port"}
        self._check(created >= wanted, "nothing is lost", f"{len(wanted)} resources, all in the cloud")
        doubled = [" ".join(thing) for thing in sorted(created - wanted)]
        self._check(not doubled, "nothing is doubled", ", ".join(doubled) or f"{len(created)} things in the cloud")
        pages = self._until(lambda: self._pages_of_all(self._greeting), "all servers to say the new text")
        self._check(len(pages) == SERVERS, "all servers say the new text", " | ".join(sorted(pages)))

    def _resource(self, name: str) -> ResourceView:
        return next(resource for resource in self._snapshot().resources if resource.name == name)

    def _pages(self) -> set[str]:
        """Return the distinct pages of the load balancer, requested twice as often as there are servers."""
        return {page for _ in range(2 * SERVERS) if (page := fetched(self._url))}

    def _pages_of_all(self, greeting: str) -> set[str] | None:
        """Return the pages once every server answers with this greeting: servers are active before they serve pages."""
        pages = self._pages()
        return pages if len(pages) >= SERVERS and all(page.startswith(greeting) for page in pages) else None


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
    return snapshot.action == "UPDATE" and any(resource.status == IN_PROGRESS for resource in snapshot.resources)


if __name__ == "__main__":
    sys.exit(play(Demo, STEPS, NEXT))
