"""Things of shards in progress, as an observer has last read them: a look without a change reads no rows.

The memory never decides: the stamp of a shard is read for each look, and differs as soon as a pass or an observer may
have stored anything about the shard's things. What is forgotten is read again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.shards import observations
from homeostat.store.shards.look_schedule import Look, Stamp
from homeostat.store.shards.observations import WatchedThing

Shard = tuple[str, int]
"""Id of a stack and number of one of its shards."""
BYTES_MAX = 16 * 1024 * 1024
"""Size of the remembered observations, as JSON."""
FORGOTTEN_S = 60.0
"""Time after which things are read again although their stamp is the same."""


@dataclass(frozen=True, slots=True)
class _Known:
    stamp: Stamp
    read_at: float
    things: Sequence[WatchedThing]
    size: int


class KnownThings:
    """The things of shards in progress that one observer follows. Not safe to share between threads."""

    def __init__(self) -> None:
        """Begin without any."""
        self._known: dict[Shard, _Known] = {}
        """The shards in the order in which they were read."""
        self._size = 0
        self._of_project: Counter[str] = Counter()

    def in_progress(self, project: str) -> int:
        """Return the number of known things of a project."""
        return self._of_project[project]

    def read(
        self, tx: Transaction, looks: Mapping[Shard, Look], types: Sequence[str], now: float
    ) -> dict[Shard, Sequence[WatchedThing]]:
        """Return the things of these types in these shards, by shard; query those that are not known as of now.

        Args:
            tx: A consistent read, in which `looks` was read, too.
        """
        self._forget_before(now - FORGOTTEN_S)
        things: dict[Shard, Sequence[WatchedThing]] = {}
        fresh: dict[Shard, list[WatchedThing]] = {}
        for shard, look in looks.items():
            known = self._known.get(shard)
            if known is not None and known.stamp == look.stamp:
                things[shard] = known.things
            else:
                self._forget(shard)
                fresh[shard] = []
        for thing in observations.in_shards(tx, sorted(fresh), types, whole=False) if fresh else ():
            fresh[thing.stack_id, thing.shard].append(thing)
        for shard, read in fresh.items():
            self._note(shard, looks[shard].stamp, read, now)
        return things | fresh

    def _note(self, shard: Shard, stamp: Stamp | None, things: Sequence[WatchedThing], now: float) -> None:
        if stamp is None or not any(thing.busy for thing in things):
            return
        size = sum(schema.json_size(thing.seen) for thing in things)
        if self._size + size <= BYTES_MAX:
            self._known[shard] = _Known(stamp, now, things, size)
            self._size += size
            self._of_project[things[0].project] += len(things)

    def _forget_before(self, at: float) -> None:
        while (shard := next(iter(self._known), None)) is not None and self._known[shard].read_at < at:
            self._forget(shard)

    def _forget(self, shard: Shard) -> None:
        known = self._known.pop(shard, None)
        if known is not None:
            self._size -= known.size
            project = known.things[0].project
            self._of_project[project] -= len(known.things)
            if not self._of_project[project]:
                del self._of_project[project]
