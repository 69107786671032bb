"""Deletion of snapshots of stacks: first the snapshots in the clouds, then the rows.

If a worker dies in between, another worker continues, and finds remaining snapshots by their tokens.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence

from homeostat.clouds.port import Clouds
from homeostat.model.errors import HomeostatError, Rejected, Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import snapshots_of
from homeostat.store.database import Database
from homeostat.store.schema.rows import SnapshotPartRow
from homeostat.store.stacks import snapshots

LOG = logging.getLogger(__name__)
SNAPSHOTS_MAX = 20
"""Snapshots deleted in one round."""


class SnapshotCollector:
    """Collector of snapshots whose deletion was requested."""

    def __init__(self, db: Database, clouds: Clouds) -> None:
        self._db = db
        self._clouds = clouds

    def round(self) -> int:
        """Continue the deletion of all snapshots that are due; return how many are deleted."""
        # A read is cheap and does not block writers; mostly nothing is due.
        with self._db.read() as tx:
            if not snapshots.any_due(tx, tx.now()):
                return 0
        with self._db.write() as tx:
            # Taking sets the next due time: a worker that dies now is followed by another one then.
            due = snapshots.take_due(tx, tx.now(), SNAPSHOTS_MAX)
            parts = {id: snapshots.parts(tx, id) for id, _ in due}
        return sum(self._delete_snapshot(id, project, parts[id]) for id, project in due)

    def _delete_snapshot(self, id: str, project: str, parts: Sequence[SnapshotPartRow]) -> bool:
        """Delete one snapshot as far as possible now; return whether it is deleted.

        After a temporary error (a `HomeostatError` except Rejected and Terminal, or a broken adapter), the next round
        tries again, at the time set by `take_due`.
        """
        by_kind: dict[str, list[str]] = defaultdict(list)
        for part in parts:
            by_kind[snapshots_of(part.kind)].append(part.token)
        try:
            deleted = [self._delete(project, kind, tokens) for kind, tokens in by_kind.items()]
        except (Rejected, Terminal) as error:
            return self._finish(id, project, str(error))
        except HomeostatError as error:
            LOG.warning("cannot delete snapshot %s of project %s now: %s", id, project, error)
            return False
        except Exception:
            LOG.exception("cannot delete snapshot %s of project %s: the adapter failed", id, project)
            return False
        return all(deleted) and self._finish(id, project)

    def _delete(self, project: str, kind: str, tokens: list[str]) -> bool:
        """Request the deletion of the things with these tokens; return whether none is left.

        Raises:
            HomeostatError: The cloud cannot delete a thing.
        """
        cloud = self._clouds(project)
        # By token, not by id: a snapshot whose creation lost its answer has no stored id.
        looks = cloud.find(kind, tokens)
        if any(look.presence is Presence.UNKNOWN for look in looks):
            return False
        answers = cloud.delete(kind, [look.handle for look in looks if look.present])
        for answer in answers:
            if isinstance(answer, HomeostatError):
                raise answer
        return all(isinstance(answer, Observation) and answer.presence is Presence.ABSENT for answer in answers)

    def _finish(self, id: str, project: str, failure: str = "") -> bool:
        """Remove the row of a snapshot, or FAIL the snapshot; return whether it is deleted."""
        with self._db.write() as tx:
            # Another worker may have been faster, if this one took longer than a snapshot is taken for.
            if snapshots.for_update(tx, id) is None:
                return False
            if failure:
                snapshots.fail(tx, id, f"Snapshot delete failed: {failure}")
                return False
            snapshots.remove(tx, id, project, tx.now())
            return True
