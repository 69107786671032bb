"""Nodes that change owner: into a cluster, from a stack of their own; out of one, into a stack of their own (ADR 0073).

A node, its row and its thing move in the transaction that stores the revision of the cluster, together with revisions
of both groups: no worker ever sees a group that should have a member which it lacks, or has one that it should not.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from sqlalchemy import Connection, select, update

from homeostat.clustering.decisions.origins import Origin, origin_of, with_origin
from homeostat.clustering.decisions.placement import GROUP, REGION, ZONE
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.service.plans import ClusterChange, Outdated
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.stack_requests import LEFT_ALONE, TIMEOUT_S, request_of
from homeostat.clustering.service.stack_texts import ClusterFacts, OwnNode, stack_text
from homeostat.clustering.store import actions, living, moves
from homeostat.clustering.store.moves import Place
from homeostat.convergence.nested_stacks.group_revisions import wanted_group
from homeostat.convergence.nested_stacks.template_stacks import environment_inside
from homeostat.desired.members import group_desired, shard_of, touched_shards
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.planner.lifecycle.names import physical_name
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.pipeline.storing import TransactionStep
from homeostat.services.stacks import PreparedStack, StackService
from homeostat.store import schema
from homeostat.store.database import Database, row_lock
from homeostat.store.schema.rows import ClusterRow, NodeRow, StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import action_begin, locks, revisions, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.revisions import Desired

MOVED_MAX = 100
"""Nodes that one request moves."""
_node = schema.node
_KIND = NodeGroup()


def own_node(number: int, values: Mapping[str, Any], spec: Spec) -> OwnNode:
    """Return how a node differs from the others of its group, from the columns of its row."""
    placement = values["data"].get("placement") or {}
    origin = origin_of(values["data"])
    name = values["name"] if values["own"] else ""
    zone, region, grouped = placement.get(ZONE) or "", placement.get(REGION) or "", GROUP in placement
    return OwnNode(number, spec, name, zone, region, grouped, values["id"] if origin else "", origin)


def moved(row: NodeRow, form: str) -> dict[str, Any]:
    """Return the columns of a node that moves, as far as they do not say where to.

    Args:
        row: Its row, before it moves.
        form: Format of the names of nodes where it is.
    """
    origin = Origin(row.stack_id, form, row.number + 1)
    # A role is one in a cluster.
    return {"own": True, "role": None, "data": with_origin(row.data, origin)}


@dataclass(frozen=True, slots=True)
class Member:
    """A node that moves, as it was seen.

    Attributes:
        row: The row of the node.
        columns: What its row has after the move, see `moved`.
        group_id: Stack of the group that it is in.
        key: Key of the row of its resource.
        shard: Shard of that row.
    """

    row: NodeRow
    columns: Mapping[str, Any]
    group_id: str
    key: str
    shard: int


@dataclass(frozen=True, slots=True)
class Moving:
    """What a plan moves, prepared outside of the transaction.

    Attributes:
        cluster_id: The cluster.
        group_id: Stack of its group.
        first: Number of the first node that joins.
        joining: Nodes without a cluster that come.
        released: Nodes that leave, each with the stack of its own that it gets.
    """

    cluster_id: str
    group_id: str
    first: int
    joining: Sequence[Member] = ()
    released: Sequence[tuple[Member, PreparedStack]] = ()

    @property
    def members(self) -> list[Member]:
        return [*self.joining, *(member for member, _ in self.released)]

    def lock(self, tx: Connection) -> None:
        """Lock what the move writes; the root stack of the cluster is locked already."""
        groups = [self.group_id, *(each.group_id for each in self.joining)]
        roots = [each.row.stack_id for each in self.joining]
        moves.lock(tx, self.cluster_id, groups, roots, [each.key for each in self.members])


class Mover:
    """Moves nodes into clusters and out of them."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stacks = stack_service

    def prepare(
        self, scope: RequestScope, cluster: ClusterRow, plan: ClusterChange, form: str, check_types: CheckTypes | None
    ) -> Moving:
        """Return what a plan moves, and check the stacks that the nodes get which leave.

        Args:
            scope: Who asks.
            cluster: Row of the cluster, which has its nodes already.
            plan: The plan.
            form: Format of the names of the nodes of the cluster.
            check_types: See `StackRequest`.

        Raises:
            Rejected: BadRequest: too many nodes, or one that is not active.
            Transient: A cloud does not answer.
        """
        if len(plan.joining) + len(plan.released) > MOVED_MAX:
            raise Rejected("BadRequest", f"At most {MOVED_MAX} nodes can be moved at once: name fewer.")
        profile = schema.profile
        with self._db.read() as tx:
            of = living.stacks_of(tx, [cluster.id]).get(cluster.id)
            if of is None or of.group_id is None:
                raise Rejected("BadRequest", f"The cluster '{cluster.name}' is not made yet: wait until it is ACTIVE.")
            joining = [_seen(tx, row, "") for row in plan.joining]
            released = [_seen(tx, row, form) for row in plan.released]
            ids = {each.row.profile_id for each in released}
            chosen = select(profile.c.id, profile.c.spec).where(profile.c.id.in_(ids))
            specs = {row.id: check_profile(row.spec) for row in tx.execute(chosen)}
        homes = [(each, self._home(scope, each, specs[each.row.profile_id], check_types)) for each in released]
        return Moving(cluster.id, of.group_id, cluster.next_index - 1, joining, homes)

    def _home(self, scope: RequestScope, member: Member, spec: Spec, check_types: CheckTypes | None) -> PreparedStack:
        """Return the stack of its own that a node gets which leaves its cluster."""
        row, identity = member.row, self._stacks.entropy.stack_id()
        own = own_node(0, {**row._asdict(), **member.columns}, spec)
        text = stack_text(ClusterFacts(identity, "", "", spec, 1, own=(own,)))
        name = f"node-{row.id[:8]}-{identity[:8]}"
        minutes = TIMEOUT_S // 60
        new = NewStack(identity, row.project, name, scope.caller.user, timeout_mins=minutes, exceptions=LEFT_ALONE)
        return self._stacks.prepare(new, request_of(text, TIMEOUT_S, check_types))

    @contextmanager
    def entrusted(self, scope: RequestScope, moving: Moving) -> Iterator[TransactionStep]:
        """Hold the trusts that the stacks of nodes that leave need; gives what makes the trusts theirs.

        Raises:
            Rejected: Forbidden, where the caller cannot create a trust.
            Transient: The identity service does not answer.
        """
        with ExitStack() as held:
            new = [home.new for _, home in moving.released]
            accepts = [held.enter_context(self._stacks.entrusted(each.id, each.project, scope.caller)) for each in new]

            def accept(tx: Connection) -> None:
                for each in accepts:
                    each(tx)

            yield accept

    def move(self, tx: Connection, scope: RequestScope, moving: Moving) -> None:
        """Move the nodes. The new revision of the cluster's stack is stored already, and everything is locked.

        Raises:
            Outdated: A node is not as it was seen.
            Rejected: ActionConflict: something goes on with a node; StackLocked.
        """
        now = self._db.now_of(tx)
        for each in moving.members:
            self._check_unchanged(tx, each)
        cluster = _stack(tx, moving.cluster_id)
        group = _stack(tx, moving.group_id)
        before = revisions.desired_of(tx, group.id, group.revision)
        desired = _group(tx, revisions.desired_of(tx, cluster.id, cluster.revision), group, before)
        desired = replace(desired, secret=group.secret)
        touched = touched_shards(before, desired)
        timeout_s = self._stacks.quotas.timeout_s
        number = action_begin.revise(self._db, tx, group, Action.UPDATE, desired, now, timeout_s, touched=touched)
        for member, home in moving.released:
            place = Place(group.id, member.shard, str(member.row.number), cluster.id, number)
            self._release(tx, scope, member, place, home, now)
        for name, member in zip(map(str, count(moving.first)), moving.joining, strict=False):
            place = Place(group.id, shard_of(name, desired.shards), name, cluster.id, number)
            self._join(tx, member, place, now)

    def _check_unchanged(self, tx: Connection, member: Member) -> None:
        row = tx.execute(row_lock(select(_node).where(_node.c.id == member.row.id))).first()
        found = moves.at_rest(tx, member.group_id, str(member.row.number))
        if row != member.row or found is None or (found.key, found.shard) != (member.key, member.shard):
            raise Outdated
        going_on = actions.going_on(tx, [member.row.id])
        if going_on:
            raise Rejected("ActionConflict", f"The node '{member.row.name}' has an action: {going_on[-1].id}")
        locks.check_unlocked(_stack(tx, member.row.stack_id))

    def _release(
        self, tx: Connection, scope: RequestScope, member: Member, before: Place, home: PreparedStack, now: float
    ) -> None:
        """Give a node a stack of its own, with a group whose only member it is."""
        place, _ = add_home(self._db, self._stacks, tx, home, scope.caller, now)
        moves.move(tx, member.key, before, place, now)
        self._place(tx, member, {"cluster_id": None, "stack_id": home.new.id, "number": 0}, now)

    def _join(self, tx: Connection, member: Member, after: Place, now: float) -> None:
        """Let a node be one of a cluster, and delete the stack of its own, which is empty now."""
        root = member.row.stack_id
        moves.move(tx, member.key, Place(member.group_id, member.shard, "", root, 0), after, now)
        cluster = {"cluster_id": after.root_id, "stack_id": after.root_id, "number": int(after.name)}
        self._place(tx, member, cluster, now)
        timeout_s = self._stacks.quotas.timeout_s
        # The group first: its shards are deeper (ADR 0057).
        for stack_id in (member.group_id, root):
            stack, changes = _stack(tx, stack_id), action_begin.UNHELD
            action_begin.revise(self._db, tx, stack, Action.DELETE, revisions.EMPTY, now, timeout_s, changes)

    def _place(self, tx: Connection, member: Member, place: Mapping[str, Any], now: float) -> None:
        values = {**member.columns, **place, "updated_at": now}
        tx.execute(update(_node).where(_node.c.id == member.row.id).values(**values))


