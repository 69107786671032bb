"""Rows of nodes that are there already, as plans change them."""

from sqlalchemy import Connection, select, update

from homeostat.clustering.service.plans import ClusterChange
from homeostat.clustering.service.quotas import with_size
from homeostat.store import schema
from homeostat.store.schema.rows import NodeRow
from homeostat.store.sql import typed

_node = schema.node


def store_changes(tx: Connection, cluster_id: str, plan: ClusterChange, now: float) -> None:
    """Store what a plan says of nodes that are there."""
    if plan.leaving:
        going = (_node.c.cluster_id == cluster_id, _node.c.number.in_(plan.leaving))
        tx.execute(update(_node).where(*going).values(leaving=True, updated_at=now))
    if plan.target and plan.one and not plan.added:
        row = typed.rows(NodeRow, tx.execute(select(_node).where(_node.c.id == plan.target))).one()
        sized = with_size(tx, row.project, plan.one, row)
        tx.execute(update(_node).where(_node.c.id == plan.target).values(**sized, updated_at=now))
    if plan.nodes:
        conditions = (_node.c.cluster_id == cluster_id, _node.c.leaving.is_(False))
        tx.execute(update(_node).where(*conditions).values(**plan.nodes, updated_at=now))
