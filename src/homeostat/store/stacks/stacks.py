"""Stacks and their revisions, the desired state. Every function works inside the transaction of its caller."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    Text,
    UpdateBase,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.exc import IntegrityError

from homeostat.model.errors import Rejected, stack_not_found
from homeostat.model.plan import Event
from homeostat.model.status import LOCKING, MAINTENANCE, Action, Status
from homeostat.model.world import Spares, StackFacts
from homeostat.store import events, schema
from homeostat.store.builtin import event_sinks, stack_users, stored_trusts
from homeostat.store.database import Database, row_lock
from homeostat.store.shards import look_schedule, shards
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import files, revision_text, snapshots
from homeostat.store.stacks.revision_text import EncodedRevision, Parts
from homeostat.templates.environments import SINKS


@dataclass(frozen=True, slots=True)
class Desired:
    """The content of one revision.

    Attributes:
        kind: `template`, `group`, `chain` or `empty`.
        template: See `schema.revision`.
        parameters: See `schema.revision`.
        environment: See `schema.revision`.
        files: File name -> text.
        shards: How many shards it needs.
        intent: For a nested stack, the act of its parent that the revision comes from. An act that is carried out
            twice, as after a crash, is recognised by it and makes one revision only.
        secret: Whether it, or anything in its tree of stacks, holds secrets; None if that was not determined.
        size: How many resources it defines; None if as many as the revision before.
        encoded: The same content, encoded; see `encode`.
        copied_from: The number of an earlier revision of the same stack with this content: parts that are left out here
            are copied from there.
    """

    kind: str = "empty"
    template: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    shards: int = 1
    intent: str = ""
    secret: bool | None = None
    size: int | None = field(default=None, compare=False)
    encoded: EncodedRevision | None = field(default=None, compare=False, repr=False)
    copied_from: int | None = field(default=None, compare=False)

    @property
    def parts(self) -> Parts:
        return self.template, self.parameters, self.environment, self.files

    @property
    def sinks(self) -> Sequence[Mapping[str, Any]]:
        """The settings of the event sinks; they apply if the stack is a root stack."""
        return self.environment.get(SINKS) or ()


EMPTY = Desired(size=0)
UNHELD: Mapping[str, Any] = {"suspended": False, "lock": None}
"""Columns that a deletion resets: nothing holds the stack any more."""
READ_ONLY_ACTIONS = frozenset({Action.CHECK, Action.SNAPSHOT})
NON_CHANGING_ACTIONS = READ_ONLY_ACTIONS | MAINTENANCE
"""Actions that leave the desired state as it is."""
STACKS_PER_QUERY = 500
"""Maximum number of stacks in one query."""


@dataclass(frozen=True, slots=True)
class NewStack:
    """A stack that is about to be stored.

    Attributes:
        action: CREATE, or ADOPT if it takes over existing things.
        parent_id: Of a nested stack, the stack of its parent resource; None for a root stack.
        parent_name: The name of the parent resource.
        parent_key: The key of the row of the parent resource.
        parent_shard: The shard of that row.
        root_id: The root of its tree of stacks; "" for a root stack.
        depth: The level of nesting; 0 for a root stack.
    """

    id: str
    project: str
    name: str
    owner: str | None = None
    action: str = Action.CREATE
    disable_rollback: bool = True
    timeout_mins: int | None = None
    tags: list[str] | None = None
    converge: bool = True
    observe_s: float | None = None
    exceptions: Mapping[str, Mapping[str, Any]] | None = None
    healing: Mapping[str, Any] | None = None
    parent_id: str | None = None
    parent_name: str | None = None
    parent_key: str | None = None
    parent_shard: int | None = None
    root_id: str = ""
    depth: int = 0
    snapshot: Mapping[str, Any] | None = None
    lock: Mapping[str, Any] | None = None


NEW_COLUMNS = tuple(each.name for each in fields(NewStack) if each.name not in ("action", "root_id"))
"""The fields of a new stack that are columns of its row as they are."""


def add(db: Database, tx: Connection, new: NewStack, desired: Desired, now: float, timeout_s: float) -> None:
    """Store a stack with its first revision, and wake its shards.

    Args:
        db: The database.
        tx: The transaction.
        new: The stack.
        desired: The content of its first revision.
        now: The agreed time.
        timeout_s: The service's default for the time that an action may take.

    Raises:
        Rejected: StackExists, if the project has a live stack of that name.
    """
    values = {name: getattr(new, name) for name in NEW_COLUMNS}
    values |= {
        "root_id": new.root_id or new.id,
        "revision": 1,
        "action": new.action,
        "status": Status.IN_PROGRESS,
        "reason": f"Stack {new.action} started",
        "spares": Spares.ADOPTED if new.action == Action.ADOPT else None,
        "deadline": now + timeout_of(new.timeout_mins, timeout_s),
        "shards": desired.shards,
        "secret": desired.secret,
        "size": desired.size or 0,
        "created_at": now,
    }
    # The unique index decides: a check before would race with other requests.
    try:
        tx.execute(insert(schema.stack), values)
    except IntegrityError as error:
        raise Rejected("StackExists", f"The Stack ({new.name}) already exists.") from error
    store_revision(db, tx, new.id, 1, new.action, desired, now)
    shards.ensure(db, tx, new.id, new.project, desired.shards)
    shards.wake(tx, new.id, now, shards.USER)
    if new.parent_id is None and desired.sinks:
        event_sinks.set_sinks(tx, new.id, desired.sinks)
    events.append(tx, new.id, [stack_event(new.id, new.name, new.action, Status.IN_PROGRESS)], now)


def revise(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    action: str,
    desired: Desired,
    now: float,
    timeout_s: float,
    changes: Mapping[str, Any] | None = None,
    touched: Collection[int] | None = None,
) -> int:
    """Make `desired` the newest revision of a stack, whatever is in progress (invariant 8, CONTRIBUTING.md).

    Args:
        db: The database.
        tx: The transaction.
        stack: The stack's row, locked by `for_update` in this transaction.
        action: The action of the stack that begins.
        desired: The content of the revision.
        now: The agreed time.
        timeout_s: The service's default for the time that an action may take.
        changes: Other columns of the stack to change.
        touched: The shards whose part of the desired state differs from before; None for all. Others are not woken if
            they are at rest, so that a small change of a large group costs little.

    Returns:
        The number of the revision.
    """
    number = int(stack.revision) + 1
    store_revision(db, tx, stack.id, number, action, desired, now)
    columns: dict[str, Any] = {**({} if desired.size is None else {"size": desired.size}), **(changes or {})}
    timeout_mins = columns.get("timeout_mins", stack.timeout_mins)
    begun = {"revision": number, "action": action, "status": Status.IN_PROGRESS, "reason": f"Stack {action} started"}
    times = {"deadline": now + timeout_of(timeout_mins, timeout_s), "updated_at": now}
    # Whatever the revision before was waiting for has ended; `columns` may set some of it again.
    ended = {"rollback_to": None, "look_from": None, "step_at": None, "snapshot": None}
    # A stack never has fewer shards than before: those beyond the new revision have rows to delete.
    _change(tx, stack.id, {**begun, **times, "shards": max(int(stack.shards), desired.shards), **ended, **columns})
    # Only ever from False to True: rows that were written before may hold secrets of older revisions. The whole tree
    # changes at once, since values flow between its stacks.
    if desired.secret and stack.secret is False:
        tree = (schema.stack.c.root_id == stack.root_id, schema.stack.c.secret.is_(False))
        tx.execute(update(schema.stack).where(*tree).values(secret=True))
    _wake_changed(db, tx, stack, desired, number, now, touched)
    # A large group may be deleted before most of its shards were begun: these need no pass to find that out.
    if desired.kind == EMPTY.kind and stack.shards > 1:
        shards.settle_empty(tx, stack.id, number, now)
    _interrupt_snapshot(tx, stack, f"Stack {action} came in between")
    if columns.get("look_from") is not None:
        look_schedule.request_look(tx, [stack.id], columns["look_from"])
    # An empty revision names no sinks; the present ones stay, so that they receive the events of the deletion.
    if stack.parent_id is None and desired.kind != EMPTY.kind:
        event_sinks.set_sinks(tx, stack.id, desired.sinks)
    events.append(tx, stack.id, [stack_event(stack.id, stack.name, action, Status.IN_PROGRESS)], now)
    return number


def _wake_changed(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    desired: Desired,
    number: int,
    now: float,
    touched: Collection[int] | None,
    priority: int = shards.USER,
) -> None:
    """Create missing shards, and wake those that a new revision concerns; for `touched` see `revise`."""
    shards.ensure(db, tx, stack.id, stack.project, desired.shards)
    if touched is None:
        shards.wake(tx, stack.id, now, priority, restart_at=number)
    else:
        shards.carry_over(tx, stack.id, number, touched)
        shards.wake_unsettled(tx, stack.id, now, priority, number)


def converge(db: Database, tx: Connection, stack: Row[Any], now: float, timeout_s: float, intent: str = "") -> int:
    """Make the newest desired state a revision once more, with a look at everything first (CV9, ADR 0020).

    An action in progress continues under its name.

    Args:
        db: The database.
        tx: The transaction.
        stack: The stack's row, locked.
        now: The agreed time.
        timeout_s: The service's default for the time that an action may take.
        intent: See `Desired`.

    Returns:
        The number of the revision.
    """
    going_on = stack.status == Status.IN_PROGRESS and stack.action not in READ_ONLY_ACTIONS
    action = stack.action if going_on or stack.action == Action.DELETE else Action.UPDATE
    return _revise_unchanged(db, tx, stack, action, now, timeout_s, intent, {"suspended": False})


def check(db: Database, tx: Connection, stack: Row[Any], now: float, timeout_s: float, intent: str = "") -> int:
    """Begin a check, which looks at every resource and reports whether it is as desired; return the new revision."""
    return _revise_unchanged(db, tx, stack, Action.CHECK, now, timeout_s, intent)


def take_snapshot(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    snapshot: Mapping[str, Any],
    now: float,
    timeout_s: float,
    intent: str = "",
) -> int:
    """Begin a snapshot of the data of every resource; return the new revision.

    Args:
        db: The database.
        tx: The transaction.
        stack: The stack's row, locked.
        snapshot: The column of `schema.stack`.
        now: The agreed time.
        timeout_s: The service's default for the time that an action may take.
        intent: See `Desired`.
    """
    changes = {"look_from": None, "snapshot": snapshot}
    return _revise_unchanged(db, tx, stack, Action.SNAPSHOT, now, timeout_s, intent, changes)


def maintain(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    action: str,
    now: float,
    timeout_s: float,
    *,
    lock: Mapping[str, Any] | None = None,
    intent: str = "",
) -> int:
    """Begin to suspend, resume, lock or unlock a stack; return the new revision (ADR 0037).

    Args:
        db: The database.
        tx: The transaction.
        stack: The stack's row, locked.
        action: SUSPEND, RESUME, LOCK or UNLOCK.
        now: The agreed time.
        timeout_s: The service's default for the time that an action may take.
        lock: The lock that the stack has from now on, if any (see `schema.stack`).
        intent: See `Desired`.
    """
    suspended = stack.suspended if action in (Action.LOCK, Action.UNLOCK) else action == Action.SUSPEND
    changes = {"lock": lock, "suspended": suspended}
    # A lock of level `stacks` does not touch any thing, so there is no reason to look at them first. If it replaces
    # another lock, things may have to be unlocked for it.
    if action == Action.LOCK and lock is not None and lock["level"] == "stacks" and stack.action != Action.LOCK:
        changes["look_from"] = None
    return _revise_unchanged(db, tx, stack, action, now, timeout_s, intent, changes)


def _revise_unchanged(
    db: Database,
    tx: Connection,
    stack: Row[Any],
    action: str,
    now: float,
    timeout_s: float,
    intent: str,
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Make the same desired state another revision.

    It counts as complete from the start if the one before was, so that its failure neither halts the stack nor rolls it
    back. A stack that is being restored to a snapshot continues to be.
    """
    desired = replace(copy_of_revision(tx, stack, stack.revision), intent=intent)
    goes_back = stack.snapshot if facts(stack).restoring else None
    columns = {"look_from": db.now_of(tx), "rollback_to": stack.rollback_to, "snapshot": goes_back, **(changes or {})}
    if stack.complete_revision == stack.revision:
        columns["complete_revision"] = stack.revision + 1
    return revise(db, tx, stack, action, desired, now, timeout_s, columns)


