"""Existing clusters and nodes, and the state of their stacks and resources."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Text, and_, case, cast, exists, or_, select

from homeostat.clustering.decisions.load_balancing import place_name
from homeostat.model.intent import Intent, left_alone_for
from homeostat.model.marks import Marks
from homeostat.model.member_names import COMPANION_MARK, member_of_name
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql import typed
from homeostat.store.sql.delete_found import delete_found

GROUP = "nodes"
"""Name of the group in the stack of a cluster, whose members are the nodes."""
_stack = schema.stack
_node = schema.node
_cluster = schema.cluster
_resource = schema.resource


def is_living_cluster() -> ColumnElement[bool]:
    """Return the condition that a cluster is not deleted."""
    # Workers delete stacks and know no clusters: the row stays until a later request removes it (`forget_gone`).
    return exists().where(_stack.c.id == _cluster.c.id, _stack.c.deleted_at.is_(None))


def is_living_node() -> ColumnElement[bool]:
    """Return the condition for existing nodes: not leaving, or with a resource."""
    inside = _stack.alias("inside")
    has_resource = exists().where(
        inside.c.parent_id == _node.c.stack_id,
        inside.c.parent_name == GROUP,
        inside.c.deleted_at.is_(None),
        _resource.c.stack_id == inside.c.id,
        _resource.c.name == cast(_node.c.number, Text),
    )
    return and_(
        or_(_node.c.leaving.is_(False), has_resource),
        exists().where(_stack.c.id == _node.c.stack_id, _stack.c.deleted_at.is_(None)),
    )


def is_living_receiver() -> ColumnElement[bool]:
    """Return the condition for existing receivers: no cluster, or an existing cluster."""
    receiver = schema.receiver
    cluster_exists = exists().where(_stack.c.id == receiver.c.cluster_id, _stack.c.deleted_at.is_(None))
    return or_(receiver.c.cluster_id.is_(None), cluster_exists)


def forget_gone(tx: Transaction, project: str) -> None:
    """Remove the rows of deleted clusters and nodes of a project."""
    delete_found(tx, _node, _node.c.project == project, _node.c.leaving.is_(True), ~is_living_node())
    delete_found(tx, _cluster, _cluster.c.project == project, ~is_living_cluster())


class RootStack(NamedTuple):
    """The root stack of a cluster, or of a node without a cluster.

    Attributes:
        group_id: Id of the stack with the nodes; None before its creation.
    """

    id: str
    action: str
    status: str
    reason: str
    group_id: str | None


class NodeResource(NamedTuple):
    """The resource of a node, or of its pool member, with the columns for the status of the node."""

    key: str
    stack_id: str
    name: str
    type: str
    handle: str
    action: str
    status: str
    reason: str
    intent: Intent
    marks: Marks | None
    created_at: float


SHOWN = [_resource.c[name] for name in NodeResource._fields]
"""Columns of the resource of a node, without its properties, which would have to be decrypted."""


def stacks_of(tx: Transaction, ids: Collection[str]) -> dict[str, RootStack]:
    """Return the stacks of these root stacks, by id."""
    inside = _stack.alias("inside")
    condition = and_(inside.c.parent_id == _stack.c.id, inside.c.parent_name == GROUP, inside.c.deleted_at.is_(None))
    columns = (_stack.c.id, _stack.c.action, _stack.c.status, _stack.c.reason, inside.c.id.label("group_id"))
    chosen = select(*columns).join(inside, condition, isouter=True)
    rows = typed.rows(RootStack, tx.execute(chosen.where(_stack.c.id.in_(ids))))
    return {row.id: row for row in rows}


def active_nodes(tx: Transaction, stacks: Mapping[str, RootStack]) -> dict[str, int]:
    """Return id of a cluster -> number of its active nodes."""
    groups = {stack.group_id: name for name, stack in stacks.items() if stack.group_id is not None}
    well = and_(
        _resource.c.status == Status.COMPLETE,
        _resource.c.action != Action.DELETE,
        _resource.c.replaced_by.is_(None),
        _resource.c.handle != "",
    )
    # Observations of nodes that are not healed are in their intents, which may be encrypted: no SQL condition.
    rows = (_resource.c.stack_id, _resource.c.name, _resource.c.intent)
    chosen = select(*rows).where(_resource.c.stack_id.in_(groups), well, ~_resource.c.name.contains(COMPANION_MARK))
    unbalanced = _unbalanced(tx, groups)
    fit = (
        stack_id
        for stack_id, name, intent in tx.execute(chosen)
        if not left_alone_for(intent) and (stack_id, name) not in unbalanced
    )
    return {groups[stack_id]: count for stack_id, count in Counter(fit).items()}


def _unbalanced(tx: Transaction, group_ids: Collection[str]) -> set[tuple[str, str]]:
    """Return stack and number of each node whose pool member has failed."""
    failed = (_resource.c.status == Status.FAILED, _resource.c.name.contains(COMPANION_MARK))
    chosen = select(_resource.c.stack_id, _resource.c.name).where(_resource.c.stack_id.in_(group_ids), *failed)
    return {(stack_id, member_of_name(name)) for stack_id, name in tx.execute(chosen)}


def nodes_of(tx: Transaction, cluster_ids: Collection[str]) -> dict[str, list[str]]:
    """Return id of a cluster -> ids of its nodes, in the order of their numbers."""
    chosen = select(_node.c.cluster_id, _node.c.id).where(_node.c.cluster_id.in_(cluster_ids), is_living_node())
    by_cluster: dict[str, list[str]] = {}
    for cluster_id, node_id in tx.execute(chosen.order_by(_node.c.number)):
        by_cluster.setdefault(cluster_id, []).append(node_id)
    return by_cluster


def places_of(
    tx: Transaction, group_ids: Collection[str], numbers: Collection[int]
) -> dict[tuple[str, int], NodeResource]:
    """Return (stack of the group, number of the node) -> row of its pool member."""
    chosen = select(*SHOWN).where(_resource.c.stack_id.in_(group_ids))
    chosen = chosen.where(_resource.c.name.like(f"%{place_name('')}"))
    if len(numbers) <= 500:
        chosen = chosen.where(_resource.c.name.in_([place_name(number) for number in numbers]))
    order = case((_resource.c.replaced_by.is_(None), 1), else_=0)
    result = tx.execute(chosen.order_by(order, _resource.c.created_at, _resource.c.key))
    rows = typed.rows(NodeResource, result).all()
    return {(row.stack_id, int(member_of_name(row.name))): row for row in rows}


def resources_of(tx: Transaction, group_ids: Collection[str], numbers: Collection[int]) -> Sequence[NodeResource]:
    """Return the rows of the resources of nodes; current resources follow those being replaced."""
    order = case((_resource.c.replaced_by.is_(None), 1), else_=0)
    chosen = select(*SHOWN).where(_resource.c.stack_id.in_(group_ids))
    if len(numbers) <= 500:
        chosen = chosen.where(_resource.c.name.in_([str(number) for number in numbers]))
    return typed.rows(NodeResource, tx.execute(chosen.order_by(order, _resource.c.created_at, _resource.c.key))).all()
