"""Backups of a state directory, written beside a running service, and restored to an older moment."""

import contextlib
import io
import json
import shutil
import sqlite3
import tarfile
import threading
import urllib.request
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeostat.cli import backup, state_archive
from homeostat.cli.errors import Problem
from homeostat.cli.state_directory import State
from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Creation
from homeostat.store.database import sqlite_url
from tests.cli.conftest import Home
from tests.waiting import until

STACK = """
heat_template_version: wallaby
resources:
  disk: {type: OS::Cinder::Volume, properties: {size: 1}}
  web: {type: OS::Nova::Server, properties: {image: local, flavor: m1.nano}}
  attached: {type: OS::Cinder::VolumeAttachment,
             properties: {instance_uuid: {get_resource: web}, volume_id: {get_resource: disk}}}
outputs:
  web: {value: {get_resource: web}}
"""


class Keeper:
    """A service on the local cloud, of which backups are made."""

    def __init__(self, home: Home, directory: Path) -> None:
        self.home = home
        self.archive = directory / "backup.tar.gz"
        self.template = directory / "stack.yaml"
        self.template.write_text(STACK)

    def serve(self) -> None:
        self.home.run("serve", "--detach", "--port", "0")
        assert self.home.state.running() is not None

    def up(self, name: str) -> str:
        done = self.home.run("up", str(self.template), name)
        assert done.code == 0, done.err
        return self.server_of(name)

    def server_of(self, name: str) -> str:
        return self.home.run("show", name, "--output", "web").out.strip()

    def untracked(self) -> dict[str, dict[str, Any]]:
        found = self.home.run("untracked", "--json").json()["untracked"]
        return {each["id"]: each for each in found}


@pytest.fixture
def keeper(home: Home, tmp_path: Path) -> Keeper:
    return Keeper(home, tmp_path)


@pytest.mark.heavy
def test_what_was_made_since_a_backup_can_be_adopted_or_deleted(keeper: Keeper, tmp_path: Path) -> None:
    home = keeper.home
    keeper.serve()
    old = keeper.up("old")
    assert "homeostat untracked" not in home.run("doctor").out
    assert "database and keys and local cloud" in home.run("backup", str(keeper.archive)).out
    assert keeper.archive.stat().st_mode & 0o777 == 0o600
    new, other = keeper.up("new"), keeper.up("other")
    assert "stop it first" in home.run("restore", str(keeper.archive), "-y").err
    home.end_service()
    assert "allow it with -y" in home.run("restore", str(keeper.archive)).err
    restored = home.run("restore", str(keeper.archive), "-y", "--json").json()
    assert {new, other} < {each["id"] for each in restored["untracked"]}
    assert (Path(restored["kept"]) / "homeostat.db").exists()
    assert "homeostat untracked" in home.run("doctor").out

    keeper.serve()
    assert [each["stack_name"] for each in home.run("list", "--json").json()] == ["old"]
    assert keeper.server_of("old") == old
    document = tmp_path / "found.yaml"
    assert home.run("untracked", "--adoption-file", str(document)).code == 0
    assert "File exists" in home.run("untracked", "--adoption-file", str(document)).err
    mine = _of_one_server(yaml.safe_load(document.read_text()), new)
    document.write_text(yaml.safe_dump(mine))
    planned = home.run("plan", "--adopt-file", str(document), "again")
    assert "nothing would differ: 3 taken over" in planned.out, planned
    _adopt(home, mine, "again")
    assert keeper.untracked().keys() >= {other}
    assert new not in keeper.untracked()

    refused = home.run("untracked", "--delete", old, "-y")
    assert refused.code == 1
    assert "stacks have them" in refused.err
    assert "allow it with -y" in home.run("untracked", "--delete-all").err
    none = home.run("untracked", "--delete-all", "-y", "--in-project", "another", "--json").json()
    assert none == {"deleted": [], "failed": {}}
    assert home.run("untracked", "--delete-all", "-y", "--json").json()["failed"] == {}
    assert keeper.untracked() == {}
    assert home.run("show", "old").code == 0
    assert home.run("show", "again").code == 0


@pytest.mark.heavy
def test_another_database_and_an_id_of_several_things_delete_nothing(keeper: Keeper, tmp_path: Path) -> None:
    home, other = keeper.home, ("--database", sqlite_url(tmp_path / "other.db"))
    keeper.serve()
    keeper.up("shop")
    assert home.run("migrate", *other).code == 0
    refused = home.run("untracked", "--delete-all", "-y", *other)
    assert refused.code == 1
    assert "has never had the cloud" in refused.err
    (volume,) = made("default", home, "volume", {"size": 1})
    (key,) = made("another; echo", home, "keypair", {"name": volume.handle})
    assert key.handle == volume.handle, "a user has named it like the thing of another project"
    assert "--in-project 'another; echo'" in home.run("untracked", "--in-project", "another; echo").out
    assert "several things" in home.run("untracked", "--delete", volume.handle, "-y").err
    one = home.run("untracked", "--delete", key.handle, "--in-project", "another; echo", "-y", "--json").json()
    assert one["deleted"] == [key.handle]
    assert {each: found["kind"] for each, found in keeper.untracked().items()} == {volume.handle: "volume"}


