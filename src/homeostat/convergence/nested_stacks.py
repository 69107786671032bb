"""Nested stacks as the things behind resources: a group's resource is there when its child stack is (ADR 0008).

The child lives in the same database as its parent, so creating it and knowing of it are one transaction: nothing can
be made twice, and no token is needed to find it again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Connection, Row, select

from homeostat.builtin.cloud import stack_arn
from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Answer
from homeostat.convergence import tree_size
from homeostat.convergence.limits import DEPTH_MAX, RESOURCES_MAX, too_deep
from homeostat.desired.graphs import (
    MEMBERS_PER_SHARD,
    chain_desired,
    compile_desired,
    group_desired,
    named_desired,
    registry_of,
    template_of,
    touched_shards,
)
from homeostat.desired.redaction import Redactions
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Step, Verb
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, Spares, World, next_look
from homeostat.planner.actions.check import CHECK, CONVERGE
from homeostat.planner.actions.snapshot_state import SNAPSHOT
from homeostat.planner.current import current_row
from homeostat.planner.lifecycle.names import physical_name
from homeostat.planner.policies import rolling_update
from homeostat.planner.scope import UNREADABLE, RowScope, thing_of
from homeostat.resources import groups
from homeostat.resources.base import ResourceType
from homeostat.resources.composite import Composed
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.families.resource_groups import Launched
from homeostat.resources.families.scaling import LaunchConfiguration, ScalingGroup
from homeostat.resources.nested import FACADE, POLICY, STACK, FromTemplate, NestedStack, TemplateResource, parameters_of
from homeostat.resources.registry import kind_of, type_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state, shards
from homeostat.store.stacks import locks, nested_status, stacks
from homeostat.store.stacks.nested_status import NestedStatus
from homeostat.templates import Compiled, declared_in, environments, evaluate
from homeostat.templates.weights import TooHeavy, weight
from homeostat.transfer import adoption

MEMBERS_MAX = 32 * 1024 * 1024
"""Weight (`templates.weights`) of the definitions of those members of a group or chain that are loaded together."""
TOLD_MAX = 64 * 1024 * 1024
"""Weight of the attributes and outputs that one nested stack, with everything nested in it, may show its parent."""


class ShardGuard(Protocol):
    """Ownership of the shard in whose name steps are executed (invariant 4, CONTRIBUTING.md)."""

    def check(self) -> None:
        """Make sure that this worker may still act, as far as it can tell by its own clock.

        Raises:
            Superseded: A newer owner has the shard.
        """

    def fence(self, tx: Connection) -> int:
        """Check the ownership within a transaction that is itself the act; return the shard's count of wake-ups.

        Raises:
            Superseded: A newer owner has the shard.
        """


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """The next revision of a child stack, prepared outside the transaction that stores it.

    Attributes:
        child_id: Id of the existing child, or of the new one.
        state: State of the child (`_state`) for which this was prepared; None where there was no child.
        desired: The revision, encoded for the database.
        least: Number of resources that the child will have at least, see `tree_size.least_size`.
        touched: Shards that the revision changes, see `stacks.revise`.
        adopted: Rows that a new child begins with, where it adopts existing things.
    """

    child_id: str
    state: tuple[Any, ...] | None
    desired: stacks.Desired
    least: int
    touched: Mapping[int, shards.ShardChange] | None
    adopted: adoption.AdoptedRows


class _Moved(Exception):
    """The child stack has changed since the plan for it was made."""


PLANLESS = frozenset({Verb.FIND, Verb.OPERATE, Verb.DELETE})
"""Verbs that need no plan: they do not depend on the child's next revision."""
PLANS_MAX = 5
"""Plans made for one step before it is put off."""


def _state(child: Row[Any] | None) -> tuple[Any, ...] | None:
    """Return what a plan depends on: as long as it is the same, the plan fits."""
    return None if child is None else (child.id, child.revision, child.complete_revision)


