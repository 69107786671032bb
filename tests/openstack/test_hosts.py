"""Hosts of a real OpenStack: a control plane that pauses costs none; of one that fails servers move (ADR 0093)."""

import contextlib
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from homeostat.clouds.openstack.server_room import ServerRoom
from tests.openstack import projects
from tests.openstack.adapter import adapter
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.message_bus import without_messages
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving

INTERVAL_S = 5
NODES = 4
HOSTS = ("compute1", "compute2")
SERVER = {"image": "mini", "flavor": "m1.tiny", "networks": [{"allocate_network": "none"}]}
BEATS = 3
"""Changes of the record of a host, of which one may be that it was declared down."""
RECOVERED_S = 60.0
"""A host that fails for good is found, cut off, and its first server made again within so long."""
BACK_S = 240.0
"""For hosts to be heard of after a pause: who waits for an answer of the bus does so for a minute."""


@pytest.fixture(scope="module")
def two_hosts(openstack_cloud: OpenStack) -> None:
    if open_cloud(openstack_cloud.directory).site.settings.computes < len(HOSTS):
        pytest.skip("the OpenStack has one host: bring it up with --computes 2")


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack, two_hosts: None) -> Iterator[Project]:
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@dataclass(frozen=True, slots=True)
class Scene:
    """admin — a connection of the administrator; name — of a stack with a group for which a health policy holds."""

    cloud: OpenStack
    served: Served
    admin: Connection
    name: str

    def health(self) -> list[Wire]:
        answer = self.served.http.get(self.served.path(self.name, "health"))
        assert answer.status_code == 200, answer.text
        return sorted(answer.json()["health"], key=lambda each: str(each["resource_name"]))

    def servers(self) -> list[str]:
        return [each["physical_resource_id"] for each in self.health()]

    def well(self) -> bool:
        return [each["finding"] for each in self.health()] == ["healthy"] * NODES and self.served.is_well(self.name)

    def explained(self) -> str:
        return str(self.served.explanation(self.served.handles(self.name)["group"]))

    def hosts(self) -> dict[str, tuple[str, bool]]:
        """Host -> its state, and whether it was declared down."""
        found = self.admin.compute.services(binary="nova-compute")
        return {each.host: (each.state, each.is_forced_down) for each in found}

    def host_of(self, server: str) -> str:
        return str(self.admin.compute.get_server(server).compute_host)

    def beat_of(self, host: str) -> str:
        return str(next(self.admin.compute.services(binary="nova-compute", host=host)).updated_at)

    def lift(self) -> None:
        """Say that no host is down any more."""
        for each in self.admin.compute.services(binary="nova-compute"):
            self.admin.compute.update_service_forced_down(each, each.host, "nova-compute", forced=False)
            self.admin.compute.enable_service(each, each.host, "nova-compute")

    def all_up(self) -> bool:
        return all(shown == ("up", False) for shown in self.hosts().values())


def resources() -> Wire:
    policy = {
        "target": {"get_resource": "group"},
        "detection": {
            "interval": INTERVAL_S,
            "node_update_timeout": 0,
            "detection_modes": [{"type": "HYPERVISOR_STATUS_POLLING"}],
        },
        "recovery": {"actions": [{"name": "RECREATE"}], "fencing": ["COMPUTE"], "verify_timeout": 30},
    }
    group = {"count": NODES, "resource_def": {"type": "OS::Nova::Server", "properties": SERVER}}
    return {
        "group": {"type": "OS::Heat::ResourceGroup", "properties": group},
        "health": {"type": "Homeostat::HealthPolicy", "properties": policy},
    }


@pytest.fixture(scope="module")
def scene(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    auth, folder = projects.auth_of_admin(mine), tmp_path_factory.mktemp("service") / "state"
    name = f"farm-{uuid.uuid4().hex[:6]}"
    with (
        serving(mine, folder, "--health-interval-min", "1", auth=auth) as served,
        contextlib.closing(mine.admin()) as admin,
    ):
        found = Scene(mine.cloud, served, admin, name)
        found.lift()
        eventually(found.all_up, "hosts that are up", BACK_S)
        served.create(name, resources())
        assert served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", served.failures(name)
        eventually(found.well, "healthy members")
        yield found
        found.lift()
        id = served.stack(name)["id"]
        served.delete(name)
        assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)


@contextlib.contextmanager
def without_conductor(cloud: OpenStack) -> Iterator[None]:
    with cloud.stopped("nova-conductor"):
        yield


PAUSES: Mapping[str, Callable[[OpenStack], contextlib.AbstractContextManager[None]]] = {
    "RabbitMQ": without_messages,
    "nova-conductor": without_conductor,
}


@pytest.mark.parametrize("what", PAUSES)
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


@contextlib.contextmanager
def failed(scene: Scene, host: str) -> Iterator[None]:
    """A host has failed; in the end it beats again, and then its operator says that it works."""
    try:
        with scene.cloud.stopped(f"nova-{host}", signal.SIGKILL):
            yield
        for _ in range(BEATS):
            beat = scene.beat_of(host)
            eventually(lambda beat=beat: scene.beat_of(host) != beat, "a beat", BACK_S)  # type: ignore[misc]
    finally:
        scene.lift()
    eventually(scene.all_up, "hosts that are up", BACK_S)


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


def test_placement_says_whether_a_host_has_room(mine: Project, scene: Scene, tmp_path: Any) -> None:
    small = {"flavor": {"vcpus": 1, "ram": 64, "disk": 0}, "image": ""}
    large = {"flavor": {"vcpus": 100_001, "ram": 64, "disk": 0}, "image": ""}
    with adapter(mine, tmp_path, auth=projects.auth_of_admin(mine)) as cloud:
        room = ServerRoom(cloud.of(mine.id))
        assert [room.is_full(each, HOSTS) for each in (small, large)] == [False, True]
        assert room.is_full(small, ["nowhere"])
    with adapter(mine, tmp_path) as cloud:
        assert not ServerRoom(cloud.of(mine.id)).is_full(large, HOSTS), "who may not ask is believed to have room"
