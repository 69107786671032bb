"""Preview of an update: the planner's decisions, with acts that are only noted (ADR 0025). Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import ResourceActionRestricted
from homeostat.model.observed import Condition, Verdict
from homeostat.model.plan import SETTLED, Decision, Find, Observe, Operate, Record, Step, Update
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.waiting import REASONS, Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner.actions import check
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.current import current_row
from homeostat.planner.decide import decide
from homeostat.planner.lifecycle import external, in_progress, update
from homeostat.planner.lifecycle.delete import RETAINED
from homeostat.planner.policies import healing
from homeostat.planner.scope import RowScope, thing_of
from homeostat.planner.states import absence
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import CREATION, POLICY, NestedStack, public_properties
from homeostat.resources.registry import type_of
from homeostat.templates import UNKNOWN
from homeostat.templates.graph import ordered
from homeostat.templates.tree import holds


class Fate(StrEnum):
    """Effect of an update on a resource, in the words of Heat's API."""

    UNCHANGED = "unchanged"
    UPDATED = "updated"
    REPLACED = "replaced"
    ADDED = "added"
    DELETED = "deleted"


@dataclass(slots=True)
class ResourcePreview:
    """Preview of one resource.

    Attributes:
        why: Cause of the change; "" if the differences are the cause.
        row: The current row; None for a new resource.
        before: Properties as last requested, without defaults.
        after: Desired properties, without defaults; not yet known values are `UNKNOWN`.
        changed: Names of the changed properties.
        sections: Further changed sections of the definition, as (name, before, after).
        decided: Whether an act or a failure was noted.
    """

    name: str
    type: str
    fate: Fate = Fate.UNCHANGED
    why: str = ""
    row: Resource | None = None
    definition: Definition | None = None
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    sections: tuple[tuple[str, Any, Any], ...] = ()
    decided: bool = False


FAILS = "it would fail: "
"""Prefix of the reason of a resource that would fail the update."""
WAITS = "it would wait: "
"""Prefix of the reason of a resource that would only wait for now."""

Inside = Callable[[ResourcePreview], bool]
"""Previews the nested stack behind a resource, and returns whether anything would change there."""


UNSAID = frozenset({Why.BUILDING, Why.LEAVING})
"""Reasons to wait that a preview omits, since acts in progress count as done."""
DECISIONS_MAX = 8
"""Maximum number of decisions about a resource: some merely end a wait, or record a fact, before the next decision."""


