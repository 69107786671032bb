"""What every adapter must do with operations on servers that have arguments, with fencing, and with their hosts."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_clouds import NOWHERE, Subject, others, present
from tests.contract.test_clouds import local as local_cloud
from tests.kind_checks import misfits

from homeostat.clouds.heat_api import Regions
from homeostat.clouds.local.hypervisors import HOST
from homeostat.clouds.local.server_boot import PASSWORD
from homeostat.clouds.port import Answer, Creation, Operation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.kinds.compute import FENCES
from homeostat.model.errors import Terminal
from homeostat.model.observed import Observation, Presence

__all__ = ["others"]  # fixture


def simulated(path: Path, others: Regions) -> Iterator[Subject]:
    clock = [0.0]

    def rest(seconds: float) -> None:
        clock[0] += seconds

    yield Subject(SimulatedCloud(lambda: clock[0]), rest)


ADAPTERS: dict[str, Callable[[Path, Regions], Iterator[Subject]]] = {"local": local_cloud, "simulated": simulated}


@pytest.fixture(params=sorted(ADAPTERS))
def subject(request: pytest.FixtureRequest, tmp_path: Path, others: Regions) -> Iterator[Subject]:
    with contextlib.contextmanager(ADAPTERS[request.param])(tmp_path, others) as opened:
        yield opened


@pytest.fixture
def local(tmp_path: Path, others: Regions) -> Iterator[Subject]:
    with contextlib.contextmanager(local_cloud)(tmp_path, others) as opened:
        yield opened


def operate(subject: Subject, handle: str, verb: str, **arguments: Any) -> Answer:
    return subject.cloud.operate("server", [Operation(handle, verb, arguments)])[0]


def status(subject: Subject, handle: str) -> str:
    return str(subject.cloud.observe("server", [handle])[0].properties["status"])


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([("reboot", {"type": "HARD"})], "active"),
        ([("reboot", {"type": "SOFT"})], "active"),
        ([("rescue", {})], "rescue"),
        ([("rescue", {"admin_pass": "s3cret"}), ("rescue", {})], "rescue"),
        ([("rescue", {}), ("unrescue", {})], "active"),
        ([("unrescue", {})], "active"),
        ([("rescue", {}), ("reboot", {})], "active"),
        ([("restore", {})], "active"),
        ([("change_password", {"admin_pass": "s3cret"})], "active"),
        ([("unfence", {"what": ["NETWORK"]})], "active"),
    ],
)
def test_operations_with_arguments(subject: Subject, operations: list[tuple[str, Any]], expected: str) -> None:
    handle = subject["server"]
    for verb, arguments in operations:
        assert misfits("server", present(operate(subject, handle, verb, **arguments)).properties) == []
    subject.until("server", handle, lambda seen: seen.properties["status"] == expected)


def test_a_server_that_is_rebuilt_keeps_what_is_its_own(subject: Subject) -> None:
    handle = subject.create("server", "rebuilt", networks=[{"port": subject["port"]}]).handle
    subject.made["server"] = handle
    attached = subject["volume_attachment"]
    before = subject.cloud.observe("server", [handle])[0].properties
    assert present(operate(subject, handle, "rebuild")).handle == handle
    after = subject.until_built("server", handle).properties
    kept = ("id", "addresses", "address", "image", "name", "metadata", "host")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert subject.cloud.observe("volume_attachment", [attached])[0].present


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("change_password", {}),
        ("fence", {"what": []}),
        ("fence", {"what": ["POWER"]}),
        ("fence", {"what": "COMPUTE"}),
        ("unfence", {"what": [1]}),
        ("evacuate", {}),
    ],
)
def test_what_is_impossible_is_refused_with_a_reason(subject: Subject, verb: str, arguments: Any) -> None:
    refused = operate(subject, subject["server"], verb, **arguments)
    assert isinstance(refused, Terminal)
    assert str(refused)


def test_every_operation_is_answered_where_there_is_no_server(subject: Subject) -> None:
    for verb in ("reboot", "restore", "evacuate", "rescue", "unrescue", "change_password", "fence", "unfence"):
        answer = operate(subject, NOWHERE, verb, admin_pass="s3cret", what=["COMPUTE"])
        assert isinstance(answer, Observation)
        assert answer.presence is Presence.ABSENT


# -- fencing -----------------------------------------------------------------------------------------------------------


def fenced(subject: Subject, handle: str, what: list[str]) -> list[str]:
    """Ask until nothing is left to be cut off."""

    def asked() -> Observation:
        return present(operate(subject, handle, "fence", what=what))

    seen = subject.until("server", handle, lambda _: not asked().properties["not_fenced"])
    assert seen.present
    return list(asked().properties["fenced"])


@pytest.mark.parametrize("what", [["COMPUTE"], list(FENCES), ["STORAGE", "COMPUTE"]])
def test_a_server_is_fenced_and_fenced_again(subject: Subject, what: list[str]) -> None:
    handle = subject["server"]
    for _ in range(2):
        assert fenced(subject, handle, what) == [each for each in FENCES if each in what]
    assert status(subject, handle) == "stopped"
    assert "fenced" not in subject.cloud.observe("server", [handle])[0].properties, "it is true of that moment alone"


def test_a_fenced_server_has_no_volumes_and_its_ports_are_down(subject: Subject) -> None:
    port, volume = subject["port"], subject["volume"]
    handle = subject.create("server", "fenced", networks=[{"port": port}]).handle
    subject.made["server"] = handle
    attachment = subject["volume_attachment"]
    assert fenced(subject, handle, list(FENCES)) == list(FENCES)
    assert not subject.cloud.observe("volume_attachment", [attachment])[0].present
    assert subject.cloud.observe("volume", [volume])[0].present
    assert subject.cloud.observe("port", [port])[0].properties["admin_state_up"] is False
    present(operate(subject, handle, "unfence", what=["NETWORK"]))
    assert subject.cloud.observe("port", [port])[0].properties["admin_state_up"] is True


def test_a_locked_server_is_fenced_all_the_same(subject: Subject) -> None:
    handle = subject["server"]
    present(operate(subject, handle, "lock"))
    assert fenced(subject, handle, ["COMPUTE"]) == ["COMPUTE"]


def test_what_is_not_seen_to_be_cut_off_is_not_listed() -> None:
    cloud = SimulatedCloud(lambda: 0.0, CloudBehaviour(faults=Faults(fence=1.0)))
    handle = present(cloud.create("server", [Creation("t", {"name": "web"})])[0]).handle
    seen = present(cloud.operate("server", [Operation(handle, "fence", {"what": ["COMPUTE"]})])[0]).properties
    assert (seen["fenced"], [*seen["not_fenced"]]) == ([], ["COMPUTE"])


def test_ports_and_volumes_of_a_guest_that_lives_do_not_count_as_cut_off(local: Subject) -> None:
    handle = local["server"]
    seen = present(operate(local, handle, "fence", what=["NETWORK", "STORAGE"])).properties
    assert (seen["fenced"], [*seen["not_fenced"]]) == ([], ["NETWORK", "STORAGE"])
    assert status(local, handle) == "active"


def test_nothing_leads_to_a_fenced_server(local: Subject) -> None:
    handle = local.create("server", "led-to", networks=[{"port": local["port"]}]).handle
    floating = local.create("floating_ip", "leads", port_id=local["port"]).handle
    assert local.cloud.observe("floating_ip", [floating])[0].properties["status"] == "active"
    assert fenced(local, handle, ["COMPUTE", "NETWORK"]) == ["COMPUTE", "NETWORK"]
    seen = local.cloud.observe("floating_ip", [floating])[0].properties
    assert (seen["status"], seen["pid"], seen["port_id"]) == ("down", None, local["port"])
    present(operate(local, handle, "unfence", what=["NETWORK"]))
    assert local.cloud.observe("floating_ip", [floating])[0].properties["status"] == "active"


def test_a_rescued_guest_has_its_disk_and_not_its_user_data(local: Subject) -> None:
    script = "#!/bin/sh\necho booted >> $HOME/said\nsleep 600\n"
    handle = local.create("server", "rescued", user_data=script).handle
    log = Path(local.cloud.observe("server", [handle])[0].properties["console_log"])
    said = log.parent / "root/said"
    local.until("server", handle, lambda _: said.exists())
    present(operate(local, handle, "rescue"))
    assert (said.read_text(), (log.parent / "user-data").exists()) == ("booted\n", False)
    present(operate(local, handle, "unrescue"))
    local.until("server", handle, lambda _: said.read_text() == "booted\nbooted\n")


def test_a_password_is_stored_as_its_hash_alone(local: Subject) -> None:
    handle = local["server"]
    present(operate(local, handle, "change_password", admin_pass="very s3cret"))
    home = Path(local.cloud.observe("server", [handle])[0].properties["console_log"]).parent
    stored = home / PASSWORD
    assert stored.read_text().startswith("scrypt$")
    assert stored.stat().st_mode & 0o777 == 0o600
    texts = [Path(at, name).read_bytes() for at, _, names in os.walk(home.parent.parent) for name in names]
    assert not [text for text in texts if b"very s3cret" in text]


# -- hosts -------------------------------------------------------------------------------------------------------------


def test_servers_name_their_host_which_is_only_looked_at(subject: Subject) -> None:
    cloud, host = subject.cloud, subject.cloud.observe("server", [subject["server"]])[0].properties["host"]
    seen, missing = cloud.observe("hypervisor", [host, "nowhere"])
    assert misfits("hypervisor", present(seen).properties) == []
    assert seen.handle == seen.properties["id"] == host
    fields = ("state", "status", "forced_down")
    assert [seen.properties[name] for name in fields] == ["up", "enabled", False]
    assert missing.presence is Presence.ABSENT
    assert cloud.find("hypervisor", ["token"])[0].presence is Presence.ABSENT
    assert cloud.resolve("hypervisor", [host, "nowhere"]) == [host, None]
    refused = [
        *cloud.create("hypervisor", [Creation("t", {"name": "another"})]),
        *cloud.delete("hypervisor", [host]),
        *cloud.operate("hypervisor", [Operation(host, "stop")]),
    ]
    assert all(isinstance(each, Terminal) for each in refused)
    assert len(refused) == 3


def test_the_local_cloud_is_one_host(local: Subject) -> None:
    assert local.cloud.observe("server", [local["server"]])[0].properties["host"] == HOST
    assert HOST in str(operate(local, local["server"], "evacuate"))
    assert isinstance(operate(local, local["server"], "evacuate", **{"from": "another"}), Observation)


def test_a_simulated_host_fails_and_its_servers_are_evacuated() -> None:
    clock = [1_000_000.0]
    cloud = SimulatedCloud(lambda: clock[0]).of("p")
    handle = present(cloud.create("server", [Creation("t", {"name": "web"})])[0]).handle
    host = cloud.things("server")[handle]["host"]
    cloud.fail_host(host)
    assert present(cloud.observe("hypervisor", [host])[0]).properties["state"] == "down"
    assert cloud.things("server")[handle]["status"] == "unreachable"
    fence = [Operation(handle, "fence", {"what": ["COMPUTE"], "host_down": True})]
    seen = present(cloud.operate("server", fence)[0])
    assert (seen.properties["fenced"], "less than 20 s" in seen.properties["not_fenced"]["COMPUTE"]) == ([], True)
    clock[0] += 60.0
    seen = present(cloud.operate("server", fence)[0])
    assert seen.properties["fenced"] == ["COMPUTE"]
    assert cloud.observe("hypervisor", [host])[0].properties["forced_down"] is True
    for _ in range(2):
        moved = present(cloud.operate("server", [Operation(handle, "evacuate", {"from": host})])[0])
        assert (moved.properties["status"], moved.properties["host"] != host) == ("active", True)
    cloud.fail_host(host, back=True)
    assert cloud.observe("hypervisor", [host])[0].properties["state"] == "up"
    assert present(cloud.operate("server", fence)[0]).properties["not_fenced"] == {
        "COMPUTE": "its host is not called down now"
    }
    cloud.hosts.hidden = True
    assert cloud.observe("hypervisor", [host])[0].presence is Presence.UNKNOWN


def test_while_the_simulated_control_plane_pauses_no_host_is_declared_down() -> None:
    clock = [1_000_000.0]
    cloud = SimulatedCloud(lambda: clock[0]).of("p")
    handle = present(cloud.create("server", [Creation("t", {"name": "web"})])[0]).handle
    host = cloud.things("server")[handle]["host"]
    cloud.hosts.pause(clock[0])
    clock[0] += 600.0
    seen = present(cloud.observe("hypervisor", [host])[0]).properties
    assert (seen["state"], "control plane" in seen["blind"]) == ("down", True)
    assert cloud.things("server")[handle]["status"] == "active"
    answer = present(cloud.operate("server", [Operation(handle, "fence", {"what": ["COMPUTE"]})])[0])
    assert (answer.properties["fenced"], cloud.hosts.forced, answer.properties["status"]) == ([], set(), "active")


def test_a_simulated_host_is_not_declared_down_without_room_on_another_one() -> None:
    clock = [1_000_000.0]
    cloud = SimulatedCloud(lambda: clock[0]).of("p")
    handle = present(cloud.create("server", [Creation("t", {"name": "web"})])[0]).handle
    cloud.fail_host(cloud.things("server")[handle]["host"])
    cloud.hosts.no_room = True
    clock[0] += 60.0
    fence = [Operation(handle, "fence", {"what": ["COMPUTE", "NETWORK"]})]
    answer = present(cloud.operate("server", fence)[0])
    assert (answer.properties["fenced"], cloud.hosts.forced) == ([], set())
    assert {"no other host has room" in each for each in answer.properties["not_fenced"].values()} == {True}
    cloud.hosts.no_room = False
    assert present(cloud.operate("server", fence)[0]).properties["fenced"] == ["COMPUTE", "NETWORK"]
