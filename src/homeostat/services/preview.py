"""Previews: the effects of a new desired state on a stack and all its nested stacks, computed read-only.

The planner itself decides the effects (ADR 0025).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from homeostat.convergence.nested_stacks.group_revisions import launched_in
from homeostat.convergence.nested_stacks.overtaken_revisions import OvertakenRevisions
from homeostat.convergence.stages.loading import world_of
from homeostat.desired.compiling import Definitions, compile_desired
from homeostat.desired.deletion_policies import inside
from homeostat.desired.graphs import compile_graph
from homeostat.desired.implied import graph_of
from homeostat.desired.members import group_weight, shard_count, touched_shards
from homeostat.desired.redaction import Redaction
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.limits import DEPTH_MAX
from homeostat.model.status import Action, DeletionPolicy, Status
from homeostat.model.world import Resource, StackFacts, World
from homeostat.planner.report.preview import FAILS, Fate, ResourcePreview, ShardPreviewer
from homeostat.resources.families.resource_groups import Launched
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.services.client_check import ClientCheck, always_connected
from homeostat.services.desired_inside import desired_inside
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state, shards
from homeostat.store.stacks import revisions, stacks
from homeostat.store.stacks.contents import EMPTY, Content
from homeostat.templates import Compiled

SHARDS_MAX = 2
"""Shards of a group that are planned; members of further shards are alike and only counted."""
NOT_STORED = "None"
"""Id of a stack before its creation."""
VALUES_MAX = 64 * 1024 * 1024
"""Maximum weight of the values of a preview's resources, as stored and as planned. Texts that group members share weigh
something only in a new stack, whose properties are all written: once per member."""

INSIDE_UNKNOWN = "what is in it is not known before"
"""Reported for a nested stack whose size or contents depend on results of the update."""


@dataclass(slots=True)
class Preview:
    """The preview of one stack.

    Attributes:
        id: `NOT_STORED` for a stack that does not exist.
        path: Names of the resources above the stack, from the root.
        redaction: Redacts hidden values.
        inside: Previews of the stacks that realize resources, by name.
        deleted: Previews of the nested stacks to be deleted with their resources.
        more: Fate -> number of members, for members without a plan.
        required_by: Resource -> its dependents, in the new template.
        revision: Revision of the stack before the update; 0 for a new stack.
    """

    id: str
    name: str
    project: str
    path: tuple[str, ...]
    redaction: Redaction
    compiled: Compiled | None = None
    resources: list[ResourcePreview] = field(default_factory=list)
    inside: dict[str, "Preview"] = field(default_factory=dict)
    deleted: list["Preview"] = field(default_factory=list)
    more: dict[Fate, int] = field(default_factory=dict)
    required_by: dict[str, list[str]] = field(default_factory=dict)
    revision: int = 0

    @property
    def changes_anything(self) -> bool:
        """Whether anything in this stack would change."""
        counts = sum(count for fate, count in self.more.items() if fate is not Fate.UNCHANGED)
        return counts > 0 or any(note.fate is not Fate.UNCHANGED for note in self.resources)

    def all(self) -> Iterator["Preview"]:
        """Yield this preview and all previews below, outer stacks first."""
        yield self
        for preview in (*self.inside.values(), *self.deleted):
            yield from preview.all()


@dataclass(frozen=True, slots=True)
class PreviewLimits:
    """Limits of a preview.

    Attributes:
        depth_max: Levels of nested stacks.
        resources_max: Resources in the preview.
        check_client: Called before each stack.
        timeout_s: Seconds that the previewed action may take.
    """

    depth_max: int = DEPTH_MAX
    resources_max: int = 10_000
    check_client: ClientCheck = always_connected
    timeout_s: float = math.inf


class Previewer:
    """Previews changes of stored stacks.

    Args:
        converges: Whether the update also converges: it continues into all nested stacks and needs no further consent.
            The real update looks at everything first; the preview uses the newest observations.
    """

    def __init__(
        self, tx: Transaction, now: float, limits: PreviewLimits = PreviewLimits(), *, converges: bool = False
    ) -> None:
        self._tx = tx
        self._now = now
        self._limits = limits
        self._reported = 0
        self._overtaken = OvertakenRevisions()
        self._converges = converges
        self._weight = 0
        self._writes_all = False
        self._policies: dict[str, Mapping[str, str]] = {}
        self._files: Mapping[str, str] = {}

    def of_new(self, name: str, project: str, content: Content, compiled: Compiled) -> Preview:
        """Preview the creation of a stack: all properties are written, shared ones once per member."""
        self._writes_all = True
        preview = Preview(NOT_STORED, name, project, (), Redaction().of(compiled), compiled)
        return self._filled(preview, None, EMPTY, content)

    def of_update(self, stack: StackRow, content: Content, compiled: Compiled) -> Preview:
        """Preview the update of a stack."""
        before = revisions.content_of(self._tx, stack.id, stack.revision)
        redaction = Redaction().of(compiled)
        if before.kind == "template":
            identity = Identity(stack.id, stack.name, stack.project)
            # Both revisions' values are shown, so both revisions' secrets are hidden.
            redaction = redaction.of(compile_desired(before, identity, strict=False))
        preview = Preview(stack.id, stack.name, stack.project, (), redaction, compiled, revision=stack.revision)
        return self._filled(preview, stack, before, content)

    def of_deletion(
        self, stack: StackRow, before: Content, after: Content, compiled: Compiled, policies: Mapping[str, str]
    ) -> Preview:
        """Preview a deletion that continues with other deletion policies.

        Args:
            before: The last desired state before the deletion.
            after: The updated desired state, whose files hold the policies of nested templates.
            policies: Resource -> new policy, for the stack itself.
        """
        self._policies, self._files = {stack.id: policies}, after.files
        redaction = Redaction().of(compiled)
        preview = Preview(stack.id, stack.name, stack.project, (), redaction, compiled, revision=stack.revision)
        return self._filled(preview, stack, before, EMPTY)

    # -- one stack ---------------------------------------------------------------------------------------------------

    def _filled(self, preview: Preview, stack: StackRow | None, before: Content, after: Content) -> Preview:
        """Plan the shards of a stack and fill in its preview.

        Args:
            stack: None for a stack that does not exist.
        """
        self._limits.check_client()
        facts = _facts(preview, stack, self._now if self._converges else None)
        count = max(int(stack.shards) if stack is not None else 1, shard_count(after.group))
        touched = touched_shards(before, after)
        chosen = range(count) if touched is None else sorted(range(count), key=lambda number: number not in touched)
        self._plan(preview, facts, stack, after, chosen[:SHARDS_MAX])
        self._count_others(preview, before, after, count if touched is None else len(touched))
        return preview

    def _plan(
        self, preview: Preview, facts: StackFacts, stack: StackRow | None, content: Content, numbers: Sequence[int]
    ) -> None:
        """Plan these shards of a stack under these facts, and add the effects to its preview."""
        for number in numbers:
            graph = self._graph(preview, content, number)
            self._count(len(graph))
            world = self._world(facts, stack, number, graph)
            previewer = ShardPreviewer(world, partial(self._inside, preview, content, world))
            notes = previewer.preview(self._now)
            preview.resources += notes
            for row in (row for note in notes for row in previewer.going(note)):
                self._preview_deleted(preview, row)
            for name, definition in graph.items():
                for required in definition.requires:
                    preview.required_by.setdefault(required, []).append(name)

    def _count(self, resources: int) -> None:
        """Count resources. Raise Rejected if there are too many for one preview."""
        self._reported += resources
        if self._reported > self._limits.resources_max:
            message = (
                f"Request limit exceeded: the preview would have more than {self._limits.resources_max} resources: "
                "preview a part of the template, or raise --previewed-max of the service"
            )
            raise Rejected("RequestLimitExceeded", message)

    def _weigh(self, more: int) -> None:
        """Weigh values before they are read or planned. Raise Rejected if they are too heavy for one preview."""
        self._weight += more
        if self._weight > VALUES_MAX:
            message = (
                f"Request limit exceeded: the values of the previewed resources weigh more than {VALUES_MAX}: "
                "preview a part of the template, or give the members of groups smaller properties"
            )
            raise Rejected("RequestLimitExceeded", message)

    def _count_others(self, preview: Preview, before: Content, after: Content, touched: int) -> None:
        """Estimate the fates of the unplanned group members, from the definitions and the planned members.

        Args:
            touched: Number of shards in which the definitions differ.
        """
        if "group" not in (before.kind, after.kind):
            return
        old, new = _count(before), _count(after)
        seen = {fate: sum(note.fate is fate for note in preview.resources) for fate in Fate}
        added = max(new - old, 0) - seen[Fate.ADDED]
        deleted = max(old - new, 0) - seen[Fate.DELETED]
        remaining = min(old, new) - seen[Fate.UNCHANGED] - seen[Fate.UPDATED] - seen[Fate.REPLACED]
        changing = touched > SHARDS_MAX and seen[Fate.UPDATED] + seen[Fate.REPLACED] > 0
        fate = max((Fate.UPDATED, Fate.REPLACED), key=seen.__getitem__) if changing else Fate.UNCHANGED
        counts = {Fate.ADDED: added, Fate.DELETED: deleted, fate: remaining}
        preview.more = {fate: count for fate, count in counts.items() if count > 0}

    def _graph(self, preview: Preview, content: Content, number: int) -> Definitions:
        """Return the definitions of one shard. Parameters of nested templates may be unknown yet."""
        identity = Identity(preview.id, preview.name, preview.project)
        if content.kind != "template":
            group = content.group
            if group is not None:
                self._weigh(group_weight(group, number, VALUES_MAX, written=self._writes_all))
            return compile_graph(content, identity, number)
        preview.compiled = compile_desired(content, identity, strict=False)
        preview.redaction = preview.redaction.of(preview.compiled)
        return graph_of(preview.compiled, content) if number == 0 else {}

    def _world(self, facts: StackFacts, stack: StackRow | None, number: int, graph: Definitions) -> World:
        """Return the world of a shard as a worker would load it under these facts."""
        if stack is None:
            return World(facts, number, graph)
        self._weigh(shard_state.stored_bytes(self._tx, stack.id, number))
        shard = shards.get(self._tx, facts.id, number)
        if shard is None:
            return World(facts, number, graph)
        world = world_of(self._tx, facts, graph, shard, self._now).world
        if facts.look_from is not None:
            world.looked_at = facts.look_from
        policies = self._policies.get(stack.id)
        if policies is None:
            policies = inside(self._tx, facts, self._files.get) if self._files else {}
        for row in world.rows.values():
            row.deletion_policy = policies.get(row.name, row.deletion_policy)
        return world

    # -- nested stacks -----------------------------------------------------------------------------------------------

    def _inside(self, outer: Preview, parent: Content, world: World, note: ResourcePreview) -> bool:
        """Preview the stack that realizes a resource; return whether the stack would change.

        Args:
            parent: Desired state of the outer stack.
            world: World of the resource's shard.
        """
        nested = self._nested_of(note)
        if note.fate is Fate.UNCHANGED:
            self._show_unchanged(outer, note)
            return False
        if note.fate in (Fate.ADDED, Fate.REPLACED):
            nested = None
        before = revisions.content_of(self._tx, nested.id, nested.revision) if nested is not None else EMPTY
        try:
            launched: Launched = partial(launched_in, world)
            asks = self._overtaken.requests_of(self._tx, world, note.row, next_one=True)
            after = desired_inside(self._tx, note, parent, nested, before, launched, self._limits.timeout_s, asks)
        except (Rejected, Terminal) as error:
            note.fate, note.why = Fate.UPDATED if note.row is not None else Fate.ADDED, f"{FAILS}{error}"
            return True
        path = (*outer.path, note.name)
        if after is None:
            note.why = f"{note.why}; {INSIDE_UNKNOWN}" if note.why else INSIDE_UNKNOWN
            return True
        if len(path) > self._limits.depth_max:
            return True
        if nested is not None:
            preview = Preview(nested.id, nested.name, nested.project, path, outer.redaction)
        else:
            preview = Preview(NOT_STORED, f"{outer.name}-{note.name}", outer.project, path, outer.redaction)
        outer.inside[note.name] = self._filled(preview, nested, before, after)
        return preview.changes_anything

    def _preview_deleted(self, outer: Preview, row: Resource) -> None:
        """Preview the deletion of a stack together with its resource."""
        if kind_of(row.type) != STACK or row.deletion_policy == DeletionPolicy.RETAIN:
            return
        nested = stacks.get(self._tx, row.handle)
        if nested is not None:
            before = revisions.content_of(self._tx, nested.id, nested.revision)
            preview = Preview(nested.id, nested.name, nested.project, (*outer.path, row.name), outer.redaction)
            outer.deleted.append(self._filled(preview, nested, before, EMPTY))

    def _nested_of(self, note: ResourcePreview) -> StackRow | None:
        """Return the row of the stack that realizes a resource; None if absent."""
        return stacks.get(self._tx, note.row.handle) if note.row is not None and note.row.handle else None

    def _show_unchanged(self, outer: Preview, note: ResourcePreview) -> None:
        """Preview the nested stack of a resource that the update does not change: the stack may still be healed."""
        nested = self._nested_of(note)
        if nested is None:
            return
        preview = Preview(nested.id, nested.name, nested.project, (*outer.path, note.name), outer.redaction)
        outer.inside[note.name] = preview
        self._limits.check_client()
        content = revisions.content_of(self._tx, nested.id, nested.revision)
        self._plan(preview, stacks.facts(nested), nested, content, range(min(nested.shards, SHARDS_MAX)))
        others = _count(content) - len(preview.resources)
        if others > 0:
            preview.more = {Fate.UNCHANGED: others}


def _facts(preview: Preview, stack: StackRow | None, look_from: float | None) -> StackFacts:
    """Return the facts of the stack as if it had one more revision and were being updated."""
    if stack is None:
        return StackFacts(NOT_STORED, preview.name, preview.project, 1, Action.CREATE, Status.IN_PROGRESS)
    facts = stacks.facts(stack)
    return replace(
        facts,
        revision=facts.revision + 1,
        action=Action.UPDATE,
        status=Status.IN_PROGRESS,
        reason="",
        look_from=look_from,
        rollback_to=None,
        step_at=None,
        snapshot=None,
        suspended=False,
    )


def _count(content: Content) -> int:
    return int(content.template["count"]) if content.kind == "group" else 0


def all_of(preview: Preview, fates: Collection[Fate] = tuple(Fate)) -> Iterator[tuple[Preview, ResourcePreview]]:
    """Yield every resource with its stack, outer stacks first."""
    for stack in preview.all():
        for note in stack.resources:
            if note.fate in fates:
                yield stack, note
