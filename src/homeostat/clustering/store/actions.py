"""What was asked of clusters and nodes, and how it ended: read from the events of their stacks."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from homeostat.clustering.decisions.states import CANCELLED as CANCELLED_REASON
from homeostat.clustering.decisions.states import (
    DONE,
    EVALUATED,
    OPEN,
    PROCESSED,
    ActionStatus,
    ClusterAction,
)
from homeostat.clustering.decisions.states import WAITING as WAITS
from homeostat.clustering.store import requests
from homeostat.model.status import Status
from homeostat.store import events, schema
from homeostat.store.schema.rows import ActionRow
from homeostat.store.sql import typed

_action = schema.action
_event = schema.event
STACK = "OS::Heat::Stack"
CANCELLED = "cancelled"
"""Key, in the data of an action, that says it is to be cancelled."""
KEPT_MAX = 500
"""Ended actions of one cluster or node that are kept."""


@dataclass(frozen=True, slots=True)
class NewAction:
    """An action that begins, or that was carried out at once.

    Attributes:
        action: Such as `CLUSTER_CREATE`.
        name: As users see it.
        target: Id of the cluster or node.
        cluster_id: None for a node without a cluster.
        inputs: What was asked for.
        timeout: Seconds that it may take.
        stack_id: The stack of which it has begun a revision; None where it is done already.
        cause: Who has begun it.
        failure: Why it has failed already; "" if it has not.
        status: That of one that waits (`NOT_BEGUN`); "" for any other.
        data: What it remembers, see `clustering.store.requests` and `schema.action`.
        due_at: When a worker has to do something for it; None for never.
        id: Its id; "" for a new one.
    """

    action: str
    name: str
    target: str
    cluster_id: str | None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    timeout: int = 3600
    stack_id: str | None = None
    cause: str = "RPC Request"
    failure: str = ""
    status: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    due_at: float | None = None
    id: str = ""


def add(tx: Connection, new: NewAction, owner: Mapping[str, Any], now: float) -> str:
    """Store an action in the transaction that begins, or carries out, what was asked for; return its id."""
    identity = new.id or new_id()
    is_open = new.stack_id is not None or bool(new.status)
    values = {
        "id": identity,
        **owner,
        "name": new.name,
        "action": new.action,
        "target": new.target,
        "cluster_id": new.cluster_id,
        "cause": new.cause,
        "stack_id": new.stack_id,
        "begun_after": events.newest(tx, [new.stack_id]) if new.stack_id is not None else 0,
        "timeout": new.timeout,
        "status": _first_status(new),
        "status_reason": new.failure or (WAITS if new.status else PROCESSED if is_open else DONE),
        "inputs": dict(new.inputs),
        "outputs": {},
        "data": dict(new.data),
        "start_time": now,
        "end_time": None if is_open else now,
        "created_at": now,
        "due_at": new.due_at,
    }
    tx.execute(insert(_action).values(values))
    _forget_old(tx, new.target)
    return identity


def new_id() -> str:
    """Return the id of a new action."""
    return str(uuid.uuid4())


def _first_status(new: NewAction) -> ActionStatus:
    if new.status:
        return ActionStatus(new.status)
    if new.failure:
        return ActionStatus.FAILED
    return ActionStatus.RUNNING if new.stack_id is not None else ActionStatus.SUCCEEDED


def _forget_old(tx: Connection, target: str) -> None:
    """Remove the oldest actions of a cluster or node that has had very many."""
    ended = (_action.c.target == target, _action.c.status.not_in(OPEN))
    newest = select(_action.c.created_at).where(*ended).order_by(_action.c.created_at.desc())
    oldest_kept = tx.execute(newest.offset(KEPT_MAX - 1).limit(1)).scalar()
    if oldest_kept is not None:
        tx.execute(delete(_action).where(*ended, _action.c.created_at < oldest_kept))


@dataclass(frozen=True, slots=True)
class End:
    """How an action has ended.

    Attributes:
        status: SUCCEEDED, FAILED or CANCELLED.
        at: When.
    """

    status: str
    reason: str
    at: float


def end_of(tx: Connection, row: ActionRow) -> End | None:
    """Return how an action has ended that is stored as open; None where it goes on.

    How requests for single nodes end, their own events say.
    The first event of its stack's own after its begin says it. The same action that begins once more is this one, which
    was asked for again; another one has overtaken it.
    """
    if row.status != ActionStatus.RUNNING:
        return None
    if row.action in requests.REQUESTS and "nodes" in row.data:
        end = requests.end_of(tx, row)
        return None if end is None else End(end.status, end.reason, end.at)
    conditions = (_event.c.stack_id == row.stack_id, _event.c.type == STACK, _event.c.handle == row.stack_id)
    chosen = select(_event.c.action, _event.c.status, _event.c.reason, _event.c.at).where(*conditions)
    begun_as = tx.execute(chosen.where(_event.c.seq == row.begun_after)).first()
    following = tx.execute(chosen.where(_event.c.seq > row.begun_after).order_by(_event.c.seq))
    for each in following:
        if each.status == Status.IN_PROGRESS and begun_as is not None and each.action == begun_as.action:
            continue
        if each.status == Status.COMPLETE:
            return End(ActionStatus.SUCCEEDED, DONE, each.at)
        if each.status == Status.FAILED and row.data.get(CANCELLED):
            return End(ActionStatus.CANCELLED, CANCELLED_REASON, each.at)
        if each.status == Status.FAILED:
            return End(ActionStatus.FAILED, each.reason, each.at)
        reason = f"It was overtaken by another action of the stack ({each.action})."
        return End(ActionStatus.CANCELLED, reason, each.at)
    return None


def settle(tx: Connection, rows: Sequence[ActionRow]) -> None:
    """Store how these open actions have ended, as far as they have."""
    for row in rows:
        end = end_of(tx, row)
        if end is not None:
            values = {"status": end.status, "status_reason": end.reason, "end_time": end.at, "updated_at": end.at}
            tx.execute(update(_action).where(_action.c.id == row.id).values(values))


def going_on(tx: Connection, targets: Sequence[str]) -> list[ActionRow]:
    """Return the actions of these clusters or nodes that have not ended, the newest last."""
    chosen = select(_action).where(_action.c.target.in_(targets), _action.c.status.in_(OPEN))
    return [
        row
        for row in typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at)))
        if end_of(tx, row) is None
    ]


def going_on_in(tx: Connection, cluster_id: str) -> list[ActionRow]:
    """Return the actions of a cluster and of its nodes that have not ended."""
    return [row for row in _open_in(tx, cluster_id) if end_of(tx, row) is None]


def settled_in(tx: Connection, cluster_id: str) -> list[ActionRow]:
    """Return the same, after it was stored how the others have ended."""
    rows = _open_in(tx, cluster_id)
    settle(tx, rows)
    return [row for row in rows if end_of(tx, row) is None]


def settled(tx: Connection, target: str) -> list[ActionRow]:
    """Return the actions of a node without a cluster that have not ended, after it was stored how the others have."""
    chosen = select(_action).where(_action.c.target == target, _action.c.status.in_(OPEN))
    rows = list(typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at))))
    settle(tx, rows)
    return [row for row in rows if end_of(tx, row) is None]


def _open_in(tx: Connection, cluster_id: str) -> list[ActionRow]:
    chosen = select(_action).where(_action.c.cluster_id == cluster_id, _action.c.status.in_(OPEN))
    return list(typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at))))


def last_end(tx: Connection, cluster_id: str, names: Sequence[str]) -> float | None:
    """Return when the newest of the actions of these names on a cluster ended; None where there is none that has."""
    chosen = select(_action).where(_action.c.target == cluster_id, _action.c.action.in_(names))
    row = typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at.desc()).limit(1))).first()
    if row is None or row.end_time is not None:
        return None if row is None else row.end_time
    end = end_of(tx, row)
    return None if end is None else end.at


def evaluated(tx: Connection, cluster_ids: Sequence[str]) -> dict[str, str]:
    """Return the newest action of each of these clusters that has asked something of its nodes.

    One that failed at once has asked nothing; others say what the status of a cluster is about.
    """
    asks = or_(_action.c.stack_id.is_not(None), _action.c.status == ActionStatus.SUCCEEDED)
    conditions = (_action.c.target.in_(cluster_ids), _action.c.action.in_(EVALUATED), asks)
    chosen = select(_action.c.target, _action.c.action).where(*conditions).order_by(_action.c.created_at)
    return {row.target: row.action for row in tx.execute(chosen)}


def created_at(tx: Connection, cluster_ids: Sequence[str]) -> dict[str, float]:
    """Return when each of these clusters had all its nodes for the first time."""
    chosen = select(_action).where(_action.c.target.in_(cluster_ids), _action.c.action == ClusterAction.CREATE)
    found = {}
    for row in typed.rows(ActionRow, tx.execute(chosen)).all():
        end = End(row.status, row.status_reason, row.end_time) if row.end_time is not None else end_of(tx, row)
        if end is not None and end.status == ActionStatus.SUCCEEDED:
            found[row.target] = end.at
    return found
