"""Health policies on a real OpenStack: what each detection sees of its real source, and what is done about it."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack import projects
from tests.openstack.host_farms import needs_two_hosts
from tests.openstack.message_bus import PROMPT_S, remove_queue
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving
from tests.waiting import until

INTERVAL_S = 5
NODES = 3
SERVER = {"image": "mini", "flavor": "m1.tiny", "networks": [{"allocate_network": "none"}]}
EVENTS, STATUS, HOST = "LIFECYCLE_EVENTS", "NODE_STATUS_POLLING", "HYPERVISOR_STATUS_POLLING"
LONG_S = 3600
"""Between two looks: longer than a test waits."""


@dataclass(frozen=True, slots=True)
class Scene:
    """user — a connection of the project's user."""

    openstack: OpenStack
    served: Served
    user: Connection

    def health(self, name: str) -> list[Wire]:
        answer = self.served.http.get(self.served.path(name, "health"))
        assert answer.status_code == 200, answer.text
        return list(answer.json()["health"])

    def findings(self, name: str) -> list[str]:
        return [each["finding"] for each in sorted(self.health(name), key=lambda each: str(each["resource_name"]))]

    def well(self, name: str) -> bool:
        return self.findings(name) == ["healthy"] * NODES and self.served.is_well(name)

    def servers(self, name: str) -> list[str]:
        """Ids, in the order of the members."""
        found = sorted(self.health(name), key=lambda each: str(each["resource_name"]))
        return [each["physical_resource_id"] for each in found]

    def recovered(self, name: str) -> list[str]:
        """Reasons of the acts by which members were recovered."""
        group = self.served.handles(name)["group"]
        reasons = [each["resource_status_reason"] for each in self.served.events(group)]
        return [each for each in reasons if each.startswith("healing: ")]


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack) -> Iterator[Project]:
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture(scope="module", params=[False], ids=["user"])
def scene(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A service of the project's user, which hears notifications and checks often."""
    with _scene(mine, tmp_path_factory.mktemp("service")) as found:
        yield found


@contextlib.contextmanager
def _scene(mine: Project, folder: Any, auth: Any = None) -> Iterator[Scene]:
    pool = f"health-{uuid.uuid4()}"
    flags = ("--os-notifications", mine.cloud.transport_url, "--os-notification-pool", pool)
    try:
        with (
            serving(mine, folder / "state", *flags, "--health-interval-min", "1", auth=auth) as served,
            contextlib.closing(mine.connection()) as user,
        ):
            yield Scene(mine.cloud, served, user)
    finally:
        remove_queue(mine.cloud.transport_url, pool)


def resources(*modes: str, interval_s: int = INTERVAL_S, **recovery: Any) -> Wire:
    """A group of servers with a health policy."""
    return {
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": NODES, "resource_def": {"type": "OS::Nova::Server", "properties": SERVER}},
        },
        "health": {
            "type": "Homeostat::HealthPolicy",
            "properties": {
                "target": {"get_resource": "group"},
                "detection": {
                    "interval": interval_s,
                    "node_update_timeout": 0,
                    "detection_modes": [{"type": each} for each in modes],
                },
                "recovery": {"actions": [{"name": "REBOOT"}, {"name": "RECREATE"}], **recovery},
            },
        },
    }


def of(name: str) -> Wire:
    return {"get_resource": name}


@contextlib.contextmanager
def group(scene: Scene, *modes: str, **more: Any) -> Iterator[str]:
    """A healthy group."""
    name = f"farm-{uuid.uuid4().hex[:6]}"
    scene.served.create(name, resources(*modes, **more))
    assert scene.served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", scene.served.failures(name)
    eventually(lambda: scene.well(name), "healthy members")
    yield name
    id = scene.served.stack(name)["id"]
    scene.served.delete(name)
    assert scene.served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", scene.served.failures(id)


@pytest.mark.shows("HP5", "HS24")
def test_a_notification_is_enough_for_a_server_to_be_recovered(scene: Scene) -> None:
    with group(scene, EVENTS, interval_s=LONG_S) as name:
        before = scene.servers(name)
        scene.user.compute.stop_server(before[0])
        eventually(lambda: scene.user.compute.get_server(before[0]).status == "SHUTOFF", "the server to stop")
        stopped_at = time.monotonic()
        until(lambda: scene.recovered(name) != [], "the recovery to begin", within_s=PROMPT_S)
        print(f"the recovery has begun {time.monotonic() - stopped_at:.2f} s after its server had stopped")
        eventually(lambda: scene.well(name), "healthy members")
        assert scene.servers(name) == before
        assert scene.user.compute.get_server(before[0]).status == "ACTIVE"


