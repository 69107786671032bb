"""Read-only checks of the service that need only its database, for `homeostat doctor` and for the API."""

import time
from collections.abc import Callable, Iterable, Iterator

from sqlalchemy.exc import SQLAlchemyError

from homeostat.clouds.installed import installed_clouds
from homeostat.convergence.facts.healing_brake import doubts
from homeostat.doctor.checks import CLOCKS_S, SHOWN_MAX, Check, Level, named
from homeostat.model.errors import Transient, in_detail
from homeostat.model.status import Status
from homeostat.notifications.sinks import installed_sinks
from homeostat.resources.discovery import BUILT_IN
from homeostat.resources.registry import register
from homeostat.store import schema
from homeostat.store.builtin import event_sinks, stored_trusts
from homeostat.store.database import Database, Transaction
from homeostat.store.encryption import key_rotation
from homeostat.store.encryption.encrypted_cells import Unreadable
from homeostat.store.operation import health, message_bus, workers
from homeostat.store.sql.timeline import RATE
from homeostat.store.stacks import locks

LAG_S = 10.0
"""Work that waits longer than this for a worker indicates a problem."""
DELETED_MAX = 10_000
EVENTS_MAX = 5_000_000


def examine_database(db: Database, more: Iterable[Check] = ()) -> Iterator[Check]:
    """Run the checks lazily. Without a usable database, the following checks are left out.

    Args:
        more: Further checks of the database.
    """
    yield _plugins()
    try:
        for check in _schema(db):
            yield check
            if check.level is Level.FAIL:
                return
        for look in LOOKS:
            with db.read() as tx:
                yield _readable(look, tx)
        yield from more
    except (Transient, SQLAlchemyError) as error:
        yield Check(
            "database", Level.FAIL, f"a query failed: {in_detail(error)}", "look at --database and at its server"
        )


def _readable(look: Callable[[Transaction], Check], tx: Transaction) -> Check:
    """Run a check; report a failure if a missing key prevents it."""
    try:
        return look(tx)
    except Unreadable as error:
        name = look.__name__.strip("_").replace("_", " ")
        return Check(name, Level.FAIL, f"unknown: {error}", "put the key back into the key file")


# -- plug-ins ---------------------------------------------------------------------------------------------------


def _plugins() -> Check:
    problems = [*register().problems, *installed_clouds().problems, *installed_sinks().problems]
    if problems:
        names = named([f"{problem.origin}: {problem.reason}" for problem in problems])
        remedy = "repair or remove these packages and files; until then the service runs without what is named"
        return Check("plug-ins", Level.WARN, f"left out: {names}", remedy)
    others = sum(origin != BUILT_IN for origin in register().origins.values())
    return Check("plug-ins", Level.OK, f"{others} resource types are not built in")


# -- the database ------------------------------------------------------------------------------------------------------


def _schema(db: Database) -> Iterator[Check]:
    if db.missing_file:
        remedy = "start the service once, or name the database with --database"
        yield Check("database", Level.FAIL, f"there is no file {db.missing_file}", remedy)
        return
    status = db.schema_status()
    yield Check("database", Level.OK, "it answers")
    heads = ", ".join(status.heads) or "nothing"
    if status.outdating:
        remedy = "install the newer version here: it has changed the schema for good"
        yield Check("schema", Level.FAIL, f"it is at {heads}, which this version cannot use", remedy)
    elif status.unreleased:
        remedy = "carry out the statements in the upgrade notes: it is from before version 0.1.0"
        yield Check("schema", Level.FAIL, f"it is at {heads}, which this version cannot use", remedy)
    elif status.missing:
        remedy = "run `homeostat migrate --phase expand`, or start the service of this version"
        yield Check("schema", Level.FAIL, f"it is at {heads}, and {status.missing[-1]} is needed", remedy)
    elif status.pending:
        remedy = "run `homeostat migrate` when no older version runs any more"
        yield Check("schema", Level.WARN, f"it is at {heads}, and still has what older versions need", remedy)
    else:
        newer = ", made ready for a newer version" if status.newer else ""
        yield Check("schema", Level.OK, f"it is at {heads}{newer}")


