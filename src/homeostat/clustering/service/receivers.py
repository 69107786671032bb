"""Receivers: URLs at which clients such as alarms start an action of a cluster without authentication."""

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import and_, delete, func, insert, select, update

from homeostat.clustering.service.clusters import ClusterService
from homeostat.clustering.service.message_receivers import MessageReceivers, check_size
from homeostat.clustering.service.requester import InTransaction, RequestScope, no_op, referring
from homeostat.clustering.store import listing, living
from homeostat.model.errors import Rejected
from homeostat.model.limits import MESSAGE_RECEIVERS, RECEIVERS, RECEIVERS_MAX
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ReceiverRow
from homeostat.store.sql import typed

_receiver = schema.receiver


class ReceiverService:
    """Creates, changes and deletes receivers; `messages` does so for receivers of messages."""

    def __init__(self, db: Database, clusters: ClusterService, messages: MessageReceivers) -> None:
        self._db = db
        self._clusters = clusters
        self.messages = messages

    def create(
        self,
        scope: RequestScope,
        name: str,
        cluster: str,
        action: str,
        params: Mapping[str, Any],
        actor: Mapping[str, Any] = MappingProxyType({}),
        also: InTransaction = no_op,
    ) -> ReceiverRow:
        """Store a receiver, and return its row.

        Args:
            cluster: Id or name of the cluster, from the user.
            action: The action to start.
            params: Inputs of the action.
            actor: Notes of the user, shown in answers and not used otherwise.
            also: Further writes in the same transaction.

        Raises:
            Rejected: BadRequest: the cluster does not exist; OverQuota.
        """
        with self._db.write() as tx:
            with referring(f"The referenced cluster '{cluster}'"):
                row = self._clusters.get(tx, scope, cluster)
            receivers = select(func.count()).where(_receiver.c.cluster_id == row.id)
            if tx.execute(receivers).scalar_one() >= RECEIVERS_MAX:
                message = f"Quota exceeded: a cluster has at most {RECEIVERS_MAX} receivers: delete some first"
                raise Rejected("OverQuota", message)
            check_size(tx, RECEIVERS, {"params": dict(params), "actor": dict(actor)}, _receiver.c.cluster_id == row.id)
            identity = str(uuid.uuid4())
            values = {
                "id": identity,
                **scope.owner,
                "name": name,
                "type": "webhook",
                "cluster_id": row.id,
                "action": action,
                "actor": dict(actor),
                "params": dict(params),
                "channel": {},
                "created_at": tx.now(),
            }
            tx.execute(insert(_receiver).values(**values))
            also(tx, identity)
            return self._row(tx, identity)

    def get(self, tx: Transaction, scope: RequestScope, identity: str) -> ReceiverRow:
        """Return a receiver by its id, name or the beginning of its id.

        Raises:
            Rejected: ResourceNotFound, MultipleChoices.
        """
        return listing.get(tx, ReceiverRow, scope.reach, identity, living.is_living_receiver())

    def page(self, tx: Transaction, wanted: listing.Page) -> list[ReceiverRow]:
        return listing.page(tx, ReceiverRow, wanted, living.is_living_receiver())

    def update(self, scope: RequestScope, identity: str, changes: Mapping[str, Any]) -> ReceiverRow:
        """Change a receiver, and return its row.

        Raises:
            Rejected: ResourceNotFound; BadRequest: nothing to change.
        """
        with self._db.write() as tx:
            row = self.get(tx, scope, identity)
            changed = {name: value for name, value in changes.items() if getattr(row, name) != value}
            if not changed:
                raise Rejected("BadRequest", "No property needs an update.")
            others, limit = (_receiver.c.cluster_id == row.cluster_id, RECEIVERS)
            if row.type == "message":
                others, limit = (
                    and_(_receiver.c.project == row.project, _receiver.c.type == row.type),
                    MESSAGE_RECEIVERS,
                )
            check_size(tx, limit, changed, and_(others, _receiver.c.id != row.id))
            chosen = update(_receiver).where(_receiver.c.id == row.id)
            tx.execute(chosen.values(**changed, updated_at=tx.now()))
            return self._row(tx, row.id)

    def delete(self, scope: RequestScope, identity: str, also: InTransaction = no_op) -> None:
        """Delete a receiver, with the writes of `also` in the same transaction.

        Raises:
            Rejected: ResourceNotFound.
        """
        with self._db.read() as tx:
            row = self.get(tx, scope, identity)

        def remove(tx: Transaction) -> None:
            tx.execute(delete(_receiver).where(_receiver.c.id == row.id))
            also(tx, row.id)

        if row.type == "message":
            self.messages.delete_stack(scope, row, remove)
            return
        with self._db.write() as tx:
            remove(tx)

    def known(self, identity: str) -> ReceiverRow:
        """Return a receiver by its id: knowledge of the id is the authorization to trigger it.

        Raises:
            Rejected: ResourceNotFound.
        """
        with self._db.read() as tx:
            chosen = select(_receiver).where(_receiver.c.id == identity, living.is_living_receiver())
            row = typed.rows(ReceiverRow, tx.execute(chosen)).first()
        if row is None:
            raise Rejected("ResourceNotFound", f"The receiver '{identity}' could not be found.")
        return row

    def _row(self, tx: Transaction, identity: str) -> ReceiverRow:
        return typed.rows(ReceiverRow, tx.execute(select(_receiver).where(_receiver.c.id == identity))).one()
