"""The connections of one process, and which of them makes room where there are too many (ADR 0085).

Nobody has logged in yet when a connection is made, so they are counted by address. Where an address, or the process,
has as many as it may, the one that has kept the service waiting for longest is closed: a client whose request comes at
once gets in while others hold hundreds of connections open and say nothing.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from homeostat.api.http.fair_places import prefix

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Member(Protocol):
    """A connection."""

    def make_room(self) -> None:
        """Close the connection, whose client owes the service something."""


@dataclass(slots=True)
class _Address:
    """Connections of one address.

    Attributes:
        open: How many there are.
        waiting: Those whose clients owe the head or the body of a request, in the order in which they began to.
    """

    open: int = 0
    waiting: dict[Member, None] = field(default_factory=dict)


class ConnectionShares:
    """Counts of the connections of one process.

    Args:
        most: Connections altogether.
        proxies: Addresses of proxies, which may have all of them: their clients are counted by their own.
    """

    def __init__(self, most: int, proxies: Sequence[Network] = ()) -> None:
        self._most = most
        self._each_max = max(1, most // 2)
        self._proxies = tuple(proxies)
        self._open = 0
        self._addresses: dict[str, _Address] = {}
        self._address_of: dict[Member, str] = {}

    def enter(self, one: Member, address: str) -> bool:
        """Count a new connection; return False where there is no room, and none can be made."""
        key = prefix(address)
        share = self._addresses.get(key)
        if share is not None and share.open >= self._each_max and not _is_among(address, self._proxies):
            if not self._make_room(share):
                return False
        elif self._open >= self._most and not self._make_room(max(self._addresses.values(), key=_count_waiting)):
            return False
        share = self._addresses.setdefault(key, _Address())
        share.open += 1
        share.waiting[one] = None
        self._open += 1
        self._address_of[one] = key
        return True

    def leave(self, one: Member) -> None:
        """Count a connection no longer; one that never came in counts for nothing."""
        key = self._address_of.pop(one, None)
        if key is None:
            return
        share = self._addresses[key]
        share.open -= 1
        share.waiting.pop(one, None)
        self._open -= 1
        if not share.open:
            del self._addresses[key]

    def note(self, one: Member, *, owes: bool) -> None:
        """Note what has changed on a connection: its client has begun to owe something else, or owes nothing."""
        key = self._address_of.get(one)
        if key is None:
            return
        waiting = self._addresses[key].waiting
        waiting.pop(one, None)
        if owes:
            waiting[one] = None

    def _make_room(self, address: _Address) -> bool:
        oldest = next(iter(address.waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.make_room()
        return True


def _count_waiting(address: _Address) -> int:
    return len(address.waiting)


@lru_cache(maxsize=1024)
def _is_among(address: str, networks: tuple[Network, ...]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return any((mapped or found) in each for each in networks)
