"""What revisions asked of groups that newer ones overtook, also those that were never begun (ADR 0095).

A stack may have a thousand groups, each of which asks what a hundred overtaken revisions say of it. So each revision is
read and compiled once, and only that is kept of it which may ask anything.
"""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from homeostat.convergence.nested_stacks.attributes import scope_of
from homeostat.convergence.nested_stacks.removal_requests import Asked, Asks
from homeostat.convergence.nested_stacks.template_stacks import environment_inside, from_template
from homeostat.desired.cache import Cache
from homeostat.desired.graphs import compile_graph
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.status import Action
from homeostat.model.world import Resource, StackFacts, World
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.nested import FromTemplate
from homeostat.resources.registry import type_of
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks
from homeostat.templates import evaluate

LOG = logging.getLogger(__name__)
OVERTAKEN_MAX = 100
"""Revisions of one stack, the newest ones, that are read for what they asked."""
GOES_BACK = frozenset({Action.ROLLBACK, Action.RESTORE, Action.DELETE})
"""Actions after which nothing counts that was asked before."""
REMOVAL = frozenset({"removal_policies", "removal_policies_mode"})
"""Properties of a group by which it is asked."""
CACHE_MAX = 200_000
"""Definitions and requests kept in memory: of the revisions of one stack together, so that all of its groups find them;
half a KiB each, or more where a nested template has large parameters."""

PAGES_MAX = 10_000
"""Lists of overtaken revisions kept in memory, one for each stack and newest revision."""

Key = tuple[str | int, ...]
"""What tells a revision from all others; it begins with the id of its stack."""
Entry = Definition | tuple[Sequence[Mapping[str, Any]], str]
"""A resource in an overtaken revision: its definition, or where that is a group with values, what they ask: the
properties of `REMOVAL`."""


class _Overtaken(NamedTuple):
    """A revision that was overtaken.

    Attributes:
        at: When it was accepted.
        key: See `Key`.
        load: Reads what it says, or works it out; raises Rejected or Terminal where it cannot be brought about.
    """

    at: float
    key: Key
    load: Callable[[], revisions.Desired]


class OvertakenRevisions:
    """What overtaken revisions say, each compiled once. Safe to share between threads."""

    def __init__(self, cache_max: int = CACHE_MAX) -> None:
        """Begin empty; `cache_max` is the number of entries kept at most, where each revision counts as one more."""
        self._cache: Cache[Key, Mapping[str, Entry]] = Cache(cache_max, lambda entries: 1 + len(entries))
        self._pages: Cache[Key, Sequence[revisions.RevisionSummary]] = Cache(PAGES_MAX)

    def asks_of(self, tx: Connection, world: World, row: Resource | None, *, next_one: bool = False) -> Asks:
        """Return what was asked of a group before the newest revision.

        Args:
            tx: A consistent read.
            world: World of the shard that the group is in.
            row: Its row; None where it is yet to be made.
            next_one: Whether the world is that of a preview, in which the newest revision that is stored is overtaken.
        """
        at = math.inf if next_one else _accepted_at(tx, world.stack)
        if row is None or not _may_be_asked(row.type):
            return Asks(at)
        overtaken = self._of(tx, world.stack, world.stack.revision, int(next_one))
        found = (self._asked(each, world, row) for each in overtaken)
        return Asks(at, [each for each in found if each is not None])

    def _of(self, tx: Connection, stack: StackFacts, newest: int, more: int) -> list[_Overtaken]:
        """Return what a stack was to be since it was complete, the oldest first.

        Args:
            tx: A consistent read.
            stack: The stack.
            newest: The revision by which it is made now.
            more: How many revisions of the stacks around it are yet to be stored.
        """
        if stack.action in GOES_BACK:
            return []
        found = self._above(tx, stack, more)
        for each in self._revisions(tx, stack, newest):
            if each.action in GOES_BACK:
                break
            if each.kind == "template":
                found.append(_stored(tx, stack.id, int(each.number), float(each.created_at)))
        return sorted(found, key=lambda overtaken: overtaken.at)

    def _revisions(self, tx: Connection, stack: StackFacts, newest: int) -> Sequence[revisions.RevisionSummary]:
        """Return the revisions of a stack since it was complete, the newest first.

        They never change, so all groups in a tree read them once; and where none was overtaken nothing is read, however
        many revisions the stack has had.
        """
        complete = stack.complete_revision or 0
        if newest - complete <= 1:
            return ()
        key = (stack.id, complete, newest)
        return self._pages.get(key, lambda: revisions.page(tx, stack.id, OVERTAKEN_MAX, newest, complete))

    def _above(self, tx: Connection, stack: StackFacts, more: int) -> list[_Overtaken]:
        """Return what a nested stack would have been, had the overtaken revisions of its parent been begun."""
        parent = stacks.get(tx, stack.parent_id) if stack.parent_id is not None else None
        if parent is None:
            return []
        above = self._of(tx, stacks.facts(parent), parent.revision + more, more)
        if not above:
            return []
        # A stack made from a template has one shard.
        rows, seen = shard_state.load_rows(tx, parent.id, 0)
        row = rows.get(stack.parent_key or "")
        world = World(stacks.facts(parent), 0, {}, rows, seen)
        found = (self._inside(each, world, row, stack.id) for each in above) if row is not None else ()
        return [each for each in found if each is not None]

    def _inside(self, overtaken: _Overtaken, world: World, row: Resource, nested_id: str) -> _Overtaken | None:
        """Return what a revision wanted of the nested stack of a resource; None where that is not from a template."""
        definition = self._entries(overtaken, world.stack).get(row.name)
        if not isinstance(definition, Definition) or not isinstance(type_of(definition.type), FromTemplate):
            return None
        try:
            values = _values(definition, world)
        except (Rejected, Terminal) as error:
            _ignored(world.stack, row.name, error)
            return None

        def load() -> revisions.Desired:
            parent = overtaken.load()
            inside = environment_inside(parent, row.name, definition.shown_type)
            return from_template(replace(row, type=definition.type, properties=values), parent, inside)

        # Values that follow from other resources may be others a moment later.
        now = () if definition.static else (json.dumps(values, sort_keys=True),)
        return _Overtaken(overtaken.at, (nested_id, *overtaken.key, *now), load)

    def _asked(self, overtaken: _Overtaken, world: World, row: Resource) -> Asked | None:
        """Return what a revision asked of a group; None where there was none in it."""
        entry = self._entries(overtaken, world.stack).get(row.name)
        if isinstance(entry, Definition):
            if not _may_be_asked(entry.type):
                return None
            try:
                entry = _removal(entry, _values(entry, world))
            except (Rejected, Terminal) as error:
                _ignored(world.stack, row.name, error)
                return None
        return Asked(overtaken.at, *entry) if entry is not None else None

    def _entries(self, overtaken: _Overtaken, stack: StackFacts) -> Mapping[str, Entry]:
        """Return the resources of a revision that may ask something, by name; none where it cannot be brought about."""
        return self._cache.get(overtaken.key, lambda: _compiled(overtaken, stack))


