"""Executes steps on nested stacks: creates, updates, deletes them, and passes actions of the parent on to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, select

from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Answer
from homeostat.convergence.nested_stacks import tree_size
from homeostat.convergence.nested_stacks.observation import observe
from homeostat.convergence.nested_stacks.revisions import NestedRevisions, document_of, intent_of
from homeostat.convergence.ownership import ShardOwnership
from homeostat.desired.graphs import compile_graphs
from homeostat.desired.members import shard_count, touched_shards
from homeostat.desired.texts import size_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Terminal, Transient
from homeostat.model.group import GroupDefinition
from homeostat.model.limits import DEPTH_MAX, RESOURCES_MAX, too_deep
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Create, Delete, Find, Operate, Step, Update
from homeostat.model.status import Action, Status
from homeostat.model.world import KeepPolicy, Resource, World
from homeostat.planner.actions.check import CHECK, CONVERGE
from homeostat.planner.lifecycle.cascade import part_kinds
from homeostat.planner.names import physical_name
from homeostat.planner.states.snapshot_state import SNAPSHOT
from homeostat.resources import groups
from homeostat.resources.families.scaling import ScalingGroup, bounds_of
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of, of_kind, type_of
from homeostat.resources.scaling_adjustments import AdjustmentType
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shards
from homeostat.store.sql import typed
from homeostat.store.stacks import action_begin, deletion, locks, revisions, scaling, stacks
from homeostat.store.stacks.contents import EMPTY, Content
from homeostat.store.stacks.revisions import NewRevision
from homeostat.transfer import adoption


@dataclass(frozen=True, slots=True)
class RevisionPlan:
    """The next revision of a nested stack, prepared outside the transaction that stores it.

    Attributes:
        nested_id: Id of the nested stack, existing or new.
        state: State of the nested stack (`_state`) that the plan is based on; None if there was no nested stack.
        revision: The next revision.
        group: The group that the next revision defines; None for another kind of stack.
        least: Minimum of the nested stack's resources, see `tree_size.least_size`.
        touched: Shards changed by the revision, see `action_begin.revise`.
        adopted: Initial rows of a new nested stack that adopts existing things.
    """

    nested_id: str
    state: tuple[Any, ...] | None
    revision: NewRevision
    group: GroupDefinition | None
    least: int
    touched: Mapping[int, shards.ShardChange] | None
    adopted: adoption.AdoptedRows


class _PlanOutdated(Exception):
    """The nested stack has changed since the plan for it was made."""


PARTS_MAX = 100_000
"""Maximum of parts in nested stacks that are deleted together with their thing."""
DELETED_AT_ONCE = 100
"""Nested stacks deleted by one transaction, whose locks make concurrent transactions wait."""
PLANS_MAX = 5
"""Plans made for one step before the step is put off."""


def _state(nested: StackRow | None) -> tuple[Any, ...] | None:
    """Return the state that a plan depends on: the plan fits as long as the state is the same."""
    return None if nested is None else (nested.id, nested.revision, nested.complete_revision)


def _is_nested_in(row: Resource) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the live nested stack of a row meets.

    They use the key of the parent's row, not the row's handle, so they match even if the outcome of the creation was
    never stored.
    """
    table = schema.stack
    return table.c.parent_key == row.key, table.c.deleted_at.is_(None)


