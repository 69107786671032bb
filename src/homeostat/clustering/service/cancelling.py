"""Cancellation of actions: work in progress stops, and finished parts stay."""

from typing import Any

from sqlalchemy import select, update

from homeostat.clustering.decisions.states import CANCELLED, OPEN, ActionStatus
from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import actions, listing, requests, waiting_actions
from homeostat.model.errors import Rejected
from homeostat.model.stack_actions import CANCELLABLE
from homeostat.model.status import Status
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import ActionRow, StackRow
from homeostat.store.sql import typed
from homeostat.store.stacks import cancellation, locks

_action = schema.action


class ActionService:
    """Cancels actions."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def cancel(self, scope: RequestScope, identity: str, *, force: bool) -> None:
        """Cancel an action: its stack stops, and waiting actions are not started.

        Args:
            identity: Id, name or the beginning of the id of the action.
            force: Set the status CANCELLED now; otherwise it follows when the stack has stopped.

        Raises:
            Rejected: ResourceNotFound; ActionImmutable: the action has ended; FeatureNotSupported: actions of this type
                cannot be cancelled, such as deletions; StackLocked.
        """
        with self._db.write() as tx:
            row = listing.get(tx, ActionRow, scope.reach, identity)
            stack = locks.changeable(tx, row.stack_id or "") if row.status == ActionStatus.RUNNING else None
            # Read again: until the stack was locked, the action may have ended.
            row = typed.rows(ActionRow, tx.execute(select(_action).where(_action.c.id == row.id))).one()
            end, now = actions.end_of(tx, row), tx.now()
            status = end.status if end is not None else row.status
            if ActionStatus(status).is_final:
                wanted = ", ".join(OPEN)
                message = f"is in status ({status}) while expected status must be one of ({wanted})."
                raise Rejected("ActionImmutable", f"Action ({row.id[:8]}) {message}")
            if stack is None:
                waiting_actions.cancel(tx, [row], now)
                return
            self._stop(tx, row, stack, now, force=force)

    def _stop(self, tx: Transaction, row: ActionRow, stack: StackRow, now: float, *, force: bool) -> None:
        if row.action in requests.REQUESTS and "nodes" in row.data:
            message = f"The action {row.action} cannot be cancelled: what was asked of its nodes goes on."
            raise Rejected("FeatureNotSupported", message)
        if stack.action not in CANCELLABLE:
            message = f"The action {row.action} cannot be cancelled: its stack goes through {stack.action}."
            raise Rejected("FeatureNotSupported", message)
        ended: dict[str, Any] = {"data": {**row.data, actions.CANCELLED: True}, "updated_at": now}
        if force:
            ended |= {"status": ActionStatus.CANCELLED, "status_reason": CANCELLED, "end_time": now}
        # The mark tells a cancelled action from a failed one later: its stack ends with FAILED either way.
        tx.execute(update(_action).where(_action.c.id == row.id).values(**ended))
        if stack.status == Status.IN_PROGRESS:
            cancellation.cancel(tx, stack, now)
