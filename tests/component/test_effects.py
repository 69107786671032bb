"""What a resource changes of others is looked at again before anything reads it (ADR 0099)."""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from homeostat.api.orchestration import outputs
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from homeostat.services.graphs import Graphs
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import PROJECT, Service, template

SLOW = CloudBehaviour(build_s=10.0, delete_s=10.0)
NOW = CloudBehaviour()
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "m1"}}
VOLUME = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}


def resource(kind: str, *, after: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties, **({"depends_on": after} if after else {})}


def value(of: Any, *after: str) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": of}, "depends_on": list(after)}


def ref(name: str) -> dict[str, str]:
    return {"get_resource": name}


def attr(name: str, *path: Any) -> dict[str, list[Any]]:
    return {"get_attr": [name, *path]}


def attached() -> dict[str, Any]:
    at = resource("OS::Cinder::VolumeAttachment", instance_uuid=ref("s"), volume_id=ref("v"))
    return {"s": SERVER, "v": VOLUME, "at": at}


CASES: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    "the status of a volume": (attached(), "at", attr("v", "show", "status"), "in-use"),
    "the attachments of a volume": (attached(), "at", attr("v", "attachments_list", 0, "server_id"), ref("s")),
    "the device of a port": (
        {
            "p": resource("OS::Neutron::Port", network="net"),
            "s": resource("OS::Nova::Server", image="i", flavor="m1", networks=[{"port": ref("p")}]),
        },
        "s",
        attr("p", "device_id"),
        ref("s"),
    ),
    "the port of a floating address": (
        {
            "p": resource("OS::Neutron::Port", network="net"),
            "f": resource("OS::Neutron::FloatingIP", floating_network="public"),
            "a": resource("OS::Neutron::FloatingIPAssociation", floatingip_id=ref("f"), port_id=ref("p")),
        },
        "a",
        attr("f", "port_id"),
        ref("p"),
    ),
    "the subnets of a network": (
        {
            "n": resource("OS::Neutron::Net"),
            "sub": resource("OS::Neutron::Subnet", network=ref("n"), cidr="10.0.0.0/24"),
        },
        "sub",
        attr("n", "subnets", 0),
        ref("sub"),
    ),
    "the way out of a router": (
        {
            "r": resource("OS::Neutron::Router"),
            "g": resource("OS::Neutron::RouterGateway", router_id=ref("r"), network="public"),
        },
        "g",
        attr("r", "external_gateway_info", "network_id"),
        "public",
    ),
    "the addresses of a server": (
        {
            "p": resource("OS::Neutron::Port", network="net"),
            "s": resource("OS::Nova::Server", image="i", flavor="m1", networks=[{"port": ref("p")}]),
            "f": resource("OS::Neutron::FloatingIP", floating_network="public", port_id=ref("p"), after="s"),
        },
        "f",
        attr("s", "addresses", "net", 1, "addr"),
        attr("f", "floating_ip_address"),
    ),
    "the members of a pool": (
        {
            "lb": resource("OS::Octavia::LoadBalancer", vip_subnet="subnet"),
            "pool": resource("OS::Octavia::Pool", loadbalancer=ref("lb"), lb_algorithm="ROUND_ROBIN", protocol="HTTP"),
            "m": resource("OS::Octavia::PoolMember", pool=ref("pool"), address="10.0.0.9", protocol_port=80),
        },
        "m",
        attr("pool", "members", 0, "id"),
        ref("m"),
    ),
}


def begun(there: Service, resources: dict[str, Any], read: Any, expected: Any) -> str:
    values = {"read": read, "dependant": attr("reader", "value"), "expected": expected}
    whole = {**template(resources), "outputs": {name: {"value": each} for name, each in values.items()}}
    return there.stack_service.create(PROJECT, None, "web", StackRequest(whole, disable_rollback=True))


def shown(there: Service, stack: str) -> dict[str, Any]:
    """The outputs of a stack that is complete."""
    assert there.state(stack) == "CREATE_COMPLETE", [each.reason for each in there.rows(stack)]
    with there.db.read() as tx:
        row = there.stack(stack)
        found = outputs.resolved(tx, row, Graphs().described(tx, row))
    return {each["output_key"]: each["output_value"] for each in found}