def _child_of(row: Resource) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that the live child stack of a row meets.

    The child is found by the key of its parent's row, not by the row's handle: so it is found even where the outcome of
    its creation was never stored.
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
        """Remember what child stacks are made with.

        Args:
            db: The database.
            clock: Clock of events and deadlines.
            entropy: Source of the ids of new stacks and of row keys.
            timeout_s: Time limit of the rollback of a root stack that grew too large. Children have as much time as
                their parent has left.
            depth_max: Levels of nested stacks.
            resources_max: Resources of a root stack, with everything nested in it.
        """
        self._depth_max = depth_max
        self.trees = tree_size.TreeSizes(clock, resources_max)
        self._db = db
        self._clock = clock
        self._entropy = entropy
        self._timeout_s = timeout_s
        self._redactions = Redactions()
        self._parent: tuple[tuple[str, int], stacks.Desired] = (("", 0), stacks.EMPTY)

    def execute(self, world: World, step: Step, guard: ShardGuard) -> Answer:
        """Execute one step on the child stack of a resource.

        Raises:
            Superseded: A newer owner has the parent's shard; nothing was done.
            HomeostatError: The child cannot be made or changed as it should be, or not now.
        """
        # The plan is made before anything is locked: others would wait while templates are compiled. The child may
        # change in between, so its state is compared once it is locked, and the plan made anew if need be.
        for _ in range(PLANS_MAX):
            plan = None if step.verb in PLANLESS else self._plan(world, step)
            try:
                with self._db.write() as tx:
                    answer = self._execute(tx, world, step, plan)
                    # Locks the parent's shard, so it comes last: shards are locked from the deepest stack up (ADR
                    # 0057). Should it fail, the transaction is rolled back.
                    guard.fence(tx)
                    return answer
            except _Moved:
                continue
            except tree_size.TooLarge as error:
                # The whole tree fails at once. That is another transaction, since this one was rolled back.
                guard.check()
                reason = f"Resource {step.row.action} failed: {step.row.name} of stack {world.stack.name}: {error}"
                tree_size.give_up(self._db, world, reason, self._clock.now(), self._timeout_s)
                raise
        raise Transient(f"the stack of {step.row.name} is changed by others again and again")

    def _plan(self, world: World, step: Step) -> "ChildPlan | None":
        """Prepare the child's next revision; None where a child to be changed does not exist.

        Raises:
            Rejected, Terminal: The child cannot be as its resource describes it.
        """
        with self._db.read() as tx:
            mine = select(schema.stack).where(*_child_of(step.row))
            child, now = tx.execute(mine).first(), self._clock.now()
            if child is None:
                if step.verb is not Verb.CREATE:
                    return None
                if world.stack.depth >= self._depth_max:
                    raise Terminal(too_deep(self._depth_max).detail)
                child_id, before = self._entropy.stack_id(), stacks.EMPTY
            else:
                child_id, before = child.id, stacks.desired_of(tx, child.id, child.revision)
            desired = self._desired(tx, world, step, child, child_id, before, now)
        rows: Sequence[Resource] = ()
        if child is None and step.arguments.get("document") is not None:
            desired, rows = self._adopted(world, step.row, child_id, desired, step.arguments["document"], now)
        return ChildPlan(
            child_id,
            _state(child),
            stacks.encode(self._db, desired),
            tree_size.least_size(desired),
            touched_shards(before, desired),
            adoption.write_out(self._db, rows, secret=world.stack.secret is not False),
        )

    def _adopted(
        self,
        world: World,
        row: Resource,
        child_id: str,
        desired: stacks.Desired,
        document: adoption.Document,
        now: float,
    ) -> tuple[stacks.Desired, Sequence[Resource]]:
        """Return the first revision of a stack that adopts what a document names, and its rows.

        Raises:
            Terminal: The document does not fit the stack.
        """
        sized = isinstance(type_of(row.type), ScalingGroup)
        desired, entries = adoption.arranged(desired, document, sized=sized)
        identity = Identity(child_id, _name_of(world, row), world.stack.project)
        return desired, adoption.rows_of(desired, identity, entries, self._entropy.keys(), now)

    def _execute(self, tx: Connection, world: World, step: Step, plan: "ChildPlan | None") -> Answer:
        """Execute a step within a transaction.

        Each act is idempotent: the revision that it makes carries the intent of the parent's row, and one that carries
        it already is not made again. So a worker that died before it stored the answer does no harm.
        """
        now = self._clock.now()
        # Before the first lock on a row: it may wait for another transaction (see `TreeSizes.begin`).
        if plan is not None:
            self.trees.begin(self._db, tx, world.stack, plan.least)
        child = self._child(tx, step)
        if plan is not None and _state(child) != plan.state:
            raise _Moved
        if plan is not None and child is None:
            return self._create(tx, world, step, plan, now)
        if child is None:
            return Observation(Presence.ABSENT, step.row.handle, seen_at=now)
        if step.verb is Verb.FIND:
            return _observe(tx, child.id, now)
        if step.verb is Verb.OPERATE:
            return self._pass_on(tx, world, step, child, now)
        if step.verb is Verb.DELETE:
            action, desired = Action.DELETE, stacks.EMPTY
            changes: dict[str, Any] = dict(stacks.UNHELD)
            # A deletion under way is left to itself, unless the parent has been abandoned since: what is not to be
            # touched is another deletion.
            done = child.action == Action.DELETE and child.status == Status.IN_PROGRESS
            done = done and world.stack.spares in (None, child.spares)
        elif plan is None:  # there was no child when the plan was made, and there is one now
            raise _Moved
        else:
            action = Action.UPDATE
            desired = self.trees.counted(tx, world.stack, plan.desired, plan.least, child.size)
            changes = {"suspended": False}
            done = stacks.intent_of(tx, child.id, child.revision) == desired.intent
        if done:
            return _observe(tx, child.id, now)
        # Where the parent was asked to converge (look at everything, then mend it), so is the child.
        if action == Action.UPDATE and world.stack.look_from is not None:
            changes["look_from"] = self._db.now_of(tx)
        if action == Action.UPDATE and world.stack.restoring:
            action = Action.RESTORE if world.stack.action == Action.RESTORE else action
            changes["snapshot"] = world.stack.snapshot_inside(step.row.name)
        # These concern every shard of the child, whatever its definition says: all are woken.
        all_of_it = child.suspended or changes.keys() & {"look_from", "snapshot"} or step.verb is Verb.DELETE
        touched = None if all_of_it or plan is None else plan.touched
        # An abandoned stack stays abandoned, even where its parent spares only what was adopted.
        if step.verb is Verb.DELETE and world.stack.spares is not None:
            changes["spares"] = Spares.ALL if child.spares == Spares.ALL else world.stack.spares
        desired = replace(desired, secret=world.stack.secret)
        stacks.revise(self._db, tx, child, action, desired, now, self._time_left(world, step, now), changes, touched)
        return Observation(Presence.PRESENT, child.id, {"status": "in_progress"}, now)

    def _pass_on(self, tx: Connection, world: World, step: Step, child: Row[Any], now: float) -> Answer:
        """Ask of the child stack what was asked of its parent (a check, a snapshot, maintenance), once."""
        intent, timeout_s = _intent_of(step.row), self._time_left(world, step, now)
        if stacks.intent_of(tx, child.id, child.revision) == intent:
            return _observe(tx, child.id, now)
        snapshot = world.stack.snapshot_inside(step.row.name)
        if step.operation == SNAPSHOT and snapshot is not None:
            stacks.take_snapshot(self._db, tx, child, snapshot, now, timeout_s, intent)
        elif step.operation in (CHECK, CONVERGE):
            ask = stacks.check if step.operation == CHECK else stacks.converge
            ask(self._db, tx, child, now, timeout_s, intent)
        else:
            action, lock = step.operation.upper(), locks.stored_lock(world.stack.lock, child)
            stacks.maintain(self._db, tx, child, action, now, timeout_s, lock=lock, intent=intent)
        return Observation(Presence.PRESENT, child.id, {"status": "in_progress"}, now)

    def _time_left(self, world: World, step: Step, now: float) -> float:
        """Return the seconds that an action of the child may take.

        As many as its parent has left (at rest: as an action of the parent may take), or fewer where the resource says
        so.
        """
        deadline = world.stack.deadline
        left = world.patience_s if deadline is None else max(deadline - now, 1.0)
        kind = type_of(step.row.type)
        own = kind.timeout_s(step.row.properties) if isinstance(kind, NestedStack) else None
        return left if own is None else min(left, own)

    def _child(self, tx: Connection, step: Step) -> Row[Any] | None:
        """Return the row of the child stack, locked."""
        child_id = tx.execute(select(schema.stack.c.id).where(*_child_of(step.row))).scalar_one_or_none()
        return None if child_id is None else stacks.for_update(self._db, tx, child_id)

    def _create(self, tx: Connection, world: World, step: Step, plan: "ChildPlan", now: float) -> Answer:
        stack, row = world.stack, step.row
        # The tree may have failed as a whole since this pass loaded its world: then nothing more is made for it.
        ended = tree_size.ended(tx, stack)
        if ended:
            return Terminal(ended)
        new = stacks.NewStack(
            id=plan.child_id,
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
        )
        desired = replace(self.trees.counted(tx, stack, plan.desired, plan.least, 0), secret=stack.secret)
        if step.arguments.get("document") is not None:
            new = replace(new, action=Action.ADOPT)
        stacks.add(self._db, tx, new, desired, now, self._time_left(world, step, now))
        adoption.add(self._db, tx, stack.project, plan.adopted)
        return Observation(Presence.PRESENT, new.id, {"status": "in_progress"}, now)

    def _desired(
        self,
        tx: Connection,
        world: World,
        step: Step,
        child: Row[Any] | None,
        child_id: str,
        before: stacks.Desired,
        now: float,
    ) -> stacks.Desired:
        """Return the next revision of the child stack.

        Args:
            tx: A consistent read.
            world: World of the parent's shard.
            step: Creation or update of the resource.
            child: Row of the child stack, None while it is yet to be made.
            child_id: Its id, or that of the new one.
            before: Its newest revision, `stacks.EMPTY` where there is none.
            now: The time.

        Raises:
            Rejected, Terminal: The child cannot be as its resource describes it.
        """
        row = step.row
        intent = _intent_of(row)
        parent = self._parent_of(tx, world)
        kind = type_of(row.type)
        contents = kind.contents if isinstance(kind, NestedStack) else ""
        inside = environment_inside(parent, row.name, row.called or row.type) | self._hidden_inside(tx, world, row)
        if contents == "template":
            return replace(_from_template(row, parent, inside), intent=intent)
        if isinstance(kind, Composed):
            made = kind.template(kind.complete(row.properties))
            return stacks.Desired("template", made, environment=inside, intent=intent)
        if contents == "chain":
            chain = chain_desired(kind.complete(row.properties))
            _check_weight(row, chain.template["resource_properties"], len(chain.template["resources"]))
            return replace(chain, environment=inside, files=parent.files, intent=intent)
        if isinstance(kind, SoftwareDeploymentGroup):
            named = named_desired(kind, kind.complete(row.properties), new=child is None)
            return replace(named, environment=inside, files=parent.files, intent=intent)
        group = _group(tx, world, row, child, child_id, before)
        _check_weight(row, group["resource_def"], min(groups.size_of(group), MEMBERS_PER_SHARD))
        # Only when the series of batches begins: carried out again, less time is left for the rest of it.
        if before.intent != intent:
            _check_time(group, self._time_left(world, step, now))
        return replace(group_desired(group), environment=inside, files=parent.files, intent=intent)

    def _hidden_inside(self, tx: Connection, world: World, row: Resource) -> dict[str, Any]:
        """Return the hidden values that reach the child through its resource, as a section of its environment."""
        by_name = isinstance(type_of(row.type), TemplateResource)
        texts = self._redactions.over(tx, world.stack).inside(row.name, row.properties, by_name=by_name).texts
        return {environments.INHERITED: sorted(texts)} if texts else {}

    def _parent_of(self, tx: Connection, world: World) -> stacks.Desired:
        """Return the parent's revision, read once for all its children that are made or changed in a row."""
        wanted = (world.stack.id, world.stack.revision)
        name, desired = self._parent
        if name != wanted:
            desired = stacks.desired_of(tx, *wanted)
            self._parent = (wanted, desired)
        return desired


