"""Attached policies of clusters, in the form for decisions, and the storage of their changes."""

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select, update

from homeostat.clustering.decisions.attached import Attached
from homeostat.clustering.decisions.health_policy import HEALTH
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.clustering.service.changes import Outdated, PolicyChange
from homeostat.clustering.store import bindings, living
from homeostat.clustering.store.bindings import Binding
from homeostat.model.limits import ATTACHED
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow
from homeostat.store.shards import health

_binding = schema.cluster_policy
_node = schema.node


def of_row(row: Binding) -> Attached:
    """Return the policy of a binding; the row is from `bindings.of_cluster`."""
    return Attached(row.policy_id, stored_policy(row.spec), row.enabled, row.state or {})


def of_cluster(tx: Transaction, cluster_id: str) -> list[Attached]:
    """Return the policies of a cluster, in the order of their priority."""
    return [of_row(row) for row in bindings.of_cluster(tx, cluster_id)]


def seen(tx: Transaction, cluster_id: str) -> dict[str, bool]:
    """Return id -> `enabled` of the bindings of a cluster."""
    return {row.id: row.enabled for row in bindings.of_cluster(tx, cluster_id)}


def store(tx: Transaction, cluster: ClusterRow, change: PolicyChange, now: float) -> None:
    """Store a change of the policies of a cluster, whose row is locked.

    Raises:
        Outdated: The bindings have changed since `change` was computed, or the policy is gone.
        Rejected: OverQuota: the cluster has too many policies.
    """
    if seen(tx, cluster.id) != change.seen:
        raise Outdated
    if change.added is not None:
        add(tx, cluster.id, change.added, now)
    if change.removed:
        tx.execute(delete(_binding).where(_binding.c.id == change.removed))
        health.detach(tx, change.removed, now)
    for identity, columns in change.changed.items():
        tx.execute(update(_binding).where(_binding.c.id == identity).values(**columns))
        if "enabled" in columns:
            health.switch(tx, identity, enabled=columns["enabled"], now=now)
    if change.forgotten:
        _forget(tx, cluster.id, set(change.forgotten))


def add(tx: Transaction, cluster_id: str, columns: Mapping[str, Any], now: float) -> None:
    """Store a new binding of a cluster; a health policy starts its checks.

    Raises:
        Outdated: The policy is gone.
        Rejected: OverQuota: the cluster has too many policies.
    """
    ATTACHED.check(len(seen(tx, cluster_id)), 0, 0)
    table = schema.policy
    policy = tx.execute(select(table.c.spec, table.c.type).where(table.c.id == columns["policy_id"])).first()
    if policy is None:
        raise Outdated
    tx.execute(insert(_binding).values(**columns, cluster_id=cluster_id))
    if policy.type.rpartition("-")[0] == HEALTH.name:
        of_group = {"stack_id": cluster_id, "name": living.GROUP, "members": True}
        check = {"id": str(uuid.uuid4()), "source": columns["id"], "spec": policy.spec, "enabled": columns["enabled"]}
        health.attach(tx, {**check, **of_group}, now)


def _forget(tx: Transaction, cluster_id: str, keys: set[str]) -> None:
    """Remove keys from the placements of all nodes of a cluster."""
    for row in tx.execute(select(_node.c.id, _node.c.data).where(_node.c.cluster_id == cluster_id)).all():
        placement = row.data.get("placement") or {}
        if keys & placement.keys():
            remaining = {name: value for name, value in placement.items() if name not in keys}
            data = {name: value for name, value in row.data.items() if name != "placement"}
            values = {**data, "placement": remaining} if remaining else data
            tx.execute(update(_node).where(_node.c.id == row.id).values(data=values))
