"""Limits of the connections of one process (ADR 0085).

Connections have no user yet, so they are counted by address. If an address or the process has too many, the connection
that has kept the service waiting longest is closed: an active client gets in although idle connections fill the limit.
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
        """Close the connection, whose client owes a head or body."""


@dataclass(slots=True)
class _Address:
    """Connections of one address.

    Attributes:
        open: Number of connections.
        waiting: Connections whose clients owe the head or the body of a request, longest wait first.
    """

    open: int = 0
    waiting: dict[Member, None] = field(default_factory=dict)


class ConnectionShares:
    """Counts of the connections of one process.

    Args:
        most: Maximum number of connections.
        proxies: Addresses of proxies, exempt from the limit per address: their clients are limited by request.
    """

    def __init__(self, most: int, proxies: Sequence[Network] = ()) -> None:
        self._most = most
        self._each_max = max(1, most // 2)
        self._proxies = tuple(proxies)
        self._open = 0
        self._addresses: dict[str, _Address] = {}
        self._address_of: dict[Member, str] = {}

    def enter(self, connection: Member, address: str) -> bool:
        """Count a new connection; return False if there is no room and no connection to close for it."""
        key = prefix(address)
        share = self._addresses.get(key)
        if share is not None and share.open >= self._each_max and not _is_among(address, self._proxies):
            if not self._make_room(share):
                return False
        elif self._open >= self._most and not self._make_room(max(self._addresses.values(), key=_count_waiting)):
            return False
        share = self._addresses.setdefault(key, _Address())
        share.open += 1
        share.waiting[connection] = None
        self._open += 1
        self._address_of[connection] = key
        return True

    def leave(self, connection: Member) -> None:
        """Stop counting a connection; refused connections were never counted."""
        key = self._address_of.pop(connection, None)
        if key is None:
            return
        share = self._addresses[key]
        share.open -= 1
        share.waiting.pop(connection, None)
        self._open -= 1
        if not share.open:
            del self._addresses[key]

    def note(self, connection: Member, *, owes: bool) -> None:
        """Note that the client now owes a new head or body, or owes nothing."""
        key = self._address_of.get(connection)
        if key is None:
            return
        waiting = self._addresses[key].waiting
        waiting.pop(connection, None)
        if owes:
            waiting[connection] = None

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
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return any((mapped or parsed) in network for network in networks)
