"""Things that the service keeps itself, on both databases: records, the port on them, signals at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, update
from tests.contract.store_cases import NOW, add_stack, resource

from homeostat.builtin.cloud import Records
from homeostat.builtin.inbox import SignalOutcome
from homeostat.builtin.reports import Body
from homeostat.builtin.signals import Signals
from homeostat.clock import Entropy
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.observed import Observation, Presence
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.shards.shard_state import Writes

URL = "http://api:8004"
CONFIG = {"name": "c", "group": "g", "config": "x", "inputs": [], "outputs": [], "options": {}}
HANDLE = {"name": "h", "form": "native", "transport": "TOKEN_SIGNAL"}


def config(number: int, **more: Any) -> Record:
    return Record(f"id-{number}", "software_config", "p", f"t-{number}", CONFIG, created_at=NOW + number // 2, **more)


def owned(db: Database, *keys: str) -> None:
    """Resources with these keys in a stack."""
    add_stack(db)
    writes = Writes()
    for key in keys:
        writes.insert(resource(key, "p-web", key))
    with db.write() as tx:
        shard_state.record(tx, "p-web", writes, NOW)


def cloud(db: Database, project: str = "p") -> Any:
    return Records(db, Entropy(), URL).of(project)


def present(answer: Any) -> Observation:
    assert isinstance(answer, Observation), answer
    assert answer.presence is Presence.PRESENT
    return answer


def no_scaling(policy_id: str, body: Body) -> SignalOutcome:
    raise AssertionError(f"{policy_id} is no policy")


def no_rollout(key: str) -> None:
    raise AssertionError(f"{key} has no rollout")


def handles(db: Database) -> Any:
    """A handle and a condition that waits for it."""
    owned(db, "handle", "wait")
    here = cloud(db)
    handle = present(here.create("signal_handle", [Creation("handle-1", HANDLE)])[0])
    waits = {"name": "w", "handle": handle.handle, "timeout": 60, "count": 1}
    return here, handle, present(here.create("wait_condition", [Creation("wait-1", waits)])[0])


def test_pages_in_the_order_they_were_made(database: Database) -> None:
    with database.write() as tx:
        records.add(tx, [config(number) for number in range(5)])
        records.add(tx, [Record("other", "software_config", "q", "q", CONFIG)])
    with database.read() as tx:
        pages = [records.listed(tx, "software_config", "p", after=after, limit=2) for after in ("", "id-1", "id-3")]
        assert [[each.id for each in page] for page in pages] == [["id-0", "id-1"], ["id-2", "id-3"], ["id-4"]]
        assert records.count(tx, "software_config", "p") == 5
        assert records.get(tx, "other", project="p") is None


def test_a_token_makes_one_thing_however_often_it_is_asked_for(database: Database) -> None:
    here = cloud(database)
    intents = [Creation(f"key{number}-1", CONFIG) for number in range(3)]
    first = here.create("software_config", intents)
    again = here.create("software_config", [*intents, Creation("key9-1", CONFIG)])
    assert [each.handle for each in again[:3]] == [each.handle for each in first]
    found = here.find("software_config", ["key1-1", "none-1"])
    assert [each.presence for each in found] == [Presence.PRESENT, Presence.ABSENT]
    assert found[0].handle == first[1].handle


def test_the_same_token_from_two_sides_at_once(database: Database) -> None:
    barrier = threading.Barrier(4)

    def make(_: int) -> str:
        barrier.wait()
        return str(present(cloud(database).create("software_config", [Creation("key-1", CONFIG)])[0]).handle)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(make, range(4)))) == 1


def test_others_do_not_see_it(database: Database) -> None:
    handle = present(cloud(database).create("software_config", [Creation("key-1", CONFIG)])[0]).handle
    other = cloud(database, "q")
    assert other.observe("software_config", [handle])[0].presence is Presence.ABSENT
    assert other.delete("software_config", [handle])[0].presence is Presence.ABSENT
    assert other.resolve("software_config", [handle]) == [None]
    assert cloud(database).resolve("software_config", [handle, "x"]) == [handle, None]


def test_what_is_asked_for_a_resource_that_is_gone_is_refused(database: Database) -> None:
    (answer,) = cloud(database).create("signal_handle", [Creation("nobody-1", HANDLE)])
    assert isinstance(answer, Terminal)


def test_deleting_is_done_once_and_takes_signals_along(database: Database) -> None:
    here, handle, waits = handles(database)
    Signals(database, no_scaling, no_rollout).native("p", "signal_handle", handle.handle, None)
    for kind, each in (("wait_condition", waits), ("signal_handle", handle)):
        for _ in range(2):
            assert here.delete(kind, [each.handle])[0].presence is Presence.ABSENT
    with database.read() as tx:
        assert records.signals_of(tx, [handle.handle]) == {}


def test_signals_that_come_at_once_are_all_counted(database: Database) -> None:
    here, handle, waits = handles(database)
    reported = Signals(database, no_scaling, no_rollout)
    barrier = threading.Barrier(8)

    def send(_: int) -> None:
        barrier.wait()
        reported.native("p", "signal_handle", handle.handle, None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    (look,) = here.observe("wait_condition", [waits.handle])
    assert look.properties["heard"]["senders"] == 8
    with database.read() as tx:
        assert len({each.object["id"] for each in records.signals_of(tx, [handle.handle])[handle.handle]}) == 8


def test_a_signal_wakes_the_shard_that_waits_with_what_is_seen(database: Database) -> None:
    _, handle, waits = handles(database)
    with database.write() as tx:
        mine = schema.resource.c.key == "wait"
        kind = {"type": "OS::Heat::WaitCondition", "handle": waits.handle}
        tx.execute(update(schema.resource).where(mine).values(**kind))
        columns = {"key": "wait", "stack_id": "p-web", "resource_name": "wait", "handle": waits.handle}
        seen = {"presence": "present", "object": {}, "reason": "", "number": 2, "seen_at": 1.0}
        tx.execute(schema.resource_observed.insert().values(**columns, **seen))
        tx.execute(update(schema.shard).values(wake_at=None, wakes=0))
    Signals(database, no_scaling, no_rollout).native("p", "signal_handle", handle.handle, {"data": 1})
    with database.read() as tx:
        shard = tx.execute(schema.shard.select()).one()
        look = tx.execute(schema.resource_observed.select()).one()
    assert shard.wake_at is not None
    assert shard.wakes == 1
    assert look.number == 3
    assert look.object["heard"]["signals"] == 1
    assert look.object["heard"]["reached_at"] is not None


LARGE = 1_000_000


def test_one_more_signal_reads_none_of_those_before_however_large_they_are(database: Database) -> None:
    here, handle, waits = handles(database)
    reported = Signals(database, no_scaling, no_rollout)
    for number in range(4):
        reported.native("p", "signal_handle", handle.handle, {"id": f"large-{number}", "data": "x" * LARGE})
    with contents_read(database) as read:
        answer = reported.native("p", "signal_handle", handle.handle, {"id": "small", "data": 1})
        (look,) = here.observe("wait_condition", [waits.handle])
    assert read, "the signal itself is read"
    assert all("signal.seq > " in each or "DESC" in each for each in read), "newer ones, or the newest"
    assert answer.metadata.keys() == {"small"}, "the answer has no more than the signal where there is much"
    assert look.properties["heard"] | {"reached_at": 0} == {
        **{"signals": 5, "senders": 5, "wanted": 1, "reached_at": 0},
        "reasons": [f"Signal {number} received" for number in range(1, 6)],
    }


@contextmanager
def contents_read(database: Database) -> Iterator[list[str]]:
    """The statements that read contents of signals."""
    found: list[str] = []

    def note(_: Any, __: Any, quoted: str, *more: Any) -> None:
        statement = quoted.replace("`", "")  # MariaDB reserves the name of the table
        if statement.startswith("SELECT") and "signal.object" in statement:
            found.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield found
    event.remove(database.engine, "before_cursor_execute", note)


def test_the_signals_of_a_handle_have_a_limit_for_their_sum(database: Database) -> None:
    _, handle, _ = handles(database)
    reported = Signals(database, no_scaling, no_rollout)
    large = {"data": "x" * LARGE}
    for _ in range(4):
        reported.native("p", "signal_handle", handle.handle, large)
    with pytest.raises(Rejected, match=r"signals of a handle may have 4,194,304 bytes in all, not 5,\d{3},\d{3}: send"):
        reported.native("p", "signal_handle", handle.handle, large)
    reported.native("p", "signal_handle", handle.handle, {"data": "small"})
    with database.read() as tx:
        assert len(records.signals_of(tx, [handle.handle])[handle.handle]) == 5


def test_what_an_older_process_stored_is_counted(database: Database) -> None:
    here, handle, waits = handles(database)
    before = [{"id": each, "status": "SUCCESS", "reason": f"from {each}", "data": None} for each in "aab"]
    with database.write() as tx:
        records.add_signals(tx, handle.handle, [records.Signal(each, NOW + at) for at, each in enumerate(before)])
    (look,) = here.observe("wait_condition", [waits.handle])
    assert look.properties["heard"]["senders"] == 2
    assert look.properties["heard"]["reached_at"] == NOW
    Signals(database, no_scaling, no_rollout).native("p", "signal_handle", handle.handle, {"id": "a"})
    assert present(here.observe("wait_condition", [waits.handle])[0]).properties["heard"] == {
        **{"signals": 4, "senders": 2, "wanted": 1, "reached_at": NOW, "reasons": ["from a", "from b"]},
    }


def test_the_deployment_of_an_update_that_is_asked_for_twice_is_one(database: Database) -> None:
    owned(database, "deploy")
    here = cloud(database)
    spec = {"name": "d", "config": "", "server_id": "s", "input_values": {}, "actions": ["CREATE", "UPDATE"]}
    spec["transport"] = "CFN_SIGNAL"
    made = present(here.create("software_deployment", [Creation("deploy-1", spec)])[0])
    change = Change(made.handle, {**spec, "input_values": {"a": 1}}, ("input_values",))
    first = present(here.update("software_deployment", [change])[0])
    again = present(here.update("software_deployment", [change])[0])
    assert first.properties["config_id"] == again.properties["config_id"] != made.properties["config_id"]
    with database.read() as tx:
        assert records.count(tx, "software_config", "p") == 1


def test_records_know_no_operations(database: Database) -> None:
    here = cloud(database)
    spec = {"name": "c", "group": "script", "config": "true", "inputs": [], "outputs": [], "options": {}}
    made = present(here.create("software_config", [Creation("config-1", spec)])[0])
    (answer,) = here.operate("software_config", [Operation(made.handle, "start")])
    assert isinstance(answer, Terminal)
    (nothing,) = here.operate("software_config", [Operation("x", "start")])
    assert isinstance(nothing, Observation)
    assert nothing.presence is Presence.ABSENT
