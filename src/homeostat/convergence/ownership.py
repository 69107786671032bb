"""Ownership of a shard: a pass may act as long as its lease holds and no newer owner has the shard (invariant 4)."""

import threading
from collections.abc import Callable, Iterable

from homeostat.clock import Clock
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import leases
from homeostat.store.shards.leases import Lease


class ShardOwnership:
    """The lease of one pass, as far as the pass knows.

    Attributes:
        lease: The lease as it was claimed.
        wakes: The shard's count of wake-ups when the pass last stored something.
    """

    def __init__(
        self, db: Database, clock: Clock, lease: Lease, lease_s: float, on_progress: Callable[[], None] = lambda: None
    ) -> None:
        """Take over a claimed shard.

        Args:
            clock: This worker's own clock.
            lease_s: Seconds for which the lease is renewed.
            on_progress: Called after each renewal.
        """
        self.lease = lease
        self.wakes = lease.wakes
        self._db = db
        self._clock = clock
        self._lease_s = lease_s
        self._on_progress = on_progress
        self._valid_until = 0.0

    @property
    def woken(self) -> bool:
        """Whether the shard was woken since it was claimed."""
        return self.wakes != self.lease.wakes

    def check(self) -> None:
        """Make sure that this worker still owns the shard, right before a call that acts on a cloud.

        A worker that was frozen after its last write must not act: another worker may have taken over. While the lease
        lasts by this worker's own clock, no query is needed.

        Raises:
            Superseded: A newer owner has the shard.
        """
        if self._clock.monotonic() >= self._valid_until:
            with self._db.write() as tx:
                self.fence(tx)

    def fence(self, tx: Transaction, *, stores: bool = True, settles_at: int | None = None) -> int:
        """Check the epoch in the database, and renew the lease.

        Args:
            tx: A transaction of this pass. It holds the shard's row from now on.
            stores: Whether the transaction stores anything. A pass that stored something has made progress, so crashes
                of earlier owners do not count any more (`shards.CRASHES_MAX`).
            settles_at: Revision at which the shard is at rest; None to keep the stored one.

        Returns:
            The shard's count of wake-ups.

        Raises:
            Superseded: A newer owner has the shard.
        """
        # Read before the query, so that this worker believes in its lease for no longer than the database.
        queried_at = self._clock.monotonic()
        # The recent time suffices: a lease that ends too soon or too late costs time, and the epoch decides.
        wakes = leases.renew(tx, self.lease, tx.recent_now(), self._lease_s, stores=stores, settles_at=settles_at)
        self._valid_until = queried_at + self._lease_s
        self._on_progress()
        return wakes


class LostShards:
    """Shards of one worker whose claim was never confirmed, or that could not be given back.

    Another worker that takes over such a shard counts a crash of this worker (`shards.CRASHES_MAX`). There was no
    crash, so the count is reset as soon as the database answers: an outage sets no healthy shard aside.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shards: set[tuple[str, int]] = set()

    def add(self, stack_id: str, number: int) -> None:
        """Remember a shard."""
        with self._lock:
            self._shards.add((stack_id, number))

    def acquit(self, db: Database, owner: str, running: Iterable[Lease]) -> None:
        """Give back the shards still held by `owner`, and reset the crash counts of those with a new owner by now.

        Args:
            owner: Name of this worker.
            running: Leases of the passes that run. Their shards were claimed again, and are not lost.

        Raises:
            Transient: The database does not answer; nothing is forgotten, and the next call tries again.
        """
        with self._lock:
            lost = set(self._shards)
        if not lost:
            return
        in_use = {(lease.stack_id, lease.number) for lease in running}
        with db.write() as tx:
            now = tx.now()
            # Each statement locks a row: in the same order everywhere, so that no two workers wait for each other.
            for stack_id, number in sorted(lost - in_use):
                leases.end_lease(tx, stack_id, number, owner)
                leases.clear_crashes(tx, stack_id, number, now)
        with self._lock:
            # Only after the commit, so that an error loses none; shards added meanwhile stay.
            self._shards -= lost
