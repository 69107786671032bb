"""What is real about the local cloud: processes, addresses and files that can be touched, killed and found again."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S, until

from homeostat.clouds.local import LocalCloud, processes, servers
from homeostat.clouds.local.tree import remove_tree
from homeostat.clouds.port import Change, ChangeNotice, Creation, Operation
from homeostat.model.errors import Terminal, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.resources.mime import Part, multipart

SEEN_WITHIN_S = 1.0
WEB = f"""#!/bin/sh
echo "$HOMEOSTAT_NAME" > index.html
exec {sys.executable} -S -m http.server 8080 --bind $HOMEOSTAT_ADDRESS
"""


class Crash(BaseException):
    """The service is gone at this very point."""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "cloud"
    yield path
    LocalCloud(path).destroy()


@pytest.fixture
def cloud(root: Path) -> Iterator[LocalCloud]:
    cloud = LocalCloud(root)
    yield cloud
    cloud.close()


def made(cloud: LocalCloud, kind: str, token: str = "token", /, **spec: Any) -> Observation:
    (answer,) = cloud.create(kind, [Creation(token, spec)])
    assert isinstance(answer, Observation), repr(answer)
    return answer


def server(cloud: LocalCloud, name: str = "web", script: str = "", **spec: Any) -> Observation:
    return made(cloud, "server", name, name=name, image="cirros", flavor="m1.tiny", user_data=script, **spec)


def seen(cloud: LocalCloud, kind: str, handle: str) -> dict[str, Any]:
    return dict(cloud.observe(kind, [handle])[0].properties)


def operated(cloud: LocalCloud, kind: str, handle: str, verb: str, **arguments: Any) -> dict[str, Any]:
    (answer,) = cloud.operate(kind, [Operation(handle, verb, arguments)])
    assert isinstance(answer, Observation), repr(answer)
    return dict(answer.properties)


def home(root: Path, handle: str) -> Path:
    return root / "servers" / handle / "root"


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def got(address: str, port: int = 8080) -> str:
    """What the web server there answers; "" while nobody does."""
    with (
        contextlib.suppress(OSError),
        urllib.request.urlopen(f"http://{address}:{port}/", timeout=PATIENCE_S) as answer,
    ):
        return str(answer.read().decode().strip())
    return ""


def listens(address: str, port: int = 8080) -> bool:
    """Is anybody there? Who is dying may still take a connection, and break it."""
    try:
        with socket.create_connection((address, port), timeout=PATIENCE_S):
            return True
    except ConnectionRefusedError:
        return False


def owned(root: Path) -> list[int]:
    directories = [
        str(entry) for kind in ("servers", "load_balancers", "floating_ips") for entry in (root / kind).glob("*")
    ]
    return [pid for pids in processes.belonging(directories).values() for pid in pids]


class Watching:
    """Sightings with the time they came, collected in a thread."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.came: dict[ChangeNotice, float] = {}
        self._over = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(cloud,))

    def _watch(self, cloud: LocalCloud) -> None:
        for sighting in cloud.watch(self._stop):
            self.came[sighting] = time.monotonic()

    def _stop(self) -> bool:
        self._begun.set()
        return self._over.is_set()

    def __enter__(self) -> "Watching":
        self._thread.start()
        assert self._begun.wait(PATIENCE_S)
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()


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


def test_a_suspended_server_stands_still_whoever_looks_after_it(cloud: LocalCloud, root: Path) -> None:
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
    until(lives.exists)
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


# -- crashes and company ---------------------------------------------------------------------------