def _interrupt_snapshot(tx: Connection, stack: Row[Any], reason: str) -> None:
    """Fail the snapshot that is being taken of a stack, since the action that takes it ends.

    A nested stack (with a place) leaves it alone: the snapshot belongs to the stack that it was requested of.
    """
    taken = stack.snapshot if stack.action == Action.SNAPSHOT and stack.status == Status.IN_PROGRESS else None
    if taken is not None and not taken["place"]:
        snapshots.fail(tx, taken["id"], reason)


def tree_of(stack_id: str) -> Any:
    """Select the ids of a stack and of all live stacks nested in it."""
    table = schema.stack
    tree = select(table.c.id).where(table.c.id == stack_id).cte("tree", recursive=True)
    tree = tree.union_all(select(table.c.id).where(table.c.parent_id == tree.c.id, table.c.deleted_at.is_(None)))
    return select(tree.c.id)


def timeout_of(timeout_mins: int | None, default_s: float) -> float:
    """Return how many seconds an action of a stack may take."""
    return timeout_mins * 60.0 if timeout_mins else default_s


def encode(db: Database, desired: Desired) -> Desired:
    """Encode a revision's content, so that this takes no time in the transaction that stores it."""
    return replace(desired, encoded=revision_text.encode(db.engine.dialect, desired.parts))