def _stored(tx: Connection, stack_id: str, number: int, at: float) -> _Overtaken:
    return _Overtaken(at, (stack_id, number), lambda: revisions.desired_of(tx, stack_id, number))


def _compiled(overtaken: _Overtaken, stack: StackFacts) -> Mapping[str, Entry]:
    """Compile a revision, and return what `OvertakenRevisions` keeps of it."""
    try:
        graph = compile_graph(overtaken.load(), Identity(stack.id, stack.name, stack.project), 0)
    except (Rejected, Terminal, LookupError) as error:  # it may have been purged since it was listed
        _ignored(stack, "its resources", error)
        return {}
    found: dict[str, Entry] = {}
    for name, definition in graph.items():
        if isinstance(type_of(definition.type), FromTemplate):
            found[name] = definition
        elif _may_be_asked(definition.type) and REMOVAL & definition.properties.keys():
            try:
                found[name] = _removal(definition, _checked(definition)) if definition.static else definition
            except (Rejected, Terminal) as error:
                _ignored(stack, name, error)
    return found


def _may_be_asked(type_name: str) -> bool:
    """Return whether templates may name members to remove; a cluster itself adds up whom it was asked to remove."""
    kind = type_of(type_name)
    return isinstance(kind, ResourceGroup) and not isinstance(kind, NodeGroup)


def _accepted_at(tx: Connection, stack: StackFacts) -> float:
    """Return when the newest revision of the root stack was accepted."""
    found = revisions.page(tx, stack.root_id or stack.id, 1)
    return float(found[0].created_at) if found else 0.0


def _ignored(stack: StackFacts, what: str, error: Exception) -> None:
    """Say that a revision asks nothing, since it could not have been brought about."""
    LOG.info("what an overtaken update of stack %s asked of %s is not known: %s", stack.id, what, error)


def _values(definition: Definition, world: World) -> dict[str, Any]:
    """Return the properties of a resource in a revision as they are now.

    Raises:
        Rejected, Terminal: They cannot be worked out.
    """
    if definition.static:
        return _checked(definition)
    return _checked(replace(definition, properties=evaluate(definition.properties, scope_of(world))))


def _checked(definition: Definition) -> dict[str, Any]:
    """Return properties that hold no function any more, checked; raises as `_values`."""
    return type_of(definition.type).check(definition.properties, ("resources", definition.name))


def _removal(definition: Definition, values: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return what the properties of a group ask."""
    whole = type_of(definition.type).complete(values)
    return whole["removal_policies"], whole["removal_policies_mode"]
