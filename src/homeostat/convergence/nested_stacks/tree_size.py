"""The limit on the resources of a root stack including its nested stacks, while the stack lives (ADR 0039).

The API checks the same limit as far as the templates show. Sizes that are known only at run time, such as the size of a
group that depends on an attribute, are counted here whenever a nested stack is created or grows.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache
from sqlalchemy import select

from homeostat.clock import Clock
from homeostat.desired.compiling import compile_desired, registry_of, template_of
from homeostat.desired.members import group_content
from homeostat.desired.texts import size_of
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.group import GroupDefinition
from homeostat.model.stack_actions import CREATING, ROLLED_BACK_ON_FAILURE
from homeostat.model.status import Status
from homeostat.model.world import StackFacts, World
from homeostat.resources import groups
from homeostat.resources.families.balanced import BalancedServer
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.nested import FromTemplate, parameters_of
from homeostat.resources.registry import type_of
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.stacks import action_begin, cancellation, stacks
from homeostat.store.stacks.contents import Content
from homeostat.store.stacks.revisions import NewRevision
from homeostat.templates import declared_in
from homeostat.templates.environments import nested_environment
from homeostat.templates.tree import Allowance

SIZES_CACHED_MAX, SIZES_CACHED_S = 1000, 2.0
"""Trees whose counts are cached, and for how many seconds."""
UNSEEN_SHARE = 0.02
"""Share of the limit that a worker may add to a tree before it counts the tree anew, with the additions of all workers.
"""
ESTIMATE_LEVELS = 5
"""Levels of nested stacks that one estimate covers."""
ESTIMATE_MIN = 10
"""Members from which on a group is estimated before its creation: an estimate costs as much as creating one member."""
ESTIMATE_MAX = 100
"""Nested templates that one estimate compiles."""


class TooLarge(Terminal):
    """The tree of the stack would have more resources than it may."""


class TreeSizes:
    """Counts of resources by root stack, as this worker knows them. Safe to share between threads."""

    def __init__(self, clock: Clock, resources_max: int) -> None:
        """Begin without any count; `resources_max` is the limit of a root stack including its nested stacks."""
        self.resources_max = resources_max
        self._sizes: TTLCache[str, _Size] = TTLCache(SIZES_CACHED_MAX, SIZES_CACHED_S, clock.monotonic)
        self._counting = threading.Lock()

    def begin(self, tx: Transaction, parent: StackFacts, least: int) -> None:
        """Serialise large additions to a tree; called before `count`, and before any row is locked.

        An addition of more than `UNSEEN_SHARE` is counted exactly: alone, and with a new count of the tree. The wait
        for the advisory lock must precede row locks, since the transaction that holds it may need those rows.

        Args:
            tx: The transaction that creates or changes a nested stack.
            parent: Parent of the nested stack.
            least: Minimum of its resources.
        """
        root_id = parent.root_id or parent.id
        if least > self._unseen_max:
            tx.advisory_lock(f"tree {root_id}")
            with self._counting:
                self._sizes.pop(root_id, None)

    @property
    def _unseen_max(self) -> float:
        return UNSEEN_SHARE * self.resources_max

    def count(self, tx: Transaction, parent: StackFacts, revision: NewRevision, least: int, before: int) -> None:
        """Count the resources that a revision of a nested stack adds to its tree.

        The tree is counted anew only every few seconds, and after large additions by this worker: a count for each
        nested stack would take longer than its creation.

        Args:
            tx: The transaction that stores the revision.
            parent: Parent of the nested stack.
            least: Minimum of the nested stack's resources, see `least_size`.
            before: Number of resources before the revision.

        Raises:
            TooLarge: The tree would have more resources than allowed.
        """
        root_id, size = parent.root_id or parent.id, revision.size or 0
        if size <= before:
            return
        with self._counting:
            known = self._sizes.get(root_id)
            if known is None or known.added > self._unseen_max:
                known = self._sizes[root_id] = _Size(stacks.size_of_tree(tx, root_id))
            total = known.counted + known.added + least - before
            # Room is needed for the stacks inside the members, too, which count themselves once they are created.
            if total > self.resources_max:
                raise TooLarge(
                    f"the stack with all that is nested in it would have {total} resources, at most "
                    f"{self.resources_max} are allowed: make several stacks of it, or raise --resources-max of the "
                    "service"
                )
            known.added += size - before


@dataclass(slots=True)
class _Size:
    """Size of a tree: the last count, and the additions of this worker since."""

    counted: int
    added: int = 0


def least_size(content: Content) -> int:
    """Return the minimum of a revision's resources, for large groups including nested stacks of their members."""
    size = size_of(content)
    return GroupSize().size(content) if content.kind == "group" and size >= ESTIMATE_MIN else size


