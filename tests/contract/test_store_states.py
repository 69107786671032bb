"""The one writer of the action and the status of stacks refuses what the table of transitions does not have."""

import pytest
from tests.contract.store_cases import add_stack, stack_row

from homeostat.model.errors import Bug
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import stack_state


def test_an_illegal_transition_is_not_stored(database: Database) -> None:
    row = stack_row(database, add_stack(database, "web"))
    with pytest.raises(Bug, match=r"web.* CREATE_IN_PROGRESS to UPDATE_COMPLETE"), database.write() as tx:
        stack_state.change(tx, row, {"action": "UPDATE", "status": "COMPLETE"})
    after = stack_row(database, row.id)
    assert (after.action, after.status) == ("CREATE", "IN_PROGRESS")


def test_a_stack_begins_in_progress(database: Database) -> None:
    with pytest.raises(Bug, match="cannot change from nothing to CREATE_COMPLETE"), database.write() as tx:
        stack_state.insert(tx, {"id": "s", "name": "web", "action": "CREATE", "status": "COMPLETE"})
    with database.read() as tx:
        assert tx.execute(schema.stack.select()).first() is None
