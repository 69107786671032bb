"""Ends of requests for nodes, read from the events of their resources and from the marks of their rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Text, func, select, type_coerce

from homeostat.clustering.decisions.states import DONE, ActionStatus, ClusterAction, NodeAction
from homeostat.model.requested import plain, signature
from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow

REQUESTS = frozenset(
    {
        ClusterAction.OPERATION,
        ClusterAction.RECOVER,
        NodeAction.OPERATION,
        NodeAction.RECOVER,
        NodeAction.CHECK,
    }
)
"""Actions that are requests for single nodes."""
NAMED_MAX = 5
"""Maximum of failures in the reason of an action."""
_event = schema.event
_stack = schema.stack
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class RequestedNodes:
    """The nodes of a request, as stored in the `data` of its action.

    Attributes:
        nodes: Ids of the nodes.
        failures: Id of a node that could not get the request -> why.
    """

    nodes: list[str] = field(default_factory=list)
    failures: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        return {"nodes": self.nodes} | ({"failures": dict(self.failures)} if self.failures else {})


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """The end of a request: status, reason and time."""

    status: str
    reason: str
    at: float


def end_of(tx: Transaction, row: ActionRow) -> RequestEnd | None:
    """Return the end of the requests of an action; None if some are in progress."""
    tx.insert_now()
    requested = RequestedNodes(row.data.get("nodes", []), row.data.get("failures", {}))
    expected = len(requested.nodes) - len(requested.failures)
    tree = select(_stack.c.id).where(_stack.c.root_id == row.stack_id)
    ended = (_event.c.stack_id.in_(tree), _event.c.seq > row.begun_after, _event.c.status != Status.IN_PROGRESS)
    signed = _event.c.reason.like(f"%{signature(row.id)}")
    rows = tx.execute(select(_event.c.status, _event.c.reason, _event.c.at).where(*ended, signed)).all()
    if len(rows) < expected and _goes_on(tx, row.id, tree):
        return None
    failures = [*requested.failures.values(), *(plain(event.reason) for event in rows if event.status == Status.FAILED)]
    if len(rows) < expected:
        failures.append(f"{expected - len(rows)} of {len(requested.nodes)} nodes went away before it was done")
    at = max((event.at for event in rows), default=row.created_at)
    if not failures:
        return RequestEnd(ActionStatus.SUCCEEDED, DONE, at)
    more = f"; and {len(failures) - NAMED_MAX} more" if len(failures) > NAMED_MAX else ""
    return RequestEnd(ActionStatus.FAILED, "; ".join(failures[:NAMED_MAX]) + more, at)


def _goes_on(tx: Transaction, request_id: str, tree: Select[Any]) -> bool:
    """Return whether some row still has the mark of a request."""
    marks = type_coerce(_resource.c.marks, Text)
    chosen = select(func.count()).where(_resource.c.stack_id.in_(tree), marks.like(f'%"{request_id}"%'))
    return bool(tx.execute(chosen).scalar_one())