def add_home(
    db: Database, stack_service: StackService, tx: Connection, home: PreparedStack, by: Caller, now: float
) -> tuple[Place, Desired]:
    """Store the stack of a node without a cluster, with a group for the node; return its place there, and the group.

    Args:
        db: The database.
        stack_service: Stores stacks.
        tx: The transaction, which gives the node its place, too.
        home: The stack.
        by: Who asks.
        now: The agreed time.

    Raises:
        Rejected: RequestLimitExceeded.
    """
    stack_service.add_prepared(tx, home, by)
    root, timeout_s = home.new, stack_service.quotas.timeout_s
    key = next(stack_service.entropy.keys())
    group_row = Resource(key, root.id, 0, living.GROUP, NodeGroup.name, created_at=now, updated_at=now, born=1)
    shard_state.encode_new(db, [group_row]).store(tx)
    desired = replace(_group(tx, home.revision, None, revisions.EMPTY), secret=home.revision.secret, size=1)
    # The pass that makes the group finds its stack by this key: it is as if its answer had been lost.
    group = NewStack(
        stack_service.entropy.stack_id(),
        root.project,
        physical_name(root.name, living.GROUP, key),
        converge=False,
        parent_id=root.id,
        parent_name=living.GROUP,
        parent_key=key,
        parent_shard=0,
        root_id=root.id,
        depth=1,
    )
    action_begin.add(db, tx, group, desired, now, timeout_s)
    return Place(group.id, 0, "0", root.id, 1), desired


