"""Places for what there is little of, shared among those who ask (ADR 0085).

Each who asks has a share: what one asks for beyond it waits its turn, or is refused, while others go on.
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
"""Kind (address, user, project) and name of one who has a share."""
IPV6_PREFIX = 64
"""Length of the prefix of an IPv6 address that counts as one: a user of one such address has all of the prefix."""


class ClientGone(HomeostatError):
    """The client has disconnected; nothing will read the response."""


def sharers_of(project: str, user: str | None) -> tuple[Sharer, ...]:
    """Return those whose shares a request of a known caller counts for."""
    return (("project", project),) if user is None else (("project", project), ("user", user))


def address_of(scope: Scope) -> tuple[Sharer, ...]:
    """Return those whose shares a request counts for before its caller is known."""
    return (("address", prefix(scope["client"][0] if scope.get("client") else "")),)


def prefix(address: str) -> str:
    """Return what stands for an address where addresses are counted."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a socket that has none
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    mapped = found.ipv4_mapped
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False) if mapped is None else mapped)


class FairPlaces:
    """The places of one process for one kind of work, for use on one event loop.

    Args:
        count: Places altogether.
        which: What tells requests that need a place from others, for messages, such as "that log in"; "" for all.
        each_max: Places of one sharer; None for half, so that others always find some free.
        waiting_max: Requests of one sharer that may wait.
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
        """Queues by sharers, those whose turn is next first; each queue oldest request first."""
        self._in_line: Counter[Sharer] = Counter()

    @property
    def taken(self) -> bool:
        """Whether any place is taken."""
        return bool(self._held)

    @asynccontextmanager
    async def one(self, sharers: tuple[Sharer, ...], gone: "asyncio.Future[None] | None" = None) -> AsyncIterator[None]:
        """Hold a place, as soon as one is free.

        Args:
            sharers: Those that the place counts for; it is given only within the shares of all of them.
            gone: Done when the client has disconnected, and its request need not wait any longer.

        Raises:
            TooManyRequests: Too many requests of one of the sharers already wait.
            Transient: No place became free in time.
            ClientGone: The client disconnected while its request was waiting.
        """
        await self.take(sharers, gone)
        try:
            yield
        finally:
            self.give_back(sharers)

    async def take(self, sharers: tuple[Sharer, ...], gone: "asyncio.Future[None] | None" = None) -> None:
        """Take a place; see `one`. The caller gives it back."""
        if self._free and self._fits(sharers):
            self._hold(sharers)
            return
        self._check_line(sharers)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sharers, deque()).append(turn)
        self._in_line.update(sharers)
        over = {turn} if gone is None else {turn, gone}
        try:
            await asyncio.wait(over, timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done() and not (gone is not None and gone.done()):
                message = f"all places for requests{self._which} were taken for {self._patience_s:g} s"
                raise Transient(message, RETRY_AFTER_S)
            if not turn.done():
                raise ClientGone("the client disconnected while its request waited")
        # Cancellation, too: a place that was handed over at the same moment must not be lost.
        except BaseException:
            self._leave(sharers, turn)
            raise

    def give_back(self, sharers: tuple[Sharer, ...]) -> None:
        """Give back a place that was taken for these."""
        self._free += 1
        _take_off(self._held, sharers)
        self._let_in()

    def _fits(self, sharers: Sequence[Sharer]) -> bool:
        return all(self._held[each] < self._each_max for each in sharers)

    def _hold(self, sharers: Sequence[Sharer]) -> None:
        self._free -= 1
        self._held.update(sharers)

    def _check_line(self, sharers: Sequence[Sharer]) -> None:
        for kind, name in sharers:
            if self._in_line[kind, name] >= self._waiting_max:
                message = f"{self._waiting_max} requests of this {kind}{self._which} wait already"
                raise TooManyRequests(message, RETRY_AFTER_S)

    def _leave(self, sharers: tuple[Sharer, ...], turn: "asyncio.Future[None]") -> None:
        """Remove a request from its queue; a place it was given in the meantime is passed on."""
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
                self._waiting[sharers] = queue  # behind all others


def _take_off(counts: Counter[Sharer], sharers: Sequence[Sharer]) -> None:
    counts.subtract(sharers)
    for each in sharers:
        if not counts[each]:
            del counts[each]
