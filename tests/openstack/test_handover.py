"""What one thing at a time can hold, on a real OpenStack: ports, addresses, volumes and the like go from a thing to the
one in its place, and back where that cannot be made (ADR 0094)."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.projects import Project
from tests.openstack.running import OpenStack, eventually
from tests.openstack.serving import Served, Wire, serving

ADDRESS = "10.78.0.50"


def of(name: str) -> dict[str, str]:
    return {"get_resource": name}


def thing(type: str, **properties: Any) -> Wire:
    return {"type": type, "properties": properties}


NET = {
    "net": thing("OS::Neutron::Net"),
    "sub": thing("OS::Neutron::Subnet", network=of("net"), cidr="10.78.0.0/24"),
}


def server(data: str, **properties: Any) -> Wire:
    found = thing("OS::Nova::Server", flavor="m1.tiny", user_data_format="RAW", user_data=data, **properties)
    return {**found, "depends_on": ["sub"]}


def on_port(data: str, **more: Any) -> Wire:
    port = {**thing("OS::Neutron::Port", network=of("net")), "depends_on": ["sub"]}
    return {**NET, "p": port, "s": server(data, image="mini", networks=[{"port": of("p")}], **more)}


def on_address(data: str, **more: Any) -> Wire:
    return {**NET, "s": server(data, image="mini", networks=[{"network": of("net"), "fixed_ip": ADDRESS}], **more)}


def from_volume(data: str, **more: Any) -> Wire:
    device = {"device_name": "vda", "volume_id": of("v"), "delete_on_termination": False, "boot_index": 0}
    mine = server(data, block_device_mapping_v2=[device], networks=[{"network": of("net")}], **more)
    return {**NET, "v": thing("OS::Cinder::Volume", size=1, image="mini"), "s": mine}


CASES = {"port": on_port, "address": on_address, "boot volume": from_volume}


@dataclass(frozen=True, slots=True)
class Scene:
    """user — connection of the project's user."""

    openstack: OpenStack
    served: Served
    user: Connection

    def held(self, name: str, resource: str = "s") -> Wire:
        """What the server of a stack has: ports (of those that the stack names), addresses and volumes."""
        id = self.served.handles(name)[resource]
        ports = list(self.user.network.ports(device_id=id))
        named = set(self.served.handles(name).values())
        return {
            "ports": {each.id for each in ports if each.id in named},
            "addresses": {one["ip_address"] for each in ports for one in each.fixed_ips},
            "volumes": {each.volume_id for each in self.user.compute.volume_attachments(id)},
        }

    def complete(self, name: str, state: str) -> None:
        found = self.served.at_rest(name)
        assert found["stack_status"] == state, (found["stack_status_reason"], self.served.failures(name))