def look(tx: Connection, world: World, now: float) -> list[tuple[Resource, Seen]]:
    """Bring the observations of child stacks in a world up to date; return those that changed, to be stored.

    The child's own rows are read, not a message from it, so a lost wake-up costs only time (invariant 1,
    CONTRIBUTING.md).
    """
    changed = []
    rows = [row for row in world.rows.values() if row.handle and kind_of(row.type) == STACK]
    found = nested_status.of(tx, [row.handle for row in rows])
    for row in rows:
        before = world.seen.get(row.key)
        observation = _observation(row.handle, found.get(row.handle), now)
        if before is not None and _same(before.observation, observation):
            continue
        seen = Seen(observation, next_look(before.number if before is not None else 0))
        world.seen[row.key] = seen
        changed.append((row, seen))
    return changed


def _name_of(world: World, row: Resource) -> str:
    """Return the name of the child stack of a resource."""
    return physical_name(world.stack.name, row.name, row.key)


def _intent_of(row: Resource) -> str:
    """Return a text that identifies the one act that a row in progress is about."""
    return f"{row.token}/{row.revision}/{(row.intent or {}).get('stamp')}"


def _observe(tx: Connection, stack_id: str, now: float) -> Observation:
    """Observe a child stack."""
    return _observation(stack_id, nested_status.of(tx, [stack_id]).get(stack_id), now)


