"""Secrets in the database: encrypted cells beside plain ones, lost keys, and keys that change."""

import binascii
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Text, insert, literal, select, text, type_coerce, update
from tests.contract.store_cases import NOW, TIMEOUT_S, claim, resource

from homeostat.model.observed import Observation, Presence
from homeostat.model.world import Resource, Seen
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.builtin.records import Record
from homeostat.store.database import Database
from homeostat.store.encryption import encrypted_cells, key_rotation, keyfile
from homeostat.store.encryption.encrypted_cells import Keyring, Lost, Unreadable, key_id
from homeostat.store.encryption.keyfile import KeyFile
from homeostat.store.shards import observations, shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks import action_begin, revisions
from homeostat.store.stacks.action_begin import NewStack
from homeostat.store.stacks.contents import Content

OLD, NEW = Keyring([b"o" * 64]), Keyring([b"n" * 64, b"o" * 64])
SECRET = "correct horse battery staple"


@pytest.fixture
def db(database: Database) -> Database:
    database.use_keys(OLD)
    return database


def add(db: Database, name: str, *, secret: bool | None = None, value: str = SECRET) -> str:
    """A stack with a resource, its observation, a file and a record, all of which hold the value."""
    content = Content("template", {"default": value}, {"p": value}, {"e": value}, {"f": value})
    revision = revisions.encode(db, content, secret=secret)
    row = resource(f"k-{name}", name, handle=f"h-{name}", properties={"password": value}, metadata={"m": value})
    writes = Writes()
    writes.insert(row)
    writes.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, row.handle, {"value": value}, NOW), 2))
    writes.properties.append((row, {"password": value}))
    with db.write() as tx:
        action_begin.add(tx, NewStack(name, "p", name), revision, NOW, TIMEOUT_S)
        shard_state.record(tx, name, writes, NOW, secret=secret)
        records.add(tx, [Record(f"r-{name}", "config", "p", f"t-{name}", {"o": value}, secret={"key": value})])
    return name


def everything(db: Database) -> str:
    """All that the database holds, as it is stored."""
    dialect = db.engine.dialect.name
    with db.read() as tx:
        return "\n".join(
            str(row)
            for table in schema.metadata.sorted_tables
            if table.info.get("only", dialect) == dialect
            for row in tx.execute(select(*(type_coerce(each, Text) for each in table.c)))
        )


def read(db: Database, name: str) -> tuple[Content, Resource, Seen, Record | None]:
    with db.read() as tx:
        rows, seen = shard_state.load_rows(tx, name, 0)
        key = f"k-{name}"
        return revisions.content_of(tx, name, 1), rows[key], seen[key], records.get(tx, f"r-{name}")


def counts(db: Database) -> dict[str, int]:
    with db.read() as tx:
        return key_rotation.counts(tx)


def test_what_is_encrypted_is_read_back_and_found_nowhere(db: Database) -> None:
    add(db, "web")
    assert SECRET not in everything(db)
    content, row, seen, record = read(db, "web")
    assert content.parameters == {"p": SECRET}
    assert (content.template, content.environment) == ({"default": SECRET}, {"e": SECRET})
    assert content.files == {"f": SECRET}
    assert (row.properties, row.metadata) == ({"password": SECRET}, {"m": SECRET})
    assert seen.observation.properties == {"value": SECRET}
    assert record is not None
    assert (record.object, record.secret) == ({"o": SECRET}, {"key": SECRET})


def test_rows_of_stacks_without_secrets_are_plain(db: Database) -> None:
    add(db, "web", secret=False, value="harmless")
    with db.read() as tx:
        found = tx.execute(text("SELECT properties FROM resource")).scalar_one()
    assert found == '{"password":"harmless"}'
    assert counts(db).get(key_rotation.PLAIN, 0) == 0


def test_plain_rows_from_before_are_read_on(database: Database) -> None:
    add(database, "old")
    assert SECRET in everything(database)
    database.use_keys(OLD)
    add(database, "new")
    for name in ("old", "new"):
        assert read(database, name)[0].parameters == {"p": SECRET}


def test_text_that_looks_encrypted_stays_what_it_is(database: Database) -> None:
    for value in ("enc:v1:00000000:AAAA", "enc:plain:x", "enc:"):
        name = f"s{len(value)}"
        add(database, name, value=value)
        assert read(database, name)[0].files == {"f": value}


def test_a_cell_that_was_moved_or_changed_is_not_believed(db: Database) -> None:
    add(db, "web")
    with db.write() as tx:
        tx.execute(text("UPDATE record SET object = secret"))
    with db.read() as tx:
        found = records.get(tx, "r-web")
    assert found is not None
    with pytest.raises(Unreadable, match=r"record\.object cannot be read: the cell was changed"):
        found.object["o"]