def store_revision(
    db: Database, tx: Connection, stack_id: str, number: int, action: str, desired: Desired, now: float
) -> None:
    """Store a revision, which never changes, with the action that it came with."""
    # The same content as an earlier revision is copied inside the database, without decoding megabytes.
    if desired.copied_from is not None and not desired.template:
        _copy_revision(tx, stack_id, number, action, desired.copied_from, desired.intent, now, None, regroups=False)
        return
    encoded = desired.encoded
    # What was encoded in advance may be outdated: `replace` keeps it when other parts are replaced.
    if encoded is None or not encoded.encodes(desired.parts):
        encoded = revision_text.encode(db.engine.dialect, desired.parts)
    if desired.copied_from is not None:
        _copy_revision(
            tx, stack_id, number, action, desired.copied_from, desired.intent, now, encoded.template, regroups=True
        )
        return
    files.store(db, tx, encoded.files)
    texts = (encoded.template, encoded.parameters, encoded.environment, encoded.hashes)
    _insert_revision(tx, stack_id, number, action, desired.kind, *texts, desired.intent, now)


@prepared
def _insert_revision(
    stack_id: str,
    number: int,
    action: str,
    kind: str,
    template: Any,
    parameters: Any,
    environment: Any,
    files: Any,
    intent: str,
    created_at: float,
) -> Executable:
    return insert(schema.revision).values(
        stack_id=stack_id,
        number=number,
        action=action,
        kind=kind,
        template=template,
        parameters=parameters,
        environment=environment,
        files=files,
        intent=intent,
        created_at=created_at,
    )


