"""Steps and their intents: how a decision is stored before anything acts on it (invariant 3, CONTRIBUTING.md). Pure."""

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
"""Seconds after which a resource that is well has its failed attempts forgotten."""


@dataclass(slots=True)
class ResolvedResource:
    """Desired state of one resource with all functions resolved.

    For `mark` and `renewed` see `planner.actions.restore`.
    """

    definition: Definition
    kind: ResourceType
    values: dict[str, Any]
    metadata: Any
    requires: list[str]
    mark: Mapping[str, Any] | None = None
    renewed: frozenset[str] = frozenset()


class Intents:
    """Makes the steps for the rows of one world.

    Args:
        current: Name -> the row that stands for it; the frontier keeps it up to date.
        keys: Supply of fresh row keys, since randomness is an input.
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
        """Resolve the desired state of a resource.

        Args:
            row: The row that should be so; None for a new one.

        Raises:
            Rejected: A resource that it depends on gave values that do not fit.
            Terminal: As above.
        """
        kind = resource_type(definition.type)
        tree = definition.properties
        values = kind.check(tree if definition.static else evaluate(tree, self.scope), ("resources", definition.name))
        metadata = definition.metadata
        if metadata:
            metadata = evaluate(metadata, self.scope)
        # Literal values have been weighed with the template.
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
            # A replacement inherits the count of attempts, or a thing that breaks again and again would be replaced
            # without delay.
            calm = replaces.status == Status.COMPLETE and now - replaces.updated_at >= CALM_S
            row.attempts = 0 if calm else replaces.attempts
            self._inherit_healing(row, replaces)
        return row

    def _inherit_healing(self, row: Resource, replaces: Resource) -> None:
        """Pass the mark of healing on to a replacement, which is healed in the place of its predecessor."""
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
            # Its `replaced_by` has changed.
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
        # A token for each try: what a given-up try still makes carries the old one, and is deleted by it (ADR 0012).
        row.token = token(row.key, self.world.next_stamp())
        step = Step(Verb.CREATE, row, spec=self._spec(want, row))
        self._intend(step, want, Action.CREATE, outcome.CHANGED, now)
        return step

    def _failed_step(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        # Failing again for the same revision is no news, so there is no second event.
        known = row.failed and row.revision == self.world.stack.revision and row.action == (action or row.action)
        row.action = action or row.action
        if isinstance(error, Exception):
            # It failed of the values it read: when one of them changes it may be retried.
            row.resolved = self.world.stamp
        record = outcome.fail(self.world, row, outcome.failure_text(row, error), now)
        return Step(Verb.RECORD, row, events=[] if known else record.events)

    def _spec(self, want: ResolvedResource, row: Resource) -> dict[str, Any]:
        return self._spec_of(want.kind, row, want.kind.complete(want.values))

    def _spec_of(self, kind: ResourceType, row: Resource, properties: Mapping[str, Any]) -> dict[str, Any]:
        return kind.spec(properties, physical_name(self.world.stack.name, row.name, row.key, kind.name_limit))

    def _asked(self, row: Resource) -> dict[str, Any]:
        """Return the cloud object that was last requested."""
        kind = type_of(row.type)
        return self._spec_of(kind, row, kind.complete(row.properties))

    def _intend(self, step: Step, want: ResolvedResource, action: Action, reason: str, now: float) -> None:
        """Write the intent into the row, and its event into the step (invariant 3, CONTRIBUTING.md)."""
        row = step.row
        # An act that is intended again, or redirected, has begun already as far as users are concerned.
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
        """Replace a thing: the new one is created first, then its dependants move, then the old one is deleted.

        Args:
            why: What cannot be done in place.
        """
        # Nothing was made for this row, so it can be used itself.
        if row.handle == "" and row.acted_at is None and row.token == "":
            return self._begin(definition, row, now)
        restricted = self._restricted(definition, "replace", row, now)
        if restricted is not None:
            return restricted
        step = self._create(definition, now, replaces=row)
        step.reason = why
        return step

    def _restricted(self, definition: Definition, action: str, row: Resource, now: float) -> Step | None:
        """Refuse an act that the environment forbids, without touching the thing; None where it is allowed."""
        if action not in definition.restricted:
            return None
        return self._refuse(row, ResourceActionRestricted(action), now)

    def _refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        """Fail the stack for an update that its environment forbids; the resource stays as it is, as in Heat.

        A resource that cannot stay as it is fails itself: one in progress, and one that must follow a change while its
        stack is at rest.
        """
        if row.busy or self.world.stack.status != Status.IN_PROGRESS:
            return self._failed_step(row, error, now, Action.UPDATE)
        event = outcome.event_of(row, Status.FAILED, str(error), Action.UPDATE)
        reason = f"Resource {Action.UPDATE} failed: {outcome.failure_text(row, error)}"
        return Step(Verb.RECORD, row, events=[event], fails=reason)

    def _delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        """Replace a broken thing by deleting it first, since it may hold what the new one needs; the new row waits.

        What the broken row was to replace is from now on replaced by the new row.
        """
        new = self._new_row(definition, now, replaces=row)
        older = [each for each in self.world.rows.values() if each.replaced_by == row.key and not each.deleting]
        for each in older:
            each.replaced_by = new.key
        row.action, row.status, row.acted_at, row.due_at = Action.DELETE, Status.IN_PROGRESS, None, None
        row.revision = self.world.stack.revision
        # An intent for another action, as a snapshot of the whole stack, must not be taken for one of this deletion.
        row.intent = None
        row.updated_at = now
        deleting = outcome.event_of(row, Status.IN_PROGRESS, row.reason)
        return Step(Verb.RECORD, new, inserted=True, events=[deleting], also=[row, *older])

    def _halt(self, name: str) -> Waiting | None:
        """Return a reason to wait if the newest revision has failed, so that nothing new is begun for it."""
        if not self.halted:
            return None
        return Waiting(name, Why.HALTED, reason=self.world.stack.reason)

    def _absent_requirements(self, definition: Definition) -> Waiting | None:
        """Return a reason to wait if a required thing is known to be gone, and is not brought back for now.

        What is made against it would fail, or hold on to an id that means nothing (ADR 0047).
        """
        gone = conditions.absent_requirements(self.world, definition, self.current)
        if not gone:
            return None
        names, key = ", ".join(row.name for row in gone), self._key_of(definition.name)
        return Waiting(definition.name, Why.REQUIRES, tuple(row.key for row in gone), f"{names} is gone", key=key)

    def _key_of(self, name: str) -> str:
        return self.current[name].key if name in self.current else ""

    def _changed(self, want: ResolvedResource, row: Resource) -> frozenset[str]:
        """Return the names of the properties whose desired values differ from those last requested."""
        if want.values == row.properties:
            return want.renewed
        # With defaults, since a value that is given and equals its default is no change.
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
        """Return why a change cannot be made in place, or "".

        Args:
            before: Properties with defaults, as last requested.
            after: Desired properties with defaults.

        Raises:
            Rejected: The change cannot be made at all.
            Terminal: As above.
        """
        reason = want.kind.replacement_reason(before, after, self._changed(want, row))
        return reason or want.kind.observed_replacement_reason(thing_of(self.world, row, want.kind), after)

    def _update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        """Bring a thing to new values in place; the request names what differs, and what the cloud refused before.

        Args:
            before: Properties, with defaults, that the thing has for certain; empty if that is not known.
        """
        restricted = self._restricted(want.definition, "update", row, now)
        if restricted is not None:
            return restricted
        # The request names fields of the cloud's object, not properties, so the fields are compared.
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
        """Complete an update that does not concern the cloud: only the row changes."""
        row = step.row
        row.acted_at = now
        step.verb = Verb.RECORD
        step.events.extend(outcome.complete(self.world, row, now).events)
        return step
