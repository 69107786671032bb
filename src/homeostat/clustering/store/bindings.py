"""Policies that are attached to clusters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select, update

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql import typed


class Binding(NamedTuple):
    """The attachment of a policy to a cluster, with the name, type and spec of the policy."""

    id: str
    cluster_id: str
    policy_id: str
    enabled: bool
    priority: int
    data: Any | None
    last_op: float | None
    state: Any | None
    attached_at: float | None
    policy_name: str
    policy_type: str
    spec: Any


_binding = schema.cluster_policy
_policy = schema.policy
_ORDER = (_binding.c.priority, func.coalesce(_binding.c.attached_at, 0.0), _binding.c.id)
"""The order in which the policies of a cluster act: by priority, then by time of attachment."""


def policy_ids(tx: Transaction, cluster_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return id of a cluster -> ids of its policies."""
    chosen = select(_binding.c.cluster_id, _binding.c.policy_id).where(_binding.c.cluster_id.in_(cluster_ids))
    by_cluster: dict[str, list[str]] = {}
    for cluster_id, policy_id in tx.execute(chosen.order_by(*_ORDER)):
        by_cluster.setdefault(cluster_id, []).append(policy_id)
    return by_cluster


def of_cluster(tx: Transaction, cluster_id: str) -> list[Binding]:
    """Return the bindings of a cluster with the policies' names, types and specs, in the order of their actions."""
    return of_clusters(tx, [cluster_id]).get(cluster_id, [])


def of_clusters(tx: Transaction, cluster_ids: Sequence[str]) -> dict[str, list[Binding]]:
    """Return id of a cluster -> its bindings, in the order of their actions; clusters without policies are absent."""
    columns = (_policy.c.name.label("policy_name"), _policy.c.type.label("policy_type"), _policy.c.spec)
    chosen = select(_binding, *columns).join(_policy, _policy.c.id == _binding.c.policy_id)
    chosen = chosen.where(_binding.c.cluster_id.in_(cluster_ids))
    by_cluster: dict[str, list[Binding]] = {}
    for row in typed.rows(Binding, tx.execute(chosen.order_by(*_ORDER))):
        by_cluster.setdefault(row.cluster_id, []).append(row)
    return by_cluster


def of_policies(tx: Transaction, policy_ids: Sequence[str]) -> dict[str, dict[str, bool]]:
    """Return id of a policy -> id of a cluster with the policy -> whether it is enabled there."""
    columns = (_binding.c.policy_id, _binding.c.cluster_id, _binding.c.enabled)
    chosen = select(*columns).where(_binding.c.policy_id.in_(policy_ids))
    by_policy: dict[str, dict[str, bool]] = {}
    for row in tx.execute(chosen.order_by(_binding.c.cluster_id)):
        by_policy.setdefault(row.policy_id, {})[row.cluster_id] = row.enabled
    return by_policy


def note_operations(tx: Transaction, ids: Sequence[str], now: float) -> None:
    """Store the time of an operation under these policies: their cooldown begins."""
    if ids:
        tx.execute(update(_binding).where(_binding.c.id.in_(ids)).values(last_op=now))