def _seen(tx: Connection, row: NodeRow, form: str) -> Member:
    """Return a node that may be moved, as it is.

    Raises:
        Rejected: BadRequest: it is not active.
    """
    of = living.stacks_of(tx, [row.stack_id]).get(row.stack_id)
    found = moves.at_rest(tx, of.group_id, str(row.number)) if of is not None and of.group_id is not None else None
    if found is None or of is None or of.group_id is None:
        remedy = "only active nodes join a cluster, or leave it and stay"
        raise Rejected("BadRequest", f"Nodes are not ACTIVE: ['{row.id}'].", remedy=remedy)
    return Member(row, moved(row, form), of.group_id, found.key, found.shard)


def _stack(tx: Connection, stack_id: str) -> StackRow:
    """Return the row of a stack, which is locked already.

    Raises:
        Outdated: It is gone.
    """
    row = stacks.get(tx, stack_id)
    if row is None or row.deleted_at is not None:
        raise Outdated
    return row


def _kept(standing: GroupDefinition, wanted: GroupDefinition) -> GroupDefinition:
    """Return a group with the wanted nodes that keep the definitions which they have."""
    series = standing.series
    return replace(
        standing,
        skip=wanted.skip,
        count=wanted.count,
        own=wanted.own,
        nodes=wanted.nodes,
        companions=standing.companions or wanted.companions,
        series=None if series is None else replace(series, target=wanted.count),
    )


def _group(tx: Connection, parent: Desired, nested: StackRow | None, before: Desired) -> Desired:
    """Return the revision of the stack of a group that follows from the newest one of its parent, but for definitions.

    The next pass of the parent makes the same revision, with the definitions that all members share. Until then
    members keep those that they have, also in the middle of a rolling update.

    Args:
        tx: The transaction.
        parent: Newest revision of the parent.
        nested: Row of the stack; None for a new one.
        before: Its newest revision so far.
    """
    values = _KIND.complete(parent.template["resources"][living.GROUP]["properties"])
    identity = nested.id if nested is not None else ""
    wanted = wanted_group(tx, _KIND, values, nested, before, lambda _: None, identity, ())
    standing = before.group
    group = wanted if standing is None else _kept(standing, wanted)
    inside = environment_inside(parent, living.GROUP, NodeGroup.name)
    return replace(group_desired(group), environment=inside, files=parent.files)
