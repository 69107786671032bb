"""What is real about the local cloud: processes, addresses and files that can be touched, killed and found again."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.contract.local_things import (
    SEEN_WITHIN_S,
    WEB,
    Watching,
    alive,
    got,
    home,
    made,
    operated,
    owned,
    seen,
    server,
)
from tests.waiting import until

from homeostat.clouds.local import LocalCloud, servers
from homeostat.clouds.port import Change, ChangeNotice, Creation, Operation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.resources.mime import Part, multipart

# -- servers ---------------------------------------------------------------------------------------


def test_a_server_is_a_process_that_serves(cloud: LocalCloud) -> None:
    web = server(cloud, "web", WEB)
    assert web.properties["status"] == "active"
    assert web.properties["address"].startswith("127.")
    assert until(lambda: got(web.properties["address"])) == "web"


def test_servers_outlive_the_service(cloud: LocalCloud, root: Path) -> None:
    before = server(cloud)
    cloud.close()
    again = LocalCloud(root)
    assert seen(again, "server", before.handle)["pid"] == before.properties["pid"]
    assert again.find("server", ["web"])[0].handle == before.handle
    again.close()


def test_a_death_is_seen_at_once_and_a_new_life_keeps_address_and_data(cloud: LocalCloud, root: Path) -> None:
    before = server(cloud, "web", "#!/bin/sh\necho life >> lives\nexec sleep 1000\n").properties
    lives = home(root, before["id"]) / "lives"
    until(lambda: lives.exists() and lives.read_text() == "life\n")
    with Watching(cloud) as watching:
        killed_at = time.monotonic()
        os.kill(before["pid"], signal.SIGKILL)
        until(lambda: ChangeNotice("server", before["id"]) in watching.came)
        assert watching.came[ChangeNotice("server", before["id"])] - killed_at < SEEN_WITHIN_S
    dead = seen(cloud, "server", before["id"])
    assert (dead["status"], dead["pid"]) == ("stopped", None)
    assert f"was pid {before['pid']}" in dead["fault"]
    after = operated(cloud, "server", before["id"], "start")
    assert (after["status"], after["address"]) == ("active", before["address"])
    assert after["pid"] != before["pid"]
    until(lambda: lives.read_text() == "life\nlife\n")


def test_the_script_dies_with_its_guest_and_what_it_left_behind_before_the_next_life(
    cloud: LocalCloud, root: Path
) -> None:
    script = "#!/bin/sh\nsetsid sleep 1000 &\necho $! > daemon\necho $$ > script\nexec sleep 1000\n"
    web = server(cloud, "web", script).properties
    files = [home(root, web["id"]) / name for name in ("script", "daemon")]
    until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    own, daemon = (int(file.read_text()) for file in files)
    os.kill(web["pid"], signal.SIGKILL)
    until(lambda: not alive(own))
    assert alive(daemon)
    operated(cloud, "server", web["id"], "start")
    assert not alive(daemon)


def test_stop_lets_the_script_finish_and_delete_does_not_wait(cloud: LocalCloud, root: Path) -> None:
    script = "#!/bin/sh\ntrap 'echo done > ended; exit' TERM\ntouch ready\nwhile :; do sleep 0.01; done\n"
    web = server(cloud, "web", script)
    until((home(root, web.handle) / "ready").exists)
    assert operated(cloud, "server", web.handle, "stop")["status"] == "stopped"
    assert (home(root, web.handle) / "ended").exists()
    assert owned(root) == []


def test_a_script_that_ignores_being_asked_is_killed(
    cloud: LocalCloud, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_GRACE_S", 0.1)
    web = server(cloud, "web", "#!/bin/sh\ntrap '' TERM\ntouch ready\nwhile :; do sleep 0.01; done\n")
    until((home(root, web.handle) / "ready").exists)
    assert operated(cloud, "server", web.handle, "stop")["status"] == "stopped"
    assert owned(root) == []


@pytest.mark.parametrize(
    ("script", "logged", "reason"),
    [
        ("#!/bin/sh\necho hello\nexit 3\n", "ended with 3", "a script that fails does not stop the server"),
        ("#!/no/such/shell\n", "cannot be run", "nor does one that cannot even start"),
        ("#!\n", "cannot be run", "nor one that names no interpreter"),
        ("#cloud-config\npackages: [x]\n", "not a script and is not run", "other user data is only logged"),
    ],
)
def test_whatever_the_user_data_the_server_stays(cloud: LocalCloud, script: str, logged: str, reason: str) -> None:
    web = server(cloud, "web", script).properties
    until(lambda: logged in Path(web["console_log"]).read_text())
    assert seen(cloud, "server", web["id"])["status"] == "active", reason


def test_a_document_of_several_parts_is_run_part_by_part(cloud: LocalCloud, root: Path) -> None:
    parts = [
        Part("#!/bin/sh\necho one >> out\nexit 3\n", "x-shellscript", "first"),
        Part("#cloud-config\npackages: [x]\n", "cloud-config", "settings"),
        Part("#!/bin/sh\ncat $HOMEOSTAT_FILES/cfn-init-data >> out; echo two >> out; exec sleep 1000\n"),
        Part('{"a": 1}', "x-cfninitdata", "cfn-init-data"),
    ]
    web = server(cloud, "web", multipart(parts)).properties
    out = home(root, web["id"]) / "out"
    until(lambda: out.exists() and out.read_text() == 'one\n{"a": 1}two\n')
    log = Path(web["console_log"]).read_text()
    assert "user data script 000 ended with 3" in log
    assert "user data part settings (text/cloud-config) is not carried out here" in log
    spec = {"name": "web", "image": "cirros", "flavor": "m1.tiny", "user_data": "#!/bin/sh\necho three > out\n"}
    cloud.update("server", [Change(web["id"], spec, ("user_data",))])
    until(lambda: out.exists() and out.read_text() == "three\n")


def test_the_script_knows_its_server_and_nothing_of_the_service(
    cloud: LocalCloud, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVICE", "hidden")
    web = server(cloud, "web", "#!/bin/sh\nenv > new && mv new env\n", metadata={"my-role": "web", "odd": "a\0b"})
    environment = home(root, web.handle) / "env"
    until(environment.exists)
    lines = environment.read_text().splitlines()
    assert {"HOMEOSTAT_NAME=web", "HOMEOSTAT_METADATA_MY_ROLE=web", f"HOMEOSTAT_SERVER_ID={web.handle}"} <= set(lines)
    assert f"HOMEOSTAT_ADDRESS={web.properties['address']}" in lines
    assert "hidden" not in environment.read_text()


def test_a_rebuild_wipes_the_disk_and_keeps_volumes(cloud: LocalCloud, root: Path) -> None:
    web = server(cloud, "web", "#!/bin/sh\necho one >> out\n")
    volume = made(cloud, "volume", size=1)
    made(cloud, "volume_attachment", instance_uuid=web.handle, volume_id=volume.handle, mountpoint="/dev/vdc")
    disk = home(root, web.handle)
    (disk / "dev" / "vdc" / "kept").write_text("data")
    until(lambda: (disk / "out").exists() and (disk / "out").read_text() == "one\n")
    spec = {**web.properties, "user_data": "#!/bin/sh\necho two >> out\n"}
    (answer,) = cloud.update("server", [Change(web.handle, spec, ("user_data",))])
    assert isinstance(answer, Observation)
    until(lambda: (disk / "out").exists() and (disk / "out").read_text() == "two\n")
    assert (disk / "dev" / "vdc" / "kept").read_text() == "data"
    cloud.delete("server", [web.handle])
    assert (root / "volumes" / volume.handle / "data" / "kept").read_text() == "data"


def test_each_volume_of_a_server_has_a_device_of_its_own(cloud: LocalCloud, root: Path) -> None:
    volumes = [made(cloud, "volume", f"v{number}", size=1).handle for number in range(13)]
    web = server(cloud, block_device_mapping=[{"volume_id": each} for each in volumes[:12]])
    (last,) = volumes[12:]
    refused = cloud.create(
        "volume_attachment",
        [Creation("a1", {"instance_uuid": web.handle, "volume_id": last, "mountpoint": "/dev/vdb"})],
    )
    assert isinstance(refused[0], Transient), "a volume that it started with has that name"
    attached = made(cloud, "volume_attachment", "a2", instance_uuid=web.handle, volume_id=last)
    assert attached.properties["mountpoint"] == "/dev/vdm"
    devices = {each.name: each.resolve().parent.name for each in (root / "servers" / web.handle / "dev").iterdir()}
    assert devices == {f"vd{letter}": volume for letter, volume in zip("abcdefghijklm", volumes, strict=True)}


def test_a_server_has_no_more_volumes_than_names_for_them(cloud: LocalCloud) -> None:
    volumes = [made(cloud, "volume", f"v{number}", size=1).handle for number in range(27)]
    spec = {"name": "web", "image": "cirros", "flavor": "m1.tiny"}
    mappings = [{"volume_id": each} for each in volumes]
    (refused,) = cloud.create("server", [Creation("t", {**spec, "block_device_mapping": mappings})])
    assert isinstance(refused, Terminal)


def test_a_paused_server_does_nothing(cloud: LocalCloud, root: Path) -> None:
    web = server(cloud, "web", "#!/bin/sh\nwhile :; do echo x >> ticks; sleep 0.01; done\n")
    ticks = home(root, web.handle) / "ticks"
    until(ticks.exists)
    assert operated(cloud, "server", web.handle, "pause")["status"] == "paused"
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in owned(root)]
    assert set(states) <= {"T", "Z"}
    size = ticks.stat().st_size
    assert operated(cloud, "server", web.handle, "unpause")["status"] == "active"
    until(lambda: ticks.stat().st_size > size)


def test_a_suspended_server_stands_still_in_every_process(cloud: LocalCloud, root: Path) -> None:
    """Also when the service that has suspended it is gone."""
    web = server(cloud, "web", "#!/bin/sh\nwhile :; do echo x >> ticks; sleep 0.01; done\n")
    ticks = home(root, web.handle) / "ticks"
    until(ticks.exists)
    assert operated(cloud, "server", web.handle, "suspend")["status"] == "suspended"
    size = ticks.stat().st_size
    cloud.close()
    other = LocalCloud(root)
    try:
        (seen,) = other.observe("server", [web.handle])
        assert (seen.properties["status"], ticks.stat().st_size) == ("suspended", size)
        (refused,) = other.operate("server", [Operation(web.handle, "start")])
        assert "is suspended: resume it" in str(refused)
        assert operated(other, "server", web.handle, "resume")["status"] == "active"
        until(lambda: ticks.stat().st_size > size)
    finally:
        other.close()


def test_a_suspended_server_that_dies_starts_anew_when_it_is_resumed(cloud: LocalCloud, root: Path) -> None:
    web = server(cloud, "web", "#!/bin/sh\necho life >> lives\nsleep 1000\n")
    lives = home(root, web.handle) / "lives"
    # Its file is there before its first line is.
    until(lambda: lives.exists() and lives.read_text() == "life\n")
    operated(cloud, "server", web.handle, "suspend")
    for pid in owned(root):
        os.kill(pid, signal.SIGKILL)
    until(lambda: cloud.observe("server", [web.handle])[0].properties["status"] == "stopped")
    assert operated(cloud, "server", web.handle, "resume")["status"] == "active"
    until(lambda: lives.read_text() == "life\nlife\n")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"image": "nope"}, "cirros"), ({"flavor": "nope"}, "m1.tiny"), ({"key_name": "nope"}, "keypair 'nope'")],
)
def test_what_does_not_exist_is_refused_with_what_does(cloud: LocalCloud, wrong: dict[str, str], named: str) -> None:
    (refused,) = cloud.create(
        "server", [Creation("t", {"name": "web", "image": "cirros", "flavor": "m1.tiny", **wrong})]
    )
    assert isinstance(refused, Terminal)
    assert named in str(refused)
    assert cloud.find("server", ["t"])[0].presence is Presence.ABSENT


def test_a_server_does_not_need_its_key_any_more(cloud: LocalCloud) -> None:
    made(cloud, "keypair", name="key", public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJustAKeyForTest me")
    web = server(cloud, key_name="key")
    cloud.delete("keypair", ["key"])
    (renamed,) = cloud.update("server", [Change(web.handle, {"name": "renamed"}, ("name",))])
    assert isinstance(renamed, Observation)


def test_images_can_be_added(cloud: LocalCloud, root: Path) -> None:
    (root / "images.json").write_text('["my-image"]')
    assert made(cloud, "server", name="web", image="my-image").properties["status"] == "active"
