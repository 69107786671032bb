"""Signals that servers put into queues of Zaqar: they are collected there, and queues removed after their resources.

A message is taken in the transaction that stores its signal, and deleted in Zaqar after it: one that a crash leaves
there is known by its id, and taken once.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from homeostat.builtin.inbox import Inbox, Untimely
from homeostat.builtin.reports import SIGNAL
from homeostat.identity.stack_users import StackUsers
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.resources.families import deployments
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.wait_conditions import CONDITION
from homeostat.store import events
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.records import Record
from homeostat.store.builtin.stack_users import DEPARTED_QUEUE, DEPARTED_USER, QUEUE, STACK_USER
from homeostat.store.database import Database
from homeostat.templates.parser import check_bounds

if TYPE_CHECKING:  # its packages are installed for access by Keystone only
    from homeostat.clouds.identity.queues import Message, UserQueues

LOG = logging.getLogger(__name__)
WAITING_S, IDLE_S = 1.0, 60.0
"""Time between two looks into a queue whose signals something waits for, and into another."""
AGAIN_S = 10.0
"""Time until Zaqar, or Keystone, is asked again after it has not answered."""
FAILURES_MAX = 3
"""Queues in a row that cannot be read for want of an answer, after which no more are tried in a round."""
MANY = 50
"""Queues read, or removed, in one round."""
TAKEN = "taken"
"""Field of a queue's record: the ids of messages that were taken, and are perhaps in the queue still."""


class SignalQueues:
    """The queues of all resources. Several workers may read them; each message is taken once."""

    def __init__(
        self, db: Database, users: StackUsers, queues: "UserQueues", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = db
        self._users = users
        self._queues = queues
        self._inbox = Inbox(db)
        self._monotonic = monotonic
        self._not_before = 0.0

    def tidy(self) -> int:
        """Take the signals of queues that are due, and remove departed queues; return how many of both."""
        if self._monotonic() < self._not_before:
            return 0
        try:
            return self._collect() + self._remove()
        except Transient as error:
            LOG.warning("queues of servers are read again in %d s: %s", AGAIN_S, error)
            self._not_before = self._monotonic() + AGAIN_S
            return 0

    # -- collecting --------------------------------------------------------------------------------------------------

    def _collect(self) -> int:
        with self._db.read() as tx:
            due = stack_users.due_queues(tx, self._db.now_of(tx), MANY)
        count = failures = 0
        for queue in due:
            with self._db.write() as tx:
                due_at = self._db.now_of(tx) + (WAITING_S if _is_awaited(tx, queue) else IDLE_S)
                if not stack_users.claim_queue(tx, queue, due_at):
                    continue
                login = self._login(tx, queue, STACK_USER)
            try:
                if login:
                    count += self._read(queue, login)
                failures = 0
            except (Terminal, Transient) as error:
                # One queue says nothing about those of others; several in a row do.
                failures += isinstance(error, Transient)
                LOG.warning("the queue %s of servers cannot be read: %s", queue.id, error)
                with self._db.write() as tx:
                    stack_users.postpone_queue(tx, queue.id, self._db.now_of(tx) + AGAIN_S)
                if failures >= min(FAILURES_MAX, len(due)):
                    raise
        return count

    def _login(self, tx: Connection, queue: Record, kind: str) -> dict[str, str]:
        """Return the login of the queue's user; {} where it has left."""
        try:
            return self._users.login(tx, queue.token, kind)
        except Terminal:
            return {}

    def _read(self, queue: Record, login: dict[str, str]) -> int:
        """Take the messages of a queue; return how many."""
        messages = self._queues.messages(login, queue.id)
        taken = [message.id for message in messages if self._take(queue, message)]
        if taken:
            self._queues.delete(login, queue.id, taken)
        return len(taken)

    def _take(self, due: Record, message: "Message") -> bool:
        """Take one message; return whether it is taken, now or before. One that comes too early stays for later."""
        with self._db.write() as tx:
            # Who takes a message has locked the record that it is for. The queue is locked after its shard, as by the
            # end of a stack (invariant 5).
            record = records.for_update(self._db, tx, due.link)
            queue = records.get(tx, due.id, QUEUE)
            if queue is None or record is None:
                return False
            if message.id in queue.object.get(TAKEN, ()):
                return True
            try:  # what is refused has stored nothing
                self._inbox.take(tx, record, _body_of(message))
            except Untimely:
                return False
            except Rejected as error:
                self._note(tx, record, f"Signal refused: {error}")
            queue.object = {TAKEN: [*queue.object.get(TAKEN, ()), message.id][-MANY:]}
            records.save(tx, queue, self._db.now_of(tx))
        return True

    def _note(self, tx: Connection, record: Record, reason: str) -> None:
        """Note in an event why a message was refused, since its sender does not wait for an answer."""
        key = records.key_of(record.token)
        owner = records.owners(tx, [key]).get(key)
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, reason)], self._db.now_of(tx))

    # -- removing ----------------------------------------------------------------------------------------------------

    def _remove(self) -> int:
        with self._db.read() as tx:
            departed = stack_users.departed(tx, DEPARTED_QUEUE, MANY)
        for queue in departed:
            with self._db.read() as tx:
                login = self._login(tx, queue, DEPARTED_USER)
            try:
                if login:
                    self._queues.end(login, queue.id)
            except Terminal as error:
                LOG.warning("the queue %s of servers is left behind: %s", queue.id, error)
            with self._db.write() as tx:
                records.remove(tx, [queue.id])
        return len(departed)


def _body_of(message: "Message") -> Mapping[str, Any]:
    """Return the signal of a message, within the bounds of the bodies of requests. Raise Rejected."""
    body: Mapping[str, Any] = message.body if isinstance(message.body, dict) else {}
    try:
        check_bounds(body)
    except ValueError as error:
        raise Rejected("HTTPBadRequest", str(error)) from error
    return body


def _is_awaited(tx: Connection, queue: Record) -> bool:
    """Return whether something waits for signals in a queue: a deployment for its outputs, a condition of a handle."""
    record = records.get(tx, queue.link)
    if record is not None and record.kind == DEPLOYMENT:
        return bool(record.object.get("status") == deployments.IN_PROGRESS)
    keys = [records.key_of(each.token) for each in records.linked(tx, [queue.link], CONDITION)]
    return any(each.status == deployments.IN_PROGRESS for each in records.owners(tx, keys).values())
