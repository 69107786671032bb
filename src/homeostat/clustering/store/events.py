"""Events of clusters and their nodes: events of their stacks, in the format of the Clustering API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, and_, cast, false, or_, select

from homeostat.clustering.store.actions import STACK
from homeostat.clustering.store.living import GROUP
from homeostat.model.requested import Aim, aim_of, plain
from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.sql import typed

LISTED_MAX = 1000
"""Maximum of events in an answer."""
WORDS: Mapping[str, str] = {Status.IN_PROGRESS: "start", Status.COMPLETE: "end", Status.FAILED: "error"}
ERROR, INFO = "ERROR", "INFO"
_event = schema.event
_stack = schema.stack
_node = schema.node
_cluster = schema.cluster


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A query for events.

    Attributes:
        project: None for all projects.
        only: `oid`, `oname`, `otype`, `cluster_id`, `level` -> allowed values.
        after: Number of the last event before the list; None to start with the first event.
        newest_first: Reverse the order.
        limit: Maximum of events.
        seq: Number of a single event, or None.
    """

    project: str | None
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    after: int | None = None
    newest_first: bool = False
    limit: int = LISTED_MAX
    seq: int | None = None


class FoundEvent(NamedTuple):
    """An event of a stack with its cluster, or of a resource with its node."""

    seq: int
    stack_id: str
    at: float
    action: str
    status: str
    reason: str
    id: str
    name: str
    project: str
    user: str | None
    cluster_id: str | None


def listed(tx: Transaction, query: EventQuery) -> list[dict[str, Any]]:
    """Return events in the words of the Clustering API, with the number and the stack of the original event."""
    types = query.only.get("otype")
    entries = []
    if types is None or "CLUSTER" in types:
        entries += [_of_cluster(row) for row in typed.rows(FoundEvent, tx.execute(_clusters(query)))]
    if types is None or "NODE" in types:
        entries += [_of_node(row) for row in typed.rows(FoundEvent, tx.execute(_nodes(query)))]
    # Both queries have the same order and limit, so the first entries of the list are among these.
    entries.sort(key=lambda entry: entry["seq"], reverse=query.newest_first)
    return entries[: query.limit]


def _columns() -> tuple[Any, ...]:
    return (_event.c.seq, _event.c.stack_id, _event.c.at, _event.c.action, _event.c.status, _event.c.reason)


def _clusters(query: EventQuery) -> Any:
    owner = (_cluster.c.id, _cluster.c.name, _cluster.c.project, _cluster.c.user, _cluster.c.id.label("cluster_id"))
    condition = and_(_event.c.stack_id == _cluster.c.id, _event.c.type == STACK, _event.c.handle == _event.c.stack_id)
    return _limited(
        select(*_columns(), *owner).join(_cluster, condition), query, _cluster, _cluster.c.id, _cluster.c.id
    )


def _nodes(query: EventQuery) -> Any:
    owner = (_node.c.id, _node.c.name, _node.c.project, _node.c.user, _node.c.cluster_id)
    group = and_(_stack.c.parent_id == _node.c.stack_id, _stack.c.parent_name == GROUP)
    condition = and_(_event.c.stack_id == _stack.c.id, _event.c.name == cast(_node.c.number, Text))
    chosen = select(*_columns(), *owner).select_from(_node).join(_stack, group).join(_event, condition)
    return _limited(chosen, query, _node, _node.c.id, _node.c.cluster_id)


def _limited(chosen: Any, query: EventQuery, table: Any, oid: Any, cluster_id: Any) -> Any:
    where: list[ColumnElement[bool]] = []
    if query.project is not None:
        where.append(table.c.project == query.project)
    if query.seq is not None:
        where.append(_event.c.seq == query.seq)
    if query.after is not None:
        where.append(_event.c.seq < query.after if query.newest_first else _event.c.seq > query.after)
    for name, column in (("oid", oid), ("oname", table.c.name), ("cluster_id", cluster_id)):
        if name in query.only:
            where.append(column.in_(query.only[name]))
    if "level" in query.only:
        failed = _event.c.status == Status.FAILED
        levels = query.only["level"]
        where.append(or_(false(), *([failed] if ERROR in levels else []), *([~failed] if INFO in levels else [])))
    order = _event.c.seq.desc() if query.newest_first else _event.c.seq
    return chosen.where(*where).order_by(order).limit(query.limit)


def _of_cluster(row: FoundEvent) -> dict[str, Any]:
    return {**_common(row), "otype": "CLUSTER", "cluster_id": row.cluster_id, "action": f"CLUSTER_{row.action}"}


def _of_node(row: FoundEvent) -> dict[str, Any]:
    return {**_common(row), "otype": "NODE", "cluster_id": row.cluster_id, "action": _node_action(row)}


def _node_action(row: FoundEvent) -> str:
    """Return the action of an event of a node; for an operation, its name, as Senlin has no action for operations."""
    about = aim_of(row.reason)
    if about is None:
        return f"NODE_{row.action}"
    aim, operation = about
    return operation if aim is Aim.OPERATION else f"NODE_{operation.upper()}"


def _common(row: FoundEvent) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "stack_id": row.stack_id,
        "at": row.at,
        "oid": row.id,
        "oname": row.name,
        "level": ERROR if row.status == Status.FAILED else INFO,
        "status": WORDS.get(row.status, "end"),
        "reason": plain(row.reason),
        "project": row.project,
        "user": row.user,
    }
