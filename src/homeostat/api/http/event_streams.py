"""Events as they happen, told over connections that stay open (server-sent events).

One look at the database serves all who follow, in one process: it tells whose stacks have news. A follower then reads
its events by itself, in pages, as fast as its client takes them.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from anyio import CapacityLimiter, to_thread

from homeostat.model.errors import Transient
from homeostat.store import events
from homeostat.store.builtin.event_sinks import EventHorizon
from homeostat.store.database import Database

LOG = logging.getLogger(__name__)
LOOK_S = 0.25
SIGN_S = 15.0
"""A connection on which nothing happens carries a sign of life so often."""
STREAM_S = 3600.0
"""A connection ends after so long: who comes back is asked anew who it is."""
COME_BACK_MS = 2000
PAGE = 500
FOLLOWERS_MAX = 1000
READERS = 4
"""Followers that read at the same time; the others wait, and no other request does."""
MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class EventPage:
    """What there is to tell. cursor — `seq` up to which all is told after it; more — there is more already; over —
    nothing will ever come after it."""

    events: Sequence[dict[str, Any]]
    cursor: int
    more: bool
    over: bool


Read = Callable[[int, int], EventPage]
"""Events after the one number, up to the other."""


@dataclass(eq=False, slots=True)
class Follower:
    root_id: str
    news: asyncio.Event = field(default_factory=asyncio.Event)


class EventTail:
    """Who follows, and up to which event all are there. All of it lives on one event loop."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._horizon = EventHorizon()
        self._followers: set[Follower] = set()
        self._looking: asyncio.Task[None] | None = None
        self._readers = CapacityLimiter(READERS)
        self.sure = 0
        self.closed = False

    def close(self) -> None:
        """Streams end now; their clients come back to whoever serves then."""
        self.closed = True
        for follower in self._followers:
            follower.news.set()

    def check_room(self) -> None:
        """Fails: Transient when too many follow already."""
        if len(self._followers) >= FOLLOWERS_MAX:
            raise Transient(f"{FOLLOWERS_MAX} clients follow events here already")

    async def stream(self, root_id: str, read: Read, cursor: int) -> AsyncIterator[bytes]:
        """The events of a root stack after `cursor`, as bytes of a `text/event-stream`. Where the database does not
        answer, the stream ends, and its client comes back."""
        ends_at = time.monotonic() + STREAM_S
        yield b"retry: %d\n\n" % COME_BACK_MS
        with self._following(root_id) as follower:
            while not self.closed and time.monotonic() < ends_at:
                follower.news.clear()
                try:
                    page = await to_thread.run_sync(read, cursor, self.sure, limiter=self._readers)
                except Transient as error:
                    LOG.warning("a stream of events ends: %s", error)
                    return
                for event in page.events:
                    yield _told(event)
                cursor = page.cursor
                if page.over:
                    return
                if not page.more and not await _happens(follower.news):
                    yield b": nothing new\n\n"

    @contextlib.contextmanager
    def _following(self, root_id: str) -> Iterator[Follower]:
        follower = Follower(root_id)
        self._followers.add(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_again_and_again())
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    async def _look_again_and_again(self) -> None:
        while self._followers and not self.closed:
            try:
                before, (self.sure, roots) = self.sure, await to_thread.run_sync(self._look)
            except Transient as error:
                LOG.warning("events are not told now: %s", error)
            else:
                for follower in self._followers:
                    if before == 0 or follower.root_id in roots:
                        follower.news.set()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> tuple[int, set[str]]:
        """The newest event that surely has all before it, and the root stacks with news since the last look."""
        with self._db.read() as tx:
            sure = max(self.sure, self._horizon.look(self._db, tx))
            roots = events.roots(tx, self.sure, sure) if 0 < self.sure < sure else set()
        return sure, roots


async def _happens(news: asyncio.Event) -> bool:
    """Within the time after which a sign of life is due?"""
    try:
        await asyncio.wait_for(news.wait(), SIGN_S)
    except TimeoutError:
        return False
    return True


def _told(event: dict[str, Any]) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (event["id"].encode(), orjson.dumps(event))
