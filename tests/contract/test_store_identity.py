"""Trusts and users of servers in the store: on every database."""

import time

from sqlalchemy import select
from tests.contract.store_cases import add_stack, resource

from homeostat.model.status import Action
from homeostat.store import schema
from homeostat.store.builtin import records, stack_users, stored_trusts
from homeostat.store.builtin.records import Record
from homeostat.store.builtin.stack_users import DEPARTED_PROJECT, DEPARTED_USER, STACK_USER, USER_PROJECT
from homeostat.store.builtin.stored_trusts import GONE, GOOD, LEAVING, REQUESTED, StoredTrust
from homeostat.store.database import Database
from homeostat.store.shards import orphans, shard_state
from homeostat.store.shards.orphans import Orphan
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, action_end, revisions, stacks


def requested(db: Database, id: str, stack_id: str, created_at: float = 1.0) -> StoredTrust:
    row = StoredTrust(id, stack_id, "p", "alice", REQUESTED, object={"end": id}, created_at=created_at, due_at=100.0)
    with db.write() as tx:
        stored_trusts.add(tx, row)
    return row


def states(db: Database) -> dict[str, str]:
    with db.read() as tx:
        return {row.id: row.state for row in tx.execute(select(schema.trust.c.id, schema.trust.c.state))}


def test_a_stack_goes_by_the_last_one_that_was_accepted(database: Database) -> None:
    first, second = requested(database, "d1", "s"), requested(database, "d2", "s", 2.0)
    with database.write() as tx:
        assert stored_trusts.current(tx, "s") is None
        stored_trusts.accept(tx, first, "t1")
    with database.write() as tx:
        stored_trusts.accept(tx, second, "t2")
        now = stored_trusts.current(tx, "s")
    assert now is not None
    assert (now.id, now.trust_id, now.state) == ("d2", "t2", GOOD)
    assert states(database) == {"d1": LEAVING, "d2": GOOD}


def test_what_is_due_is_taken_once_in_a_while(database: Database) -> None:
    requested(database, "d1", "s")
    accepted = requested(database, "d2", "s")
    with database.write() as tx:
        stored_trusts.accept(tx, accepted, "t2")
        assert not stored_trusts.any_due(tx, 99.0)
        assert stored_trusts.any_due(tx, 100.0)
        assert [each.id for each in stored_trusts.take_due(tx, 100.0, 60.0, 10)] == ["d1"]
        assert stored_trusts.take_due(tx, 159.0, 60.0, 10) == []
        stored_trusts.release(tx, "s")
        assert [each.id for each in stored_trusts.take_due(tx, 160.0, 60.0, 10)] == ["d2", "d1"]


def test_a_trust_of_several_rows_is_known_to_each(database: Database) -> None:
    rows = [requested(database, id, stack) for id, stack in (("d1", "s1"), ("d2", "s2"))]
    with database.write() as tx:
        for row in rows:
            stored_trusts.accept(tx, row, "t")
        assert stored_trusts.known(tx, ["t", "u"], but="d1") == {"t"}
        stored_trusts.remove(tx, "d2")
        assert stored_trusts.known(tx, ["t"], but="d1") == set()


def test_one_that_is_gone_is_listed_with_its_stack_and_cannot_be_used(database: Database) -> None:
    stack_id = add_stack(database)
    row = requested(database, "d1", stack_id)
    with database.write() as tx:
        stored_trusts.accept(tx, row, "t")
        assert [each.id for each in stored_trusts.of_project(tx, "p", 5)] == ["d1"]
        stored_trusts.mark_gone(tx, row, "no role")
        assert stored_trusts.of_project(tx, "p", 5) == []
        now = stored_trusts.current(tx, stack_id)
        (reported,) = stored_trusts.gone(tx, 5)
    assert now is not None
    assert now.state == GONE
    assert (reported.stack_id, reported.object["reason"]) == (stack_id, "no role")


def kinds(db: Database) -> set[str]:
    with db.read() as tx:
        return set(tx.execute(select(schema.record.c.kind)).scalars())


