"""Purging: remove deleted stacks, old events and old revisions of live stacks, and files that no revision names.

Each batch is a separate short transaction, so that workers and API requests never wait for long. After an interruption
the next run continues with the rest.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Select, Table, delete, func, select, tuple_

from homeostat.store import schema
from homeostat.store.database import Database, Transaction, row_lock
from homeostat.store.sql.delete_found import delete_found

STACKS_MAX = 20
ROWS_MAX = 5000
"""Limits of a batch."""
UNDER_WAY_S = 3600.0
"""Minimum age of removed revisions: a pass that began before a revision was replaced may still read it."""

_stack = schema.stack
_revision = schema.revision
_event = schema.event


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for removals.

    Attributes:
        deleted_before: A time in seconds since the epoch: remove stacks that were deleted earlier, and older revisions
            of live stacks.
        events_max: The number of events that a live stack keeps, the newest ones.
    """

    deleted_before: float
    events_max: int


@dataclass(frozen=True, slots=True)
class PurgeCounts:
    """Numbers of rows that were, or would be, removed."""

    stacks: int = 0
    shards: int = 0
    revisions: int = 0
    events: int = 0
    files: int = 0


def purge(db: Database, rules: Rules) -> PurgeCounts:
    """Remove the rows that the rules select, and return their numbers."""
    events = _in_batches(db, partial(_trim_events, events_max=rules.events_max))
    revisions = _in_batches(db, partial(_remove_replaced, rules=rules))
    stacks = shards = 0
    while batch := _expired_batch(db, rules):
        # Events first, in batches: deleting the stack would delete all of them at once, by the foreign key.
        events += _in_batches(db, partial(_remove_events, which=_event.c.stack_id.in_(batch)))
        with db.write() as tx:
            revisions += _remove_of(tx, schema.revision, batch)
            shards += _remove_of(tx, schema.shard, batch)
            _remove_actions(tx, batch)
            _remove_references(tx, batch)
            stacks += tx.execute(delete(_stack).where(_stack.c.id.in_(batch))).rowcount
    return PurgeCounts(stacks, shards, revisions, events, _purge_files(db))


def _remove_actions(tx: Transaction, stacks: Collection[str]) -> None:
    """Remove the actions of clusters and nodes of removed stacks: the events of these stacks had their outcome."""
    action = schema.action
    tx.execute(delete(action).where(action.c.cluster_id.in_(stacks)))
    tx.execute(delete(action).where(action.c.stack_id.in_(stacks), action.c.cluster_id.is_(None)))


def _remove_references(tx: Transaction, stacks: Collection[str]) -> None:
    """Remove all rows that refer to stacks, since not every database enforces these references (ADR 0083)."""
    for table in reversed(schema.metadata.sorted_tables):
        for column in table.columns:
            if column.references(_stack.c.id):
                tx.execute(delete(table).where(column.in_(stacks)))


def would_remove(tx: Transaction, rules: Rules) -> PurgeCounts:
    """Count the rows that `purge` would remove now."""
    expired = select(_stack.c.id).where(_expired(rules))
    of_expired = [
        int(tx.execute(select(func.count()).select_from(table).where(table.c.stack_id.in_(expired))).scalar_one())
        for table in (schema.shard, schema.revision, _event)
    ]
    stacks = int(tx.execute(select(func.count()).select_from(_stack).where(_expired(rules))).scalar_one())
    surplus = sum(count - rules.events_max for _, count in _too_many_events(tx, rules.events_max))
    shards, revisions, events = of_expired
    replaced = int(tx.execute(select(func.count()).select_from(_replaced(rules).subquery())).scalar_one())
    return PurgeCounts(stacks, shards, revisions + replaced, events + surplus, len(_orphan_files(tx, rules)))


# -- deleted stacks ----------------------------------------------------------------------------------------------------


def _expired(rules: Rules) -> ColumnElement[bool]:
    """Match deleted stacks that are old enough and have no reference from a resource.

    A nested stack stays while the parent resource refers to it: the parent's next pass has to find the stack deleted,
    not missing.
    """
    resource = schema.resource
    referred = select(resource.c.key).where(resource.c.handle == _stack.c.id).exists()
    return (_stack.c.deleted_at < rules.deleted_before) & ~referred


def _expired_batch(db: Database, rules: Rules) -> list[str]:
    with db.read() as tx:
        chosen = select(_stack.c.id).where(_expired(rules)).order_by(_stack.c.deleted_at).limit(STACKS_MAX)
        return list(tx.execute(chosen).scalars())


def _remove_of(tx: Transaction, table: Table, stack_ids: Sequence[str]) -> int:
    return tx.execute(delete(table).where(table.c.stack_id.in_(stack_ids))).rowcount


# -- revisions ---------------------------------------------------------------------------------------------------------