@pytest.mark.shows("HP2")
def test_what_goes_wrong_without_a_notification_is_found_by_polling(scene: Scene) -> None:
    """A server that an administrator sets to error sends none that says so; a reboot does not mend a dead one."""
    with group(scene, STATUS) as name:
        before = scene.servers(name)
        scene.user.compute.delete_server(before[1])
        eventually(lambda: scene.servers(name)[1] not in (before[1], ""), "another server")
        eventually(lambda: scene.well(name), "healthy members")
        after = scene.servers(name)
        assert (after[0], after[2]) == (before[0], before[2])


def test_a_nova_that_is_away_makes_nothing_unhealthy(scene: Scene) -> None:
    with group(scene, STATUS) as name:
        before = scene.servers(name)
        with scene.openstack.stopped("nova-api"):
            eventually(lambda: scene.findings(name) == ["unknown"] * NODES, "members of which nothing is known")
            time.sleep(2 * INTERVAL_S)
            assert scene.findings(name) == ["unknown"] * NODES
        eventually(lambda: scene.well(name), "healthy members")
        assert scene.servers(name) == before
        assert scene.recovered(name) == []


def test_a_server_that_is_made_again_keeps_its_address(scene: Scene) -> None:
    def addresses() -> list[str]:
        found = [scene.user.compute.get_server(each) for each in scene.servers(name)]
        return [each["addr"] for one in found for group in one.addresses.values() for each in group]

    name = f"kept-{uuid.uuid4().hex[:6]}"
    kept = resources(STATUS, actions=[{"name": "RECREATE"}], preserve=["addresses"], by_hint=False)
    member = kept["group"]["properties"]["resource_def"]["properties"]
    kept["group"]["properties"]["resource_def"]["properties"] = {**member, "networks": [{"network": of("net")}]}
    kept["group"]["depends_on"] = "subnet"
    kept["net"] = {"type": "OS::Neutron::Net"}
    kept["subnet"] = {"type": "OS::Neutron::Subnet", "properties": {"network": of("net"), "cidr": "10.77.0.0/24"}}
    scene.served.create(name, kept)
    assert scene.served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", scene.served.failures(name)
    eventually(lambda: scene.well(name), "healthy members")
    before, had = scene.servers(name), addresses()
    scene.user.compute.stop_server(before[1])
    eventually(lambda: scene.servers(name)[1] not in (before[1], ""), "another server")
    eventually(lambda: scene.well(name), "healthy members")
    assert addresses() == had
    id = scene.served.stack(name)["id"]
    scene.served.delete(name)
    assert scene.served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", scene.served.failures(id)


@pytest.mark.shows("HP4")
def test_servers_of_a_host_that_is_down_are_unhealthy_to_who_may_see_hosts(
    mine: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    needs_two_hosts(mine.cloud)
    admin = projects.auth_of_admin(mine)
    with (
        contextlib.closing(mine.admin()) as nova,
        _scene(mine, tmp_path_factory.mktemp("service"), admin) as scene,
        group(scene, HOST, mode="observe", max_unhealthy="40%") as name,
    ):
        before = scene.servers(name)
        hosts = [str(nova.compute.get_server(each).compute_host) for each in before]
        with scene.openstack.stopped(f"nova-{hosts[0]}"):
            wanted = ["unhealthy" if each == hosts[0] else "healthy" for each in hosts]
            eventually(lambda: scene.findings(name) == wanted, "members on a host that is down")
            ill = [each["reason"] for each in scene.health(name) if each["finding"] == "unhealthy"]
            assert all(hosts[0] in each for each in ill), ill
        eventually(lambda: scene.well(name), "healthy members")
        assert scene.servers(name) == before
        assert scene.recovered(name) == []


def test_who_may_not_see_hosts_knows_nothing_of_them(scene: Scene) -> None:
    name = f"farm-{uuid.uuid4().hex[:6]}"
    scene.served.create(name, resources(HOST))
    assert scene.served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", scene.served.failures(name)
    eventually(lambda: scene.findings(name) == ["unknown"] * NODES, "members of which nothing is known")
    scene.served.delete(name)
