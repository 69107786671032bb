"""Groups of servers on two hosts of a real OpenStack, with health policies that cut off what they recover."""

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
HOST, STATUS, EVENTS = "HYPERVISOR_STATUS_POLLING", "NODE_STATUS_POLLING", "LIFECYCLE_EVENTS"
URL, POOL = "NODE_STATUS_POLL_URL", "LB_STATUS_POLLING"
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
    """admin — a connection of the administrator; names — of stacks with a group for which a health policy holds."""

    cloud: OpenStack
    served: Served
    admin: Connection
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first stack."""
        return self.names[0]

    def health(self) -> list[Wire]:
        """Of all members of all stacks, in their order."""
        return [each for name in self.names for each in self._health_of(name)]

    def _health_of(self, name: str) -> list[Wire]:
        found = self.served.handles(name).get("cluster", name)
        answer = self.served.http.get(self.served.path(found, "health"))
        assert answer.status_code == 200, answer.text
        return sorted(answer.json()["health"], key=lambda each: str(each["resource_name"]))

    def declared(self) -> list[Wire]:
        """Hosts that are declared down, with the evidence."""
        return list(self.served.http.get(self.served.path(self.name, "health")).json()["hosts"])

    def servers(self) -> list[str]:
        return [each["physical_resource_id"] for each in self.health()]

    def well(self) -> bool:
        found = [each["finding"] for each in self.health()]
        return found == ["healthy"] * NODES * len(self.names) and all(map(self.served.is_well, self.names))

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


def policy_body(*modes: Wire) -> Wire:
    """What a health policy looks for and does. modes — ways to see what is unhealthy."""
    return {
        "detection": {"interval": INTERVAL_S, "node_update_timeout": 0, "detection_modes": list(modes)},
        "recovery": {"actions": [{"name": "RECREATE"}], "fencing": ["COMPUTE"], "verify_timeout": 30},
    }


def resources(*modes: str, **options: str) -> Wire:
    """A group and its policy. options — of each of the ways to see what is unhealthy."""
    looks: list[Wire] = [{"type": each, **({"options": options} if options else {})} for each in modes]
    group = {"count": NODES, "resource_def": {"type": "OS::Nova::Server", "properties": SERVER}}
    return {
        "group": {"type": "OS::Heat::ResourceGroup", "properties": group},
        "health": {
            "type": "Homeostat::HealthPolicy",
            "properties": {"target": {"get_resource": "group"}, **policy_body(*looks)},
        },
    }


@contextlib.contextmanager
def farm(mine: Project, folder: Path, *modes: str) -> Iterator[Scene]:
    """A group that is well."""
    with farms(mine, folder, {"farm": resources(*modes)}) as found:
        yield found


@contextlib.contextmanager
def farms(mine: Project, folder: Path, wanted: Mapping[str, Wire], *flags: str) -> Iterator[Scene]:
    """Groups that are well. wanted — name -> resources; flags — of the service."""
    auth, suffix = projects.auth_of_admin(mine), uuid.uuid4().hex[:6]
    stacks = {f"{name}-{suffix}": each for name, each in wanted.items()}
    with (
        serving(mine, folder, "--health-interval-min", "1", *flags, auth=auth) as served,
        contextlib.closing(mine.admin()) as admin,
    ):
        found = Scene(mine.cloud, served, admin, tuple(stacks))
        found.lift()
        eventually(found.all_up, "hosts that are up", BACK_S)
        for name, each in stacks.items():
            served.create(name, each)
        for name in stacks:
            assert served.at_rest(name)["stack_status"] == "CREATE_COMPLETE", served.failures(name)
        eventually(found.well, "healthy members")
        yield found
        found.lift()
        ids = [served.stack(name)["id"] for name in stacks]
        for name in stacks:
            served.delete(name)
        for id in ids:
            assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)


def stopped(process: str) -> Callable[[OpenStack], contextlib.AbstractContextManager[None]]:
    return lambda cloud: cloud.stopped(process)


PAUSES: Mapping[str, Callable[[OpenStack], contextlib.AbstractContextManager[None]]] = {
    "RabbitMQ": without_messages,
    **{
        name: stopped(name)
        for name in (
            "nova-conductor",
            "mariadb",
            "nova-scheduler",
            "neutron-api",
            "neutron-rpc-server",
            "neutron-dhcp-agent",
            "placement",
            "octavia-api",
            "keystone",
        )
    },
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
