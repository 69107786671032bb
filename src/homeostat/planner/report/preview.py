"""Preview of an update: what would be decided, with acts that are only noted (ADR 0025). Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import ResourceActionRestricted
from homeostat.model.observed import Verdict
from homeostat.model.plan import SETTLED, Decision, Step, Verb
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource, World
from homeostat.planner.context import Context, ResolvedResource
from homeostat.planner.current import current_row
from homeostat.planner.decide import decide
from homeostat.planner.lifecycle import external, in_progress, update
from homeostat.planner.lifecycle.delete import RETAINED
from homeostat.planner.scope import RowScope, thing_of
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
        why: Cause of the change; "" where the differences say it all.
        row: The row as it is now; None for a resource that does not exist.
        before: Properties as last requested, without defaults.
        after: Desired properties, without defaults; values that are not known yet are `UNKNOWN`.
        changed: Names of the properties that differ.
        sections: Other sections of the definition that differ, as (name, before, after).
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


Inside = Callable[[ResourcePreview], bool]
"""Previews the nested stack behind a resource, and returns whether anything would change there."""


class ShardPreviewer:
    """Previews one shard: it decides as ever, and its acts write notes instead of intents.

    Args:
        world: The shard as it is, with the facts of the stack and the definitions as they would be. Its rows are
            changed.
        inside: Previews the nested stack behind a resource.
        looks: Whether to count what the newest observations show to be wrong, too.
    """

    def __init__(self, world: World, inside: Inside = lambda _: True, *, looks: bool = False) -> None:
        by_name: dict[str, list[Resource]] = {}
        for row in world.rows.values():
            by_name.setdefault(row.name, []).append(row)
        for row in world.rows.values():
            if row.marks is not None and row.marks.requested:
                row.marks = replace(row.marks, requested=()) or None  # it ends before the update, or after it
        chosen = {name: current_row(rows, world.stack) for name, rows in by_name.items()}
        current = {name: row for name, row in chosen.items() if row is not None}
        self._world, self._current, self._inside = world, current, inside
        self._notes: dict[str, ResourcePreview] = {}
        # No supply of keys: a preview makes no rows.
        self._context = Context(
            world,
            current,
            iter(()),
            lambda context: NotedActs(context, self._notes),
            OpenGates,
            self.scope(world, current),
            judges=looks,
        )

    def scope(self, world: World, current: dict[str, Resource]) -> RowScope:
        """Return what resolves references and attributes."""
        return NotedScope(world, current, self._notes)

    def preview(self, now: float) -> list[ResourcePreview]:
        """Return all resources, each after what it requires, and then those that would be deleted."""
        definitions = self._world.definitions
        for name in ordered({name: each.requires for name, each in definitions.items()}):
            self._preview(definitions[name], now)
        going = [row for name, row in self._current.items() if name not in definitions]
        return [*self._notes.values(), *map(_going, going)]

    def _preview(self, definition: Definition, now: float) -> None:
        row = self._current.get(definition.name)
        note = ResourcePreview(definition.name, definition.called or definition.type, row=row, definition=definition)
        if row is not None:
            note.before = note.after = row.properties
            was = (_metadata(row), row.deletion_policy)
        self._notes[definition.name] = note
        # A row in INIT has no thing: whether it was made for a hook or as a replacement, the thing would be added.
        if row is not None and row.action == Action.INIT:
            self._context.acts.begin(definition, row, now)
        else:
            decide(self._context, definition, now)
        if row is not None and note.fate in (Fate.UNCHANGED, Fate.UPDATED):
            note.sections = _sections(was, (_metadata(row), row.deletion_policy))
            if POLICY in note.changed:
                note.sections += (("update_policy", note.before.get(POLICY), note.after.get(POLICY)),)
            if CREATION in note.changed:
                note.sections += (("creation_policy", note.before.get(CREATION), note.after.get(CREATION)),)
            if note.sections:
                note.fate = Fate.UPDATED
        if isinstance(type_of(definition.type), NestedStack):
            # The files of a nested stack may have changed without any effect inside: then nothing happens to it.
            moved = self._inside(note)
            if not moved and note.fate is Fate.UPDATED and not (as_changed(note.changed) or note.sections):
                note.fate = Fate.UNCHANGED


def _metadata(row: Resource) -> Any:
    """Return the metadata that a row has in the end: those of a group may reach its members step by step."""
    return row.metadata if row.new_metadata is None else row.new_metadata


class NotedActs:
    """Acts that are only noted; see `planner.context.Acts`. Their steps are never taken."""

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
        step = self._note(row.name, Fate.UPDATED, why, want)
        row.properties, row.metadata = want.values, want.metadata
        row.deletion_policy = want.definition.deletion_policy
        return step

    def go_on(self, definition: Definition, row: Resource, now: float) -> Decision:
        # What is in progress counts as done.
        redirected = in_progress.redirect(self._context, definition, row, now)
        return redirected or update.compare(self._context, definition, row, now)

    def heal(self, row: Resource, verdict: Verdict, now: float, step: Step) -> Decision:
        done = self._note(row.name, Fate.UPDATED, f"it is brought back: {verdict.reason}")
        note, thing = self._notes[row.name], thing_of(self._context.world, row)
        there = type_of(row.type).observed_properties(thing)
        note.changed = tuple(name for name in verdict.drifted if name in there)
        note.before = {**thing.properties, **{name: there[name] for name in note.changed}}
        note.after = thing.properties
        return done

    def stand_for(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        if row is not None and row.action != Action.INIT:
            return self._note(definition.name, Fate.UPDATED, f"it is looked for again: {row.reason}")
        note = self._notes[definition.name]
        external_id = external.external_id(self._context, definition)
        note.fate, note.why = Fate.ADDED, f"it stands for {external_id}, which is not touched"
        return SETTLED

    def fail(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        note = self._notes[row.name]
        note.fate, note.why = Fate.UPDATED, f"it would fail: {error}"
        return Step(Verb.RECORD, row)

    def refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        return self.fail(row, error, now)

    def _note(self, name: str, fate: Fate, why: str = "", want: ResolvedResource | None = None) -> Step:
        """Note the effect on a resource."""
        note = self._notes[name]
        note.fate, note.why = fate, why
        if want is not None:
            note.after = want.values
        elif note.definition is not None and fate in (Fate.ADDED, Fate.REPLACED):
            note.after = self._context.resolve(note.definition).values
        if note.row is not None and fate in (Fate.UPDATED, Fate.REPLACED):
            note.changed = _differing(type_of(note.row.type), note.before, note.after)
        world = self._context.world
        return Step(Verb.RECORD, note.row or Resource("", world.stack.id, world.shard, name, note.type))


class OpenGates:
    """Gates that put off nothing: a hook or a limit on healing does not change what an act is."""

    def __init__(self, context: Context) -> None:
        pass

    def stop(self, definition: Definition, row: Resource | None, now: float) -> None:
        return None

    def held_back(
        self, row: Resource, reason: str, now: float, *, gone: bool = False, destroys: bool = True, alive: bool = False
    ) -> None:
        return None

    def waits_for_reports(self, row: Resource) -> str:
        return ""

    def look_once_more(self, row: Resource, now: float) -> None:
        return None

    def begin_healing(self, step: Step) -> None:
        return None


class NotedScope(RowScope):
    """Resolves references and attributes from rows, as far as they will be the same after the update."""

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
        """Return whether the attribute may be another one after the update."""
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
        return f"its type changes from {row.shown_type} to {definition.called or definition.type}"
    if row.failed:
        return f"it failed before: {row.reason}"
    return "every update replaces it" if type_of(row.type).renewed else row.reason


def _going(row: Resource) -> ResourcePreview:
    """Return the preview of a resource that is not in the template any more."""
    why = {
        DeletionPolicy.RETAIN: RETAINED,
        DeletionPolicy.SNAPSHOT: "a snapshot of it is made first",
    }.get(DeletionPolicy(row.deletion_policy), "")
    return ResourcePreview(row.name, row.shown_type, Fate.DELETED, why, row, before=row.properties)


def as_changed(names: Iterable[str]) -> list[str]:
    """Return the properties that users have set among these; internal ones stand for files and sections elsewhere."""
    return list(public_properties(dict.fromkeys(names)))