class GroupSize:
    """Estimate of the resources of a group, including the nested stacks of its members, before the group is created.

    It follows from the templates and their parameters. Sizes that are unknown before a resource exists count as 0.
    """

    def __init__(self) -> None:
        self._allowance = Allowance()
        self._known: dict[str, int] = {}

    def size(self, content: Content, levels: int = ESTIMATE_LEVELS) -> int:
        """Return the minimum of a stack's resources, including nested stacks down to `levels` levels."""
        group = content.group
        if group is not None:
            return size_of(content) * (1 + self._member(content, group, levels))
        identity = Identity("None", "nested", "None")
        compiled = compile_desired(content, identity, strict=False, allowance=self._allowance)
        return sum(1 + self._within(definition, content, levels) for definition in compiled.definitions.values())

    def _member(self, content: Content, group: GroupDefinition, levels: int) -> int:
        """Return how many resources are nested in each member; 0 if members differ by the index in their text."""
        member = groups.member_definition(group.resource_def, "0", None)
        if member != groups.member_definition(group.resource_def, "0", group.index_var):
            return 0
        definition = Definition("0", member["type"], member["properties"], static=True)
        return self._within(registry_of(content.environment).applied(definition), content, levels)

    def _within(self, definition: Definition, around: Content, levels: int) -> int:
        """Return the number of resources nested in a resource of the stack `around`."""
        kind = type_of(definition.type)
        if isinstance(kind, BalancedServer):
            return 1 + len(definition.properties["places"])
        if not levels or not isinstance(kind, FromTemplate | ResourceGroup):
            return 0
        registry = registry_of(around.environment)
        inside = nested_environment(around.environment, registry, definition.name, definition.shown_type)
        if isinstance(kind, ResourceGroup):
            count, member = definition.properties.get("count"), definition.properties.get("resource_def")
            if not isinstance(count, int) or not isinstance(member, Mapping) or not isinstance(member.get("type"), str):
                return 0
            group = GroupDefinition(member, definition.properties.get("index_var"), count)
            return self.size(group_content(group, inside, around.files), levels - 1)
        return self._template(kind, definition, inside, around.files, levels) if definition.static else 0

    def _template(
        self,
        kind: FromTemplate,
        definition: Definition,
        environment: dict[str, Any],
        files: Mapping[str, str],
        levels: int,
    ) -> int:
        """Return the size of a nested stack template; equal templates with equal parameters are compiled once.

        An invalid template counts as 0: its error is reported when the nested stack is created.
        """
        source, values = kind.source(definition.properties), kind.stack_parameters(definition.properties)
        key = repr((source, values, environment, levels))
        if key not in self._known and len(self._known) < ESTIMATE_MAX:
            try:
                template = template_of(source, files)
                parameters = parameters_of(values, declared_in(template, "parameters"))
                nested = Content("template", template, parameters, environment, files)
                self._known[key] = self.size(nested, levels - 1)
            except Rejected:
                self._known[key] = 0
        return self._known.get(key, 0)


def give_up(db: Database, world: World, reason: str, now: float, timeout_s: float) -> None:
    """FAIL all of a tree that is being created, since the tree has grown too large.

    One transaction fails all stacks from the outermost stack of the same request down. Failing stack by stack from
    below would queue behind all the stacks that the tree may still create (ADR 0039).

    Args:
        world: World of the shard in which the tree was found to be too large.
        timeout_s: Time limit for rolling the outermost stack back, if the user wants so.
    """
    with db.write() as tx:
        highest = _highest_busy(tx, world.stack)
        top = stacks.for_update(tx, highest) if highest else None
        if top is None or _highest_busy(tx, world.stack) != highest:
            return  # a newer request has changed the tree before the stack was locked
        cancellation.cancel(tx, top, now, reason, CREATING)
        if not top.disable_rollback and top.action in ROLLED_BACK_ON_FAILURE:
            action_begin.roll_back(tx, top, now, timeout_s)


def _highest_busy(tx: Transaction, stack: StackFacts) -> str:
    """Return the id of the outermost stack in progress by the same request; "" if not even this stack is.

    A parent belongs to the same request if its newest revision is the revision at which it last acted on the nested
    stack's row.
    """
    outermost, stack_id = "", stack.id
    revision: int | None = stack.revision
    rows = schema.resource.c
    while True:
        row = stacks.get(tx, stack_id)
        if row is None or row.revision != revision or row.status != Status.IN_PROGRESS:
            return outermost
        if row.action not in CREATING:
            return outermost
        outermost = stack_id
        if row.parent_id is None:
            return outermost
        stack_id = row.parent_id
        revision = tx.execute(select(rows.revision).where(rows.key == row.parent_key)).scalar_one_or_none()


def ended(tx: Transaction, stack: StackFacts) -> str:
    """Return why a stack has failed since it was loaded, which forbids new stacks in it; otherwise ""."""
    row = None if stack.failed_early else stacks.get(tx, stack.id)
    if row is None or row.revision != stack.revision or not stacks.facts(row).failed_early:
        return ""
    return str(row.reason)
