"""Revisions of stacks: the desired state, immutable once stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Executable, Integer, Select, Text, insert, select, type_coerce

from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.store import requesters, schema
from homeostat.store.database import Database, Transaction
from homeostat.store.encryption.encrypted_cells import Lost
from homeostat.store.schema import Cell
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards.away import NO_SHARD, Unrest, unrest_columns
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared
from homeostat.store.stacks import contents, files
from homeostat.store.stacks.contents import EMPTY, Address, Content, EncodedContent, StoredContent


@dataclass(frozen=True, slots=True)
class Copied:
    """The content of an earlier revision of the same stack, copied inside the database without decoding megabytes.

    Attributes:
        number: The earlier revision.
        template: The template instead of the earlier one, as for the next batch of a group; None for the same.
    """

    number: int
    template: Cell | None = None


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A revision that is about to be stored.

    Attributes:
        kind: See `Content`.
        sinks: See `Content`.
        intent: For a nested stack, the operation of its parent that the revision comes from. An operation executed
            twice, as after a crash, is recognised by its intent and makes a single revision.
        shards: Number of shards needed.
        secret: Whether its content, or any in its tree of stacks, holds secrets; None if undetermined.
        size: Number of resources that it defines; None if unchanged since the previous revision.
    """

    kind: str
    content: EncodedContent | Copied
    sinks: Sequence[Mapping[str, Any]] = ()
    intent: str = ""
    shards: int = 1
    secret: bool | None = None
    size: int | None = None


def encode(
    db: Database,
    content: Content,
    *,
    intent: str = "",
    shards: int = 1,
    secret: bool | None = None,
    size: int | None = None,
) -> NewRevision:
    """Return a revision with its content encoded, to keep the transaction that stores it short."""
    encoded = contents.encode(db.engine.dialect, content)
    return NewRevision(content.kind, encoded, content.sinks, intent, shards, secret, size)


def empty(db: Database, secret: bool | None = None) -> NewRevision:
    """Return a revision without content."""
    return encode(db, EMPTY, secret=secret, size=0)


def store_revision(tx: Transaction, stack_id: str, number: int, action: str, revision: NewRevision, now: float) -> None:
    """Store a revision, which never changes, with the action that it begins."""
    requester, content = requesters.current(), revision.content
    asked = (requester.name, requester.request_id)
    if isinstance(content, Copied):
        copy = (content.number, revision.intent, now, content.template, revision.size, *asked)
        regroups, resizes = content.template is not None, revision.size is not None
        _copy_revision(tx, stack_id, number, action, *copy, regroups=regroups, resizes=resizes)
        return
    files.store(tx, content.files)
    texts = (content.template, content.parameters, content.environment, content.hashes)
    _insert_revision(tx, stack_id, number, action, revision.kind, *texts, revision.intent, now, revision.size, *asked)


def store_empty(tx: Transaction, stack_ids: Sequence[str], number: int, action: str, now: float) -> None:
    """Store a revision without content of each of these stacks."""
    requester, encoded = requesters.current(), contents.encode(tx.dialect, EMPTY)
    content = {
        "kind": EMPTY.kind,
        "template": encoded.template,
        "parameters": encoded.parameters,
        "environment": encoded.environment,
        "files": encoded.hashes,
    }
    asked = {"requested_by": requester.name, "request_id": requester.request_id, "created_at": now}
    same = {"number": number, "action": action, "intent": "", "size": 0, **content, **asked}
    if stack_ids:
        tx.execute(insert(schema.revision), [{"stack_id": stack_id, **same} for stack_id in stack_ids])


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
    size: int | None,
    requested_by: str,
    request_id: str,
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
        size=size,
        requested_by=requested_by,
        request_id=request_id,
    )


@prepared
def _copy_revision(
    stack_id: str,
    number: int,
    action: str,
    source: int,
    intent: str,
    now: float,
    template: Any,
    size: int | None,
    requested_by: str,
    request_id: str,
    *,
    regroups: bool,
    resizes: bool,
) -> Executable:
    """Build the copy of an earlier revision, with its cells as stored.

    Args:
        regroups: Store this template instead of the earlier one, as for the next batch of a group.
        resizes: Store this size instead of the earlier one.
    """
    table = schema.revision
    same = {column.name: column for column in table.c}
    new: dict[str, Any] = {
        "number": type_coerce(number, Integer),
        "action": type_coerce(action, Text),
        "intent": type_coerce(intent, Text),
        "created_at": now,
        "requested_by": type_coerce(requested_by, Text),
        "request_id": type_coerce(request_id, Text),
    }
    if regroups:
        new["template"] = type_coerce(template, table.c.template.type)
    if resizes:
        new["size"] = type_coerce(size, Integer)
    copied = select(*({**same, **new}.values())).where(table.c.stack_id == stack_id, table.c.number == source)
    return insert(table).from_select(list(same), copied)


def copy_of_revision(tx: Transaction, stack: StackRow, number: int, intent: str = "") -> NewRevision:
    """Return a copy of an earlier revision, to store it as the newest one.

    Nothing large is read, except the environment of a root stack, which names its event sinks.

    Raises:
        LookupError: There is no such revision.
    """
    row = _revision_kind(tx, stack.id, number).first()
    if row is None:
        raise LookupError(f"stack {stack.id} has no revision {number}")
    sinks = contents.sinks_of(row.environment) if stack.parent_id is None else ()
    return NewRevision(row.kind, Copied(number), sinks, intent, size=row.size)


