"""Removing what nobody needs any more: deleted stacks, old events and revisions of live ones, files that no revision
names.

Work goes in batches, each a short transaction of its own, so that workers and callers are never held up for long.
Stopped in the middle, it goes on where it was when it runs again.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, select, text, tuple_

from homeostat.store import schema
from homeostat.store.database import Database

STACKS_MAX = 20
ROWS_MAX = 5000
"""Bounds of one batch."""
UNDER_WAY_S = 3600.0
"""A revision that was replaced just now may still be read by a pass that began before."""

_stack = schema.stack
_revision = schema.revision
_event = schema.event


@dataclass(frozen=True, slots=True)
class Rules:
    """What may go. deleted_before — stacks deleted before this time, in seconds since the epoch, and revisions that are
    older; events_max — how many events a stack that lives keeps, the newest ones."""

    deleted_before: float
    events_max: int


@dataclass(frozen=True, slots=True)
class PurgeCounts:
    """Numbers of rows."""

    stacks: int = 0
    shards: int = 0
    revisions: int = 0
    events: int = 0
    files: int = 0


def purge(db: Database, rules: Rules) -> PurgeCounts:
    """Remove what the rules allow. Gives what was removed. Fails: Transient when the database does not answer."""
    events = _repeated(db, partial(_trim_events, events_max=rules.events_max))
    revisions = _repeated(db, partial(_remove_replaced, rules=rules))
    stacks = shards = 0
    while batch := _expired_batch(db, rules):
        events += _repeated(db, partial(_remove_events, which=_event.c.stack_id.in_(batch)))
        with db.write() as tx:
            revisions += _remove_of(tx, schema.revision, batch)
            shards += _remove_of(tx, schema.shard, batch)
            stacks += tx.execute(delete(_stack).where(_stack.c.id.in_(batch))).rowcount
    return PurgeCounts(stacks, shards, revisions, events, _purge_files(db))


def would_remove(tx: Connection, rules: Rules) -> PurgeCounts:
    """What `purge` would remove now."""
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
    """A stack that some resource still counts as its reality stays until its owner has noticed that it is gone."""
    resource = schema.resource
    referred = select(resource.c.key).where(resource.c.handle == _stack.c.id).exists()
    return (_stack.c.deleted_at < rules.deleted_before) & ~referred


def _expired_batch(db: Database, rules: Rules) -> list[str]:
    with db.read() as tx:
        chosen = select(_stack.c.id).where(_expired(rules)).order_by(_stack.c.deleted_at).limit(STACKS_MAX)
        return list(tx.execute(chosen).scalars())


def _remove_of(tx: Connection, table: Table, stack_ids: Sequence[str]) -> int:
    return tx.execute(delete(table).where(table.c.stack_id.in_(stack_ids))).rowcount


# -- revisions ---------------------------------------------------------------------------------------------------------


def _replaced(rules: Rules) -> Select[tuple[str, int]]:
    """Revisions of live stacks that nothing goes back to: neither the newest, nor the last COMPLETE one, nor the one
    that a rollback is about, nor the newest that says something, nor one that a snapshot was taken of."""
    snapshot = schema.snapshot
    kept_for = (snapshot.c.stack_id == _revision.c.stack_id, snapshot.c.revision == _revision.c.number)
    other = _revision.alias()
    described = select(func.max(other.c.number)).where(other.c.stack_id == _stack.c.id, other.c.kind != "empty")
    kept = (_stack.c.complete_revision, _stack.c.rollback_to, described.scalar_subquery())
    return (
        select(_revision.c.stack_id, _revision.c.number)
        .join(_stack, _stack.c.id == _revision.c.stack_id)
        .where(
            _stack.c.deleted_at.is_(None),
            _revision.c.created_at < rules.deleted_before - UNDER_WAY_S,
            _revision.c.number < _stack.c.revision,
            ~select(snapshot.c.id).where(*kept_for).exists(),
            *(_revision.c.number != func.coalesce(number, -1) for number in kept),
        )
    )


def _remove_replaced(tx: Connection, rules: Rules) -> int:
    chosen = tuple_(_revision.c.stack_id, _revision.c.number).in_(_replaced(rules).limit(ROWS_MAX))
    return tx.execute(delete(_revision).where(chosen)).rowcount


# -- events ------------------------------------------------------------------------------------------------------------


def _repeated(db: Database, remove: Callable[[Connection], int]) -> int:
    """Batches, each in its own transaction, until one removes nothing."""
    total = 0
    while True:
        with db.write() as tx:
            removed = remove(tx)
        if not removed:
            return total
        total += removed


def _remove_events(tx: Connection, which: ColumnElement[bool]) -> int:
    batch = select(_event.c.seq).where(which).order_by(_event.c.seq).limit(ROWS_MAX)
    return tx.execute(delete(_event).where(_event.c.seq.in_(batch))).rowcount


def _trim_events(tx: Connection, events_max: int) -> int:
    """One batch of a stack that has too many; 0 when none has."""
    for stack_id, _ in _too_many_events(tx, events_max, limit=1):
        mine = _event.c.stack_id == stack_id
        newest = select(_event.c.seq).where(mine).order_by(_event.c.seq.desc()).offset(events_max).limit(1)
        return _remove_events(tx, mine & (_event.c.seq <= newest.scalar_subquery()))
    return 0


def _too_many_events(tx: Connection, events_max: int, limit: int | None = None) -> list[tuple[str, int]]:
    """Live stacks with more events than they keep: id, number of events."""
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
    """Files that no revision names. The look that decides is taken again where nobody can add a revision meanwhile."""
    with db.read() as tx:
        candidates = sorted(_orphan_files(tx))
    removed = 0
    for start in range(0, len(candidates), ROWS_MAX):
        with db.write() as tx:
            _keep_files_from_writers(db, tx)
            orphans = _orphan_files(tx).intersection(candidates[start : start + ROWS_MAX])
            removed += _remove_files(tx, orphans)
    return removed


def _keep_files_from_writers(db: Database, tx: Connection) -> None:
    """Who stores a revision stores its files first, in the same transaction: it waits, or is waited for, here."""
    if not db.is_sqlite:
        tx.execute(text("LOCK TABLE file IN SHARE ROW EXCLUSIVE MODE"))


def _orphan_files(tx: Connection, without: Rules | None = None) -> set[str]:
    """Hashes of files that no revision names; without — as if the stacks that these rules let go were gone."""
    revision = schema.revision
    chosen = select(revision.c.files).distinct()
    if without is not None:
        chosen = chosen.where(
            revision.c.stack_id.not_in(select(_stack.c.id).where(_expired(without))),
            tuple_(revision.c.stack_id, revision.c.number).not_in(_replaced(without)),
        )
    named = {digest for files in tx.execute(chosen).scalars() for digest in files.values()}
    return set(tx.execute(select(schema.file.c.hash)).scalars()) - named


def _remove_files(tx: Connection, hashes: Collection[str]) -> int:
    removed, rest = 0, sorted(hashes)
    for start in range(0, len(rest), 500):
        chosen = schema.file.c.hash.in_(rest[start : start + 500])
        removed += tx.execute(delete(schema.file).where(chosen)).rowcount
    return removed
