"""What is away is not absent: a local cloud answers "there is no such thing" only where it could really look."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import select
from tests.component.running import Service

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.local import tree as trees
from homeostat.clouds.local.cloud import NoLedger
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.local.watcher import Watcher
from homeostat.clouds.port import Change, ChangeNotice, Cloud, Creation, Operation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import HomeostatError, Transient, Uncertain
from homeostat.model.observed import Observation, Presence
from homeostat.store import schema

VOLUME = "OS::Cinder::Volume"
KINDS = ("network", "volume", "security_group", "volume_snapshot")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cloud"


def made(cloud: Cloud, kind: str, token: str, **spec: Any) -> str:
    (answer,) = cloud.create(kind, [Creation(token, spec)])
    assert isinstance(answer, Observation), repr(answer)
    return answer.handle


class Known(NoLedger):
    def __init__(self, identity: str = "") -> None:
        self._identity = identity

    def agree(self, identity: str) -> str:
        self._identity = self._identity or identity
        return self._identity


def volume(cloud: Cloud, token: str = "token") -> str:
    return made(cloud, "volume", token, name="disk", size=1)


def presence(cloud: Cloud, kind: str, handle: str) -> Presence:
    return cloud.observe(kind, [handle])[0].presence


def moved(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def unmounted(root: Path) -> None:
    moved(root)
    root.mkdir()


def another(root: Path) -> None:
    moved(root)
    LocalCloud(root).close()


def a_file(root: Path) -> None:
    moved(root)
    root.touch()


def half_mounted(root: Path) -> None:
    """What is below the root is there, what the things lie in is not."""
    root.with_name("elsewhere").mkdir()
    for each in root.iterdir():
        if each.is_dir():
            each.rename(root.with_name("elsewhere") / each.name)
            each.mkdir()


def nothing_mounted_below(root: Path) -> None:
    half_mounted(root)
    for each in root.iterdir():
        if each.is_dir():
            each.rmdir()


def back(root: Path) -> None:
    elsewhere = root.with_name("elsewhere")
    if (elsewhere / ".cloud").exists():
        if root.is_file():
            root.unlink()
        elif root.exists():
            root.rename(root.with_name("was-in-its-place"))
        elsewhere.rename(root)
        return
    for each in elsewhere.iterdir():
        if (root / each.name).exists():
            (root / each.name).rmdir()
        each.rename(root / each.name)


WAYS = [moved, unmounted, another, a_file, half_mounted, nothing_mounted_below]


@pytest.mark.parametrize("go", WAYS, ids=lambda go: str(go.__name__))
def test_nothing_is_absent_while_the_directory_is_away(
    cloud: LocalCloud, root: Path, go: Callable[[Path], None]
) -> None:
    disk = volume(cloud)
    go(root)
    before = sorted(root.rglob("*")) if root.is_dir() else []
    for kind in KINDS:
        for look in (cloud.observe, cloud.find):
            with pytest.raises(Transient, match="is away"):
                look(kind, [disk])
    with pytest.raises(Transient, match="local cloud"):
        cloud.resolve("image", ["of-my-own"])
    with pytest.raises(Transient, match="is away"):
        cloud.resolve("volume", [disk])
    for act in (
        lambda: cloud.create("volume", [Creation("other", {"size": 1})]),
        lambda: cloud.update("volume", [Change(disk, {"size": 2})]),
        lambda: cloud.delete("volume", [disk]),
        lambda: cloud.operate("volume", [Operation(disk, "snapshot", {"token": "t"})]),
    ):
        assert not_done(act)
    after = sorted(root.rglob("*")) if root.is_dir() else []
    assert [path for path in after if path.name not in (".lock", ".trash")] == [
        path for path in before if path.name not in (".lock", ".trash")
    ], "nothing is made in the place of what is away"
    back(root)
    (seen,) = cloud.observe("volume", [disk])
    assert (seen.presence, seen.properties["size"]) == (Presence.PRESENT, 1)
    assert cloud.find("volume", ["token"])[0].handle == disk
    assert cloud.find("volume", ["other"])[0].presence is Presence.ABSENT


def not_done(act: Callable[[], list[Observation | HomeostatError]]) -> bool:
    try:
        answers = act()
    except (Transient, Uncertain):
        return True
    return all(isinstance(answer, Transient | Uncertain) for answer in answers)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN])
@pytest.mark.parametrize("what", ["the directory", "the mark", "the record"])
def test_an_error_of_the_file_system_is_no_answer(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch, number: int, what: str
) -> None:
    disk, other = volume(cloud), volume(cloud, "other")
    fails = {"the directory": "/volumes", "the mark": ".cloud", "the record": f"{disk}/thing.json"}[what]

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            if str(path).endswith(fails):
                raise OSError(number, os.strerror(number))
            return real(path, *arguments, **named)

        return call

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", failing(os.open))
        broken.setattr(os, "stat", failing(os.stat))
        if what == "the record":
            seen = cloud.observe("volume", [disk, other])
            assert [each.presence for each in seen] == [Presence.UNKNOWN, Presence.PRESENT]
            assert os.strerror(number) in seen[0].reason
        else:
            with pytest.raises(Transient, match=os.strerror(number)):
                cloud.observe("volume", [disk, other])
        with pytest.raises(Transient):
            cloud.find("volume", ["token"])
        assert not_done(lambda: cloud.delete("volume", [disk]))
    assert presence(cloud, "volume", disk) is Presence.PRESENT


@pytest.mark.parametrize("text", ["", '{"kind": "volu', "[]", '{"other": 1}', "\udc80"])
def test_a_torn_record_is_no_answer_and_names_the_file(cloud: LocalCloud, root: Path, text: str) -> None:
    disk, other = volume(cloud), volume(cloud, "other")
    record = root / "volumes" / disk / "thing.json"
    whole = record.read_bytes()
    record.write_bytes(text.encode(errors="surrogateescape"))
    torn, well = cloud.observe("volume", [disk, other])
    assert (torn.presence, well.presence) == (Presence.UNKNOWN, Presence.PRESENT)
    assert str(record) in torn.reason
    assert "remove" in torn.reason
    with pytest.raises(Transient):
        cloud.find("volume", ["token"])
    record.write_bytes(whole)
    assert presence(cloud, "volume", disk) is Presence.PRESENT


def test_a_thing_without_its_record_is_not_absent(cloud: LocalCloud, root: Path) -> None:
    disk = volume(cloud)
    record = root / "volumes" / disk / "thing.json"
    record.rename(root / "kept")
    assert presence(cloud, "volume", disk) is Presence.UNKNOWN
    (root / "kept").rename(record)
    assert presence(cloud, "volume", disk) is Presence.PRESENT


def test_a_file_in_the_place_of_a_thing_is_no_answer(cloud: LocalCloud, root: Path) -> None:
    disk = volume(cloud)
    (root / "volumes" / disk).rename(root / "kept")
    (root / "volumes" / disk).touch()
    assert presence(cloud, "volume", disk) is Presence.UNKNOWN


@pytest.mark.parametrize("left", [[], ["thing.json.0a1b2c3d.new"]])
def test_what_was_never_made_whole_is_absent_and_made_again(cloud: LocalCloud, root: Path, left: list[str]) -> None:
    disk = volume(cloud)
    cloud.delete("volume", [disk])
    (root / "volumes" / disk).mkdir()
    for name in left:
        (root / "volumes" / disk / name).touch()
    assert cloud.find("volume", ["token"])[0].presence is Presence.ABSENT
    assert volume(cloud) == disk


@pytest.mark.parametrize("go", WAYS, ids=lambda go: str(go.__name__))
def test_a_service_that_starts_while_the_directory_is_away_begins_no_other_cloud(
    root: Path, go: Callable[[Path], None]
) -> None:
    ledger = Known()
    with contextlib.closing(LocalCloud(root, ledger)) as first:
        disk = volume(first)
    go(root)
    with contextlib.closing(LocalCloud(root, ledger)) as second:
        with pytest.raises(Transient, match="away"):
            second.observe("volume", [disk])
        back(root)
        assert presence(second, "volume", disk) is Presence.PRESENT


def test_a_cloud_that_is_lost_for_good_is_begun_anew_as_the_message_says(root: Path) -> None:
    with contextlib.closing(LocalCloud(root)) as first:
        disk = volume(first)
        identity = (root / ".cloud").read_text().split()[0]
        moved(root)
        with pytest.raises(Transient, match=f"mkdir -p {root}; echo {identity} > {root}/.cloud"):
            first.observe("volume", [disk])
    root.mkdir()
    (root / ".cloud").write_text(f"{identity}\n")
    with contextlib.closing(LocalCloud(root, Known(identity))) as second:
        assert presence(second, "volume", disk) is Presence.ABSENT
        assert presence(second, "volume", volume(second)) is Presence.PRESENT


def test_a_directory_of_before_the_mark_is_taken_as_it_is(root: Path) -> None:
    with contextlib.closing(LocalCloud(root)) as first:
        disk = volume(first)
    for mark in root.rglob(".cloud"):
        mark.unlink()
    with contextlib.closing(LocalCloud(root)) as second:
        assert presence(second, "volume", disk) is Presence.PRESENT


def test_no_change_is_reported_while_the_directory_is_away(cloud: LocalCloud, root: Path) -> None:
    disk = volume(cloud)
    tree = trees.Tree(root)
    tree.recognise()
    watcher = Watcher(tree, sorted(cloud.kinds))
    watcher.look()
    moved(root)
    assert watcher.look() == []
    back(root)
    assert watcher.look() == []
    cloud.update("volume", [Change(disk, {"name": "renamed", "size": 1})])
    assert watcher.look() == [ChangeNotice("volume", disk)]


def blind(service: Service) -> str:
    """Why the only shard cannot be looked at."""
    with service.db.read() as tx:
        return str(tx.execute(select(schema.shard.c.blind)).scalar_one())


def test_what_comes_back_is_kept(root: Path) -> None:
    """The whole loop, and the cloud's directory away for 25 seconds: nothing is made in place of what is there."""
    cloud = LocalCloud(root)
    service = Service(cloud=lambda clock: cast(SimulatedCloud, cloud))
    stack_id = service.create(
        {"net": {"type": "OS::Neutron::Net"}, "disk": {"type": VOLUME, "properties": {"size": 1}}}
    )
    service.rest()
    before = {each.name: each.handle for each in service.rows(stack_id)}
    story = service.story(stack_id)
    moved(root)
    for _ in range(25):
        service.observer.notice([ChangeNotice("volume", before["disk"]), ChangeNotice("network", before["net"])])
        service.live(1.0)
    service.live(70.0)
    assert "is away" in blind(service)
    back(root)
    service.live(130.0)
    assert {each.name: each.handle for each in service.rows(stack_id)} == before
    assert service.story(stack_id) == story
    assert blind(service) == ""
    assert cloud.handles("volume") == [before["disk"]]
    cloud.close()


@pytest.mark.heavy
def test_a_full_disk_is_asked_again_soon_however_long_it_was_full(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be made again waits for space, and not for a delay that has grown meanwhile."""
    cloud = LocalCloud(root)
    full = True

    def store(look: TreeSnapshot, record: Any) -> None:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kept(look, record)

    kept = TreeSnapshot.store
    monkeypatch.setattr(TreeSnapshot, "store", store)
    service = Service(cloud=lambda _clock: cast(SimulatedCloud, cloud))
    stack_id = service.create({"disk": {"type": VOLUME, "properties": {"size": 1}}}, timeout_mins=60)
    service.live(600)
    assert service.state(stack_id) == "CREATE_IN_PROGRESS"
    full = False
    service.live(3)
    assert service.state(stack_id) == "CREATE_COMPLETE"