def made(project: str, home: Home, kind: str, spec: dict[str, Any]) -> list[Any]:
    """What something else than this service has made in the cloud."""
    with contextlib.closing(LocalCloud(home.state.cloud)) as cloud:
        return cloud.of(project).create(kind, [Creation(f"by-hand-{kind}", spec)])


@pytest.mark.heavy
def test_a_backup_before_an_upgrade_has_the_cloud(keeper: Keeper) -> None:
    """The database is of an older version then, and tells nothing of it."""
    keeper.serve()
    keeper.up("shop")
    keeper.home.end_service()
    with sqlite3.connect(keeper.home.state.database) as connection:
        connection.execute("DROP TABLE alembic_version")
    done = keeper.home.run("backup", str(keeper.archive), "--json").json()
    assert done["manifest"]["cloud"] != ""
    with tarfile.open(keeper.archive) as tar:
        assert any(name.startswith("cloud/servers/") for name in tar.getnames())


def _of_one_server(document: dict[str, Any], server: str) -> dict[str, Any]:
    """Return the part of an adoption document that is about a server and its volume."""
    ids = {name: each["resource_id"] for name, each in document["resources"].items()}
    (own,) = [name for name, id in ids.items() if id == server]
    properties = {name: each["properties"] for name, each in document["template"]["resources"].items()}
    (attachment,) = [name for name, each in properties.items() if each.get("instance_uuid") == {"get_resource": own}]
    names = (own, attachment, properties[attachment]["volume_id"]["get_resource"])
    template = {name: document["template"]["resources"][name] for name in names}
    chosen = {name: document["resources"][name] for name in names}
    return {"template": {**document["template"], "resources": template}, "resources": chosen}


def _adopt(home: Home, document: dict[str, Any], name: str) -> None:
    body = json.dumps({"stack_name": name, "adopt_stack_data": json.dumps(document), "timeout_mins": 5}).encode()
    url = f"{home.running().url}/v1/default/stacks"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).close()
    until(lambda: "ADOPT_COMPLETE" in home.run("show", name).out)


@pytest.mark.heavy
def test_a_backup_begins_a_service_elsewhere(keeper: Keeper, tmp_path: Path) -> None:
    keeper.serve()
    keeper.up("shop")
    volumes = keeper.home.state.cloud / "volumes"
    (data,) = volumes.glob("*/data")
    (data / "till").write_text("42")
    assert keeper.home.run("backup", str(keeper.archive)).code == 0
    keeper.home.stop()  # the machine is lost

    elsewhere = Keeper(Home(tmp_path / "elsewhere" / "state", keeper.home.command), tmp_path)
    try:
        found = elsewhere.home.run("restore", str(keeper.archive))
        assert found.code == 0, found.err
        assert "is restored" in found.out
        elsewhere.serve()
        done = elsewhere.home.run("converge", "shop")
        assert done.code == 0, done.err
        (data,) = (elsewhere.home.state.cloud / "volumes").glob("*/data")
        assert (data / "till").read_text() == "42"
        checks = {each["name"]: each for each in elsewhere.home.run("doctor", "--json").json()["checks"]}
        assert checks["rows without things"]["found"] == "none"
    finally:
        elsewhere.home.stop()


COUNTS = "SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM other)"


def test_a_database_is_copied_as_of_one_moment(tmp_path: Path) -> None:
    source, stop = tmp_path / "source.db", threading.Event()
    with sqlite3.connect(source) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE one (x)")
        connection.execute("CREATE TABLE other (x)")
    written = threading.Event()

    def write() -> None:
        with sqlite3.connect(source) as own:
            while not stop.is_set():
                own.execute("INSERT INTO one VALUES (randomblob(2000))")
                own.execute("INSERT INTO other VALUES (1)")
                own.commit()
                written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(30)
        for number in range(5):
            copy = tmp_path / f"copy{number}.db"
            state_archive.copy_database(source, copy)
            with sqlite3.connect(copy) as connection:
                one, other = connection.execute(COUNTS).fetchone()
            assert one == other > 0
    finally:
        stop.set()
        writer.join()


# -- archives that are damaged, or hostile -----------------------------------------------------------------------------


Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", content: bytes = b"") -> Entry:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, link, len(content)
    return found, content