def _observation(stack_id: str, child: NestedStatus | None, now: float) -> Observation:
    if child is None:
        return Observation(Presence.ABSENT, stack_id, seen_at=now, reason="its stack is gone")
    properties: dict[str, Any] = {
        "status": child.status.lower(),
        "action": child.action,
        # Differs whenever the child has changed, so that the parent judges it anew: its members may be others now.
        "changes": child.changes,
        "skip": child.skip,
        "failures": child.failures,
        "arn": stack_arn(child.project, child.name, stack_id),
    }
    if child.status == Status.FAILED:
        properties["fault"] = child.reason
    if child.suspended:
        properties["suspended"] = True
    return Observation(Presence.PRESENT, stack_id, properties, now)


def _same(one: Observation, other: Observation) -> bool:
    return one.presence is other.presence and dict(one.properties) == dict(other.properties)


def _from_template(row: Resource, parent: stacks.Desired, environment: dict[str, Any]) -> stacks.Desired:
    """Return the revision of the stack of a template resource.

    Raises:
        Rejected: It cannot be made from these files and properties.
    """
    kind = type_of(row.type)
    assert isinstance(kind, FromTemplate)
    template = template_of(kind.source(row.properties), parent.files)
    parameters = parameters_of(kind.stack_parameters(row.properties), declared_in(template, "parameters"))
    if FACADE in row.properties:
        environment = {**environment, environments.FACADE: row.properties[FACADE]}
    desired = stacks.Desired("template", template, parameters, environment, parent.files)
    # Compiled only to be checked: what is wrong fails this resource before the child exists.
    compile_desired(desired, Identity("", row.name, ""))
    return desired


