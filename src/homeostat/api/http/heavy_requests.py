"""Requests that take much work have places of their own, apart from those that only read, shared fairly among projects.

What checks a template may work for seconds. Were it let in without a limit, a dozen such requests would share the one
processor that a process has with everybody's reads.
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
WAITING_MAX = 50
"""Requests of one project that may wait for a place."""
PATIENCE_S = 60.0
"""How long a request waits for a place."""
RETRY_AFTER_S = 5.0
TURN_S = 0.001
"""For which a thread computes before it lets another one do so, while a place is taken: a read waits for such a turn of
each of them, again and again. At other times longer turns are cheaper."""
_USUAL_TURN_S = sys.getswitchinterval()


class ClientGone(HomeostatError):
    """The client has hung up: nobody waits for the answer any more."""


class ClientWatch:
    """Does the client still wait for the answer to its request? Asked by the thread that works on it."""

    def __init__(self) -> None:
        self._gone = threading.Event()

    def check(self) -> None:
        """Fails: Gone."""
        if self._gone.is_set():
            raise ClientGone("the client has hung up before its request was answered")

    async def watch(self, receive: Receive) -> None:
        """Ends when the client hangs up. receive — of a request whose body has been read."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone.set()


class HeavyRequests:
    """The places of one process; for one event loop.

    Takes: count — of all projects, of which one project has at most half, so that another one always finds some free;
    waiting_max — of one project; patience_s — to wait for a place.
    """

    def __init__(self, count: int = PLACES, waiting_max: int = WAITING_MAX, patience_s: float = PATIENCE_S) -> None:
        self._free = count
        self._each_max = max(1, count // 2)
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By project, the one whose turn is next first; each oldest first."""

    @asynccontextmanager
    async def one(self, project: str, attention: ClientWatch, receive: Receive) -> AsyncIterator[None]:
        """With a place, as soon as there is one, while the client is watched.

        receive — of the request, whose body has been read. Fails: TooManyRequests when too many of this project wait
        already, Transient when it takes too long, Gone when the client has hung up meanwhile.
        """
        watching = asyncio.ensure_future(attention.watch(receive))
        try:
            await self._take(project, watching)
            attention.check()
            try:
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
                raise ClientGone("the client has hung up before there was a place for its request")
        except BaseException:
            self._leave(project, turn)
            raise

    def _leave(self, project: str, turn: "asyncio.Future[None]") -> None:
        """It does not wait any more; what it was given meanwhile is for somebody else."""
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
        """Those whose turn it is: projects one after the other, each in the order of its requests."""
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


GoOn = Callable[[], None]
"""Called between two steps of long work. Fails when it is of no use any more."""


def go_on() -> None:
    """Somebody always waits."""
