"""Export of a stack as one document, as in Heat, from which another service can adopt it.

The document is not redacted: it contains the secrets of the stack.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection

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
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards import shard_state
from homeostat.store.stacks import revisions, stacks, views
from homeostat.store.stacks.revisions import Desired
from homeostat.templates import environments

Document = dict[str, Any]
Reading = Callable[[], AbstractContextManager[Connection]]
"""Opens a transaction that reads."""
READ_BYTES = 1024 * 1024
"""Bytes of the properties that are read at once, as far as one can tell."""
READ_MAX = 500


def document(tx: Connection, stack: StackRow, graphs: DesiredGraphs, reading: Reading) -> Document:
    """Return the document of a stack as it is, with everything nested in it.

    Its resources, and the members of groups in its template, are made while it is written (`json_pieces`), some at a
    time.

    Args:
        tx: What the beginning is read in.
        stack: Row of the stack.
        graphs: Cache of compiled graphs.
        reading: Opens what the resources are read in: the same consistent read each time, or a new one; then each part
            of the document is as it is when its turn comes.
    """
    revision = views.described_revision(tx, stack.id) or stack.revision
    desired = revisions.desired_of(tx, stack.id, revision)
    identity = Identity(stack.id, stack.name, stack.project)

    def graph_of(number: int) -> Definitions:
        return graphs.get(identity, revision, number, lambda: desired)

    shown = environments.user_sections(desired.environment)
    return {
        "name": stack.name,
        "id": stack.id,
        "action": stack.action,
        "status": stack.status,
        "project_id": stack.project,
        "stack_user_project_id": stack.user_project or stack.project,
        "tags": stack.tags,
        "environment": {**shown, "parameters": {**(shown.get("parameters") or {}), **desired.parameters}},
        "files": dict(desired.files),
        "template": _template(desired, graph_of),
        "resources": Entries(_resources(reading, stack, graph_of, graphs)),
    }


def _template(desired: Desired, graph_of: Callable[[int], Definitions]) -> Document:
    group = desired.group
    if group is not None:
        return {**GENERATED, "resources": Entries(group_text(group))}
    return template_text(desired, graph_of(0))


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
                found = _some(tx, stack, some, number, graphs, reading)
            yield from found.items()


def _some(
    tx: Connection, stack: StackRow, definitions: Definitions, shard: int, graphs: DesiredGraphs, reading: Reading
) -> dict[str, Document | Entries]:
    """Return the entries of some resources of one shard."""
    rows, seen = views.resources(tx, stack.id, definitions, [shard])
    by_name: dict[str, list[Resource]] = defaultdict(list)
    for row in rows.values():
        by_name[row.name].append(row)
    facts = stacks.facts(stack)
    found: dict[str, Document | Entries] = {}
    for name, definition in definitions.items():
        current = _row_of(by_name.get(name, ()), facts)
        found[name] = _unmade(definition)
        if current is not None and not _is_of_others(current, definition):
            found[name] = _entry(tx, stack.project, current, seen.get(current.key), graphs, reading)
    return found


def _row_of(rows: Sequence[Resource], stack: StackFacts) -> Resource | None:
    """Return the row of a resource that is exported: the current one.

    Where that has no thing (yet), it is one whose thing is still being deleted, since the deletion may never succeed.
    """
    current = current_row(rows, stack)
    if current is not None and (
        current.handle or current.action != Action.INIT or adoption_of(current.intent) is not None
    ):
        return current
    going = [row for row in rows if row.deleting and row.handle]
    return max(going, key=lambda row: row.born, default=current)


def _is_of_others(row: Resource, definition: Definition) -> bool:
    """Return whether a row stands for a thing not managed here, though the template describes one of the stack's own.

    An update wanted that in vain. The one that adopts the stack would take the thing over as its own, and delete it.
    """
    return row.external_id is not None and definition.external_id is None


def _unmade(definition: Definition) -> Document:
    """Return the entry of a resource that has not been made."""
    state = {"action": Action.INIT, "status": Status.COMPLETE}
    called = definition.shown_type
    return {"name": definition.name, "resource_id": None, "type": called, **state, "metadata": {}, "resource_data": {}}


def _entry(
    tx: Connection, project: str, row: Resource, seen: Seen | None, graphs: DesiredGraphs, reading: Reading
) -> Document | Entries:
    # What is still to be adopted is exported as its document had it.
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
        found = document(tx, stack, graphs, reading)
    yield from found.items()


def _metadata(tx: Connection, project: str, row: Resource) -> Document:
    """Return the metadata of the template, and the signals of a handle."""
    record = records.get(tx, row.handle, project=project) if kind_of(row.type) in BUILTIN_KINDS else None
    return {**(row.metadata or {}), **(handle_metadata(tx, record) if record is not None else {})}


def _data(tx: Connection, project: str, row: Resource, seen: Seen | None) -> Document:
    """Return what only this service knows about the thing, so that the adopting one cannot read it from a cloud."""
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


def _record_data(tx: Connection, record: records.Record) -> Document:
    signals = [{**each.object, "at": each.at} for each in records.signals_of(tx, [record.id]).get(record.id, ())]
    record_data = {"object": record.object, "secret": record.secret, "link": record.link}
    return {RECORD: record_data, SIGNALS: signals} if signals else {RECORD: record_data}
