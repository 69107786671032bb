"""Rows for what a stack is given: each thing that its document names, to be taken over in its turn.

Nobody asks a cloud here. A row with a handle keeps everybody else from that thing from now on; the pass that comes to
it looks at it first (see `planner.lifecycle.adoption`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.desired.graphs import compile_graph, group_desired
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.world import Resource
from homeostat.planner.lifecycle import adoption_data
from homeostat.resources import builtin_kinds, groups
from homeostat.resources.composite import Composed
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import is_outside, kind_of, type_of
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.sql import bulk
from homeostat.store.stacks.stacks import Desired

NAMED = frozenset({"keypair", "container", "workflow", "cron_trigger", "queue"})
"""Kinds of things whose handles are names: every project may have one of a name."""
HANDLES_MAX = 500
"""Handles that one query asks for."""
Document = Mapping[str, Any]
Entries = Mapping[str, Document]
"""Name of a resource -> its entry in a document."""


def entries_of(document: Document) -> Entries:
    """Resources of a document that have anything to take over."""
    return {name: each for name, each in (document.get("resources") or {}).items() if _has_something(each)}


def _has_something(entry: Document) -> bool:
    if is_document(entry):
        return any(_has_something(each) for each in entry["resources"].values())
    return bool(entry.get("resource_id"))


def is_document(entry: Document) -> bool:
    """Is it that of a stack?"""
    return "resources" in entry


def arranged(desired: Desired, document: Document, *, sized: bool) -> tuple[Desired, Entries]:
    """The first revision of a nested stack, with the members of a group as the document has them, and the entries under
    the names of ours.

    sized — a group that keeps its size, whatever its definition says. Fails: Terminal for a member that the group would
    not have.
    """
    entries = entries_of(document)
    if desired.kind != "group":
        return desired, entries
    names = groups.numbered(entries)
    group = groups.of_members(desired.template, names.values(), sized=sized)
    whole = group_desired(group)
    found = {names[name]: each for name, each in entries.items()}
    return replace(desired, template=whole.template, shards=whole.shards), found


def rows_of(desired: Desired, new: Identity, entries: Entries, keys: Iterator[str], now: float) -> list[Resource]:
    """For a nested stack. Fails: Terminal naming what is wrong."""
    rows: list[Resource] = []
    names: set[str] = set()
    for shard in range(desired.shards):
        graph = compile_graph(desired, new, shard)
        names.update(graph)
        try:
            rows += rows_among(graph, entries, new.stack_id, shard, keys, now, born=len(rows))
        except Rejected as error:
            raise Terminal(f"the document does not fit: {error}") from error
    strange = sorted(entries.keys() - names)
    if strange:
        raise Terminal(f"the document has {', '.join(strange[:5])}, which would not be in {new.stack_name}: {REMEDY}")
    return rows


REMEDY = "adopt the stack as the document has it, and update it then"


def rows_among(
    graph: Mapping[str, Definition],
    entries: Entries,
    stack_id: str,
    shard: int,
    keys: Iterator[str],
    now: float,
    born: int = 0,
) -> list[Resource]:
    """Rows for the entries of resources that should exist. Fails: Rejected naming the place."""
    rows: list[Resource] = []
    for name, definition in graph.items():
        entry = entries.get(name)
        if entry is None or definition.external_id is not None:
            continue
        _check(definition, entry)
        row = Resource(next(keys), stack_id, shard, name, definition.type, revision=1, born=born + len(rows) + 1)
        row.called, row.deletion_policy = definition.called or None, definition.deletion_policy
        row.created_at = row.updated_at = now
        if is_outside(row.type) and kind_of(row.type) not in builtin_kinds.KINDS:
            row.handle = entry["resource_id"]
        adoption_data.keep(row, _given(entry))
        rows.append(row)
    return rows


def _given(entry: Document) -> adoption_data.Given:
    if is_document(entry):
        return {"document": entry}
    names = {"id": "resource_id", "action": "action", "status": "status"}
    found = {name: entry.get(key) for name, key in names.items()}
    return {**found, "metadata": entry.get("metadata") or {}, "data": entry.get("resource_data") or {}}


def _check(definition: Definition, entry: Document) -> None:
    """Fails: Rejected naming the place."""
    path = ("resources", definition.name)
    called, told = definition.called or definition.type, entry.get("type")
    if told is not None and told not in (called, definition.type):
        message = f"it is of type {told} in the document, and of type {called} in the template"
        raise Rejected("StackValidationFailed", message, path=(*path, "type"))
    kind = type_of(definition.type)
    is_stack = kind.kind == NestedStack.kind
    if is_document(entry) and not is_stack:
        raise Rejected("StackValidationFailed", f"a {called} is no stack here, and has no resources", path=path)
    if is_stack and not is_document(entry):
        parts = "several things" if isinstance(kind, Composed) else "a stack of its own"
        message = f"a {called} is {parts} here: the document of that is needed, with its resources"
        raise Rejected("StackValidationFailed", message, path=path)


@dataclass(frozen=True, slots=True)
class AdoptedRows:
    """Rows of a new stack. written — the same, written out: no time of a transaction goes into that."""

    rows: Sequence[Resource]
    written: bulk.EncodedRows


def write_out(db: Database, rows: Sequence[Resource], *, secret: bool) -> AdoptedRows:
    """secret — they may hold secrets."""
    return AdoptedRows(rows, shard_state.encode_new(db, rows, secret=secret))


def add(db: Database, tx: Connection, project: str, adopted: AdoptedRows) -> None:
    """Store the rows of a new stack. Fails: Terminal when another resource has one of their things already."""
    if not adopted.rows:
        return
    db.one_by_one(tx, "adopt")
    mine: dict[tuple[str, str], str] = {}
    for row in adopted.rows:
        other = mine.setdefault((kind_of(row.type), row.handle), row.name)
        if row.handle and other != row.name:
            raise Terminal(f"resources.{row.name}.resource_id: {row.handle} is that of {other}, too")
    handles = sorted({handle for _, handle in mine if handle})
    for start in range(0, len(handles), HANDLES_MAX):
        for each in shard_state.held(tx, handles[start : start + HANDLES_MAX]):
            name = mine.get((kind_of(each.type), each.handle))
            if name is not None and (each.project == project or kind_of(each.type) not in NAMED):
                raise Terminal(f"resources.{name}.resource_id: {_taken(each, project)}")
    adopted.written.store(tx)


def _taken(holder: Row[Any], project: str) -> str:
    """Who has the thing; of other projects nothing is told."""
    if holder.project != project:
        return f"{holder.handle} is not yours to adopt"
    place = f"{holder.handle} is {holder.name} of stack {holder.stack_name} already"
    return f"{place}: abandon that first, or take it out of the document"
