"""Fair queues for scarce resources (ADR 0085).

Each address, user and project has a share. Requests beyond the share wait or are refused, while requests of different
sharers proceed.
"""

import asyncio
import ipaddress
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.types import Scope

from homeostat.model.errors import HomeostatError, TooManyRequests, Transient

RETRY_AFTER_S = 5.0
Sharer = tuple[str, str]
"""Kind (address, user, project) and name of the owner of a share."""
IPV6_PREFIX = 64
"""IPv6 addresses with the same prefix of this length count as one: providers assign whole prefixes to a user."""


class ClientGone(HomeostatError):
    """The client has disconnected and will not read the response."""


def sharers_of(project: str, user: str | None) -> tuple[Sharer, ...]:
    """Return the sharers of a request with a known caller."""
    return (("project", project),) if user is None else (("project", project), ("user", user))


def address_of(scope: Scope) -> tuple[Sharer, ...]:
    """Return the sharer of a request before its caller is known."""
    return (("address", prefix(scope["client"][0] if scope.get("client") else "")),)


def prefix(address: str) -> str:
    """Return the key under which an address is counted."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has no IP address
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    mapped = parsed.ipv4_mapped
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False) if mapped is None else mapped)


class FairPlaces:
    """The places of a process for a kind of work, for use on an event loop.

    Args:
        count: Total number of places.
        which: Description of the requests for messages, such as "with large bodies"; "" for all requests.
        each_max: Places of a sharer; None for half, which leaves places for all other sharers.
        waiting_max: Waiting requests of a sharer.
        patience_s: Longest wait for a place.
    """

    def __init__(
        self, count: int, which: str, *, each_max: int | None = None, waiting_max: int = 50, patience_s: float = 60.0
    ) -> None:
        self._free = count
        self._which = f" {which}" if which else ""
        self._each_max = max(1, count // 2) if each_max is None else each_max
        self._waiting_max = waiting_max
        self._patience_s = patience_s
        self._held: Counter[Sharer] = Counter()
        self._waiting: OrderedDict[tuple[Sharer, ...], deque[asyncio.Future[None]]] = OrderedDict()
        """Sharers -> queue, next turn first; each queue oldest request first."""
        self._in_line: Counter[Sharer] = Counter()

    @property
    def taken(self) -> bool:
        """Whether any place is taken."""
        return bool(self._held)

    @asynccontextmanager
    async def one(
        self, sharers: tuple[Sharer, ...], disconnect: "asyncio.Future[None] | None" = None
    ) -> AsyncIterator[None]:
        """Hold a place, as soon as a place is free.

        Args:
            sharers: Owners of the shares; the place must fit into all of their shares.
            disconnect: Done when the client has disconnected, which ends the wait.

        Raises:
            TooManyRequests: Too many requests of a sharer already wait.
            Transient: No place became free in time.
            ClientGone: The client disconnected while its request was waiting.
        """
        await self.take(sharers, disconnect)
        try:
            yield
        finally:
            self.give_back(sharers)

    async def take(self, sharers: tuple[Sharer, ...], disconnect: "asyncio.Future[None] | None" = None) -> None:
        """Take a place; see `one`. The caller gives it back."""
        if self._free and self._fits(sharers):
            self._hold(sharers)
            return
        self._check_line(sharers)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sharers, deque()).append(turn)
        self._in_line.update(sharers)
        over = {turn} if disconnect is None else {turn, disconnect}
        try:
            await asyncio.wait(over, timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done() and not (disconnect is not None and disconnect.done()):
                message = f"all places for requests{self._which} were taken for {self._patience_s:g} s"
                raise Transient(message, RETRY_AFTER_S)
            if not turn.done():
                raise ClientGone("the client disconnected while its request waited")
        # BaseException, for cancellation too: a place that was handed over at the same moment must not be lost.
        except BaseException:
            self._leave(sharers, turn)
            raise

    def give_back(self, sharers: tuple[Sharer, ...]) -> None:
        """Give back a place of these sharers."""
        self._free += 1
        _take_off(self._held, sharers)
        self._let_in()

    def _fits(self, sharers: Sequence[Sharer]) -> bool:
        return all(self._held[sharer] < self._each_max for sharer in sharers)

    def _hold(self, sharers: Sequence[Sharer]) -> None:
        self._free -= 1
        self._held.update(sharers)

    def _check_line(self, sharers: Sequence[Sharer]) -> None:
        for kind, name in sharers:
            if self._in_line[kind, name] >= self._waiting_max:
                message = f"{self._waiting_max} requests of this {kind}{self._which} wait already"
                raise TooManyRequests(message, RETRY_AFTER_S)

    def _leave(self, sharers: tuple[Sharer, ...], turn: "asyncio.Future[None]") -> None:
        """Remove a request from its queue; pass on a place that it was given in the meantime."""
        if turn.done():
            self.give_back(sharers)
            return
        self._waiting[sharers].remove(turn)
        _take_off(self._in_line, sharers)
        if not self._waiting[sharers]:
            del self._waiting[sharers]

    def _let_in(self) -> None:
        """Give free places to waiting requests: round robin over sharers, oldest request first within each."""
        for sharers in list(self._waiting):
            if not self._free:
                return
            if not self._fits(sharers):
                continue
            queue = self._waiting.pop(sharers)
            queue.popleft().set_result(None)
            _take_off(self._in_line, sharers)
            self._hold(sharers)
            if queue:
                self._waiting[sharers] = queue  # at the end: round robin


def _take_off(counts: Counter[Sharer], sharers: Sequence[Sharer]) -> None:
    counts.subtract(sharers)
    for sharer in sharers:
        if not counts[sharer]:
            del counts[sharer]