def environment_inside(parent: stacks.Desired, name: str, called: str) -> dict[str, Any]:
    """Return the environment of the child stack of a resource.

    Args:
        parent: Revision of the parent stack.
        name: Name of the resource.
        called: Its type as the template calls it.
    """
    return environments.nested_environment(parent.environment, registry_of(parent.environment), name, called)


def _group(
    tx: Connection, world: World, row: Resource, child: Row[Any] | None, child_id: str, before: stacks.Desired
) -> groups.Group:
    """Return the next revision of a group's stack: the wanted one, or the first batch on the way to it.

    Raises:
        Terminal: The members cannot be as the group describes them.
    """
    kind = type_of(row.type)
    values = kind.complete(row.properties)
    failed = failed_members(tx, child)
    wanted = wanted_group(tx, kind, values, child, before, lambda name: _launched(world, name), child_id)
    policy = kind.rollout(values) if isinstance(kind, ScalingGroup) else values[POLICY]
    new = child is None or child.complete_revision is None
    return rolling_update.begin(before.template, wanted, policy, failed, new)


def failed_members(tx: Connection, child: Row[Any] | None) -> Collection[str]:
    """Return the names of the FAILED members of a group's stack; `child` is its row, None where there is none."""
    # Mostly none has failed, and the counts of the shards say so without a look at each member.
    troubled = child is not None and shards.failures_of(tx, child.id)
    return shard_state.failed_names(tx, child.id) if child is not None and troubled else set()