def test_a_lost_key_stops_only_who_needs_it(db: Database) -> None:
    add(db, "theirs")
    db.use_keys(Keyring([b"x" * 64]))
    add(db, "ours")
    assert read(db, "ours")[1].properties == {"password": SECRET}
    with db.read() as tx:
        rows, _ = shard_state.load_rows(tx, "theirs", 0)
        watched = observations.by_handle(tx, ["h-ours", "h-theirs"], ["OS::Nova::Server"])
    lost: Any = rows["k-theirs"].properties
    assert [each.handle for each in watched] == ["h-ours"]
    assert isinstance(lost, Lost)
    for ask in (
        lambda: lost["password"],
        lambda: dict(lost),
        lambda: lost == {},
        lambda: bool(lost),
        lambda: list(lost),
    ):
        with pytest.raises(Unreadable, match=f"key {key_id(b'o' * 64)}, which is not there"):
            ask()
    with db.read() as tx:
        content = revisions.content_of(tx, "theirs", 1)
    assert content.files == {"f": SECRET}  # a user has given the same text again
    with pytest.raises(Unreadable):
        dict(content.parameters)


def test_what_cannot_be_read_is_never_written_over(db: Database) -> None:
    add(db, "web")
    db.use_keys(Keyring([b"x" * 64]))
    with db.read() as tx:
        rows, _ = shard_state.load_rows(tx, "web", 0)
    before = everything(db)
    writes = Writes()
    writes.intend(rows["k-web"])
    with pytest.raises((TypeError, Unreadable)), db.write() as tx:
        shard_state.record(tx, "web", writes, NOW)
    assert everything(db) == before


def test_the_time_since_when_a_property_is_so_survives_encrypting(db: Database) -> None:
    add(db, "web")
    with db.write() as tx:
        seen = [("k-web", "a", {"password": SECRET, "x": 1})]
        shard_state.encode_properties(tx.dialect, "web", seen, NOW + 60, True).store(tx)
    table = schema.resource_properties_observed
    with db.read() as tx:
        since = {row.prop_name: row.since for row in tx.execute(select(table.c.prop_name, table.c.since))}
    assert since == {"password": NOW, "x": NOW + 60}


def test_observers_encrypt_what_they_see_of_encrypted_rows(db: Database) -> None:
    add(db, "web")
    add(db, "open", secret=False, value="harmless")
    with db.read() as tx:
        watched = observations.by_handle(tx, ["h-web", "h-open"], ["OS::Nova::Server"])
    looks = [
        (each, Observation(Presence.PRESENT, each.handle, {"value": f"other {SECRET}"}, NOW + 1)) for each in watched
    ]
    with db.write() as tx:
        observations.record(tx, observations.encode(db, looks))
    with db.read() as tx:
        found = tx.execute(text("SELECT stack_id, object FROM resource_observed"))
        cells = {row.stack_id: row.object for row in found}
    assert encrypted_cells.is_encrypted(cells["web"])
    assert not encrypted_cells.is_encrypted(cells["open"])


# -- changing keys -----------------------------------------------------------------------------------------------------


def test_all_is_encrypted_again(database: Database) -> None:
    add(database, "plain")
    database.use_keys(OLD)
    for number in range(3):
        add(database, f"old{number}")
    database.use_keys(NEW)
    add(database, "new")
    add(database, "open", secret=False, value="harmless")
    before = counts(database)
    assert set(before) == {OLD.newest, NEW.newest, key_rotation.PLAIN}

    done = key_rotation.reencrypt(database)
    assert not done.lost
    assert done.cells == before[OLD.newest] + before[key_rotation.PLAIN]
    assert counts(database) == {NEW.newest: sum(before.values())}
    assert SECRET not in everything(database)
    database.use_keys(Keyring([b"n" * 64]))
    for name in ("plain", "old0", "new"):
        assert read(database, name)[1].properties == {"password": SECRET}
        assert read(database, name)[0].files == {"f": SECRET}
    assert key_rotation.reencrypt(database).cells == 0


def test_all_is_opened_for_good(db: Database) -> None:
    """To go back to a version that knows no keys."""
    add(db, "web")
    before = counts(db)
    db.use_keys(Keyring([b"o" * 64], encrypting=False))
    assert key_rotation.reencrypt(db).cells == sum(before.values())
    assert counts(db) == {key_rotation.PLAIN: sum(before.values())}
    db.use_keys(Keyring())
    assert read(db, "web")[1].properties == {"password": SECRET}