def test_the_end_of_a_stack_is_that_of_its_trust_its_users_and_their_project(database: Database) -> None:
    stack_id = add_stack(database)
    row = requested(database, "d1", stack_id)
    project = Record("r1", USER_PROJECT, "", stack_id, {"id": "there"})
    user = Record("r2", STACK_USER, "there", "key-1", {"name": "u"}, link="u1")
    other = Record("r3", STACK_USER, "elsewhere", "key-2", {"name": "v"})
    with database.write() as tx:
        stored_trusts.accept(tx, row, "t")
        records.add(tx, [project, user, other])
        stack_users.save_project(tx, project, stack_id, 1.0)
        found = stacks.get(tx, stack_id)
        assert found is not None
        assert found.user_project == "there"
        action_begin.revise(tx, found, Action.DELETE, revisions.empty(database), 2.0, 60.0)
    with database.write() as tx:
        ending = stacks.get(tx, stack_id)
        assert ending is not None
        action_end.finish(tx, ending, 3.0)
    assert states(database) == {"d1": LEAVING}
    assert kinds(database) == {DEPARTED_PROJECT, DEPARTED_USER, STACK_USER}
    with database.write() as tx:
        assert [each.id for each in stack_users.departed(tx, DEPARTED_USER, 5)] == ["r2"]
        assert stack_users.departed(tx, DEPARTED_PROJECT, 5) == []  # it still has a user
        records.remove(tx, ["r2"])
        assert [each.id for each in stack_users.departed(tx, DEPARTED_PROJECT, 5)] == ["r1"]


def test_the_user_of_a_resource_departs_with_it(database: Database) -> None:
    with database.write() as tx:
        records.add(tx, [Record("r1", STACK_USER, "there", "key-1", {"name": "u"})])
        stack_users.mark_departed(tx, "key-2")
    assert kinds(database) == {STACK_USER}
    with database.write() as tx:
        stack_users.mark_departed(tx, "key-1")
    assert kinds(database) == {DEPARTED_USER}


def test_a_trust_is_shared_with_the_stack_of_a_cluster(database: Database) -> None:
    mine, before = requested(database, "d1", "s"), requested(database, "d2", "cluster")
    with database.write() as tx:
        stored_trusts.accept(tx, mine, "t1")
        stored_trusts.accept(tx, before, "t2")
        shared = stored_trusts.current(tx, "s")
        assert shared is not None
        for row_id in ("d3", "d4"):
            stored_trusts.share(tx, shared, "cluster", row_id, 3.0)
        now = stored_trusts.current(tx, "cluster")
        assert stored_trusts.known(tx, ["t1"], but="d1") == {"t1"}, "it stays until the cluster is gone, too"
    assert now is not None
    assert (now.id, now.trust_id, now.user_id, now.state) == ("d3", "t1", "alice", GOOD)
    assert states(database) == {"d1": GOOD, "d2": LEAVING, "d3": GOOD}


def test_the_user_of_a_row_departs_with_it_though_it_never_had_a_thing(database: Database) -> None:
    stack_id = add_stack(database)
    tokens = ("key-1", "key-2", "keys-1", "other-1")
    with database.write() as tx:
        records.add(tx, [Record(token, STACK_USER, "there", token, {"name": token}) for token in tokens])
        stack_users.mark_rows_departed(tx, stack_id, ["key", "none"])
    assert kinds(database) == {STACK_USER}, "the stack has no users as far as it is known"
    with database.write() as tx:
        stack_users.set_project(tx, stack_id, "there")
        stack_users.mark_rows_departed(tx, stack_id, ["key", "none"])
        assert [each.id for each in records.of_tokens(tx, DEPARTED_USER, tokens).values()] == ["key-1", "key-2"]


def test_a_user_departs_with_the_creation_that_is_not_waited_for_any_more(database: Database) -> None:
    with database.write() as tx:
        records.add(tx, [Record(f"u{each}", STACK_USER, "there", f"key-{each}", {"name": "u"}) for each in (1, 2)])
        orphans.add(tx, [Orphan("key-1", "signal_handle", "p")], 1.0)
        orphans.record_missing(tx, ["key-1"], 2.0)
    assert kinds(database) == {STACK_USER}
    with database.write() as tx:
        for looked_at in range(60, 720, 60):
            orphans.record_missing(tx, ["key-1"], float(looked_at))
        assert [each.id for each in records.of_tokens(tx, DEPARTED_USER, ["key-1", "key-2"]).values()] == ["u1"]


def test_a_user_that_may_still_be_created_is_not_forgotten(database: Database) -> None:
    now = time.time()
    times = {"young": now, "known": now, "old": now - stack_users.PATIENCE_S}
    with database.write() as tx:
        links = {"known": "id"}
        rows = [
            Record(id, DEPARTED_USER, "there", id, {"name": id}, link=links.get(id, ""), created_at=at)
            for id, at in times.items()
        ]
        records.add(tx, rows)
        assert {each.id for each in stack_users.departed(tx, DEPARTED_USER, 5)} == {"known", "old"}


def test_nothing_but_a_resource_gets_a_user(database: Database) -> None:
    stack_id = add_stack(database)
    writes = Writes()
    writes.insert(resource("key", stack_id, token="key-1"))
    with database.write() as tx:
        assert not stack_users.lock_owner(tx, "key-1")
        shard_state.record(tx, stack_id, writes, 1.0)
        assert stack_users.lock_owner(tx, "key-1")
