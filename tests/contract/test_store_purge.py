"""The store's contract, on SQLite and on PostgreSQL: what a purge removes and what it leaves."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, claim, event, resource, stack_row

from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.operation import purge
from homeostat.store.operation.purge import PurgeCounts, Rules
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, files, revisions, stacks
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import EMPTY, Content

DAY_S = 86_400.0
RULES = Rules(deleted_before=NOW - 30 * DAY_S, events_max=1000)


def delete(db: Database, stack_id: str, at: float) -> None:
    """The stack has been deleted at that time."""
    with db.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(deleted_at=at))


def with_files(db: Database, name: str, files: dict[str, str]) -> str:
    with db.write() as tx:
        action_begin.add(
            tx, NewStack(name, "p", name), revisions.encode(db, Content("template", files=files)), NOW, TIMEOUT_S
        )
    return name


def add_events(db: Database, stack_id: str, count: int) -> None:
    with db.write() as tx:
        events.append(tx, stack_id, [event(f"r{number}") for number in range(count)], NOW)


def names(db: Database, stack_id: str) -> list[str]:
    with db.read() as tx:
        return [row.name for row in events.page(tx, [stack_id])]


def counts(db: Database) -> dict[str, int]:
    tables = (schema.stack, schema.shard, schema.revision, schema.event, schema.file)
    with db.read() as tx:
        return {each.name: tx.execute(select(func.count()).select_from(each)).scalar_one() for each in tables}


def contents(db: Database) -> set[str]:
    with db.read() as tx:
        return set(tx.execute(select(schema.file.c.content)).scalars())


def test_stacks_deleted_long_ago_go_with_all_their_rows(database: Database) -> None:
    old = add_stack(database, "old", shard_count=3)
    add_events(database, old, 7)
    delete(database, old, NOW - 31 * DAY_S)
    recent, live = add_stack(database, "recent"), add_stack(database, "live")
    delete(database, recent, NOW - 29 * DAY_S)
    assert purge.purge(database, RULES) == PurgeCounts(stacks=1, shards=3, revisions=1, events=8)
    assert counts(database) == {"stack": 2, "shard": 2, "revision": 2, "event": 2, "file": 0}
    assert stack_row(database, recent)
    assert stack_row(database, live)


def test_a_second_purge_finds_nothing(database: Database) -> None:
    delete(database, add_stack(database), NOW - 31 * DAY_S)
    purge.purge(database, RULES)
    assert purge.purge(database, RULES) == PurgeCounts()


def test_many_stacks_and_events_take_several_batches(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "STACKS_MAX", 2)
    monkeypatch.setattr(purge, "ROWS_MAX", 3)
    for number in range(5):
        stack_id = add_stack(database, f"old{number}")
        add_events(database, stack_id, 4)
        delete(database, stack_id, NOW - 31 * DAY_S)
    assert purge.purge(database, RULES) == PurgeCounts(stacks=5, shards=5, revisions=5, events=25)


def test_a_deleted_child_stays_while_its_owner_refers_to_it(database: Database) -> None:
    parent = add_stack(database, "parent")
    child = add_stack(database, "child", parent_id=parent)
    delete(database, child, NOW - 31 * DAY_S)
    claim(database, parent)
    row = resource("key", parent, handle=child)
    with database.write() as tx:
        writes = Writes()
        writes.insert(row)
        shard_state.record(tx, parent, writes, NOW)
    assert purge.purge(database, RULES).stacks == 0
    with database.write() as tx:
        tx.execute(schema.resource.delete())
    assert purge.purge(database, RULES).stacks == 1


@pytest.mark.parametrize("rows_max", [2, 5000], ids=["several batches", "one batch"])
def test_live_stacks_keep_their_newest_events(
    database: Database, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(purge, "ROWS_MAX", rows_max)
    busy, quiet = add_stack(database, "busy"), add_stack(database, "quiet")
    add_events(database, busy, 6)
    add_events(database, quiet, 2)
    assert purge.purge(database, Rules(0.0, events_max=3)) == PurgeCounts(events=4)
    assert names(database, busy) == ["r3", "r4", "r5"]
    assert names(database, quiet) == ["quiet", "r0", "r1"]


def test_files_go_with_the_last_revision_that_names_them(database: Database) -> None:
    old = with_files(database, "old", {"a": "shared", "b": "alone"})
    live = with_files(database, "live", {"c": "shared", "d": "own"})
    delete(database, old, NOW - 31 * DAY_S)
    assert purge.purge(database, RULES).files == 1
    assert contents(database) == {"shared", "own"}
    with database.read() as tx:
        assert revisions.content_of(tx, live, 1).files == {"c": "shared", "d": "own"}


def test_a_dry_run_lists_what_would_go_and_removes_nothing(database: Database) -> None:
    old = with_files(database, "old", {"a": "alone"})
    delete(database, old, NOW - 31 * DAY_S)
    add_events(database, add_stack(database, "busy"), 9)
    rules = Rules(RULES.deleted_before, events_max=4)
    before = counts(database)
    with database.read() as tx:
        foretold = purge.would_remove(tx, rules)
    assert counts(database) == before
    assert foretold == PurgeCounts(stacks=1, shards=1, revisions=1, events=7, files=1)
    assert purge.purge(database, rules) == foretold


def test_a_file_that_is_named_again_meanwhile_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new stack may name a file that was nobody's when the purge looked for the first time."""
    old, new = (revisions.encode(database, Content("template", files={name: "text"})) for name in "ab")
    with database.write() as tx:
        action_begin.add(tx, NewStack("old", "p", "old"), old, NOW, TIMEOUT_S)
        tx.execute(schema.revision.delete())
    keep = purge._lock_files

    def named_before(tx: Any, some: Sequence[str]) -> None:
        if database.is_sqlite:  # its writers exclude one another: the new stack is added in this very transaction
            action_begin.add(tx, NewStack("new", "p", "new"), new, NOW, TIMEOUT_S)
        else:
            with_files(database, "new", {"b": "text"})
        keep(tx, some)

    monkeypatch.setattr(purge, "_lock_files", named_before)
    assert purge.purge(database, RULES).files == 0
    assert contents(database) == {"text"}


