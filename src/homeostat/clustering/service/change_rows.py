"""Rows of nodes, new and changed, and of waiting actions for lifecycle hooks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select, update

from homeostat.clustering.decisions import hooks
from homeostat.clustering.decisions.states import ActionStatus, NodeAction, action_name
from homeostat.clustering.service.changes import ClusterChange
from homeostat.clustering.service.quotas import with_size
from homeostat.clustering.store import actions
from homeostat.clustering.store.actions import NewAction
from homeostat.clustering.store.waiting_actions import HOOK, PARENT, WAITS_FOR
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import NodeRow
from homeostat.store.sql import typed

CAUSE = "Derived Action with Lifecycle Hook"
_node = schema.node


def new_node(
    owner: Mapping[str, Any], identity: str, name: str, stack_id: str, now: float, **columns: Any
) -> dict[str, Any]:
    """Return the row of a new node: of a node without a cluster, unless `columns` tell otherwise."""
    return {
        "id": identity,
        **owner,
        "name": name,
        "cluster_id": None,
        "stack_id": stack_id,
        "number": 0,
        "role": None,
        "metadata": {},
        "data": {},
        "own": True,
        "tainted": False,
        "leaving": False,
        "init_at": now,
        **columns,
    }


def store_nodes(tx: Transaction, cluster_id: str, change: ClusterChange, now: float) -> None:
    """Store the changes of existing nodes: leaving nodes, columns of the target, columns of all nodes."""
    if change.leaving:
        leaving = (_node.c.cluster_id == cluster_id, _node.c.number.in_(change.leaving))
        tx.execute(update(_node).where(*leaving).values(leaving=True, updated_at=now))
    if change.target and change.one and not change.added:
        row = typed.rows(NodeRow, tx.execute(select(_node).where(_node.c.id == change.target))).one()
        sized = with_size(tx, row.project, change.one, row)
        tx.execute(update(_node).where(_node.c.id == change.target).values(**sized, updated_at=now))
    if change.nodes:
        conditions = (_node.c.cluster_id == cluster_id, _node.c.leaving.is_(False))
        tx.execute(update(_node).where(*conditions).values(**change.nodes, updated_at=now))


def add_waiting(tx: Transaction, new: NewAction, change: ClusterChange, owner: Mapping[str, Any], now: float) -> str:
    """Store a waiting action with a child action for each node to remove; return its id."""
    parent = actions.new_id()
    ids = {node_id: actions.new_id() for node_id in change.hooked}
    waits = replace(new, id=parent, status=ActionStatus.WAITING, data={WAITS_FOR: list(ids.values())})
    actions.add(tx, waits, owner, now)
    for node_id, notifies in change.hooked.items():
        hook = hooks.waiting(change.hook or {}, now) if notifies else {}
        child = NewAction(
            NodeAction.DELETE,
            action_name(NodeAction.DELETE, node_id),
            node_id,
            new.cluster_id,
            {},
            new.timeout,
            cause=CAUSE,
            status=ActionStatus.WAITING_LIFECYCLE_COMPLETION if notifies else ActionStatus.READY,
            data={PARENT: parent, HOOK: hook},
            due_at=now,
            id=ids[node_id],
        )
        actions.add(tx, child, owner, now)
    return parent
