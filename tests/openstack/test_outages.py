"""Services of OpenStack that are away for a while: nothing is made anew, nothing fails, and all goes on afterwards."""

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.openstack import projects
from tests.openstack.cloud.cloud import open_cloud
from tests.openstack.message_bus import without_messages
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import SETTLES_S, Served, serving

pytestmark = [pytest.mark.alone, pytest.mark.services("octavia")]
LOOK_S = 1.0
NET: dict[str, Any] = {"type": "OS::Neutron::Net"}
SUBNET = {"type": "OS::Neutron::Subnet", "properties": {"network": {"get_resource": "net"}, "cidr": "10.9.0.0/24"}}
SERVER = {
    "type": "OS::Nova::Server",
    "properties": {"image": "mini", "flavor": "m1.tiny", "networks": [{"port": {"get_resource": "port"}}]},
}
BALANCER = {"type": "OS::Octavia::LoadBalancer", "properties": {"vip_subnet": {"get_resource": "subnet"}}}


def volume(name: str) -> dict[str, Any]:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 1, "name": name}}


def small(name: str, more: str = "") -> dict[str, Any]:
    """One thing of each service, so that each outage concerns one of them."""
    port = {"network": {"get_resource": "net"}, "fixed_ips": [{"subnet": {"get_resource": "subnet"}}]}
    return {
        "net": {**NET, "properties": {"name": name + more}},
        "subnet": SUBNET,
        "port": {"type": "OS::Neutron::Port", "properties": {**port, "name": name}},
        "volume": volume(name + more),
    }


def whole(name: str) -> dict[str, Any]:
    return {**small(name), "server": SERVER, "balancer": BALANCER}


@dataclass(frozen=True, slots=True)
class Outage:
    """away — makes it so, for as long as it is entered. said — what `doctor` names. named — pattern of `explain`."""

    name: str
    away: Callable[[OpenStack], "contextlib.AbstractContextManager[None]"]
    said: str
    named: str


def stopped(process: str, said: str, named: str) -> Outage:
    return Outage(process, lambda cloud: cloud.stopped(process), said, named)


@contextlib.contextmanager
def hanging(cloud: OpenStack, process: str) -> Iterator[None]:
    pid = open_cloud(cloud.directory).processes.pid(process)
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


OUTAGES = (
    stopped("neutron-api", "openstack network", "network gave no answer"),
    stopped("nova-api", "openstack compute", "compute gave no answer"),
    stopped("cinder-api", "openstack block-storage", "block-storage gave no answer"),
    stopped("octavia-api", "openstack load-balancer", "load-balancer gave no answer"),
    stopped("keystone", "openstack login", "compute: "),
    stopped("mariadb", "openstack login", "network|compute|block-storage|load-balancer"),
    Outage("hanging neutron-api", lambda cloud: hanging(cloud, "neutron-api"), "openstack network", "timed out"),
)
QUICK = ("neutron-api",)
"""The others take more than a minute, or differ little."""


@pytest.fixture(scope="module")
def mine(openstack_cloud: OpenStack) -> Iterator[Project]:
    made = projects.create(openstack_cloud)
    yield made
    projects.remove(made)


@pytest.fixture(scope="module")
def served(mine: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(mine, tmp_path_factory.mktemp("service") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def calm(served: Served) -> str:
    """A stack at rest, with a thing of each service."""
    served.create("calm", whole("calm"), LOOK_S)
    found = served.at_rest("calm")
    assert found["stack_status"] == "CREATE_COMPLETE", found
    return "calm"


def counted(project: Project, name: str) -> dict[str, int]:
    """How many things of a name there are."""
    with contextlib.closing(project.connection()) as user:
        return {
            "net": len(list(user.network.networks(name=name))),
            "port": len(list(user.network.ports(name=name))),
            "volume": len(list(user.block_storage.volumes(name=name))),
        }


@pytest.mark.parametrize(
    "outage",
    [pytest.param(each, marks=[] if each.name in QUICK else [pytest.mark.slow]) for each in OUTAGES],
    ids=lambda each: each.name,
)
def test_a_service_that_is_away(
    openstack_cloud: OpenStack, mine: Project, served: Served, calm: str, outage: Outage
) -> None:
    tag = outage.name.replace(" ", "-")
    making, late, changing, going = (f"{verb}-{tag}" for verb in ("making", "late", "changing", "going"))
    for each in (changing, going):
        served.create(each, small(each))
    for each in (changing, going):
        assert served.at_rest(each)["stack_status"] == "CREATE_COMPLETE"
    before, ports = served.handles(calm), served.handles(changing)
    gone = served.stack(going)["id"]
    served.create(making, small(making))
    with outage.away(openstack_cloud):
        served.update(changing, small(changing, "-new"))
        served.delete(going)
        served.create(late, small(late))
        # The look during which it went away may name only another service, which asks this one.
        eventually(lambda: re.search(outage.named, served.unseen(calm)), f"{outage.named!r} to be explained", SETTLES_S)
        assert outage.said in served.doctor()
        assert served.handles(calm) == before
    assert served.at_rest(making)["stack_status"] == "CREATE_COMPLETE", served.failures(making)
    assert served.at_rest(late)["stack_status"] == "CREATE_COMPLETE", served.failures(late)
    assert served.at_rest(changing)["stack_status"] == "UPDATE_COMPLETE", served.failures(changing)
    assert served.at_rest(gone)["stack_status"] == "DELETE_COMPLETE"
    eventually(lambda: not served.unseen(calm), "everything to be seen again")
    assert served.handles(calm) == before
    assert served.handles(changing) == ports
    assert [served.failures(each) for each in (calm, making, late, changing)] == [[]] * 4
    assert counted(mine, making) == counted(mine, late) == {"net": 1, "port": 1, "volume": 1}
    assert counted(mine, f"{changing}-new") == {"net": 1, "port": 0, "volume": 1}
    assert counted(mine, going) == {"net": 0, "port": 0, "volume": 0}
    for each in (making, late, changing):
        served.delete(each)


@pytest.mark.slow
def test_the_message_bus_is_away(openstack_cloud: OpenStack, mine: Project, served: Served, calm: str) -> None:
    """What the services tell each other meanwhile is lost for good, so only what needs no message is made then."""
    before = served.handles(calm)
    net = {"net": {**NET, "properties": {"name": "unheard"}}}
    with without_messages(openstack_cloud):
        served.create("unheard", net, LOOK_S)
        assert served.at_rest("unheard")["stack_status"] == "CREATE_COMPLETE", served.failures("unheard")
    served.create("heard", small("heard"))
    assert served.at_rest("heard")["stack_status"] == "CREATE_COMPLETE", served.failures("heard")
    assert served.handles(calm) == before
    assert [served.failures(each) for each in (calm, "unheard", "heard")] == [[]] * 3
    assert counted(mine, "heard") == {"net": 1, "port": 1, "volume": 1}
    for each in ("heard", "unheard"):
        served.delete(each)
