"""Receivers: addresses at which others, such as alarms, begin an action of a cluster without logging in."""

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, insert, select, update

from homeostat.api.services.clusters.clusters import ClusterService
from homeostat.api.services.clusters.requester import Asking, referring
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.clusters import listing
from homeostat.store.database import Database

RECEIVERS_MAX = 100
"""Receivers of one cluster."""
_receiver = schema.receiver


class ReceiverService:
    """Keeps receivers, and begins what they are for.

    Args:
        db: The database.
        clusters: Finds clusters.
    """

    def __init__(self, db: Database, clusters: ClusterService) -> None:
        self._db = db
        self._clusters = clusters

    def create(self, asking: Asking, name: str, cluster: str, action: str, params: Mapping[str, Any]) -> Row[Any]:
        """Store a receiver, and return its row.

        Raises:
            Rejected: BadRequest: there is no such cluster; OverQuota.
        """
        with self._db.write() as tx:
            with referring(f"The referenced cluster '{cluster}'"):
                row = self._clusters.get(tx, asking, cluster)
            there = select(func.count()).where(_receiver.c.cluster_id == row.id)
            if tx.execute(there).scalar_one() >= RECEIVERS_MAX:
                message = f"Quota exceeded: a cluster has at most {RECEIVERS_MAX} receivers: delete some first"
                raise Rejected("OverQuota", message)
            identity = str(uuid.uuid4())
            values = {
                "id": identity,
                **asking.owner,
                "name": name,
                "type": "webhook",
                "cluster_id": row.id,
                "action": action,
                "actor": {},
                "params": dict(params),
                "channel": {},
                "created_at": self._db.now_of(tx),
            }
            tx.execute(insert(_receiver).values(**values))
            return self._row(tx, identity)

    def get(self, tx: Connection, asking: Asking, identity: str) -> Row[Any]:
        """Return a receiver by its id, name or the beginning of its id.

        Raises:
            Rejected: ResourceNotFound, MultipleChoices.
        """
        return listing.get(tx, _receiver, asking.reach, identity, _is_living())

    def page(self, tx: Connection, wanted: listing.Page) -> list[Row[Any]]:
        return listing.page(tx, _receiver, wanted, _is_living())

    def update(self, asking: Asking, identity: str, changes: Mapping[str, Any]) -> Row[Any]:
        """Change a receiver, and return its row.

        Raises:
            Rejected: ResourceNotFound; BadRequest where nothing would change.
        """
        with self._db.write() as tx:
            row = self.get(tx, asking, identity)
            changed = {name: value for name, value in changes.items() if getattr(row, name) != value}
            if not changed:
                raise Rejected("BadRequest", "No property needs an update.")
            chosen = update(_receiver).where(_receiver.c.id == row.id)
            tx.execute(chosen.values(**changed, updated_at=self._db.now_of(tx)))
            return self._row(tx, row.id)

    def delete(self, asking: Asking, identity: str) -> None:
        """Delete a receiver.

        Raises:
            Rejected: ResourceNotFound.
        """
        with self._db.write() as tx:
            row = self.get(tx, asking, identity)
            tx.execute(delete(_receiver).where(_receiver.c.id == row.id))

    def known(self, identity: str) -> Row[Any]:
        """Return a receiver by its id: who knows that may begin its action.

        Raises:
            Rejected: ResourceNotFound.
        """
        with self._db.read() as tx:
            row = tx.execute(select(_receiver).where(_receiver.c.id == identity, _is_living())).first()
        if row is None:
            raise Rejected("ResourceNotFound", f"The receiver '{identity}' could not be found.")
        return row

    def _row(self, tx: Connection, identity: str) -> Row[Any]:
        return tx.execute(select(_receiver).where(_receiver.c.id == identity)).one()


def _is_living() -> ColumnElement[bool]:
    """Return the condition that the cluster of a receiver is not deleted."""
    stack = schema.stack
    return exists().where(stack.c.id == _receiver.c.cluster_id, stack.c.deleted_at.is_(None))
