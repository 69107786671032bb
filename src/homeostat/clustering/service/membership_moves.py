"""Moves of nodes: from their own stacks into a cluster, or out of a cluster into their own stacks (ADR 0073).

The rows of a node and its resource move in the transaction that stores the revision of the cluster and the revisions of
both groups: for workers, members and definition of a group always agree.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from sqlalchemy import select, update

from homeostat.clustering.decisions.origins import Origin, with_origin
from homeostat.clustering.decisions.profiles import check_profile
from homeostat.clustering.decisions.specs import Spec
from homeostat.clustering.service.changes import ClusterChange, Outdated
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.service.stack_requests import LEFT_ALONE, TIMEOUT_S, node_request
from homeostat.clustering.store import actions, living, moves
from homeostat.clustering.store.moves import Place
from homeostat.convergence.nested_stacks.group_revisions import wanted_group
from homeostat.convergence.nested_stacks.template_stacks import environment_inside
from homeostat.desired.members import group_content, shard_count, shard_of, touched_shards
from homeostat.desired.texts import size_of
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.planner.names import physical_name
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.pipeline.storing import TransactionStep
from homeostat.services.stacks import PreparedStack, StackService
from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.schema.rows import ClusterRow, NodeRow, StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import action_begin, locks, revisions, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import EMPTY, Content

MOVED_MAX = 100
"""Maximum of nodes in one request."""
_node = schema.node
_KIND = NodeGroup()


def moved(row: NodeRow, form: str) -> dict[str, Any]:
    """Return the new columns of a node that moves, except its new place.

    Args:
        row: The row before the move.
        form: Format of node names in its former cluster.
    """
    origin = Origin(row.stack_id, form, row.number + 1)
    # Roles apply within a cluster only.
    return {"own": True, "role": None, "data": with_origin(row.data, origin)}


@dataclass(frozen=True, slots=True)
class Member:
    """A node that moves, in its state before the move.

    Attributes:
        row: The row of the node.
        columns: New columns of the row, see `moved`.
        group_id: Stack of its current group.
        key: Key of the row of its resource.
        shard: Shard of the row of its resource.
    """

    row: NodeRow
    columns: Mapping[str, Any]
    group_id: str
    key: str
    shard: int


@dataclass(frozen=True, slots=True)
class Moving:
    """The moves of a change, prepared outside of the transaction.

    Attributes:
        cluster_id: The cluster.
        group_id: Stack of the cluster's group.
        first: Number of the first joining node.
        joining: Joining nodes.
        released: Leaving nodes, each with its new stack.
    """

    cluster_id: str
    group_id: str
    first: int
    joining: Sequence[Member] = ()
    released: Sequence[tuple[Member, PreparedStack]] = ()

    @property
    def members(self) -> list[Member]:
        return [*self.joining, *(member for member, _ in self.released)]

    def lock(self, tx: Transaction) -> None:
        """Lock the stacks and rows of the moves; the root stack of the cluster is locked already."""
        groups = [self.group_id, *(member.group_id for member in self.joining)]
        roots = [member.row.stack_id for member in self.joining]
        moves.lock(tx, self.cluster_id, groups, roots, [member.key for member in self.members])


class Mover:
    """Moves nodes into clusters and out of them."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stacks = stack_service

    def prepare(
        self, scope: RequestScope, cluster: ClusterRow, change: ClusterChange, form: str, check_types: CheckTypes | None
    ) -> Moving:
        """Return the moves of a change, with checked stacks for leaving nodes.

        Args:
            form: Format of node names of the cluster.
            check_types: See `StackRequest`.

        Raises:
            Rejected: BadRequest: too many nodes, or an inactive node; the cluster has no group yet.
            Transient: A cloud does not answer.
        """
        if len(change.joining) + len(change.released) > MOVED_MAX:
            raise Rejected("BadRequest", f"At most {MOVED_MAX} nodes can be moved at once: name fewer.")
        profile = schema.profile
        with self._db.read() as tx:
            stack = living.stacks_of(tx, [cluster.id]).get(cluster.id)
            if stack is None or stack.group_id is None:
                raise Rejected("BadRequest", f"The cluster '{cluster.name}' is not made yet: wait until it is ACTIVE.")
            joining = [_seen(tx, row, "") for row in change.joining]
            released = [_seen(tx, row, form) for row in change.released]
            ids = {member.row.profile_id for member in released}
            chosen = select(profile.c.id, profile.c.spec).where(profile.c.id.in_(ids))
            specs = {row.id: check_profile(row.spec) for row in tx.execute(chosen)}
        homes = [(member, self._home(scope, member, specs[member.row.profile_id], check_types)) for member in released]
        return Moving(cluster.id, stack.group_id, cluster.next_index - 1, joining, homes)

    def _home(self, scope: RequestScope, member: Member, spec: Spec, check_types: CheckTypes | None) -> PreparedStack:
        """Return the new stack of a node that leaves its cluster."""
        row, identity = member.row, self._stacks.entropy.stack_id()
        request = node_request(spec, {**row._asdict(), **member.columns, "stack_id": identity}, check_types)
        name = f"node-{row.id[:8]}-{identity[:8]}"
        minutes = TIMEOUT_S // 60
        new = NewStack(identity, row.project, name, scope.caller.user, timeout_mins=minutes, exceptions=LEFT_ALONE)
        return self._stacks.prepare(new, request)

    @contextmanager
    def entrusted(self, scope: RequestScope, moving: Moving) -> Iterator[TransactionStep]:
        """Create the trusts for the stacks of leaving nodes; yield the step that stores them.

        Trusts that are not stored are deleted at exit.

        Raises:
            Rejected: Forbidden: the caller cannot create a trust.
            Transient: The identity service does not answer.
        """
        with ExitStack() as held:
            new = [home.new for _, home in moving.released]
            accepts = [
                held.enter_context(self._stacks.entrusted(stack.id, stack.project, scope.caller)) for stack in new
            ]

            def accept(tx: Transaction) -> None:
                for step in accepts:
                    step(tx)

            yield accept

    def move(self, tx: Transaction, scope: RequestScope, moving: Moving) -> None:
        """Move the nodes. The new revision of the cluster's stack is stored already, and all rows are locked.

        Raises:
            Outdated: A node has changed since `moving` was prepared.
            Rejected: ActionConflict: a node has an action in progress; StackLocked.
        """
        now = tx.now()
        for member in moving.members:
            self._check_unchanged(tx, member)
        cluster = _stack(tx, moving.cluster_id)
        group = _stack(tx, moving.group_id)
        before = revisions.content_of(tx, group.id, group.revision)
        content = _group(tx, revisions.content_of(tx, cluster.id, cluster.revision), group, before)
        touched, shards = touched_shards(before, content), shard_count(content.group)
        revision = revisions.encode(self._db, content, shards=shards, size=size_of(content))
        timeout_s = self._stacks.quotas.timeout_s
        number = action_begin.revise(tx, group, Action.UPDATE, revision, now, timeout_s, touched=touched)
        for member, home in moving.released:
            place = Place(group.id, member.shard, str(member.row.number), cluster.id, number)
            self._release(tx, scope, member, place, home, now)
        for name, member in zip(map(str, count(moving.first)), moving.joining, strict=False):
            place = Place(group.id, shard_of(name, shards), name, cluster.id, number)
            self._join(tx, member, place, now)

    def _check_unchanged(self, tx: Transaction, member: Member) -> None:
        row = tx.execute(row_lock(select(_node).where(_node.c.id == member.row.id))).first()
        resource = moves.at_rest(tx, member.group_id, str(member.row.number))
        if row != member.row or resource is None or (resource.key, resource.shard) != (member.key, member.shard):
            raise Outdated
        going_on = actions.going_on(tx, [member.row.id])
        if going_on:
            raise Rejected("ActionConflict", f"The node '{member.row.name}' has an action: {going_on[-1].id}")
        locks.check_unlocked(_stack(tx, member.row.stack_id))

    def _release(
        self, tx: Transaction, scope: RequestScope, member: Member, before: Place, home: PreparedStack, now: float
    ) -> None:
        """Move a node into its own stack, as the only member of the group there."""
        place, _ = add_home(self._stacks, tx, home, scope.caller, now)
        moves.move(tx, member.key, before, place, now)
        self._place(tx, member, {"cluster_id": None, "stack_id": home.new.id, "number": 0}, now)

    def _join(self, tx: Transaction, member: Member, after: Place, now: float) -> None:
        """Move a node into a cluster, and delete its former stack, which is empty now."""
        root = member.row.stack_id
        moves.move(tx, member.key, Place(member.group_id, member.shard, "", root, 0), after, now)
        cluster = {"cluster_id": after.root_id, "stack_id": after.root_id, "number": int(after.name)}
        self._place(tx, member, cluster, now)
        timeout_s, empty = self._stacks.quotas.timeout_s, revisions.empty(self._db)
        # The group first: its shards are deeper (ADR 0057).
        for stack_id in (member.group_id, root):
            stack, changes = _stack(tx, stack_id), action_begin.UNHELD
            action_begin.revise(tx, stack, Action.DELETE, empty, now, timeout_s, changes)

    def _place(self, tx: Transaction, member: Member, place: Mapping[str, Any], now: float) -> None:
        values = {**member.columns, **place, "updated_at": now}
        tx.execute(update(_node).where(_node.c.id == member.row.id).values(**values))