MANIFEST = entry(
    "manifest.json",
    content=b'{"version": "0", "created_at": "", "schema": [], "cloud": "", "keys": false, "format": 1}',
)
DATABASE = entry("homeostat.db", content=b"no database")
HOSTILE: dict[str, tuple[list[Entry], str]] = {
    "no manifest": ([DATABASE], "no archive of"),
    "another format": ([entry("manifest.json", content=b'{"format": 2, "version": "9"}')], "use version 9"),
    "a manifest that is none": ([entry("manifest.json", content=b"[]")], "no archive of"),
    "a manifest that is no JSON": ([entry("manifest.json", content=b"{")], "cannot be read"),
    "no database": ([MANIFEST, entry("keys", content=b"x")], "no database"),
    "a database that is none": ([MANIFEST, DATABASE], "damaged"),
    "an absolute name": ([MANIFEST, DATABASE, entry("/etc/homeostat", content=b"x")], "no part of"),
    "a way out": ([MANIFEST, DATABASE, entry("cloud/../../out", content=b"x")], "no part of"),
    "another file": ([MANIFEST, DATABASE, entry("service.lock", content=b"x")], "no part of"),
    "a device": ([MANIFEST, DATABASE, entry("cloud/device", tarfile.CHRTYPE)], "neither a file"),
    "a hard link": ([MANIFEST, DATABASE, entry("cloud/hard", tarfile.LNKTYPE, "/etc/passwd")], "neither a file"),
    "a file twice": ([MANIFEST, DATABASE, DATABASE], "cannot be read"),
}


def archive_of(entries: list[Entry]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for found, content in entries:
            tar.addfile(found, io.BytesIO(content))
    return held.getvalue()


def restoring(root: Path, archive: Path) -> Namespace:
    return Namespace(
        state_dir=root, file=archive, database="", encryption_keys="", yes=True, json=True, without_keys=False
    )


@pytest.mark.parametrize(("entries", "words"), HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_is_none_changes_nothing(tmp_path: Path, entries: list[Entry], words: str) -> None:
    archive, root = tmp_path / "archive", tmp_path / "state"
    archive.write_bytes(archive_of(entries))
    with pytest.raises(Problem, match=words):
        backup.restore(restoring(root, archive))
    assert {each.name for each in root.iterdir()} == {"service.lock"}
    assert {each.name for each in tmp_path.iterdir()} == {"archive", "state"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = entry("cloud/door", tarfile.SYMTYPE, str(outside))
    through = entry("cloud/door/file", content=b"x")
    for entries in ([MANIFEST, DATABASE, link, through], [MANIFEST, DATABASE, through, link]):
        target = tmp_path / f"target{len(list(tmp_path.iterdir()))}"
        with pytest.raises(Problem, match="cannot be read"):
            state_archive.unpack(io.BytesIO(archive_of(entries)), target)
    assert list(outside.iterdir()) == []


@pytest.fixture
def archive(tmp_path: Path, home: Home) -> Path:
    """A backup of a service that never ran."""
    assert home.run("migrate").code == 0
    assert home.run("keys", "generate").code == 0
    found = tmp_path / "backup.tar.gz"
    assert home.run("backup", str(found)).code == 0
    return found


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_part_of_an_archive_changes_nothing(tmp_path: Path, archive: Path, share: float) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(Problem):
        backup.restore(restoring(tmp_path / "new", archive))
    assert not (tmp_path / "new" / "homeostat.db").exists()


def test_a_service_does_not_start_on_half_a_restore(home: Home, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = home.state.keys.read_bytes()
    moves: list[str] = []
    genuine: Callable[..., Any] = shutil.move

    def dies(*paths: Any) -> None:
        if len(moves) == 2:
            raise KeyboardInterrupt
        moves.append(str(paths))
        genuine(*paths)

    monkeypatch.setattr(shutil, "move", dies)
    with pytest.raises(KeyboardInterrupt):
        backup.restore(restoring(home.root, archive))
    monkeypatch.undo()
    with pytest.raises(Problem, match="run `homeostat restore` once more"), State(home.root).claim():
        pass
    assert "run `homeostat restore` once more" in home.run("serve", "--detach", "--port", "0").err
    assert backup.restore(restoring(home.root, archive)) == 0
    with State(home.root).claim():
        assert home.state.keys.read_bytes() == before
    assert home.run("keys", "status").code == 0
    assert not home.state.restoring.exists()


def test_what_a_backup_needs(home: Home, archive: Path, tmp_path: Path) -> None:
    assert "already" in home.run("backup", str(archive)).err
    url = "postgresql+psycopg://nowhere.invalid/homeostat"
    assert "pg_dump" in home.run("backup", str(tmp_path / "other"), "--database", url).err
    assert "pg_dump" in home.run("restore", str(archive), "-y", "--database", url).err
    assert "there is no database" in Home(tmp_path / "none", home.command).run("backup", str(tmp_path / "other")).err
    apart = tmp_path / "apart.tar.gz"
    assert home.run("backup", str(apart), "--without-keys", "--json").json()["manifest"]["keys"] is False
    with tarfile.open(apart) as tar:
        assert "keys" not in tar.getnames()
    assert "cannot be written" in home.run("backup", str(tmp_path / "no" / "where")).err
