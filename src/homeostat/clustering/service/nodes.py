"""Nodes of clusters, and nodes without a cluster, which have their own stacks."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select, update

from homeostat.clustering.decisions import sizes, states
from homeostat.clustering.decisions.names import node_id
from homeostat.clustering.decisions.profiles import check_profile, check_same_type, check_type_of_node
from homeostat.clustering.decisions.states import NodeAction
from homeostat.clustering.service.change_rows import new_node
from homeostat.clustering.service.changes import ClusterChange, Outdated, StartedAction
from homeostat.clustering.service.clusters import ClusterService, check_free
from homeostat.clustering.service.quotas import with_size
from homeostat.clustering.service.requester import InTransaction, RequestScope, no_op
from homeostat.clustering.service.sizing import facts_of, placements, sizes_of
from homeostat.clustering.service.stack_requests import LEFT_ALONE, TIMEOUT_S, node_request
from homeostat.clustering.store import actions, listing, living
from homeostat.clustering.store.actions import NewAction
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.schema.rows import ClusterRow, NodeRow, ProfileRow
from homeostat.store.sql import typed

_node = schema.node


class NodeService:
    """Creates, changes and deletes nodes."""

    def __init__(self, db: Database, stack_service: StackService, clusters: ClusterService) -> None:
        self._db = db
        self._stacks = stack_service
        self._clusters = clusters

    def get(self, tx: Transaction, scope: RequestScope, identity: str) -> NodeRow:
        """Return a node by its id, name or the beginning of its id.

        Raises:
            Rejected: ResourceNotFound, MultipleChoices.
        """
        return listing.get(tx, NodeRow, scope.reach, identity, living.is_living_node())

    # -- creating ----------------------------------------------------------------------------------------------------

    def create(
        self,
        scope: RequestScope,
        name: str,
        profile: ProfileRow,
        cluster: ClusterRow | None,
        fields: Mapping[str, Any],
        check_types: CheckTypes | None = None,
        also: InTransaction = no_op,
        *,
        named: bool = False,
    ) -> StartedAction:
        """Create a node.

        Args:
            name: Name of the node; in a cluster only with `named`, otherwise the name follows from the index.
            cluster: The cluster of the node, or None.
            fields: role and metadata.
            check_types: See `StackRequest`.
            also: Further writes in the same transaction.

        Raises:
            Rejected: BadRequest: the cluster has another type of profile, or is full; ActionConflict.
            Transient: A cloud does not answer.
        """
        if cluster is None:
            return self._create_alone(scope, name, profile, fields, check_types, also)
        own = {"name": name, "own": True} if named else {}

        def build(tx: Transaction, row: ClusterRow) -> ClusterChange:
            return self._joining(tx, row, profile, fields, own)

        return self._clusters.change(scope, cluster.id, build, check_types, also)

    def _joining(
        self,
        tx: Transaction,
        cluster: ClusterRow,
        profile: ProfileRow,
        fields: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> ClusterChange:
        kind = select(schema.profile.c.type).where(schema.profile.c.id == cluster.profile_id)
        check_type_of_node(tx.execute(kind).scalar_one(), profile.type)
        nodes = facts_of(tx, cluster)
        size = len(nodes)
        problem = sizes.size_problem(sizes_of(cluster), size + 1)
        if problem:
            raise Rejected("BadRequest", problem)
        target = node_id(cluster.id, cluster.next_index)
        one = {"profile_id": profile.id, "role": fields.get("role"), "metadata": fields.get("metadata", {}), **own}
        columns = {"desired_capacity": size + 1}
        name = states.action_name(NodeAction.CREATE, target)
        places = placements(tx, cluster, nodes, 1)
        return ClusterChange(NodeAction.CREATE, name, {}, columns, added=1, placements=places, target=target, one=one)

    def _create_alone(
        self,
        scope: RequestScope,
        name: str,
        profile: ProfileRow,
        fields: Mapping[str, Any],
        check_types: CheckTypes | None,
        with_it: InTransaction,
    ) -> StartedAction:
        stack_id = self._stacks.entropy.stack_id()
        identity = node_id(stack_id, 1)
        begun: list[str] = []
        now = self._db.agreed_now()
        columns = {"role": fields.get("role"), "metadata": fields.get("metadata", {})}
        row = new_node(scope.owner, identity, name, stack_id, now, profile_id=profile.id, **columns)

        def also(tx: Transaction) -> None:
            living.forget_gone(tx, scope.project)
            tx.execute(insert(_node).values(**with_size(tx, scope.project, row)))
            tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(exceptions=LEFT_ALONE))
            begun.append(_add(tx, scope, NodeAction.CREATE, row, now))
            with_it(tx, identity)

        request = node_request(check_profile(profile.spec), row, check_types)
        stack_name = f"node-{identity[:8]}"
        self._stacks.create(
            scope.project,
            scope.caller.user,
            stack_name,
            request,
            by=scope.caller,
            stack_id=stack_id,
            also=also,
        )
        return StartedAction(identity, begun[-1])

    # -- changing ----------------------------------------------------------------------------------------------------

    def update(
        self,
        scope: RequestScope,
        identity: str,
        fields: Mapping[str, Any],
        profile: ProfileRow | None,
        check_types: CheckTypes | None = None,
    ) -> StartedAction:
        """Change a node: name and profile by a revision of its stack; role, metadata and taint at once.

        Raises:
            Rejected: ResourceNotFound; BadRequest: another type of profile, or nothing to change; ActionConflict.
            Transient: A cloud does not answer.
        """
        with self._db.read() as tx:
            cluster_id = self.get(tx, scope, identity).cluster_id
        if cluster_id is not None:

            def build(tx: Transaction, cluster: ClusterRow) -> ClusterChange:
                row = self.get(tx, scope, identity)
                return _change(row, self._changes(tx, row, fields, profile))

            return self._clusters.change(scope, cluster_id, build, check_types)
        while True:
            with self._db.read() as tx:
                row = self.get(tx, scope, identity)
                changes = self._changes(tx, row, fields, profile)
            try:
                return self._update_alone(scope, row, changes, check_types)
            except Outdated:
                continue

    def _changes(
        self, tx: Transaction, row: NodeRow, fields: Mapping[str, Any], profile: ProfileRow | None
    ) -> dict[str, Any]:
        """Return the columns of a node that change."""
        changes = {name: fields[name] for name in ("name", "role", "metadata", "tainted") if name in fields}
        changes = {name: value for name, value in changes.items() if getattr(row, name) != value}
        if profile is not None and profile.id != row.profile_id:
            kind = select(schema.profile.c.type).where(schema.profile.c.id == row.profile_id)
            check_same_type(tx.execute(kind).scalar_one(), profile.type, "node")
            changes["profile_id"] = profile.id
        if not changes:
            raise Rejected("BadRequest", "No property needs an update.")
        return changes | ({"own": True} if "name" in changes else {})

    def _update_alone(
        self, scope: RequestScope, row: NodeRow, changes: Mapping[str, Any], check_types: CheckTypes | None
    ) -> StartedAction:
        begun: list[str] = []

        def also(tx: Transaction) -> None:
            now = tx.now()
            locked = tx.execute(row_lock(select(_node).where(_node.c.id == row.id)))
            seen = typed.rows(NodeRow, locked).first()
            if seen is None or seen != row:
                raise Outdated
            check_free(actions.settled(tx, row.id), row.id, NodeAction.UPDATE)
            sized = with_size(tx, row.project, changes, row)
            tx.execute(update(_node).where(_node.c.id == row.id).values(**sized, updated_at=now))
            inputs = {name: value for name, value in changes.items() if name != "own"}
            stack_id = None if _is_at_once(changes) else row.stack_id
            begun.append(_add(tx, scope, NodeAction.UPDATE, row._asdict(), now, inputs, stack_id))

        if _is_at_once(changes):
            with self._db.write() as tx:
                also(tx)
            return StartedAction(row.id, begun[-1])
        with self._db.read() as tx:
            check_free(actions.going_on(tx, [row.id]), row.id, NodeAction.UPDATE)
            spec = select(schema.profile.c.spec).where(schema.profile.c.id == changes.get("profile_id", row.profile_id))
            wanted = tx.execute(spec).scalar_one()
        request = node_request(check_profile(wanted), {**row._asdict(), **changes}, check_types)
        self._stacks.update(row.stack_id, request, by=scope.caller, also=also)
        return StartedAction(row.id, begun[-1])

    # -- deleting ----------------------------------------------------------------------------------------------------

    def delete(
        self,
        scope: RequestScope,
        identity: str,
        *,
        force: bool,
        check_types: CheckTypes | None = None,
        also: InTransaction = no_op,
    ) -> StartedAction:
        """Delete a node; for a node without a cluster `also` is not called if the deletion is in progress already.

        Raises:
            Rejected: ResourceNotFound; ActionInProgress: an action is in progress, and `force` is not set;
                ActionConflict.
        """
        with self._db.read() as tx:
            row = self.get(tx, scope, identity)
            going_on = actions.going_on(tx, [row.id])
        for action in going_on:
            start = states.node_at_start(action.action)
            if not force and start is not None and start[0] in states.BUSY_NODE:
                raise Rejected("ActionInProgress", f"The node '{identity}' is in status {start[0]}.")
        if row.cluster_id is not None:
            return self._clusters.change(
                scope, row.cluster_id, lambda tx, cluster: _leaving(tx, cluster, row), check_types, also
            )
        begun: list[str] = []

        def store(tx: Transaction) -> None:
            now = tx.now()
            tx.execute(update(_node).where(_node.c.id == row.id).values(leaving=True, updated_at=now))
            actions.settled(tx, row.id)
            begun.append(_add(tx, scope, NodeAction.DELETE, row._asdict(), now, {}, row.stack_id))
            also(tx, row.id)

        self._stacks.delete(row.stack_id, scope.caller, also=store)
        return StartedAction(row.id, begun[-1] if begun else going_on[-1].id if going_on else "")


def _change(row: NodeRow, changes: Mapping[str, Any]) -> ClusterChange:
    inputs = {name: value for name, value in changes.items() if name != "own"}
    name = states.action_name(NodeAction.UPDATE, row.id)
    return ClusterChange(NodeAction.UPDATE, name, inputs, {}, at_once=_is_at_once(changes), target=row.id, one=changes)


def _leaving(tx: Transaction, cluster: ClusterRow, row: NodeRow) -> ClusterChange:
    ids = {node.id for node in facts_of(tx, cluster)}
    if row.id not in ids:
        raise Rejected("ActionInProgress", f"The node '{row.name}' is in status DELETING.")
    columns = {"desired_capacity": max(cluster.desired_capacity - 1, 0)}
    name = states.action_name(NodeAction.DELETE, row.id)
    return ClusterChange(NodeAction.DELETE, name, {}, columns, leaving=(row.number,), target=row.id)


def _is_at_once(changes: Mapping[str, Any]) -> bool:
    """Return whether changes leave the stack unchanged."""
    return not {"name", "profile_id"} & changes.keys()


def _add(
    tx: Transaction,
    scope: RequestScope,
    action: NodeAction,
    row: Mapping[str, Any],
    now: float,
    inputs: Mapping[str, Any] | None = None,
    stack_id: str | None = "",
) -> str:
    """Store an action of a node without a cluster; a `stack_id` of "" stands for the node's own stack."""
    name = states.action_name(action, row["id"])
    stack = row["stack_id"] if stack_id == "" else stack_id
    new = NewAction(action, name, row["id"], None, inputs or {}, TIMEOUT_S, stack)
    return actions.add(tx, new, scope.owner, now)
