"""Export of a stack as a document, as in Heat, for adoption by another service.

The document is not redacted: it contains the secrets of the stack.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from homeostat.builtin.kinds.base import RECORD, SIGNALS
from homeostat.builtin.signals import handle_metadata
from homeostat.desired.compiling import Definitions
from homeostat.desired.graphs import DesiredGraphs
from homeostat.desired.texts import GENERATED, group_text, template_text
from homeostat.json_pieces import Entries
from homeostat.kinds.registry import BUILTIN_KINDS
from homeostat.model.desired import Definition, Identity
from homeostat.model.intent import adoption_of
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, StackFacts
from homeostat.planner.current import current_row
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import kind_of, shown_id, type_of
from homeostat.store.builtin import records
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks, views
from homeostat.store.stacks.contents import Content
from homeostat.templates import environments

Document = dict[str, Any]
Reading = Callable[[], AbstractContextManager[Transaction]]
"""Opens a read transaction."""
READ_BYTES = 1024 * 1024
"""Estimated bytes of properties read at once."""
READ_MAX = 500


def document(tx: Transaction, stack: StackRow, graphs: DesiredGraphs, reading: Reading) -> Document:
    """Return the document of a stack in its present state, including nested stacks.

    Resources, and members of groups in the template, are read in batches while the document is written (`json_pieces`).

    Args:
        tx: Transaction for the beginning of the document.
        reading: Opens a transaction for a batch of resources. If not always the same consistent read, the parts of the
            document are of different times.
    """
    revision = views.described_revision(tx, stack.id) or stack.revision
    stored = revisions.stored(tx, stack.id, revision)
    content = stored.decoded()
    identity = Identity(stack.id, stack.name, stack.project)

    def graph_of(number: int) -> Definitions:
        return graphs.get(identity, revision, number, lambda: replace(stored, decoded=lambda: content))

    sections = environments.user_sections(content.environment)
    return {
        "name": stack.name,
        "id": stack.id,
        "action": stack.action,
        "status": stack.status,
        "project_id": stack.project,
        "stack_user_project_id": stack.user_project or stack.project,
        "tags": stack.tags,
        "environment": {**sections, "parameters": {**(sections.get("parameters") or {}), **content.parameters}},
        "files": dict(content.files),
        "template": _template(content, graph_of),
        "resources": Entries(_resources(reading, stack, graph_of, graphs)),
    }


def _template(content: Content, graph_of: Callable[[int], Definitions]) -> Document:
    group = content.group
    if group is not None:
        return {**GENERATED, "resources": Entries(group_text(group))}
    return template_text(content, graph_of(0))


def _resources(
    reading: Reading, stack: StackRow, graph_of: Callable[[int], Definitions], graphs: DesiredGraphs
) -> Iterator[tuple[str, Document | Entries]]:
    for number in range(stack.shards):
        graph = graph_of(number)
        with reading() as tx:
            size = shard_state.stored_bytes(tx, stack.id, number)
        count = max(1, min(READ_MAX, READ_BYTES * len(graph) // (size + 1)))
        names = list(graph)
        for first in range(0, len(names), count):
            some = {name: graph[name] for name in names[first : first + count]}
            with reading() as tx:
                entries = _some(tx, stack, some, number, graphs, reading)
            yield from entries.items()


def _some(
    tx: Transaction, stack: StackRow, definitions: Definitions, shard: int, graphs: DesiredGraphs, reading: Reading
) -> dict[str, Document | Entries]:
    """Return the entries of some resources of a shard."""
    rows, seen = views.resources(tx, stack.id, definitions, [shard])
    by_name: dict[str, list[Resource]] = defaultdict(list)
    for row in rows.values():
        by_name[row.name].append(row)
    facts = stacks.facts(stack)
    entries: dict[str, Document | Entries] = {}
    for name, definition in definitions.items():
        current = _row_of(by_name.get(name, ()), facts)
        entries[name] = _unmade(definition)
        if current is not None and not _is_of_others(current, definition):
            entries[name] = _entry(tx, stack.project, current, seen.get(current.key), graphs, reading)
    return entries


def _row_of(rows: Sequence[Resource], stack: StackFacts) -> Resource | None:
    """Return the row to export of a resource: the current row.

    If the current row has no thing (yet), a row whose thing is being deleted, since the deletion may never succeed.
    """
    current = current_row(rows, stack)
    if current is not None and (
        current.handle or current.action != Action.INIT or adoption_of(current.intent) is not None
    ):
        return current
    going = [row for row in rows if row.deleting and row.handle]
    return max(going, key=lambda row: row.born, default=current)


def _is_of_others(row: Resource, definition: Definition) -> bool:
    """Return whether a row still refers to an unmanaged thing, though the template asks for a managed resource.

    The update to a managed resource has failed. An adopting service must not take the thing over, and later delete it.
    """
    return row.external_id is not None and definition.external_id is None


def _unmade(definition: Definition) -> Document:
    """Return the entry of a resource that has not been created."""
    state = {"action": Action.INIT, "status": Status.COMPLETE}
    called = definition.shown_type
    return {"name": definition.name, "resource_id": None, "type": called, **state, "metadata": {}, "resource_data": {}}


def _entry(
    tx: Transaction, project: str, row: Resource, seen: Seen | None, graphs: DesiredGraphs, reading: Reading
) -> Document | Entries:
    # A resource that is still to be adopted is exported unchanged, as in the document of the adoption.
    adopted = adoption_of(row.intent) if row.action == Action.INIT else None
    if adopted is not None and "document" in adopted:
        return dict(adopted["document"])
    child = stacks.get(tx, row.handle) if row.handle and kind_of(row.type) == NestedStack.kind else None
    if child is not None:
        return Entries(_nested(child, graphs, reading))
    return {
        "name": row.name,
        "resource_id": shown_id(row.type, row.handle) or None,
        "type": row.shown_type,
        "action": row.action,
        "status": row.status,
        "metadata": adopted["metadata"] if adopted is not None else _metadata(tx, project, row),
        "resource_data": dict(adopted["data"]) if adopted is not None else _data(tx, project, row, seen),
    }


def _nested(stack: StackRow, graphs: DesiredGraphs, reading: Reading) -> Iterator[tuple[str, Any]]:
    with reading() as tx:
        content = document(tx, stack, graphs, reading)
    yield from content.items()


def _metadata(tx: Transaction, project: str, row: Resource) -> Document:
    """Return the metadata of the template, and the signals of a handle."""
    record = records.get(tx, row.handle, project=project) if kind_of(row.type) in BUILTIN_KINDS else None
    return {**(row.metadata or {}), **(handle_metadata(tx, record) if record is not None else {})}


def _data(tx: Transaction, project: str, row: Resource, seen: Seen | None) -> Document:
    """Return data that only this service has, so an adopting service cannot read it from the cloud."""
    kind = type_of(row.type)
    if kind.kind in BUILTIN_KINDS:
        record = records.get(tx, row.handle, kind.kind, project)
        return _record_data(tx, record) if record is not None else {}
    if seen is None or not seen.observation.present:
        return {}
    properties = seen.observation.properties
    if kind.kind == "":
        return dict(properties)
    return {name: properties[name] for name in kind.creation_only_fields if name in properties}


def _record_data(tx: Transaction, record: records.Record) -> Document:
    signals = [{**signal.object, "at": signal.at} for signal in records.signals_of(tx, [record.id]).get(record.id, ())]
    record_data = {"object": record.object, "secret": record.secret, "link": record.link}
    return {RECORD: record_data, SIGNALS: signals} if signals else {RECORD: record_data}
