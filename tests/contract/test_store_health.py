"""The store's contract, on SQLite and on PostgreSQL: when the health of the members of a shard is checked."""

import pytest
from tests.contract.store_cases import NOW, add_stack

from homeostat.model.node_health import Finding
from homeostat.model.vantage import Seen, VantageLook
from homeostat.store.database import Database
from homeostat.store.operation import periodic
from homeostat.store.shards import health, vantage_looks
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
        health.request_look(tx, [(stack_id, 0)], NOW + 1)
        assert notices.take_flag(tx)
        (again,) = health.take(tx, NOW + 1, 10)
    assert (taken.whole, again.whole) == (True, True)


def test_a_look_that_is_requested_meanwhile_stays_due(database: Database) -> None:
    stack_id = checked(database)
    with database.write() as tx:
        health.take(tx, NOW, 10)
        health.request_look(tx, [(stack_id, 0)], NOW + 1)
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


def test_each_place_takes_a_shard_of_its_own_and_shows_what_it_has_found(database: Database) -> None:
    shard = (checked(database), 0)
    with database.write() as tx:
        vantage_looks.set_vantages(tx, shard, {"a", "b"}, NOW)
        vantage_looks.set_vantages(tx, shard, {"a", "b"}, NOW)
        (taken,) = vantage_looks.take(tx, "a", NOW, 10)
        assert (taken.whole, taken.before, taken.project) == (True, VantageLook(None, {}), "p")
        assert vantage_looks.take(tx, "a", NOW, 10) == []
        assert len(vantage_looks.take(tx, "b", NOW, 10)) == 1
        look = VantageLook(NOW, {"key": {2: Seen(Finding.UNHEALTHY, "no answer", 3)}})
        vantage_looks.store(tx, "a", shard, NOW + health.TAKEN_S, NOW + 10, NOW + 60, look)
        vantage_looks.store(tx, "b", shard, NOW + 1, NOW + 10, NOW + 60, look)  # others have taken it by now
    with database.write() as tx:
        assert vantage_looks.of_shards(tx, [shard])[shard] == {"a": look, "b": VantageLook(None, {})}
        (again,) = vantage_looks.take(tx, "a", NOW + 10, 10)
        assert (again.whole, again.before) == (False, look)
        late, older = VantageLook(NOW + 5, {}), VantageLook(NOW - 5, {})
        for each in (late, older):  # by workers that had it before
            vantage_looks.store(tx, "a", shard, NOW + 1, NOW + 6, NOW + 6, each)
        assert vantage_looks.of_shards(tx, [shard])[shard]["a"] == late
        assert vantage_looks.take(tx, "a", NOW + 11, 10) == [], "the one that has it keeps it"
        vantage_looks.forget(tx, "a", shard, NOW + 10 + health.TAKEN_S)
        vantage_looks.set_vantages(tx, shard, {"c"}, NOW)
        assert vantage_looks.of_shards(tx, [shard])[shard].keys() == {"c"}


def test_what_was_found_from_places_is_forgotten_with_its_policy_and_its_stack(database: Database) -> None:
    shard = (checked(database), 0)
    with database.write() as tx:
        vantage_looks.set_vantages(tx, shard, {"a"}, NOW)
        assert periodic.due_in(tx, NOW - 1, 20.0, "a")[periodic.VANTAGE] == 1.0
        assert periodic.due_in(tx, NOW - 1, 20.0, "b")[periodic.VANTAGE] == 20.0
        health.detach(tx, "s", NOW)
        assert vantage_looks.of_shards(tx, [shard]) == {}