@prepared
def _copy_revision(
    stack_id: str, number: int, action: str, source: int, intent: str, now: float, template: Any, *, regroups: bool
) -> Executable:
    """Build the copy of an earlier revision, with its cells as they are stored.

    Args:
        regroups: Store this template instead of the earlier one, as for the next batch of a group.
    """
    table = schema.revision
    same = {column.name: column for column in table.c}
    new: dict[str, Any] = {
        "number": type_coerce(number, Integer),
        "action": type_coerce(action, Text),
        "intent": type_coerce(intent, Text),
        "created_at": now,
    }
    if regroups:
        new["template"] = type_coerce(template, table.c.template.type)
    copied = select(*({**same, **new}.values())).where(table.c.stack_id == stack_id, table.c.number == source)
    return insert(table).from_select(list(same), copied)


def copy_of_revision(tx: Connection, stack: Row[Any], number: int) -> Desired:
    """Return the content of a revision by reference, to be stored again as the newest one.

    Nothing large is read, except the environment of a root stack, which names its event sinks.

    Raises:
        LookupError: There is no such revision.
    """
    row = _revision_kind(tx, stack.id, number).first()
    if row is None:
        raise LookupError(f"stack {stack.id} has no revision {number}")
    return Desired(row.kind, environment=row.environment if stack.parent_id is None else {}, copied_from=number)


