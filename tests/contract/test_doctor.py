"""What the doctor finds, on SQLite and on PostgreSQL; everything it looks at is real."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import make_url, text, update
from tests.contract.local_things import made
from tests.contract.store_cases import LONG_S, add_stack, claim, come_to_rest, resource
from tests.databases import on_a_server

from homeostat.cli import reports
from homeostat.cli.doctor import examine
from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Creation
from homeostat.doctor import database as checks_of_database
from homeostat.doctor.checks import Check, Level
from homeostat.model.status import Action, Status
from homeostat.store import schema
from homeostat.store.builtin import event_sinks
from homeostat.store.database import Database, sqlite_url
from homeostat.store.encryption.encrypted_cells import NO_KEYS, Keyring, key_id
from homeostat.store.operation import workers
from homeostat.store.operation.workers import Worker
from homeostat.store.shards import leases, retained, shard_state
from homeostat.store.shards.orphans import Orphan, add
from homeostat.store.shards.retained import Retained
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import locks


def checks(db: Database, cloud: Path | None = None) -> dict[str, Check]:
    return {check.name: check for check in examine(db, cloud)}


def findings(db: Database, cloud: Path | None = None) -> dict[str, Level]:
    """But for the board: on a busy machine shards wait for a worker."""
    found = checks(db, cloud)
    return {name: check.level for name, check in found.items() if check.level is not Level.OK and name != "board"}


OLD, NEW = Keyring([b"o" * 64]), Keyring([b"n" * 64, b"o" * 64])


@pytest.fixture
def database(database: Database) -> Database:
    database.use_keys(OLD)
    return database


def asleep(db: Database, name: str = "web") -> str:
    """A stack with nothing to do."""
    stack_id = add_stack(db, name, at=time.time())
    lease = claim(db, stack_id, at=time.time() + 1)
    with db.write() as tx:
        leases.release(tx, lease, lease.wakes, None)
    return stack_id


def test_a_service_at_rest_is_well(database: Database, tmp_path: Path) -> None:
    asleep(database)
    found = checks(database, tmp_path / "cloud")
    assert [name for name, check in found.items() if check.level is not Level.OK] == []
    assert not any(check.remedy for check in found.values())
    assert found["rows"].found == "1 stacks, 0 deleted ones, 1 events"
    assert not (tmp_path / "cloud").exists(), "looking makes nothing"


# -- the database ------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_an_empty_database_is_not_taken_for_one_of_this_version(database_url: str) -> None:
    db = Database(database_url, time.time)
    if not db.missing_file:
        assert findings(db) == {"schema": Level.FAIL}
        assert "nothing" in checks(db)["schema"].found
    db.migrate()
    assert findings(db) == {}
    with db.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '0100'"))
    assert "start the service" in checks(db)["schema"].remedy
    db.close()


READ_ONLY = {
    "postgresql": ("options=-cdefault_transaction_read_only%3Don", "read-only transaction"),
    "mysql": ("init_command=SET+SESSION+TRANSACTION+READ+ONLY", "READ ONLY transaction"),
}
"""How a server is asked to take no changes, and what it says then."""


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param(lambda path: sqlite_url(path / "none.db"), "none.db", id="no file"),
        pytest.param(lambda path: f"postgresql+psycopg://nobody@/x?host={path}", "does not answer", id="no server"),
    ],
)
def test_a_database_that_is_not_there(tmp_path: Path, url: Callable[[Path], str], words: str) -> None:
    found = checks(Database(url(tmp_path), time.time))
    assert {name for name, check in found.items() if check.level is not Level.OK} == {"database"}
    assert words in found["database"].found
    assert "--database" in found["database"].remedy
    assert list(tmp_path.iterdir()) == []


@on_a_server
def test_a_database_that_takes_no_changes(server_database_url: str) -> None:
    Database(server_database_url, time.time).migrate()
    option, words = READ_ONLY[make_url(server_database_url).get_backend_name()]
    standby = Database(f"{server_database_url}&{option}", time.time)
    found = checks(standby)["writing"]
    assert found.level is Level.FAIL
    assert words in found.found
    standby.close()


@on_a_server
def test_clocks_that_disagree(server_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(server_database_url, time.time)
    db.migrate()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 90.0)
    found = checks(db)["clocks"]
    assert (found.level, found.found) == (Level.WARN, "the database is 90.0 s ahead of this machine")
    db.close()


def register(db: Database, name: str, silent_s: float = -LONG_S) -> None:
    now = time.time()
    with db.write() as tx:
        workers.report(tx, Worker(name, "host", 1, "1.0", "sql", now - 60, now - silent_s))


# -- work --------------------------------------------------------------------------------------------------------------


def test_work_without_workers(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_of_database, "LAG_S", LONG_S)
    add_stack(database, "fresh", at=time.time())
    assert checks(database)["board"].level is Level.OK
    add_stack(database, "old", at=time.time() - 2 * LONG_S)
    assert checks(database)["board"].level is Level.WARN
    assert checks(database)["board"].found.startswith("2 shards wait for a worker, one of them for 6")


def test_work_in_hand_does_not_wait(database: Database) -> None:
    stack_id = add_stack(database, at=time.time() - 60)
    claim(database, stack_id, owner="host:1", at=time.time(), lease_s=LONG_S)
    register(database, "host:1")
    register(database, "host:2")
    assert findings(database) == {}
    found = checks(database)["workers"].found
    assert found == "host:1 (1.0, board sql) owns 1 shards; host:2 (1.0, board sql) owns 0 shards"


def test_a_worker_that_died_is_named(database: Database) -> None:
    register(database, "host:1", silent_s=200.0)
    register(database, "host:2")
    assert findings(database) == {"workers": Level.WARN}
    assert checks(database)["workers"].found.startswith("died: host:1, 2")


def test_workers_that_died_are_acknowledged(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    register(database, "dead", silent_s=3600.0)
    assert "dead" in checks(database)["workers"].found
    register(database, "alive")
    reports.doctor(database, None, as_json=True, acknowledge=True)
    capsys.readouterr()
    found = checks(database)["workers"]
    assert (found.level, found.found.split()[0]) == (Level.OK, "alive")


def test_a_shard_set_aside_is_shown_with_its_reason(database: Database) -> None:
    stack_id = add_stack(database, at=time.time())
    lease = claim(database, stack_id, at=time.time() + 1)
    with database.write() as tx:
        leases.set_aside(tx, lease, "KeyError('x')", time.time() + LONG_S)
    assert findings(database) == {"bugs": Level.FAIL}
    assert "web (p-web) shard 0: KeyError('x')" in checks(database)["bugs"].found


def test_a_sink_that_cannot_be_reached(database: Database) -> None:
    stack_id = asleep(database)
    with database.write() as tx:
        event_sinks.set_sinks(
            tx, stack_id, [{"type": "webhook", "url": "https://hooks.example.com/", "secret": "word"}]
        )
    assert findings(database) == {}
    failing_since = time.time() - 60
    with database.write() as tx:
        tx.execute(update(schema.event_sink).values(failures=3, failing_since=failing_since, reason="no answer"))
    assert findings(database) == {"event sinks": Level.WARN}
    found = checks(database)["event sinks"].found
    seconds = re.fullmatch(r"not delivered: webhook of web \(p-web\) for (\d+) s: no answer", found)
    assert seconds is not None, found
    assert 60 <= int(seconds[1]) <= time.time() - failing_since + 1
    assert "word" not in found


def test_locks(database: Database) -> None:
    stack_id = asleep(database)
    with database.write() as tx:
        come_to_rest(tx, stack_id, 0, 1)
        locks.lock(tx, stack_id, {"level": "all", "owner": "ann", "reason": "disks"}, lambda _: True, LONG_S)
    assert checks(database)["locks"].found == "web (p-web) is locked by ann (disks)"
    assert findings(database) == {}
    with database.write() as tx:
        failed = {"status": "FAILED", "reason": "srv: the cloud says no"}
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(failed))
    assert findings(database) == {"locks": Level.WARN}
    assert checks(database)["locks"].found == "half done: web (p-web), LOCK_FAILED: srv: the cloud says no"


def test_a_stack_past_its_deadline(database: Database) -> None:
    stack_id = asleep(database)
    for deadline, expected in ((time.time() + LONG_S, {}), (time.time() - 60, {"deadlines": Level.WARN})):
        with database.write() as tx:
            tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(deadline=deadline))
        assert findings(database) == expected


def test_many_deleted_stacks_call_for_a_purge(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    stack_id = asleep(database)
    assert findings(database) == {}
    with database.write() as tx:
        tx.execute(update(schema.stack).where(schema.stack.c.id == stack_id).values(deleted_at=1.0))
    monkeypatch.setattr(checks_of_database, "DELETED_MAX", 0)
    assert findings(database) == {"rows": Level.WARN}
    assert "homeostat purge" in checks(database)["rows"].remedy


# -- the local cloud ---------------------------------------------------------------------------------------------------


def steady_row(db: Database, stack_id: str, handle: str, token: str = "key-1") -> None:
    row = resource("key", stack_id, "disk", handle=handle, token=token, status=Status.COMPLETE, action=Action.CREATE)
    row.type = "OS::Cinder::Volume"
    with db.write() as tx:
        writes = Writes()
        writes.insert(row)
        shard_state.record(tx, stack_id, writes, time.time())


def test_things_and_rows_that_lack_each_other(database: Database, tmp_path: Path) -> None:
    root = tmp_path / "cloud"
    cloud = LocalCloud(root)
    stack_id = asleep(database)
    volume = made(cloud, "volume", size=1)
    assert findings(database, root) == {"things without rows": Level.WARN}
    steady_row(database, stack_id, volume.handle)
    assert findings(database, root) == {}
    cloud.delete("volume", [volume.handle])
    assert findings(database, root) == {"rows without things": Level.WARN}
    assert checks(database, root)["rows without things"].found == f"disk of stack {stack_id}"
    cloud.destroy()


def test_what_was_kept_is_no_leftover(database: Database, tmp_path: Path) -> None:
    root = tmp_path / "cloud"
    cloud = LocalCloud(root)
    asleep(database)
    kept, left = (made(cloud, "volume", token, size=1).handle for token in ("k-1", "k-2"))
    thing = Retained("p", "volume", kept, "id", "web", "disk", "kept, as its deletion policy says")
    with database.write() as tx:
        retained.add(tx, [thing, replace(thing, handle="of another cloud")], time.time())
        retained.add(tx, [replace(thing, name="data")], time.time())
    found = checks(database, root)
    shown = f"volume {kept} (data of stack web: kept, as its deletion policy says)"
    assert (found["things that were kept"].level, found["things that were kept"].found) == (Level.OK, shown)
    assert found["things without rows"].found == f"volume {left}"
    cloud.destroy()


def test_a_thing_that_is_looked_for_already_is_not_reported(database: Database, tmp_path: Path) -> None:
    cloud = LocalCloud(tmp_path / "cloud")
    cloud.create("volume", [Creation("key-1", {"size": 1})])
    with database.write() as tx:
        add(tx, [Orphan("key-1", "volume", "p")], time.time())
    assert findings(database, tmp_path / "cloud") == {}
    cloud.destroy()


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_what_is_not_encrypted_with_the_newest_key_is_reported(database: Database) -> None:
    database.use_keys(NO_KEYS)
    asleep(database, "plain")
    found = checks(database)["secrets"]
    assert (found.level, found.found) == (Level.WARN, "3 cells are plain, and new ones are, too")
    database.use_keys(OLD)
    asleep(database, "old")
    database.use_keys(NEW)
    asleep(database, "new")
    found = checks(database)["secrets"]
    assert found.level is Level.WARN
    assert found.found == f"3 cells are encrypted with key {NEW.newest}, 3 with older keys, 3 are plain"
    assert "rotate --same-key" in found.remedy


def test_lost_keys_are_reported(database: Database) -> None:
    asleep(database)
    database.use_keys(Keyring([b"x" * 64]))
    found = checks(database)["secrets"]
    assert found.level is Level.FAIL
    assert found.found == f"cannot be read: 3 cells need key {key_id(b'o' * 64)}"
