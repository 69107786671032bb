"""Changes by which existing nodes join clusters and leave them, with their checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from homeostat.clustering.decisions import sizes
from homeostat.clustering.decisions.sizes import Sizes
from homeostat.clustering.decisions.states import ClusterAction, action_name
from homeostat.clustering.service.changes import ClusterChange
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import listing, living
from homeostat.model.errors import Bug, Rejected
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.sql import typed

_node = schema.node


def add_nodes(tx: Transaction, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> ClusterChange:
    """Return the change that adds nodes without a cluster.

    Raises:
        Rejected: BadRequest: a node does not exist, has a cluster or another type of profile, or they are too many.
    """
    joining = _orphans_named(tx, cluster, scope, names)
    desired = _members(tx, cluster) + len(joining)
    _check_size(cluster, desired)
    inputs = {"nodes": [row.id for row in joining]}
    name = action_name(ClusterAction.ADD_NODES, cluster.id)
    return ClusterChange(ClusterAction.ADD_NODES, name, inputs, {"desired_capacity": desired}, joining=joining)


def replace_nodes(tx: Transaction, cluster: ClusterRow, scope: RequestScope, pairs: Mapping[str, str]) -> ClusterChange:
    """Return the change that replaces nodes of a cluster by nodes without a cluster.

    Args:
        pairs: Node to replace -> its replacement, as ids or names from the user.

    Raises:
        Rejected: BadRequest: a node does not exist, or is in the wrong cluster.
    """
    old, new = _named(tx, scope, list(pairs)), _named(tx, scope, list(pairs.values()))
    known = {
        name: successor for name, successor in pairs.items() if old[name] is not None and new[successor] is not None
    }
    joining = _joining(tx, cluster, {name: new[name] for name in known.values()})
    strangers = [name for name in known if _row(old[name]).cluster_id != cluster.id]
    _refuse(
        (f"The specified nodes {{}} to be replaced are not members of the cluster {cluster.id}.", strangers),
        ("Nodes {} already member of a cluster.", joining.owned),
        ("Profile type of nodes {} do not match that of the cluster.", joining.unlike),
        ("Original nodes not found: {}.", [name for name, row in old.items() if row is None]),
        (
            "Replacement nodes not found: {}.",
            [successor for name, successor in pairs.items() if old[name] is not None and successor not in joining.rows],
        ),
    )
    leaving = _each_once({name: _row(old[name]) for name in known})
    chosen = _each_once(joining.rows)
    candidates = {old.id: new.id for old, new in zip(leaving, chosen, strict=True)}
    name = action_name(ClusterAction.REPLACE_NODES, cluster.id)
    inputs = {"candidates": candidates}
    return ClusterChange(ClusterAction.REPLACE_NODES, name, inputs, {}, joining=chosen, released=leaving)


def members_named(tx: Transaction, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes of a cluster, in the order of the names.

    Raises:
        Rejected: BadRequest.
    """
    rows = _named(tx, scope, names)
    _refuse(
        ("Nodes not found: {}.", [name for name, row in rows.items() if row is None]),
        (
            "Nodes not members of specified cluster: {}.",
            [row.id for row in rows.values() if row is not None and row.cluster_id != cluster.id],
        ),
    )
    return _each_once({name: _row(row) for name, row in rows.items()})


def _orphans_named(tx: Transaction, cluster: ClusterRow, scope: RequestScope, names: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes without a cluster that may join `cluster`, in the order of the names.

    Raises:
        Rejected: BadRequest.
    """
    joining = _joining(tx, cluster, _named(tx, scope, names))
    _refuse(
        (
            "Profile type of nodes {} does not match that of the cluster.",
            [joining.rows[name].id for name in joining.unlike],
        ),
        ("Nodes {} already owned by some cluster.", [joining.rows[name].id for name in joining.owned]),
        ("Nodes not found: {}.", [name for name in names if name not in joining.rows]),
    )
    return _each_once(joining.rows)


@dataclass(frozen=True, slots=True)
class _Joining:
    """Nodes to join a cluster, by their ids or names from the user.

    Attributes:
        rows: The existing nodes.
        owned: Nodes that have a cluster already.
        unlike: Nodes whose profile has another type.
    """

    rows: Mapping[str, NodeRow]
    owned: Sequence[str]
    unlike: Sequence[str]


def _joining(tx: Transaction, cluster: ClusterRow, named_rows: Mapping[str, NodeRow | None]) -> _Joining:
    profile = schema.profile
    rows = {name: row for name, row in named_rows.items() if row is not None and row.project == cluster.project}
    ids = {cluster.profile_id, *(row.profile_id for row in rows.values())}
    types = {row.id: row.type for row in tx.execute(select(profile.c.id, profile.c.type).where(profile.c.id.in_(ids)))}
    cluster_type = types[cluster.profile_id]
    return _Joining(
        rows,
        [name for name, row in rows.items() if row.cluster_id is not None],
        [name for name, row in rows.items() if types[row.profile_id] != cluster_type],
    )


def _named(tx: Transaction, scope: RequestScope, names: Sequence[str]) -> dict[str, NodeRow | None]:
    """Return name -> node; None for an unknown or ambiguous name."""
    conditions = (_node.c.leaving.is_(False), living.is_living_node())
    rows: dict[str, NodeRow | None] = {}
    for name in names:
        try:
            rows[name] = listing.find(tx, NodeRow, scope.reach, name, *conditions)
        except Rejected:
            rows[name] = None
    return rows


def _row(row: NodeRow | None) -> NodeRow:
    if row is None:
        raise Bug("a node that is not there was not refused")
    return row


def _each_once(rows: Mapping[str, NodeRow]) -> list[NodeRow]:
    """Return the rows, and check that no node is named twice (by id and name): it would count as two nodes.

    Raises:
        Rejected: BadRequest.
    """
    unique: list[NodeRow] = []
    for name, row in rows.items():
        if row in unique:
            raise Rejected("BadRequest", f"'{name}' names the node {row.id}, which is in the list already.")
        unique.append(row)
    return unique


def _refuse(*problems: tuple[str, Sequence[str]]) -> None:
    """Raise Rejected (BadRequest) with the texts of the problems that have nodes, in the words of Senlin."""
    messages = [text.format(list(nodes)) for text, nodes in problems if nodes]
    if messages:
        raise Rejected("BadRequest", "\n".join(messages))


def rows_of(tx: Transaction, ids: Sequence[str]) -> list[NodeRow]:
    """Return the rows of nodes, in the order of their numbers."""
    chosen = select(_node).where(_node.c.id.in_(ids)).order_by(_node.c.number)
    return list(typed.rows(NodeRow, tx.execute(chosen)))


def _members(tx: Transaction, cluster: ClusterRow) -> int:
    chosen = select(_node.c.id).where(_node.c.cluster_id == cluster.id, _node.c.leaving.is_(False))
    return len(tx.execute(chosen).all())


def _check_size(cluster: ClusterRow, desired: int) -> None:
    problem = sizes.size_problem(Sizes(cluster.min_size, cluster.max_size, cluster.desired_capacity), desired)
    if problem:
        raise Rejected("BadRequest", problem)