@prepared
def _revision_kind(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.kind, table.c.environment).where(table.c.stack_id == stack_id, table.c.number == number)


def intent_of(tx: Connection, stack_id: str, number: int) -> str:
    """Return the act of the parent that a revision of a nested stack comes from."""
    return str(_intent(tx, stack_id, number).scalar_one())


@prepared
def _intent(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.intent).where(table.c.stack_id == stack_id, table.c.number == number)


def desired_of(tx: Connection, stack_id: str, number: int) -> Desired:
    """Return the content of one revision.

    Raises:
        LookupError: There is no such revision.
    """
    row = _revision(tx, stack_id, number).first()
    if row is None:
        raise LookupError(f"stack {stack_id} has no revision {number}")
    texts = files.load(tx, row.files)
    return Desired(row.kind, row.template, row.parameters, row.environment, texts, intent=row.intent)


@prepared
def _revision(stack_id: str, number: int) -> Select[Any]:
    return select(schema.revision).where(schema.revision.c.stack_id == stack_id, schema.revision.c.number == number)


def for_update(db: Database, tx: Connection, stack_id: str) -> Row[Any] | None:
    """Return the stack's row, locked until the end of the transaction; None if there is none.

    Stacks are locked before their shards (invariant 5, CONTRIBUTING.md).
    """
    return _for_update(tx, stack_id).first()


@prepared
def _for_update(stack_id: str) -> Select[Any]:
    return row_lock(select(schema.stack).where(schema.stack.c.id == stack_id))


def live(db: Database, tx: Connection, stack_id: str) -> Row[Any]:
    """Return the row of a stack that is not deleted, locked until the end of the transaction.

    Raises:
        Rejected: EntityNotFound.
    """
    row = for_update(db, tx, stack_id)
    if row is None or row.deleted_at is not None:
        raise stack_not_found(stack_id)
    return row


def get(tx: Connection, stack_id: str) -> Row[Any] | None:
    return _by_id(tx, stack_id).first()


@prepared
def _by_id(stack_id: str) -> Select[Any]:
    return select(schema.stack).where(schema.stack.c.id == stack_id)


def timeout_mins_of(tx: Connection, stack: Row[Any]) -> int | None:
    """Return the minutes that an action may take, as set for the root stack; None if they were not set."""
    if stack.parent_id is None:
        return int(stack.timeout_mins) if stack.timeout_mins is not None else None
    return tx.execute(select(schema.stack.c.timeout_mins).where(schema.stack.c.id == stack.root_id)).scalar()


def find(tx: Connection, project: str, name_or_id: str, *, everywhere: bool = False) -> Row[Any] | None:
    """Find a stack by its id, also a deleted one, or else the oldest live one of that name.

    The stack may belong to the project, or have its stack users in that project: servers authenticate as those.

    Args:
        tx: The transaction.
        project: The project of the caller.
        name_or_id: The name or the id.
        everywhere: An id finds stacks of other projects, too.
    """
    table = schema.stack
    by_id = get(tx, name_or_id)
    if by_id is not None and (everywhere or project in (by_id.project, by_id.user_project)):
        return by_id
    for mine in (table.c.project, table.c.user_project):
        live = and_(mine == project, table.c.name == name_or_id, table.c.deleted_at.is_(None))
        named = tx.execute(select(table).where(live).order_by(table.c.created_at)).first()
        if named is not None:
            return named
    return None


def count_live(tx: Connection, project: str) -> int:
    return int(_count_live(tx, project).scalar_one())


@prepared
def _count_live(project: str) -> Select[Any]:
    table = schema.stack
    live = (table.c.project == project, table.c.deleted_at.is_(None), table.c.parent_id.is_(None))
    return select(func.count()).select_from(table).where(*live)


def size_of_tree(tx: Connection, root_id: str) -> int:
    """Return how many resources a root stack and all live stacks nested in it should have."""
    table = schema.stack
    live = (table.c.root_id == root_id, table.c.deleted_at.is_(None))
    return int(tx.execute(select(func.sum(table.c.size)).where(*live)).scalar() or 0)


