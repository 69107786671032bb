"""Records of things with handlers, and the turns of their handlers, on SQLite and on PostgreSQL."""

import threading
from typing import Any

import pytest

from homeostat.plugins.things import LEASE_S, StoredThing, Things, Turn
from homeostat.store.builtin import plugin_records, records
from homeostat.store.database import Database
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan

KIND = "plugin:Example::Lamp"
SPEC = {"properties": {"watts": 40}, "physical_name": "web-lamp-row"}


def begun(database: Database, token: str = "row-1") -> Turn:
    turn = Things(database, "p").begin(KIND, token, SPEC)
    assert turn is not None
    return turn


def anyway(_thing: StoredThing, _now: float) -> bool:
    return True


def unchanged(_thing: StoredThing) -> None:
    """Take the turn only."""


def found(database: Database, *handles: str, project: str = "p") -> dict[str, Any]:
    with database.read() as tx:
        return plugin_records.by_handle(tx, KIND, project, list(handles))


def test_a_token_has_one_thing(database: Database) -> None:
    turn = begun(database)
    assert Things(database, "p").begin(KIND, "row-1", SPEC) is None
    record_id = turn.thing.record_id
    assert found(database, record_id, "other").keys() == {record_id}
    assert found(database, record_id, project="q") == {}


def test_a_thing_is_known_by_its_own_id_unless_another_one_is(database: Database) -> None:
    first, second = begun(database), begun(database, "row-2")
    for turn in (first, second):
        turn.store_id("lamp-1")
        turn.must(unchanged, name=True)
    assert (first.thing.handle, second.thing.handle) == ("lamp-1", second.thing.record_id)
    rows = found(database, "lamp-1", first.thing.record_id, second.thing.record_id, "")
    assert {handle: row.token for handle, row in rows.items()} == {
        "lamp-1": "row-1",
        first.thing.record_id: "row-1",
        second.thing.record_id: "row-2",
    }


def test_many_who_want_one_handle_at_once_get_it_once(database: Database) -> None:
    turns = [begun(database, f"row-{number}") for number in range(6)]
    for turn in turns:
        turn.store_id("lamp-1")
    together = threading.Barrier(len(turns))

    def name(turn: Turn) -> None:
        together.wait(20)
        turn.must(unchanged, name=True)

    threads = [threading.Thread(target=name, args=(turn,)) for turn in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [turn.thing.link for turn in turns].count("lamp-1") == 1


def test_there_is_one_turn_at_a_time(database: Database) -> None:
    turn = begun(database)
    things = turn.things
    assert things.take(turn.thing.record_id, anyway, unchanged) is None
    assert turn.finish(unchanged)
    again = things.take(turn.thing.record_id, anyway, unchanged)
    assert again is not None
    assert not turn.finish(unchanged), "its turn is over"
    turn.store_id("lamp-1")
    (row,) = found(database, again.thing.record_id).values()
    assert row.object["id"] == "lamp-1", "what it has made is known all the same"
    assert row.secret["held_until"] > LEASE_S


def test_who_begins_what_another_has_begun_meanwhile_has_no_turn(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(database)
    monkeypatch.setattr(plugin_records, "by_token", lambda *_: {})
    assert Things(database, "p").begin(KIND, "row-1", SPEC) is None


def test_another_attempt_for_a_row_has_a_name_of_its_own(database: Database) -> None:
    assert begun(database, "row-1").thing.inner.physical_name == "web-lamp-row"
    with database.write() as tx:
        orphans.add(tx, [Orphan("row-1", KIND, "p"), Orphan("rows-1", KIND, "p")], 1.0)
    assert begun(database, "row-2").thing.inner.physical_name == "web-lamp-row-2"
    assert begun(database, "other-2").thing.inner.physical_name == "web-lamp-row"


def test_what_handlers_keep_is_there_for_the_next_one(database: Database) -> None:
    turn = begun(database)
    turn.store_data("a", "1", redact=False)
    turn.store_data("b", "hidden", redact=True)
    turn.store_data("a", None, redact=False)
    turn.store_metadata({"x": [1]})
    turn.finish(unchanged)
    (row,) = found(database, turn.thing.record_id).values()
    thing = StoredThing.of(row)
    assert (thing.inner.data, thing.inner.redacted, thing.inner.metadata) == ({"b": "hidden"}, ["b"], {"x": [1]})
    assert "hidden" not in str(thing.seen)


def test_who_is_slow_to_take_a_signal_takes_no_later_one(database: Database) -> None:
    """Another worker has taken it meanwhile, and SQLite has given its number to the next."""
    turn = begun(database)
    record_id, things = turn.thing.record_id, turn.things
    signal(database, record_id, "first", 1.0)
    (first,) = things.signalled([record_id])[record_id]
    things.took(turn, first.seq, first.at, "")
    signal(database, record_id, "second", 2.0)
    things.took(turn, first.seq, first.at, "")
    (left,) = things.signalled([record_id])[record_id]
    assert left.object == {"said": "second"}
    things.took(turn, left.seq, left.at, "")
    assert things.signalled([record_id]) == {}


def signal(database: Database, record_id: str, said: str, at: float) -> None:
    with database.write() as tx:
        records.add_signal(tx, record_id, records.Signal({"said": said}, at))
