"""How requests for nodes end: read from the events of what the nodes are, and from the marks of their rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, Text, func, select, type_coerce

from homeostat.clustering.decisions.states import DONE, ActionStatus, ClusterAction, NodeAction
from homeostat.model.requested import plain, signature
from homeostat.model.status import Status
from homeostat.store import schema
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
"""Failures that the reason of an action names."""
_event = schema.event
_stack = schema.stack
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class Asked:
    """What an action has asked, as its `data` says.

    Attributes:
        nodes: Ids of the nodes.
        failures: Id of a node of which nothing could be asked -> why.
    """

    nodes: list[str] = field(default_factory=list)
    failures: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        return {"nodes": self.nodes} | ({"failures": dict(self.failures)} if self.failures else {})


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """How a request has ended: status, reason, and when."""

    status: str
    reason: str
    at: float


def end_of(tx: Connection, row: ActionRow) -> RequestEnd | None:
    """Return how the requests of an action have ended; None where one of them goes on."""
    asked = Asked(row.data.get("nodes", []), row.data.get("failures", {}))
    wanted = len(asked.nodes) - len(asked.failures)
    tree = select(_stack.c.id).where(_stack.c.root_id == row.stack_id)
    ended = (_event.c.stack_id.in_(tree), _event.c.seq > row.begun_after, _event.c.status != Status.IN_PROGRESS)
    signed = _event.c.reason.like(f"%{signature(row.id)}")
    found = tx.execute(select(_event.c.status, _event.c.reason, _event.c.at).where(*ended, signed)).all()
    if len(found) < wanted and _goes_on(tx, row.id, tree):
        return None
    failures = [*asked.failures.values(), *(plain(each.reason) for each in found if each.status == Status.FAILED)]
    if len(found) < wanted:
        failures.append(f"{wanted - len(found)} of {len(asked.nodes)} nodes went away before it was done")
    at = max((each.at for each in found), default=row.created_at)
    if not failures:
        return RequestEnd(ActionStatus.SUCCEEDED, DONE, at)
    more = f"; and {len(failures) - NAMED_MAX} more" if len(failures) > NAMED_MAX else ""
    return RequestEnd(ActionStatus.FAILED, "; ".join(failures[:NAMED_MAX]) + more, at)


def _goes_on(tx: Connection, request_id: str, tree: Select[Any]) -> bool:
    """Return whether the mark of a request is on a row still."""
    marks = type_coerce(_resource.c.marks, Text)
    chosen = select(func.count()).where(_resource.c.stack_id.in_(tree), marks.like(f'%"{request_id}"%'))
    return bool(tx.execute(chosen).scalar_one())