def test_who_stores_a_revision_waits_for_the_purge_of_files(database: Database) -> None:
    digest = files.encode(database.engine.dialect, {"a": "text"})[0]["a"]
    with database.write() as tx:
        tx.execute(insert(schema.file), {"hash": digest, "content": "text"})
    done = threading.Event()

    def add() -> None:
        with_files(database, "new", {"a": "text"})
        done.set()

    adding = threading.Thread(target=add)
    with database.write() as tx:
        purge._lock_files(tx, [digest])
        adding.start()
        assert not done.wait(0.3)
    adding.join(timeout=30)
    assert done.is_set()


def test_revisions_that_nothing_goes_back_to_go(database: Database) -> None:
    """Of a stack that was updated five times, deleted and brought back: the newest, the last COMPLETE one, and the
    newest that says something stay."""
    long_ago = NOW - 40 * DAY_S
    stack_id = with_files(database, "web", {"a.yaml": "first"})
    for number in range(2, 8):
        with database.write() as tx:
            row = stacks.for_update(tx, stack_id)
            assert row is not None
            content = EMPTY if number == 7 else Content("template", files={"a.yaml": f"text {number}"})
            action_begin.revise(tx, row, "UPDATE", revisions.encode(database, content), long_ago, TIMEOUT_S)
    with database.write() as tx:
        tx.execute(update(schema.revision).values(created_at=long_ago))
        tx.execute(update(schema.stack).values(complete_revision=3))
        assert purge.would_remove(tx, RULES) == PurgeCounts(revisions=4, files=4)
    assert purge.purge(database, RULES) == PurgeCounts(revisions=4, files=4)
    with database.read() as tx:
        left = list(tx.execute(select(schema.revision.c.number).order_by(schema.revision.c.number)).scalars())
    assert left == [3, 6, 7]
    assert contents(database) == {"text 3", "text 6"}


def test_a_revision_that_was_just_replaced_stays(database: Database) -> None:
    stack_id = with_files(database, "web", {})
    with database.write() as tx:
        row = stacks.for_update(tx, stack_id)
        assert row is not None
        action_begin.revise(tx, row, "UPDATE", revisions.encode(database, Content("template")), NOW, TIMEOUT_S)
    assert purge.purge(database, Rules(NOW, 1000)).revisions == 0


def newest(database: Database) -> int:
    with database.read() as tx:
        return int(tx.execute(select(func.max(schema.event.c.seq))).scalar_one())


def test_numbers_of_events_are_never_used_again(database: Database) -> None:
    """Readers go on from the last number that they have seen: they would miss what comes under a number used before."""
    add_stack(database)
    before = newest(database)
    with database.write() as tx:
        tx.execute(schema.event.delete())
    add_stack(database, "another")
    assert newest(database) > before
