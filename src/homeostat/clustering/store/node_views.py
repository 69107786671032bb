"""Nodes in the format of the API: from their rows, stacks and last observations."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import select

from homeostat.clustering.decisions import states
from homeostat.clustering.decisions.states import ClusterAction, NodeAction, NodeStatus
from homeostat.clustering.store import actions, living
from homeostat.clustering.store.node_parts import NodeParts
from homeostat.model import requested
from homeostat.model.intent import left_alone_for
from homeostat.model.marks import NO_MARKS
from homeostat.model.node_health import NodeHealth
from homeostat.model.status import Action, Status
from homeostat.planner.report.health import described
from homeostat.resources.registry import shown_id
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow, NodeRow
from homeostat.store.shards import health
from homeostat.store.sql import typed
from homeostat.store.stacks.views import resources as load

Wire = dict[str, Any]
_node = schema.node


def shown_time(at: float | None) -> str | None:
    """Return a time in the format of the API: whole seconds, UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Owned(Protocol):
    """A row that belongs to a project."""

    @property
    def user(self) -> str | None: ...

    @property
    def project(self) -> str: ...

    @property
    def domain(self) -> str | None: ...


def owner_of(row: Owned) -> Wire:
    """Return the owner of a row."""
    return {"user": row.user, "project": row.project, "domain": row.domain}


def of_cluster(tx: Transaction, cluster_id: str) -> Sequence[NodeRow]:
    """Return the rows of the nodes of a cluster, by their numbers."""
    conditions = (_node.c.cluster_id == cluster_id, living.is_living_node())
    return typed.rows(NodeRow, tx.execute(select(_node).where(*conditions).order_by(_node.c.number))).all()


def of_id(tx: Transaction, node_id: str) -> Sequence[NodeRow]:
    """Return the row of a node, or none."""
    chosen = select(_node).where(_node.c.id == node_id, living.is_living_node())
    return typed.rows(NodeRow, tx.execute(chosen)).all()


def nodes(tx: Transaction, rows: Sequence[NodeRow], profiles: Mapping[str, str], *, tainted: bool) -> list[Wire]:
    """Return nodes in the format of the API.

    Args:
        tx: A consistent read.
        profiles: Id of a profile -> its name.
        tainted: Whether to include `tainted`, as newer microversions do.
    """
    stacks = living.stacks_of(tx, {row.stack_id for row in rows})
    groups = {stack.group_id: name for name, stack in stacks.items() if stack.group_id is not None}
    resource_rows = living.resources_of(tx, groups, {row.number for row in rows})
    resources = {(groups[resource.stack_id], resource.name): resource for resource in resource_rows}
    targets = {row.id for row in rows} | {row.cluster_id for row in rows if row.cluster_id}
    going_on = {row.target: row for row in actions.going_on(tx, sorted(targets))}
    node_parts = NodeParts.of(tx, rows, groups)
    healths = health.of_rows(tx, [resource.key for resource in resources.values()])
    views = []
    for row in rows:
        resource = resources.get((row.stack_id, str(row.number)))
        asked = going_on.get(row.id) or _of_cluster(row, going_on.get(row.cluster_id or ""))
        status, reason = _node_status(row, stacks.get(row.stack_id), resource, asked)
        if status == NodeStatus.ACTIVE:
            status, reason = node_parts.status(row) or (status, reason)
        done = resource is not None and resource.handle and resource.status != Status.IN_PROGRESS
        created = resource.created_at if resource is not None and (done or resource.action != Action.CREATE) else None
        views.append(
            {
                "id": row.id,
                "name": row.name,
                "cluster_id": row.cluster_id or "",
                "physical_id": shown_id(resource.type, resource.handle) if resource is not None else None,
                "profile_id": row.profile_id,
                "profile_name": profiles.get(row.profile_id),
                "index": row.number + 1 if row.cluster_id else -1,
                "role": row.role or "",
                "status": status,
                "status_reason": reason,
                "metadata": row.metadata,
                "data": {**node_parts.data(row), **_health(resource, healths)},
                "dependents": {},
                **owner_of(row),
                "init_at": shown_time(row.init_at),
                "created_at": shown_time(created),
                "updated_at": shown_time(row.updated_at),
                **({"tainted": row.tainted} if tainted else {}),
            }
        )
    return views


def _health(resource: living.NodeResource | None, healths: Mapping[str, NodeHealth]) -> Wire:
    """Return the findings of a health policy about a node and the progress of its recovery; {} without a policy."""
    node_health = healths.get(resource.key) if resource is not None else None
    return {} if resource is None or node_health is None else {"health": described(node_health, resource.marks)}


