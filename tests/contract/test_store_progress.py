"""The store's contract: how far stacks have come, where to look, what happened lately, whether anybody works."""

from typing import Any

import pytest
from sqlalchemy import update
from tests.contract.store_cases import LEASE_S, NOW, add_stack, claim, revise, shard_row, stack_row

from homeostat.model.plan import Event
from homeostat.planner.report.estimate import ResourceEvent
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.operation import workers
from homeostat.store.stacks import progress
from homeostat.store.stacks.progress import ProgressCounts

SHARD = schema.shard


def put(db: Database, stack_id: str, number: int = 0, **values: Any) -> None:
    with db.write() as tx:
        tx.execute(update(SHARD).where(SHARD.c.stack_id == stack_id, SHARD.c.number == number).values(**values))


def nested(db: Database, name: str, parent: str) -> str:
    return add_stack(db, name, parent_id=parent, parent_name="g", root_id="p-top", depth=1)


def test_shards_are_counted_together(database: Database) -> None:
    top, other = add_stack(database, "top", shard_count=2), add_stack(database, "other")
    put(database, top, 0, planned=10, done=4, settled_revision=1)
    put(database, top, 1, planned=5, done=5, settled_revision=1)
    put(database, other, 0, planned=7, done=0)
    with database.read() as tx:
        assert progress.counted(tx, [top]) == ProgressCounts(15, 9, False)
        assert progress.counted(tx, [top, other]) == ProgressCounts(22, 9, True)
        assert progress.counted(tx, []) == ProgressCounts(0, 0, False)


def test_stacks_below_are_found_level_by_level(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    top = add_stack(database, "top")
    one, two = nested(database, "one", top), nested(database, "two", top)
    three = nested(database, "three", one)
    add_stack(database, "other")

    def found(depth: int) -> Any:
        with database.read() as tx:
            below = progress.nested_stacks(tx, top, depth)
        return None if below is None else {row.id for row in below}

    assert [found(depth) for depth in (0, 1, 5)] == [set(), {one, two}, {one, two, three}]
    with database.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == three).values(deleted_at=NOW))
    assert found(5) == {one, two}
    monkeypatch.setattr(progress, "STACKS_MAX", 1)
    assert found(5) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"epoch": 9}, False),
        ({"settled_revision": 0}, True),
        ({"planned": 3, "done": 2}, True),
        ({"failures": 1}, True),
        ({"reason": "a bug"}, True),
        ({"wake_at": NOW - 1}, True),
        ({"wake_at": NOW + 1}, False),
    ],
)
def test_only_shards_in_which_something_moves_are_looked_at(
    database: Database, values: dict[str, Any], expected: bool
) -> None:
    stack_id = add_stack(database, shard_count=3)
    for number in range(3):
        put(database, stack_id, number, settled_revision=1, wake_at=None)
    put(database, stack_id, 1, **values)
    stack = stack_row(database, stack_id)
    with database.read() as tx:
        assert [row.number for row in progress.shards_to_explain(tx, stack, NOW, 0, 9)] == ([1] if expected else [])
        assert list(progress.shards_to_explain(tx, stack, NOW, 2, 9)) == []


@pytest.mark.parametrize("values", [{"converge": False}, {"lock": {"level": "all"}}, {"suspended": True}])
def test_where_drift_is_left_alone_every_shard_is_looked_at(database: Database, values: dict[str, Any]) -> None:
    stack_id = add_stack(database, shard_count=3)
    with database.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(values))
    for number in range(3):
        put(database, stack_id, number, settled_revision=1, wake_at=None)
    with database.read() as tx:
        assert [row.number for row in progress.shards_to_explain(tx, stack_row(database, stack_id), NOW, 1, 9)] == [
            1,
            2,
        ]
        assert [row.number for row in progress.shards_to_explain(tx, stack_row(database, stack_id), NOW, 0, 1)] == [0]


def test_what_was_not_seen_for_longest_is_reported(database: Database) -> None:
    stack_id = add_stack(database, shard_count=3)
    with database.read() as tx:
        assert progress.unseen(tx, stack_id) is None
    put(database, stack_id, 0, blind="refused", looked_at=NOW)
    put(database, stack_id, 1, blind="", looked_at=NOW - 99)
    put(database, stack_id, 2, blind="timed out", looked_at=NOW - 9)
    with database.read() as tx:
        assert progress.unseen(tx, stack_id) == progress.Unseen("timed out", NOW - 9)
    put(database, stack_id, 0, looked_at=None)
    with database.read() as tx:
        assert progress.unseen(tx, stack_id) == progress.Unseen("refused", None)


def add_events(db: Database, stack_id: str, *keys: str, status: str = "COMPLETE", at: float = NOW) -> None:
    with db.write() as tx:
        happened = [Event(key or "web", "CREATE", status, "", "OS::Nova::Server", key) for key in keys]
        events.append(tx, stack_id, happened, at)


def test_the_newest_events_of_resources_come_in_their_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other, foreign = add_stack(database), add_stack(database, "other"), add_stack(database, "x", project="q")
    add_events(database, mine, "a", "b", status="IN_PROGRESS")
    add_events(database, foreign, "f")
    add_events(database, other, "o")
    add_events(database, mine, "a", "", at=NOW + 2)

    def resource_event(key: str, status: str = "COMPLETE", at: float = NOW) -> ResourceEvent:
        return ResourceEvent(key, "OS::Nova::Server", "CREATE", status, at)

    expected = [resource_event("a", "IN_PROGRESS"), resource_event("b", "IN_PROGRESS"), resource_event("a", at=NOW + 2)]
    with database.read() as tx:
        assert progress.resource_events(tx, mine) == expected
        assert progress.project_events(tx, "p") == [
            (mine, expected[0]),
            (mine, expected[1]),
            (other, resource_event("o")),
            (mine, expected[2]),
        ]
        monkeypatch.setattr(progress, "EVENTS_MAX", 2)
        monkeypatch.setattr(progress, "PROJECT_EVENTS_MAX", 3)
        assert progress.resource_events(tx, mine) == expected[1:]
        assert [each.key for _, each in progress.project_events(tx, "p")] == ["o", "a"]


def test_a_sign_of_life(database: Database) -> None:
    stack_id = add_stack(database)

    def manned(at: float) -> bool:
        with database.read() as tx:
            return progress.has_workers(tx, at)

    assert not manned(NOW)
    claim(database, stack_id)
    assert shard_row(database, stack_id).lease_until == NOW + LEASE_S
    assert manned(NOW)
    assert not manned(NOW + LEASE_S)
    with database.write() as tx:
        workers.report(tx, workers.Worker("w", "h", 1, "1", "sql", NOW, NOW + 100))
    assert manned(NOW + 101)
    assert not manned(NOW + 100 + workers.SILENT_S)


def test_a_new_revision_is_unsettled_until_its_shards_are_at_rest(database: Database) -> None:
    stack_id = add_stack(database)
    put(database, stack_id, planned=3, done=3, settled_revision=1)
    revise(database, stack_id)
    with database.read() as tx:
        assert progress.counted(tx, [stack_id]) == ProgressCounts(3, 0, True)
