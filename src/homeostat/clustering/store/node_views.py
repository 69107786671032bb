"""Nodes of clusters as users see them: their rows, and what their stacks and the last looks say of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import Connection, select

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
from homeostat.store.schema.rows import ActionRow, NodeRow
from homeostat.store.shards import health
from homeostat.store.sql import typed
from homeostat.store.stacks.views import resources as load

Wire = dict[str, Any]
_node = schema.node


def shown_time(at: float | None) -> str | None:
    """Return a time as the API shows it: whole seconds, UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Owned(Protocol):
    """A row of a thing that belongs to a project."""

    @property
    def user(self) -> str | None: ...

    @property
    def project(self) -> str: ...

    @property
    def domain(self) -> str | None: ...


def owner_of(row: Owned) -> Wire:
    """Return to whom the thing of a row belongs."""
    return {"user": row.user, "project": row.project, "domain": row.domain}


def of_cluster(tx: Connection, cluster_id: str) -> Sequence[NodeRow]:
    """Return the rows of the nodes of a cluster, by their numbers."""
    conditions = (_node.c.cluster_id == cluster_id, living.is_living_node())
    return typed.rows(NodeRow, tx.execute(select(_node).where(*conditions).order_by(_node.c.number))).all()


def of_id(tx: Connection, node_id: str) -> Sequence[NodeRow]:
    """Return the row of a node, or none."""
    chosen = select(_node).where(_node.c.id == node_id, living.is_living_node())
    return typed.rows(NodeRow, tx.execute(chosen)).all()


def nodes(tx: Connection, rows: Sequence[NodeRow], profiles: Mapping[str, str], *, tainted: bool) -> list[Wire]:
    """Return nodes as users see them.

    Args:
        tx: A consistent read.
        rows: Their rows.
        profiles: Names of profiles, by id.
        tainted: Whether to show if they are tainted, as newer microversions do.
    """
    stacks = living.stacks_of(tx, {row.stack_id for row in rows})
    groups = {each.group_id: name for name, each in stacks.items() if each.group_id is not None}
    found = living.resources_of(tx, groups, {row.number for row in rows})
    resources = {(groups[each.stack_id], each.name): each for each in found}
    targets = {row.id for row in rows} | {row.cluster_id for row in rows if row.cluster_id}
    going_on = {row.target: row for row in actions.going_on(tx, sorted(targets))}
    beside = NodeParts.of(tx, rows, groups)
    healths = health.of_rows(tx, [each.key for each in resources.values()])
    shown = []
    for row in rows:
        resource = resources.get((row.stack_id, str(row.number)))
        asked = going_on.get(row.id) or _of_cluster(row, going_on.get(row.cluster_id or ""))
        status, reason = _node_status(row, stacks.get(row.stack_id), resource, asked)
        if status == NodeStatus.ACTIVE:
            status, reason = beside.status(row) or (status, reason)
        done = resource is not None and resource.handle and resource.status != Status.IN_PROGRESS
        created = resource.created_at if resource is not None and (done or resource.action != Action.CREATE) else None
        shown.append(
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
                "data": {**beside.data(row), **_health(resource, healths)},
                "dependents": {},
                **owner_of(row),
                "init_at": shown_time(row.init_at),
                "created_at": shown_time(created),
                "updated_at": shown_time(row.updated_at),
                **({"tainted": row.tainted} if tainted else {}),
            }
        )
    return shown


def _health(resource: living.NodeResource | None, healths: Mapping[str, NodeHealth]) -> Wire:
    """Return what a health policy has found of a node, and how far its recovery is; {} where none holds for it."""
    found = healths.get(resource.key) if resource is not None else None
    return {} if resource is None or found is None else {"health": described(found, resource.marks)}


ASKED: Mapping[str, NodeAction] = {
    NodeAction.OPERATION: NodeAction.OPERATION,
    ClusterAction.OPERATION: NodeAction.OPERATION,
    NodeAction.RECOVER: NodeAction.RECOVER,
    ClusterAction.RECOVER: NodeAction.RECOVER,
}
"""Action that asks something of nodes -> that of a single node."""
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
    row: NodeRow, of: living.RootStack | None, resource: living.NodeResource | None, going_on: ActionRow | None
) -> tuple[str, str]:
    """Return the status of a node and its reason, from the resource that stands for it."""
    if row.leaving or (of is not None and of.action == Action.DELETE):
        failed = resource is not None and resource.action == Action.DELETE and resource.status == Status.FAILED
        return ("ERROR", resource.reason) if failed and resource is not None else ("DELETING", REASONS["DELETING"])
    if resource is not None and resource.action == Action.INIT and (resource.marks or NO_MARKS).healing:
        return "RECOVERING", REASONS["RECOVERING"]
    if resource is None or resource.action == Action.INIT:
        stuck = of is not None and of.status == Status.FAILED
        return ("ERROR", of.reason) if stuck and of is not None else ("INIT", REASONS["INIT"])
    marks = resource.marks or NO_MARKS
    asked = _asked(row, resource, going_on)
    if asked is not None:
        return asked
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
    """Return an action of a cluster that asks something of this node."""
    return going_on if going_on is not None and row.id in going_on.data.get("nodes", ()) else None


def _asked(row: NodeRow, resource: living.NodeResource, going_on: ActionRow | None) -> tuple[str, str] | None:
    """Return the status of a node of which something is asked; of all nodes of a cluster: while it is done."""
    action = ASKED.get(going_on.action) if going_on is not None else None
    if going_on is None or action is None:
        return None
    if going_on.target != row.id and resource.status != Status.IN_PROGRESS:
        return None
    return states.node_at_start(action, str(going_on.inputs.get("operation", "")))


_TOLD = {
    "building": "BUILD",
    "rebooting": "REBOOT",
    "rebuilding": "REBUILD",
    "resizing": "RESIZE",
    "stopped": "SHUTOFF",
    "unreachable": "UNKNOWN",
}
"""Status of a server -> what Nova calls it; others have the same name, in capitals."""


def _as_told(properties: Mapping[str, Any]) -> Wire:
    """Return what was seen of a server or stack with its status as its cloud writes it."""
    status = properties.get("status")
    told = {"status": _TOLD.get(status, status.upper())} if isinstance(status, str) else {}
    return {**properties, **told}


def details(tx: Connection, rows: Sequence[NodeRow]) -> dict[str, Wire]:
    """Return what was last seen of the servers or stacks that nodes are, by the ids of the nodes."""
    stacks = living.stacks_of(tx, {row.stack_id for row in rows})
    found: dict[str, Wire] = {}
    for stack_id, of in stacks.items():
        node_ids = {str(row.number): row.id for row in rows if row.stack_id == stack_id}
        resources, seen = load(tx, of.group_id, list(node_ids)) if of.group_id is not None else ({}, {})
        for each in resources.values():
            if each.name in node_ids and each.replaced_by is None and each.key in seen:
                found[node_ids[each.name]] = _as_told(seen[each.key].observation.properties)
    return found
