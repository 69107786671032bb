"""Objects in the format of the Clustering API."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from homeostat.clustering.decisions import states
from homeostat.clustering.decisions.sizes import Sizes
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.decisions.states import ActionStatus, ClusterStatus, NodeStatus
from homeostat.clustering.service.message_receivers import QUEUE
from homeostat.clustering.store import actions, living, parts, waiting_actions
from homeostat.clustering.store.bindings import Binding
from homeostat.clustering.store.node_views import Wire, owner_of, shown_time
from homeostat.model.status import Action, Status
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow, ClusterRow, PolicyRow, ProfileRow, ReceiverRow


def profile(row: ProfileRow) -> Wire:
    return {
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "spec": row.spec,
        "metadata": row.metadata,
        **owner_of(row),
        "created_at": shown_time(row.created_at),
        "updated_at": shown_time(row.updated_at),
    }


def policy(row: PolicyRow) -> Wire:
    return {
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "spec": row.spec,
        "data": {},
        **owner_of(row),
        "created_at": shown_time(row.created_at),
        "updated_at": shown_time(row.updated_at),
    }


def validated(checked: Spec, name: str, owner: Mapping[str, Any], **more: Any) -> Wire:
    """Return a valid spec in the form of a stored profile or policy; `more` are further fields."""
    times = {"created_at": None, "updated_at": None}
    return {"id": None, "name": name, "type": checked.full_name, "spec": checked.sent, **more, **owner, **times}


def warnings(checked: Spec) -> Wire:
    """Return the entry `warnings` for parts of a spec that should be written differently; {} without any."""
    return {"warnings": list(checked.warnings)} if checked.warnings else {}


def clusters(
    tx: Transaction, rows: Sequence[ClusterRow], profiles: Mapping[str, str], bound: Mapping[str, list[str]]
) -> list[Wire]:
    """Return clusters in the format of the API.

    Args:
        tx: A consistent read.
        profiles: Id of a profile -> its name.
        bound: Id of a cluster -> ids of its policies.
    """
    ids = [row.id for row in rows]
    stacks, nodes = living.stacks_of(tx, ids), living.nodes_of(tx, ids)
    active = living.active_nodes(tx, stacks)
    going_on = {row.target: row for row in actions.going_on(tx, ids)}
    created = actions.created_at(tx, ids)
    evaluated = actions.evaluated(tx, ids)
    attached = parts.policies(tx, ids)
    parts_of = parts.of_clusters(tx, attached)
    return [
        {
            "id": row.id,
            "name": row.name,
            "profile_id": row.profile_id,
            "profile_name": profiles.get(row.profile_id),
            **_cluster_status(
                row, stacks.get(row.id), going_on.get(row.id), active.get(row.id, 0), evaluated.get(row.id, "")
            ),
            "desired_capacity": row.desired_capacity,
            "min_size": row.min_size,
            "max_size": row.max_size,
            "timeout": row.timeout,
            "metadata": row.metadata,
            "data": parts.cluster_data(attached.get(row.id, ()), parts_of.get(row.id, parts.NONE)),
            "config": row.config,
            "dependents": {},
            "nodes": nodes.get(row.id, []),
            "policies": bound.get(row.id, []),
            **owner_of(row),
            "init_at": shown_time(row.init_at),
            "created_at": shown_time(created.get(row.id)),
            "updated_at": shown_time(row.updated_at),
        }
        for row in rows
    ]


def _cluster_status(
    row: ClusterRow, stack: living.RootStack | None, going_on: ActionRow | None, active: int, last: str
) -> Wire:
    """Return status and reason of a cluster; `last` is its last action that evaluated the status, or ""."""
    start = states.cluster_at_start(going_on.action, _operation(going_on)) if going_on is not None else None
    if start is not None:
        return {"status": start[0], "status_reason": start[1]}
    if stack is None or stack.status == Status.IN_PROGRESS:
        word = ClusterStatus.DELETING if stack is None or stack.action == Action.DELETE else ClusterStatus.UPDATING
        return {"status": word, "status_reason": stack.reason if stack is not None else ""}
    sizes = Sizes(row.min_size, row.max_size, row.desired_capacity)
    status, reason = states.evaluated(last or f"CLUSTER_{stack.action}", [NodeStatus.ACTIVE] * active, sizes)
    if stack.status == Status.FAILED and status == ClusterStatus.ACTIVE:
        # The number of nodes is right, but another part of the stack has failed.
        status, reason = ClusterStatus.WARNING, stack.reason
    return {"status": status, "status_reason": reason}


def _operation(action: ActionRow) -> str:
    return str(action.inputs.get("operation", "")) if action.action.endswith("_OPERATION") else ""


def action(tx: Transaction, row: ActionRow, *, cluster: bool) -> Wire:
    """Return an action in the format of the API; `cluster`: with `cluster_id`, as in newer microversions."""
    end = actions.end_of(tx, row) if row.status == ActionStatus.RUNNING else None
    return {
        "id": row.id,
        "name": row.name,
        "action": row.action,
        "target": row.target,
        "cause": row.cause,
        "owner": None,
        "interval": -1,
        "start_time": row.start_time,
        "end_time": end.at if end is not None else row.end_time,
        "timeout": row.timeout,
        "status": end.status if end is not None else row.status,
        "status_reason": end.reason if end is not None else row.status_reason,
        "inputs": row.inputs,
        "outputs": row.outputs,
        "depends_on": [awaited.id for awaited in waiting_actions.awaited(tx, row)],
        "depended_by": [row.data[waiting_actions.PARENT]] if end is None and waiting_actions.PARENT in row.data else [],
        "data": row.data,
        "created_at": shown_time(row.created_at),
        "updated_at": shown_time(row.updated_at),
        "user": row.user,
        "project": row.project,
        **({"cluster_id": row.cluster_id} if cluster else {}),
    }


def binding(row: Binding, cluster_name: str, cluster_parts: parts.Parts) -> Wire:
    """Return an attached policy in the format of the API.

    Args:
        row: From `bindings.of_cluster`.
        cluster_parts: Resources of the cluster's policies.
    """
    return {
        "id": row.id,
        "cluster_id": row.cluster_id,
        "cluster_name": cluster_name,
        "policy_id": row.policy_id,
        "policy_name": row.policy_name,
        "policy_type": row.policy_type,
        "enabled": row.enabled,
        "priority": row.priority,
        "last_op": None if row.last_op is None else datetime.fromtimestamp(row.last_op, UTC).isoformat(),
        "data": parts.binding(row, cluster_parts),
    }


def receiver(row: ReceiverRow, base: str, *, acts: bool) -> Wire:
    """Return a receiver in the format of the API.

    Args:
        base: The URL of the API.
        acts: Whether the caller may trigger the receiver: only then the URL, which needs no authentication, is shown.
    """
    params = [("V", "2"), *sorted((name, str(value)) for name, value in row.params.items())]
    channel = {"alarm_url": f"{base}/webhooks/{row.id}/trigger?{urlencode(params)}"} if acts else {}
    if row.type == "message":
        channel = {QUEUE: row.channel[QUEUE]}
    return {
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "cluster_id": row.cluster_id,
        "action": row.action,
        "actor": row.actor,
        "params": row.params,
        "channel": channel,
        **owner_of(row),
        "created_at": shown_time(row.created_at),
        "updated_at": shown_time(row.updated_at),
    }
