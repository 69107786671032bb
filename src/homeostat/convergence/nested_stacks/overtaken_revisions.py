"""Removal requests of overtaken revisions to groups, including revisions that never began (ADR 0095).

A stack may have a thousand groups, each of which needs its requests in a hundred overtaken revisions. So each revision
is read and compiled once, and only the resources that may carry a request are kept.
"""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from homeostat.convergence.nested_stacks.attributes import scope_of
from homeostat.convergence.nested_stacks.removal_requests import RemovalRequest, RemovalRequests
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
from homeostat.store.database import Transaction
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks
from homeostat.store.stacks.contents import Content
from homeostat.templates import evaluate

LOG = logging.getLogger(__name__)
OVERTAKEN_MAX = 100
"""Overtaken revisions of one stack that are read for removal requests: the newest ones."""
GOES_BACK = frozenset({Action.ROLLBACK, Action.RESTORE, Action.DELETE})
"""Actions that void all earlier requests."""
REMOVAL = frozenset({"removal_policies", "removal_policies_mode"})
"""Properties of a group that carry a removal request."""
CACHE_MAX = 200_000
"""Definitions and requests kept in memory: of the revisions of one stack together, so that all of its groups find them;
half a KiB each, or more where a nested template has large parameters."""

PAGES_MAX = 10_000
"""Lists of overtaken revisions kept in memory, each for one stack and newest revision."""

Key = tuple[str | int, ...]
"""Identifies a revision; begins with the id of its stack."""
Entry = Definition | tuple[Sequence[Mapping[str, Any]], str]
"""A resource in an overtaken revision: its definition, or for a group with known values just its removal request, which
is the values of the properties `REMOVAL`."""


class _Overtaken(NamedTuple):
    """An overtaken revision.

    Attributes:
        at: When the revision was accepted.
        key: See `Key`.
        load: Reads or computes the desired state; raises Rejected or Terminal if that is invalid.
    """

    at: float
    key: Key
    load: Callable[[], Content]


class OvertakenRevisions:
    """Contents of overtaken revisions, each compiled once. Safe to share between threads."""

    def __init__(self, cache_max: int = CACHE_MAX) -> None:
        """Begin empty; `cache_max` limits the number of entries, and each revision counts as one more."""
        self._cache: Cache[Key, Mapping[str, Entry]] = Cache(cache_max, lambda entries: 1 + len(entries))
        self._pages: Cache[Key, Sequence[revisions.RevisionSummary]] = Cache(PAGES_MAX)

    def requests_of(
        self, tx: Transaction, world: World, row: Resource | None, *, next_one: bool = False
    ) -> RemovalRequests:
        """Return the removal requests to a group before the newest revision.

        Args:
            tx: A consistent read.
            world: World of the group's shard.
            row: Row of the group; None if it does not exist yet.
            next_one: Whether the world belongs to a preview, which overtakes the newest stored revision.
        """
        at = math.inf if next_one else _accepted_at(tx, world.stack)
        if row is None or not _takes_requests(row.type):
            return RemovalRequests(at)
        overtaken = self._of(tx, world.stack, world.stack.revision, int(next_one))
        requests = (self._request_in(revision, world, row) for revision in overtaken)
        return RemovalRequests(at, [request for request in requests if request is not None])

    def _of(self, tx: Transaction, stack: StackFacts, newest: int, more: int) -> list[_Overtaken]:
        """Return the overtaken revisions of a stack since it was complete, oldest first.

        Args:
            tx: A consistent read.
            newest: The current revision of the stack.
            more: Number of revisions of the enclosing stacks that are yet to be stored.
        """
        if stack.action in GOES_BACK:
            return []
        overtaken = self._above(tx, stack, more)
        for summary in self._revisions(tx, stack, newest):
            if summary.action in GOES_BACK:
                break
            if summary.kind == "template":
                overtaken.append(_stored(tx, stack.id, int(summary.number), float(summary.created_at)))
        return sorted(overtaken, key=lambda revision: revision.at)

    def _revisions(self, tx: Transaction, stack: StackFacts, newest: int) -> Sequence[revisions.RevisionSummary]:
        """Return the revisions of a stack since it was complete, newest first.

        Revisions never change, so the groups of a tree share one read. If no revision was overtaken nothing is read,
        however many revisions the stack has had.
        """
        complete = stack.complete_revision or 0
        if newest - complete <= 1:
            return ()
        key = (stack.id, complete, newest)
        return self._pages.get(key, lambda: revisions.page(tx, stack.id, OVERTAKEN_MAX, newest, complete))

    def _above(self, tx: Transaction, stack: StackFacts, more: int) -> list[_Overtaken]:
        """Return the revisions that a nested stack would have had by the overtaken revisions of its parent."""
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
        inside = (self._inside(revision, world, row, stack.id) for revision in above) if row is not None else ()
        return [revision for revision in inside if revision is not None]

    def _inside(self, overtaken: _Overtaken, world: World, row: Resource, nested_id: str) -> _Overtaken | None:
        """Return the revision of a nested stack that follows from a parent's revision; None without a template."""
        definition = self._entries(overtaken, world.stack).get(row.name)
        if not isinstance(definition, Definition) or not isinstance(type_of(definition.type), FromTemplate):
            return None
        try:
            values = _values(definition, world)
        except (Rejected, Terminal) as error:
            _ignored(world.stack, row.name, error)
            return None

        def load() -> Content:
            parent = overtaken.load()
            inside = environment_inside(parent, row.name, definition.shown_type)
            return from_template(replace(row, type=definition.type, properties=values), parent, inside)

        # Values that depend on other resources may change at any moment, so they are part of the key.
        now = () if definition.static else (json.dumps(values, sort_keys=True),)
        return _Overtaken(overtaken.at, (nested_id, *overtaken.key, *now), load)

    def _request_in(self, overtaken: _Overtaken, world: World, row: Resource) -> RemovalRequest | None:
        """Return the removal request of a revision to a group; None if the revision has no such group."""
        entry = self._entries(overtaken, world.stack).get(row.name)
        if isinstance(entry, Definition):
            if not _takes_requests(entry.type):
                return None
            try:
                entry = _removal(entry, _values(entry, world))
            except (Rejected, Terminal) as error:
                _ignored(world.stack, row.name, error)
                return None
        return RemovalRequest(overtaken.at, *entry) if entry is not None else None

    def _entries(self, overtaken: _Overtaken, stack: StackFacts) -> Mapping[str, Entry]:
        """Return the resources of a revision that may carry requests, by name; none if the revision is invalid."""
        return self._cache.get(overtaken.key, lambda: _compiled(overtaken, stack))