def test_a_write_meanwhile_wins(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add(db, "web")
    db.use_keys(NEW)
    batch = key_rotation._batch

    def written_behind(tx: Any, table: Any, *more: Any) -> Any:
        rows = batch(tx, table, *more)
        if table is schema.record and rows:
            other = threading.Thread(target=change)
            other.start()
            other.join()
        return rows

    def change() -> None:
        with db.write() as tx:
            tx.execute(update(schema.record).values(object={"o": "newer"}))

    monkeypatch.setattr(key_rotation, "_batch", written_behind)
    key_rotation.reencrypt(db)
    found = read(db, "web")[3]
    assert found is not None
    assert (found.object, found.secret) == ({"o": "newer"}, {"key": SECRET})


def test_a_row_that_is_copied_meanwhile_has_the_newest_key_in_the_end(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy has the key of its source, and stands before the row that is examined now."""
    for name in ("b", "c"):
        add(db, name)
    db.use_keys(NEW)
    monkeypatch.setattr(key_rotation, "BATCH", 1)
    table = schema.record
    copied: list[int] = []

    def copy(name: str, examined: int) -> None:
        if name == table.name and not copied:
            columns = [column for column in table.c if column.name not in ("id", "token")]
            source = select(literal("a"), literal("a"), *columns).order_by(table.c.id.desc()).limit(1)
            with db.write() as tx:
                tx.execute(insert(table).from_select(["id", "token", *(column.name for column in columns)], source))
            copied.append(examined)

    key_rotation.reencrypt(db, copy)
    assert copied == [1]
    assert set(counts(db)) == {NEW.newest}


def test_encrypting_again_does_not_disturb_who_works(db: Database) -> None:
    """Rows keep their version: a pass that has loaded them goes on."""
    add(db, "web")
    lease = claim(db, "web", at=NOW + 1)
    with db.read() as tx:
        rows, _ = shard_state.load_rows(tx, "web", 0)
    db.use_keys(NEW)
    key_rotation.reencrypt(db)
    writes = Writes()
    rows["k-web"].properties = {"password": "changed"}
    writes.intend(rows["k-web"])
    with db.write() as tx:
        shard_state.record(tx, lease.stack_id, writes, NOW)
    assert read(db, "web")[1].properties == {"password": "changed"}


def test_what_is_lost_is_named_and_left_alone(db: Database) -> None:
    add(db, "web")
    before = counts(db)
    db.use_keys(Keyring([b"x" * 64]))
    done = key_rotation.reencrypt(db)
    assert done.cells == 0
    assert sum(done.lost.values()) == before[OLD.newest]
    assert any("record.secret" in why for why in done.lost)
    assert counts(db) == before


# -- the file of keys --------------------------------------------------------------------------------------------------


def test_a_file_of_keys_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    made = keyfile.generate(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyFile(path).newest == made
    with pytest.raises(FileExistsError):
        keyfile.generate(path)
    newer = keyfile.add_key(path)
    assert KeyFile(path).ids == (newer, made)
    assert [each.name for each in tmp_path.iterdir()] == ["keys"]


def test_a_process_notices_new_keys(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "keys"
    old = keyfile.generate(path)
    running = KeyFile(path, lambda: now)
    newer = keyfile.add_key(path)
    elsewhere = KeyFile(path).encrypt("x", "t.c")
    now += 0.5
    assert running.decrypt(elsewhere, "t.c") == "x"  # a key that is missing is looked for at once
    assert running.newest == newer
    path.write_text("nonsense\n")
    now += keyfile.LOOK_S + 1
    assert running.encrypt("x", "t.c") == elsewhere  # what was read before goes on
    assert running.ids == (newer, old)


def test_keys_that_only_open(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    keyfile.generate(path)
    encrypted = KeyFile(path).encrypt("x", "t.c")
    path.write_text(f"plain\n{path.read_text()}")
    ring = KeyFile(path)
    assert ring.newest == ""
    assert ring.encrypt("x", "t.c") == "x"
    assert ring.decrypt(encrypted, "t.c") == "x"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no key"),
        ("plain\n", "holds no key"),
        ("# a remark\nhunter2\n", "line 2 is no key"),
        ("aGVsbG8=\n", "it has 5 bytes"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_showing_it(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        KeyFile(path)
    assert "hunter2" not in str(caught.value)


def test_equal_cells_are_decrypted_once_and_not_at_all_without_their_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = tmp_path / "keys", list[str]()

    def counted(encoded: str) -> bytes:
        opened.append(encoded)
        return binascii.a2b_base64(encoded)

    monkeypatch.setattr(encrypted_cells, "binascii", SimpleNamespace(a2b_base64=counted))
    keyfile.generate(path)
    ring = KeyFile(path, lambda: 0.0)
    cell, other = ring.encrypt("x", "t.c"), ring.encrypt("y", "t.c")
    assert [ring.decrypt(each, "t.c") for each in (cell, cell, other, other)] == ["x", "x", "y", "y"]
    assert len(opened) == 2
    with pytest.raises(Unreadable):
        ring.decrypt(other, "t.d")  # it was read from another column
    path.unlink()
    keyfile.generate(path)
    ring.reload()
    with pytest.raises(Unreadable):
        ring.decrypt(other, "t.c")
