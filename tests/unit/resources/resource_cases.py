"""What the tests of resource types share: things as a type sees them, and the least properties of each type."""

from collections.abc import Mapping
from typing import Any

from docs import examples
from homeostat.model.observed import Observation, Presence
from homeostat.resources.base import Thing
from homeostat.resources.registry import resource_type, types
from homeostat.resources.retired import RetiredType

ID_A = "11111111-1111-4111-8111-111111111111"
ID_B = "22222222-2222-4222-8222-222222222222"

MINIMAL: dict[str, dict[str, Any]] = {
    **{name: examples.properties(kind) for name, kind in types().items() if not isinstance(kind, RetiredType)},
    "OS::Nova::Server": {"flavor": "m1.small", "image": "debian"},
    "OS::Nova::KeyPair": {"name": "me"},
    "OS::Neutron::Net": {},
    "OS::Neutron::Subnet": {"network": "net", "cidr": "10.0.0.0/24"},
    "OS::Neutron::Port": {"network": "net"},
    "OS::Neutron::Router": {},
    "OS::Neutron::RouterInterface": {"router": "r1", "subnet": "s1"},
    "OS::Neutron::FloatingIP": {"floating_network": "public"},
    "OS::Neutron::FloatingIPAssociation": {"floatingip_id": ID_A, "port_id": ID_B},
    "OS::Neutron::SecurityGroup": {},
    "OS::Cinder::Volume": {"size": 1},
    "OS::Cinder::VolumeAttachment": {"instance_uuid": ID_A, "volume_id": ID_B},
    "OS::Octavia::LoadBalancer": {"vip_subnet": "s1"},
    "OS::Octavia::Listener": {"protocol": "TCP", "protocol_port": 80, "loadbalancer": "lb"},
    "OS::Octavia::Pool": {"lb_algorithm": "ROUND_ROBIN", "protocol": "TCP", "listener": "li"},
    "OS::Octavia::PoolMember": {"pool": "p", "address": "10.0.0.5", "protocol_port": 80},
    "OS::Octavia::HealthMonitor": {"pool": "p", "type": "TCP", "delay": 5, "timeout": 2, "max_retries": 3},
    "OS::Heat::RandomString": {},
    "OS::Heat::TestResource": {},
    "OS::Heat::Value": {"value": 1},
    "OS::Heat::None": {},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::None"}},
    "OS::Heat::Stack": {"template": "heat_template_version: wallaby"},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::None"]},
}
"""Least properties with which each type validates: those of the examples of the documentation, or others."""


def thing(
    type_name: str,
    given: Mapping[str, Any] | None = None,
    seen: Mapping[str, Any] | None = None,
    *,
    handle: str = "h-1",
    acted_at: float = 100.0,
    action: str = "CREATE",
) -> Thing:
    """A present resource `res`; given is added to the least properties, seen to what the spec would give."""
    kind = resource_type(type_name)
    values = kind.complete(kind.check({**MINIMAL[type_name], **(given or {})}))
    there = {**kind.spec(values, "stack-res-abc"), **(seen or {})}
    observation = Observation(Presence.PRESENT, handle, there, seen_at=acted_at)
    return Thing("abcdefghijkl", "res", "stack-res-abc", values, observation, handle, acted_at, action)
