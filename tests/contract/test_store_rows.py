"""The store's contract: the rows of a shard, and what was observed of them."""

from typing import Any

import pytest
from sqlalchemy import select, update
from tests.contract.store_cases import (
    NOW,
    add_stack,
    event,
    resource,
)

from homeostat.model.errors import Superseded
from homeostat.model.observed import Observation, Presence
from homeostat.model.world import Seen
from homeostat.store import events, schema
from homeostat.store.database import Database
from homeostat.store.shards import observations, shard_state
from homeostat.store.shards.shard_state import Writes

# -- rows of a shard ---------------------------------------------------------------------------------------------------


def record(database: Database, stack_id: str, writes: Writes) -> None:
    with database.write() as tx:
        shard_state.record(tx, stack_id, writes, NOW)


def load(database: Database, stack_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with database.read() as tx:
        return shard_state.load_rows(tx, stack_id, 0)


def test_rows_and_observations_come_back_as_they_were(database: Database) -> None:
    stack_id = add_stack(database)
    row = resource(
        "key1",
        stack_id,
        handle="h",
        requires=["key0"],
        properties={"n": 1, "text": "ä", "deep": [{"x": None}]},
        metadata={"m": True},
        token="key1-4",
        acted_at=NOW + 0.125,
        attempts=2,
        changed=9,
    )
    seen = Seen(Observation(Presence.PRESENT, "h", {"status": "active"}, NOW + 0.25, "why"), 3)
    writes = Writes(properties=[(row, {"n": 1, "text": None})])
    writes.insert(row)
    writes.seen[row.key] = (row, seen)
    record(database, stack_id, writes)
    assert load(database, stack_id) == ({"key1": row}, {"key1": seen})


def test_a_write_on_a_row_that_a_user_changed_is_superseded_and_stores_nothing(database: Database) -> None:
    stack_id = add_stack(database)
    first = Writes()
    for key in ("key1", "key2"):
        first.insert(resource(key, stack_id, key))
    record(database, stack_id, first)
    mine, _ = load(database, stack_id)
    with database.write() as tx:
        changed = schema.resource
        tx.execute(
            update(changed).where(changed.c.key == "key2").values(version=changed.c.version + 1, reason="marked")
        )

    late = Writes(events=[event("key1")])
    late.insert(resource("key3", stack_id, "key3"))
    for row in mine.values():
        row.reason = "mine"
        late.conclude(row)
    with pytest.raises(Superseded, match="1 of 2 rows"):
        record(database, stack_id, late)

    rows, _ = load(database, stack_id)
    assert {key: row.reason for key, row in rows.items()} == {"key1": "", "key2": "marked"}
    with database.read() as tx:
        assert events.page(tx, [stack_id], name="key1") == []


def test_a_row_goes_only_as_it_was_read(database: Database) -> None:
    """Found by the simulation (seed 30004284): a user said that it is well while a pass was about to remove it."""
    stack_id = add_stack(database)
    first = Writes()
    for key in ("key1", "key2"):
        first.insert(resource(key, stack_id, key))
    record(database, stack_id, first)
    mine, _ = load(database, stack_id)
    with database.write() as tx:
        changed = schema.resource
        tx.execute(update(changed).where(changed.c.key == "key2").values(version=changed.c.version + 1))
    late = Writes()
    late.remove(mine["key2"])
    with pytest.raises(Superseded, match="1 of 1 rows"):
        record(database, stack_id, late)
    sure = Writes()
    sure.remove(mine["key1"])
    sure.insert(resource("key3", stack_id, "key3"))
    sure.remove(sure.inserted["key3"])
    record(database, stack_id, sure)
    assert load(database, stack_id)[0].keys() == {"key2"}


def test_each_write_moves_the_version_in_the_row_and_in_memory(database: Database) -> None:
    stack_id = add_stack(database)
    row = resource("key1", stack_id)
    writes = Writes()
    writes.insert(row)
    record(database, stack_id, writes)
    for change in (Writes.intend, Writes.conclude):
        writes = Writes()
        row.reason = change.__name__
        change(writes, row)
        record(database, stack_id, writes)
    assert row.version == 2
    assert load(database, stack_id)[0] == {"key1": row}


def test_a_removed_row_takes_its_observations_along(database: Database) -> None:
    stack_id = add_stack(database)
    row = resource("key1", stack_id)
    writes = Writes(properties=[(row, {"n": 1})])
    writes.insert(row)
    writes.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, "h")))
    record(database, stack_id, writes)
    writes = Writes()
    writes.remove(row)
    record(database, stack_id, writes)
    with database.read() as tx:
        for table in (schema.resource, schema.resource_observed, schema.resource_properties_observed):
            assert tx.execute(select(table)).all() == []


# -- observations ------------------------------------------------------------------------------------------------------


def observed(database: Database, stack_id: str, seen_at: float = NOW) -> observations.WatchedThing:
    """A server with handle `h`, seen active at `seen_at`."""
    row = resource("key1", stack_id, handle="h", properties={"name": "n"})
    writes = Writes()
    writes.insert(row)
    writes.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, "h", {"status": "active"}, seen_at), 1))
    record(database, stack_id, writes)
    with database.read() as tx:
        (watched,) = observations.by_handle(tx, ["h"], ["OS::Nova::Server"])
        assert observations.in_shards(tx, [(stack_id, 0)], ["OS::Nova::Server"]) == [watched]
        assert observations.by_handle(tx, ["h"], ["OS::Cinder::Volume"]) == []
    return watched


@pytest.mark.parametrize(
    ("seen_at", "status", "number"),
    [
        pytest.param(NOW + 1, "stopped", 3, id="a newer look replaces an older one"),
        pytest.param(NOW, "active", 1, id="a look of the same moment is no news"),
        pytest.param(NOW - 1, "active", 1, id="an older look never replaces a newer one"),
    ],
)
def test_the_newest_look_stays(database: Database, seen_at: float, status: str, number: int) -> None:
    stack_id = add_stack(database)
    watched = observed(database, stack_id)
    look = Observation(Presence.PRESENT, "h", {"status": "stopped"}, seen_at)
    with database.write() as tx:
        observations.record(tx, observations.encode(database, [(watched, look)]))
    seen = load(database, stack_id)[1]["key1"]
    assert (seen.observation.properties, seen.number) == ({"status": status}, number)


def test_a_look_at_a_thing_that_was_replaced_meanwhile_is_dropped(database: Database) -> None:
    stack_id = add_stack(database)
    watched = observed(database, stack_id)
    row = load(database, stack_id)[0]["key1"]
    row.handle = "new"
    writes = Writes()
    writes.conclude(row)
    writes.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, "new", {"status": "active"}, NOW), 2))
    record(database, stack_id, writes)
    with database.write() as tx:
        observations.record(
            tx, observations.encode(database, [(watched, Observation(Presence.ABSENT, "h", seen_at=NOW + 9))])
        )
    assert load(database, stack_id)[1]["key1"].observation.presence is Presence.PRESENT


def test_an_absent_thing_is_remembered_as_it_last_was(database: Database) -> None:
    stack_id = add_stack(database)
    watched = observed(database, stack_id)
    with database.write() as tx:
        observations.record(
            tx,
            observations.encode(
                database, [(watched, Observation(Presence.ABSENT, "h", seen_at=NOW + 1, reason="gone"))]
            ),
        )
    seen = load(database, stack_id)[1]["key1"].observation
    assert (seen.presence, seen.properties, seen.reason) == (Presence.ABSENT, {"status": "active"}, "gone")
