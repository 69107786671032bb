"""The store's contract, on SQLite and on PostgreSQL: stacks and revisions, rows, events, observations."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Text, select
from tests.contract.store_cases import (
    NOW,
    TIMEOUT_S,
    add_stack,
    at_once,
    claim,
    come_to_rest,
    event,
    locked,
    revise,
    shard_row,
    stack_row,
)

from homeostat.model.errors import Rejected
from homeostat.model.plan import Event
from homeostat.model.status import Action, Status
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.shards import leases, shards
from homeostat.store.stacks import action_begin, action_end, nested_status, revisions, stacks
from homeostat.store.stacks.contents import EMPTY, Content

# -- the schema --------------------------------------------------------------------------------------------------------


def test_migrations_make_the_schema_that_the_code_declares(database: Database) -> None:
    with database.engine.connect() as connection:
        here = connection.dialect

        def concerns(thing: Any, _name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
            """MariaDB and MySQL have tables of their own, and no references to stacks."""
            if kind == "table":
                return bool(thing.info.get("only", here.name) == here.name)
            return not (kind == "foreign_key_constraint" and refers_to_stacks(thing) and here.name == "mysql")

        def other_type(_: Any, __: Any, column: Any, found: Any, wanted: Any) -> bool | None:
            if here.name == "mysql" and isinstance(wanted.dialect_impl(here), Text):
                said = here.type_compiler_instance.process(wanted, type_expression=column)
                return bool(said.partition(" ")[0] != str(found.compile(dialect=here)).partition(" ")[0])
            return None  # as Alembic finds by itself

        context = MigrationContext.configure(connection, opts={"compare_type": other_type, "include_object": concerns})
        found = [each for each in compare_metadata(context, schema.metadata) if not is_key_of_live_names(each)]
        assert found == []


def refers_to_stacks(constraint: Any) -> bool:
    return bool(constraint.elements[0].target_fullname == "stack.id")


def is_key_of_live_names(difference: Any) -> bool:
    """On MariaDB and MySQL the unique index of some stacks is one on a generated column."""
    return isinstance(difference, tuple) and "uq_stack_live_name" in str(difference[-1])


def test_migrating_again_changes_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    database.migrate()
    assert stack_row(database, stack_id).name == "web"


@pytest.mark.heavy
def test_processes_that_start_together_migrate_once(database_url: str) -> None:
    program = (
        "import sys, time; from homeostat.store.database import Database; Database(sys.argv[1], time.time).migrate()"
    )
    command = [sys.executable, "-c", program, database_url]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    database = Database(database_url, lambda: NOW)
    add_stack(database)
    database.close()


# -- stacks and revisions ----------------------------------------------------------------------------------------------


def test_a_new_stack_is_in_progress_and_its_shards_are_due(database: Database) -> None:
    stack_id = add_stack(database, shard_count=2)
    row = stack_row(database, stack_id)
    assert (row.revision, row.action, row.status) == (1, Action.CREATE, Status.IN_PROGRESS)
    assert row.deadline == NOW + TIMEOUT_S
    assert [shard_row(database, stack_id, number).wake_at for number in (0, 1)] == [NOW, NOW]
    with database.read() as tx:
        (started,) = events.page(tx, [stack_id])
    assert (started.name, started.action, started.status) == ("web", Action.CREATE, Status.IN_PROGRESS)


def test_a_live_name_is_taken_once_in_a_project(database: Database) -> None:
    add_stack(database, id="first")
    with pytest.raises(Rejected, match=r"The Stack \(web\) already exists\.") as refused:
        add_stack(database, id="second")
    assert refused.value.fault == "StackExists"
    with database.read() as tx:
        assert stacks.get(tx, "second") is None
        assert events.page(tx, ["second"]) == []


def test_the_states_of_all_stacks_come_at_once(database: Database) -> None:
    group = Content("group", {"resource_def": {}, "index_var": "%", "count": 2, "skip": ["0"]})
    web, db, gone = (add_stack(database, name) for name in ("web", "db", "gone"))
    revise(database, web, group, shard_count=2)
    revision = revise(database, gone, EMPTY, Action.DELETE)
    with database.write() as tx:
        come_to_rest(tx, gone, 0, revision)
        shards.count_failures(tx, web, 1, 3)
    with database.read() as tx:
        found = nested_status.of(tx, [web, db, gone, "never was"])
    assert found.keys() == {web, db}
    woken = found[web].changes
    assert found[web] == nested_status.NestedStatus(
        "web", "p", "UPDATE", "IN_PROGRESS", "Stack UPDATE started", ["0"], woken, 3, False
    )
    assert (found[db].action, found[db].skip, found[db].failures) == ("CREATE", [], 0)


def test_a_stack_has_changed_when_something_was_stored_or_it_was_woken(database: Database) -> None:
    stack_id = add_stack(database)

    def changes() -> int:
        with database.read() as tx:
            return nested_status.of(tx, [stack_id])[stack_id].changes

    before = changes()
    lease = claim(database, stack_id)
    with database.write() as tx:
        leases.renew(tx, lease, NOW, 5.0, stores=False)
    assert changes() == before, "it was merely looked after"
    with database.write() as tx:
        leases.renew(tx, lease, NOW, 5.0)
    assert changes() > before
    before = changes()
    with database.write() as tx:
        shards.wake(tx, stack_id, NOW, shards.USER)
    assert changes() > before


def test_more_stacks_are_asked_about_than_one_query_takes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "STACKS_PER_QUERY", 2)
    ids = [add_stack(database, name) for name in "abcde"]
    with database.read() as tx:
        assert nested_status.of(tx, ids).keys() == set(ids)


def test_a_name_is_free_in_other_projects_and_after_deletion(database: Database) -> None:
    add_stack(database, id="first")
    add_stack(database, id="other", project="q")
    revision = revise(database, "first", EMPTY, Action.DELETE)
    with database.write() as tx:
        come_to_rest(tx, "first", 0, revision)
    assert stack_row(database, "first").deleted_at == NOW
    add_stack(database, id="third")
    with database.read() as tx:
        found = stacks.find(tx, "p", "web")
        assert found is not None
        assert found.id == "third"


def test_one_of_many_concurrent_creations_of_a_name_wins(database: Database) -> None:
    def create(number: int) -> str:
        try:
            return add_stack(database, id=f"s{number}")
        except Rejected as error:
            return error.fault

    results = at_once([partial(create, number) for number in range(6)])
    assert sorted(results)[:5] == ["StackExists"] * 5


def test_a_revision_is_accepted_while_the_last_one_is_in_progress(database: Database) -> None:
    stack_id = add_stack(database)
    assert revise(database, stack_id, at=NOW + 5) == 2
    row = stack_row(database, stack_id)
    assert (row.revision, row.action, row.status, row.deadline) == (2, "UPDATE", "IN_PROGRESS", NOW + 5 + TIMEOUT_S)
    assert shard_row(database, stack_id).wakes == 2


def test_revisions_are_immutable_and_bring_their_files(database: Database) -> None:
    stack_id = add_stack(database)
    second = Content("template", {"a": 1}, {"p": "x"}, {"parameter_defaults": {}}, {"f": "text", "g": "text"})
    revise(database, stack_id, second)
    revise(database, stack_id, Content("template", {"a": 2}, files={"f": "other"}))
    with database.read() as tx:
        assert revisions.content_of(tx, stack_id, 2) == second
        assert revisions.content_of(tx, stack_id, 3).files == {"f": "other"}
        contents = tx.execute(select(schema.file.c.content).order_by("content")).scalars().all()
    assert contents == ["other", "text"]


def test_a_revision_that_does_not_exist_is_an_error(database: Database) -> None:
    stack_id = add_stack(database)
    with database.read() as tx, pytest.raises(LookupError, match="no revision 7"):
        revisions.content_of(tx, stack_id, 7)


def test_a_revision_may_need_more_shards_and_never_drops_one_with_rows(database: Database) -> None:
    stack_id = add_stack(database)
    revise(database, stack_id, EMPTY, shard_count=3)
    revise(database, stack_id, EMPTY)
    assert stack_row(database, stack_id).shards == 3
    assert shard_row(database, stack_id, 2).wakes == 2


@pytest.mark.parametrize("action", [Action.UPDATE, Action.RESUME])
def test_a_shard_that_a_revision_leaves_alone_is_at_rest_at_it_where_all_of_it_was_made(
    database: Database, action: Action
) -> None:
    stack_id = add_stack(database, shard_count=2)
    for number in range(2):
        with database.write() as tx:
            come_to_rest(tx, stack_id, number, 1)
    revise(database, stack_id, EMPTY, Action.UPDATE, shard_count=2)
    # At rest by an action that makes nothing, or by one that does: the stack was not COMPLETE at that revision.
    revision = revise(database, stack_id, EMPTY, action, shard_count=2)
    with database.write() as tx:
        come_to_rest(tx, stack_id, 0, revision)
    assert revise(database, stack_id, EMPTY, touched=[1], shard_count=2) == revision + 1
    assert shard_row(database, stack_id, 0).settled_revision == (revision + 1 if action == Action.UPDATE else revision)


# -- coming to rest ----------------------------------------------------------------------------------------------------


def test_a_stack_is_complete_when_its_last_shard_is(database: Database) -> None:
    stack_id = add_stack(database, shard_count=2)
    with database.write() as tx:
        assert come_to_rest(tx, stack_id, 0, 1) is None
    assert stack_row(database, stack_id).status == Status.IN_PROGRESS
    with database.write() as tx:
        before = come_to_rest(tx, stack_id, 1, 1)
    assert before.status == Status.IN_PROGRESS
    row = stack_row(database, stack_id)
    assert (row.status, row.complete_revision, row.deadline) == (Status.COMPLETE, 1, None)
    assert row.reason == "Stack CREATE completed successfully"


def test_rest_at_an_old_revision_completes_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    revise(database, stack_id)
    with database.write() as tx:
        assert come_to_rest(tx, stack_id, 0, 1) is None
    assert stack_row(database, stack_id).status == Status.IN_PROGRESS


def test_settling_twice_makes_one_event(database: Database) -> None:
    stack_id = add_stack(database)
    for _ in range(2):
        with database.write() as tx:
            come_to_rest(tx, stack_id, 0, 1)
    with database.read() as tx:
        assert [each.status for each in events.page(tx, [stack_id])] == ["IN_PROGRESS", "COMPLETE"]


def test_failure_of_the_newest_revision_fails_the_stack_and_wakes_its_shards(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        before = action_end.fail(tx, stack_id, 1, "Resource CREATE failed: no", NOW)
    assert before is not None
    row = stack_row(database, stack_id)
    assert (row.status, row.reason, row.complete_revision) == (Status.FAILED, "Resource CREATE failed: no", None)
    assert shard_row(database, stack_id).wakes == 2


def test_failure_of_an_old_revision_does_not_fail_the_new_one(database: Database) -> None:
    stack_id = add_stack(database)
    revise(database, stack_id)
    with database.write() as tx:
        assert action_end.fail(tx, stack_id, 1, "too late", NOW) is None
    assert stack_row(database, stack_id).status == Status.IN_PROGRESS


def test_rollback_goes_back_over_several_updates_to_the_last_complete_revision(database: Database) -> None:
    good = Content("template", {"good": True}, {"p": 1}, files={"f": "text"})
    stack_id = add_stack(database)
    revision = revise(database, stack_id, good)
    with database.write() as tx:
        come_to_rest(tx, stack_id, 0, revision)
    revise(database, stack_id, Content("template", {"bad": 1}))
    revise(database, stack_id, Content("template", {"bad": 2}))
    with database.write() as tx:
        number = action_begin.roll_back(tx, locked(tx, stack_id), NOW, TIMEOUT_S)
    row = stack_row(database, stack_id)
    assert (row.action, row.status, row.revision, row.rollback_to) == ("ROLLBACK", "IN_PROGRESS", 5, 2)
    with database.read() as tx:
        assert revisions.content_of(tx, stack_id, number) == good


def test_rollback_of_a_stack_that_never_was_complete_goes_back_to_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        number = action_begin.roll_back(tx, locked(tx, stack_id), NOW, TIMEOUT_S)
    with database.read() as tx:
        assert revisions.content_of(tx, stack_id, number) == EMPTY
    assert stack_row(database, stack_id).rollback_to == 0


def test_an_update_after_a_rollback_is_no_rollback(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        action_begin.roll_back(tx, locked(tx, stack_id), NOW, TIMEOUT_S)
    revise(database, stack_id)
    assert stack_row(database, stack_id).rollback_to is None


# -- events ------------------------------------------------------------------------------------------------------------


def test_events_are_read_in_pages_in_the_order_they_happened(database: Database) -> None:
    stack_id, other = add_stack(database, "web"), add_stack(database, "db")
    for number in range(5):
        with database.write() as tx:
            events.append(tx, stack_id, [event(f"r{number}")], NOW + number)
            events.append(tx, other, [event("elsewhere")], NOW + number)
    names: list[str] = []
    after = None
    with database.read() as tx:
        while page := events.page(tx, [stack_id], after=after, limit=2):
            names += [each.name for each in page]
            after = page[-1].seq
        newest = events.page(tx, [stack_id], newest_first=True, limit=2)
        earlier = events.page(tx, [stack_id], newest_first=True, limit=2, after=newest[-1].seq)
    assert names == ["web", "r0", "r1", "r2", "r3", "r4"]
    assert [each.name for each in [*newest, *earlier]] == ["r4", "r3", "r2", "r1"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"name": "b"}, ["b", "b"]),
        ({"only": {"status": ["FAILED"]}}, ["b"]),
        ({"only": {"action": ["CREATE"], "name": ["a", "b"]}}, ["a", "b"]),
        ({"order_by": "name"}, ["a", "b", "b", "web"]),
    ],
)
def test_events_are_filtered_and_sorted(database: Database, chosen: dict[str, Any], expected: list[str]) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        happened: list[Event] = [event("b", "FAILED", "UPDATE"), event("a"), event("b")]
        events.append(tx, stack_id, happened, NOW)
    with database.read() as tx:
        assert [each.name for each in events.page(tx, [stack_id], **chosen)] == expected


# -- transactions ------------------------------------------------------------------------------------------------------


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    stack_id = add_stack(database)

    def fail_half_way() -> None:
        with database.write() as tx:
            events.append(tx, stack_id, [event("a")], NOW)
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail_half_way()
    with database.read() as tx:
        assert events.page(tx, [stack_id], name="a") == []


def test_a_reader_sees_one_moment_and_does_not_wait_for_writers(database: Database) -> None:
    stack_id = add_stack(database)
    with database.read() as tx:
        assert stacks.get(tx, stack_id).revision == 1  # type: ignore[union-attr]
        revise(database, stack_id)
        assert stacks.get(tx, stack_id).revision == 1  # type: ignore[union-attr]
    assert stack_row(database, stack_id).revision == 2
