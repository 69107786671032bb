"""Rows of an adopted stack, created from its document without calls to the cloud.

The handle of a row keeps other stacks from adopting the same thing; the first pass over the row observes the thing (see
`planner.lifecycle.adopt`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from homeostat.desired.compiling import Definitions
from homeostat.kinds.registry import KINDS
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.intent import AdoptionData, AdoptionIntent
from homeostat.model.world import Resource
from homeostat.resources import groups
from homeostat.resources.composite import Composed
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import is_thing, kind_of, type_of
from homeostat.store.database import Database, Transaction
from homeostat.store.shards import shard_state
from homeostat.store.sql import bulk
from homeostat.store.stacks.contents import Content

NAMED = frozenset(name for name, kind in KINDS.items() if kind.id_field == "name")
"""Kinds with names as handles, which are unique within a project only."""
HANDLES_MAX = 500
"""Handles per query."""
Document = Mapping[str, Any]
"""An exported stack, or the entry of a resource; the entry of a nested stack is a document, too."""
Entries = Mapping[str, Document]
"""Name of a resource -> its entry in a document."""


def entries_of(document: Document) -> Entries:
    """Return the entries of a document that refer to existing things."""
    return {name: entry for name, entry in (document.get("resources") or {}).items() if _has_something(entry)}


def _has_something(entry: Document) -> bool:
    if is_document(entry):
        return any(_has_something(child) for child in entry["resources"].values())
    return bool(entry.get("resource_id"))


def is_document(entry: Document) -> bool:
    """Return whether the entry belongs to a nested stack."""
    return "resources" in entry


def arranged(content: Content, document: Document, bounds: tuple[int, int] | None) -> tuple[Content, Entries]:
    """Match the first revision of a nested stack with the entries of its document.

    A group gets the members in the document; their entries are renamed to numbers, the names of members here.

    Args:
        content: The revision as the resource defines it.
        document: Document of the nested stack.
        bounds: Minimum and maximum size of a group that keeps its size in the document; None if the definition alone
            decides the size.

    Returns:
        The revision, and the entries by new name.
    """
    entries = entries_of(document)
    standing = content.group
    if standing is None:
        return content, entries
    names = groups.numbered(entries)
    group = groups.of_members(standing, names.values(), bounds)
    renamed = {names[name]: entry for name, entry in entries.items()}
    return replace(content, template=group.encoded()), renamed


def root_rows(
    graph: Mapping[str, Definition], document: Document, stack_id: str, keys: Iterator[str], now: float
) -> list[Resource]:
    """Return the rows of a root stack that adopts the things in a document.

    Raises:
        Rejected: The document does not fit the stack, or has a resource that the template lacks.
    """
    entries = entries_of(document)
    unknown = sorted(entries.keys() - graph.keys())
    if unknown:
        message = f"the template has no such resource: {REMEDY}"
        raise Rejected("StackValidationFailed", message, path=("resources", unknown[0]))
    return rows_among(graph, entries, stack_id, 0, keys, now)


def rows_of(
    graphs: Iterable[Definitions], new: Identity, entries: Entries, keys: Iterator[str], now: float
) -> list[Resource]:
    """Return the rows of a nested stack that adopts these entries.

    Args:
        graphs: Definitions of each shard in the first revision of the stack.

    Raises:
        Terminal: The document does not fit the stack.
    """
    rows: list[Resource] = []
    names: set[str] = set()
    for shard, graph in enumerate(graphs):
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
    """Return rows for the resources of a shard that have an entry.

    Args:
        born: Number of rows of the stack created so far; the stamps continue from there.

    Raises:
        Rejected: An entry does not fit its definition; the error names the place.
    """
    rows: list[Resource] = []
    for name, definition in graph.items():
        entry = entries.get(name)
        if entry is None or definition.external_id is not None:
            continue
        _check(definition, entry)
        row = Resource(next(keys), stack_id, shard, name, definition.type, revision=1, born=born + len(rows) + 1)
        row.template_type, row.deletion_policy = definition.template_type or None, definition.deletion_policy
        row.created_at = row.updated_at = now
        # Only a thing of a cloud has its handle already. Records of the service are created later, from the entry.
        if is_thing(row.type):
            row.handle = entry["resource_id"]
        row.intent = AdoptionIntent(_adoption_data(entry))
        rows.append(row)
    return rows


def _adoption_data(entry: Document) -> AdoptionData:
    """Return the part of an entry that its row stores until the adoption."""
    if is_document(entry):
        return {"document": entry}
    names = {"id": "resource_id", "action": "action", "status": "status"}
    data = {name: entry.get(key) for name, key in names.items()}
    return {**data, "metadata": entry.get("metadata") or {}, "data": entry.get("resource_data") or {}}


def _check(definition: Definition, entry: Document) -> None:
    """Check that an entry fits its definition: the type, and whether both are a stack.

    Raises:
        Rejected: They differ; the error names the place.
    """
    path = ("resources", definition.name)
    called, exported = definition.shown_type, entry.get("type")
    if exported is not None and exported not in (called, definition.type):
        message = f"it is of type {exported} in the document, and of type {called} in the template"
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
    """Rows of a new stack; `written` has them encoded for the database, before the transaction that stores them."""

    rows: Sequence[Resource]
    written: bulk.EncodedRows


def write_out(db: Database, rows: Sequence[Resource], *, secret: bool) -> AdoptedRows:
    """Encode the rows of a new stack; with `secret`, they may hold secrets, and are encrypted."""
    return AdoptedRows(rows, shard_state.encode_new(db, rows, secret=secret))


def add(tx: Transaction, project: str, adopted: AdoptedRows) -> None:
    """Store the rows of a new stack.

    Raises:
        Terminal: Another resource has one of the things already.
    """
    if not adopted.rows:
        return
    # Without the lock, concurrent adoptions would not see each other's rows, and could both adopt the same thing.
    tx.advisory_lock("adopt")
    for row, reason in conflicts(tx, project, adopted.rows):
        raise Terminal(f"resources.{row.name}.resource_id: {reason}")
    adopted.written.store(tx)


def conflicts(tx: Transaction, project: str, rows: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
    """Yield the rows whose things cannot be adopted, since other resources have them; and the reason."""
    claimed: dict[tuple[str, str], Resource] = {}
    for row in rows:
        other = claimed.setdefault((kind_of(row.type), row.handle), row)
        if row.handle and other is not row:
            yield row, f"{row.handle} is that of {other.name}, too"
    handles = sorted({handle for _, handle in claimed if handle})
    for start in range(0, len(handles), HANDLES_MAX):
        for owner in shard_state.owners_of(tx, handles[start : start + HANDLES_MAX]):
            same = claimed.get((kind_of(owner.type), owner.handle))
            if same is not None and (owner.project == project or kind_of(owner.type) not in NAMED):
                yield same, _taken(owner, project)


def _taken(holder: shard_state.HandleOwner, project: str) -> str:
    """Return why a thing cannot be adopted, without disclosing stacks of other projects."""
    if holder.project != project:
        return f"{holder.handle} is not yours to adopt"
    place = f"{holder.handle} is {holder.name} of stack {holder.stack_name} already"
    return f"{place}: abandon that first, or take it out of the document"