def _launched(world: World, reference: str) -> Mapping[str, Any] | None:
    """Return the properties of the launch configuration in this shard that has this reference."""
    for row in world.rows.values():
        kind = type_of(row.type)
        if isinstance(kind, LaunchConfiguration) and kind.reference(thing_of(world, row, kind)) == reference:
            return kind.complete(row.properties)
    return None


def wanted_group(
    tx: Connection,
    kind: ResourceType,
    values: Mapping[str, Any],
    child: Row[Any] | None,
    before: stacks.Desired,
    launched: Launched,
    child_id: str,
) -> dict[str, Any]:
    """Return what a group's stack should be once all batches are done.

    Members that were removed by name stay out while the skip list names them.

    Args:
        tx: A consistent read.
        kind: Type of the group.
        values: Properties of the group, with defaults.
        child: Row of its stack, None while it is yet to be made.
        before: Newest revision of its stack.
        launched: Returns the properties of a launch configuration by its reference, None where there is none.
        child_id: Id of its stack.

    Raises:
        Terminal: The members cannot be as the group describes them.
    """
    if isinstance(kind, ScalingGroup):
        one = kind.member(values, launched, child_id)
        return _scaled(kind, values, one, before.template, failed_members(tx, child))
    skipped, listed = before.template.get("skip", []), _listed(values)
    references: dict[str, Any] = {name: name for name in listed if groups.is_member(name, before.template)}
    # A removal policy may name a member by its reference (an id of the cloud). Only then are all members read.
    if child is not None and not {*references, *skipped}.issuperset(listed):
        references |= _references(tx, child)
    skip = groups.skip_list(skipped, values["removal_policies"], values["removal_policies_mode"], references)
    return {"skip": skip, **{name: values[name] for name in ("resource_def", "index_var", "count")}}


def _scaled(
    kind: ScalingGroup, values: Mapping[str, Any], one: Any, before: groups.Group, failed: Collection[str]
) -> dict[str, Any]:
    """Return a scaling group in its wanted size; it keeps the size it has where the template says none.

    Args:
        kind: Type of the group.
        values: Properties of the group, with defaults.
        one: Definition of each member; None where its launch configuration is missing.
        before: The group as its newest revision says, `{}` where there is none.
        failed: Names of its FAILED members.

    Raises:
        Terminal: There is no such launch configuration.
    """
    if one is None:
        name = values.get("LaunchConfigurationName")
        raise Terminal(f"There is no launch configuration {name} in this stack: refer to one with get_resource or Ref")
    healthy = groups.size_of(before) - sum(groups.is_member(name, before) for name in failed) if before else None
    return groups.resized(before, one, kind.wanted_size(values, healthy), failed)