def _writing(tx: Transaction) -> Check:
    try:
        health.check_writable(tx.database)
    except (Transient, SQLAlchemyError) as error:
        remedy = "check whether the disk is full, the file is read-only, or the server is a standby"
        return Check("writing", Level.FAIL, f"nothing can be written: {in_detail(error)}", remedy)
    return Check("writing", Level.OK, "it accepts changes")


def _clocks(tx: Transaction) -> Check:
    ahead_s = tx.now() - tx.database.clock_of(tx)
    if abs(ahead_s) > CLOCKS_S and tx.database.kept_time is not None:
        step_s = tx.database.kept_time.known.step_s
        text = (
            f"the clock was set {'ahead' if step_s > 0 else 'back'} by {abs(step_s):.0f} s, and nothing times out "
            f"by that: the service's time is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} it, "
            f"and comes closer by {RATE * 60:.0f} minutes an hour"
        )
        return Check("clocks", Level.WARN, text, "times that are shown are wrong by that: let NTP keep it right")
    if tx.database.is_sqlite:
        return Check("clocks", Level.OK, "the database has no clock of its own")
    before = time.time()
    theirs = tx.database.clock_of(tx)
    after = time.time()
    apart_s = theirs - (before + after) / 2
    text = f"the database is {abs(apart_s):.1f} s {'ahead of' if apart_s > 0 else 'behind'} this machine"
    if abs(apart_s) <= CLOCKS_S + (after - before) / 2:
        return Check("clocks", Level.OK, "the database and this machine agree")
    return Check("clocks", Level.WARN, text, "let NTP set the clocks: deadlines and pauses depend on both")


# -- work --------------------------------------------------------------------------------------------------------------


def _board(tx: Transaction) -> Check:
    now = tx.now()
    backlog = health.backlog(tx, now)
    lag_s = backlog.lag_s(now)
    if lag_s <= LAG_S:
        return Check("board", Level.OK, f"{backlog.shards} shards wait for a worker")
    text = f"{backlog.shards} shards wait for a worker, one of them for {lag_s:.0f} s"
    return Check("board", Level.WARN, text, "check that workers run (`homeostat worker`); if they do, start more")


def _workers(tx: Transaction) -> Check:
    now = tx.now()
    listed = workers.listed(tx)
    owned = health.owned(tx, now)
    running = named(
        [
            f"{worker.name} ({worker.version}, board {worker.board}) owns {owned.get(worker.name, 0)} shards"
            for worker in listed
            if worker.is_alive(now)
        ]
    )
    dead = [f"{worker.name}, {now - worker.seen_at:.0f} s ago" for worker in listed if not worker.is_alive(now)]
    if not dead:
        return Check("workers", Level.OK, running or "none runs")
    remedy = "other workers take over their shards; check that some run; once you know why these died, run "
    remedy += "homeostat doctor --acknowledge"
    return Check("workers", Level.WARN, f"died: {named(dead)}; running: {running or 'none'}", remedy)


def _set_aside(tx: Transaction) -> Check:
    rows = health.set_aside(tx)
    if not rows:
        return Check("bugs", Level.OK, "no shard is set aside")
    shards = named([f"{row.stack} ({row.stack_id}) shard {row.number}: {row.reason}" for row in rows])
    remedy = "a bug of the service: report it with the traceback in the workers' log; the shard is tried again"
    return Check("bugs", Level.FAIL, f"set aside: {shards}", remedy)


def _overdue(tx: Transaction) -> Check:
    now = tx.now()
    rows = health.overdue(tx, now - LAG_S)
    if not rows:
        return Check("deadlines", Level.OK, "no stack is past its deadline")
    late = named(
        [f"{row.name} ({row.id}), {now - row.deadline:.0f} s past it" for row in rows if row.deadline is not None]
    )
    return Check(
        "deadlines", Level.WARN, f"in progress: {late}", "check that workers run: one of them will time it out"
    )


def _locks(tx: Transaction) -> Check:
    rows = health.locked(tx)
    if not rows:
        return Check("locks", Level.OK, "no stack is locked")
    half = [
        f"{row.name} ({row.id}), {row.action}_{row.status}: {row.reason}" for row in rows if row.status == Status.FAILED
    ]
    if not half:
        held = named([f"{row.name} ({row.id}) is locked{locks.describe(row.lock or {})}" for row in rows])
        return Check("locks", Level.OK, held)
    remedy = "repair what the reasons name, then lock or unlock these stacks once more"
    return Check("locks", Level.WARN, f"half done: {named(half)}", remedy)


