"""The resources that policies have added to the stacks of clusters: their ids and addresses."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import or_, select

from homeostat.clustering.decisions import affinity, load_balancing
from homeostat.clustering.decisions.attached import Attached
from homeostat.clustering.decisions.policies import binding_data, stored_policy
from homeostat.clustering.decisions.policy_types import AFFINITY, LOAD_BALANCING
from homeostat.clustering.store.bindings import Binding
from homeostat.clustering.store.living import GROUP
from homeostat.resources.registry import shown_id
from homeostat.store import schema
from homeostat.store.database import Transaction

_resource = schema.resource
_observed = schema.resource_observed
_binding = schema.cluster_policy
_policy = schema.policy
SHOWN = (LOAD_BALANCING.name, AFFINITY.name)
"""Types of policies whose resources are shown in bindings."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The resources in the stack of a cluster except its nodes.

    Attributes:
        handles: Name of a resource -> its id, as users know it.
        seen: Name of a resource -> its last observed properties.
    """

    handles: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


NONE = Parts()


def of_clusters(tx: Transaction, cluster_ids: Collection[str]) -> dict[str, Parts]:
    """Return id of a cluster -> its resources except nodes."""
    columns = (*(_resource.c[name] for name in ("stack_id", "name", "type", "handle")), _observed.c.object)
    joined = _resource.join(_observed, _observed.c.key == _resource.c.key, isouter=True)
    conditions = (_resource.c.stack_id.in_(cluster_ids), _resource.c.name != GROUP, _resource.c.replaced_by.is_(None))
    by_cluster: dict[str, tuple[dict[str, str], dict[str, Mapping[str, Any]]]] = {}
    for row in tx.execute(select(*columns).select_from(joined).where(*conditions).order_by(_resource.c.created_at)):
        handles, seen = by_cluster.setdefault(row.stack_id, ({}, {}))
        handles[row.name] = shown_id(row.type, row.handle)
        seen[row.name] = row.object or {}
    return {stack_id: Parts(*entries) for stack_id, entries in by_cluster.items()}


def policies(tx: Transaction, cluster_ids: Collection[str]) -> dict[str, list[Attached]]:
    """Return id of a cluster -> its policies of the types in `SHOWN`."""
    columns = (_binding.c.cluster_id, _binding.c.policy_id, _binding.c.enabled, _binding.c.state)
    has_parts = or_(*(_policy.c.type.like(f"{name}-%") for name in SHOWN))
    chosen = select(*columns, _policy.c.type, _policy.c.spec).join(_policy, _policy.c.id == _binding.c.policy_id)
    by_cluster: dict[str, list[Attached]] = {}
    for row in tx.execute(chosen.where(_binding.c.cluster_id.in_(cluster_ids), has_parts)):
        policy = Attached(row.policy_id, stored_policy(row.spec), row.enabled, row.state or {})
        by_cluster.setdefault(row.cluster_id, []).append(policy)
    return by_cluster


def binding(row: Binding, cluster_parts: Parts) -> dict[str, Any] | None:
    """Return the data of a binding in the format of the API; the row is from `bindings.of_cluster`."""
    if row.policy_type.rpartition("-")[0] not in SHOWN:
        return row.data
    policy = Attached(row.policy_id, stored_policy(row.spec), row.enabled, row.state or {})
    return binding_data(policy.spec, _data_of(policy, cluster_parts))


def _data_of(policy: Attached, parts: Parts) -> dict[str, Any]:
    if policy.type == AFFINITY.name:
        return affinity.shown(policy, parts.handles)
    return load_balancing.shown(policy, parts.handles, _address(policy, parts))


def _address(policy: Attached, parts: Parts) -> str | None:
    balancer = load_balancing.part_names(policy)[load_balancing.LOAD_BALANCER]
    address = parts.seen.get(balancer, {}).get("vip_address")
    return None if address is None else str(address)


def cluster_data(bound: Sequence[Attached], parts: Parts) -> dict[str, Any]:
    """Return the data of a cluster in the format of the API."""
    addresses = {
        policy.id: {"vip_address": _address(policy, parts)} for policy in bound if policy.type == LOAD_BALANCING.name
    }
    return {"loadbalancers": addresses} if addresses else {}


def server_group(bound: Sequence[Attached], parts: Parts) -> str:
    """Return the id of the server group of a cluster, or ""."""
    names = [affinity.resource_name(policy) for policy in bound if policy.type == AFFINITY.name]
    return parts.handles.get(names[0], "") if names else ""
