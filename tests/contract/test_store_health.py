"""The store's contract, on SQLite and on PostgreSQL: when the health of the members of a shard is checked."""

import pytest
from tests.contract.store_cases import NOW, add_stack

from homeostat.store.database import Database
from homeostat.store.shards import health
from homeostat.store.sql import notices

SPEC = {
    "type": "senlin.policy.health",
    "version": "1.2",
    "properties": {"detection": {"detection_modes": []}, "recovery": {"actions": []}},
}


def checked(database: Database) -> str:
    """A stack for a resource of which a policy holds."""
    stack_id = add_stack(database, "web")
    with database.write() as tx:
        values = {"id": "c", "stack_id": stack_id, "name": "a", "members": False, "source": "s"}
        health.attach(tx, {**values, "spec": SPEC, "enabled": True}, NOW)
    return stack_id


def test_a_look_that_is_requested_is_due_at_once_and_wakes_workers(database: Database) -> None:
    stack_id = checked(database)
    with database.write() as tx:
        (taken,) = health.take(tx, NOW, 10)
        health.release(tx, (stack_id, 0), NOW + health.TAKEN_S, NOW + 60, NOW + 60, NOW)
        notices.take_flag(tx)
        assert health.take(tx, NOW + 1, 10) == []
        health.hurry(tx, [(stack_id, 0)], NOW + 1)
        assert notices.take_flag(tx)
        (again,) = health.take(tx, NOW + 1, 10)
    assert (taken.whole, again.whole) == (True, True)


def test_a_look_that_is_requested_meanwhile_stays_due(database: Database) -> None:
    stack_id = checked(database)
    with database.write() as tx:
        health.take(tx, NOW, 10)
        health.hurry(tx, [(stack_id, 0)], NOW + 1)
        health.release(tx, (stack_id, 0), NOW + health.TAKEN_S, NOW + 60, NOW + 60, NOW)
        assert len(health.take(tx, NOW + 2, 10)) == 1


@pytest.mark.shows("HS22")
def test_what_one_worker_has_taken_another_one_takes_once_its_time_is_over(database: Database) -> None:
    checked(database)
    with database.write() as tx:
        assert len(health.take(tx, NOW, 10)) == 1
        assert health.take(tx, NOW + health.TAKEN_S - 0.1, 10) == []
        assert len(health.take(tx, NOW + health.TAKEN_S, 10)) == 1


def test_without_a_policy_nothing_is_due(database: Database) -> None:
    checked(database)
    with database.write() as tx:
        health.switch(tx, "s", enabled=False, now=NOW)
        assert health.take(tx, NOW + 1, 10) == []
        health.switch(tx, "s", enabled=True, now=NOW)
        assert len(health.take(tx, NOW + 1, 10)) == 1
        health.detach(tx, "s", NOW)
        assert health.take(tx, NOW + 100, 10) == []
