"""Server-sent events: stack events pushed over connections that stay open.

A periodic query finds the root stacks with new events, for all followers of a process. Each follower then reads its own
events, page by page, as fast as the client takes them.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from anyio import CapacityLimiter, to_thread

from homeostat.api.http.fair_places import RETRY_AFTER_S, FairPlaces, Sharer
from homeostat.model.errors import TooManyRequests, Transient
from homeostat.store import events
from homeostat.store.builtin.event_sinks import EventHorizon
from homeostat.store.database import Database

LOG = logging.getLogger(__name__)
POLL_S = 0.05
"""Interval between two looks for new events."""
SIGN_S = 15.0
"""Interval of keep-alive comments on an idle connection."""
STREAM_S = 3600.0
"""Longest life of a connection: the client reconnects and is authenticated again."""
COME_BACK_MS = 2000
"""Time after which clients should reconnect (the field `retry`)."""
PAGE = 500
"""Events that are read at once."""
FOLLOWERS_MAX = 1000
"""Streams of one process."""
FOLLOWERS_EACH = FOLLOWERS_MAX // 4
"""Streams of one project, and of one user."""
READERS = 4
"""Followers that read the database at the same time; at most half for one project or user.

The remaining followers wait, without delaying ordinary requests.
"""
MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of events for a follower.

    Attributes:
        events: Events in the format of the API.
        cursor: `seq` of the event up to which the follower has everything after this page.
        more: More events are available already.
        over: No event will ever follow.
    """

    events: Sequence[Mapping[str, Any]]
    cursor: int
    more: bool
    over: bool


Read = Callable[[int, int], EventPage]
"""Read the events after the first `seq`, up to the second."""


@dataclass(eq=False, slots=True)
class Follower:
    """One open stream; `changed` is set when its root stack may have new events."""

    root_id: str
    sharers: tuple[Sharer, ...]
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class EventTail:
    """The open streams of a process, and the event up to which the log is complete.

    All of it lives on one event loop.

    Attributes:
        sure: `seq` up to which no further event can appear, whatever transactions are still open; 0 before the first
            look.
        closed: The process is shutting down.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._horizon = EventHorizon()
        self._followers: set[Follower] = set()
        self._polling: asyncio.Task[None] | None = None
        self._shares: Counter[Sharer] = Counter()
        self._reading = FairPlaces(READERS, "that follow events", waiting_max=FOLLOWERS_MAX, patience_s=STREAM_S)
        self._readers = CapacityLimiter(READERS)
        self.sure = 0
        self.closed = False

    def close(self) -> None:
        """End all streams; their clients reconnect to the process that serves then."""
        self.closed = True
        for follower in self._followers:
            follower.changed.set()

    def check_room(self, sharers: Sequence[Sharer]) -> None:
        """Check that there is room for another stream.

        Raises:
            TooManyRequests: A sharer has its maximum of streams.
            Transient: The process has its maximum of streams.
        """
        for kind, name in sharers:
            if self._shares[kind, name] >= FOLLOWERS_EACH:
                message = f"{FOLLOWERS_EACH} clients of this {kind} follow events here already"
                raise TooManyRequests(message, RETRY_AFTER_S)
        if len(self._followers) >= FOLLOWERS_MAX:
            raise Transient(f"{FOLLOWERS_MAX} clients follow events here already")

    async def stream(self, root_id: str, read: Read, cursor: int, sharers: tuple[Sharer, ...]) -> AsyncIterator[bytes]:
        """Yield the events of a root stack after `cursor`, as bytes of a `text/event-stream`.

        The stream ends when the database does not answer; the client reconnects.
        """
        ends_at = time.monotonic() + STREAM_S
        yield b"retry: %d\n\n" % COME_BACK_MS
        with self._following(root_id, sharers) as follower:
            while not self.closed and time.monotonic() < ends_at:
                # Cleared before reading: an event that is committed during the read sets it again and is not missed.
                follower.changed.clear()
                try:
                    async with self._reading.one(sharers):
                        page = await to_thread.run_sync(read, cursor, self.sure, limiter=self._readers)
                except Transient as error:
                    LOG.warning("a stream of events ends: %s", error)
                    return
                for event in page.events:
                    yield _encoded(event)
                cursor = page.cursor
                if page.over:
                    return
                if not page.more and not await _happens(follower.changed):
                    yield b": nothing new\n\n"

    @contextlib.contextmanager
    def _following(self, root_id: str, sharers: tuple[Sharer, ...]) -> Iterator[Follower]:
        follower = Follower(root_id, sharers)
        self._followers.add(follower)
        self._shares.update(sharers)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            self._shares.subtract(sharers)
            for sharer in sharers:
                if not self._shares[sharer]:
                    del self._shares[sharer]

    async def _poll(self) -> None:
        while self._followers and not self.closed:
            try:
                before, (self.sure, roots) = self.sure, await to_thread.run_sync(self._look)
            except Transient as error:
                LOG.warning("events are not told now: %s", error)
            else:
                for follower in self._followers:
                    # At the first look, `roots` is empty: there is no earlier position to compare with, so every
                    # follower reads.
                    if before == 0 or follower.root_id in roots:
                        follower.changed.set()
            await asyncio.sleep(POLL_S)

    def _look(self) -> tuple[int, set[str]]:
        """Return the `seq` up to which the log is complete, and the root stacks with events since the last look."""
        with self._db.read() as tx:
            sure = max(self.sure, self._horizon.advance(tx))
            roots = events.roots(tx, self.sure, sure) if 0 < self.sure < sure else set()
        return sure, roots


async def _happens(changed: asyncio.Event) -> bool:
    """Return whether news arrives before the next keep-alive is due."""
    try:
        await asyncio.wait_for(changed.wait(), SIGN_S)
    except TimeoutError:
        return False
    return True


def _encoded(event: Mapping[str, Any]) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (event["id"].encode(), orjson.dumps(event))
