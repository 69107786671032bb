"""How large the tree of a root stack becomes while it lives, and what happens to one that grows too large."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cachetools import TTLCache
from sqlalchemy import Connection, select

from homeostat.clock import Clock
from homeostat.desired.graphs import compile_desired, registry_of, size_of, template_of
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.status import ROLLED_BACK_ON_FAILURE, Status
from homeostat.model.world import StackFacts, World
from homeostat.resources import groups
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.nested import FromTemplate, parameters_of
from homeostat.resources.registry import type_of
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import cancellation, stacks
from homeostat.templates import declared_in
from homeostat.templates.environments import nested_environment
from homeostat.templates.tree import Allowance

RESOURCES_MAX = 1_000_000
"""Resources of a stack with all that is nested in it, where nobody says otherwise."""
SIZES_KEPT_MAX, SIZES_KEPT_S = 1000, 2.0
UNSEEN_SHARE = 0.02
"""Of what a tree may have: so much may be added to it by each worker before the others see it."""
FORECAST_LEVELS = 5
FORECAST_MIN = 10
"""Members of a group that is looked into before it is made: one look costs as much as to make one of them."""
FORECAST_MAX = 100
"""Nested templates that one forecast looks into."""


class TooLarge(Terminal):
    """The tree of the stack would have more resources than it may."""


class TreeSizes:
    """Counts resources by root stack; threads share one. resources_max — of a stack with all that is nested in it."""

    def __init__(self, clock: Clock, resources_max: int) -> None:
        self.resources_max = resources_max
        self._sizes: TTLCache[str, _Size] = TTLCache(SIZES_KEPT_MAX, SIZES_KEPT_S, clock.monotonic)
        self._counting = threading.Lock()

    def begin(self, db: Database, tx: Connection, parent: StackFacts, least: int) -> None:
        """Before `counted`, and before any row is locked: what makes much at once is counted one by one, and anew."""
        root_id = parent.root_id or parent.id
        if least > self._unseen_max:
            db.one_by_one(tx, f"tree {root_id}")
            with self._counting:
                self._sizes.pop(root_id, None)

    @property
    def _unseen_max(self) -> float:
        return UNSEEN_SHARE * self.resources_max

    def counted(
        self, tx: Connection, parent: StackFacts, desired: stacks.Desired, least: int, before: int
    ) -> stacks.Desired:
        """The same revision of a child stack, with how many resources it has. least — see `least_size`; before — how
        many it had.

        The tree is counted anew only every few seconds, and when much was made: as many nested stacks are made in
        between as there are, and to count them for each one would take longer than to make them. Fails: TooLarge.
        """
        root_id, size = parent.root_id or parent.id, size_of(desired)
        if size <= before:
            return replace(desired, size=size)
        with self._counting:
            known = self._sizes.get(root_id)
            if known is None or known.added > self._unseen_max:
                known = self._sizes[root_id] = _Size(stacks.size_of_tree(tx, root_id))
            total = known.counted + known.added + least - before
            if total > self.resources_max:
                raise TooLarge(
                    f"the stack with all that is nested in it would have {total} resources, at most "
                    f"{self.resources_max} are allowed: make several stacks of it, or raise --resources-max of the "
                    "service"
                )
            known.added += size - before
        return replace(desired, size=size)


@dataclass(slots=True)
class _Size:
    """Of a tree: as it was counted, and what this worker has added since."""

    counted: int
    added: int = 0


def least_size(desired: stacks.Desired) -> int:
    """How many resources a new revision will have at the least, with what is nested in the members of a large group."""
    size = size_of(desired)
    return GroupSize().size(desired) if desired.kind == "group" and size >= FORECAST_MIN else size


class GroupSize:
    """Counts what a group will have with all that is nested in its members, before anything of it is made, as far as
    templates and what they are given tell. What cannot be known yet counts as nothing."""

    def __init__(self) -> None:
        self._allowance = Allowance()
        self._known: dict[str, int] = {}

    def size(self, desired: stacks.Desired, levels: int = FORECAST_LEVELS) -> int:
        """At the least, with those of the stack itself. levels — of nested stacks that are looked into."""
        if desired.kind == "group":
            return size_of(desired) * (1 + self._member(desired, levels))
        identity = Identity("None", "nested", "None")
        compiled = compile_desired(desired, identity, strict=False, allowance=self._allowance)
        return sum(1 + self._within(each, desired, levels) for each in compiled.definitions.values())

    def _member(self, desired: stacks.Desired, levels: int) -> int:
        """Inside of each member; 0 where they differ by their names."""
        one, index_var = desired.template["resource_def"], desired.template["index_var"]
        member = groups.member_definition(one, "0", None)
        if member != groups.member_definition(one, "0", index_var):
            return 0
        definition = Definition("0", member["type"], member["properties"], static=True)
        return self._within(registry_of(desired.environment).applied(definition), desired, levels)

    def _within(self, each: Definition, around: stacks.Desired, levels: int) -> int:
        """Inside of one resource. around — the stack that it belongs to."""
        kind = type_of(each.type)
        if not levels or not isinstance(kind, FromTemplate | ResourceGroup):
            return 0
        registry = registry_of(around.environment)
        inside = nested_environment(around.environment, registry, each.name, each.called or each.type)
        if isinstance(kind, ResourceGroup):
            count, one = each.properties.get("count"), each.properties.get("resource_def")
            if not isinstance(count, int) or not isinstance(one, Mapping) or not isinstance(one.get("type"), str):
                return 0
            group = {"resource_def": one, "index_var": each.properties.get("index_var"), "count": count, "skip": ()}
            return self.size(stacks.Desired("group", group, environment=inside, files=around.files), levels - 1)
        return self._template(kind, each, inside, around.files, levels) if each.static else 0

    def _template(
        self,
        kind: FromTemplate,
        each: Definition,
        environment: dict[str, Any],
        files: Mapping[str, str],
        levels: int,
    ) -> int:
        """Of a nested template; equal ones are looked into once. One that is wrong says so when it is made."""
        source, given = kind.source(each.properties), kind.given(each.properties)
        key = repr((source, given, environment, levels))
        if key not in self._known and len(self._known) < FORECAST_MAX:
            try:
                template = template_of(source, files)
                parameters = parameters_of(given, declared_in(template, "parameters"))
                nested = stacks.Desired("template", template, parameters, environment, files)
                self._known[key] = self.size(nested, levels - 1)
            except Rejected:
                self._known[key] = 0
        return self._known.get(key, 0)


def give_up(db: Database, world: World, reason: str, now: float, timeout_s: float) -> None:
    """A tree has grown too large: FAIL what is being made of it at once, instead of stack by stack from below, so
    that nothing more is made. timeout_s — for going back to what the root stack was before."""
    with db.write() as tx:
        highest = _highest_busy(tx, world.stack)
        top = stacks.for_update(db, tx, highest) if highest else None
        if top is None or _highest_busy(tx, world.stack) != highest:
            return  # something else is wanted by now
        cancellation.cancel(db, tx, top, now, reason, cancellation.MAKING)
        if not top.disable_rollback and top.action in ROLLED_BACK_ON_FAILURE:
            stacks.roll_back(db, tx, top, now, timeout_s)


def _highest_busy(tx: Connection, stack: StackFacts) -> str:
    """The outermost stack around this one that is being made by the same request; "" where not even this one is."""
    found, stack_id = "", stack.id
    revision: int | None = stack.revision
    rows = schema.resource.c
    while True:
        row = stacks.get(tx, stack_id)
        if row is None or row.revision != revision or row.status != Status.IN_PROGRESS:
            return found
        if row.action not in cancellation.MAKING:
            return found
        found = stack_id
        if row.parent_id is None:
            return found
        stack_id = row.parent_id
        revision = tx.execute(select(rows.revision).where(rows.key == row.parent_key)).scalar_one_or_none()


def ended(tx: Connection, stack: StackFacts) -> str:
    """Why nothing new is made for a stack any more, where it has failed since it was loaded; else ""."""
    row = None if stack.halted else stacks.get(tx, stack.id)
    if row is None or row.revision != stack.revision or not stacks.facts(row).halted:
        return ""
    return str(row.reason)