class NestedStacks:
    """Executor of steps on nested stacks."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        entropy: Entropy,
        timeout_s: float,
        depth_max: int = DEPTH_MAX,
        resources_max: int = RESOURCES_MAX,
    ) -> None:
        """Prepare the executor.

        Args:
            clock: Clock of events and deadlines.
            entropy: Source of the ids of new stacks and of row keys.
            timeout_s: Time limit of the rollback of a root stack that grew too large. Nested stacks have as
                much time as their parent has left.
            depth_max: Levels of nested stacks.
            resources_max: Resources of a root stack, including its nested stacks.
        """
        self._depth_max = depth_max
        self.trees = tree_size.TreeSizes(clock, resources_max)
        self._db = db
        self._clock = clock
        self._entropy = entropy
        self._timeout_s = timeout_s
        self._revisions = NestedRevisions()

    def execute(self, world: World, step: Step, ownership: ShardOwnership) -> Answer:
        """Execute one step on the nested stack of a resource.

        Raises:
            Superseded: A newer owner has the parent's shard; nothing was done.
            HomeostatError: The nested stack cannot be created or changed as described, or not now.
        """
        # The plan is made before anything is locked, since compiling templates takes long. The nested stack may change
        # in between, so its state is compared under the lock; if it differs, the plan is made again.
        for _ in range(PLANS_MAX):
            # Other acts do not depend on the next revision of the nested stack.
            plan = self._plan(world, step) if isinstance(step.act, Create | Update) else None
            try:
                with self._db.write() as tx:
                    answer = self._execute(tx, world, step, plan)
                    # Locks the parent's shard, so it comes last: shards are locked from the deepest stack up (ADR
                    # 0057). If it fails, the transaction is rolled back.
                    ownership.fence(tx)
                    return answer
            except _PlanOutdated:
                continue
            except tree_size.TooLarge as error:
                # The whole tree fails at once, in another transaction, since this one was rolled back.
                ownership.check()
                reason = f"Resource {step.row.action} failed: {step.row.name} of stack {world.stack.name}: {error}"
                tree_size.give_up(self._db, world, reason, self._clock.now(), self._timeout_s)
                raise
        raise Transient(f"the stack of {step.row.name} is changed by others again and again")

    def delete_many(self, world: World, steps: Sequence[Step], ownership: ShardOwnership) -> dict[str, Answer]:
        """Delete nested stacks, or begin their deletion, many in one transaction.

        Returns:
            Row key -> answer; rows that are missing here need single steps.

        Raises:
            Superseded: A newer owner has the parent's shard.
        """
        answers: dict[str, Answer] = {}
        if world.stack.spares is not None:
            return answers
        for start in range(0, len(steps), DELETED_AT_ONCE):
            with self._db.write() as tx:
                now, some = self._clock.now(), steps[start : start + DELETED_AT_ONCE]
                times_s = {step.row.key: self._time_left(world, step, now) for step in some}
                deletions = deletion.delete_many(tx, world.stack.id, times_s, now)
                answers |= {key: _deleted(id, now, ended=ended) for key, (id, ended) in deletions.items()}
                ownership.fence(tx)  # last, as in `execute`
        return answers

    def parts_inside(self, world: World, row: Resource) -> Mapping[str, Sequence[str]]:
        """Return the handles of a thing's parts which nested stacks of the tree are deleting, by kind.

        They are read when the request is sent, and stored in no row: there may be thousands.
        """
        types = [name for names in of_kind(part_kinds(row)).values() for name in names]
        with self._db.read() as tx:
            deleted = deletion.deletions_below(tx, world.stack.root_id, types, PARTS_MAX)
        parts: dict[str, list[str]] = {}
        for type_name, handle in deleted:
            parts.setdefault(kind_of(type_name), []).append(handle)
        return parts

    def _plan(self, world: World, step: Step) -> RevisionPlan | None:
        """Prepare the next revision of the nested stack; None if a nested stack to be changed does not exist.

        Raises:
            Rejected, Terminal: The nested stack cannot be as its resource describes it.
        """
        with self._db.read() as tx:
            chosen = select(schema.stack).where(*_is_nested_in(step.row))
            nested, now = typed.rows(StackRow, tx.execute(chosen)).first(), self._clock.now()
            if nested is None:
                if not isinstance(step.act, Create):
                    return None
                if world.stack.depth >= self._depth_max:
                    raise Terminal(too_deep(self._depth_max).detail)
                nested_id, before = self._entropy.stack_id(), EMPTY
            else:
                nested_id, before = nested.id, revisions.content_of(tx, nested.id, nested.revision)
            content = self._revisions.next_content(
                tx, world, step, nested, nested_id, before, self._time_left(world, step, now), now
            )
        rows: Sequence[Resource] = ()
        document = document_of(step)
        if nested is None and document is not None:
            content, rows = self._adopted(world, step.row, nested_id, content, document, now)
        group, secret, size = content.group, world.stack.secret, size_of(content)
        intent, shards_needed = intent_of(step.row), shard_count(group)
        return RevisionPlan(
            nested_id,
            _state(nested),
            revisions.encode(self._db, content, intent=intent, shards=shards_needed, secret=secret, size=size),
            group,
            tree_size.least_size(content),
            touched_shards(before, content),
            # Only False is certain: if nothing is known about secrets, the rows are encrypted.
            adoption.write_out(self._db, rows, secret=secret is not False),
        )

    def _adopted(
        self,
        world: World,
        row: Resource,
        nested_id: str,
        content: Content,
        document: adoption.Document,
        now: float,
    ) -> tuple[Content, Sequence[Resource]]:
        """Return the first content and the rows of a stack that adopts the things of a document.

        Raises:
            Terminal: The document does not fit the stack.
        """
        kind = type_of(row.type)
        content, entries = adoption.arranged(content, document, bounds_of(kind, kind.complete(row.properties)))
        identity = Identity(nested_id, _name_of(world, row), world.stack.project)
        graphs = compile_graphs(content, identity)
        return content, adoption.rows_of(graphs, identity, entries, self._entropy.keys(), now)

    def _execute(self, tx: Transaction, world: World, step: Step, plan: RevisionPlan | None) -> Answer:
        """Execute a step within a transaction.

        Each act is idempotent: its revision carries the intent of the parent's row, and is not added again if the
        nested stack has it already. So a worker that died before storing the answer does no harm.
        """
        now = self._clock.now()
        # Before the first lock on a row, since this may wait for another transaction (see `TreeSizes.begin`).
        if plan is not None:
            self.trees.begin(tx, world.stack, plan.least)
        nested = self._nested(tx, step)
        if plan is not None and _state(nested) != plan.state:
            raise _PlanOutdated
        if plan is not None and nested is None:
            return self._create(tx, world, step, plan, now)
        if nested is None:
            return Observation(Presence.ABSENT, step.row.handle, seen_at=now)
        if isinstance(step.act, Find):
            return observe(tx, nested.id, now)
        if isinstance(step.act, Operate):
            return self._pass_on(tx, world, step, step.act.operation, nested, now)
        if isinstance(step.act, Delete):
            return self._delete(tx, world, step, nested, now)
        if plan is None:  # the nested stack was created after the plan was made
            raise _PlanOutdated
        return self._update(tx, world, step, plan, nested, now)

    def _delete(self, tx: Transaction, world: World, step: Step, nested: StackRow, now: float) -> Answer:
        # A deletion in progress continues, unless the parent has been abandoned since: then other things are kept, and
        # a new deletion is needed.
        under_way = nested.action == Action.DELETE and nested.status == Status.IN_PROGRESS
        if under_way and world.stack.spares in (None, nested.spares):
            return observe(tx, nested.id, now)
        changes: dict[str, Any] = dict(action_begin.UNHELD)
        # An abandoned stack stays abandoned, even if its parent keeps only adopted things.
        if world.stack.spares is not None:
            changes["spares"] = KeepPolicy.ALL if nested.spares == KeepPolicy.ALL else world.stack.spares
        empty, timeout_s = revisions.empty(self._db, world.stack.secret), self._time_left(world, step, now)
        # First the stacks nested deeper: their shards are locked before those of the stack itself (ADR 0057).
        deletion.wake_nested_deletions(tx, nested, now)
        number = action_begin.revise(tx, nested, Action.DELETE, empty, now, timeout_s, changes)
        # If a tree is deleted while it grows, most of its stacks have not begun yet: they need no pass.
        return _deleted(nested.id, now, ended=deletion.end_if_empty(tx, nested.id, number, now))

    def _update(
        self, tx: Transaction, world: World, step: Step, plan: RevisionPlan, nested: StackRow, now: float
    ) -> Answer:
        stack, action = world.stack, Action.UPDATE
        self.trees.count(tx, stack, plan.revision, plan.least, nested.size)
        if revisions.intent_of(tx, nested.id, nested.revision) == plan.revision.intent:
            return observe(tx, nested.id, now)
        changes: dict[str, Any] = {"suspended": False, "cooldown": _cooldown(step.row, plan.group, nested, now)}
        # If the parent converges (observes everything, then repairs it), so does the nested stack.
        if stack.look_from is not None:
            changes["look_from"] = tx.now()
        if stack.restoring:
            action = Action.RESTORE if stack.action == Action.RESTORE else action
            changes["snapshot"] = stack.snapshot_inside(step.row.name)
        # These changes concern every shard of the nested stack, whatever its definitions: all are woken.
        neglected = step.row.key in world.neglected
        all_shards = nested.suspended or neglected or changes.keys() & {"look_from", "snapshot"}
        touched, timeout_s = None if all_shards else plan.touched, self._time_left(world, step, now)
        action_begin.revise(tx, nested, action, plan.revision, now, timeout_s, changes, touched)
        return Observation(Presence.PRESENT, nested.id, {"status": "in_progress"}, now)

    def _pass_on(
        self, tx: Transaction, world: World, step: Step, operation: str, nested: StackRow, now: float
    ) -> Answer:
        """Begin the action of the parent (a check, a snapshot, maintenance) in the nested stack, once."""
        intent, timeout_s = intent_of(step.row), self._time_left(world, step, now)
        if revisions.intent_of(tx, nested.id, nested.revision) == intent:
            return observe(tx, nested.id, now)
        snapshot = world.stack.snapshot_inside(step.row.name)
        if operation == SNAPSHOT and snapshot is not None:
            action_begin.take_snapshot(tx, nested, snapshot, now, timeout_s, intent)
        elif operation in (CHECK, CONVERGE):
            begin = action_begin.check if operation == CHECK else action_begin.converge
            begin(tx, nested, now, timeout_s, intent)
        else:
            action, lock = operation.upper(), locks.stored_lock(world.stack.lock, nested)
            action_begin.maintain(tx, nested, action, now, timeout_s, lock=lock, intent=intent)
        return Observation(Presence.PRESENT, nested.id, {"status": "in_progress"}, now)

    def _time_left(self, world: World, step: Step, now: float) -> float:
        """Return the seconds that an action of the nested stack may take.

        They are the parent's remaining time (at rest: the time limit of an action of the parent), or less if the
        resource has a shorter limit.
        """
        deadline = world.stack.deadline
        left = world.patience_s if deadline is None else max(deadline - now, 1.0)
        kind = type_of(step.row.type)
        own = kind.timeout_s(step.row.properties) if isinstance(kind, NestedStack) else None
        return left if own is None else min(left, own)

    def _nested(self, tx: Transaction, step: Step) -> StackRow | None:
        """Return the row of the nested stack, locked."""
        nested_id = tx.execute(select(schema.stack.c.id).where(*_is_nested_in(step.row))).scalar_one_or_none()
        return None if nested_id is None else stacks.for_update(tx, nested_id)

    def _create(self, tx: Transaction, world: World, step: Step, plan: RevisionPlan, now: float) -> Answer:
        stack, row = world.stack, step.row
        # The tree may have failed as a whole since this pass loaded its world: then it gets no new stacks.
        ended = tree_size.ended(tx, stack)
        if ended:
            return Terminal(ended)
        new = action_begin.NewStack(
            id=plan.nested_id,
            project=stack.project,
            name=_name_of(world, row),
            parent_id=stack.id,
            parent_name=row.name,
            parent_key=row.key,
            parent_shard=world.shard,
            root_id=stack.root_id or stack.id,
            depth=stack.depth + 1,
            converge=stack.converges(row.name),
            observe_s=stack.observe_s,
            healing=stack.healing_inside(row.name),
            snapshot=stack.snapshot_inside(row.name) if stack.restoring else None,
            lock=locks.without_previous_state(stack.lock),
            cooldown=_cooldown(row, plan.group, None, now),
        )
        self.trees.count(tx, stack, plan.revision, plan.least, 0)
        if document_of(step) is not None:
            new = replace(new, action=Action.ADOPT)
        action_begin.add(tx, new, plan.revision, now, self._time_left(world, step, now))
        adoption.add(tx, stack.project, plan.adopted)
        return Observation(Presence.PRESENT, new.id, {"status": "in_progress"}, now)


def _deleted(nested_id: str, now: float, *, ended: bool) -> Observation:
    """Return the answer to the deletion of a nested stack."""
    if ended:
        return Observation(Presence.ABSENT, nested_id, seen_at=now)
    return Observation(Presence.PRESENT, nested_id, {"status": "in_progress"}, now)


def _cooldown(
    row: Resource, group: GroupDefinition | None, nested: StackRow | None, now: float
) -> Mapping[str, Any] | None:
    """Return the cooldown column of a scaling group: signals must not soon change the size given by its template."""
    kind = type_of(row.type)
    if not isinstance(kind, ScalingGroup) or group is None:
        return None
    until = now + kind.cooldown_s(kind.complete(row.properties))
    reason = f"{AdjustmentType.EXACT} : {groups.size_of(group)}"
    return scaling.longest(nested, scaling.Cooldown(until, reason))


def _name_of(world: World, row: Resource) -> str:
    """Return the name of the nested stack of a resource."""
    return physical_name(world.stack.name, row.name, row.key)