@pytest.mark.parametrize("behaviour", [NOW, SLOW], ids=["at once", "slowly"])
@pytest.mark.parametrize("what", CASES)
def test_what_another_resource_changes_is_seen_by_outputs_and_dependants(what: str, behaviour: CloudBehaviour) -> None:
    resources, last, read, expected = CASES[what]
    there = Service(behaviour)
    stack = begun(there, {**resources, "reader": value(read, last)}, read, expected)
    there.rest()
    found = shown(there, stack)
    assert found["expected"] is not None
    assert found["read"] == found["dependant"] == found["expected"]


def test_what_is_deleted_changes_others_too() -> None:
    there = Service()
    stack = there.create(attached())
    assert there.seen(stack, "v")["status"] == "in-use"
    there.update(stack, {"s": SERVER, "v": VOLUME})
    assert there.state(stack) == "UPDATE_COMPLETE"
    assert there.seen(stack, "v")["status"] == "available"


def test_what_is_in_a_nested_stack_changes_things_of_the_stack_around_it() -> None:
    there, at = Service(SLOW), attached()["at"]
    inner = {**template({"at": {**at}}), "parameters": {name: {"type": "string"} for name in at["properties"]}}
    # Looks have their order by time, which stands still here unless something is waited for.
    inner["resources"]["first"] = resource("OS::Heat::TestResource", value="", wait_secs=1)
    inner["resources"]["at"]["depends_on"] = "first"
    inner["resources"]["at"]["properties"] = {name: {"get_param": name} for name in at["properties"]}
    files = {"inner.yaml": json.dumps(inner)}
    resources = {"s": SERVER, "v": VOLUME, "in": {"type": "inner.yaml", "properties": at["properties"]}}
    stack = there.create({**resources, "reader": value(attr("v", "show", "status"), "in")}, files=files)
    there.rest()
    assert there.state(stack) == "CREATE_COMPLETE"
    assert (there.seen(stack, "v")["status"], there.row(stack, "reader").properties["value"]) == ("in-use", "in-use")
    there.update(stack, {"s": SERVER, "v": VOLUME})
    there.rest()
    assert (there.state(stack), there.seen(stack, "v")["status"]) == ("UPDATE_COMPLETE", "available")


def test_an_update_changes_what_it_named_before_and_what_it_names_now() -> None:
    there, second = Service(), resource("OS::Neutron::Port", network="net")
    resources = CASES["the device of a port"][0]
    stack = there.create({**resources, "q": second})
    moved = resource("OS::Nova::Server", image="i", flavor="m1", networks=[{"port": ref("q")}])
    there.update(stack, {**resources, "q": second, "s": moved})
    there.rest()
    assert there.state(stack) == "UPDATE_COMPLETE"
    assert not there.seen(stack, "p").get("device_id")
    assert there.seen(stack, "q")["device_id"] == there.row(stack, "s").handle


class Counted(SimulatedCloud):
    """Counts the looks for which it is asked."""

    looks: ClassVar[list[str]] = []

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        self.looks.append(kind)
        return super().observe(kind, handles)


@pytest.mark.parametrize(
    ("resources", "looks"),
    [
        ({f"s{number}": SERVER for number in range(9)} | {f"v{number}": VOLUME for number in range(9)}, []),
        ({f"n{number}": resource("OS::Neutron::Net") for number in range(9)}, []),
        (attached(), ["server", "volume"]),
    ],
)
def test_nothing_is_looked_at_where_nothing_was_changed(resources: dict[str, Any], looks: list[str]) -> None:
    there = Service(cloud=lambda clock: Counted(clock.now))
    Counted.looks.clear()
    stack = there.create(resources)
    assert (there.state(stack), sorted(Counted.looks)) == ("CREATE_COMPLETE", looks)
    there.update(stack, {name: {**each, "metadata": {"a": 1}} for name, each in resources.items()})
    assert (there.state(stack), sorted(Counted.looks)) == ("UPDATE_COMPLETE", looks)
    there.delete(stack)
    assert sorted(Counted.looks) == looks, "what goes is not read any more"


def test_where_the_look_is_missed_another_one_follows_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Service()
    monkeypatch.setattr(there.cloud, "observe", missed)
    stack = there.create(attached())
    assert there.state(stack) == "CREATE_COMPLETE"
    monkeypatch.undo()
    there.live(3.0)
    assert there.seen(stack, "v")["status"] == "in-use"


def missed(kind: str, handles: Sequence[str]) -> list[Observation]:
    raise Transient("the cloud does not answer")
