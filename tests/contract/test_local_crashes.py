"""The local cloud when it is killed, and beside others."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.contract.local_things import Crash, Watching, home, made, operated, owned, seen, server
from tests.waiting import QUIET, until

from homeostat.clouds.local import LocalCloud, processes, server_status, servers
from homeostat.clouds.local.files import remove_tree
from homeostat.clouds.port import ChangeNotice, Creation
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation, Presence

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


@pytest.mark.parametrize("at", ["mkdir", "rename"])
def test_a_crash_while_a_record_is_written_leaves_no_part_of_a_thing(
    cloud: LocalCloud, root: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    made(cloud, "network", "before")
    before = cloud.handles("network")
    real = getattr(os, at)

    def crash(*arguments: Any, **more: Any) -> None:
        real(*arguments, **more) if at == "mkdir" else None
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(os, at, crash)
        with pytest.raises(Crash):
            made(cloud, "network", "lost")
    assert cloud.handles("network") == before
    assert [path.name for path in (root / "networks").iterdir() if not path.name.startswith(".")] == sorted(before)
    after = made(cloud, "network", "lost").handle
    assert sorted(cloud.handles("network")) == sorted([*before, after])
    assert sorted(path.name for path in (root / "networks").iterdir()) == sorted([".cloud", *before, after])


def test_a_half_made_server_can_be_started_once_its_maker_is_gone(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> int:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(processes, "launch", crash)
        with pytest.raises(Crash):
            server(cloud)
    monkeypatch.setattr(server_status, "BUILD_S", 0.0)
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
    assert time.monotonic() - begun_at < (10 if QUIET else 60), "a second on an idle machine"
    assert [each.properties["name"] for each in answers if isinstance(each, Observation)] == [
        f"s{i}" for i in range(20)
    ]
