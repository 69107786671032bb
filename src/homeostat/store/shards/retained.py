"""Things that were retained when their resource was deleted (see `schema.retained`)."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Row, select

from homeostat.store import schema
from homeostat.store.database import Transaction

CHUNK = 500
"""Maximum number of things in one query."""

_retained = schema.retained


@dataclass(frozen=True, slots=True)
class Retained:
    """A retained thing."""

    project: str
    kind: str
    handle: str
    stack_id: str
    stack: str
    name: str
    reason: str


def add(tx: Transaction, things: Sequence[Retained], now: float) -> None:
    """Store things; a thing that was adopted and retained again is stored with its last owner."""
    if not things:
        return
    insert = tx.insert(_retained)
    newer = {name: insert.excluded[name] for name in ("stack_id", "stack", "name", "reason", "at")}
    rows = [{**asdict(thing), "at": now} for thing in things]
    tx.execute(insert.on_conflict_do_update(index_elements=["project", "kind", "handle"], set_=newer), rows)


def among(tx: Transaction, kind: str, handles: Collection[str]) -> list[Row[tuple[str, str, str, str]]]:
    """Return the retained things with these handles as handle, stack, name and reason, in the order of the handles."""
    chosen = select(_retained.c.handle, _retained.c.stack, _retained.c.name, _retained.c.reason)
    rows: list[Row[tuple[str, str, str, str]]] = []
    rest = sorted(handles)
    while rest:
        chunk, rest = rest[:CHUNK], rest[CHUNK:]
        rows += tx.execute(chosen.where(_retained.c.kind == kind, _retained.c.handle.in_(chunk)))
    return sorted(rows)
