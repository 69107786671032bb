"""Things that were retained when their resource was deleted (see `schema.retained`)."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Row, select

from homeostat.store import schema
from homeostat.store.database import Database

CHUNK = 500
"""Maximum number of things in one query."""

_retained = schema.retained


@dataclass(frozen=True, slots=True)
class Retained:
    """One retained thing.

    Attributes:
        project: The project.
        kind: The kind of the cloud port.
        handle: The cloud's id of the thing.
        stack_id: The id of the stack that owned it.
        stack: The name of that stack.
        name: The name of the resource that it was.
        reason: Why it was retained.
    """

    project: str
    kind: str
    handle: str
    stack_id: str
    stack: str
    name: str
    reason: str


def add(db: Database, tx: Connection, things: Sequence[Retained], now: float) -> None:
    """Remember things; one that was adopted and is retained again is remembered with its last owner."""
    if not things:
        return
    insert = db.insert(_retained)
    newer = {name: insert.excluded[name] for name in ("stack_id", "stack", "name", "reason", "at")}
    rows = [{**asdict(each), "at": now} for each in things]
    tx.execute(insert.on_conflict_do_update(index_elements=["project", "kind", "handle"], set_=newer), rows)


def among(tx: Connection, kind: str, handles: Collection[str]) -> list[Row[tuple[str, str, str, str]]]:
    """Return those of these things that were retained: handle, stack, name, reason, in the order of their handles."""
    chosen = select(_retained.c.handle, _retained.c.stack, _retained.c.name, _retained.c.reason)
    found: list[Row[tuple[str, str, str, str]]] = []
    rest = sorted(handles)
    while rest:
        chunk, rest = rest[:CHUNK], rest[CHUNK:]
        found += tx.execute(chosen.where(_retained.c.kind == kind, _retained.c.handle.in_(chunk)))
    return sorted(found)