def add_home(
    stack_service: StackService, tx: Transaction, home: PreparedStack, by: Caller, now: float
) -> tuple[Place, Content]:
    """Store the stack of a node without a cluster, with a group; return the node's place, and the group's content.

    Raises:
        Rejected: RequestLimitExceeded.
    """
    stack_service.add_prepared(tx, home, by)
    root, timeout_s = home.new, stack_service.quotas.timeout_s
    key = next(stack_service.entropy.keys())
    group_row = Resource(key, root.id, 0, living.GROUP, NodeGroup.name, created_at=now, updated_at=now, born=1)
    shard_state.encode_new(tx.database, [group_row]).store(tx)
    content = _group(tx, home.content, None, EMPTY)
    revision = revisions.encode(tx.database, content, secret=home.revision.secret, size=1)
    # The pass that creates the group finds this stack by the parent's key, as after a lost answer to its creation.
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
    action_begin.add(tx, group, revision, now, timeout_s)
    return Place(group.id, 0, "0", root.id, 1), content


def _seen(tx: Transaction, row: NodeRow, form: str) -> Member:
    """Return the current state of a node that may be moved.

    Raises:
        Rejected: BadRequest: the node is not active.
    """
    stack = living.stacks_of(tx, [row.stack_id]).get(row.stack_id)
    resource = (
        moves.at_rest(tx, stack.group_id, str(row.number)) if stack is not None and stack.group_id is not None else None
    )
    if resource is None or stack is None or stack.group_id is None:
        remedy = "only active nodes join a cluster, or leave it and stay"
        raise Rejected("BadRequest", f"Nodes are not ACTIVE: ['{row.id}'].", remedy=remedy)
    return Member(row, moved(row, form), stack.group_id, resource.key, resource.shard)


