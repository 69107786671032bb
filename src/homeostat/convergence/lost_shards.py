"""Shards about whose lease a worker is not sure, since the database did not answer."""

import threading
from collections.abc import Iterable

from homeostat.store.database import Database
from homeostat.store.shards import leases
from homeostat.store.shards.leases import Lease


class LostShards:
    """Shards of one worker whose claim was never confirmed, or that it could not give back.

    Another worker that takes such a shard over counts a crash of this one (`shards.CRASHES_MAX`). There was none, so
    this worker takes the crash back as soon as the database answers: an outage sets no healthy shard aside.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shards: set[tuple[str, int]] = set()

    def add(self, stack_id: str, number: int) -> None:
        """Remember a shard."""
        with self._lock:
            self._shards.add((stack_id, number))

    def acquit(self, db: Database, owner: str, running: Iterable[Lease]) -> None:
        """Give back the shards that `owner` still holds, and take back the crash where another worker has one by now.

        Args:
            db: The database.
            owner: Name of this worker.
            running: Leases of the passes that run: these shards were claimed again, and are not lost.

        Raises:
            Transient: The database does not answer; nothing is forgotten, and the next call tries again.
        """
        with self._lock:
            lost = set(self._shards)
        if not lost:
            return
        found = {(lease.stack_id, lease.number) for lease in running}
        with db.write() as tx:
            now = db.now_of(tx)
            for stack_id, number in sorted(lost - found):
                leases.end_lease(tx, stack_id, number, owner)
                leases.clear_crashes(tx, stack_id, number, now)
        with self._lock:
            self._shards -= lost
