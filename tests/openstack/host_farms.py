"""Groups of servers on two hosts of a real OpenStack, with a health policy that looks at hosts and cuts off."""

import contextlib
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from openstack.connection import Connection
from openstack.exceptions import SDKException

from tests.openstack import projects
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.message_bus import without_messages
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving

INTERVAL_S = 5
NODES = 4
HOSTS = ("compute1", "compute2")
SERVER = {"image": "mini", "flavor": "m1.tiny", "networks": [{"allocate_network": "none"}]}
HOST, STATUS = "HYPERVISOR_STATUS_POLLING", "NODE_STATUS_POLLING"
BEATS = 3
"""Changes of the record of a host, of which one may be that it was declared down."""
RECOVERED_S = 60.0
"""A host that fails for good is found, cut off, and its first server made again within so long."""
BACK_S = 240.0
"""For hosts to be heard of after a pause: who waits for an answer of the bus does so for a minute."""


def needs_two_hosts(cloud: OpenStack) -> None:
    if open_cloud(cloud.directory).site.settings.computes < len(HOSTS):
        pytest.skip("the OpenStack has one host: bring it up with --computes 2")


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

    def declared(self) -> list[Wire]:
        """Hosts that are declared down, with the evidence."""
        return list(self.served.http.get(self.served.path(self.name, "health")).json()["hosts"])

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
        try:
            return all(shown == ("up", False) for shown in self.hosts().values())
        except SDKException:  # Nova has not come to itself yet
            return False


def resources(*modes: str) -> Wire:
    policy = {
        "target": {"get_resource": "group"},
        "detection": {
            "interval": INTERVAL_S,
            "node_update_timeout": 0,
            "detection_modes": [{"type": each} for each in modes],
        },
        "recovery": {"actions": [{"name": "RECREATE"}], "fencing": ["COMPUTE"], "verify_timeout": 30},
    }
    group = {"count": NODES, "resource_def": {"type": "OS::Nova::Server", "properties": SERVER}}
    return {
        "group": {"type": "OS::Heat::ResourceGroup", "properties": group},
        "health": {"type": "Homeostat::HealthPolicy", "properties": policy},
    }


@contextlib.contextmanager
def farm(mine: Project, folder: Path, *modes: str) -> Iterator[Scene]:
    """A group that is well."""
    auth, name = projects.auth_of_admin(mine), f"farm-{uuid.uuid4().hex[:6]}"
    with (
        serving(mine, folder, "--health-interval-min", "1", auth=auth) as served,
        contextlib.closing(mine.admin()) as admin,
    ):
        found = Scene(mine.cloud, served, admin, name)
        found.lift()
        eventually(found.all_up, "hosts that are up", BACK_S)
        served.create(name, resources(*modes))
        assert served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", served.failures(name)
        eventually(found.well, "healthy members")
        yield found
        found.lift()
        id = served.stack(name)["id"]
        served.delete(name)
        assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)


def stopped(process: str) -> Callable[[OpenStack], contextlib.AbstractContextManager[None]]:
    return lambda cloud: cloud.stopped(process)


PAUSES: Mapping[str, Callable[[OpenStack], contextlib.AbstractContextManager[None]]] = {
    "RabbitMQ": without_messages,
    **{name: stopped(name) for name in ("nova-conductor", "mariadb", "nova-scheduler", "neutron-api")},
}
"""What pauses -> pauses it. Of the first two Nova hears of no host."""


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
