"""Shards whose lease is uncertain to a worker, since the database did not answer."""

import threading
from collections.abc import Iterable

from homeostat.store.database import Database
from homeostat.store.shards import leases
from homeostat.store.shards.leases import Lease


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
            now = db.now_of(tx)
            for stack_id, number in sorted(lost - in_use):
                leases.end_lease(tx, stack_id, number, owner)
                leases.clear_crashes(tx, stack_id, number, now)
        with self._lock:
            self._shards -= lost