class ShardPreviewer:
    """Previews one shard by the planner's decisions, with acts that write notes instead of intents.

    Args:
        world: The current shard with the new facts of the stack and the new definitions; its rows are changed.
        inside: Previews the nested stack behind a resource.
    """

    def __init__(self, world: World, inside: Inside = lambda _: True) -> None:
        by_name: dict[str, list[Resource]] = {}
        for row in world.rows.values():
            by_name.setdefault(row.name, []).append(row)
        for row in world.rows.values():
            if row.marks is not None and row.marks.requested:
                # Requested operations run before or after the update.
                row.marks = replace(row.marks, requested=()) or None
        chosen = {name: current_row(rows, world.stack) for name, rows in by_name.items()}
        current = {name: row for name, row in chosen.items() if row is not None}
        self._world, self._current, self._inside, self._rows = world, current, inside, by_name
        self._notes: dict[str, ResourcePreview] = {}
        # No supply of keys: a preview creates no rows.
        self._context = PreviewContext(
            world,
            current,
            iter(()),
            lambda context: DryRunActions(context, self._notes),
            PreviewGates,
            self.scope(world, current),
        )
        self._context.notes = self._notes

    def scope(self, world: World, current: dict[str, Resource]) -> RowScope:
        """Return the scope that resolves references and attributes."""
        return PreviewScope(world, current, self._notes)

    def preview(self, now: float) -> list[ResourcePreview]:
        """Return all resources in the order of their dependencies, and then the resources to be deleted."""
        definitions = self._world.definitions
        # In the order of dependencies, since a replaced resource gives its dependants unknown values.
        for name in ordered({name: definition.requires for name, definition in definitions.items()}):
            self._preview(definitions[name], now)
        return [*self._notes.values(), *map(_going, self._leaving())]

    def going(self, note: ResourcePreview) -> list[Resource]:
        """Return the rows whose things would be deleted for a resource, including leftovers of failed updates."""
        if note.fate is Fate.REPLACED:
            return [row for row in self._rows[note.name] if not (row.deleting and row.busy)]
        return [note.row] if note.fate is Fate.DELETED and note.row is not None else []

    def _leaving(self) -> list[Resource]:
        """Return the rows to be deleted, one for each name: resources that left the template, or replaced rows."""
        rows: dict[str, Resource] = {}
        for row in self._world.rows.values():
            note, current = self._notes.get(row.name), self._current.get(row.name)
            goes_anyway = note is not None and (row is current or note.fate is Fate.REPLACED)
            if not goes_anyway and not (row.deleting and row.busy) and (row.handle or row is current):
                rows[row.name] = current if note is None and current is not None else row
        return list(rows.values())

    def _preview(self, definition: Definition, now: float) -> None:
        row = self._current.get(definition.name)
        note = ResourcePreview(definition.name, definition.shown_type, row=row, definition=definition)
        if row is not None:
            note.before = note.after = row.properties
            was = (_metadata(row), row.deletion_policy)
        self._notes[definition.name] = note
        # A row in INIT, stored for a hook or as a replacement, has no thing yet: the thing would be added.
        if row is not None and row.action == Action.INIT:
            self._context.acts.begin(definition, row, now)
        else:
            self._decide(definition, note, now)
        if row is not None and note.fate in (Fate.UNCHANGED, Fate.UPDATED):
            note.sections = _sections(was, (_metadata(row), row.deletion_policy))
            if POLICY in note.changed:
                note.sections += (("update_policy", note.before.get(POLICY), note.after.get(POLICY)),)
            if CREATION in note.changed:
                note.sections += (("creation_policy", note.before.get(CREATION), note.after.get(CREATION)),)
            if note.sections:
                note.fate = Fate.UPDATED
        if isinstance(type_of(definition.type), NestedStack) and not note.why.startswith(FAILS):
            # The files of a nested stack may have changed without an effect inside: then it is unchanged. And an update
            # may reach a nested stack only to heal its resources.
            moved = self._inside(note)
            changes = note.changed if moved else as_changed(note.changed)
            if note.fate is Fate.UPDATED and not (changes or note.sections or (moved and note.why)):
                note.fate, note.why = Fate.UNCHANGED, ""

    def _decide(self, definition: Definition, note: ResourcePreview, now: float) -> None:
        """Decide until an act is noted or there is none, since some decisions only lead to the next decision."""
        for _ in range(DECISIONS_MAX):
            decision = decide(self._context, definition, now)
            if note.decided or not isinstance(decision, Step | Waiting):
                return
            if isinstance(decision, Waiting) and decision.why is Why.BACKOFF and (decision.due_at or 0.0) > now:
                now = decision.due_at or now  # the time of the next try
            elif isinstance(decision, Waiting):
                if decision.why not in UNSAID:
                    note.why = _waits(decision)
                return
            elif not isinstance(decision.act, Find | Observe | Record):
                # The acts of a nested stack are shown by its resources.
                inside = isinstance(type_of(definition.type), NestedStack)
                note.fate, note.decided = Fate.UPDATED, True
                note.why = "" if inside else decision.row.reason
                return


def _waits(waiting: Waiting) -> str:
    """Return the reason of a wait in one line."""
    words = REASONS[waiting.why].words
    return f"{WAITS}{words}: {waiting.reason}" if waiting.reason else f"{WAITS}{words}"


def _metadata(row: Resource) -> Any:
    """Return the final metadata of a row: metadata of a group may reach its members step by step."""
    return row.metadata if row.new_metadata is None else row.new_metadata


