"""Snapshots of stacks that are to go: what the clouds keep for them goes first, then they are forgotten.

Whoever dies in the middle is followed by another: what is still there is found by its token.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from homeostat.clouds.port import Clouds
from homeostat.model.errors import HomeostatError, Rejected, Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import snapshots_of
from homeostat.store.database import Database
from homeostat.store.stacks import snapshots

LOG = logging.getLogger(__name__)
SNAPSHOTS_MAX = 20
"""Deleted in one round."""


class SnapshotCollector:
    """Deletes snapshots that somebody has asked to be deleted."""

    def __init__(self, db: Database, clouds: Clouds) -> None:
        self._db = db
        self._clouds = clouds

    def round(self) -> int:
        """Go on with all that are due. Gives how many are gone."""
        with self._db.read() as tx:
            if not snapshots.any_due(tx, self._db.now_of(tx)):
                return 0
        with self._db.write() as tx:
            due = snapshots.take_due(tx, self._db.now_of(tx), SNAPSHOTS_MAX)
            kept = {id: snapshots.parts(tx, id) for id, _ in due}
        return sum(self._dispose(id, project, kept[id]) for id, project in due)

    def _dispose(self, id: str, project: str, parts: Sequence[Row[Any]]) -> bool:
        by_kind: dict[str, list[str]] = defaultdict(list)
        for each in parts:
            by_kind[snapshots_of(each.kind)].append(each.token)
        try:
            gone = [self._delete(project, kind, tokens) for kind, tokens in by_kind.items()]
        except (Rejected, Terminal) as error:
            return self._ended(id, project, str(error))
        except HomeostatError as error:
            LOG.warning("cannot delete snapshot %s of project %s now: %s", id, project, error)
            return False
        except Exception:
            LOG.exception("cannot delete snapshot %s of project %s: the adapter failed", id, project)
            return False
        return all(gone) and self._ended(id, project)

    def _delete(self, project: str, kind: str, tokens: list[str]) -> bool:
        """Is nothing left that carries these tokens? Fails: what the cloud says against deleting one."""
        cloud = self._clouds(project)
        looks = cloud.find(kind, tokens)
        if any(look.presence is Presence.UNKNOWN for look in looks):
            return False
        answers = cloud.delete(kind, [look.handle for look in looks if look.present])
        for answer in answers:
            if isinstance(answer, HomeostatError):
                raise answer
        return all(isinstance(answer, Observation) and answer.presence is Presence.ABSENT for answer in answers)

    def _ended(self, id: str, project: str, failure: str = "") -> bool:
        with self._db.write() as tx:
            if snapshots.for_update(self._db, tx, id) is None:
                return False
            if failure:
                snapshots.fail(tx, id, f"Snapshot delete failed: {failure}")
                return False
            snapshots.remove(self._db, tx, id, project, self._db.now_of(tx))
            return True