def facts(row: Row[Any]) -> StackFacts:
    return StackFacts(**{name: getattr(row, name) for name in StackFacts.__dataclass_fields__})


def stack_event(stack_id: str, name: str, action: str, status: str, reason: str = "") -> Event:
    """Return an event of the stack itself: clients recognise it by the stack's name and id, as in Heat."""
    return Event(name, action, status, reason or f"Stack {action} started", "OS::Heat::Stack", handle=stack_id)


def lock_settled(db: Database, tx: Connection, stack_id: str, number: int) -> Row[Any] | None:
    """Return the stack's row, locked, if it is in progress and all its shards are at rest at `number`, its newest.

    The lock makes the shards of a stack take turns here. Without it, two that come to rest in the same instant would
    each see the other one unfinished, and the stack would stay IN_PROGRESS.
    """
    row = for_update(db, tx, stack_id)
    if row is None or row.revision != number or row.status != Status.IN_PROGRESS:
        return None
    return row if is_settled(tx, row, number) else None


def is_settled(tx: Connection, stack: Row[Any], number: int) -> bool:
    """Return whether all shards of a stack are at rest at revision `number`."""
    # Actions that change nothing may end although resources failed before them; for all others a FAILED resource means
    # that the revision has not been reached.
    changing = stack.action not in NON_CHANGING_ACTIONS
    return not _unfinished(tx, stack.id, number, stack.shards, changing=changing).scalar_one()


@prepared
def _unfinished(stack_id: str, number: int, count: int, *, changing: bool) -> Select[Any]:
    shard = schema.shard
    unfinished = shard.c.settled_revision < number
    if changing:
        unfinished = or_(unfinished, shard.c.failures > 0)
    return select(exists().where(shard.c.stack_id == stack_id, shard.c.number < count, unfinished))


def settle(db: Database, tx: Connection, stack_id: str, number: int, now: float) -> Row[Any] | None:
    """Finish the action of a stack if all its shards are at rest at revision `number` and that is still the newest.

    Returns:
        The stack's row as it was before; None if nothing was finished.
    """
    row = lock_settled(db, tx, stack_id, number)
    if row is not None:
        finish(db, tx, row, now)
    return row


def finish(db: Database, tx: Connection, row: Row[Any], now: float) -> None:
    """End the action of a stack that is settled (see `lock_settled`).

    It is COMPLETE, except for a check that found something wrong, a lock that could not be set or removed everywhere,
    and a snapshot of a stack whose desired state was never reached.
    """
    failure = _failed_check(tx, row) if row.action == Action.CHECK else ""
    if row.action in LOCKING:
        table = schema.resource
        failure = failed_resources(tx, row, table.c.action.in_(LOCKING), table.c.revision == row.revision)
    if row.action == Action.SNAPSHOT and row.complete_revision != row.revision:
        failure = NEVER_COMPLETE
    if failure:
        _finish(tx, row, Status.FAILED, failure, now)
        _interrupt_snapshot(tx, row, failure)
    else:
        _finish(tx, row, Status.COMPLETE, f"Stack {row.action} completed successfully", now)
    if row.action == Action.UNLOCK and row.parent_id is None and not failure:
        _unlocked(tx, row, now)
    elif row.action in READ_ONLY_ACTIONS or row.action in (Action.ADOPT, Action.RESUME):
        # During these actions nothing is healed; what was found to differ may be mended now.
        shards.wake(tx, row.id, now, shards.HEAL)
    if row.action == Action.DELETE:
        snapshots.remove_of_stack(db, tx, row.id, row.project, now, spared=row.spares == Spares.ALL)


NEVER_COMPLETE = "Some resources were never created: the last update did not complete"


def _unlocked(tx: Connection, row: Row[Any], now: float) -> None:
    """Remove the lock from a stack and from all nested in it, and wake them, since they may be healed again.

    The caller has locked the whole tree before its own shard (`lock_order.take_tree`): this changes rows of stacks and
    shards above and below it.
    """
    table, tree = schema.stack, tree_of(row.id)
    for each in list(tx.execute(select(table).where(table.c.id.in_(tree), table.c.lock.is_not(None)))):
        _restore_status(tx, each, now)
    tx.execute(update(table).where(table.c.id.in_(tree)).values(lock=None))
    shards.wake_all(tx, tree, now, shards.HEAL)


