"""What every adapter of the cloud port must do when asked for a snapshot, and what the local cloud keeps in one."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from homeostat.clouds.local import LocalCloud, inventory
from homeostat.clouds.local.tree import Tree
from homeostat.clouds.port import Answer, Change, Cloud, Creation, Operation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import snapshots_of

SPECS: dict[str, dict[str, Any]] = {
    "volume": {"name": "disk", "size": 1},
    "server": {"name": "web", "image": "cirros", "flavor": "m1.tiny"},
}


@dataclass
class Subject:
    """A cloud under test. rest — lets time pass, of whichever sort the cloud goes by."""

    cloud: Cloud
    rest: Callable[[float], None]

    def make(self, kind: str, token: str = "t-1", **fields: Any) -> str:
        handle = present(self.cloud.create(kind, [Creation(token, {**SPECS[kind], **fields})])[0]).handle
        self.until(kind, handle, lambda seen: seen.properties["status"] not in ("building", "creating"))
        return handle

    def snapshot(self, kind: str, handle: str, token: str) -> Answer:
        return self.cloud.operate(kind, [Operation(handle, "snapshot", {"token": token, "name": "kept"})])[0]

    def taken(self, kind: str, handle: str, token: str) -> dict[str, Any]:
        """Ask, and wait until it is complete or failed."""
        present(self.snapshot(kind, handle, token))
        self.until(kind, handle, lambda seen: status_of(seen, token) in ("available", "error"))
        return snapshot_in(self.look(kind, handle), token)

    def look(self, kind: str, handle: str) -> Observation:
        return self.cloud.observe(kind, [handle])[0]

    def until(self, kind: str, handle: str, fits: Callable[[Observation], bool]) -> Observation:
        def fitting() -> Observation | None:
            seen = self.look(kind, handle)
            return seen if fits(seen) else None

        return until(fitting, f"{kind} {handle} to fit", self.rest)


def present(answer: Answer) -> Observation:
    assert isinstance(answer, Observation), answer
    assert answer.present
    return answer


def snapshot_in(seen: Observation, token: str) -> dict[str, Any]:
    return next((each for each in seen.properties.get("snapshots", ()) if each["token"] == token), {})


def status_of(seen: Observation, token: str) -> str:
    return str(snapshot_in(seen, token).get("status", ""))


def local(path: Path) -> Iterator[Subject]:
    cloud = LocalCloud(path / "cloud")
    yield Subject(cloud, time.sleep)
    cloud.destroy()


def simulated(path: Path) -> Iterator[Subject]:
    now = [1_000_000.0]

    def rest(seconds: float) -> None:
        now[0] += seconds

    yield Subject(SimulatedCloud(lambda: now[0], CloudBehaviour(build_s=0.1, snapshot_s=0.1)), rest)


ADAPTERS: dict[str, Callable[[Path], Iterator[Subject]]] = {"local": local, "simulated": simulated}


@pytest.fixture(params=sorted(ADAPTERS))
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    yield from ADAPTERS[request.param](tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Subject]:
    yield from local(tmp_path)


@pytest.mark.parametrize("kind", sorted(SPECS))
class TestSnapshot:
    def test_the_thing_lists_its_snapshot(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        assert "snapshots" not in subject.look(kind, handle).properties
        snapshot = subject.taken(kind, handle, "t-2")
        assert (snapshot["token"], snapshot["name"], snapshot["status"]) == ("t-2", "kept", "available")
        assert snapshot["id"] not in ("", handle)

    def test_asked_for_twice_it_is_made_once(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        first = subject.taken(kind, handle, "t-2")
        assert subject.taken(kind, handle, "t-2") == first
        assert len(subject.look(kind, handle).properties["snapshots"]) == 1
        assert subject.taken(kind, handle, "t-3")["id"] != first["id"]

    def test_the_thing_goes_on_as_it_was(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        before = subject.look(kind, handle).properties
        subject.taken(kind, handle, "t-2")
        after = dict(subject.look(kind, handle).properties)
        del after["snapshots"]
        assert after == before

    def test_it_is_no_thing_and_stays_when_its_source_goes(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        subject.taken(kind, handle, "t-2")
        assert subject.cloud.find(kind, ["t-2"])[0].presence is Presence.ABSENT
        subject.cloud.delete(kind, [handle])
        subject.until(kind, handle, lambda seen: seen.presence is Presence.ABSENT)
        assert subject.snapshot(kind, handle, "t-4").presence is Presence.ABSENT  # type: ignore[union-attr]

    def test_it_is_found_by_its_token_and_deleted(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        one, other = subject.taken(kind, handle, "t-2"), subject.taken(kind, handle, "t-3")
        kept, cloud = snapshots_of(kind), subject.cloud
        found, nothing = cloud.find(kept, ["t-2", "t-4"])
        assert (found.handle, found.properties["status"]) == (one["id"], "available")
        assert nothing.presence is Presence.ABSENT
        for _ in range(2):
            (answer,) = cloud.delete(kept, [one["id"]])
            assert isinstance(answer, Observation)
            assert answer.presence is Presence.ABSENT
        assert cloud.find(kept, ["t-2"])[0].presence is Presence.ABSENT
        assert [each["id"] for each in subject.look(kind, handle).properties["snapshots"]] == [other["id"]]
        cloud.delete(kind, [handle])
        assert cloud.observe(kept, [other["id"]])[0].present

    def test_it_is_of_its_kind_alone(self, subject: Subject, kind: str) -> None:
        handle = subject.make(kind)
        snapshot = subject.taken(kind, handle, "t-2")
        (other,) = set(SPECS) - {kind}
        assert subject.cloud.find(snapshots_of(other), ["t-2"])[0].presence is Presence.ABSENT
        subject.cloud.delete(snapshots_of(other), [snapshot["id"]])
        assert subject.cloud.observe(snapshots_of(kind), [snapshot["id"]])[0].present


# -- what the local cloud keeps ----------------------------------------------------------------------------------------


def root(subject: Subject) -> Path:
    assert isinstance(subject.cloud, LocalCloud)
    return subject.cloud._tree.root


def data(subject: Subject, volume: str) -> Path:
    return root(subject) / "volumes" / volume / "data"


def test_a_volume_is_had_back_from_its_snapshot(here: Subject) -> None:
    handle = here.make("volume")
    (data(here, handle) / "papers").mkdir()
    (data(here, handle) / "papers" / "will").write_text("all to the cat")
    (data(here, handle) / "link").symlink_to("papers/will")
    snapshot = here.taken("volume", handle, "t-2")
    (data(here, handle) / "papers" / "will").write_text("nothing to anybody")
    here.cloud.delete("volume", [handle])
    again = here.make("volume", "t-9", size=None, snapshot_id=snapshot["id"])
    assert (data(here, again) / "link").read_text() == "all to the cat"
    assert here.look("volume", again).properties["size"] == 1


def test_a_volume_gets_the_data_of_its_backup_back_as_often_as_it_is_asked(here: Subject) -> None:
    handle = here.make("volume")
    (data(here, handle) / "will").write_text("all to the cat")
    backup = here.taken("volume", handle, "t-2")["id"]
    for _ in range(2):
        (data(here, handle) / "will").write_text("nothing to anybody")
        (data(here, handle) / "later").touch()
        spec = {**SPECS["volume"], "backup_id": backup}
        present(here.cloud.update("volume", [Change(handle, spec, ("backup_id",))])[0])
        assert [each.name for each in data(here, handle).iterdir()] == ["will"]
        assert (data(here, handle) / "will").read_text() == "all to the cat"
    present(here.cloud.update("volume", [Change(handle, {**spec, "name": "other"}, ("name",))])[0])
    (data(here, handle) / "later").touch()
    assert (data(here, handle) / "later").exists()


def test_a_restoration_that_was_cut_off_is_done_when_it_is_asked_for_again(here: Subject) -> None:
    handle = here.make("volume")
    (data(here, handle) / "will").write_text("all to the cat")
    change = Change(handle, {"backup_id": here.taken("volume", handle, "t-2")["id"]}, ("backup_id",))
    data(here, handle).rename(data(here, handle).with_name("data.old"))  # as a crash in the middle leaves it
    present(here.cloud.update("volume", [change])[0])
    assert (data(here, handle) / "will").read_text() == "all to the cat"
    assert sorted(each.name for each in data(here, handle).parent.iterdir()) == ["data", "thing.json"]


def test_a_copy_that_is_deleted_while_it_is_made_does_not_come_back(here: Subject) -> None:
    handle = here.make("volume")
    for number in range(2000):
        (data(here, handle) / str(number)).touch()
    present(here.snapshot("volume", handle, "t-2"))
    found = here.cloud.find("volume_snapshot", ["t-2"])[0]
    here.cloud.delete("volume_snapshot", [found.handle])
    here.cloud.close()  # waits for the process that copies
    assert [each.name for each in (root(here) / "snapshots").iterdir()] == [".cloud"]


def test_a_volume_from_a_snapshot_that_is_not_there_is_refused(here: Subject) -> None:
    (answer,) = here.cloud.create("volume", [Creation("t", {"name": "x", "snapshot_id": "nothing"})])
    assert "no complete snapshot 'nothing'" in str(answer)


def test_a_server_starts_from_the_image_of_another(here: Subject) -> None:
    script = "#!/bin/sh\n[ -e notes ] || echo first > notes\necho ready\nexec sleep 600\n"
    handle = here.make("server", user_data=script)
    notes = root(here) / "servers" / handle / "root" / "notes"
    here.until("server", handle, lambda _: notes.exists() and notes.read_text() == "first\n")
    notes.write_text("of long ago")
    os.mkfifo(notes.with_name("pipe"))
    image = here.taken("server", handle, "t-2")
    assert image["status"] == "available", image
    here.cloud.delete("server", [handle])
    again = here.make("server", "t-9", image=image["id"], user_data=script)
    assert (root(here) / "servers" / again / "root" / "notes").read_text() == "of long ago"
    assert not (root(here) / "servers" / again / "root" / "pipe").exists()


def test_a_copy_that_was_lost_with_its_maker_is_not_listed_and_begun_anew(here: Subject) -> None:
    handle = here.make("volume")
    (data(here, handle) / "file").write_text("data")
    snapshot = here.taken("volume", handle, "t-2")
    half = root(here) / "snapshots" / snapshot["id"]
    (half / "data").rename(half / "data.new")  # as a crash in the middle leaves it
    (half / "data.new" / "file").unlink()
    tree = Tree(root(here))
    tree.recognise()
    record = tree.read("snapshot", snapshot["id"])
    assert record is not None
    tree.write(type(record)(**{**_fields(record), "facts": {**record.facts, "status": "creating"}}))
    assert "snapshots" not in here.look("volume", handle).properties
    assert here.taken("volume", handle, "t-2")["id"] == snapshot["id"]
    assert (half / "data" / "file").read_text() == "data"
    assert not (half / "data.new").exists()


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_what_cannot_be_copied_is_a_fault(here: Subject) -> None:
    handle = here.make("volume")
    data(here, handle).rmdir()
    snapshot = here.taken("volume", handle, "t-2")
    assert snapshot["status"] == "error"
    assert "No such file" in snapshot["fault"]


def test_snapshots_are_no_things_without_rows(here: Subject) -> None:
    handle = here.make("volume")
    here.taken("volume", handle, "t-2")
    here.cloud.delete("volume", [handle])
    assert not any(inventory.records(root(here)).values())


def test_closing_gives_up_what_is_being_copied(tmp_path: Path) -> None:
    first = LocalCloud(tmp_path / "cloud")
    subject = Subject(first, time.sleep)
    handle = subject.make("volume")
    for number in range(50):
        (data(subject, handle) / str(number)).write_text("x")
    present(subject.snapshot("volume", handle, "t-2"))
    first.close()
    second = Subject(LocalCloud(tmp_path / "cloud"), time.sleep)
    assert second.taken("volume", handle, "t-2")["status"] == "available"
    (snapshot,) = second.look("volume", handle).properties["snapshots"]
    assert len(list((root(second) / "snapshots" / snapshot["id"] / "data").iterdir())) == 50
    assert isinstance(second.cloud, LocalCloud)
    second.cloud.destroy()