def test_a_crash_between_record_and_process_is_mended_by_the_same_create(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> int:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(processes, "launch", crash)
        with pytest.raises(Crash):
            server(cloud)
    (half,) = cloud.find("server", ["web"])
    assert half.properties["status"] == "building"
    whole = server(cloud)
    assert (whole.handle, whole.properties["status"]) == (half.handle, "active")
    assert len(cloud.handles("port")) == 1


def test_a_half_made_server_can_be_started_once_its_maker_is_gone(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> int:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(processes, "launch", crash)
        with pytest.raises(Crash):
            server(cloud)
    monkeypatch.setattr(servers, "_BUILD_S", 0.0)
    (half,) = cloud.find("server", ["web"])
    assert half.properties["status"] == "stopped"
    assert half.properties["fault"]
    assert operated(cloud, "server", half.handle, "start")["status"] == "active"


def test_a_half_made_server_gets_the_network_it_lacks(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(servers.Servers, "_plugged", lambda *_: (_ for _ in ()).throw(Crash))
        with pytest.raises(Crash):
            server(cloud)
    (half,) = cloud.find("server", ["web"])
    assert half.properties["address"] is None
    assert operated(cloud, "server", half.handle, "start")["address"].startswith("127.")


def test_two_services_asked_for_one_thing_make_one(cloud: LocalCloud, root: Path) -> None:
    other = LocalCloud(root)
    with ThreadPoolExecutor(8) as pool:
        handles = set(pool.map(lambda each: server(each).handle, [cloud, other] * 8))
        addresses = list(pool.map(lambda i: server([cloud, other][i % 2], f"s{i}").properties["address"], range(16)))
    assert len(handles) == 1
    assert len(set(addresses)) == 16
    assert len([pid for pid in owned(root) if os.getsid(pid) == pid]) == 17
    other.close()


def test_one_service_sees_what_another_does(cloud: LocalCloud, root: Path) -> None:
    other = LocalCloud(root)
    with Watching(cloud) as watching:
        web = server(other)
        until(lambda: ChangeNotice("server", web.handle) in watching.came)
        assert seen(cloud, "server", web.handle)["status"] == "active"
        watching.came.clear()
        operated(other, "server", web.handle, "stop")
        until(lambda: ChangeNotice("server", web.handle) in watching.came)
        watching.came.clear()
        other.delete("server", [web.handle])
        until(lambda: ChangeNotice("server", web.handle) in watching.came)
    assert cloud.observe("server", [web.handle])[0].presence is Presence.ABSENT
    other.close()


def test_what_is_removed_behind_our_back_is_absent(cloud: LocalCloud, root: Path) -> None:
    network = made(cloud, "network", name="net")
    with Watching(cloud) as watching:
        os.rename(root / "networks" / network.handle, root / "elsewhere")
        until(lambda: ChangeNotice("network", network.handle) in watching.came)
    assert cloud.observe("network", [network.handle])[0].presence is Presence.ABSENT


def test_ports_of_a_server_that_was_removed_behind_our_back_keep_nothing(cloud: LocalCloud, root: Path) -> None:
    """Neither its address, which the next one may want, nor what it was connected to."""
    network = made(cloud, "network", name="net").handle
    subnet = made(cloud, "subnet", network=network, cidr="10.1.0.0/29").handle
    group = made(cloud, "security_group", name="group").handle
    entry = {"network": network, "fixed_ip": "10.1.0.3"}

    def lose(handle: str) -> None:
        for pid in owned(root):
            os.kill(pid, signal.SIGKILL)
        remove_tree(str(root / "servers" / handle))

    lose(server(cloud, "first", networks=[entry], security_groups=[group]).handle)
    second = server(cloud, "second", networks=[entry], security_groups=[group]).handle
    assert [each["device_id"] for each in (seen(cloud, "port", id) for id in os.listdir(root / "ports")) if each] == [
        second
    ]
    (answer,) = cloud.delete("subnet", [subnet])
    assert isinstance(answer, Transient), "the second one is there"
    lose(second)
    answers = [cloud.delete(kind, [id])[0] for kind, id in (("security_group", group), ("subnet", subnet))]
    assert all(isinstance(each, Observation) for each in answers), answers


@pytest.mark.parametrize("handle", ["..", "../servers", "/etc", "a/b", "\n", ""])
def test_no_handle_leads_out_of_the_cloud(cloud: LocalCloud, handle: str) -> None:
    assert cloud.observe("server", [handle])[0].presence is Presence.ABSENT
    assert isinstance(cloud.delete("volume", [handle])[0], Observation)


def test_what_is_deleted_leaves_nothing(cloud: LocalCloud, root: Path) -> None:
    before = sorted(path for path in root.rglob("*") if path.is_file())
    handles = [server(cloud, f"s{i}", "#!/bin/sh\nmkdir -m 0 shut\nexec sleep 1000\n").handle for i in range(3)]
    until(lambda: all((home(root, handle) / "shut").exists() for handle in handles))
    cloud.delete("server", handles)
    assert owned(root) == []
    assert sorted(path for path in root.rglob("*") if path.is_file()) == before
    assert [path.name for path in (root / "servers").iterdir()] == [".cloud"]


def test_twenty_servers_start_side_by_side(cloud: LocalCloud) -> None:
    specs = [{"name": f"s{i}", "image": "cirros", "user_data": "#!/bin/sh\nexec sleep 1000\n"} for i in range(20)]
    begun_at = time.monotonic()
    answers = cloud.create("server", [Creation(f"s{i}", spec) for i, spec in enumerate(specs)])
    assert time.monotonic() - begun_at < 10, "a second on an idle machine"
    assert [each.properties["name"] for each in answers if isinstance(each, Observation)] == [
        f"s{i}" for i in range(20)
    ]


# -- networks --------------------------------------------------------------------------------------


def test_a_subnet_of_loopback_addresses_is_used_as_it_is(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net")
    cidr = f"127.250.{os.getpid() % 250}.0/24"
    subnet = made(cloud, "subnet", network_id=network.handle, cidr=cidr, gateway_ip=None)
    assert subnet.properties["loopback_cidr"] == cidr
    port = made(cloud, "port", network_id=network.handle)
    assert port.properties["fixed_ips"][0]["ip_address"] == cidr.replace("0/24", "1")
    (refused,) = cloud.create("subnet", [Creation("again", {"network_id": network.handle, "cidr": cidr})])
    assert isinstance(refused, Terminal)


def test_other_addresses_keep_their_place_in_a_loopback_block(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    pools = [{"start": "10.1.0.100", "end": "10.1.0.101"}]
    made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24", allocation_pools=pools)
    fixed = made(cloud, "port", "fixed", network_id=network, fixed_ips=[{"ip_address": "10.1.0.9"}])
    address = fixed.properties["fixed_ips"][0]["ip_address"]
    assert address.startswith("127.")
    assert address.endswith(".9")
    free = [made(cloud, "port", f"p{i}", network_id=network).properties["fixed_ips"][0]["ip_address"] for i in (0, 1)]
    assert [address.rpartition(".")[2] for address in free] == ["100", "101"]
    asked = [{"ip_address": "10.1.0.9"}], [{"ip_address": "10.2.0.1"}], None
    answers = cloud.create(
        "port", [Creation(f"q{i}", {"network_id": network, "fixed_ips": each}) for i, each in enumerate(asked)]
    )
    assert [type(answer) for answer in answers] == [Transient, Terminal, Transient]


def test_a_server_moves_to_another_network_in_place(cloud: LocalCloud) -> None:
    web = server(cloud)
    network = made(cloud, "network", name="net").handle
    made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24")
    both = [{"network": "private"}, {"network": network}]
    cloud.update("server", [Change(web.handle, {"networks": both}, ("networks",))])
    assert set(seen(cloud, "server", web.handle)["addresses"]) == {"private", "net"}
    cloud.update("server", [Change(web.handle, {"networks": [{"network": network}]}, ("networks",))])
    moved = seen(cloud, "server", web.handle)
    assert set(moved["addresses"]) == {"net"}
    assert (moved["status"], moved["pid"]) == ("active", web.properties["pid"])
    assert len(cloud.handles("port")) == 1


def test_what_a_server_has_already_it_keeps_however_it_is_asked_for(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    subnet = made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24").handle

    def plugged(*entries: dict[str, Any]) -> list[dict[str, Any]]:
        (answer,) = cloud.update("server", [Change(web.handle, {"networks": list(entries)}, ("networks",))])
        assert isinstance(answer, Observation), repr(answer)
        return list(answer.properties["addresses"]["net"])

    web = server(cloud, networks=[{"network": "net"}])
    (first,) = web.properties["addresses"]["net"]
    for same in (
        {"network": "net", "fixed_ip": first["addr"]},
        {"subnet": subnet},
        {"network": network},
        {"subnet": subnet, "fixed_ip": first["addr"]},
    ):
        assert plugged(same) == [first], "the same port, and nobody waits for its own address"
    other, same = plugged({"network": "net"}, {"network": "net", "fixed_ip": first["addr"]})
    assert same == first
    assert plugged({"network": "net", "fixed_ip": other["addr"]}, {"subnet": subnet}) == [other, first]
    assert len(cloud.handles("port")) == 2
    (moved,) = plugged({"network": "net", "fixed_ip": "10.1.0.77"})
    assert moved["addr"].endswith(".77")
    assert cloud.handles("port") == [moved["port"]]


def test_a_subnet_without_pools_hands_out_all_but_the_gateway(cloud: LocalCloud) -> None:
    network = made(cloud, "network", name="net").handle
    own = [{"start": "10.1.0.10", "end": "10.1.0.20"}]
    subnet = made(cloud, "subnet", network_id=network, cidr="10.1.0.0/24", gateway_ip="10.1.0.5", allocation_pools=own)
    assert subnet.properties["allocation_pools"] == own
    for none in (None, []):
        cloud.update("subnet", [Change(subnet.handle, {"allocation_pools": none}, ("allocation_pools",))])
        assert seen(cloud, "subnet", subnet.handle)["allocation_pools"] == [
            {"start": "10.1.0.1", "end": "10.1.0.4"},
            {"start": "10.1.0.6", "end": "10.1.0.254"},
        ]


def test_a_floating_address_serves_what_its_port_serves(cloud: LocalCloud) -> None:
    port = made(cloud, "port", network_id="private")
    server(cloud, "web", WEB, networks=[{"port": port.handle}])
    floating = made(cloud, "floating_ip", floating_network_id="public").properties
    association = made(cloud, "floating_ip_association", floatingip_id=floating["id"], port_id=port.handle)
    address = floating["floating_ip_address"]
    assert until(lambda: got(address)) == "web"
    os.kill(seen(cloud, "floating_ip", floating["id"])["pid"], signal.SIGKILL)
    until(lambda: seen(cloud, "floating_ip", floating["id"])["status"] == "stopped")
    operated(cloud, "floating_ip", floating["id"], "start")
    assert until(lambda: got(address)) == "web"
    cloud.delete("floating_ip_association", [association.handle])
    assert got(address) == ""
    assert seen(cloud, "floating_ip", floating["id"])["status"] == "down"


# -- load balancing --------------------------------------------------------------------------------


@pytest.fixture
def webs(cloud: LocalCloud) -> list[dict[str, Any]]:
    made_webs = [dict(server(cloud, f"web{i}", WEB).properties) for i in range(2)]
    until(lambda: all(got(web["address"]) for web in made_webs))
    return made_webs


def balanced(cloud: LocalCloud, webs: list[dict[str, Any]], **pool: Any) -> dict[str, str]:
    """Handles by kind (members by the name of their server), and the address."""
    subnet = made(cloud, "network", name="front").handle
    made(cloud, "subnet", network_id=subnet, cidr="10.9.0.0/24", name="front-subnet")
    balancer = made(cloud, "load_balancer", vip_subnet="front-subnet")
    spec = {"loadbalancer": balancer.handle, "protocol": "HTTP", "protocol_port": 80}
    listener = made(cloud, "listener", **spec).handle
    rules = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", **pool}
    members = made(cloud, "pool", listener=listener, **rules).handle
    handles = {"load_balancer": balancer.handle, "listener": listener, "pool": members}
    for web in webs:
        member = {"pool": members, "address": web["address"], "protocol_port": 8080}
        handles[web["name"]] = made(cloud, "pool_member", web["name"], **member).handle
    until(lambda: seen(cloud, "listener", listener)["status"] == "active")
    return {**handles, "address": balancer.properties["vip_address"]}


def test_a_load_balancer_forwards_in_turn_and_passes_over_the_dead(
    cloud: LocalCloud, webs: list[dict[str, Any]]
) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: {got(made_["address"], 80) for _ in range(4)} == {"web0", "web1"})
    assert Counter(got(made_["address"], 80) for _ in range(10)) == {"web0": 5, "web1": 5}
    os.kill(webs[0]["pid"], signal.SIGKILL)
    until(lambda: not listens(webs[0]["address"]))
    assert {got(made_["address"], 80) for _ in range(6)} == {"web1"}
    operated(cloud, "server", webs[0]["id"], "start")
    until(lambda: {got(made_["address"], 80) for _ in range(4)} == {"web0", "web1"})


def test_one_client_keeps_to_one_member_by_source(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs, lb_algorithm="SOURCE_IP")
    until(lambda: got(made_["address"], 80))
    until(lambda: len({got(made_["address"], 80) for _ in range(6)}) == 1)


@pytest.mark.parametrize(("codes", "word"), [("200-204", "online"), ("301,302", "offline")])
def test_a_health_monitor_tells_members_well_from_ill(
    cloud: LocalCloud, webs: list[dict[str, Any]], codes: str, word: str
) -> None:
    made_ = balanced(cloud, webs[:1])
    check = {"type": "HTTP", "delay": 1, "timeout": 1, "max_retries": 1, "url_path": "/", "expected_codes": codes}
    assert seen(cloud, "pool_member", made_["web0"])["operating_status"] == "no_monitor"
    with Watching(cloud) as watching:
        made(cloud, "health_monitor", pool=made_["pool"], **check)
        until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == word)
        until(lambda: ChangeNotice("pool_member", made_["web0"]) in watching.came)
    assert bool(got(made_["address"], 80)) is (word == "online")


def test_members_that_die_are_told_of(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    made(cloud, "health_monitor", pool=made_["pool"], type="TCP", delay=0, timeout=1, max_retries=2)
    until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == "online")
    os.kill(webs[0]["pid"], signal.SIGKILL)
    until(lambda: seen(cloud, "pool_member", made_["web0"])["operating_status"] == "offline")
    assert seen(cloud, "pool_member", made_["web1"])["operating_status"] == "online"


def test_a_killed_load_balancer_is_seen_and_started_again(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: got(made_["address"], 80))
    with Watching(cloud) as watching:
        os.kill(seen(cloud, "load_balancer", made_["load_balancer"])["pid"], signal.SIGKILL)
        until(lambda: ChangeNotice("load_balancer", made_["load_balancer"]) in watching.came, within_s=SEEN_WITHIN_S)
    dead = seen(cloud, "load_balancer", made_["load_balancer"])
    assert (dead["status"], dead["fault"]) == ("stopped", "its process ended")
    assert operated(cloud, "load_balancer", made_["load_balancer"], "start")["status"] == "active"
    assert until(lambda: got(made_["address"], 80))


def test_a_listener_whose_port_is_taken_says_so_until_it_is_free(cloud: LocalCloud) -> None:
    balancer = made(cloud, "load_balancer").properties
    with socket.create_server((balancer["vip_address"], 8080)):
        spec = {"loadbalancer": balancer["id"], "protocol": "TCP", "protocol_port": 8080}
        listener = made(cloud, "listener", **spec).handle
        until(lambda: seen(cloud, "listener", listener)["status"] == "error")
        assert "cannot listen on" in seen(cloud, "listener", listener)["fault"]
    until(lambda: seen(cloud, "listener", listener)["status"] == "active")


def test_a_load_balancer_whose_members_are_all_dead_says_so(cloud: LocalCloud, webs: list[dict[str, Any]]) -> None:
    made_ = balanced(cloud, webs)
    until(lambda: got(made_["address"], 80))
    cloud.operate("server", [Operation(web["id"], "stop") for web in webs])
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://{made_['address']}:80/", timeout=PATIENCE_S)


def test_a_listener_without_members_says_that_nobody_is_there(cloud: LocalCloud) -> None:
    made_ = balanced(cloud, [])
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://{made_['address']}:80/", timeout=PATIENCE_S)


def test_everything_goes_when_the_cloud_is_destroyed(tmp_path: Path) -> None:
    cloud = LocalCloud(tmp_path / "other")
    server(cloud, "web", WEB)
    balanced(cloud, [])
    assert owned(tmp_path / "other")
    cloud.destroy()
    assert owned(tmp_path / "other") == []
    assert not (tmp_path / "other").exists()