BEFORE = "before"
"""Key in a lock: the stack's state before it was locked, `{"action", "status", "reason"}`.

Kept only if the stack had failed or was suspended: after unlocking it must report that again.
"""


def _restore_status(tx: Connection, row: Row[Any], now: float) -> None:
    """Let an unlocked stack report the state that it had before it was locked."""
    before = row.lock.get(BEFORE)
    if before is None or row.action != Action.UNLOCK:
        return
    tx.execute(update(schema.stack).where(schema.stack.c.id == row.id).values(**before))
    event = stack_event(row.id, row.name, before["action"], before["status"], before["reason"])
    events.append(tx, row.id, [event], now)


NAMED_MAX = 10
"""Maximum number of failed resources that the reason of a failed check names."""


def _failed_check(tx: Connection, stack: Row[Any]) -> str:
    """Return what a check has found wrong; "" if nothing."""
    never = NEVER_COMPLETE if stack.complete_revision != stack.revision else ""
    return failed_resources(tx, stack) or never


def failed_resources(tx: Connection, stack: Row[Any], *among: ColumnElement[bool]) -> str:
    """Return which resources of a stack are FAILED, and why; "" if none is.

    Args:
        tx: The transaction.
        stack: The stack's row.
        *among: Conditions on the rows to consider.
    """
    # The counters of the shards are few rows; without a failure the resources need not be read.
    if not shards.failures_of(tx, stack.id):
        return ""
    table = schema.resource
    # A replaced row does not count any more, unless it could not be deleted.
    hinders = or_(table.c.replaced_by.is_(None), table.c.action == Action.DELETE)
    failed = (table.c.stack_id == stack.id, table.c.status == Status.FAILED, hinders, *among)
    counted = func.count().over().label("failures")
    chosen = select(table.c.name, table.c.reason, counted).where(*failed).order_by(table.c.name).limit(NAMED_MAX)
    named = list(tx.execute(chosen))
    if not named:
        return ""
    named_failures = "; ".join(_reason_with_name(each.name, each.reason) for each in named)
    more = named[0].failures - NAMED_MAX
    action = stack.action if among else Action.CHECK
    return f"Resource {action} failed: {named_failures}" + (f"; and {more} more" if more > 0 else "")


def _reason_with_name(name: str, reason: str) -> str:
    """Return the reason of a failed resource, preceded by its name unless the reason names it already."""
    named = any(f" resources.{name}{end}" in reason for end in ":.[")
    return reason if named else f"{name}: {reason}"


def group_of(tx: Connection, stack_id: str, number: int) -> Mapping[str, Any] | None:
    """Return the group that a revision defines (see `resources.groups`); None for a revision of another kind."""
    return _group(tx, stack_id, number).scalar_one_or_none()


@prepared
def _group(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.template).where(
        table.c.stack_id == stack_id, table.c.number == number, table.c.kind == "group"
    )


def delay_batch(tx: Connection, row: Row[Any], until: float) -> None:
    """Let the next batch of a group's members wait until a time."""
    tx.execute(update(schema.stack).where(schema.stack.c.id == row.id).values(step_at=until))


def begin_batch(
    db: Database,
    tx: Connection,
    row: Row[Any],
    desired: Desired,
    now: float,
    touched: Mapping[int, shards.ShardChange] | None,
) -> None:
    """Make `desired` the next revision of the action in progress, as the next batch of a group (ADR 0014).

    Action, deadline and intent stay as they are. The revision before is deleted, unless a rollback returns to it: a
    series may have as many revisions as the group has members.

    Args:
        db: The database.
        tx: The transaction.
        row: The stack's row, locked.
        desired: The content of the revision.
        now: The agreed time.
        touched: See `revise`; members of these shards that do not change count as done.
    """
    table, number = schema.stack, int(row.revision) + 1
    store_revision(db, tx, row.id, number, row.action, desired, now)
    tx.execute(
        update(table)
        .where(table.c.id == row.id)
        .values(revision=number, shards=max(int(row.shards), desired.shards), step_at=None)
    )
    if row.revision != row.complete_revision:
        revisions = schema.revision
        tx.execute(delete(revisions).where(revisions.c.stack_id == row.id, revisions.c.number == row.revision))
    _wake_changed(db, tx, row, desired, number, now, touched, shards.ROLLOUT)
    shards.restart_progress(tx, row.id, touched or {})