def _replaced(rules: Rules) -> Select[tuple[str, int]]:
    """Select the revisions of live stacks that are not needed any more.

    Needed are the newest, the newest with content, the last COMPLETE revision, the goal of a rollback, and revisions of
    snapshots.
    """
    snapshot = schema.snapshot
    kept_for = (snapshot.c.stack_id == _revision.c.stack_id, snapshot.c.revision == _revision.c.number)
    sibling = _revision.alias()
    described = select(func.max(sibling.c.number)).where(sibling.c.stack_id == _stack.c.id, sibling.c.kind != "empty")
    needed = (_stack.c.complete_revision, _stack.c.rollback_to, described.scalar_subquery())
    return (
        select(_revision.c.stack_id, _revision.c.number)
        .join(_stack, _stack.c.id == _revision.c.stack_id)
        .where(
            _stack.c.deleted_at.is_(None),
            _revision.c.created_at < rules.deleted_before - UNDER_WAY_S,
            _revision.c.number < _stack.c.revision,
            ~select(snapshot.c.id).where(*kept_for).exists(),
            # A comparison with NULL would be NULL, and exclude every row.
            *(_revision.c.number != func.coalesce(number, -1) for number in needed),
        )
    )


def _remove_replaced(tx: Transaction, rules: Rules) -> int:
    batch = _replaced(rules).limit(ROWS_MAX).subquery()
    return delete_found(tx, _revision, tuple_(_revision.c.stack_id, _revision.c.number).in_(select(batch)))


# -- events ------------------------------------------------------------------------------------------------------------


def _in_batches(db: Database, remove: Callable[[Transaction], int]) -> int:
    """Remove batches, each in its own transaction, until a batch is empty; return the number of removed rows."""
    total = 0
    while True:
        with db.write() as tx:
            removed = remove(tx)
        if not removed:
            return total
        total += removed


def _remove_events(tx: Transaction, which: ColumnElement[bool]) -> int:
    batch = select(_event.c.seq).where(which).order_by(_event.c.seq).limit(ROWS_MAX).subquery()
    return delete_found(tx, _event, _event.c.seq.in_(select(batch)))


def _trim_events(tx: Transaction, events_max: int) -> int:
    """Remove a batch of the events of a stack that has too many; return 0 if there is no such stack."""
    for stack_id, _ in _too_many_events(tx, events_max, limit=1):
        of_stack = _event.c.stack_id == stack_id
        newest = select(_event.c.seq).where(of_stack).order_by(_event.c.seq.desc()).offset(events_max).limit(1)
        return _remove_events(tx, of_stack & (_event.c.seq <= newest.scalar_subquery()))
    return 0


def _too_many_events(tx: Transaction, events_max: int, limit: int | None = None) -> list[tuple[str, int]]:
    """Return the live stacks with more events than they may keep, as id and number of events."""
    count = func.count()
    chosen = (
        select(_event.c.stack_id, count)
        .join(_stack, _stack.c.id == _event.c.stack_id)
        .where(_stack.c.deleted_at.is_(None))
        .group_by(_event.c.stack_id)
        .having(count > events_max)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in tx.execute(chosen)]


# -- files -------------------------------------------------------------------------------------------------------------


def _purge_files(db: Database) -> int:
    """Remove files that no revision names.

    The first query only finds candidates, without a lock. The deciding query runs inside the write transaction, with
    the files locked: otherwise a revision stored in between could name a file that is then removed.
    """
    with db.read() as tx:
        candidates = sorted(_orphan_files(tx))
    removed = 0
    for start in range(0, len(candidates), ROWS_MAX):
        with db.write() as tx:
            part = candidates[start : start + ROWS_MAX]
            _lock_files(tx, part)
            orphans = _orphan_files(tx).intersection(part)
            removed += _remove_files(tx, orphans)
    return removed


def _lock_files(tx: Transaction, candidates: Sequence[str]) -> None:
    """Lock files against writers.

    A transaction that stores a revision stores its files first, which locks existing rows, too. So either this function
    waits for the writer, and sees its revision, or the writer waits, and stores its files again.
    """
    chosen = select(schema.file.c.hash).where(schema.file.c.hash.in_(candidates))
    tx.execute(row_lock(chosen.order_by(schema.file.c.hash)))


def _orphan_files(tx: Transaction, without: Rules | None = None) -> set[str]:
    """Return the hashes of files that no revision names.

    Args:
        without: Ignore all revisions that these rules remove.
    """
    revision = schema.revision
    chosen = select(revision.c.files).distinct()
    if without is not None:
        chosen = chosen.where(
            revision.c.stack_id.not_in(select(_stack.c.id).where(_expired(without))),
            tuple_(revision.c.stack_id, revision.c.number).not_in(_replaced(without)),
        )
    named = {digest for files in tx.execute(chosen).scalars() for digest in files.values()}
    return set(tx.execute(select(schema.file.c.hash)).scalars()) - named


def _remove_files(tx: Transaction, hashes: Collection[str]) -> int:
    removed, rest = 0, sorted(hashes)
    for start in range(0, len(rest), 500):
        chosen = schema.file.c.hash.in_(rest[start : start + 500])
        removed += tx.execute(delete(schema.file).where(chosen)).rowcount
    return removed
