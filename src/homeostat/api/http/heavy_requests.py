"""A bounded number of places for expensive requests, shared fairly among projects and users (ADR 0040).

Checking a template may take seconds of CPU time. Without a limit, a dozen such requests would compete with all reads
for the process's only processor. Requests that only read need no such place.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

from homeostat.api.http.fair_places import ClientGone, FairPlaces, Sharer

PLACES = 4
"""Concurrent expensive requests of all projects together."""
WAITING_MAX = 50
"""Waiting requests of a project or user."""
PATIENCE_S = 60.0
"""Longest wait of a request for a place."""
TURN_S = 0.001
"""Interpreter switch interval (seconds) while a place is taken.

A read waits for such an interval of each computing thread, again and again. At other times the default, longer interval
is cheaper.
"""
_USUAL_TURN_S = sys.getswitchinterval()


class ClientWatch:
    """Detects that a client disconnects while its request is in progress.

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
            receive: The request's, after the body was read, so that the next message can only be the disconnect.
        """
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone.set()


class HeavyRequests:
    """The places of a process, for use on one event loop.

    Args:
        count: Total number of places; a project or user gets at most half.
        waiting_max: Waiting requests of a project or user.
        patience_s: Longest wait for a place.
    """

    def __init__(self, count: int = PLACES, waiting_max: int = WAITING_MAX, patience_s: float = PATIENCE_S) -> None:
        self._places = FairPlaces(count, "that check templates", waiting_max=waiting_max, patience_s=patience_s)

    @asynccontextmanager
    async def one(self, sharers: tuple[Sharer, ...], client: ClientWatch, receive: Receive) -> AsyncIterator[None]:
        """Hold a place, as soon as a place is free, and watch the client meanwhile.

        Args:
            sharers: Project and user of the request.
            client: Set when the client disconnects.
            receive: The request's, after the body was read.

        Raises:
            TooManyRequests: Too many requests of this project or user already wait.
            Transient: No place became free in time.
            ClientGone: The client disconnected while its request was waiting.
        """
        watching = asyncio.ensure_future(client.watch(receive))
        try:
            await self._places.take(sharers, watching)
            try:
                sys.setswitchinterval(TURN_S)
                # The client may have gone in the very moment that gave its request a place.
                client.check()
                yield
            finally:
                self._places.give_back(sharers)
                if not self._places.taken:
                    sys.setswitchinterval(_USUAL_TURN_S)
        finally:
            watching.cancel()
