"""Hosts of a real OpenStack: a control plane that pauses costs none; of one that fails servers move (ADR 0093)."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from homeostat.clouds.openstack.server_room import ServerRoom
from tests.openstack import projects
from tests.openstack.adapter import adapter
from tests.openstack.host_farms import (
    BACK_S,
    HOST,
    HOSTS,
    INTERVAL_S,
    PAUSES,
    RECOVERED_S,
    Scene,
    failed,
    farm,
    needs_two_hosts,
)
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack) -> Iterator[Project]:
    needs_two_hosts(openstack_cloud)
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture(scope="module")
def scene(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with farm(mine, tmp_path_factory.mktemp("service") / "state", HOST) as found:
        yield found


@pytest.mark.parametrize("what", ["RabbitMQ", "nova-conductor"])
def test_a_control_plane_that_pauses_costs_no_host_and_no_server(scene: Scene, what: str) -> None:
    before = scene.servers()
    with PAUSES[what](scene.cloud):
        eventually(lambda: all(state == "down" for state, _ in scene.hosts().values()), "hosts to be called down")
        eventually(lambda: all("does not count" in each["reason"] for each in scene.health()), "looks that are doubted")
        time.sleep(3 * INTERVAL_S)
        assert {each["finding"] for each in scene.health()} == {"unknown"}
    eventually(scene.all_up, "hosts that are up", BACK_S)
    eventually(scene.well, "healthy members")
    assert scene.servers() == before


def test_nothing_is_cut_off_before_another_host_takes_servers(scene: Scene) -> None:
    before = scene.servers()
    host = scene.host_of(before[0])
    (other,) = set(HOSTS) - {host}
    disabled = next(scene.admin.compute.services(binary="nova-compute", host=other))
    scene.admin.compute.disable_service(disabled, other, "nova-compute", "full")
    with failed(scene, host):
        eventually(lambda: "no other host could take another one" in scene.explained(), "the reason")
        assert scene.servers() == before
        assert scene.hosts()[host] == ("down", False)
    eventually(scene.well, "healthy members")
    assert scene.servers() == before
    assert {each.status for each in scene.admin.compute.servers() if each.id in before} == {"ACTIVE"}


def test_servers_of_a_host_that_fails_are_made_again_on_another_one(scene: Scene) -> None:
    before = scene.servers()
    host = scene.host_of(before[0])
    there = [each for each in before if scene.host_of(each) == host]
    with failed(scene, host):
        began = time.monotonic()
        eventually(lambda: scene.hosts()[host] == ("down", True), "the host to be declared down", RECOVERED_S)
        eventually(lambda: set(scene.servers()) - {*before, "", None}, "another server", RECOVERED_S)
        print(f"a server was made again {time.monotonic() - began:.0f} s after its host had failed")
        eventually(lambda: not set(there) & set(scene.servers()) and scene.well(), "all to be made again", BACK_S)
        print(f"{len(there)} servers were made again {time.monotonic() - began:.0f} s after their host had failed")
        assert host not in {scene.host_of(each) for each in scene.servers()}
        assert set(before) - set(there) <= set(scene.servers())
        (declared,) = scene.declared()
        assert f"its host {host} is down, heard of last at " in declared["reason"]
        assert (declared["host"], f"--up {host} nova-compute" in declared["released_by"]) == (host, True)
    # `failed` lifts it, as an operator would.
    eventually(lambda: scene.declared() == [], "the host to be forgotten")


def test_placement_says_whether_a_host_has_room(mine: Project, scene: Scene, tmp_path: Any) -> None:
    small = {"flavor": {"vcpus": 1, "ram": 64, "disk": 0}, "image": ""}
    large = {"flavor": {"vcpus": 100_001, "ram": 64, "disk": 0}, "image": ""}
    with adapter(mine, tmp_path, auth=projects.auth_of_admin(mine)) as cloud:
        room = ServerRoom(cloud.of(mine.id))
        assert [room.is_full(each, HOSTS) for each in (small, large)] == [False, True]
        assert room.is_full(small, ["nowhere"])
    with adapter(mine, tmp_path) as cloud:
        assert not ServerRoom(cloud.of(mine.id)).is_full(large, HOSTS), "who may not ask is believed to have room"
