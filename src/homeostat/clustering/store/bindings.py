"""Policies that are attached to clusters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select, update

from homeostat.store import schema
from homeostat.store.sql import typed


class Binding(NamedTuple):
    """A policy that is attached to a cluster, with the name, type and spec of the policy."""

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
"""The order in which the policies of a cluster act: of those with one priority, the one that was attached first."""


def policy_ids(tx: Connection, cluster_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the policies of each of these clusters."""
    chosen = select(_binding.c.cluster_id, _binding.c.policy_id).where(_binding.c.cluster_id.in_(cluster_ids))
    found: dict[str, list[str]] = {}
    for cluster_id, policy_id in tx.execute(chosen.order_by(*_ORDER)):
        found.setdefault(cluster_id, []).append(policy_id)
    return found


def of_cluster(tx: Connection, cluster_id: str) -> list[Binding]:
    """Return the bindings of a cluster with the policies' names, types and specs, in the order in which they act."""
    return of_clusters(tx, [cluster_id]).get(cluster_id, [])


def of_clusters(tx: Connection, cluster_ids: Sequence[str]) -> dict[str, list[Binding]]:
    """Return the same for each of these clusters that has policies."""
    columns = (_policy.c.name.label("policy_name"), _policy.c.type.label("policy_type"), _policy.c.spec)
    chosen = select(_binding, *columns).join(_policy, _policy.c.id == _binding.c.policy_id)
    chosen = chosen.where(_binding.c.cluster_id.in_(cluster_ids))
    found: dict[str, list[Binding]] = {}
    for row in typed.rows(Binding, tx.execute(chosen.order_by(*_ORDER))):
        found.setdefault(row.cluster_id, []).append(row)
    return found


def of_policies(tx: Connection, policy_ids: Sequence[str]) -> dict[str, dict[str, bool]]:
    """Return the clusters that each of these policies is attached to, by id, and whether it acts there."""
    columns = (_binding.c.policy_id, _binding.c.cluster_id, _binding.c.enabled)
    chosen = select(*columns).where(_binding.c.policy_id.in_(policy_ids))
    found: dict[str, dict[str, bool]] = {}
    for row in tx.execute(chosen.order_by(_binding.c.cluster_id)):
        found.setdefault(row.policy_id, {})[row.cluster_id] = row.enabled
    return found


def note_operations(tx: Connection, ids: Sequence[str], now: float) -> None:
    """Store that these policies have had their say: their cooldown begins."""
    if ids:
        tx.execute(update(_binding).where(_binding.c.id.in_(ids)).values(last_op=now))