ASKED: Mapping[str, NodeAction] = {
    NodeAction.OPERATION: NodeAction.OPERATION,
    ClusterAction.OPERATION: NodeAction.OPERATION,
    NodeAction.RECOVER: NodeAction.RECOVER,
    ClusterAction.RECOVER: NodeAction.RECOVER,
}
"""Action that requests something of nodes -> the same action of a single node."""
WORDS: Mapping[str, str] = {
    Action.CREATE: "CREATING",
    Action.UPDATE: "UPDATING",
    Action.DELETE: "DELETING",
    Action.CHECK: "ACTIVE",
}
REASONS = {
    "CREATING": "Creation in progress",
    "UPDATING": "Update in progress",
    "DELETING": "Deletion in progress",
    "INIT": "Initializing",
    "RECOVERING": "Recovery in progress",
}


def _node_status(
    row: NodeRow, stack: living.RootStack | None, resource: living.NodeResource | None, going_on: ActionRow | None
) -> tuple[str, str]:
    """Return status and reason of a node, from its resource."""
    if row.leaving or (stack is not None and stack.action == Action.DELETE):
        failed = resource is not None and resource.action == Action.DELETE and resource.status == Status.FAILED
        return ("ERROR", resource.reason) if failed and resource is not None else ("DELETING", REASONS["DELETING"])
    if resource is not None and resource.action == Action.INIT and (resource.marks or NO_MARKS).healing:
        return "RECOVERING", REASONS["RECOVERING"]
    if resource is None or resource.action == Action.INIT:
        stuck = stack is not None and stack.status == Status.FAILED
        return ("ERROR", stack.reason) if stuck and stack is not None else ("INIT", REASONS["INIT"])
    marks = resource.marks or NO_MARKS
    requested_status = _asked(row, resource, going_on)
    if requested_status is not None:
        return requested_status
    if resource.status == Status.IN_PROGRESS:
        recovers = marks.healing or marks.recovery is not None
        word = "RECOVERING" if recovers or (going_on is not None and going_on.action.endswith("_RECOVER")) else ""
        word = word or ("CREATING" if not resource.handle else WORDS.get(resource.action, "UPDATING"))
        return word, REASONS.get(word, "Recovery in progress")
    if resource.status == Status.FAILED or marks.unhealthy is not None:
        return "ERROR", marks.unhealthy.reason if marks.unhealthy is not None else resource.reason
    alone = left_alone_for(resource.intent)
    if alone:
        return "ERROR", alone
    if resource.reason.startswith(requested.ENDS):
        return "ACTIVE", requested.plain(resource.reason)
    done: Mapping[str, str] = {
        Action.ADOPT: states.ADOPTED,
        Action.UPDATE: "Update succeeded",
        Action.CHECK: "Check: Node is ACTIVE.",
    }
    return "ACTIVE", done.get(resource.action, "Creation succeeded")


def _of_cluster(row: NodeRow, going_on: ActionRow | None) -> ActionRow | None:
    """Return the action of a cluster if it requests something of this node."""
    return going_on if going_on is not None and row.id in going_on.data.get("nodes", ()) else None


def _asked(row: NodeRow, resource: living.NodeResource, going_on: ActionRow | None) -> tuple[str, str] | None:
    """Return status and reason of a node with a request; if its cluster has the request, while the node executes it."""
    action = ASKED.get(going_on.action) if going_on is not None else None
    if going_on is None or action is None:
        return None
    if going_on.target != row.id and resource.status != Status.IN_PROGRESS:
        return None
    return states.node_at_start(action, str(going_on.inputs.get("operation", "")))


_CLOUD_STATUS = {
    "building": "BUILD",
    "rebooting": "REBOOT",
    "rebuilding": "REBUILD",
    "resizing": "RESIZE",
    "stopped": "SHUTOFF",
    "unreachable": "UNKNOWN",
}
"""Status of a server -> its name in Nova, if that is not the status in capitals."""


def _with_cloud_status(properties: Mapping[str, Any]) -> Wire:
    """Return the observed properties of a server or stack, with the status in the spelling of the cloud."""
    status = properties.get("status")
    cloud_status = {"status": _CLOUD_STATUS.get(status, status.upper())} if isinstance(status, str) else {}
    return {**properties, **cloud_status}


def details(tx: Transaction, rows: Sequence[NodeRow]) -> dict[str, Wire]:
    """Return id of a node -> last observed properties of its server or stack."""
    stacks = living.stacks_of(tx, {row.stack_id for row in rows})
    by_node: dict[str, Wire] = {}
    for stack_id, stack in stacks.items():
        node_ids = {str(row.number): row.id for row in rows if row.stack_id == stack_id}
        resources, seen = load(tx, stack.group_id, list(node_ids)) if stack.group_id is not None else ({}, {})
        for resource in resources.values():
            if resource.name in node_ids and resource.replaced_by is None and resource.key in seen:
                by_node[node_ids[resource.name]] = _with_cloud_status(seen[resource.key].observation.properties)
    return by_node
