"""Files of revisions: one text however many name it, neither read nor written again for each nested stack."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import delete, event, func, select
from tests.contract.store_cases import NOW, TIMEOUT_S

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_cells import Keyring, Unreadable
from homeostat.store.stacks import action_begin, files, revisions
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import Content

TEXTS = {f"{number}.yaml": f"# {number % 3}" for number in range(6)}


def add(db: Database, name: str, texts: Any) -> str:
    with db.write() as tx:
        new = NewStack(f"{name}-id", "p", name)
        action_begin.add(tx, new, revisions.encode(db, Content("template", {"a": 1}, files=texts)), NOW, TIMEOUT_S)
    return new.id


@contextmanager
def file_statements(db: Database) -> Iterator[list[str]]:
    """Statements that name the table of files."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "file." in statement or "INTO file" in statement:
            found.append(statement)

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(db.engine, "before_cursor_execute", note)


def test_what_was_read_is_neither_read_nor_written_again(database: Database) -> None:
    first = add(database, "first", TEXTS)
    with database.read() as tx:
        around = revisions.content_of(tx, first, 1).files
    assert around == TEXTS
    with file_statements(database) as statements:
        inner = add(database, "inner", around)
        with database.read() as tx:
            assert revisions.content_of(tx, inner, 1).files == TEXTS
    assert statements == []
    with database.read() as tx:
        assert tx.execute(select(func.count()).select_from(schema.file)).scalar_one() == 3


def test_other_files_are_stored_whole(database: Database) -> None:
    first = add(database, "first", TEXTS)
    with database.read() as tx:
        around = revisions.content_of(tx, first, 1).files
    other = add(database, "other", {**around, "new.yaml": "# new"})
    with database.read() as tx:
        assert revisions.content_of(tx, other, 1).files == {**TEXTS, "new.yaml": "# new"}


def test_files_cannot_be_read_with_other_keys(database: Database) -> None:
    database.use_keys(Keyring([b"o" * 64]))
    first = add(database, "first", {"a.yaml": "secret"})
    with database.read() as tx:
        assert revisions.content_of(tx, first, 1).files == {"a.yaml": "secret"}
    database.use_keys(Keyring([b"n" * 64]))
    with database.read() as tx, pytest.raises(Unreadable):
        revisions.content_of(tx, first, 1)


def test_a_file_that_is_gone_is_an_error(database: Database) -> None:
    first = add(database, "first", TEXTS)
    with database.write() as tx:
        tx.execute(delete(schema.file))
    with database.read() as tx, pytest.raises(KeyError):
        revisions.content_of(tx, first, 1)


def test_texts_that_are_too_long_are_not_remembered(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CACHE_MAX", 50)
    first = add(database, "first", {"a.yaml": "x" * 200, "b.yaml": "y"})
    for _ in range(2):
        with database.read() as tx:
            assert revisions.content_of(tx, first, 1).files == {"a.yaml": "x" * 200, "b.yaml": "y"}


def test_texts_are_stored_in_one_order_whatever_their_names(database: Database) -> None:
    """Two requests that share texts would otherwise wait for each other."""
    stored: list[list[str]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "INTO file" in statement:
            rows = parameters if isinstance(parameters, list) else [parameters]
            stored.append([row["hash"] if isinstance(row, dict) else row[0] for row in rows])

    event.listen(database.engine, "before_cursor_execute", note)
    add(database, "a", TEXTS)
    add(database, "b", {name: f"# {number}" for number, name in enumerate(TEXTS)})
    found = [[each for each in row if len(each) == 64] for row in stored]
    assert found
    assert found == [sorted(row) for row in found]
