"""Nodes that join clusters and leave them: who may, and the plans for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from homeostat.clustering.decisions import sizes
from homeostat.clustering.decisions.sizes import Sizes
from homeostat.clustering.decisions.states import ClusterAction, action_name
from homeostat.clustering.service.plans import ClusterChange
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import listing, living
from homeostat.model.errors import Bug, Rejected
from homeostat.store import schema
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.sql import typed

_node = schema.node


def add_nodes(tx: Connection, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> ClusterChange:
    """Return the plan to let nodes without a cluster be those of one.

    Raises:
        Rejected: BadRequest: a node is not there, has a cluster or another type of profile, or there are too many.
    """
    joining = _orphans_named(tx, cluster, scope, names)
    desired = _members(tx, cluster) + len(joining)
    _check_size(cluster, desired)
    inputs = {"nodes": [row.id for row in joining]}
    name = action_name(ClusterAction.ADD_NODES, cluster.id)
    return ClusterChange(ClusterAction.ADD_NODES, name, inputs, {"desired_capacity": desired}, joining=joining)


def replace_nodes(tx: Connection, cluster: ClusterRow, scope: RequestScope, pairs: Mapping[str, str]) -> ClusterChange:
    """Return the plan to let nodes of a cluster leave it, and others without one take their places.

    Raises:
        Rejected: BadRequest: a node is not there, or not where it should be.
    """
    old, new = _named(tx, scope, list(pairs)), _named(tx, scope, list(pairs.values()))
    there = {one: other for one, other in pairs.items() if old[one] is not None and new[other] is not None}
    joining = _joining(tx, cluster, {each: new[each] for each in there.values()})
    strangers = [each for each in there if _row(old[each]).cluster_id != cluster.id]
    _refuse(
        (f"The specified nodes {{}} to be replaced are not members of the cluster {cluster.id}.", strangers),
        ("Nodes {} already member of a cluster.", joining.owned),
        ("Profile type of nodes {} do not match that of the cluster.", joining.unlike),
        ("Original nodes not found: {}.", [each for each, row in old.items() if row is None]),
        (
            "Replacement nodes not found: {}.",
            [other for one, other in pairs.items() if old[one] is not None and other not in joining.rows],
        ),
    )
    leaving = _each_once({each: _row(old[each]) for each in there})
    chosen = _each_once(joining.rows)
    candidates = {old.id: new.id for old, new in zip(leaving, chosen, strict=True)}
    name = action_name(ClusterAction.REPLACE_NODES, cluster.id)
    inputs = {"candidates": candidates}
    return ClusterChange(ClusterAction.REPLACE_NODES, name, inputs, {}, joining=chosen, released=leaving)


def members_named(tx: Connection, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes of a cluster, in the order of their names.

    Raises:
        Rejected: BadRequest.
    """
    found = _named(tx, scope, names)
    _refuse(
        ("Nodes not found: {}.", [name for name, row in found.items() if row is None]),
        (
            "Nodes not members of specified cluster: {}.",
            [row.id for row in found.values() if row is not None and row.cluster_id != cluster.id],
        ),
    )
    return _each_once({name: _row(row) for name, row in found.items()})


def _orphans_named(tx: Connection, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes without a cluster that may join one, in the order of their names.

    Raises:
        Rejected: BadRequest.
    """
    found = _joining(tx, cluster, _named(tx, scope, names))
    _refuse(
        (
            "Profile type of nodes {} does not match that of the cluster.",
            [found.rows[each].id for each in found.unlike],
        ),
        ("Nodes {} already owned by some cluster.", [found.rows[each].id for each in found.owned]),
        ("Nodes not found: {}.", [name for name in names if name not in found.rows]),
    )
    return _each_once(found.rows)


@dataclass(frozen=True, slots=True)
class _Joining:
    """Nodes that are to join a cluster.

    Attributes:
        rows: Those that are there, by what the user calls them.
        owned: Those that have a cluster.
        unlike: Those whose profile has another type.
    """

    rows: Mapping[str, NodeRow]
    owned: Sequence[str]
    unlike: Sequence[str]


def _joining(tx: Connection, cluster: ClusterRow, found: Mapping[str, NodeRow | None]) -> _Joining:
    profile = schema.profile
    rows = {name: row for name, row in found.items() if row is not None and row.project == cluster.project}
    ids = {cluster.profile_id, *(row.profile_id for row in rows.values())}
    types = {row.id: row.type for row in tx.execute(select(profile.c.id, profile.c.type).where(profile.c.id.in_(ids)))}
    wanted = types[cluster.profile_id]
    return _Joining(
        rows,
        [name for name, row in rows.items() if row.cluster_id is not None],
        [name for name, row in rows.items() if types[row.profile_id] != wanted],
    )


def _named(tx: Connection, scope: RequestScope, names: Sequence[str]) -> dict[str, NodeRow | None]:
    """Return nodes by what the user calls them; None for those that are not there, or of which there are several."""
    conditions = (_node.c.leaving.is_(False), living.is_living_node())
    found: dict[str, NodeRow | None] = {}
    for name in names:
        try:
            found[name] = listing.find(tx, NodeRow, scope.reach, name, *conditions)
        except Rejected:
            found[name] = None
    return found


def _row(row: NodeRow | None) -> NodeRow:
    if row is None:
        raise Bug("a node that is not there was not refused")
    return row


def _each_once(rows: Mapping[str, NodeRow]) -> list[NodeRow]:
    """Return rows, each of which is named once: by its id and by its name, it would take another node with it.

    Raises:
        Rejected: BadRequest.
    """
    found: list[NodeRow] = []
    for name, row in rows.items():
        if row in found:
            raise Rejected("BadRequest", f"'{name}' names the node {row.id}, which is in the list already.")
        found.append(row)
    return found


def _refuse(*problems: tuple[str, Sequence[str]]) -> None:
    """Raise Rejected (BadRequest) with the texts of problems that some nodes have, in the words of Senlin."""
    told = [text.format(list(nodes)) for text, nodes in problems if nodes]
    if told:
        raise Rejected("BadRequest", "\n".join(told))


def rows_of(tx: Connection, ids: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes, in the order of their numbers."""
    chosen = select(_node).where(_node.c.id.in_(ids)).order_by(_node.c.number)
    return list(typed.rows(NodeRow, tx.execute(chosen)))


def _members(tx: Connection, cluster: ClusterRow) -> int:
    chosen = select(_node.c.id).where(_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
    return len(tx.execute(chosen).all())


def _check_size(cluster: ClusterRow, desired: int) -> None:
    problem = sizes.size_problem(Sizes(cluster.min_size, cluster.max_size, cluster.desired_capacity), desired)
    if problem:
        raise Rejected("BadRequest", problem)
