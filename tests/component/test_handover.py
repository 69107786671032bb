"""What one thing at a time can hold goes from a thing to the one in its place, and back (ADR 0094)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.clouds.simulated.cloud import SimulatedCloud
from homeostat.model.errors import Terminal, Transient
from tests.component.marked import OFF, mark
from tests.component.running import Service, double

ADDRESS = "10.78.0.50"


def thing(type: str, **properties: Any) -> dict[str, Any]:
    return {"type": type, "properties": properties}


def ref(name: str) -> dict[str, str]:
    return {"get_resource": name}


NET = {"net": thing("OS::Neutron::Net"), "sub": thing("OS::Neutron::Subnet", network=ref("net"), cidr="10.78.0.0/24")}


def server(data: str = "one", **properties: Any) -> dict[str, Any]:
    fixed = {"image": "img", "flavor": "m1", "user_data_format": "RAW", "user_data": data}
    return thing("OS::Nova::Server", **fixed, **properties)


def port(**properties: Any) -> dict[str, Any]:
    return thing("OS::Neutron::Port", network=ref("net"), **properties)


def on_port(data: str = "one") -> dict[str, Any]:
    return {**NET, "p": port(), "s": server(data, networks=[{"port": ref("p")}])}


def on_address(data: str = "one") -> dict[str, Any]:
    return {**NET, "s": server(data, networks=[{"network": ref("net"), "fixed_ip": ADDRESS}])}


def from_volume(data: str = "one") -> dict[str, Any]:
    device = {"device_name": "vda", "volume_id": ref("v"), "delete_on_termination": False}
    there = thing("OS::Nova::Server", flavor="m1", user_data_format="RAW", user_data=data)
    there["properties"]["block_device_mapping_v2"] = [device]
    return {"v": thing("OS::Cinder::Volume", size=1), "s": there}


CASES = {"port": on_port, "address": on_address, "boot volume": from_volume}


class Refusing(SimulatedCloud):
    """A cloud that makes no server with the user data `bad`."""

    def _create(self, kind: str, intent: Any) -> Any:
        if kind == "server" and intent.spec.get("user_data") == "bad":
            return Terminal("No valid host was found")
        return super()._create(kind, intent)


def holding(service: Service) -> dict[str, Any]:
    """What the one server there is holds."""
    (found,) = service.cloud.things("server").values()
    entries = [each for entries in found["addresses"].values() for each in entries]
    return {
        "data": found["user_data"],
        "ports": [each["port"] for each in entries],
        "addresses": [each["addr"] for each in entries],
        "volumes": [each["volume_id"] for each in found.get("block_device_mapping") or ()],
    }


@pytest.mark.parametrize("case", CASES)
def test_a_server_is_replaced_by_one_that_has_what_it_had(case: str) -> None:
    service = Service(CloudBehaviour(build_s=5.0, delete_s=3.0))
    stack_id = service.create(CASES[case]())
    service.rest()
    before = holding(service)
    service.update(stack_id, CASES[case]("two"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    after = holding(service)
    assert (after["data"], after["volumes"]) == ("two", before["volumes"])
    assert case != "port" or after["ports"] == before["ports"]
    assert case == "boot volume" or after["addresses"] == before["addresses"]


@pytest.mark.parametrize("converge", [True, False], ids=["healed", "by the next update"])
@pytest.mark.parametrize("case", CASES)
def test_one_that_is_marked_unhealthy_is_replaced_too(case: str, converge: bool) -> None:
    service = Service()
    stack_id = service.create(CASES[case]())
    service.rest()
    if not converge:
        service.actions.switch(stack_id, OFF)
    (first,) = service.servers()
    mark(service, stack_id, "s")
    service.live(30.0)
    if not converge:
        service.update(stack_id, CASES[case]())
        service.rest()
    (second,) = service.servers()
    assert first != second
    assert set(service.states(stack_id).values()) <= {"CREATE_COMPLETE"}
    service.update(stack_id, CASES[case]("later"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert holding(service)["data"] == "later"


@pytest.mark.parametrize("case", CASES)
def test_a_rollback_gives_it_back(case: str) -> None:
    service = Service(cloud=lambda clock: Refusing(clock.now, CloudBehaviour(build_s=2.0, delete_s=2.0)))
    stack_id = service.create(CASES[case]())
    service.rest()
    before, (first,) = holding(service), service.servers()
    service.update(stack_id, CASES[case]("bad"), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    after = holding(service)
    if case == "boot volume":
        assert (after["data"], after["volumes"]) == ("one", before["volumes"])
    else:
        assert service.servers() == [first]
        assert {**after, "ports": len(after["ports"])} == {**before, "ports": len(before["ports"])}
    service.live(100.0)
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"


@pytest.mark.parametrize("case", ["port", "address"])
def test_a_rollback_takes_it_from_the_successor_that_others_use(case: str) -> None:
    """What uses the new server has it until the old one stands for the name again: the new one lets go before."""
    service = Service(CloudBehaviour(build_s=2.0, delete_s=2.0))
    user = double(value=ref("s"))
    stack_id = service.create({**CASES[case](), "user": user})
    service.rest()
    before, (first,) = holding(service), service.servers()
    bad = double(fail=True, value=ref("user"))
    service.update(stack_id, {**CASES[case]("two"), "user": user, "bad": bad}, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.servers() == [first]
    assert holding(service)["addresses"] == before["addresses"]


def addressed(network: Any, **more: Any) -> dict[str, Any]:
    """A port with an address, and a server on it; by another word for its network the port is made anew."""
    net = {**NET["net"], "properties": {"name": "here"}}
    mine = thing("OS::Neutron::Port", network=network, fixed_ips=[{"ip_address": ADDRESS}])
    return {**NET, "net": net, "p": mine, "s": server(networks=[{"port": ref("p")}]), **more}


@pytest.mark.parametrize("fails", [False, True], ids=["", "rolled back"])
def test_a_port_is_replaced_with_its_address(fails: bool) -> None:
    service = Service(CloudBehaviour(build_s=2.0, delete_s=2.0))
    stack_id = service.create(addressed(ref("net")))
    service.rest()
    before = holding(service)
    bad = {"bad": double(fail=True, value=ref("s"))} if fails else {}
    service.update(stack_id, addressed("here", **bad), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == ("ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE")
    (left,) = service.cloud.things("port").values()
    assert [each["ip_address"] for each in left["fixed_ips"]] == [ADDRESS]
    assert holding(service)["ports"] == [left["id"]]
    assert (holding(service)["ports"] == before["ports"]) is fails


@pytest.mark.parametrize("lost", [0.3, 0.0])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", CASES)
def test_whatever_is_refused_or_lost_on_the_way(case: str, seed: int, lost: float) -> None:
    faults = Faults(refused=0.3, lost=lost)
    service = Service(
        cloud=lambda clock: Refusing(clock.now, CloudBehaviour(build_s=2.0, delete_s=2.0, faults=faults), seed)
    )
    stack_id = service.create(CASES[case]())
    service.rest()
    before = holding(service)
    service.update(stack_id, CASES[case]("bad" if seed % 2 else "two"), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == ("ROLLBACK_COMPLETE" if seed % 2 else "UPDATE_COMPLETE")
    after = holding(service)
    assert (len(after["ports"]), after["volumes"]) == (1, before["volumes"])
    assert case == "boot volume" or after["addresses"] == before["addresses"]


LINKS: dict[str, dict[str, Any]] = {
    "attachment": {
        "v": thing("OS::Cinder::Volume", size=1),
        "s": server(),
        "it": thing("OS::Cinder::VolumeAttachment", volume_id=ref("v"), instance_uuid=ref("s")),
    },
    "interface": {
        **NET,
        "r": thing("OS::Neutron::Router"),
        "it": thing("OS::Neutron::RouterInterface", router=ref("r"), subnet=ref("sub")),
    },
    "association": {
        **NET,
        "p": port(),
        "f": thing("OS::Neutron::FloatingIP", floating_network="public"),
        "it": thing("OS::Neutron::FloatingIPAssociation", floatingip_id=ref("f"), port_id=ref("p")),
    },
    "floating address": {
        **NET,
        "p": port(),
        "it": thing("OS::Neutron::FloatingIP", floating_network="public", port_id=ref("p")),
    },
    "key pair": {"it": thing("OS::Nova::KeyPair", name="mine")},
}
KINDS = {
    "attachment": "volume_attachment",
    "interface": "router_interface",
    "association": "floating_ip_association",
    "floating address": "floating_ip",
    "key pair": "keypair",
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_made_anew_once_the_one_before_is_gone(name: str) -> None:
    service = Service(CloudBehaviour(delete_s=2.0))
    stack_id = service.create(LINKS[name])
    service.rest()
    first = service.row(stack_id, "it").key
    mark(service, stack_id, "it")
    service.live(60.0)
    assert service.states(stack_id)["it"] == "CREATE_COMPLETE"
    assert service.row(stack_id, "it").key != first
    assert len(service.cloud.things(KINDS[name])) == 1


def test_a_floating_address_leads_to_the_same_port_after_a_rollback() -> None:
    """It lets go of the port for one of another network, and gets it back."""
    service = Service()
    resources = {**LINKS["floating address"], "user": double(value=ref("it"))}
    stack_id = service.create(resources)
    service.rest()
    (before,) = service.cloud.things("floating_ip").values()
    other = thing("OS::Neutron::FloatingIP", floating_network="other", port_id=ref("p"))
    bad = double(fail=True, value=ref("user"))
    service.update(stack_id, {**resources, "it": other, "bad": bad}, disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    (after,) = service.cloud.things("floating_ip").values()
    assert (after["id"], after["port_id"]) == (before["id"], before["port_id"])


def test_a_server_whose_volume_would_go_with_it_is_not_deleted_for_it() -> None:
    service = Service()
    resources = from_volume()
    resources["s"]["properties"]["block_device_mapping_v2"][0]["delete_on_termination"] = True
    stack_id = service.create(resources)
    service.rest()
    (first,) = service.servers()
    after = {**resources, "s": {**resources["s"], "properties": {**resources["s"]["properties"], "user_data": "two"}}}
    service.update(stack_id, after)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "its deletion would delete volume" in service.stack(stack_id).reason
    assert service.servers() == [first]


def test_a_server_that_cannot_let_go_is_deleted_first() -> None:
    """Nova detaches nothing from a suspended server."""
    service = Service(CloudBehaviour(build_s=2.0))
    stack_id = service.create(on_port())
    service.rest()
    service.actions.switch(stack_id, OFF)
    service.cloud.change(service.servers()[0], status="suspended")
    service.live(5.0)
    service.update(stack_id, on_port("two"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert holding(service)["data"] == "two"


def pair(first: str, second: str, data: str = "one") -> dict[str, Any]:
    return {
        **NET,
        **{"p": port(), "q": port()},
        "a": server(data, networks=[{"port": ref(first)}]),
        "b": server(data, networks=[{"port": ref(second)}]),
    }


@pytest.mark.parametrize("data", ["one", "two"], ids=["in place", "replaced"])
def test_two_servers_swap_their_ports(data: str) -> None:
    service = Service(CloudBehaviour(build_s=2.0, delete_s=2.0))
    stack_id = service.create(pair("p", "q"))
    service.rest()
    ports = {name: service.row(stack_id, name).handle for name in "pq"}
    service.update(stack_id, pair("q", "p", data))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    held = {
        name: [each["port"] for group in service.seen(stack_id, name)["addresses"].values() for each in group]
        for name in "ab"
    }
    assert held == {"a": [ports["q"]], "b": [ports["p"]]}


def renamed(name: str, data: str = "one", **more: Any) -> dict[str, Any]:
    """A port with an address, an attachment and a floating address under other names than before."""
    return {
        **NET,
        "v": thing("OS::Cinder::Volume", size=1),
        f"p{name}": port(fixed_ips=[{"ip_address": ADDRESS}]),
        "s": server(data, networks=[{"port": ref(f"p{name}")}]),
        f"a{name}": thing("OS::Cinder::VolumeAttachment", volume_id=ref("v"), instance_uuid=ref("s")),
        f"i{name}": thing("OS::Neutron::RouterInterface", router="r", subnet=ref("sub")),
        **more,
    }


@pytest.mark.parametrize("data", ["one", "two"])
@pytest.mark.parametrize("fails", [False, True], ids=["", "rolled back"])
def test_it_goes_to_a_resource_of_another_name(fails: bool, data: str) -> None:
    service = Service(CloudBehaviour(build_s=2.0, delete_s=2.0))
    stack_id = service.create(renamed("1"))
    service.rest()
    bad = {"bad": double(fail=True, value=ref("a2"))} if fails else {}
    service.update(stack_id, renamed("2", data, **bad), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == ("ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE")
    (left,) = service.cloud.things("port").values()
    assert [each["ip_address"] for each in left["fixed_ips"]] == [ADDRESS]
    assert holding(service)["ports"] == [left["id"]]
    (attached,) = service.cloud.things("volume_attachment").values()
    assert attached["instance_uuid"] == service.servers()[0]
    assert len(service.cloud.things("router_interface")) == 1


def routed(router: str, **more: Any) -> dict[str, Any]:
    routers = {name: thing("OS::Neutron::Router") for name in ("r", "q")}
    it = thing("OS::Neutron::RouterInterface", router=ref(router), subnet=ref("sub"))
    return {**NET, **routers, "it": it, **more}


@pytest.mark.parametrize("fails", [False, True], ids=["", "rolled back"])
def test_another_router_gets_the_place_on_a_subnet(fails: bool) -> None:
    service = Service(CloudBehaviour(delete_s=2.0))
    stack_id = service.create(routed("r"))
    service.rest()
    bad = {"bad": double(fail=True, value=ref("it"))} if fails else {}
    service.update(stack_id, routed("q", **bad), disable_rollback=False)
    service.rest()
    assert service.state(stack_id) == ("ROLLBACK_COMPLETE" if fails else "UPDATE_COMPLETE")
    (left,) = service.cloud.things("router_interface").values()
    assert left["router_id"] == service.row(stack_id, "r" if fails else "q").handle


def test_explain_says_what_is_waited_for() -> None:
    service = Service(CloudBehaviour(delete_s=50.0))
    stack_id = service.create(from_volume())
    service.rest()
    service.update(stack_id, from_volume("two"))
    service.live(5.0)
    (said,) = service.hindered()
    volume = service.row(stack_id, "v").handle
    assert f"s: leaving (the one in its place needs volume {volume}, which one at a time can hold)" in said
    (event,) = [each for each in service.events(stack_id, "s") if each.action == "DELETE"]
    assert volume in event.reason


def test_explain_says_which_port_is_let_go() -> None:
    service = Service(cloud=lambda clock: Clinging(clock.now))
    stack_id = service.create(on_port())
    service.rest()
    service.update(stack_id, on_port("two"))
    service.live(5.0)
    (said,) = service.hindered()
    assert f"s: handover (the one before lets go of port {service.row(stack_id, 'p').handle}" in said
    assert len(service.servers()) == 1


class Clinging(SimulatedCloud):
    """A cloud that detaches nothing for now."""

    def _update(self, kind: str, change: Any) -> Any:
        return Transient("busy") if "networks" in change.changed else super()._update(kind, change)