@prepared
def _revision_kind(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.kind, table.c.environment, table.c.size).where(
        table.c.stack_id == stack_id, table.c.number == number
    )


def intent_of(tx: Transaction, stack_id: str, number: int) -> str:
    """Return the operation of the parent stack that caused a revision of a nested stack."""
    return str(_intent(tx, stack_id, number).scalar_one())


@prepared
def _intent(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.intent).where(table.c.stack_id == stack_id, table.c.number == number)


def content_of(tx: Transaction, stack_id: str, number: int) -> Content:
    """Return the content of one revision.

    Raises:
        LookupError: There is no such revision.
    """
    return stored(tx, stack_id, number).decoded()


def stored(tx: Transaction, stack_id: str, number: int) -> StoredContent:
    """Return the content of one revision, not decoded yet. Raises like `content_of`."""
    row = _texts(tx, stack_id, number).first()
    if row is None:
        raise LookupError(f"stack {stack_id} has no revision {number}")
    table = schema.revision.c
    columns = (table.template, table.parameters, table.environment)
    texts = [column.type.decrypted(getattr(row, column.name), tx.dialect) for column in columns]  # type: ignore[attr-defined]
    named = files.load(tx, orjson.loads(row.files))

    def decoded() -> Content:
        template, parameters, environment = (text if isinstance(text, Lost) else orjson.loads(text) for text in texts)
        return Content(row.kind, template, parameters, environment, named)

    readable = [text for text in texts if not isinstance(text, Lost)]
    lost = len(readable) < len(texts)
    address = Address(f"{stack_id} {number}", 0) if lost else contents.address(row.kind, *readable, row.files)
    return StoredContent(row.kind, address, decoded)


@prepared
def _texts(stack_id: str, number: int) -> Select[Any]:
    """Select the cells as they are stored."""
    table = schema.revision
    cells = (
        type_coerce(table.c[name], Text).label(name) for name in ("template", "parameters", "environment", "files")
    )
    return select(table.c.kind, *cells).where(table.c.stack_id == stack_id, table.c.number == number)


def group_of(tx: Transaction, stack_id: str, number: int) -> GroupDefinition | None:
    """Return the group that a revision defines; None for a revision of another kind."""
    definition = _group(tx, stack_id, number).scalar_one_or_none()
    return None if definition is None else GroupDefinition.decoded(definition)


@prepared
def _group(stack_id: str, number: int) -> Select[Any]:
    table = schema.revision
    return select(table.c.template).where(
        table.c.stack_id == stack_id, table.c.number == number, table.c.kind == "group"
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """A group at one of its revisions.

    Attributes:
        unrest: The part of the group not at rest, excluding a certain shard.
    """

    group: GroupDefinition
    intent: str
    unrest: Unrest


def standing_of(tx: Transaction, stack_id: str, number: int, but: int = NO_SHARD) -> Standing | None:
    """Return the state of a group at a revision; None for a revision of another kind.

    Args:
        but: The number of the shard that does not count in `unrest`.
    """
    row = _standing(tx, stack_id, number, but).first()
    if row is None:
        return None
    return Standing(GroupDefinition.decoded(row.template), row.intent, Unrest(row.own, row.inside))


@prepared
def _standing(stack_id: str, number: int, but: int) -> Select[Any]:
    table = schema.revision
    own, inside = unrest_columns(stack_id, but)
    return select(table.c.template, table.c.intent, own.label("own"), inside.label("inside")).where(
        table.c.stack_id == stack_id, table.c.number == number, table.c.kind == "group"
    )


# -- the history for users: each revision stays readable until it is purged --------------------------------------------

_revision = schema.revision


class RevisionSummary(NamedTuple):
    number: int
    action: str
    kind: str
    created_at: float
    requested_by: str
    request_id: str


def page(
    tx: Transaction, stack_id: str, limit: int, before: int | None = None, after: int | None = None
) -> list[RevisionSummary]:
    """Return revisions without their content, the newest first; only those older than `before`, newer than `after`."""
    chosen = select(*(_revision.c[name] for name in RevisionSummary._fields)).where(_revision.c.stack_id == stack_id)
    if before is not None:
        chosen = chosen.where(_revision.c.number < before)
    if after is not None:
        chosen = chosen.where(_revision.c.number > after)
    return list(typed.rows(RevisionSummary, tx.execute(chosen.order_by(_revision.c.number.desc()).limit(limit))))


def get(tx: Transaction, stack_id: str, number: int) -> RevisionSummary:
    """Return a revision, as in `page`.

    Raises:
        Rejected: EntityNotFound.
    """
    revisions = page(tx, stack_id, 1, number + 1)
    if not revisions or revisions[0].number != number:
        raise not_found(stack_id, number)
    return revisions[0]


def reusable_content(tx: Transaction, stack_id: str, number: int) -> Content:
    """Return the content of a revision, to make it the desired state again.

    Raises:
        Rejected: There is no such revision, or it is empty.
    """
    if get(tx, stack_id, number).kind == "empty":
        raise Rejected(
            "HTTPBadRequest", f"revision {number} wants nothing to exist: to have that again, delete the stack"
        )
    return content_of(tx, stack_id, number)


def not_found(stack_id: str, number: int) -> Rejected:
    return Rejected("EntityNotFound", f"The Revision ({number}) of stack {stack_id} could not be found.")