def _looks(tx: Transaction) -> Check:
    rows = doubts(tx)
    if not rows:
        return Check("looks", Level.OK, "no observation finds everything of a project gone")
    absent = [(f"{row.absent} of kind {row.kind} in project {row.project}", named(row.stacks, ", ")) for row in rows]
    text = named([f"{things} (stacks {stacks})" for things, stacks in absent])
    remedy = (
        "check whether the cloud is right; if they are gone, run homeostat converge STACK, which creates them again "
    )
    remedy += "(healing resumes by itself ten minutes later, if something else of that service is observed)"
    return Check("looks", Level.WARN, f"healing is paused, because all of these are absent at once: {text}", remedy)


def _sinks(tx: Transaction) -> Check:
    now = tx.now()
    rows = event_sinks.failing(tx)
    if not rows:
        return Check("event sinks", Level.OK, "none fails")
    text = named(
        [
            f"{row.settings['type']} of {row.stack} ({row.stack_id}) for {now - row.failing_since:.0f} s: {row.reason}"
            for row in rows
        ]
    )
    remedy = "repair what the reasons name, or update these stacks without these sinks; events are dropped after a day"
    return Check("event sinks", Level.WARN, f"not delivered: {text}", remedy)


def _message_bus(tx: Transaction) -> Check:
    failing = message_bus.failing(tx)
    if failing is None:
        return Check("notifications about stacks", Level.OK, "none waits")
    since, reason = failing
    words = f"not sent for {tx.now() - since:.0f} s: {reason}"
    remedy = "repair the message bus, or start without --stack-notifications; what waits for a day is dropped"
    return Check("notifications about stacks", Level.WARN, words, remedy)


def _trusts(tx: Transaction) -> Check:
    rows = stored_trusts.gone(tx, SHOWN_MAX + 1)
    if not rows:
        return Check("trusts", Level.OK, "all that stacks use are valid")
    text = named([f"{row.stack} ({row.stack_id}), of {row.object['user']}: {row.object['reason']}" for row in rows])
    remedy = "let a user with a role in the project update the stack: the service acts for that user from then on"
    return Check("trusts", Level.WARN, f"no longer valid: {text}", remedy)


def _secrets(tx: Transaction) -> Check:
    cells = key_rotation.counts(tx)
    newest, ids = tx.database.keys.newest, tx.database.keys.ids
    lost = {key: count for key, count in cells.items() if key not in (*ids, key_rotation.PLAIN)}
    if lost:
        text = named([f"{count} cells need key {key}" for key, count in sorted(lost.items())])
        return Check("secrets", Level.FAIL, f"cannot be read: {text}", "put these keys back into the key file")
    plain, old = cells.get(key_rotation.PLAIN, 0), sum(cells.get(key, 0) for key in ids if key != newest)
    if not newest and not plain:
        return Check("secrets", Level.OK, "none is stored")
    if not newest:
        remedy = "give all processes --encryption-keys FILE, then: homeostat keys rotate --same-key"
        return Check("secrets", Level.WARN, f"{plain} cells are plain, and new ones are, too", remedy)
    text = f"{cells.get(newest, 0)} cells are encrypted with key {newest}"
    if not plain and not old:
        return Check("secrets", Level.OK, text)
    remedy = "encrypt them, too: homeostat keys rotate --same-key"
    return Check("secrets", Level.WARN, f"{text}, {old} with older keys, {plain} are plain", remedy)


def _rows(tx: Transaction) -> Check:
    live = sum(health.live_stacks(tx).values())
    deleted, events = health.deleted_stacks(tx), health.count(tx, schema.event)
    text = f"{live} stacks, {deleted} deleted ones, {events} events"
    if deleted <= DELETED_MAX and events <= EVENTS_MAX:
        return Check("rows", Level.OK, text)
    return Check("rows", Level.WARN, text, "remove what is no longer needed: homeostat purge")


LOOKS: tuple[Callable[[Transaction], Check], ...] = (
    _writing,
    _clocks,
    _board,
    _workers,
    _set_aside,
    _overdue,
    _locks,
    _looks,
    _sinks,
    _message_bus,
    _trusts,
    _secrets,
    _rows,
)
