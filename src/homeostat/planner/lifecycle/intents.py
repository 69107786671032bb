"""Steps, and the intents in their rows: how a decision is put down before anything acts on it (law 3). Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, ResourceActionRestricted, Terminal
from homeostat.model.plan import Step, Verb, Waiting, Why
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions.restore import marked, restoration
from homeostat.planner.evaluation_weight import ShardWeight
from homeostat.planner.lifecycle import hooks
from homeostat.planner.lifecycle.names import physical_name, token
from homeostat.planner.policies import unhealthy
from homeostat.planner.retry import conditions
from homeostat.planner.scope import HEALING, RowScope, thing_of
from homeostat.resources.base import ResourceType
from homeostat.resources.registry import resource_type, type_of
from homeostat.templates import evaluate

CALM_S = 60.0
"""A resource that was well for this long has its failed attempts forgotten."""


@dataclass(slots=True)
class ResolvedResource:
    """The desired state of one resource with all functions resolved. mark, renewed — see `planner.actions.restore`."""

    definition: Definition
    kind: ResourceType
    values: dict[str, Any]
    metadata: Any
    requires: list[str]
    mark: Mapping[str, Any] | None = None
    renewed: frozenset[str] = frozenset()


class Intents:
    """Makes steps for the rows of one world. keys — supply of fresh row keys (randomness is an input).

    current — name -> the row that stands for it, kept up to date by the frontier.
    """

    def __init__(self, world: World, current: dict[str, Resource], keys: Iterator[str]) -> None:
        self.world = world
        self.current = current
        self.keys = keys
        self.scope = RowScope(world, current)
        self.balance = ShardWeight(world, current)
        stack = world.stack
        self.halted = stack.halted
        self.unsettled = world.settled_revision < stack.revision
        self.healing = {row.key for row in world.rows.values() if outcome.is_being_healed(row)}

    def _want(self, definition: Definition, row: Resource | None = None) -> ResolvedResource:
        """Resolve. row — that is to be so, None for a new one. Fails: Rejected, Terminal — what it depends on gave
        values that do not fit."""
        kind = resource_type(definition.type)
        tree = definition.properties
        values = kind.check(tree if definition.static else evaluate(tree, self.scope), ("resources", definition.name))
        metadata = definition.metadata
        if metadata:
            metadata = evaluate(metadata, self.scope)
        if not definition.static or metadata is not definition.metadata:
            self.balance.put(definition.name, values, metadata)
        requires = [self.current[name].key for name in definition.requires if name in self.current]
        found = restoration(self.world, definition.name, kind, values, row)
        return ResolvedResource(definition, kind, found.values, metadata, requires, found.mark, found.renewed)

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
            called=definition.called or None,
        )
        if replaces is not None:
            replaces.replaced_by = row.key
            calm = replaces.status == Status.COMPLETE and now - replaces.updated_at >= CALM_S
            row.attempts = 0 if calm else replaces.attempts
            self._inherit_healing(row, replaces)
        return row

    def _inherit_healing(self, row: Resource, replaces: Resource) -> None:
        """What is made in the place of one that was being healed is healed in its place."""
        if outcome.is_being_healed(replaces):
            row.marks = {HEALING: (replaces.marks or {})[HEALING]}
            replaces.marks = {name: mark for name, mark in (replaces.marks or {}).items() if name != HEALING} or None
            self.healing.discard(replaces.key)
            self.healing.add(row.key)

    def _create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        row = self._new_row(definition, now, replaces)
        step = self._begin(definition, row, now)
        step.inserted = True
        if replaces is not None:
            step.also.append(replaces)
        return step

    def _begin(self, definition: Definition, row: Resource, now: float) -> Step:
        """Intend the creation of a row's thing."""
        unhealthy.forget(row)
        row.type, row.called, row.deletion_policy = (
            definition.type,
            definition.called or None,
            definition.deletion_policy,
        )
        try:
            want = self._want(definition)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now, Action.CREATE)
        row.attempts += 1
        row.token = token(row.key, self.world.next_stamp())
        step = Step(Verb.CREATE, row, spec=self._spec(want, row))
        self._intend(step, want, Action.CREATE, outcome.CHANGED, now)
        return step

    def _failed_step(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        known = row.failed and row.revision == self.world.stack.revision and row.action == (action or row.action)
        row.action = action or row.action
        if isinstance(error, Exception):
            row.resolved = self.world.stamp  # it failed of what it read: when that changes it may be tried again
        record = outcome.fail(self.world, row, outcome.failure_text(row, error), now)
        return Step(Verb.RECORD, row, events=[] if known else record.events)

    def _spec(self, want: ResolvedResource, row: Resource) -> dict[str, Any]:
        return self._spec_of(want.kind, row, want.kind.complete(want.values))

    def _spec_of(self, kind: ResourceType, row: Resource, properties: Mapping[str, Any]) -> dict[str, Any]:
        return kind.spec(properties, physical_name(self.world.stack.name, row.name, row.key, kind.name_limit))

    def _asked(self, row: Resource) -> dict[str, Any]:
        """The cloud object that was last asked for."""
        kind = type_of(row.type)
        return self._spec_of(kind, row, kind.complete(row.properties))

    def _intend(self, step: Step, want: ResolvedResource, action: Action, reason: str, now: float) -> None:
        """Write the intent into the row, and the event that tells of it (law 3)."""
        row = step.row
        if not (row.action == action and row.busy):
            step.events.append(outcome.event_of(row, Status.IN_PROGRESS, reason, action))
        row.action, row.status, row.reason = action, Status.IN_PROGRESS, reason
        row.revision = self.world.stack.revision
        row.properties, row.metadata, row.requires = want.values, want.metadata, want.requires
        row.deletion_policy, row.called = want.definition.deletion_policy, want.definition.called or None
        if want.mark is not None or row.marks is not None:
            row.marks = marked(row, want.mark)
        row.acted_at = row.due_at = row.asked_at = None
        row.retries = 0
        row.intent = {"changed": list(step.changed), "stamp": self.world.next_stamp()}
        row.hooks = hooks.intended(self.world, row, want.definition.hooks)
        row.resolved = self.world.stamp
        row.updated_at = now

    def _replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        """A new one first; dependants move; then the old one goes. why — what cannot be done in place."""
        if row.handle == "" and row.acted_at is None and row.token == "":
            return self._begin(definition, row, now)
        restricted = self._restricted(definition, "replace", row, now)
        if restricted is not None:
            return restricted
        step = self._create(definition, now, replaces=row)
        step.reason = why
        return step

    def _restricted(self, definition: Definition, action: str, row: Resource, now: float) -> Step | None:
        """What the environment forbids is not done, and the thing is not touched."""
        if action not in definition.restricted:
            return None
        return self._refuse(row, ResourceActionRestricted(action), now)

    def _refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        """An update fails its stack, and the resource stays what it is (environment.md section 3). What cannot stay as
        it is has failed itself: it is in progress, or has to follow at rest what has changed."""
        if row.busy or self.world.stack.status != Status.IN_PROGRESS:
            return self._failed_step(row, error, now, Action.UPDATE)
        event = outcome.event_of(row, Status.FAILED, str(error), Action.UPDATE)
        reason = f"Resource {Action.UPDATE} failed: {outcome.failure_text(row, error)}"
        return Step(Verb.RECORD, row, events=[event], fails=reason)

    def _delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        """The broken one goes first, since it may hold what the new one needs; the new row waits for that."""
        new = self._new_row(definition, now, replaces=row)
        row.action, row.status, row.acted_at, row.due_at = Action.DELETE, Status.IN_PROGRESS, None, None
        row.revision = self.world.stack.revision
        row.intent = None  # what was asked for another action, such as a snapshot of the whole stack, is not its own
        row.updated_at = now
        deleting = outcome.event_of(row, Status.IN_PROGRESS, row.reason)
        return Step(Verb.RECORD, new, inserted=True, events=[deleting], also=[row])

    def _halt(self, name: str) -> Waiting | None:
        """Nothing new is begun for a revision that has failed."""
        if not self.halted:
            return None
        return Waiting(name, Why.HALTED, reason=self.world.stack.reason)

    def _absent_requirements(self, definition: Definition) -> Waiting | None:
        """Nothing is made against something that is known to be gone, and is not brought back for now."""
        gone = conditions.absent_requirements(self.world, definition, self.current)
        if not gone:
            return None
        names, key = ", ".join(row.name for row in gone), self._key_of(definition.name)
        return Waiting(definition.name, Why.REQUIRES, tuple(row.key for row in gone), f"{names} is gone", key=key)

    def _key_of(self, name: str) -> str:
        return self.current[name].key if name in self.current else ""

    def _changed(self, want: ResolvedResource, row: Resource) -> frozenset[str]:
        """Names of properties whose desired value differs from what was last asked for."""
        if want.values == row.properties:
            return want.renewed
        before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
        return want.renewed | frozenset(
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        )

    def _update_or_replace(self, want: ResolvedResource, row: Resource, now: float) -> Step:
        before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
        try:
            why = self._must_replace(want, row, before, after)
        except (Rejected, Terminal) as error:
            return self._failed_step(row, error, now, Action.UPDATE)
        if why:
            return self._replace(want.definition, row, now, why)
        return self._update(want, row, before, now)

    def _must_replace(
        self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> str:
        """Why the change cannot be made in place, or "". before, after — properties with defaults.

        Fails: Rejected, Terminal for a change that cannot be made at all.
        """
        reason = want.kind.replaced_by(before, after, self._changed(want, row))
        return reason or want.kind.outgrown(thing_of(self.world, row, want.kind), after)

    def _update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        """Bring the thing to new values in place; what differs is sent, and what the cloud refused before.

        before — properties, with defaults, that it has for certain; empty when that is not known.
        """
        restricted = self._restricted(want.definition, "update", row, now)
        if restricted is not None:
            return restricted
        asked = self._spec_of(want.kind, row, before) if before else {}
        spec = self._spec(want, row)
        refused = set((row.intent or {}).get("changed", ())) if row.acted_at is None else set()
        fields = sorted(
            refused
            | {want.kind.renamed.get(name, name) for name in want.renewed}
            | {field for field in asked.keys() | spec.keys() if asked.get(field) != spec.get(field)}
        )
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
