"""Which keys the cells of the database are sealed with, and sealing them anew while the service runs.

A cell is changed only if it is still what was read: whoever writes meanwhile wins, and seals with the newest key
anyway. So this may be stopped and begun again at any time, and run beside itself.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, Connection, Table, Text, and_, case, false, func, select, tuple_, type_coerce, update

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.encryption.sealed_cells import (
    ID_LENGTH,
    MARK,
    Keyring,
    Unreadable,
    is_sealed,
    open_text,
    seal_text,
)

BATCH = 500
"""Rows of one transaction."""
PLAIN = "plain"
Progress = Callable[[str, int], None]
"""Is told a table, and how many of its rows have been looked at."""


@dataclass(slots=True)
class RotationResult:
    """cells — sealed anew; lost — that cannot be read, by what is wrong with them."""

    cells: int = 0
    lost: Counter[str] = field(default_factory=Counter)


def sealable() -> Iterator[tuple[Table, list[Column[Any]]]]:
    """Tables with columns that may be sealed."""
    for table in schema.metadata.sorted_tables:
        columns = [each for each in table.c if isinstance(each.type, schema.Sealed | schema.SealedText)]
        if columns:
            yield table, columns


def counts(tx: Connection) -> dict[str, int]:
    """Id of a key -> cells that are sealed with it; `plain` -> those that should be sealed and are not. Reads all of
    these tables."""
    found: Counter[str] = Counter()
    for table, columns in sealable():
        for column in columns:
            cell = type_coerce(column, Text)
            key = func.substr(cell, len(MARK) + 1, ID_LENGTH)
            name = case((func.substr(cell, 1, len(MARK)) == MARK, key), else_=PLAIN)
            chosen = select(name, func.count()).where(column.is_not(None)).group_by(name)
            if not _always(column):
                plain = func.substr(cell, 1, len(MARK)) != MARK
                chosen = chosen.where(~and_(plain, table.c.stack_id.in_(_harmless())))
            for key_name, count in tx.execute(chosen):
                found[key_name] += count
    return dict(found)


def key_in_use(tx: Connection) -> str:
    """Id of some key that this database needs; "" when nothing in it is sealed."""
    cell = type_coerce(schema.revision.c.parameters, Text)
    chosen = select(func.substr(cell, len(MARK) + 1, ID_LENGTH)).where(func.substr(cell, 1, len(MARK)) == MARK)
    return tx.execute(chosen.limit(1)).scalar_one_or_none() or ""


def _always(column: Column[Any]) -> bool:
    return not isinstance(column.type, schema.Sealed) or column.type.always


def _harmless() -> Any:
    """Ids of stacks that hold no secrets."""
    return select(schema.stack.c.id).where(schema.stack.c.secret.is_(False))


def reseal(db: Database, told: Progress = lambda table, rows: None) -> RotationResult:
    """Seal with the newest key what is sealed with another one, or should be sealed and is not; where the keys do not
    seal, open all that is sealed.

    Fails: Transient when the database does not answer; what was done is done.
    """
    done = RotationResult()
    for table, columns in sealable():
        after: Sequence[Any] | None = None
        looked = 0
        while True:
            with db.read() as tx:
                rows = _batch(tx, table, columns, after)
            if not rows:
                break
            after = rows[-1][: len(table.primary_key.columns)]
            changes = [each for row in rows for each in _changes(db.keys, table, columns, row, done)]
            if changes:
                with db.write() as tx:
                    done.cells += sum(_swap(tx, table, *each) for each in changes)
            looked += len(rows)
            told(table.name, looked)
    return done


def _batch(tx: Connection, table: Table, columns: Sequence[Column[Any]], after: Sequence[Any] | None) -> list[Any]:
    """Rows after this key: the key, whether the stack is harmless, and the cells as they are stored."""
    key = list(table.primary_key.columns)
    harmless = table.c.stack_id.in_(_harmless()) if "stack_id" in table.c else false()
    chosen = select(*key, harmless, *(type_coerce(each, Text) for each in columns)).order_by(*key).limit(BATCH)
    if after is not None:
        chosen = chosen.where(tuple_(*key) > tuple_(*after))
    return list(tx.execute(chosen))


def _changes(
    keys: Keyring, table: Table, columns: Sequence[Column[Any]], row: Sequence[Any], done: RotationResult
) -> Iterator[tuple[Sequence[Any], Column[Any], str, str]]:
    """Key of the row, column, what is there, what should be."""
    width = len(table.primary_key.columns)
    key, harmless, cells = row[:width], row[width], row[width + 1 :]
    for column, cell in zip(columns, cells, strict=True):
        if cell is None or cell.startswith(f"{MARK}{keys.newest}:"):
            continue
        if harmless and not _always(column) and not is_sealed(cell):
            continue
        try:
            anew = _anew(keys, column, cell)
        except Unreadable as error:
            done.lost[str(error)] += 1
            continue
        if anew != cell:
            yield key, column, cell, anew


def _anew(keys: Keyring, column: Column[Any], cell: str) -> str:
    place = column.type.place  # type: ignore[attr-defined]
    if isinstance(column.type, schema.SealedText):
        return seal_text(keys, open_text(keys, cell, place), place)
    return keys.seal(keys.open(cell, place) if is_sealed(cell) else cell, place)


def _swap(tx: Connection, table: Table, key: Sequence[Any], column: Column[Any], before: str, after: str) -> int:
    this = [each == value for each, value in zip(table.primary_key.columns, key, strict=True)]
    cell = type_coerce(column, Text)
    swapped: Mapping[Any, Any] = {column: type_coerce(after, Text)}
    return tx.execute(update(table).where(*this, cell == before).values(swapped)).rowcount
