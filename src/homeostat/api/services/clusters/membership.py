"""Nodes that join clusters and leave them: who may, and the plans for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from homeostat.api.services.clusters.plans import Plan
from homeostat.api.services.clusters.requester import Asking
from homeostat.clustering import sizes
from homeostat.clustering.sizes import Sizes
from homeostat.clustering.states import ClusterAction, action_name
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.clusters import listing, living

_node = schema.node


def add_nodes(tx: Connection, cluster: Row[Any], asking: Asking, names: Sequence[str]) -> Plan:
    """Return the plan to let nodes without a cluster be those of one.

    Raises:
        Rejected: BadRequest: a node is not there, has a cluster or another type of profile, or there are too many.
    """
    joining = orphans_named(tx, cluster, asking, names)
    desired = _members(tx, cluster) + len(joining)
    _check_size(cluster, desired)
    inputs = {"nodes": [row.id for row in joining]}
    name = action_name(ClusterAction.ADD_NODES, cluster.id)
    return Plan(ClusterAction.ADD_NODES, name, inputs, {"desired_capacity": desired}, joining=joining)


def replace_nodes(tx: Connection, cluster: Row[Any], asking: Asking, pairs: Mapping[str, str]) -> Plan:
    """Return the plan to let nodes of a cluster leave it, and others without one take their places.

    Raises:
        Rejected: BadRequest: a node is not there, or not where it should be.
    """
    leaving = members_named(tx, cluster, asking, list(pairs))
    joining = orphans_named(tx, cluster, asking, list(pairs.values()))
    candidates = {old.id: new.id for old, new in zip(leaving, joining, strict=True)}
    name = action_name(ClusterAction.REPLACE_NODES, cluster.id)
    inputs = {"candidates": candidates}
    return Plan(ClusterAction.REPLACE_NODES, name, inputs, {}, joining=joining, released=leaving)


def members_named(tx: Connection, cluster: Row[Any], asking: Asking, names: Sequence[str]) -> list[Row[Any]]:
    """Return the rows of nodes of a cluster, in the order of their names.

    Raises:
        Rejected: BadRequest.
    """
    found = []
    for row in _named(tx, asking, names):
        if row.cluster_id != cluster.id:
            raise Rejected("BadRequest", f"Nodes not members of specified cluster: ['{row.id}'].")
        found.append(row)
    return found


def orphans_named(tx: Connection, cluster: Row[Any], asking: Asking, names: Sequence[str]) -> list[Row[Any]]:
    """Return the rows of nodes without a cluster that may join one, in the order of their names.

    Raises:
        Rejected: BadRequest.
    """
    profile = schema.profile
    kind = select(profile.c.type).where(profile.c.id == cluster.profile_id)
    wanted, found = tx.execute(kind).scalar_one(), []
    for row in _named(tx, asking, names):
        if row.project != cluster.project:
            raise Rejected("BadRequest", f"Nodes not found: ['{row.id}'] in the project of the cluster.")
        if row.cluster_id is not None:
            raise Rejected("BadRequest", f"Nodes ['{row.id}'] are in a cluster already.")
        mine = tx.execute(select(profile.c.type).where(profile.c.id == row.profile_id)).scalar_one()
        if mine != wanted:
            message = f"Nodes ['{row.id}'] have profiles of type {mine}, and those of the cluster are of type {wanted}."
            raise Rejected("BadRequest", message)
        found.append(row)
    return found


def _named(tx: Connection, asking: Asking, names: Sequence[str]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for name in names:
        row = listing.find(tx, _node, asking.reach, name, _node.c.leaving.is_(False), living.is_living_node())
        if row is None:
            raise Rejected("BadRequest", f"Nodes not found: ['{name}'].")
        if row in found:  # by its id and by its name: counted twice, it would take another node with it
            raise Rejected("BadRequest", f"'{name}' names the node {row.id}, which is in the list already.")
        found.append(row)
    return found


def rows_of(tx: Connection, ids: Sequence[str]) -> list[Row[Any]]:
    """Return the rows of nodes, in the order of their numbers."""
    return list(tx.execute(select(_node).where(_node.c.id.in_(ids)).order_by(_node.c.number)))


def _members(tx: Connection, cluster: Row[Any]) -> int:
    mine = select(_node.c.id).where(_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
    return len(tx.execute(mine).all())


def _check_size(cluster: Row[Any], desired: int) -> None:
    problem = sizes.size_problem(Sizes(cluster.min_size, cluster.max_size, cluster.desired_capacity), desired)
    if problem:
        raise Rejected("BadRequest", problem)
