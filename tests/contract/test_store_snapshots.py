"""The store's contract, on SQLite and on PostgreSQL: snapshots of stacks, and what clouds keep for them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from tests.contract.store_cases import NOW, TIMEOUT_S, add_stack, come_to_rest, locked, revise, stack_row

from homeostat.model.plan import Part
from homeostat.model.snapshot import StackSnapshot
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.operation import purge
from homeostat.store.operation.purge import Rules
from homeostat.store.stacks import action_begin, action_end, revisions, snapshots

DAY_S = 86_400.0


def taken(db: Database, name: str = "web", id: str = "s1") -> str:
    """A stack of which a snapshot is being taken."""
    stack_id = add_stack(db, name)
    with db.write() as tx:
        come_to_rest(tx, stack_id, 0, 1)
        number = action_begin.take_snapshot(tx, locked(tx, stack_id), StackSnapshot(id), NOW, TIMEOUT_S)
        snapshots.add(tx, id, stack_id, number, "before", NOW)
    return stack_id


def keep(db: Database, *parts: Part, id: str = "s1", place: Sequence[str] = ()) -> None:
    with db.write() as tx:
        snapshots.save_parts(tx, id, "p", place, parts, NOW)


def one(db: Database, stack_id: str, id: str = "s1") -> Any:
    with db.read() as tx:
        return snapshots.get(tx, stack_id, id)


def orphan_tokens(db: Database) -> set[tuple[str, str]]:
    table = schema.orphan
    with db.read() as tx:
        return {(row.token, row.kind) for row in tx.execute(select(table.c.token, table.c.kind))}


def test_parts_are_listed_by_place_once_they_are_made(database: Database) -> None:
    taken(database)
    keep(database, Part("a-r2", "a", "volume"), Part("b-r2", "b", "server"))
    keep(database, Part("a-r2", "a", "volume", "made-a"))
    keep(database, Part("c-r2", "a", "volume", "made-c"), place=["inner"])
    with database.read() as tx:
        assert snapshots.complete_parts(tx, "s1", []) == {"a": "made-a"}
        assert snapshots.complete_parts(tx, "s1", ["inner"]) == {"a": "made-c"}
        assert snapshots.complete_parts(tx, "s1", ["other"]) == {}
        assert [each.token for each in snapshots.parts(tx, "s1")] == ["a-r2", "b-r2", "c-r2"]


def test_what_ends_the_action_ends_the_snapshot(database: Database) -> None:
    for number, end in enumerate(("UPDATE", "fail")):
        id = f"s{number}"
        stack_id = taken(database, f"web{number}", id)
        if end == "fail":
            with database.write() as tx:
                action_end.fail(tx, stack_id, 2, "Timed out", NOW)
        else:
            revise(database, stack_id)
        row = one(database, stack_id, id)
        assert (row.status, row.reason != "") == ("FAILED", True)


def test_a_complete_one_is_not_changed_by_what_comes_later(database: Database) -> None:
    stack_id = taken(database)
    with database.write() as tx:
        snapshots.complete(tx, "s1", snapshots.cell(database, {"resources": {}}), "well")
        come_to_rest(tx, stack_id, 0, 2)
    revise(database, stack_id)
    row = one(database, stack_id)
    assert (row.status, row.reason, row.data) == ("COMPLETE", "well", {"resources": {}})


def test_a_part_of_a_deleted_snapshot_becomes_an_orphan(database: Database) -> None:
    stack_id = taken(database)
    keep(database, Part("a-r2", "a", "volume"), Part("b-r2", "b", "server", "made-b"))
    with database.write() as tx:
        snapshots.remove(tx, "s1", "p", NOW)
    assert one(database, stack_id) is None
    assert orphan_tokens(database) == {("a-r2", "volume_snapshot")}, "what is known to be made was deleted before"
    keep(database, Part("c-r2", "c", "server"))
    assert orphan_tokens(database) == {("a-r2", "volume_snapshot"), ("c-r2", "server_snapshot")}


def test_deletions_are_taken_up_again_and_again_until_they_end(database: Database) -> None:
    stack_id = taken(database)
    with database.write() as tx:
        snapshots.complete(tx, "s1", snapshots.cell(database, {}), "well")
        assert snapshots.take_due(tx, NOW, 10) == []
        snapshots.begin_deletion(tx, "s1", NOW)
        assert snapshots.any_due(tx, NOW)
        assert snapshots.take_due(tx, NOW, 10) == [("s1", "p")]
        assert snapshots.take_due(tx, NOW, 10) == []
        assert snapshots.take_due(tx, NOW + snapshots.AGAIN_S, 10) == [("s1", "p")]
        snapshots.fail(tx, "s1", "the cloud refuses")
        assert not snapshots.any_due(tx, NOW + 3600.0)
    row = one(database, stack_id)
    assert (row.action, row.status, row.reason) == ("DELETE", "FAILED", "the cloud refuses")


def test_all_go_with_their_stack(database: Database) -> None:
    stack_id = taken(database)
    keep(database, Part("a-r2", "a", "volume", "made-a"))
    other = taken(database, "other", "s2")
    with database.write() as tx:
        action_begin.revise(tx, locked(tx, stack_id), "DELETE", revisions.empty(database), NOW, TIMEOUT_S)
        come_to_rest(tx, stack_id, 0, 3)
    assert stack_row(database, stack_id).deleted_at is not None
    assert one(database, stack_id) is None
    assert orphan_tokens(database) == {("a-r2", "volume_snapshot")}
    assert one(database, other, "s2") is not None


def test_a_purge_leaves_the_revision_that_a_snapshot_was_taken_of(database: Database) -> None:
    stack_id = taken(database)
    for _ in range(3):
        revise(database, stack_id)
    with database.write() as tx:
        come_to_rest(tx, stack_id, 0, 5)
    purge.purge(database, Rules(deleted_before=NOW + 30 * DAY_S, events_max=1000))
    table = schema.revision
    with database.read() as tx:
        left = set(tx.execute(select(table.c.number).where(table.c.stack_id == stack_id)).scalars())
        assert revisions.content_of(tx, stack_id, 2).kind == "template"
    assert left == {2, 5}
