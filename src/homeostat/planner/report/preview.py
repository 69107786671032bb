"""Preview of an update, by a `Decider` whose acts are only noted (ADR 0025). Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import ResourceActionRestricted
from homeostat.model.observed import Verdict
from homeostat.model.plan import SETTLED, Decision, Step, Verb, Waiting
from homeostat.model.status import Action, DeletionPolicy
from homeostat.model.world import Resource, World
from homeostat.planner.actions import check
from homeostat.planner.current import current_row
from homeostat.planner.decide import Decider
from homeostat.planner.lifecycle.deletion import KEPT
from homeostat.planner.lifecycle.intents import ResolvedResource
from homeostat.planner.scope import RowScope
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import POLICY, NestedStack, public_properties
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


class ShardPreviewer(Decider):
    """Previews one shard. It differs from its base class by the acts alone: they write a note instead of an intent.

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
        standing = {name: current_row(rows, world.stack) for name, rows in by_name.items()}
        current = {name: row for name, row in standing.items() if row is not None}
        # No supply of keys: a preview makes no rows.
        super().__init__(world, current, iter(()))
        self.notes: dict[str, ResourcePreview] = {}
        self.scope = _Scope(world, current, self.notes)
        self._inside = inside
        self._looks = looks

    def preview(self, now: float) -> list[ResourcePreview]:
        """Return all resources, each after what it requires, and then those that would be deleted."""
        definitions = self.world.definitions
        for name in ordered({name: each.requires for name, each in definitions.items()}):
            self._preview(definitions[name], now)
        going = [row for name, row in self.current.items() if name not in definitions]
        return [*self.notes.values(), *map(_going, going)]

    def _preview(self, definition: Definition, now: float) -> None:
        row = self.current.get(definition.name)
        note = ResourcePreview(definition.name, definition.called or definition.type, row=row, definition=definition)
        if row is not None:
            note.before = note.after = row.properties
            was = (row.metadata, row.deletion_policy)
        self.notes[definition.name] = note
        # A row in INIT has no thing: whether it was made for a hook or as a replacement, the thing would be added.
        if row is not None and row.action == Action.INIT:
            self._note(definition.name, Fate.ADDED)
        else:
            self.keep(definition, now)
        if row is not None and note.fate in (Fate.UNCHANGED, Fate.UPDATED):
            note.sections = _sections(was, (row.metadata, row.deletion_policy))
            if POLICY in note.changed:
                note.sections += (("update_policy", note.before.get(POLICY), note.after.get(POLICY)),)
            if note.sections:
                note.fate = Fate.UPDATED
        if isinstance(type_of(definition.type), NestedStack):
            # The files of a nested stack may have changed without any effect inside: then nothing happens to it.
            moved = self._inside(note)
            if not moved and note.fate is Fate.UPDATED and not (as_changed(note.changed) or note.sections):
                note.fate = Fate.UNCHANGED

    # -- acts that are only noted ------------------------------------------------------------------------------------

    def _note(self, name: str, fate: Fate, why: str = "", want: ResolvedResource | None = None) -> Step:
        """Note the effect on a resource; return a step that is never taken."""
        note = self.notes[name]
        note.fate, note.why = fate, why
        if want is not None:
            note.after = want.values
        elif note.definition is not None and fate in (Fate.ADDED, Fate.REPLACED):
            note.after = self._want(note.definition).values
        if note.row is not None and fate in (Fate.UPDATED, Fate.REPLACED):
            note.changed = _differing(type_of(note.row.type), note.before, note.after)
        return Step(Verb.RECORD, note.row or Resource("", self.world.stack.id, self.world.shard, name, note.type))

    def _create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        if replaces is None:
            return self._note(definition.name, Fate.ADDED)
        return self._note(definition.name, Fate.REPLACED, replaces.reason)

    def _begin(self, definition: Definition, row: Resource, now: float) -> Step:
        return self._note(definition.name, Fate.ADDED, row.reason if row.failed else "")

    def _replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        restricted = self._restricted(definition, "replace", row, now)
        return restricted or self._note(definition.name, Fate.REPLACED, why or _why_replaced(definition, row))

    def _delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        return self._note(definition.name, Fate.REPLACED, _why_replaced(definition, row))

    def _update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        restricted = self._restricted(want.definition, "update", row, now)
        if restricted is not None:
            return restricted
        why = f"it failed before: {row.reason}" if row.failed else ""
        step = self._note(row.name, Fate.UPDATED, why, want)
        row.properties, row.metadata = want.values, want.metadata
        row.deletion_policy = want.definition.deletion_policy
        return step

    def _take(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        if row is not None and row.action != Action.INIT:
            return self._note(definition.name, Fate.UPDATED, f"it is looked for again: {row.reason}")
        note = self.notes[definition.name]
        note.fate, note.why = Fate.ADDED, f"it stands for {self._id_of(definition)}, which is not touched"
        return SETTLED

    def _heal(self, row: Resource, verdict: Verdict, now: float, step: Step) -> Decision:
        return self._note(row.name, Fate.UPDATED, f"it is brought back: {verdict.reason}")

    def _failed_step(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        note = self.notes[row.name]
        note.fate, note.why = Fate.UPDATED, f"it would fail: {error}"
        return Step(Verb.RECORD, row)

    def _refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        return self._failed_step(row, error, now)

    def held_back(
        self, row: Resource, reason: str, now: float, *, gone: bool = False, destroys: bool = True
    ) -> Decision | None:
        return None

    def begin_healing(self, step: Step) -> None:
        return None

    def look_once_more(self, row: Resource, now: float) -> Step | Waiting | None:
        return None

    def came_back(self, definition: Definition, row: Resource | None, now: float) -> Step | None:
        return None

    # -- where what is to come is not known --------------------------------------------------------------------------

    def _before(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Ignore hooks: they put an act off, and do not change what it is."""
        return None

    def _after(self, row: Resource | None, now: float) -> Step | Waiting | None:
        return None

    def _in_progress(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Treat what is in progress as if it had come to its end."""
        return self._redirected(definition, row, now) or self._compare(definition, row, now)

    def _judge(self, definition: Definition, row: Resource, now: float) -> Decision | None:
        """Judge a resource that is known to be wrong and left alone: an update heals it in any case."""
        return super()._judge(definition, row, now) if self._looks or check.left_alone(row) else None

    def _must_replace(
        self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> str:
        """Return why a change cannot be made in place, or "".

        Types judge values. For values that are not known yet only the schema tells whether they can change in place.
        """
        open_ones = frozenset(name for name, value in after.items() if holds(value, UNKNOWN))
        if not open_ones:
            return super()._must_replace(want, row, before, after)
        known = {name: value for name, value in want.values.items() if name not in open_ones}
        known |= {name: value for name, value in row.properties.items() if name in open_ones}
        part = ResolvedResource(want.definition, want.kind, known, want.metadata, want.requires)
        why = super()._must_replace(part, row, before, want.kind.complete(known))
        if why or isinstance(want.kind, NestedStack):
            return why
        return ResourceType.replacement_reason(want.kind, before, after, open_ones & self._changed(want, row))


class _Scope(RowScope):
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
    return "every update makes it anew" if type_of(row.type).renewed else row.reason


def _going(row: Resource) -> ResourcePreview:
    """Return the preview of a resource that is not in the template any more."""
    why = {
        DeletionPolicy.RETAIN: KEPT,
        DeletionPolicy.SNAPSHOT: "a snapshot of it is made first",
    }.get(DeletionPolicy(row.deletion_policy), "")
    return ResourcePreview(row.name, row.shown_type, Fate.DELETED, why, row, before=row.properties)


def as_changed(names: Iterable[str]) -> list[str]:
    """Return the properties that users have set among these; internal ones stand for files and sections elsewhere."""
    return list(public_properties(dict.fromkeys(names)))