def fail(db: Database, tx: Connection, stack_id: str, number: int, reason: str, now: float) -> Row[Any] | None:
    """Fail the stack if `number` is still its newest revision and in progress; return its row as it was before.

    The check happens under the lock: a user may have stored a newer revision since the pass has loaded the stack, and a
    failure of the older one says nothing about it.
    """
    row = for_update(db, tx, stack_id)
    if row is None or row.revision != number or row.status != Status.IN_PROGRESS:
        return None
    _finish(tx, row, Status.FAILED, reason, now)
    shards.wake(tx, stack_id, now, shards.USER)
    _interrupt_snapshot(tx, row, reason)
    return row


def change_status_at_rest(tx: Connection, row: Row[Any], action: str, status: Status, reason: str, now: float) -> None:
    """Change the state that a stack at rest reports, with its event, and wake its parent."""
    _change(tx, row.id, {"action": action, "status": status, "reason": reason})
    events.append(tx, row.id, [stack_event(row.id, row.name, action, status, reason)], now)
    wake_parent(tx, row, now)


def _change(tx: Connection, stack_id: str, values: Mapping[str, Any]) -> None:
    """Set some columns of a stack."""
    tx.execute(_changing(tuple(values)), {f"new_{name}": value for name, value in values.items()} | {"this": stack_id})


@cache
def _changing(columns: tuple[str, ...]) -> UpdateBase:
    changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return update(schema.stack).where(schema.stack.c.id == bindparam("this")).values(changed)


def _finish(tx: Connection, row: Row[Any], status: Status, reason: str, now: float) -> None:
    values: dict[str, Any] = {"status": status, "reason": reason, "deadline": None, "step_at": None}
    if status is Status.COMPLETE and row.action not in MAINTENANCE:
        values["complete_revision"] = row.revision
        if row.spares == Spares.ADOPTED:
            values["spares"] = None
        if row.action == Action.DELETE:
            values["deleted_at"] = now
            if row.parent_id is None:
                stored_trusts.release(tx, row.id)
                stack_users.mark_stack_departed(tx, row.id)
    _change(tx, row.id, values)
    events.append(tx, row.id, [stack_event(row.id, row.name, row.action, status, reason)], now)
    wake_parent(tx, row, now)
    # A locked stack has nothing else to do, so its first shard is woken when the lock expires: that pass unlocks it.
    if row.action == Action.LOCK and row.parent_id is None and row.lock["expires_at"] is not None:
        shards.wake(tx, row.id, max(now, row.lock["expires_at"]), shards.USER, [0])


def wake_parent(tx: Connection, row: Row[Any], now: float) -> None:
    """Wake the shard of the parent resource of a nested stack, since the stack has changed."""
    if row.parent_id is not None:
        shards.wake(tx, row.parent_id, now, shards.USER, [row.parent_shard])


def roll_back(db: Database, tx: Connection, stack: Row[Any], now: float, timeout_s: float) -> int:
    """Roll back to the last COMPLETE revision (CV11), or to nothing if there is none; return the new revision."""
    goal = stack.complete_revision
    desired = EMPTY if goal is None else copy_of_revision(tx, stack, goal)
    return revise(db, tx, stack, Action.ROLLBACK, desired, now, timeout_s, {"rollback_to": goal or 0})


def abandon(db: Database, tx: Connection, stack: Row[Any], now: float, timeout_s: float) -> None:
    """Delete a stack and all nested in it without touching any of their things, for good (ADR 0035)."""
    table = schema.stack
    tx.execute(update(table).where(table.c.id.in_(tree_of(stack.id))).values(spares=Spares.ALL))
    if stack.spares == Spares.ALL and stack.status == Status.IN_PROGRESS:
        return
    # A deletion in progress that touches things begins again: nested stacks may have failed in it, and the stacks
    # around them may be about to learn of that.
    revise(db, tx, stack, Action.DELETE, EMPTY, now, timeout_s, {"spares": Spares.ALL, **UNHELD})
