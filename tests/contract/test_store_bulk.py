"""Writing many rows at once keeps values exactly, and checks versions as strictly as one row at a time."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from tests.contract.store_cases import NOW, add_stack, event, resource

from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.sql import bulk

TEXTS = [
    "",
    "plain",
    'a "quoted" \\ text',
    "line\nbreak\ttab",
    "ä 漢 🦀",
    "null",
    "{}",
    "[1,2]",
    "%s ? :name",
    "\x7f\u2028",
]
TREES: list[Any] = [None, "text", "null", 5, 1.5, True, [], {}, {"a": [None, "é\\n\u0000"]}, 9_007_199_254_740_993, 0.1]


def written(database: Database, rows: list[Any]) -> dict[str, Any]:
    with database.write() as tx:
        bulk.insert(
            tx,
            schema.resource,
            shard_state.COLUMNS,
            [[getattr(row, name) for name in shard_state.COLUMNS] for row in rows],
        )
    return stored(database)


def stored(database: Database) -> dict[str, Any]:
    with database.read() as tx:
        rows = tx.execute(select(schema.resource).order_by(schema.resource.c.born, schema.resource.c.key))
        return {row.key: row for row in rows}


def test_texts_come_back_as_they_were(database: Database) -> None:
    stack_id = add_stack(database)
    rows = written(database, [resource(f"k{n}", stack_id, text, reason=text) for n, text in enumerate(TEXTS)])
    assert [(rows[f"k{n}"].name, rows[f"k{n}"].reason) for n in range(len(TEXTS))] == [(each, each) for each in TEXTS]


def test_trees_numbers_and_nulls_come_back_as_they_were(database: Database) -> None:
    stack_id = add_stack(database)
    made = [
        resource(f"k{n}", stack_id, f"r{n}", metadata=tree, properties={"it": tree}, acted_at=NOW + n / 7, born=n)
        for n, tree in enumerate(TREES)
    ]
    rows = written(database, [*made, resource("last", stack_id, "last")])
    found = [(row.metadata, row.properties, row.acted_at, row.born) for key, row in rows.items() if key != "last"]
    assert found == [(tree, {"it": tree}, NOW + n / 7, n) for n, tree in enumerate(TREES)]
    assert rows["last"].acted_at is None


def test_nothing_to_write_is_no_statement(database: Database) -> None:
    with database.write() as tx:
        bulk.insert(tx, schema.resource, shard_state.COLUMNS, [])
        assert bulk.update(tx, schema.resource, ("reason", "version", "key"), []) == 0


def test_an_insert_of_what_is_there_fails_and_leaves_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    written(database, [resource("k1", stack_id)])
    with pytest.raises(IntegrityError):
        written(database, [resource("k2", stack_id), resource("k1", stack_id)])
    assert stored(database).keys() == {"k1"}


def test_an_update_changes_only_rows_of_the_version_that_was_read(database: Database) -> None:
    stack_id = add_stack(database)
    written(database, [resource("k1", stack_id), resource("k2", stack_id), resource("k3", stack_id)])
    with database.write() as tx:
        found = bulk.update(
            tx, schema.resource, ("reason", "version", "key"), [("new", 0, "k1"), ("new", 7, "k2"), ("new", 0, "gone")]
        )
    assert found == 1
    rows = stored(database)
    assert [(rows[key].reason, rows[key].version) for key in ("k1", "k2", "k3")] == [("new", 1), ("", 0), ("", 0)]


def test_an_upsert_keeps_what_its_condition_protects(database: Database) -> None:
    stack_id = add_stack(database)
    written(database, [resource("k1", stack_id), resource("k2", stack_id)])
    columns = ("key", "stack_id", "resource_name", "handle", "presence", "object", "reason", "number", "seen_at")

    def look(*seen: tuple[str, float]) -> None:
        rows = [(key, stack_id, "a", "h", "present", {"at": at}, "", 1, at) for key, at in seen]
        with database.write() as tx:
            table, unless = schema.resource_observed, "excluded.seen_at < t.seen_at"
            bulk.encode_upsert(tx.dialect, table, columns, rows, key=("key",), unless=unless).store(tx)

    look(("k1", 5.0), ("k2", 5.0))
    look(("k1", 4.0), ("k2", 6.0))
    with database.read() as tx:
        found = {row.key: row.object for row in tx.execute(select(schema.resource_observed))}
    assert found == {"k1": {"at": 5.0}, "k2": {"at": 6.0}}


def test_a_delete_takes_only_its_rows_as_they_were_read(database: Database) -> None:
    stack_id = add_stack(database)
    written(database, [resource(key, stack_id) for key in ("k1", "k2", "k3")])
    with database.write() as tx:
        gone = bulk.encode_delete(tx.dialect, schema.resource, [("k1", 0), ("k3", 0), ("k2", 7), ("gone", 0)])
        assert gone.store(tx) == 2
    assert stored(database).keys() == {"k2"}


def test_events_are_numbered_in_the_order_they_happened(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        events.append(tx, stack_id, [event(f"r{number}") for number in range(700)], NOW)
    with database.read() as tx:
        page = events.page(tx, [stack_id])
    assert [row.name for row in page[1:]] == [f"r{number}" for number in range(700)]