class PreviewContext(Context):
    """A context in which resources noted to be created or replaced count as existing."""

    notes: Mapping[str, ResourcePreview]

    def missing_requirements(self, definition: Definition) -> Waiting | None:
        absent = absence.absent_requirements(self.world, definition, self.current)
        new = (Fate.ADDED, Fate.REPLACED)
        if all(row.name in self.notes and self.notes[row.name].fate in new for row in absent):
            return None
        return super().missing_requirements(definition)


class DryRunActions:
    """Acts that are only noted; see `planner.context.Acts`. Their steps are never executed."""

    def __init__(self, context: Context, notes: Mapping[str, ResourcePreview]) -> None:
        self._context = context
        self._notes = notes

    def create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        if replaces is None:
            return self._note(definition.name, Fate.ADDED)
        return self._note(definition.name, Fate.REPLACED, replaces.reason)

    def begin(self, definition: Definition, row: Resource, now: float) -> Step:
        return self._note(definition.name, Fate.ADDED, row.reason if row.failed else "")

    def replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        restricted = self._context.restricted(definition, "replace", row, now)
        return restricted or self._note(definition.name, Fate.REPLACED, why or _why_replaced(definition, row))

    def delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        return self._note(definition.name, Fate.REPLACED, _why_replaced(definition, row))

    def update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        restricted = self._context.restricted(want.definition, "update", row, now)
        if restricted is not None:
            return restricted
        why = f"it failed before: {row.reason}" if row.failed else ""
        self._add_drift(row, now)
        step = self._note(row.name, Fate.UPDATED, why, want)
        row.properties, row.metadata = want.values, want.metadata
        row.deletion_policy = want.definition.deletion_policy
        return step

    def go_on(self, definition: Definition, row: Resource, now: float) -> Decision:
        # An act in progress counts as done.
        redirected = in_progress.redirect(self._context, definition, row, now)
        return redirected or update.compare(self._context, definition, row, now)

    def heal(self, row: Resource, verdict: Verdict, now: float, act: Operate | Update) -> Decision:
        """Note the healing of a resource, and then the changes of its definition, which follow the healing."""
        note = self._notes[row.name]
        self._add_drift(row, now)
        brought_back = f"it is brought back: {verdict.reason}"
        note.fate, note.why, note.decided = Fate.UPDATED, brought_back, True
        note.changed = _differing(type_of(row.type), note.before, note.after)
        decision = update.compare(self._context, self._context.world.definitions[row.name], row, now)
        if note.why != brought_back:
            note.why = f"{note.why}; {brought_back}" if note.why else brought_back
        return decision if isinstance(decision, Step) else Step(row, act)

    def _add_drift(self, row: Resource, now: float) -> None:
        """Use the observed values as former values if the resource has drifted and would be healed."""
        note, kind = self._notes[row.name], type_of(row.type)
        thing = thing_of(self._context.world, row, kind)
        if not thing.seen.present:
            return
        verdict = kind.judge(thing, now)
        if verdict.condition is not Condition.DRIFTED or not check.heals(self._context.world, row):
            return
        observed = {name: value for name, value in kind.observed_properties(thing).items() if name in verdict.drifted}
        note.before = {**thing.properties, **note.before, **observed}
        note.after = {**thing.properties, **note.after}

    def reference_external(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        if row is not None and row.action != Action.INIT:
            return self._note(definition.name, Fate.UPDATED, f"it is looked for again: {row.reason}")
        note = self._notes[definition.name]
        external_id = external.external_id(self._context, definition)
        note.fate, note.why = Fate.ADDED, f"it stands for {external_id}, which is not touched"
        note.decided = True
        return SETTLED

    def fail(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        note = self._notes[row.name]
        note.fate, note.why, note.decided = Fate.UPDATED, f"{FAILS}{error}", True
        return Step(row)

    def refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        return self.fail(row, error, now)

    def _note(self, name: str, fate: Fate, why: str = "", want: ResolvedResource | None = None) -> Step:
        """Note the effect on a resource."""
        note = self._notes[name]
        note.fate, note.why, note.decided = fate, why, True
        if want is not None:
            note.after = want.values
        elif note.definition is not None and fate in (Fate.ADDED, Fate.REPLACED):
            note.after = self._context.resolve(note.definition).values
        if note.row is not None and fate in (Fate.UPDATED, Fate.REPLACED):
            note.changed = _differing(type_of(note.row.type), note.before, note.after)
        world = self._context.world
        return Step(note.row or Resource("", world.stack.id, world.shard, name, note.type))


class PreviewGates:
    """Gates that postpone only acts that an update would not take: acts without consent, or after a doubted look.

    A hook or the brake on healing does not change the act.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def stop(self, definition: Definition, row: Resource | None, now: float) -> None:
        return None

    def postpone_healing(
        self,
        row: Resource,
        reason: str,
        now: float,
        *,
        absent: bool = False,
        destroys: bool = True,
        alive: bool = False,
    ) -> Decision | None:
        return healing.refused(self._context, row, reason, now, absent=absent, destroys=destroys)

    def waits_for_reports(self, row: Resource) -> str:
        return ""

    def look_once_more(self, row: Resource, now: float) -> None:
        return None

    def hand_over(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        return None

    def begin_healing(self, step: Step) -> None:
        return None


class PreviewScope(RowScope):
    """Resolves references and attributes from rows if they will be unchanged after the update."""

    unknown: Any = UNKNOWN

    def __init__(self, world: World, current: dict[str, Resource], notes: Mapping[str, ResourcePreview]) -> None:
        super().__init__(world, current)
        self._notes = notes

    def reference(self, resource: str) -> Any:
        return UNKNOWN if self._is_new(resource) else super().reference(resource)

    def attribute(self, resource: str, name: str, path: Any) -> Any:
        return UNKNOWN if self._moves(resource, name) else super().attribute(resource, name, path)

    def attributes(self, resource: str) -> Any:
        return UNKNOWN if self._moves(resource, "") else super().attributes(resource)

    def _is_new(self, resource: str) -> bool:
        note = self._notes.get(resource)
        return note is None or note.row is None or note.fate in (Fate.ADDED, Fate.REPLACED) or not note.row.handle

    def _moves(self, resource: str, name: str) -> bool:
        """Return whether an attribute may change by the update."""
        note = self._notes.get(resource)
        if note is None or note.row is None or self._is_new(resource):
            return True
        if note.fate is not Fate.UPDATED:
            return note.row.busy and note.row.action == Action.CREATE
        kind = type_of(note.row.type)
        if isinstance(kind, NestedStack) or not name:
            return True
        return name in note.changed if kind.kind else holds(dict(note.after), UNKNOWN)


def _differing(kind: ResourceType, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    old, new = kind.complete(before), kind.complete(after)
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _sections(was: tuple[Any, str], now: tuple[Any, str]) -> tuple[tuple[str, Any, Any], ...]:
    names = ("metadata", "deletion_policy")
    return tuple(
        (name, before, after)
        for name, before, after in zip(names, was, now, strict=True)
        if (before or None) != (after or None)
    )


def _why_replaced(definition: Definition, row: Resource) -> str:
    if definition.type != row.type:
        return f"its type changes from {row.shown_type} to {definition.shown_type}"
    if row.failed:
        return f"it failed before: {row.reason}"
    return "every update replaces it" if type_of(row.type).renewed else row.reason


def _going(row: Resource) -> ResourcePreview:
    """Return the preview of a deletion."""
    why = {
        DeletionPolicy.RETAIN: RETAINED,
        DeletionPolicy.SNAPSHOT: "a snapshot of it is made first",
    }.get(DeletionPolicy(row.deletion_policy), "")
    return ResourcePreview(row.name, row.shown_type, Fate.DELETED, why, row, before=row.properties)


def as_changed(names: Iterable[str]) -> list[str]:
    """Return the properties set by users; internal properties stand for files and sections shown elsewhere."""
    return list(public_properties(dict.fromkeys(names)))
