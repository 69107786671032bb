"""What one resource needs now: a step, nothing, or a named reason to wait. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Condition, Remedy, Verdict
from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.backoff import delay_s
from homeostat.planner.naming import physical_name, token
from homeostat.planner.scope import RowScope, thing_of
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import resource_type
from homeostat.templates import evaluate

ATTEMPTS_MAX = 5
"""Creations tried for one resource before its failure is the user's (engine-semantics.md section 3)."""

CALM_S = 60.0
"""A resource that was well for this long has its failed attempts forgotten."""


@dataclass(frozen=True, slots=True)
class Settled:
    """It is what it should be; dependants may go on. step — a quiet change of its row to store, if any."""

    step: Step | None = None


SETTLED = Settled()
Decision = Step | Settled | Waiting


@dataclass(slots=True)
class Wanted:
    """The desired state of one resource with all functions resolved."""

    definition: Definition
    kind: ResourceType
    values: dict[str, Any]
    metadata: Any
    requires: list[str]


class Decider:
    """Decides about single resources of one world. keys — supply of fresh row keys (randomness is an input).

    current — name -> the row that stands for it, kept up to date by the frontier.
    """

    def __init__(self, world: World, current: dict[str, Resource], keys: Iterator[str]) -> None:
        self.world = world
        self.current = current
        self.keys = keys
        self.scope = RowScope(world, current)
        stack = world.stack
        self.halted = stack.status == Status.FAILED
        self.unsettled = world.settled_revision < stack.revision

    # -- what should exist -------------------------------------------------------------------------------------------

    def keep(self, definition: Definition, now: float) -> Decision:
        """About a resource that should exist, all it requires being done."""
        row = self.current.get(definition.name)
        if row is None:
            return self._halt(definition.name) or self._create(definition, now)
        if row.action == Action.INIT:
            return self._waiting_for_predecessor(row) or self._begin(definition, row, now)
        if row.busy:
            return self._in_progress(definition, row, now)
        if row.failed:
            return self._after_failure(definition, row, now)
        return self._at_rest(definition, row, now)

    def _halt(self, name: str) -> Waiting | None:
        if not self.halted:
            return None
        return Waiting(name, Why.HALTED, reason=self.world.stack.reason)

    def _want(self, definition: Definition) -> Wanted:
        """Resolve. Fails: Rejected, Terminal — what it depends on gave values that do not fit."""
        kind = resource_type(definition.type)
        tree = definition.properties
        values = kind.check(tree if definition.static else evaluate(tree, self.scope), ("resources", definition.name))
        metadata = definition.metadata
        if metadata:
            metadata = evaluate(metadata, self.scope)
        requires = [self.current[name].key for name in definition.requires if name in self.current]
        return Wanted(definition, kind, values, metadata, requires)

    def _new_row(self, definition: Definition, now: float, replaces: Resource | None = None) -> Resource:
        stack = self.world.stack
        row = Resource(
            next(self.keys),
            stack.id,
            self.world.shard,
            definition.name,
            definition.type,
            revision=stack.revision,
            deletion_policy=definition.deletion_policy,
            replaces=replaces.key if replaces is not None else None,
            born=self.world.next_stamp(),
            created_at=now,
            updated_at=now,
        )
        if replaces is not None:
            replaces.replaced_by = row.key
            calm = replaces.status == Status.COMPLETE and now - replaces.updated_at >= CALM_S
            row.attempts = 0 if calm else replaces.attempts
        return row

    def _create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        row = self._new_row(definition, now, replaces)
        step = self._begin(definition, row, now)
        step.inserted = True
        if replaces is not None:
            step.also.append(replaces)
        return step

    def _begin(self, definition: Definition, row: Resource, now: float) -> Step:
        """Intend the creation of a row's thing."""
        row.action, row.status, row.revision = Action.CREATE, Status.IN_PROGRESS, self.world.stack.revision
        row.type, row.deletion_policy = definition.type, definition.deletion_policy
        try:
            want = self._want(definition)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now)
        row.attempts += 1
        row.token = token(row.key, self.world.next_stamp())
        step = Step(Verb.CREATE, row, spec=self._spec(want, row))
        self._intend(step, want, Action.CREATE, outcome.CHANGED, now)
        return step

    def _failed_step(self, row: Resource, error: Exception, now: float) -> Step:
        record = outcome.fail(row, outcome.failure_text(row, error), now)
        return Step(Verb.RECORD, row, events=record.events)

    def _spec(self, want: Wanted, row: Resource) -> dict[str, Any]:
        name = physical_name(self.world.stack.name, row.name, row.key)
        return want.kind.spec(want.kind.complete(want.values), name)

    def _intend(self, step: Step, want: Wanted, action: Action, reason: str, now: float) -> None:
        """Write the intent into the row, and the event that tells of it (law 3)."""
        row = step.row
        if not (row.action == action and row.busy and row.version > 0):
            step.events.append(outcome.event_of(row, Status.IN_PROGRESS, reason, action))
        row.action, row.status, row.reason = action, Status.IN_PROGRESS, reason
        row.revision = self.world.stack.revision
        row.properties, row.metadata, row.requires = want.values, want.metadata, want.requires
        row.deletion_policy = want.definition.deletion_policy
        row.acted_at = row.due_at = None
        row.resolved = self.world.stamp
        row.updated_at = now

    def _waiting_for_predecessor(self, row: Resource) -> Waiting | None:
        old = self.world.rows.get(row.replaces or "")
        if old is not None and old.leaving:
            return Waiting(row.name, Why.LEAVING, (old.key,), old.reason, row.updated_at, key=row.key)
        return None

    # -- in progress -------------------------------------------------------------------------------------------------

    def _in_progress(self, definition: Definition, row: Resource, now: float) -> Decision:
        if row.revision != self.world.stack.revision:
            changed = self._redirected(definition, row, now)
            if changed is not None:
                return changed
        if row.acted_at is None:
            return self._again(definition, row, now)
        verdict = resource_type(row.type).judge(thing_of(self.world, row), now)
        if verdict.condition in (Condition.READY, Condition.DRIFTED):
            seen = self.world.seen[row.key]
            row.judged = seen.number
            return Step(Verb.RECORD, row, events=outcome.complete(self.world, row, now).events)
        if verdict.condition is Condition.ABSENT:
            visible_at = row.acted_at + self.world.listing_lag_s
            if row.action == Action.CREATE and now < visible_at:
                return self._building(row, verdict, visible_at)
            return self._recreate(definition, row, verdict, now)
        if verdict.condition is Condition.BROKEN:
            return self._mend(definition, row, verdict, now)
        if verdict.condition is Condition.UNKNOWN:
            return Waiting(row.name, Why.UNSEEN, reason=verdict.reason, since=row.updated_at, key=row.key)
        return self._building(row, verdict, verdict.due_at)

    def _building(self, row: Resource, verdict: Verdict, due_at: float | None) -> Waiting:
        return Waiting(row.name, Why.BUILDING, (), verdict.reason, row.updated_at, due_at, row.key)

    def _redirected(self, definition: Definition, row: Resource, now: float) -> Decision | None:
        """A newer revision came while this was in progress: None if it wants the same thing still (CV2, CV14)."""
        if definition.type != row.type:
            return self._halt(row.name) or self._replace(definition, row, now)
        try:
            want = self._want(definition)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now)
        if not self._changed(want, row):
            return None
        if row.acted_at is None and row.action == Action.CREATE:
            return None
        if row.action == Action.UPDATE and row.acted_at is not None:
            return self._halt(row.name) or self._update_or_replace(want, row, now)
        if row.action == Action.CREATE:
            return self._halt(row.name) or self._replace(definition, row, now)
        return None

    def _again(self, definition: Definition, row: Resource, now: float) -> Decision:
        """The outcome of an intended act is not known: act again, after a look where that could make a second thing."""
        if row.due_at is not None and row.due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        if row.action == Action.CREATE and row.token:
            return self._find(row, now)
        if row.action == Action.CREATE:
            return self._begin(definition, row, now)
        kind = resource_type(row.type)
        spec = kind.spec(kind.complete(row.properties), physical_name(self.world.stack.name, row.name, row.key))
        return Step(Verb.UPDATE, row, row.reason, spec, changed=tuple(spec))

    def _find(self, row: Resource, now: float) -> Step | Waiting:
        """Look for what a creation without an answer has made, once a cloud that lists late would show it."""
        visible_at = row.updated_at + self.world.listing_lag_s
        if visible_at > now:
            return Waiting(
                row.name, Why.BACKOFF, (), "its creation may have begun", row.updated_at, visible_at, row.key
            )
        return Step(Verb.FIND, row)

    # -- after a failure ---------------------------------------------------------------------------------------------

    def _after_failure(self, definition: Definition, row: Resource, now: float) -> Decision:
        if row.revision == self.world.stack.revision:
            return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
        halted = self._halt(row.name)
        if halted is not None:
            return halted
        row.attempts = 0
        if row.handle == "":
            return self._begin(definition, row, now)
        if row.action == Action.CREATE:
            return self._delete_first(definition, row, now)
        return self._replace(definition, row, now)

    def _replace(self, definition: Definition, row: Resource, now: float) -> Step:
        """A new one first; dependants move; then the old one goes."""
        if row.handle == "" and row.acted_at is None and row.token == "":
            return self._begin(definition, row, now)
        return self._create(definition, now, replaces=row)

    def _delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        """The broken one goes first, since it may hold what the new one needs; the new row waits for that."""
        new = self._new_row(definition, now, replaces=row)
        row.action, row.status, row.acted_at, row.due_at = Action.DELETE, Status.IN_PROGRESS, None, None
        row.revision = self.world.stack.revision
        row.updated_at = now
        deleting = outcome.event_of(row, Status.IN_PROGRESS, row.reason)
        return Step(Verb.RECORD, new, inserted=True, events=[deleting], also=[row])

    def _recreate(self, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
        """Make a missing or broken one anew, at growing intervals, and ask for help after too many attempts (CV13)."""
        if row.attempts >= ATTEMPTS_MAX and row.action == Action.CREATE and row.busy:
            record = outcome.fail(row, outcome.failure_text(row, verdict.reason), now)
            return Step(Verb.RECORD, row, events=record.events)
        calm = row.status == Status.COMPLETE and now - row.updated_at >= CALM_S
        due_at = row.updated_at if calm or row.attempts <= 1 else row.updated_at + delay_s(row.attempts - 1)
        if due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
        noticed = outcome.event_of(row, Status.FAILED, verdict.reason, Action.CHECK)
        row.reason = verdict.reason
        if verdict.condition is Condition.ABSENT:
            step = self._create(definition, now, row)
            row.action, row.status, row.updated_at = Action.CHECK, Status.FAILED, now
        else:
            step = self._delete_first(definition, row, now)
        step.events.insert(0, noticed)
        return step

    def _mend(self, definition: Definition, row: Resource, verdict: Verdict, now: float) -> Decision:
        """The right action for what is broken, as its type knows it."""
        if verdict.remedy is Remedy.OPERATE:
            return self._operate(row, verdict, now)
        if verdict.remedy is Remedy.RECREATE:
            return self._recreate(definition, row, verdict, now)
        if verdict.remedy is Remedy.UPDATE:
            return self._repair(row, verdict, now)
        if not row.busy:
            row.action = Action.CHECK
        record = outcome.fail(row, outcome.failure_text(row, verdict.reason), now)
        return Step(Verb.RECORD, row, events=record.events)

    def _operate(self, row: Resource, verdict: Verdict, now: float) -> Decision:
        return self._heal(row, verdict, now, Step(Verb.OPERATE, row, operation=verdict.operation))

    def _repair(self, row: Resource, verdict: Verdict, now: float) -> Decision:
        kind = resource_type(row.type)
        name = physical_name(self.world.stack.name, row.name, row.key)
        spec = kind.spec(kind.complete(row.properties), name)
        fields = tuple(kind.renamed.get(each, each) for each in verdict.drifted)
        return self._heal(row, verdict, now, Step(Verb.UPDATE, row, spec=spec, changed=fields or tuple(spec)))

    def _heal(self, row: Resource, verdict: Verdict, now: float, step: Step) -> Decision:
        """Intend an act that brings a thing back; the second and later ones in a row at growing intervals."""
        calm = now - row.updated_at >= CALM_S
        attempts = 1 if calm else row.attempts + 1
        due_at = row.updated_at + delay_s(attempts - 2) if attempts > 2 else now
        if due_at > now:
            return Waiting(row.name, Why.BACKOFF, (), verdict.reason, row.updated_at, due_at, row.key)
        row.reason = f"healing: {verdict.reason}"
        if not (row.busy and row.action == Action.CREATE):
            step.events.append(outcome.event_of(row, Status.FAILED, verdict.reason, Action.CHECK))
            row.action, row.status = Action.UPDATE, Status.IN_PROGRESS
            step.events.append(outcome.event_of(row, Status.IN_PROGRESS, row.reason))
        row.acted_at = row.due_at = None
        row.attempts, row.updated_at = attempts, now
        return step

    # -- at rest -----------------------------------------------------------------------------------------------------

    def _at_rest(self, definition: Definition, row: Resource, now: float) -> Decision:
        seen = self.world.seen.get(row.key)
        news = seen is not None and seen.number != row.judged
        if news:
            healing = self._judge_news(definition, row, now)
            if healing is not None:
                return healing
        stale = any(self.current[name].changed > row.resolved for name in definition.requires if name in self.current)
        if stale or (self.unsettled and row.revision != self.world.stack.revision):
            return self._compare(definition, row, now)
        return self._noted(row, now) if news else SETTLED

    def _judge_news(self, definition: Definition, row: Resource, now: float) -> Decision | None:
        """Something about it changed outside: heal it, unless the user switched that off (CV8)."""
        verdict = resource_type(row.type).judge(thing_of(self.world, row), now)
        if not outcome.unfit(verdict) or not self.world.stack.converge:
            return None
        if verdict.condition is Condition.ABSENT:
            return self._recreate(definition, row, verdict, now)
        return self._mend(definition, row, verdict, now)

    def _noted(self, row: Resource, now: float) -> Settled:
        """Its attributes may have changed: remember that they were judged, and let dependants read them again."""
        row.judged = self.world.seen[row.key].number
        row.changed = self.world.next_stamp()
        return Settled(Step(Verb.RECORD, row))

    def _compare(self, definition: Definition, row: Resource, now: float) -> Decision:
        if definition.type != row.type:
            return self._halt(row.name) or self._replace(definition, row, now)
        try:
            want = self._want(definition)
        except (Rejected, Terminal) as error:
            return self._halt(row.name) or self._failed_step(row, error, now)
        if self._changed(want, row):
            return self._halt(row.name) or self._update_or_replace(want, row, now)
        moved = row.requires != want.requires or row.metadata != want.metadata
        if moved or row.deletion_policy != definition.deletion_policy or row.replaced_by is not None:
            row.requires, row.metadata = want.requires, want.metadata
            row.deletion_policy, row.replaced_by = definition.deletion_policy, None
            row.resolved, row.revision = self.world.stamp, self.world.stack.revision
            return Settled(Step(Verb.RECORD, row))
        if any(self.current[name].changed > row.resolved for name in definition.requires if name in self.current):
            row.resolved = self.world.stamp
            return Settled(Step(Verb.RECORD, row))
        return SETTLED

    def _changed(self, want: Wanted, row: Resource) -> frozenset[str]:
        """Names of properties whose desired value differs from what was last asked for."""
        if want.values == row.properties:
            return frozenset()
        before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
        return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))

    def _update_or_replace(self, want: Wanted, row: Resource, now: float) -> Decision:
        changed = self._changed(want, row)
        before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
        try:
            reason = want.kind.replaced_by(before, after, changed)
        except (Rejected, Terminal) as error:
            row.action, row.revision = Action.UPDATE, self.world.stack.revision
            return self._failed_step(row, error, now)
        if reason:
            return self._replace(want.definition, row, now)
        name = physical_name(self.world.stack.name, row.name, row.key)
        asked, spec = want.kind.spec(before, name), want.kind.spec(after, name)
        fields = sorted(field for field in asked.keys() | spec.keys() if asked.get(field) != spec.get(field))
        step = Step(Verb.UPDATE, row, spec=spec, changed=tuple(fields))
        row.attempts = 0
        self._intend(step, want, Action.UPDATE, outcome.CHANGED, now)
        return step if fields or not want.kind.kind else self._updated_without_asking(step, now)

    def _updated_without_asking(self, step: Step, now: float) -> Step:
        """What changed is of no concern to the cloud (a policy of ours): the row alone moves on."""
        row = step.row
        row.acted_at = now
        step.verb = Verb.RECORD
        step.events.extend(outcome.complete(self.world, row, now).events)
        return step

    # -- what should not exist ---------------------------------------------------------------------------------------

    def drop(self, row: Resource, now: float) -> Decision:
        """About a row that is a leftover of replacement or removal, nothing using it any more (CV12)."""
        if row.busy and row.due_at is not None and row.due_at > now and row.acted_at is None and row.token:
            return Waiting(row.name, Why.BACKOFF, (), row.reason, row.updated_at, row.due_at, row.key)
        if row.leaving:
            return self._leaving(row, now)
        if row.busy and row.action == Action.CREATE and row.acted_at is None:
            return self._find(row, now) if row.token else self._forget(row, outcome.CHANGED)
        if row.deletion_policy == DeletionPolicy.RETAIN:
            return self._forget(row, "kept, as its deletion policy says")
        if row.handle == "":
            return self._forget(row, outcome.CHANGED)
        return self._delete(row, now)

    def _leaving(self, row: Resource, now: float) -> Decision:
        if row.failed:
            if row.revision == self.world.stack.revision:
                return Waiting(row.name, Why.FAILED, (), row.reason, row.updated_at, key=row.key)
            return self._delete(row, now)
        if row.acted_at is None:
            return self._delete(row, now) if row.handle else self._forget(row, outcome.CHANGED)
        verdict = resource_type(row.type).judge(thing_of(self.world, row), now)
        if verdict.condition is Condition.ABSENT:
            return self._forget(row, outcome.CHANGED)
        if verdict.remedy is Remedy.ASK:
            record = outcome.fail(row, outcome.failure_text(row, verdict.reason), now)
            return Step(Verb.RECORD, row, events=record.events)
        return Waiting(row.name, Why.BUILDING, (), "it is being deleted", row.updated_at, verdict.due_at, row.key)

    def _forget(self, row: Resource, reason: str) -> Step:
        record = outcome.removed(row, reason)
        return Step(Verb.RECORD, row, reason, removed=True, events=record.events)

    def _delete(self, row: Resource, now: float) -> Step:
        step = Step(Verb.DELETE, row)
        if not (row.leaving and row.busy):
            row.action, row.status, row.reason = Action.DELETE, Status.IN_PROGRESS, outcome.CHANGED
            row.attempts = 0
            step.events.append(outcome.event_of(row, Status.IN_PROGRESS, outcome.CHANGED))
        row.revision = self.world.stack.revision
        row.acted_at = row.due_at = None
        row.updated_at = now
        return step
