"""The last stage: a checked desired state becomes the newest revision of its stack, in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from homeostat.clock import Entropy
from homeostat.desired.implied import graph_of
from homeostat.identity.trusts import Accept
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.status import Action
from homeostat.model.world import KeepPolicy, Resource
from homeostat.services.pipeline.checked import Checked
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import action_begin, deletion, locks, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.revisions import NewRevision
from homeostat.transfer import adoption

TransactionStep = Callable[[Transaction], None]
"""Further step in the transaction that stores a revision; an error rolls back both."""


def no_step(tx: Transaction) -> None:
    """Do nothing: the default step."""


class RevisionStore:
    """Stores revisions, and wakes the engine."""

    def __init__(self, db: Database, entropy: Entropy) -> None:
        self._db = db
        self._entropy = entropy

    def add_stack(
        self,
        new: NewStack,
        checked: Checked,
        document: adoption.Document | None,
        trust: AbstractContextManager[Accept],
        *,
        timeout_s: float,
        stacks_max: int | None,
        also: TransactionStep = no_step,
    ) -> None:
        """Store a new stack with its first revision.

        Args:
            document: Existing things to adopt; None for a plain creation.
            trust: Holds the caller's trust in the service.
            timeout_s: Default deadline of the action.
            stacks_max: Live root stacks of a project; None for any number.
            also: Further step of the transaction.

        Raises:
            Rejected: The project has too many stacks; the document has a resource that the template lacks, or a thing
                that another stack owns.
        """
        # Encoded before the transaction: on SQLite an open one blocks all other writers.
        revision = checked.revision(self._db)
        rows: Sequence[Resource] = ()
        if document is not None:
            graph = graph_of(checked.compiled, checked.content)
            rows = adoption.root_rows(graph, document, new.id, self._entropy.keys(), self._db.agreed_now())
        adopted = adoption.write_out(self._db, rows, secret=checked.secret)
        # The trust is created first: the identity service may answer slowly. If the block raises, the trust is deleted.
        with trust as accept, self._db.write() as tx:
            check_room(tx, new.project, stacks_max)
            action_begin.add(tx, new, revision, tx.recent_now(), timeout_s)
            try:
                adoption.add(tx, new.project, adopted)
            except Terminal as error:
                raise Rejected("StackValidationFailed", str(error)) from error
            accept(tx)
            also(tx)

    def add_revision(
        self,
        seen: StackRow,
        revision: NewRevision,
        changes: Mapping[str, Any],
        trust: AbstractContextManager[Accept],
        *,
        timeout_s: float,
        look_first: bool,
        policies: Mapping[str, str] | None,
        also: TransactionStep = no_step,
        first: TransactionStep = no_step,
    ) -> int | None:
        """Store a new revision of a stack.

        Args:
            seen: The stack that the revision is based on.
            changes: Further columns of the stack.
            trust: Holds the caller's trust in the service.
            timeout_s: Default deadline of the action.
            look_first: See `StackRequest`.
            policies: New deletion policies with which the deletion of the stack continues; None for an update.
            also: Further step of the transaction; called while the stack is locked.
            first: Called once the stack is locked, before any write: locks further rows for `also`.

        Returns:
            Number of the revision; None if another revision was stored in the meantime: a retry has to start from it.
        """
        with trust as accept, self._db.write() as tx:
            # Before the lock of the stack itself: locks are taken from the root of the tree down.
            action_begin.lock_for_first_secret(tx, seen, revision)
            row = locks.changeable(tx, seen.id)
            # The checks took place without a lock: they hold for the revision that was seen only.
            if row.revision != seen.revision:
                return None
            check_not_abandoned(row)
            first(tx)
            now = tx.now()
            # Looks that began earlier do not count: they may miss a change in the cloud that the user knows of.
            if look_first:
                changes = {**changes, "look_from": now}
            accept(tx)
            if policies is not None:
                return deletion.continue_deletion(tx, row, revision, policies, now, timeout_s, changes)
            number = action_begin.revise(tx, row, Action.UPDATE, revision, now, timeout_s, changes)
            also(tx)
            return number


def check_room(tx: Transaction, project: str, stacks_max: int | None) -> None:
    """Raise Rejected (RequestLimitExceeded) if a project may have no further root stack."""
    if stacks_max is not None and stacks.count_live(tx, project) >= stacks_max:
        message = f"You have reached the maximum stacks per project, {stacks_max}. Delete some first."
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")


def check_not_abandoned(stack: StackRow) -> None:
    """Raise Rejected (NotSupported) for a stack that is being abandoned."""
    if stack.spares == KeepPolicy.ALL:
        raise Rejected("NotSupported", f"Updating stack {stack.name} is not supported: it is being abandoned.")
