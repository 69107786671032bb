"""Existing stacks that become nodes: whether a stack is eligible, and its profile."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select

from homeostat.clustering.decisions.stack_profile import STACK_TYPE
from homeostat.clustering.service.message_receivers import STACK
from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import locks, revisions, stacks

LEVELS = 2
"""Levels of nesting around a node's stack: the cluster's stack, and its group."""
SECTIONS = ("parameters", "parameter_defaults", "resource_registry", "encrypted_param_names")
"""Sections of an environment in a profile."""


def find(tx: Transaction, project: str, identity: str, depth_max: int) -> StackRow:
    """Return the row of a stack that can become a node.

    Args:
        tx: A consistent read.
        identity: Id or name of the stack.
        depth_max: Maximum of levels of nested stacks.

    Raises:
        Rejected: ResourceNotFound; BadRequest: the stack cannot become a node, with the reason.
    """
    row = stacks.find(tx, project, identity)
    if row is None or row.deleted_at is not None or row.project != project:
        raise Rejected("ResourceNotFound", f"The stack '{identity}' could not be found.")
    problem = _problem(tx, row, depth_max)
    if problem:
        raise Rejected("BadRequest", f"The stack '{row.name}' cannot become a node: {problem}.")
    return row


def _problem(tx: Transaction, row: StackRow, depth_max: int) -> str:
    if row.parent_id is not None:
        return "it is a part of another stack"
    if row.status != Status.COMPLETE or row.complete_revision != row.revision or row.suspended:
        return f"it is {row.action}_{row.status}, and has to be complete"
    if tx.execute(select(_is_of_clustering(row))).scalar_one() or row.id in _of_receivers(tx, row.project):
        return "it is that of a cluster, a node or a receiver"
    deepest = select(func.max(schema.stack.c.depth)).where(schema.stack.c.id.in_(stacks.tree_of(row.id)))
    if tx.execute(deepest).scalar_one() + LEVELS > depth_max:
        return f"it is nested too deeply: at most {depth_max} levels are allowed, with the {LEVELS} around it"
    return ""


def _is_of_clustering(row: StackRow) -> ColumnElement[bool]:
    cluster, node = schema.cluster, schema.node
    return or_(exists().where(cluster.c.id == row.id), exists().where(node.c.stack_id == row.id))


def _of_receivers(tx: Transaction, project: str) -> set[str]:
    receiver = schema.receiver
    conditions = (receiver.c.project == project, receiver.c.type == "message")
    return {channel[STACK] for channel in tx.execute(select(receiver.c.channel).where(*conditions)).scalars()}


def stack_spec(tx: Transaction, row: StackRow, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a profile for equal stacks.

    Raises:
        Rejected: BadRequest: the stack has hidden parameters, whose values a profile would show.
    """
    content = revisions.content_of(tx, row.id, row.revision)
    compiled = compile_desired(content, Identity(row.id, row.name, row.project), strict=False)
    hidden = sorted(name for name, parameter in compiled.parameters.items() if parameter.schema.hidden)
    if hidden:
        listed = ", ".join(hidden)
        message = f"its parameters {listed} are hidden, and a profile would show their values"
        raise Rejected("BadRequest", f"The stack '{row.name}' cannot become a node: {message}.")
    properties: dict[str, Any] = {
        "template": dict(content.template),
        "parameters": dict(content.parameters),
        "files": dict(content.files),
        "environment": {name: content.environment[name] for name in SECTIONS if content.environment.get(name)},
    }
    if row.timeout_mins:
        properties["timeout"] = row.timeout_mins
    return {"type": STACK_TYPE.name, "version": "1.0", "properties": {**properties, **overrides}}


def lock(tx: Transaction, seen: StackRow) -> None:
    """Lock a stack that becomes a node, before any other stack of the transaction.

    Raises:
        Rejected: ActionConflict: the stack has changed since `seen` was read; StackLocked.
    """
    row = locks.changeable(tx, seen.id)
    if (row.revision, row.status, row.parent_id) != (seen.revision, seen.status, seen.parent_id):
        raise Rejected("ActionConflict", f"The stack '{seen.name}' is being changed: try again.")
