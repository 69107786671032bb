"""A bounded number of places for expensive requests, shared fairly among projects (ADR 0040).

Checking a template may take seconds of CPU time. Without a limit, a dozen such requests would share the process's one
processor with all reads. Requests that only read need no place.
"""

import asyncio
import sys
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import Receive

from homeostat.model.errors import HomeostatError, TooManyRequests, Transient

PLACES = 4
"""Expensive requests that run at the same time, of all projects together."""
WAITING_MAX = 50
"""Requests of one project that may wait for a place."""
PATIENCE_S = 60.0
"""Longest time that a request waits for a place."""
RETRY_AFTER_S = 5.0
TURN_S = 0.001
"""Interpreter switch interval (seconds) while a place is taken.

A read waits for such an interval of each computing thread, again and again. At other times the default, longer interval
is cheaper.
"""
_USUAL_TURN_S = sys.getswitchinterval()


class ClientGone(HomeostatError):
    """The client has disconnected; nothing will read the response."""


class ClientWatch:
    """Detection of a client that disconnects while its request is being worked on.

    The event loop watches the connection; the thread that does the work calls `check`.
    """

    def __init__(self) -> None:
        self._gone = threading.Event()

    def check(self) -> None:
        """Raise ClientGone if the client has disconnected."""
        if self._gone.is_set():
            raise ClientGone("the client disconnected before the response")

    async def watch(self, receive: Receive) -> None:
        """Run until the client disconnects.

        Args:
            receive: Of a request whose body has been read, so that the next message can only be the disconnect.
        """
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone.set()


class HeavyRequests:
    """The places of one process, for use on one event loop.

    Args:
        count: Places of all projects together. One project gets at most half, so that others always find some free.
        waiting_max: Requests of one project that may wait.
        patience_s: Longest wait for a place.
    """

    def __init__(self, count: int = PLACES, waiting_max: int = WAITING_MAX, patience_s: float = PATIENCE_S) -> None:
        self._free = count
        self._each_max = max(1, count // 2)
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Queues by project, the project whose turn is next first; each queue oldest request first."""

    @asynccontextmanager
    async def one(self, project: str, client: ClientWatch, receive: Receive) -> AsyncIterator[None]:
        """Hold a place, as soon as one is free, and watch the client meanwhile.

        Args:
            project: Project that the place counts for.
            client: Set when the client disconnects.
            receive: Of the request, whose body has been read.

        Raises:
            TooManyRequests: Too many requests of this project already wait.
            Transient: No place became free in time.
            ClientGone: The client disconnected while its request was waiting.
        """
        watching = asyncio.ensure_future(client.watch(receive))
        try:
            await self._take(project, watching)
            try:
                # Inside: the client may have gone in the very moment that gave its request a place.
                client.check()
                yield
            finally:
                self._give_back(project)
        finally:
            watching.cancel()

    async def _take(self, project: str, watching: "asyncio.Future[None]") -> None:
        if self._free and self._held[project] < self._each_max:
            self._hold(project)
            return
        queue = self._waiting.setdefault(project, deque())
        if len(queue) >= self._waiting_max:
            message = f"{len(queue)} requests of this project that check templates wait already"
            raise TooManyRequests(message, RETRY_AFTER_S)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await asyncio.wait({turn, watching}, timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done() and not watching.done():
                message = f"all places for requests that check templates were taken for {self._patience_s:g} s"
                raise Transient(message, RETRY_AFTER_S)
            if not turn.done():
                raise ClientGone("the client disconnected while its request waited")
        # Cancellation, too: a place that was handed over at the same moment must not be lost.
        except BaseException:
            self._leave(project, turn)
            raise

    def _leave(self, project: str, turn: "asyncio.Future[None]") -> None:
        """Remove a request from its queue; a place it was given in the meantime is passed on."""
        if turn.done():
            self._give_back(project)
            return
        self._waiting[project].remove(turn)
        if not self._waiting[project]:
            del self._waiting[project]

    def _hold(self, project: str) -> None:
        self._free -= 1
        self._held[project] += 1
        sys.setswitchinterval(TURN_S)

    def _give_back(self, project: str) -> None:
        self._free += 1
        self._held[project] -= 1
        if not self._held[project]:
            del self._held[project]
        if not self._held:
            sys.setswitchinterval(_USUAL_TURN_S)
        self._let_in()

    def _let_in(self) -> None:
        """Give free places to waiting requests: round robin over projects, oldest request first within each."""
        for project in list(self._waiting):
            if not self._free:
                return
            if self._held[project] >= self._each_max:
                continue
            queue = self._waiting.pop(project)
            queue.popleft().set_result(None)
            self._hold(project)
            if queue:
                self._waiting[project] = queue  # behind all others


ClientCheck = Callable[[], None]
"""Called between two steps of long work; raises when the client has disconnected."""


def always_connected() -> None:
    """Return: the default where no client can disconnect."""