def _stored(tx: Transaction, stack_id: str, number: int, at: float) -> _Overtaken:
    return _Overtaken(at, (stack_id, number), lambda: revisions.content_of(tx, stack_id, number))


def _compiled(overtaken: _Overtaken, stack: StackFacts) -> Mapping[str, Entry]:
    """Compile a revision, and return the entries that `OvertakenRevisions` keeps."""
    try:
        graph = compile_graph(overtaken.load(), Identity(stack.id, stack.name, stack.project), 0)
    except (Rejected, Terminal, LookupError) as error:  # LookupError: purged since it was listed
        _ignored(stack, "its resources", error)
        return {}
    entries: dict[str, Entry] = {}
    for name, definition in graph.items():
        if isinstance(type_of(definition.type), FromTemplate):
            entries[name] = definition
        elif _takes_requests(definition.type) and REMOVAL & definition.properties.keys():
            try:
                entries[name] = _removal(definition, _checked(definition)) if definition.static else definition
            except (Rejected, Terminal) as error:
                _ignored(stack, name, error)
    return entries


def _takes_requests(type_name: str) -> bool:
    """Return whether templates may name members to remove; a cluster collects its removal requests itself."""
    kind = type_of(type_name)
    return isinstance(kind, ResourceGroup) and not isinstance(kind, NodeGroup)


def _accepted_at(tx: Transaction, stack: StackFacts) -> float:
    """Return when the newest revision of the root stack was accepted."""
    newest = revisions.page(tx, stack.root_id or stack.id, 1)
    return float(newest[0].created_at) if newest else 0.0


def _ignored(stack: StackFacts, what: str, error: Exception) -> None:
    """Log that a revision has no requests, since it is invalid."""
    LOG.info("what an overtaken update of stack %s asked of %s is not known: %s", stack.id, what, error)


def _values(definition: Definition, world: World) -> dict[str, Any]:
    """Return the properties of a resource in a revision by the present values of other resources.

    Raises:
        Rejected, Terminal: The values are invalid, or not known.
    """
    if definition.static:
        return _checked(definition)
    return _checked(replace(definition, properties=evaluate(definition.properties, scope_of(world))))


def _checked(definition: Definition) -> dict[str, Any]:
    """Return properties without functions, checked; raises as `_values`."""
    return type_of(definition.type).check(definition.properties, ("resources", definition.name))


def _removal(definition: Definition, values: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Return the removal request in the properties of a group."""
    whole = type_of(definition.type).complete(values)
    return whole["removal_policies"], whole["removal_policies_mode"]
