"""What the decisions about one shard share: its facts, its current rows, and how acts are carried out. Pure.

A preview decides by the same code. It only carries out its acts in another way: it notes them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from homeostat.model.budget import Absence
from homeostat.model.desired import Definition
from homeostat.model.errors import MemberAway, Rejected, ResourceActionRestricted, Terminal
from homeostat.model.marks import RestoredMark
from homeostat.model.observed import Verdict
from homeostat.model.plan import Decision, Step
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.actions.restore import restoration
from homeostat.planner.evaluation_weight import ShardWeight
from homeostat.planner.policies.incidents import Incident, incidents
from homeostat.planner.retry import conditions
from homeostat.planner.scope import RowScope
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of, resource_type
from homeostat.templates import evaluate


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
    mark: RestoredMark | None = None
    renewed: frozenset[str] = frozenset()


def changed_properties(want: ResolvedResource, row: Resource) -> frozenset[str]:
    """Return the names of the properties whose desired values differ from those last requested."""
    if want.values == row.properties:
        return want.renewed
    # With defaults, since a value that equals its default is no change.
    before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
    return want.renewed | frozenset(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


class Acts(Protocol):
    """Carries out what is decided about a row.

    `planner.acts` writes intents into rows and makes steps of them; `planner.report.preview` notes what would be done.
    """

    def create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        """Create a thing with a row of its own, or another one in the place of the thing of a row."""

    def begin(self, definition: Definition, row: Resource, now: float) -> Step:
        """Create the thing of a row that has none."""

    def replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        """Replace a thing, the new one first; `why` says what cannot be done in place."""

    def delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        """Replace a broken thing by deleting it first."""

    def update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        """Bring a thing to new values in place.

        Args:
            before: Properties, with defaults, that the thing has for certain; empty if that is not known.
        """

    def go_on(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Carry on the act that is in progress."""

    def heal(self, row: Resource, verdict: Verdict, now: float, step: Step) -> Decision:
        """Bring a thing back in place, by a step that updates it or operates on it."""

    def reference_external(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        """Look whether the thing exists that is not managed here."""

    def fail(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        """Fail a row; `action` is the action that fails, "" for that of the row."""

    def refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        """Refuse an act that the environment forbids."""


class Gates(Protocol):
    """Puts off what was decided; `planner.gates` does, and a preview passes them all."""

    def stop(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Stop a resource at a hook, or since a replaced thing came back; None where it goes on."""

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
        """Return why a thing is not healed yet, or the step that requests consent; None if it may be healed.

        Args:
            absent: Whether the thing is absent.
            destroys: Whether another thing would be made in its place.
            alive: Whether the thing may be in service as it is.
        """

    def waits_for_reports(self, row: Resource) -> str:
        """Return why what has drifted is left alone until others of its group have reported; "" where it is not."""

    def look_once_more(self, row: Resource, now: float) -> Step | Waiting | None:
        """Have the owner look for a missing thing once more; None once that was done."""

    def hand_over(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Have others let go of what a thing needs and one at a time can hold, or have it take that back."""

    def begin_healing(self, step: Step) -> None:
        """Count the row of a step as being healed."""


class Context:
    """What the decisions about one shard share.

    Args:
        world: The shard; its rows are changed by deciding.
        current: Name -> the row that stands for it; the frontier keeps it up to date.
        keys: Supply of fresh row keys, since randomness is an input.
        acts: Makes what carries out the acts.
        gates: Makes what puts them off.
        scope: Resolves references and attributes; None to resolve them from the rows.
        settled: Nodes of the frontier that are at rest, which keeps them up to date; None where all count as such.

    Attributes:
        healing: Keys of the rows that are being healed.
        away: The members of a group that are away, and by what it shows that they are still the same; None where that
            was not asked yet.
        parts: Key of a row that is to be deleted together with its parts -> kind -> handles of these; the frontier
            keeps it up to date.
        places: Key of a row -> the places in load balancers that were built on it, as they were when first asked for;
            None before that.
        holders: What one thing at a time can hold, with its kind -> keys of the leftovers that do; None before it was
            asked for first (see `lifecycle.handover`).
        inside: Keys of such rows that also take along what nested stacks are deleting of them.
        failed_early: Whether the newest revision has failed before it was ever complete.
        unsettled: Whether the shard has yet to bring about the newest revision.
    """

    def __init__(
        self,
        world: World,
        current: dict[str, Resource],
        keys: Iterator[str],
        acts: "Callable[[Context], Acts]",
        gates: "Callable[[Context], Gates]",
        scope: RowScope | None = None,
        *,
        settled: Collection[str] | None = None,
    ) -> None:
        self.world = world
        self.current = current
        self.keys = keys
        self.acts, self.gates = acts(self), gates(self)
        self.scope = scope or RowScope(world, current)
        self.settled = settled
        self.parts: dict[str, dict[str, list[str]]] = {}
        self.places: dict[str, list[Resource]] | None = None
        self.inside: set[str] = set()
        self.holders: dict[str, list[str]] | None = None
        self.weights = ShardWeight(world, current)
        self.healing = {row.key for row in world.rows.values() if outcome.is_being_healed(row)}
        self.away: tuple[tuple[int, int], dict[str, Absence]] | None = None
        self._incidents: dict[str, Incident] | None = None
        self.failed_early = world.stack.failed_early
        self.unsettled = world.settled_revision < world.stack.revision

    def resolve(self, definition: Definition, row: Resource | None = None) -> ResolvedResource:
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
            self.weights.put(definition.name, values, metadata)
        requires = [self.current[name].key for name in definition.requires if name in self.current]
        restored = restoration(self.world, definition.name, kind, values, row)
        return ResolvedResource(definition, kind, restored.values, metadata, requires, restored.mark, restored.renewed)

    def reached(self, definition: Definition, row: Resource) -> Definition:
        """Return the definition by which a resource was last brought about, where the newest revision has failed.

        What is healed then is as it was before, not as the revision wants it that could not be brought about.
        """
        if not self.failed_early:
            return definition
        stack, number = self.world.stack, row.revision
        if number == stack.revision:
            # A failed check says so of every revision up to the newest.
            if not (row.failed and row.action == Action.CHECK and self.differs(definition, row)):
                return definition
            number = min(stack.complete_revision or 0, number - 1)
        graph = self.world.earlier.get(max(number, stack.complete_revision or 0), {})
        reached = graph.get(definition.name)
        if reached is None or reached.type != row.type or not self.current.keys() >= set(reached.requires):
            requires = tuple(name for name in definition.requires if name in self.current)
            reached = Definition(row.name, row.type, row.properties, row.metadata, requires, row.deletion_policy)
            reached = replace(
                reached, static=True, template_type=row.template_type or "", restricted=definition.restricted
            )
        return replace(reached, revision=number)

    def restricted(self, definition: Definition, action: str, row: Resource, now: float) -> Step | None:
        """Refuse an act that the environment forbids, without touching the thing; None where it is allowed."""
        if action not in definition.restricted:
            return None
        return self.acts.refuse(row, ResourceActionRestricted(action), now)

    def incident_of(self, row: Resource) -> Incident | None:
        """Return with what others a member is unhealthy for a common cause; None where it is by itself."""
        if self._incidents is None:
            health = self.world.health
            self._incidents = {} if health is None else incidents(self.world, health, self.current)
        return self._incidents.get(row.key)

    def forget_incidents(self) -> None:
        """Have them found anew: a recovery has begun."""
        self._incidents = None

    def wait_if_failed(self, name: str) -> Waiting | None:
        """Return a reason to wait if the newest revision has failed, so that nothing new is begun for it."""
        if not self.failed_early:
            return None
        return Waiting(name, Why.STACK_FAILED, reason=self.world.stack.reason)

    def missing_requirements(self, definition: Definition) -> Waiting | None:
        """Return a reason to wait if a required thing is known to be gone, and is not brought back for now.

        What is made against it would fail, or hold on to an id that means nothing (ADR 0047).
        """
        missing, what = conditions.absent_requirements(self.world, definition, self.current), "gone"
        if not missing and self.failed_early:
            # Such a resource is not blocked by what it requires, see `Frontier`.
            missing, what = conditions.unmade_requirements(definition, self.current), "not made yet"
        if not missing:
            return self._missing_members(definition)
        names, key = ", ".join(row.name for row in missing), self._key_of(definition.name)
        return Waiting(definition.name, Why.REQUIRES, tuple(row.key for row in missing), f"{names} is {what}", key=key)

    def _missing_members(self, definition: Definition) -> Waiting | None:
        """Return a reason to wait if it reads members of nested stacks that are not there for now."""
        required = (self.current[name] for name in definition.requires if name in self.current)
        if definition.static or not any(kind_of(row.type) == STACK for row in required):
            return None
        try:
            evaluate(definition.properties, self.scope)
            evaluate(definition.metadata, self.scope)
        except MemberAway as error:
            return self.waits_for_member(definition, error)
        except Rejected:
            pass  # It fails of that once it is resolved.
        return None

    def waits_for_member(self, definition: Definition, error: MemberAway) -> Waiting:
        """Return the reason to wait for a member that a resource reads, and that is not there for now."""
        nested = [name for name in error.path[1:2] if name in self.current]
        keys = tuple(self.current[str(name)].key for name in nested)
        return Waiting(definition.name, Why.REQUIRES, keys, str(error), key=self._key_of(definition.name))

    def _key_of(self, name: str) -> str:
        return self.current[name].key if name in self.current else ""

    def is_newer(self, row: Resource) -> bool:
        return self.unsettled and row.revision != self.world.stack.revision

    @cached_property
    def things(self) -> int:
        """Number of things that the shard has or had; one that is being replaced counts."""
        existing = (row for row in self.current.values() if row.handle or row.replaces is not None)
        return sum(kind_of(row.type) != "" for row in existing)

    def differs(self, definition: Definition, row: Resource) -> bool:
        """Return whether a resource at rest has to be changed or replaced to become as it is defined."""
        if definition.type != row.type:
            return True
        try:
            return bool(changed_properties(self.resolve(definition, row), row))
        except (Rejected, Terminal):  # it fails, and so does the stack
            return False

    def is_stale(self, definition: Definition, row: Resource) -> bool:
        """Return whether a reference or attribute that the resource reads has changed since it last read them."""
        required = (self.current[name] for name in definition.requires if name in self.current)
        return any(other.changed > row.resolved for other in required)
