"""Looks at all things that a new stack would adopt from a document. The rows of the stack exist in memory only.

Things are looked at in the order of requirements, since a handle may follow from the values of a required resource. No
transaction is open while a cloud is called, and clouds are only read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from typing import Any

from homeostat.clouds.port import Cloud
from homeostat.convergence.nested_stacks.attributes import WeightBudget, members_of, outputs_of
from homeostat.convergence.nested_stacks.group_revisions import launched_in
from homeostat.desired.compiling import Definitions, compile_desired
from homeostat.desired.graphs import compile_graphs
from homeostat.desired.implied import graph_of
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import HomeostatError, Rejected, Terminal
from homeostat.model.intent import adoption_of
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, StackFacts, World
from homeostat.planner.context import Context
from homeostat.planner.report.adoption import LookedScope
from homeostat.planner.report.preview import DryRunActions, PreviewGates, ResourcePreview
from homeostat.planner.scope import UNREADABLE, thing_of
from homeostat.resources.base import AdoptionTag
from homeostat.resources.families.scaling import bounds_of
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of, type_of
from homeostat.services.desired_inside import desired_inside
from homeostat.services.preview import NOT_STORED, PreviewLimits
from homeostat.store.database import Database
from homeostat.store.stacks.contents import EMPTY, Content
from homeostat.templates import UNKNOWN, Compiled
from homeostat.templates.graph import ordered
from homeostat.templates.tree import holds
from homeostat.templates.weights import TooHeavy
from homeostat.transfer import adoption

HANDLES_MAX = 500
"""Things in one look."""


class Obstacle(StrEnum):
    """Why a resource would not be taken over.

    REFUSED: the whole adoption would be refused. MISSING, FAILING: the adoption would fail. UNSEEN: nothing is known.
    """

    REFUSED = "refused"
    MISSING = "missing"
    FAILING = "failing"
    UNSEEN = "unseen"


@dataclass(slots=True)
class LookedStack:
    """A stack that is to be adopted, with observations of its things.

    Attributes:
        path: Names of the resources above the stack, from the root.
        world: Rows as they are right after the adoption; none for resources that would not be taken over.
        current: The same rows by name.
        values: Resolved properties by name, with `UNKNOWN` where they depend on absent things.
        obstacles: Name -> why the resource would not be taken over, for users, and the row of the document.
        tags: Name -> the tags that the adoption writes.
        inside: Nested stacks by the names of their resources.
    """

    name: str
    path: tuple[str, ...]
    content: Content
    compiled: Compiled | None
    world: World
    current: dict[str, Resource] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    obstacles: dict[str, tuple[Obstacle, str, Resource]] = field(default_factory=dict)
    tags: dict[str, list[AdoptionTag]] = field(default_factory=dict)
    inside: dict[str, "LookedStack"] = field(default_factory=dict)

    def all(self) -> Iterator["LookedStack"]:
        """Yield this stack and its nested stacks, outer stacks first."""
        yield self
        for nested in self.inside.values():
            yield from nested.all()

    def give_up(self, row: Resource, obstacle: Obstacle, why: str) -> None:
        """Note that a resource would not be taken over."""
        self.obstacles[row.name] = (obstacle, why, row)
        del self.world.rows[row.key], self.current[row.name]


class AdoptionLooker:
    """Looks at the things of one document.

    Args:
        cloud: The project's view of the cloud.
        limits: Limits of the preview; stacks and resources are counted.
    """

    def __init__(self, db: Database, cloud: Cloud, project: str, limits: PreviewLimits, now: float) -> None:
        self._db = db
        self._cloud = cloud
        self._project = project
        self._limits = limits
        self._now = now
        self._keys = (f"{number:012}" for number in count(1))
        self._budget = WeightBudget()
        self._looked = 0

    def look(self, name: str, content: Content, compiled: Compiled, document: adoption.Document) -> LookedStack:
        """Look at everything in a root stack.

        Raises:
            Rejected: The document does not fit the template, or has more resources than a preview may have.
        """
        graph = graph_of(compiled, content)
        rows = adoption.root_rows(graph, document, NOT_STORED, self._keys, self._now)
        stack = LookedStack(name, (), content, compiled, self._world(name, graph))
        self._look_at(stack, rows)
        self._leave_out_tagged(stack)
        return stack

    def _world(self, name: str, graph: Mapping[str, Definition]) -> World:
        """Return the world of a stack right after it was adopted."""
        facts = StackFacts(NOT_STORED, name, self._project, 1, Action.ADOPT, Status.COMPLETE, complete_revision=1)
        return World(facts, 0, graph, settled_revision=1)

    # -- one stack ---------------------------------------------------------------------------------------------------

    def _look_at(self, stack: LookedStack, rows: Sequence[Resource]) -> None:
        self._count(len(stack.world.definitions))
        stack.world.rows.update((row.key, row) for row in rows)
        stack.current.update((row.name, row) for row in rows)
        scope = LookedScope(stack.world, stack.current)
        context = Context(
            stack.world, stack.current, iter(()), lambda resource: DryRunActions(resource, {}), PreviewGates, scope
        )
        for names in _waves(stack.world.definitions):
            self._limits.check_client()
            outside: dict[str, list[Resource]] = {}
            for name in names:
                row = stack.current.get(name)
                if row is not None and self._resolve(stack, context, row):
                    outside.setdefault(kind_of(row.type), []).append(row)
            for kind, of_kind in outside.items():
                for start in range(0, len(of_kind), HANDLES_MAX):
                    self._observe(stack, kind, of_kind[start : start + HANDLES_MAX])

    def _count(self, resources: int) -> None:
        """Count resources. Raise Rejected if a preview may not have so many."""
        self._looked += resources
        if self._looked > self._limits.resources_max:
            message = f"Request limit exceeded: a preview has at most {self._limits.resources_max} resources"
            raise Rejected("RequestLimitExceeded", f"{message}: raise --previewed-max of the service")

    def _resolve(self, stack: LookedStack, context: Context, row: Resource) -> bool:
        """Resolve the properties of a resource; return whether to look at its thing in the cloud."""
        definition, kind = stack.world.definitions[row.name], type_of(row.type)
        data = adoption_of(row.intent) or {}
        if kind.kind not in ("", STACK) and kind.kind not in self._cloud.kinds:
            why = f"the cloud {self._cloud.name} has no {kind.kind.replace('_', ' ')}"
            stack.give_up(row, Obstacle.REFUSED, why)
            return False
        try:
            want = context.resolve(definition)
            kind.adoption(data.get("data") or {})
        except (Rejected, Terminal) as error:
            stack.give_up(row, Obstacle.FAILING, f"it would fail: {error}")
            return False
        stack.values[row.name], row.metadata, row.requires = want.values, want.metadata, want.requires
        # Unknown values cannot be compared with the observed ones.
        row.properties = {name: value for name, value in want.values.items() if not holds(value, UNKNOWN)}
        if kind.kind == STACK:
            self._nested(stack, row, data["document"])
        elif kind.kind == "" or kind.kind in BUILTIN_KINDS:
            self._made_again(stack, row, data)
        else:
            return self._has_handle(stack, row, kind.complete(want.values), data["id"])
        return False

    def _has_handle(self, stack: LookedStack, row: Resource, values: Mapping[str, Any], id: str) -> bool:
        """Set the handle of a thing in the cloud; return whether the handle is known."""
        row.handle = type_of(row.type).adopted_handle(id, values)
        if str(UNKNOWN) in row.handle:
            stack.give_up(row, Obstacle.UNSEEN, "its id here follows from what is not in the cloud")
            return False
        return True

    def _made_again(self, stack: LookedStack, row: Resource, data: Mapping[str, Any]) -> None:
        """Show an object of the service itself as it will be once it is created from the document."""
        row.handle = data.get("id") or row.key
        _adopted(row, self._now)
        # Builtin kinds have records, whose attributes are known only after the adoption.
        if kind_of(row.type) == "" and not holds(stack.values[row.name], UNKNOWN):
            stack.world.seen[row.key] = self._seen(row.handle, _built(row, data.get("data") or {}))

    def _seen(self, handle: str, properties: Mapping[str, Any]) -> Seen:
        return Seen(Observation(Presence.PRESENT, handle, properties, self._now), 2)

    def _observe(self, stack: LookedStack, kind: str, rows: Sequence[Resource]) -> None:
        try:
            observations: Sequence[Observation] = self._cloud.observe(kind, [row.handle for row in rows])
        except HomeostatError as error:
            observations = [Observation(Presence.UNKNOWN, row.handle, reason=str(error)) for row in rows]
        for row, seen in zip(rows, observations, strict=True):
            if seen.presence is Presence.ABSENT:
                stack.give_up(row, Obstacle.MISSING, f"{row.handle} is not in the cloud")
            elif seen.presence is Presence.UNKNOWN:
                why = f"it is not known whether {row.handle} is there: {seen.reason}"
                stack.give_up(row, Obstacle.UNSEEN, why)
            else:
                self._present(stack, row, seen)

    def _present(self, stack: LookedStack, row: Resource, seen: Observation) -> None:
        kind, known = type_of(row.type), (adoption_of(row.intent) or {}).get("data") or {}
        # Fields that the cloud returns only at creation come from the document.
        once = {name: known[name] for name in kind.creation_only_fields if name in known}
        row.handle = seen.handle or row.handle
        _adopted(row, self._now)
        stack.world.seen[row.key] = Seen(replace(seen, properties={**once, **seen.properties}), 2)
        arguments = kind.adoption(known)
        if arguments is not None:
            tags = kind.adoption_tags(thing_of(stack.world, row, kind), arguments)
            stack.tags |= {row.name: tags} if tags else {}

    # -- nested stacks -----------------------------------------------------------------------------------------------

    def _nested(self, outer: LookedStack, row: Resource, document: adoption.Document) -> None:
        """Look at a nested stack, which would adopt its part of the document."""
        definition, kind = outer.world.definitions[row.name], type_of(row.type)
        note = ResourcePreview(row.name, row.type, definition=definition, after=outer.values[row.name])
        try:
            with self._db.read() as tx:
                content = desired_inside(
                    tx, note, outer.content, None, EMPTY, lambda name: launched_in(outer.world, name)
                )
            if content is None:
                outer.give_up(row, Obstacle.UNSEEN, "what is in it follows from what is not in the cloud")
                return
            content, entries = adoption.arranged(content, document, bounds_of(kind, outer.values[row.name]))
            name = f"{outer.name}-{row.name}"
            new = Identity(NOT_STORED, name, self._project)
            compiled, graphs = _graphs(content, new)
            rows = adoption.rows_of(graphs, new, entries, self._keys, self._now)
        except (Rejected, Terminal) as error:
            outer.give_up(row, Obstacle.FAILING, f"it would fail: {error}")
            return
        graph = {name: definition for part in graphs for name, definition in part.items()}
        stack = LookedStack(name, (*outer.path, row.name), content, compiled, self._world(name, graph))
        self._look_at(stack, rows)
        outer.inside[row.name] = stack
        row.handle = row.key
        _adopted(row, self._now)
        outer.world.seen[row.key] = self._seen(row.handle, {"status": "complete", **self._shown(stack)})

    def _shown(self, stack: LookedStack) -> dict[str, Any]:
        """Return the attributes that a nested stack shows its parent."""
        try:
            members = members_of(stack.world, self._budget)
            scope = LookedScope(stack.world, stack.current)
            outputs = {"outputs": {}} if stack.compiled is None else outputs_of(stack.compiled, scope, self._budget)
        except TooHeavy as error:
            return {UNREADABLE: str(error)}
        return {"members": members, **outputs}

    # -- the whole ---------------------------------------------------------------------------------------------------

    def _leave_out_tagged(self, root: LookedStack) -> None:
        """Show things as they look with the tags that the adoption writes."""
        of: dict[tuple[str, str], list[str]] = {}
        for stack in root.all():
            for tag in (tag for tags in stack.tags.values() for tag in tags):
                of.setdefault((tag.kind, tag.handle), []).append(tag.of)
        for stack in root.all():
            for row in stack.current.values():
                tagged, seen = of.get((kind_of(row.type), row.handle)), stack.world.seen.get(row.key)
                if tagged and seen is not None:
                    properties = type_of(row.type).once_tagged(seen.observation.properties, tagged)
                    seen.observation = replace(seen.observation, properties=properties)


def _adopted(row: Resource, now: float) -> None:
    row.enter(Action.ADOPT, Status.IN_PROGRESS, "")
    row.enter(Action.ADOPT, Status.COMPLETE, "")
    row.intent, row.acted_at = None, now


def _waves(definitions: Definitions) -> Iterator[list[str]]:
    """Yield the names of all resources in groups, each after the groups of all its requirements."""
    depths: dict[str, int] = {}
    for name in ordered({name: definition.requires for name, definition in definitions.items()}):
        below = (depths[required] for required in definitions[name].requires if required in depths)
        depths[name] = 1 + max(below, default=-1)
    by_depth: dict[int, list[str]] = {}
    for name, depth in depths.items():
        by_depth.setdefault(depth, []).append(name)
    yield from (by_depth[depth] for depth in sorted(by_depth))


def _built(row: Resource, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of a resource that exists only as a row; random values make all but `data` unknown."""
    kind, drawn = type_of(row.type), []

    def nothing(size: int) -> bytes:
        drawn.append(size)
        return bytes(size)

    body = kind.build_object(kind.complete(row.properties), row.key, nothing)
    known = {name: value for name, value in data.items() if name in body}
    return {**(dict.fromkeys(body, UNKNOWN) if drawn else body), **known}


def _graphs(content: Content, identity: Identity) -> tuple[Compiled | None, Sequence[Definitions]]:
    """Return the compiled template of a nested stack, if it has one, and the definitions of its shards."""
    if content.kind != "template":
        return None, list(compile_graphs(content, identity))
    compiled = compile_desired(content, identity, strict=False)
    return compiled, [graph_of(compiled, content)]
