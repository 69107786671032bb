"""Snapshots of stacks: take, restore, delete. Never waits for the engine (invariant 8)."""

from homeostat.identity.trusts import Accept, accept_nothing
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.model.snapshot import StackSnapshot
from homeostat.model.status import Action, Status, joined
from homeostat.model.world import KeepPolicy
from homeostat.services.pipeline.request import CheckTypes
from homeostat.services.stacks import StackService
from homeostat.store.database import Database, Transaction
from homeostat.store.schema.rows import SnapshotRow, StackRow
from homeostat.store.stacks import action_begin, locks, revisions, snapshots, stacks


def not_found(id: str) -> Rejected:
    return Rejected("EntityNotFound", f"The Snapshot ({id}) could not be found.")


class Snapshots:
    """Operations on snapshots."""

    def __init__(self, db: Database, stack_service: StackService) -> None:
        self._db = db
        self._stack_service = stack_service

    def take(self, stack_id: str, name: str | None, *, unlimited: bool = False) -> SnapshotRow:
        """Start a snapshot of a stack that is at rest; return its row.

        Raises:
            Rejected: EntityNotFound; StackLocked; ActionInProgress; RequestLimitExceeded, unless unlimited;
                NotSupported for a stack that is not complete, suspended or nested.
        """
        quotas = self._stack_service.quotas
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            _check_at_rest(stack)
            if not unlimited and snapshots.count(tx, stack_id) >= quotas.snapshots_max:
                message = (
                    f"You have reached the maximum snapshots per stack, {quotas.snapshots_max}. Delete some first."
                )
                raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {message}")
            id, now = self._stack_service.entropy.stack_id(), tx.now()
            number = action_begin.take_snapshot(tx, stack, StackSnapshot(id), now, quotas.timeout_s)
            snapshots.add(tx, id, stack_id, number, name, now)
            return self._get(tx, stack_id, id)

    def restore(
        self, stack_id: str, id: str, check_types: CheckTypes | None = None, accept: Accept = accept_nothing
    ) -> None:
        """Make the content of a snapshot the newest revision, whatever action is in progress.

        Args:
            check_types: See `StackRequest`.
            accept: Stores the trust of the requesting user.

        Raises:
            Rejected: EntityNotFound; StackLocked; NotSupported for an incomplete snapshot or a suspended stack; as in
                `StackService.check` if the content is no longer valid.
        """
        with self._db.read() as tx:
            seen = stacks.get(tx, stack_id)
            snapshot = self._get(tx, stack_id, id)
            content = revisions.content_of(tx, stack_id, snapshot.revision)
        if seen is not None:
            _check_complete(snapshot)
            self._stack_service.check(Identity(seen.id, seen.name, seen.project), content, check_types)
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            if stack.suspended:
                raise Rejected("NotSupported", "Restoring a stack when it is suspended is not supported: resume it.")
            if stack.spares == KeepPolicy.ALL:
                raise Rejected("NotSupported", f"Restoring stack {stack.name} is not supported: it is being abandoned.")
            # The snapshot may have been deleted while its content was checked.
            _check_complete(self._get(tx, stack_id, id))
            going_back = StackSnapshot(id, run=f"{id}/{stack.revision + 1}")
            now, timeout_s = tx.now(), self._stack_service.quotas.timeout_s
            accept(tx)
            # The copy has the content checked above, however long the check took: a revision never changes.
            revision = revisions.copy_of_revision(tx, stack, snapshot.revision)
            action_begin.revise(tx, stack, Action.RESTORE, revision, now, timeout_s, {"snapshot": going_back})

    def delete(self, stack_id: str, id: str) -> None:
        """Start deleting a snapshot, with its parts in the clouds.

        Raises:
            Rejected: EntityNotFound; StackLocked; NotSupported while the snapshot is taken or restored.
        """
        with self._db.write() as tx:
            stack = locks.changeable(tx, stack_id)
            self._get(tx, stack_id, id)
            snapshot = snapshots.for_update(tx, id)
            if snapshot is None:
                raise not_found(id)
            if snapshot.status == Status.IN_PROGRESS:
                if snapshot.action == Action.DELETE:
                    return
                raise Rejected("NotSupported", f"Deleting in-progress snapshot {id} is not supported.")
            restored = stack.snapshot if stack.status == Status.IN_PROGRESS else None
            if restored is not None and restored.id == id:
                raise Rejected("NotSupported", f"Deleting snapshot {id} while it is restored is not supported.")
            now = tx.now()
            if snapshots.parts(tx, id):
                snapshots.begin_deletion(tx, id, now)
            else:
                snapshots.remove(tx, id, stack.project, now)

    def _get(self, tx: Transaction, stack_id: str, id: str) -> SnapshotRow:
        snapshot = snapshots.get(tx, stack_id, id)
        if snapshot is None:
            raise not_found(id)
        return snapshot


def _check_at_rest(stack: StackRow) -> None:
    if stack.status == Status.IN_PROGRESS:
        message = f"Stack {stack.name} already has an action ({stack.action}) in progress."
        raise Rejected("ActionInProgress", message)
    feature = f"Taking a snapshot of stack {stack.name}"
    if stack.suspended:
        raise Rejected("NotSupported", f"{feature} when it is suspended is not supported: resume it.")
    if stack.complete_revision != stack.revision:
        state = joined(stack.action, stack.status)
        raise Rejected("NotSupported", f"{feature}, which is {state}, is not supported: update or converge it first.")
    if stack.parent_id is not None:
        raise Rejected("NotSupported", f"{feature}, which is a part of another one, is not supported: take the whole.")


def _check_complete(snapshot: SnapshotRow) -> None:
    if (snapshot.action, snapshot.status) != (Action.CREATE, Status.COMPLETE):
        state = joined(snapshot.action, snapshot.status)
        message = f"Restoring snapshot {snapshot.id}, which is {state}, is not supported: only a complete one can be."
        raise Rejected("NotSupported", message)
