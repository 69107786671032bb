"""Context of the decisions about one shard: its facts, its current rows, acts and gates. Pure.

A preview decides by the same code with different acts: they only note the changes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from homeostat.model.budget import Absence
from homeostat.model.desired import Definition
from homeostat.model.errors import MemberAway, Rejected, ResourceActionRestricted, Terminal
from homeostat.model.marks import RestoredMark
from homeostat.model.node_health import Incident
from homeostat.model.observed import Verdict
from homeostat.model.plan import Decision, Operate, Step, Update
from homeostat.model.status import Action
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource, World
from homeostat.planner import outcome
from homeostat.planner.evaluation_weight import ShardWeight
from homeostat.planner.scope import RowScope
from homeostat.planner.states import absence
from homeostat.planner.states.restore import restoration
from homeostat.resources.base import ResourceType
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of, resource_type
from homeostat.templates import evaluate


@dataclass(slots=True)
class ResolvedResource:
    """Desired state of one resource with all functions resolved.

    For `mark` and `renewed` see `planner.states.restore`.
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
    # With defaults: setting a property to its default is no change.
    before, after = want.kind.complete(row.properties), want.kind.complete(want.values)
    return want.renewed | frozenset(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


class Acts(Protocol):
    """Acts that a decision can choose.

    `planner.acts` writes intents into rows and returns steps; `planner.report.preview` only notes the changes.
    """

    def create(self, definition: Definition, now: float, replaces: Resource | None = None) -> Step:
        """Create a thing with a new row, which may replace another row."""

    def begin(self, definition: Definition, row: Resource, now: float) -> Step:
        """Create the thing of a row without a thing."""

    def replace(self, definition: Definition, row: Resource, now: float, why: str = "") -> Step:
        """Replace a thing, creating the new one first; `why` names the change that is impossible in place."""

    def delete_first(self, definition: Definition, row: Resource, now: float) -> Step:
        """Replace a broken thing by deleting it first."""

    def update(self, want: ResolvedResource, row: Resource, before: Mapping[str, Any], now: float) -> Step:
        """Update a thing in place.

        Args:
            before: Properties, with defaults, that the thing has for certain; empty if unknown.
        """

    def go_on(self, definition: Definition, row: Resource, now: float) -> Decision:
        """Continue the act in progress."""

    def heal(self, row: Resource, verdict: Verdict, now: float, act: Operate | Update) -> Decision:
        """Repair a thing in place, by an update or an operation."""

    def reference_external(self, definition: Definition, row: Resource | None, now: float) -> Decision:
        """Look whether an external thing exists."""

    def fail(self, row: Resource, error: Exception | str, now: float, action: str = "") -> Step:
        """Fail a row; `action` is the action that fails, "" for the row's action."""

    def refuse(self, row: Resource, error: ResourceActionRestricted, now: float) -> Step:
        """Refuse an act that the environment forbids."""


class Gates(Protocol):
    """Gates that postpone a decision: implemented by `planner.gates`; a preview passes nearly all of them."""

    def stop(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Stop a resource at a hook, or since a replaced thing came back; None to go on."""

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
            destroys: Whether healing replaces the thing.
            alive: Whether the thing may still be in service.
        """

    def waits_for_reports(self, row: Resource) -> str:
        """Return why a drifted member is left alone until members of its group have reported; "" if it is not."""

    def look_once_more(self, row: Resource, now: float) -> Step | Waiting | None:
        """Have the owner look for a missing thing once more; None if this was done."""

    def hand_over(self, definition: Definition, row: Resource | None, now: float) -> Step | Waiting | None:
        """Hand an exclusive claim over from another resource to this one, or back."""

    def begin_healing(self, step: Step) -> None:
        """Count the row of a step as being healed."""


class Context:
    """State shared by the decisions about one shard.

    Args:
        world: The shard; decisions change its rows.
        current: Name -> current row; kept up to date by the frontier.
        keys: Supply of fresh row keys, since randomness is an input.
        acts: Factory of the acts.
        gates: Factory of the gates.
        scope: Resolves references and attributes; None to resolve them from the rows.
        settled: Settled nodes of the frontier, which keeps them up to date; None if all count as settled.

    Attributes:
        healing: Keys of the rows that are being healed.
        away: Cache of `policies.healing`: its version, and the members of a group that are away; None if not computed.
        incidents: Cache of `policies.incidents`: row key -> incident of the member; None if not computed.
        parts: Key of a row to be deleted together with its parts -> kind -> handles of the parts; kept up to date by
            the frontier.
        places: Key of a row -> pool members of load balancers built on the row when first computed; None before.
        holders: Exclusive claim with its kind -> keys of the leftovers that hold it; None before the first use (see
            `lifecycle.handover`).
        inside: Keys of rows to be deleted together with parts that nested stacks are deleting.
        failed_early: Whether the newest revision failed before it was ever complete.
        unsettled: Whether the shard has yet to reach the newest revision.
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
        self.incidents: dict[str, Incident] | None = None
        self.failed_early = world.stack.failed_early
        self.unsettled = world.settled_revision < world.stack.revision

    def resolve(self, definition: Definition, row: Resource | None = None) -> ResolvedResource:
        """Resolve the desired state of a resource.

        Args:
            row: The row to bring to this state; None for a new row.

        Raises:
            Rejected: A requirement gave values that do not fit.
            Terminal: As above.
        """
        kind = resource_type(definition.type)
        tree = definition.properties
        values = kind.check(tree if definition.static else evaluate(tree, self.scope), ("resources", definition.name))
        metadata = definition.metadata
        if metadata:
            metadata = evaluate(metadata, self.scope)
        # Literal values were weighed with the template.
        if not definition.static or metadata is not definition.metadata:
            self.weights.put(definition.name, values, metadata)
        requires = [self.current[name].key for name in definition.requires if name in self.current]
        restored = restoration(self.world, definition.name, kind, values, row)
        return ResolvedResource(definition, kind, restored.values, metadata, requires, restored.mark, restored.renewed)

    def reached(self, definition: Definition, row: Resource) -> Definition:
        """Return the definition that a resource last reached, if the newest revision failed early; else `definition`.

        Healing then restores the former state, not the state of a revision that could not be reached.
        """
        if not self.failed_early:
            return definition
        stack, number = self.world.stack, row.revision
        if number == stack.revision:
            # A failed check sets the newest revision, even if the resource never reached it.
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
        """Refuse an act that the environment forbids, without touching the thing; None if it is allowed."""
        if action not in definition.restricted:
            return None
        return self.acts.refuse(row, ResourceActionRestricted(action), now)

    def wait_if_failed(self, name: str) -> Waiting | None:
        """Return a reason to wait if the newest revision has failed: nothing new may begin."""
        if not self.failed_early:
            return None
        return Waiting(name, Why.STACK_FAILED, reason=self.world.stack.reason)

    def missing_requirements(self, definition: Definition) -> Waiting | None:
        """Return a reason to wait if a required thing is known to be gone, and is not restored for now.

        An act against it would fail, or store a stale id (ADR 0047).
        """
        missing, what = absence.absent_requirements(self.world, definition, self.current), "gone"
        if not missing and self.failed_early:
            # In a failed stack requirements do not block the resource, see `Frontier`.
            missing, what = absence.unmade_requirements(definition, self.current), "not made yet"
        if not missing:
            return self._missing_members(definition)
        names, key = ", ".join(row.name for row in missing), self._key_of(definition.name)
        return Waiting(definition.name, Why.REQUIRES, tuple(row.key for row in missing), f"{names} is {what}", key=key)

    def _missing_members(self, definition: Definition) -> Waiting | None:
        """Return a reason to wait if the resource reads absent members of nested stacks."""
        required = (self.current[name] for name in definition.requires if name in self.current)
        if definition.static or not any(kind_of(row.type) == STACK for row in required):
            return None
        try:
            evaluate(definition.properties, self.scope)
            evaluate(definition.metadata, self.scope)
        except MemberAway as error:
            return self.waits_for_member(definition, error)
        except Rejected:
            pass  # reported when the resource is resolved
        return None

    def waits_for_member(self, definition: Definition, error: MemberAway) -> Waiting:
        """Return the reason to wait for an absent member that a resource reads."""
        nested = [name for name in error.path[1:2] if name in self.current]
        keys = tuple(self.current[str(name)].key for name in nested)
        return Waiting(definition.name, Why.REQUIRES, keys, str(error), key=self._key_of(definition.name))

    def _key_of(self, name: str) -> str:
        return self.current[name].key if name in self.current else ""

    def is_newer(self, row: Resource) -> bool:
        return self.unsettled and row.revision != self.world.stack.revision

    @cached_property
    def things(self) -> int:
        """Number of things that the shard has or had, including things being replaced."""
        existing = (row for row in self.current.values() if row.handle or row.replaces is not None)
        return sum(kind_of(row.type) != "" for row in existing)

    def differs(self, definition: Definition, row: Resource) -> bool:
        """Return whether a resource at rest has to be changed or replaced to match its definition."""
        if definition.type != row.type:
            return True
        try:
            return bool(changed_properties(self.resolve(definition, row), row))
        except (Rejected, Terminal):  # the resource cannot be resolved, and its stack fails
            return False

    def is_stale(self, definition: Definition, row: Resource) -> bool:
        """Return whether a reference or attribute that the resource reads has changed since it last read them."""
        required = (self.current[name] for name in definition.requires if name in self.current)
        return any(other.changed > row.resolved for other in required)
