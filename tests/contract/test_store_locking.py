"""The refusal of what would change a locked stack, on SQLite and on PostgreSQL."""

from typing import Any

import pytest
from sqlalchemy import update
from tests.contract.store_cases import add_stack

from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import locks

LOCK = {"level": "all", "owner": "ann", "reason": "disks are changed", "expires_at": 1_800_000_600.0}


def set_columns(db: Database, stack_id: str, **values: Any) -> None:
    with db.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(**values))


def refusal(db: Database, stack_id: str, writer: Any = locks.changeable) -> str:
    """Fault and message."""
    with db.write() as tx, pytest.raises(Rejected) as caught:
        writer(tx, stack_id)
    return f"{caught.value.code} {caught.value.fault}: {caught.value}"


def test_an_unlocked_stack_may_be_changed(database: Database) -> None:
    stack_id = add_stack(database)
    with database.write() as tx:
        assert locks.changeable(tx, stack_id).id == stack_id
        assert locks.removable(tx, stack_id).id == stack_id


def test_the_refusal_names_owner_end_reason_and_remedy(database: Database) -> None:
    stack_id = add_stack(database)
    set_columns(database, stack_id, lock=LOCK)
    reported = refusal(database, stack_id)
    assert reported.startswith("409 StackLocked: The stack web is locked by ann until 2027-01-15T08:10:00Z")
    assert "(disks are changed): unlock it first (`openstack stack unlock web`)" in reported


def test_the_refusal_of_a_nested_stack_names_the_one_to_unlock(database: Database) -> None:
    add_stack(database)
    nested = add_stack(database, "web-inner", parent_id="p-web", root_id="p-web")
    set_columns(database, nested, lock={"level": "stacks"})
    reported = refusal(database, nested)
    assert "is locked, with the stack p-web that it is nested in" in reported
    assert reported.endswith("unlock it first (`openstack stack unlock p-web`).")


@pytest.mark.parametrize(("status", "refused"), [("COMPLETE", True), ("IN_PROGRESS", True), ("FAILED", False)])
def test_only_where_locking_failed_the_stack_may_be_deleted(database: Database, status: str, refused: bool) -> None:
    stack_id = add_stack(database)
    set_columns(database, stack_id, lock=LOCK, action="LOCK", status=status)
    if refused:
        assert "409 StackLocked" in refusal(database, stack_id, locks.removable)
    else:
        with database.write() as tx:
            assert locks.removable(tx, stack_id).id == stack_id


def test_what_is_deleted_is_not_found_whatever_lock_it_had(database: Database) -> None:
    stack_id = add_stack(database)
    set_columns(database, stack_id, lock=LOCK, deleted_at=1.0)
    assert refusal(database, stack_id).startswith("404 EntityNotFound")
