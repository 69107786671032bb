"""Which clusters and nodes exist still, and what their stacks say of them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Text, and_, case, cast, exists, or_, select

from homeostat.clustering.decisions.load_balancing import place_name
from homeostat.model.intent import Intent, left_alone_for
from homeostat.model.marks import Marks
from homeostat.model.member_names import COMPANION_MARK, member_of_name
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.sql import typed
from homeostat.store.sql.delete_found import delete_found

GROUP = "nodes"
"""Name of the resource, in the stack of a cluster, whose members are its nodes."""
_stack = schema.stack
_node = schema.node
_cluster = schema.cluster
_resource = schema.resource


def is_living_cluster() -> ColumnElement[bool]:
    """Return the condition that a cluster is not deleted."""
    return exists().where(_stack.c.id == _cluster.c.id, _stack.c.deleted_at.is_(None))


def is_living_node() -> ColumnElement[bool]:
    """Return the condition that a node is not deleted: it is to be there, or its resource is still."""
    inside = _stack.alias("inside")
    there = exists().where(
        inside.c.parent_id == _node.c.stack_id,
        inside.c.parent_name == GROUP,
        inside.c.deleted_at.is_(None),
        _resource.c.stack_id == inside.c.id,
        _resource.c.name == cast(_node.c.number, Text),
    )
    return and_(
        or_(_node.c.leaving.is_(False), there),
        exists().where(_stack.c.id == _node.c.stack_id, _stack.c.deleted_at.is_(None)),
    )


def is_living_receiver() -> ColumnElement[bool]:
    """Return the condition that the cluster of a receiver is not deleted, if it has one."""
    receiver = schema.receiver
    there = exists().where(_stack.c.id == receiver.c.cluster_id, _stack.c.deleted_at.is_(None))
    return or_(receiver.c.cluster_id.is_(None), there)


def forget_gone(tx: Connection, project: str) -> None:
    """Remove the rows of clusters and nodes of a project that are gone."""
    delete_found(tx, _node, _node.c.project == project, _node.c.leaving.is_(True), ~is_living_node())
    delete_found(tx, _cluster, _cluster.c.project == project, ~is_living_cluster())


class RootStack(NamedTuple):
    """The root stack of a cluster, or of a node without one.

    Attributes:
        group_id: Id of the stack with the nodes; None while it is yet to be made.
    """

    id: str
    action: str
    status: str
    reason: str
    group_id: str | None


class NodeResource(NamedTuple):
    """The resource of a node, or of its place in a load balancer, as far as it says how the node is."""

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
"""Columns of the resource of a node; not its properties, which would have to be decrypted for nothing."""


def stacks_of(tx: Connection, ids: Collection[str]) -> dict[str, RootStack]:
    """Return the stacks of these root stacks, by id."""
    inside = _stack.alias("inside")
    condition = and_(inside.c.parent_id == _stack.c.id, inside.c.parent_name == GROUP, inside.c.deleted_at.is_(None))
    columns = (_stack.c.id, _stack.c.action, _stack.c.status, _stack.c.reason, inside.c.id.label("group_id"))
    chosen = select(*columns).join(inside, condition, isouter=True)
    found = typed.rows(RootStack, tx.execute(chosen.where(_stack.c.id.in_(ids))))
    return {row.id: row for row in found}


def active_nodes(tx: Connection, stacks: Mapping[str, RootStack]) -> dict[str, int]:
    """Return how many nodes of each cluster are as they should be, by the id of the cluster."""
    groups = {each.group_id: name for name, each in stacks.items() if each.group_id is not None}
    well = and_(
        _resource.c.status == Status.COMPLETE,
        _resource.c.action != Action.DELETE,
        _resource.c.replaced_by.is_(None),
        _resource.c.handle != "",
    )
    # What an observer has found of those that are left alone is in their intents, which may be encrypted.
    rows = (_resource.c.stack_id, _resource.c.name, _resource.c.intent)
    chosen = select(*rows).where(_resource.c.stack_id.in_(groups), well, ~_resource.c.name.contains(COMPANION_MARK))
    unbalanced = _unbalanced(tx, groups)
    fit = (
        stack_id
        for stack_id, name, intent in tx.execute(chosen)
        if not left_alone_for(intent) and (stack_id, name) not in unbalanced
    )
    return {groups[stack_id]: count for stack_id, count in Counter(fit).items()}


def _unbalanced(tx: Connection, group_ids: Collection[str]) -> set[tuple[str, str]]:
    """Return the stack and the number of each node whose place in a load balancer has failed."""
    failed = (_resource.c.status == Status.FAILED, _resource.c.name.contains(COMPANION_MARK))
    chosen = select(_resource.c.stack_id, _resource.c.name).where(_resource.c.stack_id.in_(group_ids), *failed)
    return {(stack_id, member_of_name(name)) for stack_id, name in tx.execute(chosen)}


def nodes_of(tx: Connection, cluster_ids: Collection[str]) -> dict[str, list[str]]:
    """Return the ids of the nodes of clusters, in the order of their numbers."""
    chosen = select(_node.c.cluster_id, _node.c.id).where(_node.c.cluster_id.in_(cluster_ids), is_living_node())
    found: dict[str, list[str]] = {}
    for cluster_id, node_id in tx.execute(chosen.order_by(_node.c.number)):
        found.setdefault(cluster_id, []).append(node_id)
    return found


def places_of(
    tx: Connection, group_ids: Collection[str], numbers: Collection[int]
) -> dict[tuple[str, int], NodeResource]:
    """Return the rows of the places of nodes in load balancers, by the stack of the nodes and the number of the node.

    Args:
        tx: A consistent read.
        group_ids: Stacks of nodes.
        numbers: Numbers of the nodes.
    """
    chosen = select(*SHOWN).where(_resource.c.stack_id.in_(group_ids))
    chosen = chosen.where(_resource.c.name.like(f"%{place_name('')}"))
    if len(numbers) <= 500:
        chosen = chosen.where(_resource.c.name.in_([place_name(number) for number in numbers]))
    order = case((_resource.c.replaced_by.is_(None), 1), else_=0)
    found = tx.execute(chosen.order_by(order, _resource.c.created_at, _resource.c.key))
    rows = typed.rows(NodeResource, found).all()
    return {(row.stack_id, int(member_of_name(row.name))): row for row in rows}


def resources_of(tx: Connection, group_ids: Collection[str], numbers: Collection[int]) -> Sequence[NodeResource]:
    """Return the rows of the resources of nodes: those that stand for them now come last."""
    order = case((_resource.c.replaced_by.is_(None), 1), else_=0)
    chosen = select(*SHOWN).where(_resource.c.stack_id.in_(group_ids))
    if len(numbers) <= 500:
        chosen = chosen.where(_resource.c.name.in_([str(number) for number in numbers]))
    return typed.rows(NodeResource, tx.execute(chosen.order_by(order, _resource.c.created_at, _resource.c.key))).all()
