"""Shards that a worker lost sight of while the database did not answer."""

import threading
from collections.abc import Iterable

from homeostat.store.database import Database
from homeostat.store.shards import shards
from homeostat.store.shards.shards import Lease


class LostShards:
    """Shards of one worker whose claim was never confirmed, or that it could not give back.

    Another worker that takes one over counts a crash of this one (`shards.CRASHES_MAX`). This one has not crashed: it
    says so as soon as the database answers, so that an outage sets no healthy shard aside.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shards: set[tuple[str, int]] = set()

    def add(self, stack_id: str, number: int) -> None:
        with self._lock:
            self._shards.add((stack_id, number))

    def acquit(self, db: Database, owner: str, running: Iterable[Lease]) -> None:
        """Give back what `owner` still holds of them, and take back the crash where another worker has it by now.

        Takes: running — leases of passes that run: those shards were found again. Fails: Transient; then nothing is
        forgotten.
        """
        with self._lock:
            lost = set(self._shards)
        if not lost:
            return
        found = {(lease.stack_id, lease.number) for lease in running}
        with db.write() as tx:
            now = db.now_of(tx)
            for stack_id, number in sorted(lost - found):
                shards.let_go(tx, stack_id, number, owner)
                shards.acquit(tx, stack_id, number, now)
        with self._lock:
            self._shards -= lost
