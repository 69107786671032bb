"""Key rotation: the keys of the cells in the database, and encrypting the cells again while the service runs.

A cell is changed only if it is the same as when it was read (compare and swap): a concurrent writer wins, and encrypts
with the newest key anyway. So a rotation may be interrupted and repeated at any time, and several may run at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, Table, Text, and_, case, false, func, select, tuple_, type_coerce, update

from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.encryption.encrypted_cells import (
    ID_LENGTH,
    MARK,
    Keyring,
    Unreadable,
    decrypt_text,
    encrypt_text,
    is_encrypted,
)

BATCH = 500
"""Number of rows in a transaction."""
PLAIN = "plain"
Progress = Callable[[str, int], None]
"""Called with the name of a table and the number of its rows that have been examined."""


@dataclass(slots=True)
class RotationResult:
    """The outcome of a rotation.

    Attributes:
        cells: The number of cells that were encrypted again, or decrypted.
        lost: The number of cells that could not be read, by reason.
    """

    cells: int = 0
    lost: Counter[str] = field(default_factory=Counter)


def encryptable() -> Iterator[tuple[Table, list[Column[Any]]]]:
    """Yield each table with encryptable columns, and these columns."""
    for table in schema.metadata.sorted_tables:
        columns = [column for column in table.c if isinstance(column.type, schema.EncryptedJson | schema.EncryptedText)]
        if columns:
            yield table, columns


def counts(tx: Transaction) -> dict[str, int]:
    """Count the cells encrypted with each key; reads all tables with encrypted columns.

    Returns:
        Id of a key -> number of cells encrypted with it; `plain` -> number of plain cells that should be encrypted.
    """
    numbers: Counter[str] = Counter()
    for table, columns in encryptable():
        for column in columns:
            cell = type_coerce(column, Text)
            key = func.substr(cell, len(MARK) + 1, ID_LENGTH)
            name = case((func.substr(cell, 1, len(MARK)) == MARK, key), else_=PLAIN)
            chosen = select(name, func.count()).where(column.is_not(None)).group_by(name)
            if not _always(column):
                plain = func.substr(cell, 1, len(MARK)) != MARK
                chosen = chosen.where(~and_(plain, table.c.stack_id.in_(_without_secrets())))
            for key_name, count in tx.execute(chosen):
                numbers[key_name] += count
    return dict(numbers)


def key_in_use(tx: Transaction) -> str:
    """Return the id of any key that this database needs; "" if nothing is encrypted."""
    # Revisions are encrypted in every database with keys, and a single row suffices.
    cell = type_coerce(schema.revision.c.parameters, Text)
    chosen = select(func.substr(cell, len(MARK) + 1, ID_LENGTH)).where(func.substr(cell, 1, len(MARK)) == MARK)
    return tx.execute(chosen.limit(1)).scalar_one_or_none() or ""


def _always(column: Column[Any]) -> bool:
    return not isinstance(column.type, schema.EncryptedJson) or column.type.always


def _without_secrets() -> Any:
    """Select the ids of the stacks that hold no secrets."""
    return select(schema.stack.c.id).where(schema.stack.c.secret.is_(False))


def reencrypt(db: Database, on_progress: Progress = lambda table, rows: None) -> RotationResult:
    """Encrypt all cells with the newest key, unless they already are or may stay plain.

    If the keys do not encrypt (see `Keyring`), decrypt all encrypted cells instead.

    Raises:
        Transient: The database does not answer. Cells changed earlier stay changed.
    """
    done = RotationResult()
    # A row that is copied inside the database has the key of its source, and may stand before the row examined now.
    while cells := _reencrypt_all(db, done.lost, on_progress):
        done.cells += cells
        done.lost.clear()
    return done


def _reencrypt_all(db: Database, lost: Counter[str], on_progress: Progress) -> int:
    """Examine all cells once; return how many were changed."""
    cells = 0
    for table, columns in encryptable():
        after: Sequence[Any] | None = None
        examined = 0
        while True:
            with db.read() as tx:
                rows = _batch(tx, table, columns, after)
            if not rows:
                break
            after = rows[-1][: len(table.primary_key.columns)]
            # Encrypting takes time, so it happens outside the transaction that stores the cells.
            changes = [change for row in rows for change in _changes(db.keys, table, columns, row, lost)]
            if changes:
                with db.write() as tx:
                    cells += sum(_swap(tx, table, *change) for change in changes)
            examined += len(rows)
            on_progress(table.name, examined)
    return cells


def _batch(tx: Transaction, table: Table, columns: Sequence[Column[Any]], after: Sequence[Any] | None) -> list[Any]:
    """Read rows after this key: the key, whether the stack holds no secrets, and the cells as stored."""
    key = list(table.primary_key.columns)
    harmless = table.c.stack_id.in_(_without_secrets()) if "stack_id" in table.c else false()
    chosen = select(*key, harmless, *(type_coerce(column, Text) for column in columns)).order_by(*key).limit(BATCH)
    if after is not None:
        chosen = chosen.where(tuple_(*key) > tuple_(*after))
    return list(tx.execute(chosen))


def _changes(
    keys: Keyring, table: Table, columns: Sequence[Column[Any]], row: Sequence[Any], lost: Counter[str]
) -> Iterator[tuple[Sequence[Any], Column[Any], str, str]]:
    """Yield each cell of a row that has to be changed: key of the row, column, old text, new text."""
    width = len(table.primary_key.columns)
    key, harmless, cells = row[:width], row[width], row[width + 1 :]
    for column, cell in zip(columns, cells, strict=True):
        if cell is None or cell.startswith(f"{MARK}{keys.newest}:"):
            continue
        if harmless and not _always(column) and not is_encrypted(cell):
            continue
        try:
            changed = _reencrypted(keys, column, cell)
        except Unreadable as error:
            lost[str(error)] += 1
            continue
        if changed != cell:
            yield key, column, cell, changed


def _reencrypted(keys: Keyring, column: Column[Any], cell: str) -> str:
    place = column.type.place  # type: ignore[attr-defined]
    if isinstance(column.type, schema.EncryptedText):
        return encrypt_text(keys, decrypt_text(keys, cell, place), place)
    return keys.encrypt(keys.decrypt(cell, place) if is_encrypted(cell) else cell, place)


def _swap(tx: Transaction, table: Table, key: Sequence[Any], column: Column[Any], before: str, after: str) -> int:
    # The row's version stays, since the content has not changed: a pass that has loaded the row must not be superseded.
    this = [primary == value for primary, value in zip(table.primary_key.columns, key, strict=True)]
    cell = type_coerce(column, Text)
    swapped: Mapping[Any, Any] = {column: type_coerce(after, Text)}
    return tx.execute(update(table).where(*this, cell == before).values(swapped)).rowcount
