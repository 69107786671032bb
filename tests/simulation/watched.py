"""The database and the clouds that the watcher watches."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, NullPool, create_engine

from homeostat.clouds.port import Answer, Change, Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import NotFound, Terminal
from homeostat.model.observed import Observation
from homeostat.store import schema
from homeostat.store.database import Database, Transaction
from homeostat.store.sql.timeline import KeptTime
from tests.simulation.rows import Row, Shard, Stack

LINK, LINKED = "volume_attachment", ("instance_uuid", "volume_id")
"""A kind of things, and the fields that name those without which the cloud refuses one."""

ENGINE = create_engine("sqlite://", poolclass=NullPool)
"""Of all worlds: what one of them has compiled the next need not compile. Each connection is a database of its own."""
WATCHED = {"resource": "key", "stack": "id", "shard": "stack_id || '/' || number"}
"""Tables whose changes are judged, and what names a row of them."""


@cache
def empty() -> sqlite3.Connection:
    """A database with the newest schema, to be copied."""
    with ENGINE.connect() as connection:
        schema.metadata.create_all(connection)
        connection.commit()
        made = sqlite3.connect(":memory:")
        raw(connection).backup(made)
    return made


def raw(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


class WatchedDatabase(Database):
    """A database in memory, of one thread, that tells of every commit and which rows were written.

    raw — its connection without SQLAlchemy; touched — table -> names of rows (`WATCHED`) that were written since this
    was cleared, by transactions that were rolled back, too.
    """

    on_commit: Callable[[], None] | None = None

    def __init__(self, now: Callable[[], float], passed: Callable[[], float]) -> None:
        super().__init__("sqlite://", now, passed=passed)
        self.kept_time = KeptTime(passed, rate=0.0)
        self.engine = ENGINE
        self._transaction = Transaction(self)
        self.raw = raw(self._transaction)
        self.raw.isolation_level = None
        empty().backup(self.raw)
        self.raw.execute("PRAGMA foreign_keys=ON")
        self.touched: dict[str, set[str]] = {table: set() for table in WATCHED}
        self._watch(Row, Stack, Shard)
        self._writing = False

    def _watch(self, *kinds: Any) -> None:
        """Have SQLite itself report each row that it writes, in columns that matter."""
        self.raw.create_function("touch", 2, lambda table, name: self.touched[table].add(name))
        for (table, name), kind in zip(WATCHED.items(), kinds, strict=True):
            for verb, row in (("INSERT", "NEW"), (f"UPDATE OF {', '.join(kind._fields)}", "NEW"), ("DELETE", "OLD")):
                named = re.sub(r"\b(key|id|stack_id|number)\b", rf"{row}.\1", name)
                trigger = f"CREATE TEMP TRIGGER {table}_{verb[:6]} AFTER {verb} ON main.{table} BEGIN "
                self.raw.execute(f"{trigger} SELECT touch('{table}', {named}); END")

    def is_checked(self) -> bool:
        """Does a health policy hold for anything? No call of a process: nobody dies here."""
        return self.raw.execute("SELECT 1 FROM shard WHERE health_at IS NOT NULL LIMIT 1").fetchone() is not None

    def close(self) -> None:
        self.notices.close()
        self._transaction.close()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        assert not self._writing, "a look in the middle of a transaction would end it"
        try:
            yield self._own()
        finally:
            self._transaction.rollback()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        assert not self._writing, "a transaction in the middle of another one"
        self._writing = True
        try:
            with self._transaction.begin():
                self.raw.execute("BEGIN")
                with self._own().gathering() as tx:
                    yield tx
        finally:
            self._writing = False
        if self.on_commit is not None:
            self.on_commit()

    def _own(self) -> Transaction:
        """The only connection, which the last process may have made its own."""
        self._transaction.database = self
        return self._transaction


class WatchedCloud(SimulatedCloud):
    """A cloud that reports every deletion before it is carried out. theirs — what the service may not touch; cascades —
    load balancers that were deleted together with their parts; refusals — how often that was refused; updates — how
    many each thing was asked for."""

    on_delete: Callable[["WatchedCloud", str, Sequence[str]], None] | None = None
    theirs: frozenset[str] = frozenset()
    touched: tuple[str, ...] = ()
    cascades = refusals = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.updates = Counter[str]()

    def carrying(self, tokens: Collection[str]) -> set[str]:
        """Handles of what was made under these tokens."""
        return {handle for (_, token), handle in self._by_token.items() if token in tokens}

    def give(self, kind: str, spec: dict[str, Any]) -> str:
        """A thing that was made elsewhere."""
        (made,) = self.create(kind, [Creation(f"theirs-{len(self.theirs)}", spec)])
        assert isinstance(made, Observation)
        self.theirs |= {made.handle}
        return made.handle

    def _touch(self, handles: Sequence[str]) -> None:
        self.touched += tuple(handle for handle in handles if handle in self.theirs)

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind != LINK:
            return super().create(kind, intents)
        answers: list[Answer] = []
        for intent in intents:  # as upstream: what it is to be made of must be there
            missing = [intent.spec[each] for each in LINKED if intent.spec[each] not in self.things()]
            refused: list[Answer] = [NotFound(f"There is no {each}") for each in missing]
            answers += refused[:1] or super().create(kind, [intent])
        return answers

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        self._touch([each.handle for each in changes])
        self.updates.update(each.handle for each in changes)
        return super().update(kind, changes)

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        self._touch([each.handle for each in operations])
        return super().operate(kind, operations)

    def _delete_with_parts(self, kind: str, operation: Operation) -> Answer:
        key, listed = (kind, operation.handle), operation.arguments["parts"]
        parts = sorted(self._parts(*key)) if self._present(*key) is not None else []
        if all(handle in listed.get(of, ()) for of, handle in parts) and self.on_delete is not None:
            for of, handle in (key, *parts):
                self.on_delete(self, of, [handle])
        answer = super()._delete_with_parts(kind, operation)
        refused = isinstance(answer, Terminal)
        self.cascades += bool(parts) and not refused
        self.refusals += refused
        self._touch([] if refused else [handle for _, handle in parts])
        return answer

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        self._touch(handles)
        if self.on_delete is not None:
            self.on_delete(self, kind, handles)
        return super().delete(kind, handles)