@pytest.fixture(scope="module")
def scene(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with (
        serving(project, tmp_path_factory.mktemp("service") / "state") as served,
        contextlib.closing(project.connection()) as user,
    ):
        yield Scene(project.cloud, served, user)


@pytest.fixture
def name(scene: Scene) -> Iterator[str]:
    """Of a stack, which goes in the end."""
    found = f"held-{uuid.uuid4().hex[:6]}"
    yield found
    id = scene.served.stack(found)["id"]
    scene.served.delete(found)
    eventually(lambda: scene.served.stack(id)["stack_status"] == "DELETE_COMPLETE", "the stack to go", 300.0)


def alike(case: str, before: Wire, after: Wire) -> bool:
    """Whether a server has what an earlier one had; one that boots from a volume may have another address."""
    names = ("ports", "volumes") if case == "boot volume" else ("ports", "volumes", "addresses")
    return all(before[each] == after[each] for each in names)


@pytest.mark.parametrize("case", CASES)
def test_a_server_is_replaced_marked_and_replaced_again(scene: Scene, name: str, case: str) -> None:
    scene.served.create(name, CASES[case]("one"), 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    before, first = scene.held(name), scene.served.handles(name)["s"]
    scene.served.update(name, CASES[case]("two"))
    scene.complete(name, "UPDATE_COMPLETE")
    second = scene.served.handles(name)["s"]
    assert second != first
    assert alike(case, before, scene.held(name))
    scene.served.mark_unhealthy(name, "s", "a test says so")

    def is_made_anew() -> bool:
        return scene.served.handles(name)["s"] not in (second, "") and scene.served.is_well(name)

    eventually(is_made_anew, "the marked server to be made anew", 300.0)
    assert alike(case, before, scene.held(name))
    third = scene.served.handles(name)["s"]
    scene.served.update(name, CASES[case]("three"))
    scene.complete(name, "UPDATE_COMPLETE")
    assert scene.served.handles(name)["s"] != third
    assert alike(case, before, scene.held(name))


@pytest.mark.parametrize("case", CASES)
def test_a_server_has_it_again_when_the_new_one_cannot_be_made(scene: Scene, name: str, case: str) -> None:
    scene.served.create(name, CASES[case]("one"), 1.0, disable_rollback=True)
    scene.complete(name, "CREATE_COMPLETE")
    before, first, bad = scene.held(name), scene.served.handles(name)["s"], f"bad-{uuid.uuid4().hex[:8]}"
    with scene.openstack.fault("virt", op="^spawn$", name=f"^{bad}$", error="oops"):
        scene.served.update(name, CASES[case]("two", name=bad), disable_rollback=False)
        scene.complete(name, "ROLLBACK_COMPLETE")
    assert alike(case, before, scene.held(name))
    assert (scene.served.handles(name)["s"] == first) is (case != "boot volume")


def swapped(first: str, second: str, data: str) -> Wire:
    port = {**thing("OS::Neutron::Port", network=of("net")), "depends_on": ["sub"]}
    on = {"a": first, "b": second}
    servers = {each: server(data, image="mini", networks=[{"port": of(port)}]) for each, port in on.items()}
    return {**NET, "p": port, "q": port, **servers}


@pytest.mark.parametrize("data", ["one", "two"], ids=["in place", "replaced"])
def test_two_servers_swap_their_ports(scene: Scene, name: str, data: str) -> None:
    scene.served.create(name, swapped("p", "q", "one"), 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    handles = scene.served.handles(name)
    scene.served.update(name, swapped("q", "p", data))
    scene.complete(name, "UPDATE_COMPLETE")
    assert scene.held(name, "a")["ports"] == {handles["q"]}
    assert scene.held(name, "b")["ports"] == {handles["p"]}


def addressed(network: Any, called: str, **more: Wire) -> Wire:
    net = thing("OS::Neutron::Net", name=called)
    port = thing("OS::Neutron::Port", network=network, fixed_ips=[{"subnet": of("sub"), "ip_address": ADDRESS}])
    mine = server("one", image="mini", networks=[{"port": of("p")}])
    return {**NET, "net": net, "p": {**port, "depends_on": ["sub"]}, "s": mine, **more}


@pytest.mark.parametrize("fails", [False, True], ids=["", "rolled back"])
def test_a_port_is_replaced_with_its_address(scene: Scene, name: str, fails: bool) -> None:
    scene.served.create(name, addressed(of("net"), name), 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    before = scene.served.handles(name)
    bad = {"bad": {**thing("OS::Heat::TestResource", fail=True), "depends_on": ["s"]}} if fails else {}
    scene.served.update(name, addressed(name, name, **bad), disable_rollback=False)
    scene.complete(name, "ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE")
    after = scene.served.handles(name)
    assert (after["p"] == before["p"]) is fails
    assert after["s"] == before["s"]
    assert scene.held(name) == {"ports": {after["p"]}, "addresses": {ADDRESS}, "volumes": set()}


LINKS = {
    "v": thing("OS::Cinder::Volume", size=1),
    "s": server("one", image="mini", networks=[{"port": of("p")}]),
    "p": {**thing("OS::Neutron::Port", network=of("net")), "depends_on": ["sub"]},
    "r": thing("OS::Neutron::Router", external_gateway_info={"network": "public"}),
    "interface": thing("OS::Neutron::RouterInterface", router=of("r"), subnet=of("sub")),
    "attachment": thing("OS::Cinder::VolumeAttachment", volume_id=of("v"), instance_uuid=of("s")),
}
FLOATING = {
    "f": {**thing("OS::Neutron::FloatingIP", floating_network="public"), "depends_on": ["interface"]},
    "association": thing("OS::Neutron::FloatingIPAssociation", floatingip_id=of("f"), port_id=of("p")),
}


def test_links_are_made_anew(scene: Scene, name: str) -> None:
    """A volume attachment, a router interface, and the association of a floating address."""
    scene.served.create(name, {**NET, **LINKS}, 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    renewed(scene, name, "interface", "attachment")
    scene.served.update(name, {**NET, **LINKS, **FLOATING})
    scene.complete(name, "UPDATE_COMPLETE")
    renewed(scene, name, "association")
    handles = scene.served.handles(name)
    assert scene.user.network.get_ip(handles["f"]).port_id == handles["p"]
    assert {each.volume_id for each in scene.user.compute.volume_attachments(handles["s"])} == {handles["v"]}


def renewed(scene: Scene, name: str, *resources: str) -> None:
    """Mark these; wait until another one of each is complete."""
    for each in resources:
        before = len(scene.served.events(name))
        scene.served.mark_unhealthy(name, each, "a test says so")

        def is_made(each: str = each, before: int = before) -> bool:
            later = [
                event["resource_status"]
                for event in scene.served.events(name)[before:]
                if event["resource_name"] == each
            ]
            return "CREATE_COMPLETE" in later and scene.served.is_well(name)

        eventually(is_made, f"another {each}", 300.0)


def routed(router: str, **more: Wire) -> Wire:
    routers = {name: thing("OS::Neutron::Router") for name in ("r", "q")}
    it = thing("OS::Neutron::RouterInterface", router=of(router), subnet=of("sub"))
    return {**NET, **routers, "it": it, **more}


@pytest.mark.parametrize("fails", [False, True], ids=["", "rolled back"])
def test_another_router_gets_the_place_on_a_subnet(scene: Scene, name: str, fails: bool) -> None:
    scene.served.create(name, routed("r"), 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    bad = {"bad": {**thing("OS::Heat::TestResource", fail=True), "depends_on": ["it"]}} if fails else {}
    scene.served.update(name, routed("q", **bad), disable_rollback=False)
    scene.complete(name, "ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE")
    handles = scene.served.handles(name)
    (left,) = scene.user.network.ports(network_id=handles["net"])
    assert left.device_id == handles["r" if fails else "q"]


def test_it_goes_to_resources_of_other_names(scene: Scene, name: str) -> None:
    """A port with an address, an attachment and an interface get other names in the template."""
    scene.served.create(name, renamed("1"), 1.0)
    scene.complete(name, "CREATE_COMPLETE")
    server = scene.served.handles(name)["s"]
    scene.served.update(name, renamed("2"))
    scene.complete(name, "UPDATE_COMPLETE")
    after = scene.served.handles(name)
    assert after["s"] == server
    assert scene.held(name) == {"ports": {after["p2"]}, "addresses": {ADDRESS}, "volumes": {after["v"]}}


def renamed(number: str) -> Wire:
    port = thing("OS::Neutron::Port", network=of("net"), fixed_ips=[{"subnet": of("sub"), "ip_address": ADDRESS}])
    return {
        **NET,
        "r": thing("OS::Neutron::Router"),
        "v": thing("OS::Cinder::Volume", size=1),
        f"p{number}": port,
        "s": server("one", image="mini", networks=[{"port": of(f"p{number}")}]),
        f"a{number}": thing("OS::Cinder::VolumeAttachment", volume_id=of("v"), instance_uuid=of("s")),
        f"i{number}": thing("OS::Neutron::RouterInterface", router=of("r"), subnet=of("sub")),
    }
