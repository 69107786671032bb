"""The demonstration of a balanced cluster: it shrinks, grows and is replaced while users ask, and no request is lost.

    python -m homeostat.cli.demo_cluster

Ends like `homeostat.cli.demo`.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import httpx

from homeostat.cli.demonstration import EXAMPLES, Demonstration, fetched, free_port, play

NODES = 4
USERS = 8
DRAIN_S = 2
"""Seconds between a server leaving the load balancer and its deletion: its answers take 0.3 s."""
NEXT = """Try next:
  homeostat up examples/balanced-cluster.yaml            the same by hand
  homeostat up examples/balanced-cluster.yaml -P nodes=1 fewer servers; the others end what they have begun"""


class Users:
    """Users who request pages in a loop, each over a new connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(USERS)]
        self._lock = threading.Lock()
        self.pages: list[tuple[float, str]] = []
        self.lost: list[str] = []

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._over.is_set():
            try:
                answer = httpx.get(self._url, timeout=20.0)
                problem = "" if answer.is_success else f"{answer.status_code}"
            except httpx.HTTPError as error:
                problem = repr(error)
            with self._lock:
                if problem:
                    self.lost.append(problem)
                else:
                    self.pages.append((time.monotonic(), answer.text.strip()))

    def since(self, begun_at: float) -> set[str]:
        """Return the distinct pages answered since a time."""
        with self._lock:
            return {page for at, page in self.pages if at >= begun_at}


class ClusterDemo(Demonstration):
    """The story of a balanced cluster; its steps are in the order of `STEPS`."""

    template: ClassVar[Path] = EXAMPLES / "balanced-cluster.yaml"
    stack: ClassVar[str] = "balanced-cluster"

    def __init__(self, root: Path) -> None:
        """Use a new directory, and a free port for the load balancer."""
        super().__init__(root)
        self._port = free_port()
        self._users: Users | None = None

    # -- the story -----------------------------------------------------------------------------------------------------

    def bring_up(self) -> None:
        self._title(f"A cluster of {NODES} servers comes up; a policy makes the load balancer in front of them")
        self._up(NODES)
        outputs = {output["output_key"]: output["output_value"] for output in self._snapshot().stack["outputs"]}
        url = str(outputs["url"])
        # A server is active before its program listens.
        pages = self._until(lambda: _pages_of_all(url), "all servers to answer")
        self._check(len(pages) == NODES, f"{NODES} servers answer in turn", " | ".join(sorted(pages)))
        self._asking = self._users = Users(url)
        self._asking.begin()
        self._print(f"{USERS} users begin to ask, each for one page after the other")

    def shrink(self) -> None:
        self._title("Three servers go: they leave the balancer, and end what they have begun")
        self._up(1)
        self._answered(1, "Hello")

    def grow(self) -> None:
        self._title("Three new ones come: they enter the balancer once they are there")
        self._up(NODES)
        self._answered(NODES, "Hello")

    def replace(self) -> None:
        self._title("Another profile: all servers are replaced, in batches")
        self._up(NODES, "Welcome")
        self._answered(NODES, "Welcome")

    def count(self) -> None:
        self._title("What the users say")
        self._asking.end()
        lost = self._asking.lost
        answered = len(self._asking.pages)
        self._check(not lost, f"{answered} requests were answered, and none was lost", "; ".join(lost[:3]))

    # -- what happens --------------------------------------------------------------------------------------------------

    def _up(self, nodes: int, message: str = "Hello") -> None:
        values = {"nodes": nodes, "message": message, "port": self._port, "drain": DRAIN_S}
        parameters = [argument for name, value in values.items() for argument in ("-P", f"{name}={value}")]
        self._homeostat("up", str(self.template), *parameters, "-y")

    def _answered(self, count: int, message: str) -> None:
        """Check that `count` servers answer now, each with this message, and that no request has been lost."""
        begun_at = time.monotonic()
        self._until(lambda: len(self._asking.since(begun_at)) >= count, "all servers to answer")
        pages = self._asking.since(begun_at)
        expected = all(page.startswith(message) for page in pages)
        self._check(expected and len(pages) == count, f"{count} answer", " | ".join(sorted(pages)))
        lost = self._asking.lost
        self._check(not lost, f"{len(self._asking.pages)} requests answered, none lost", "; ".join(lost[:3]))

    def clean_up(self) -> None:
        if self._users is not None:
            self._users.end()
        super().clean_up()


def _pages_of_all(url: str) -> set[str] | None:
    """Return the pages of all servers once each of them answers."""
    pages = {page for _ in range(2 * NODES) if (page := fetched(url))}
    return pages if len(pages) == NODES else None


STEPS: Sequence[Callable[[ClusterDemo], None]] = (
    ClusterDemo.start,
    ClusterDemo.bring_up,
    ClusterDemo.shrink,
    ClusterDemo.grow,
    ClusterDemo.replace,
    ClusterDemo.count,
    ClusterDemo.take_down,
)


if __name__ == "__main__":
    sys.exit(play(ClusterDemo, STEPS, NEXT))
