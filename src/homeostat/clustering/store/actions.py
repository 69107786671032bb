"""Actions on clusters and nodes; their ends are read from the events of their stacks."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, insert, or_, select, update

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
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ActionRow
from homeostat.store.sql import typed

_action = schema.action
_event = schema.event
STACK = "OS::Heat::Stack"
CANCELLED = "cancelled"
"""Key of the data of an action: its cancellation was requested."""
KEPT_MAX = 500
"""Maximum of stored ended actions of a cluster or node."""


@dataclass(frozen=True, slots=True)
class NewAction:
    """An action that starts, or that was carried out at once.

    Attributes:
        action: Such as `CLUSTER_CREATE`.
        name: Name for users.
        target: Id of the cluster or node.
        cluster_id: None for a node without a cluster.
        inputs: Inputs of the request.
        timeout: Time limit in seconds.
        stack_id: The stack whose revision the action has started; None if the action is done already.
        cause: Origin of the action.
        failure: Why the action has failed already; "" otherwise.
        status: Status of a waiting action (`NOT_BEGUN`); "" for any other.
        data: See `clustering.store.requests` and `schema.action`.
        due_at: Time of the next step by a worker; None for never.
        id: Id of the action; "" to generate a new id.
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


def add(tx: Transaction, new: NewAction, owner: Mapping[str, Any], now: float) -> str:
    """Store an action in the transaction of its start or execution; return the id."""
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
        # The event of the start, in this transaction: events of earlier actions of the stack do not count.
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


def _forget_old(tx: Transaction, target: str) -> None:
    """Remove the oldest ended actions of a cluster or node beyond `KEPT_MAX`."""
    ended = (_action.c.target == target, _action.c.status.not_in(OPEN))
    newest = select(_action.c.created_at).where(*ended).order_by(_action.c.created_at.desc())
    oldest_kept = tx.execute(newest.offset(KEPT_MAX - 1).limit(1)).scalar()
    if oldest_kept is not None:
        tx.execute(delete(_action).where(*ended, _action.c.created_at < oldest_kept))


@dataclass(frozen=True, slots=True)
class End:
    """The end of an action.

    Attributes:
        status: SUCCEEDED, FAILED or CANCELLED.
        at: Time of the end.
    """

    status: str
    reason: str
    at: float


def end_of(tx: Transaction, row: ActionRow) -> End | None:
    """Return the end of an action that is stored as open; None if it is in progress.

    Requests for single nodes end by their own events, other actions by the first event of their stack after their
    start: a repeated start of the same stack action is ignored, a different stack action has overtaken this action.
    """
    if row.status != ActionStatus.RUNNING:
        return None
    if row.action in requests.REQUESTS and "nodes" in row.data:
        end = requests.end_of(tx, row)
        return None if end is None else End(end.status, end.reason, end.at)
    conditions = (_event.c.stack_id == row.stack_id, _event.c.type == STACK, _event.c.handle == row.stack_id)
    tx.insert_now()
    # The stack has one row for all its actions: only its events tell how an earlier action has ended.
    chosen = select(_event.c.action, _event.c.status, _event.c.reason, _event.c.at).where(*conditions)
    begun_as = tx.execute(chosen.where(_event.c.seq == row.begun_after)).first()
    following = tx.execute(chosen.where(_event.c.seq > row.begun_after).order_by(_event.c.seq))
    for event in following:
        if event.status == Status.IN_PROGRESS and begun_as is not None and event.action == begun_as.action:
            continue
        if event.status == Status.COMPLETE:
            return End(ActionStatus.SUCCEEDED, DONE, event.at)
        if event.status == Status.FAILED and row.data.get(CANCELLED):
            return End(ActionStatus.CANCELLED, CANCELLED_REASON, event.at)
        if event.status == Status.FAILED:
            return End(ActionStatus.FAILED, event.reason, event.at)
        reason = f"It was overtaken by another action of the stack ({event.action})."
        return End(ActionStatus.CANCELLED, reason, event.at)
    return None


def settle(tx: Transaction, rows: Sequence[ActionRow]) -> None:
    """Store the ends of these open actions, as far as they have ended."""
    for row in rows:
        end = end_of(tx, row)
        if end is not None:
            values = {"status": end.status, "status_reason": end.reason, "end_time": end.at, "updated_at": end.at}
            tx.execute(update(_action).where(_action.c.id == row.id).values(values))


def going_on(tx: Transaction, targets: Sequence[str]) -> list[ActionRow]:
    """Return the actions of these clusters or nodes that have not ended, the newest last."""
    chosen = select(_action).where(_action.c.target.in_(targets), _action.c.status.in_(OPEN))
    return [
        row
        for row in typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at)))
        if end_of(tx, row) is None
    ]


def going_on_in(tx: Transaction, cluster_id: str) -> list[ActionRow]:
    """Return the actions of a cluster and of its nodes that have not ended."""
    return [row for row in _open_in(tx, cluster_id) if end_of(tx, row) is None]


def settled_in(tx: Transaction, cluster_id: str) -> list[ActionRow]:
    """Return the actions of `going_on_in`, and store the ends of the other open actions."""
    rows = _open_in(tx, cluster_id)
    settle(tx, rows)
    return [row for row in rows if end_of(tx, row) is None]


def settled(tx: Transaction, target: str) -> list[ActionRow]:
    """Return the actions in progress of a node without a cluster, and store the ends of its other open actions."""
    chosen = select(_action).where(_action.c.target == target, _action.c.status.in_(OPEN))
    rows = list(typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at))))
    settle(tx, rows)
    return [row for row in rows if end_of(tx, row) is None]


def _open_in(tx: Transaction, cluster_id: str) -> list[ActionRow]:
    chosen = select(_action).where(_action.c.cluster_id == cluster_id, _action.c.status.in_(OPEN))
    return list(typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at))))


def last_end(tx: Transaction, cluster_id: str, names: Sequence[str]) -> float | None:
    """Return the end of the newest action of these names on a cluster; None if absent or in progress."""
    chosen = select(_action).where(_action.c.target == cluster_id, _action.c.action.in_(names))
    row = typed.rows(ActionRow, tx.execute(chosen.order_by(_action.c.created_at.desc()).limit(1))).first()
    if row is None or row.end_time is not None:
        return None if row is None else row.end_time
    end = end_of(tx, row)
    return None if end is None else end.at


def evaluated(tx: Transaction, cluster_ids: Sequence[str]) -> dict[str, str]:
    """Return id of a cluster -> its newest action for the evaluation of its status.

    Actions that failed at once are left out: they have not changed any node.
    """
    asks = or_(_action.c.stack_id.is_not(None), _action.c.status == ActionStatus.SUCCEEDED)
    conditions = (_action.c.target.in_(cluster_ids), _action.c.action.in_(EVALUATED), asks)
    chosen = select(_action.c.target, _action.c.action).where(*conditions).order_by(_action.c.created_at)
    return {row.target: row.action for row in tx.execute(chosen)}


def created_at(tx: Transaction, cluster_ids: Sequence[str]) -> dict[str, float]:
    """Return id of a cluster -> time when its creation succeeded; clusters in creation are absent."""
    chosen = select(_action).where(_action.c.target.in_(cluster_ids), _action.c.action == ClusterAction.CREATE)
    times = {}
    for row in typed.rows(ActionRow, tx.execute(chosen)).all():
        end = End(row.status, row.status_reason, row.end_time) if row.end_time is not None else end_of(tx, row)
        if end is not None and end.status == ActionStatus.SUCCEEDED:
            times[row.target] = end.at
    return times