def _check_weight(row: Resource, member: Any, count: int) -> None:
    """Check that the members of a group, which are alike, can be loaded together.

    Raises:
        Terminal: So many are too heavy.
    """
    try:
        weight(member, MEMBERS_MAX // max(count, 1))
    except TooHeavy as error:
        message = f"{row.name}: {count} members at once, of each of which the {error}: make them lighter, or fewer"
        raise Terminal(message) from error


def _check_time(group: groups.Group, time_left_s: float) -> None:
    """Check that the pauses between batches fit into the time that is left.

    Raises:
        Terminal: The pauses alone take longer.
    """
    total_s = 0.0
    for pause_s in rolling_update.pauses_s(group):
        total_s += pause_s
        if total_s >= time_left_s:
            raise Terminal("The current update policy will result in stack update timeout.")
        # All pauses of a series are alike: without any, a long series need not be walked to its end.
        if not pause_s:
            return


def _listed(values: Mapping[str, Any]) -> list[str]:
    return [str(entry) for policy in values["removal_policies"] for entry in policy.get("resource_list") or []]


class LookWeight:
    """Weight of attributes and outputs that may still be read from nested stacks in one look."""

    def __init__(self) -> None:
        self._left = TOLD_MAX

    def bear(self, value: Any) -> None:
        """Count a value.

        Raises:
            TooHeavy: It is too much, together with everything counted before.
        """
        self._left -= weight(value, self._left)


def show_members(tx: Connection, world: World, names: Collection[str], burden: LookWeight | None = None) -> None:
    """Add members and outputs to the observations of child stacks, for resources that read their attributes.

    They are not stored with the observation, since a group may have a million members. Where they are too heavy, the
    observation says so instead, and reading an attribute fails with that (see `RowScope`).

    Args:
        tx: A consistent read.
        world: World whose observations are completed, in memory.
        names: Names of the resources whose child stacks are read.
        burden: Weight left to the look that this is a part of, for nested stacks of nested stacks.

    Raises:
        TooHeavy: With a `burden` only: it is exceeded.
    """
    for row in world.rows.values():
        seen = world.seen.get(row.key)
        if row.name not in names or seen is None or not row.handle or kind_of(row.type) != STACK:
            continue
        child = stacks.get(tx, row.handle)
        if child is None:
            continue
        if burden is not None:
            told = inside(tx, child, burden)
        else:
            try:
                told = inside(tx, child, LookWeight())
            except TooHeavy:
                told = {UNREADABLE: f"what the resources and outputs of its stack tell weighs more than {TOLD_MAX}"}
        properties = {**seen.observation.properties, **told}
        world.seen[row.key] = Seen(replace(seen.observation, properties=properties), seen.number)


def inside(tx: Connection, child: Row[Any], burden: LookWeight) -> dict[str, Any]:
    """Return the members and outputs of a child stack.

    Returns:
        `{"members": {name: {"reference", "attributes", "failed"}}, "outputs": {name: value}}`. Members are those that
        have been made, whatever happens to them now. Only a stack made from a template has outputs; a value is None
        where it cannot be resolved.

    Raises:
        TooHeavy: They weigh more than `burden` has left.
    """
    facts = stacks.facts(child)
    desired = stacks.desired_of(tx, child.id, child.revision)
    compiled = None
    if desired.kind == "template":
        compiled = compile_desired(desired, Identity(facts.id, facts.name, facts.project))
    members: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for number in range(child.shards):
        rows, seen = shard_state.load_rows(tx, child.id, number)
        world = World(facts, number, {} if compiled is None else compiled.definitions, rows, seen)
        # Attributes of its resources may be those of stacks nested in it: so on down to the last level.
        show_members(tx, world, {row.name for row in rows.values()}, burden)
        members |= _members(world, burden)
        if compiled is not None and number == 0:
            outputs = _outputs(world, compiled, burden)
    return {"members": members, "outputs": outputs}


def _members(world: World, burden: LookWeight) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # Several rows may have one name while a replacement is under way: the last in this order is what is shown.
    made = sorted((row for row in world.rows.values() if row.handle and not row.deleting), key=_standing)
    for row in made:
        kind = type_of(row.type)
        thing = thing_of(world, row, kind)
        attributes, failed = kind.all_attributes(thing), row.status == Status.FAILED
        burden.bear(attributes)
        found[row.name] = {"reference": kind.reference(thing), "attributes": attributes, "failed": failed}
    return found


def _outputs(world: World, compiled: Compiled, burden: LookWeight) -> dict[str, Any]:
    by_name: dict[str, list[Resource]] = {}
    for row in world.rows.values():
        by_name.setdefault(row.name, []).append(row)
    rows = ((name, current_row(alike, world.stack)) for name, alike in by_name.items())
    scope = RowScope(world, {name: row for name, row in rows if row is not None})
    found = {name: _value(output.value, scope) for name, output in compiled.outputs.items() if output.active}
    burden.bear(found)
    return found


def _value(tree: Any, scope: RowScope) -> Any:
    try:
        return evaluate(tree, scope)
    except Rejected:
        return None


def _references(tx: Connection, child: Row[Any]) -> dict[str, Any]:
    """Return the reference of each member of a group by its name.

    Raises:
        Terminal: The members are too heavy to be read.
    """
    try:
        return {name: member["reference"] for name, member in inside(tx, child, LookWeight())["members"].items()}
    except TooHeavy as error:
        message = (
            f"what the members of the group tell weighs more than {TOLD_MAX}: name those to remove by their numbers"
        )
        raise Terminal(message) from error


def _standing(row: Resource) -> tuple[bool, int]:
    """Return a sort key; of several rows of one name the last stands for it: a complete one, then the newest."""
    return row.status == Status.COMPLETE, row.born
