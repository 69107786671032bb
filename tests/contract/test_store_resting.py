"""What stacks at rest say of themselves, cancelling and deleting on, on SQLite and on PostgreSQL."""

from sqlalchemy import update
from tests.contract.store_cases import (
    NOW,
    TEMPLATE,
    TIMEOUT_S,
    add_stack,
    come_to_rest,
    locked,
    resource,
    revise,
    shard_row,
    stack_row,
)

from homeostat.model.status import Action, Status, joined
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state, shards
from homeostat.store.stacks import cancellation, deletion, revisions, status_at_rest


def state(db: Database, stack_id: str) -> str:
    row = stack_row(db, stack_id)
    return joined(row.action, row.status)


def well(db: Database, name: str = "web", **more: object) -> str:
    """A stack that is complete, and of which nothing is to be done."""
    stack_id = add_stack(db, name, **more)  # type: ignore[arg-type]
    with db.write() as tx:
        come_to_rest(tx, stack_id, 0, 1)
        tx.execute(update(schema.shard).values(wake_at=None))
    return stack_id


def end_pass(
    db: Database, stack_id: str, failures: int, *, at_rest: bool = True, merely_marked: bool = False
) -> float | None:
    """As the end of a pass does that has counted one failure more, or one less."""
    with db.write() as tx:
        locked(tx, stack_id)
        shards.count_failures(tx, stack_id, 0, 1 if failures else -1)
        return status_at_rest.correct(tx, stack_id, 0, failures, NOW, at_rest=at_rest, merely_marked=merely_marked)


def test_a_failure_and_its_end_are_events(database: Database) -> None:
    stack_id = well(database)
    with database.write() as tx:
        ill = resource("k1", stack_id, action=Action.CREATE, status=Status.FAILED, reason="no room")
        shard_state.encode_new(database, [ill]).store(tx)
    assert end_pass(database, stack_id, 1) is None
    assert state(database, stack_id) == "CHECK_FAILED"
    assert stack_row(database, stack_id).reason == "Resource CHECK failed: a: no room"
    with database.write() as tx:
        tx.execute(update(schema.resource).values(status=Status.COMPLETE))
    assert end_pass(database, stack_id, 0) is None
    assert state(database, stack_id) == "CHECK_COMPLETE"


def test_a_stack_is_not_well_while_another_shard_counts_what_it_is_healing(database: Database) -> None:
    stack_id = well(database, shard_count=2)
    with database.write() as tx:
        come_to_rest(tx, stack_id, 1, 1)
        tx.execute(update(schema.stack).values(action=Action.CHECK, status=Status.FAILED))
        shards.count_failures(tx, stack_id, 1, 1)
        gone = resource("k1", stack_id, action=Action.CHECK, status=Status.FAILED, replaced_by="k2")
        shard_state.encode_new(database, [gone]).store(tx)
        locked(tx, stack_id)
        status_at_rest.correct(tx, stack_id, 0, 0, NOW, at_rest=True)
    assert state(database, stack_id) == "CHECK_FAILED"


def test_a_stack_whose_revision_is_not_complete_stays_as_it_is(database: Database) -> None:
    stack_id = well(database)
    revise(database, stack_id)
    assert end_pass(database, stack_id, 1) is None
    assert state(database, stack_id) == "UPDATE_IN_PROGRESS"


def test_a_nested_stack_waits_until_its_parent_has_heard(database: Database) -> None:
    parent = well(database)
    child = well(database, "child", parent_id=parent, parent_name="grp", parent_key="k", parent_shard=0, depth=1)
    revise(database, parent, action=Action.SNAPSHOT)
    assert end_pass(database, child, 1) == NOW + status_at_rest.LATER_S
    assert state(database, child) == "CREATE_COMPLETE"


def test_marks_in_a_nested_stack_are_not_reported_while_a_stack_above_is_in_an_action(database: Database) -> None:
    root = well(database)
    middle = well(database, "middle", parent_id=root, parent_name="grp", parent_key="k", parent_shard=0, depth=1)
    low = well(database, "low", parent_id=middle, parent_name="0", parent_key="l", parent_shard=0, depth=2)
    with database.write() as tx:
        ill = resource("m", low, action=Action.CHECK, status=Status.FAILED, reason="it smells")
        shard_state.encode_new(database, [ill]).store(tx)
    revise(database, root)
    assert end_pass(database, low, 1, merely_marked=True) == NOW + status_at_rest.MARKED_LATER_S
    assert state(database, low) == "CREATE_COMPLETE"
    with database.write() as tx:
        come_to_rest(tx, root, 0, 2)
    assert end_pass(database, low, 1, merely_marked=True) is None
    assert state(database, low) == "CHECK_FAILED"


def test_what_fails_besides_marks_is_reported_at_once(database: Database) -> None:
    root = well(database)
    low = well(database, "low", parent_id=root, parent_name="0", parent_key="l", parent_shard=0, depth=1)
    with database.write() as tx:
        ill = resource("m", low, action=Action.CHECK, status=Status.FAILED, reason="it broke")
        shard_state.encode_new(database, [ill]).store(tx)
    revise(database, root)
    assert end_pass(database, low, 1) is None
    assert state(database, low) == "CHECK_FAILED"


def test_cancelling_ends_the_whole_tree_and_wakes_it(database: Database) -> None:
    parent = well(database)
    child = well(database, "child", parent_id=parent, parent_name="grp", parent_key="k", parent_shard=0, depth=1)
    going = well(database, "going", parent_id=parent, parent_name="old", parent_key="l", parent_shard=0, depth=1)
    for stack_id, action in ((parent, Action.UPDATE), (child, Action.UPDATE), (going, Action.DELETE)):
        revise(database, stack_id, action=action)
    with database.write() as tx:
        tx.execute(update(schema.shard).values(wake_at=None))
        cancellation.cancel(tx, locked(tx, parent), NOW)
    assert [state(database, each) for each in (parent, child)] == ["UPDATE_FAILED", "UPDATE_FAILED"]
    assert state(database, going) == "DELETE_IN_PROGRESS"
    assert [shard_row(database, each).wake_at for each in (parent, child, going)] == [NOW, NOW, None]


def test_a_deletion_goes_on_with_the_policies_it_is_given(database: Database) -> None:
    stack_id = well(database)
    with database.write() as tx:
        shard_state.encode_new(database, [resource("k1", stack_id), resource("k2", stack_id, "b")]).store(tx)
    revise(database, stack_id, action=Action.DELETE)
    revision = revisions.encode(database, TEMPLATE)
    with database.write() as tx:
        number = deletion.continue_deletion(tx, locked(tx, stack_id), revision, {"a": "Retain"}, NOW, TIMEOUT_S)
    assert (state(database, stack_id), stack_row(database, stack_id).revision) == ("DELETE_IN_PROGRESS", number)
    with database.read() as tx:
        rows, _ = shard_state.load_rows(tx, stack_id, 0)
    assert {row.name: (row.deletion_policy, row.version) for row in rows.values()} == {
        "a": ("Retain", 1),
        "b": ("Delete", 0),
    }
