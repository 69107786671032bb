"""The types of clouds through a whole life: made, changed in place, replaced, deleted; one of each family."""

from typing import Any

import pytest
from tests.unit.convergence.running import Service
from tests.unit.resources.resource_cases import MINIMAL

from homeostat.resources.registry import is_outside, resource_type, types

FAMILIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("OS::Nova::ServerGroup", {}, {"policies": ["affinity"]}),
    ("OS::Nova::Flavor", {"extra_specs": {"cpu": "fast"}}, {"ram": 1024}),
    ("OS::Nova::HostAggregate", {"metadata": {"ssd": "true"}}, {}),
    ("OS::Nova::Quota", {"cores": 8}, {"project": "q"}),
    ("OS::Nova::FloatingIPAssociation", {"server_id": "other"}, {}),
    ("OS::Neutron::SecurityGroupRule", {}, {"protocol": "udp"}),
    ("OS::Neutron::RouterGateway", {}, {"network": "other"}),
    (
        "OS::Neutron::ExtraRouteSet",
        {"routes": [{"destination": "10.1.0.0/24", "nexthop": "10.0.0.2"}]},
        {"router": "b"},
    ),
    ("OS::Neutron::FloatingIPPortForward", {"external_port": 81}, {"floating_ip": "other"}),
    ("OS::Neutron::QoSBandwidthLimitRule", {"max_kbps": 200}, {"policy": "other"}),
    ("OS::Neutron::ProviderNet", {"router_external": True}, {"tenant_id": "q"}),
    ("OS::Neutron::SubnetPool", {"prefixes": ["10.0.0.0/8", "192.168.0.0/16"]}, {"shared": True}),
    ("OS::Neutron::IPsecSiteConnection", {"admin_state_up": False}, {"psk": "other"}),
    ("OS::Neutron::FirewallRule", {"action": "allow"}, {}),
    ("OS::Neutron::PortChain", {"port_pair_groups": ["a", "b"]}, {"chain_parameters": {"correlation": "nsh"}}),
    ("OS::Neutron::TaaS::TapFlow", {"description": "all"}, {"direction": "IN"}),
    ("OS::Neutron::NetworkGateway", {"connections": [{"network": "a"}]}, {}),
    ("OS::Neutron::MeteringRule", {}, {"direction": "egress"}),
    ("OS::Cinder::VolumeType", {"description": "very fast"}, {}),
    ("OS::Cinder::QoSAssociation", {"volume_types": ["a", "b"]}, {"qos_specs": "other"}),
    ("OS::Octavia::L7Policy", {"action": "REDIRECT_TO_POOL", "redirect_pool": "p"}, {"listener": "other"}),
    ("OS::Octavia::Flavor", {"enabled": False}, {"flavor_profile": "other"}),
]
"""Type, a change in place, a change that replaces; each in addition to the least properties."""


def made(type_name: str, **properties: Any) -> dict[str, Any]:
    return {"it": {"type": type_name, "properties": {**MINIMAL[type_name], **properties}}}


@pytest.mark.parametrize(("type_name", "change", "replacement"), FAMILIES, ids=[each[0] for each in FAMILIES])
def test_a_life(type_name: str, change: dict[str, Any], replacement: dict[str, Any]) -> None:
    service = Service()
    kind = resource_type(type_name).kind
    stack = service.create(made(type_name))
    service.rest()
    first = list(service.cloud.things(kind))
    assert (service.state(stack), len(first)) == ("CREATE_COMPLETE", 1)
    service.live(300)
    assert service.story(stack, "it") == ["it CREATE_IN_PROGRESS", "it CREATE_COMPLETE"], "it does not drift by itself"
    if change:
        service.update(stack, made(type_name, **change))
        service.rest()
        assert service.states(stack) == {"it": "UPDATE_COMPLETE"}
        assert list(service.cloud.things(kind)) == first
        assert service.story(stack, "it")[2:] == ["it UPDATE_IN_PROGRESS", "it UPDATE_COMPLETE"]
    if replacement:
        service.update(stack, made(type_name, **change, **replacement))
        service.rest()
        assert service.state(stack) == "UPDATE_COMPLETE"
        (second,) = service.cloud.things(kind)
        assert second not in first
    service.delete(stack)
    service.rest()
    assert service.state(stack) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


def test_every_type_of_a_cloud_can_be_had_from_the_simulated_one() -> None:
    service = Service()
    names = [name for name in types() if is_outside(name)]
    stack = service.create({f"r{at}": {"type": name, "properties": MINIMAL[name]} for at, name in enumerate(names)})
    service.rest()
    failed = {row.type: row.reason for row in service.rows(stack) if row.status == "FAILED"}
    assert failed == {}
    assert service.state(stack) == "CREATE_COMPLETE"
    service.live(600)
    told = {name for name, each in enumerate(service.story(stack)) if "UPDATE" in each}
    assert told == set(), "nothing drifts by itself"
    service.delete(stack)
    service.rest()
    assert service.cloud.things() == {}
