"""Signals of servers in queues of Zaqar: they are collected, and queues are removed after their resources.

The transaction that stores a signal also stores the id of its message, which is deleted in Zaqar afterwards. So a
message that a crash leaves in the queue is not taken twice.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

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
from homeostat.store.database import Database, Transaction
from homeostat.templates.parser import check_bounds

if TYPE_CHECKING:  # its packages are installed for access by Keystone only
    from homeostat.clouds.identity.queues import Message, UserQueues

LOG = logging.getLogger(__name__)
WAITING_S, IDLE_S = 1.0, 60.0
"""Time between reads of a queue with awaited signals, and of any other queue."""
AGAIN_S = 10.0
"""Time until the next attempt after Zaqar or Keystone has not answered."""
FAILURES_MAX = 3
"""Unanswered reads in a row that end a round."""
MANY = 50
"""Maximum of queues read, or removed, in a round; also of remembered messages of a queue."""
TAKEN = "taken"
"""Field of a queue's record: ids of taken messages that may still be in the queue."""


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
        """Take the signals of due queues, and remove departed queues; return the number of both."""
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
            due = stack_users.due_queues(tx, tx.now(), MANY)
        count = failures = 0
        for queue in due:
            with self._db.write() as tx:
                due_at = tx.now() + (WAITING_S if _is_awaited(tx, queue) else IDLE_S)
                if not stack_users.claim_queue(tx, queue, due_at):
                    continue
                login = self._login(tx, queue, STACK_USER)
            try:
                if login:
                    count += self._read(queue, login)
                failures = 0
            except (Terminal, Transient) as error:
                # A single queue may be broken; several failures in a row mean that Zaqar is down.
                failures += isinstance(error, Transient)
                LOG.warning("the queue %s of servers cannot be read: %s", queue.id, error)
                with self._db.write() as tx:
                    stack_users.postpone_queue(tx, queue.id, tx.now() + AGAIN_S)
                if failures >= min(FAILURES_MAX, len(due)):
                    raise
        return count

    def _login(self, tx: Transaction, queue: Record, kind: str) -> dict[str, str]:
        """Return the login of the queue's user; {} if the user has departed."""
        try:
            return self._users.login(tx, queue.token, kind)
        except Terminal:
            return {}

    def _read(self, queue: Record, login: dict[str, str]) -> int:
        """Take the messages of a queue; return their number."""
        messages = self._queues.messages(login, queue.id)
        taken = [message.id for message in messages if self._take(queue, message)]
        if taken:
            self._queues.delete(login, queue.id, taken)
        return len(taken)

    def _take(self, due: Record, message: "Message") -> bool:
        """Take a message; return whether it is taken, now or before; an untimely message stays in the queue."""
        with self._db.write() as tx:
            # The lock on the target's record serializes workers. The queue is locked after the shard, as when a stack
            # is deleted (invariant 5).
            record = records.for_update(tx, due.link)
            queue = records.get(tx, due.id, QUEUE)
            if queue is None or record is None:
                return False
            if message.id in queue.object.get(TAKEN, ()):
                return True
            try:  # a refused signal has stored nothing
                self._inbox.take(tx, record, _body_of(message))
            except Untimely:
                return False
            except Rejected as error:
                self._note(tx, record, f"Signal refused: {error}")
            queue.object = {TAKEN: [*queue.object.get(TAKEN, ()), message.id][-MANY:]}
            records.save(tx, queue, tx.now())
        return True

    def _note(self, tx: Transaction, record: Record, reason: str) -> None:
        """Record the reason of a refusal in an event, since the sender of a message gets no answer."""
        key = records.key_of(record.token)
        owner = records.owners(tx, [key]).get(key)
        if owner is not None:
            events.append(tx, owner.stack_id, [owner.event(SIGNAL, reason)], tx.now())

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


def _is_awaited(tx: Transaction, queue: Record) -> bool:
    """Return whether a deployment in progress, or a wait condition in progress, waits for signals of a queue."""
    record = records.get(tx, queue.link)
    if record is not None and record.kind == DEPLOYMENT:
        return bool(record.object.get("status") == deployments.IN_PROGRESS)
    keys = [records.key_of(condition.token) for condition in records.linked(tx, [queue.link], CONDITION)]
    return any(condition.status == deployments.IN_PROGRESS for condition in records.owners(tx, keys).values())