def _stack(tx: Transaction, stack_id: str) -> StackRow:
    """Return the row of a stack, which is locked already.

    Raises:
        Outdated: The stack is gone.
    """
    row = stacks.get(tx, stack_id)
    if row is None or row.deleted_at is not None:
        raise Outdated
    return row


def _kept(standing: GroupDefinition, wanted: GroupDefinition) -> GroupDefinition:
    """Return a group with the members of `wanted` and the definitions of `standing`."""
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


def _group(tx: Transaction, parent: Content, nested: StackRow | None, before: Content) -> Content:
    """Return the next content of a group's stack, computed from its parent, with unchanged definitions of members.

    The next pass of the parent makes the same revision with the new common definition. Until then members keep their
    definitions, also during a rolling update.

    Args:
        parent: Newest revision of the parent.
        nested: Row of the group's stack; None for a new stack.
        before: Newest revision of the group's stack.
    """
    values = _KIND.complete(parent.template["resources"][living.GROUP]["properties"])
    identity = nested.id if nested is not None else ""
    wanted = wanted_group(tx, _KIND, values, nested, before, lambda _: None, identity, ())
    standing = before.group
    group = wanted if standing is None else _kept(standing, wanted)
    inside = environment_inside(parent, living.GROUP, NodeGroup.name)
    return group_content(group, inside, parent.files)
