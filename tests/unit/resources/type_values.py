"""Every type there is, and what its properties may be changed to.

What is made is the example of the reference documentation. A type whose schema alone does not lead to values that fit
has a row in `docs/examples.py`, or in the tables here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from docs import examples
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected
from homeostat.resources.base import ResourceType
from homeostat.resources.families.retired import RetiredType
from homeostat.resources.registry import types
from homeostat.resources.schema import Property, ValueType

RETIRED = sorted(name for name, kind in types().items() if isinstance(kind, RetiredType))
LIVING = sorted(types().keys() - set(RETIRED))
OUTSIDE = [name for name in LIVING if types()[name].kind in SimulatedCloud.kinds]
LEFT = object()
"""In `CHANGED`: a property that is left as it is."""

ROLES = [{"role": "my-role", "project": "my-project"}]
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "AWS::AutoScaling::AutoScalingGroup": {
        "LaunchConfigurationName": LEFT,
        "MinSize": 2,
        "MaxSize": 4,
        "DesiredCapacity": 2,
    },
    "AWS::CloudFormation::Stack": {"TemplateURL": LEFT, "Parameters": {"key": "other"}},
    "AWS::AutoScaling::ScalingPolicy": {"AdjustmentType": "PercentChangeInCapacity"},
    "AWS::EC2::EIPAssociation": {"AllocationId": LEFT, "NetworkInterfaceId": LEFT, "EIP": "192.0.2.11"},
    "AWS::EC2::Instance": {"NetworkInterfaces": LEFT},
    "Homeostat::HealthPolicy": {
        "target": LEFT,
        "detection": {"interval": 90, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
        "recovery": {"mode": "observe"},
    },
    "OS::Heat::AutoScalingGroup": {
        "min_size": 2,
        "max_size": 4,
        "desired_capacity": 2,
        "resource": {"type": "OS::Heat::TestResource"},
    },
    "AWS::ElasticLoadBalancing::LoadBalancer": {"SecurityGroups": LEFT},
    "OS::Heat::InstanceGroup": {"LaunchConfigurationName": LEFT},
    "OS::Heat::ScalingPolicy": {"adjustment_type": "percent_change_in_capacity"},
    "OS::Neutron::LBaaS::L7Policy": {"action": "REDIRECT_TO_POOL", "redirect_url": LEFT},
    "OS::Aodh::CompositeAlarm": {"composite_rule": {"operator": "and", "rules": [{"type": "a"}, {"type": "b"}]}},
    "OS::Glance::WebImage": {
        "kernel_id": examples.ID_A,
        "ramdisk_id": examples.ID_B,
        "visibility": "shared",
        "protected": LEFT,  # it could not be deleted any more
    },
    "OS::Heat::DeployedServer": {"software_config_transport": "POLL_TEMP_URL"},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::RandomString", "OS::Heat::TestResource"]},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::TestResource"}},
    "OS::Heat::SoftwareDeployment": {"config": LEFT},
    "OS::Heat::StructuredDeployment": {"config": LEFT},
    "OS::Heat::Stack": {
        "template": "{heat_template_version: rocky, parameters: {changed: {type: string, default: no}}}"
    },
    "OS::Heat::TestResource": {"fail": LEFT, "update_replace": LEFT},
    "OS::Keystone::Group": {"roles": ROLES},
    "OS::Keystone::GroupRoleAssignment": {"roles": ROLES},
    "OS::Keystone::User": {"roles": ROLES},
    "OS::Keystone::UserRoleAssignment": {"roles": ROLES},
    "OS::Mistral::Workflow": {"type": LEFT, "tasks": [{"name": "wait", "action": "std.noop"}]},
    "OS::Neutron::FloatingIPPortForward": {"internal_ip_address": "192.0.2.11"},
    "OS::Neutron::NetworkGateway": {"connections": [{"network": "my-network"}]},
    "OS::Neutron::Port": {"no_fixed_ips": LEFT},
    "OS::Nova::Flavor": {"tenants": LEFT},
    "OS::Nova::Server": {
        "networks": [{"network": "my-network"}],
        "flavor_update_policy": LEFT,
        "image_update_policy": "REBUILD_PRESERVE_EPHEMERAL",
        "software_config_transport": "POLL_TEMP_URL",
        "user_data": LEFT,
    },
    "OS::Octavia::AvailabilityZoneProfile": {"availability_zone_data": '{"b": 2}'},
    "OS::Octavia::FlavorProfile": {"flavor_data": '{"b": 2}'},
    "OS::Octavia::L7Policy": {"action": "REDIRECT_TO_POOL", "redirect_url": LEFT},
    "OS::Senlin::Cluster": {"desired_capacity": 3, "profile": LEFT, "policies": LEFT},
    "OS::Senlin::Node": {"profile": LEFT, "cluster": LEFT},
    "OS::Senlin::Policy": {"bindings": LEFT},
    "OS::Trove::Instance": {
        "databases": [{"name": "shop"}],
        "users": [{"name": "reader", "password": "wordpass", "databases": ["shop"]}],
    },
    "OS::Zaqar::Subscription": {"subscriber": "https://example.org/hook"},
    "OS::Zun::Container": {"networks": [{"network": "my-network"}]},
}
"""Type -> values of properties that may change in place, where rules ask for others than the schema leads to."""
FIXED: Mapping[str, str] = {
    "AWS::CloudFormation::WaitCondition": "Timeout",
    "OS::Heat::SwiftSignal": "timeout",
    "OS::Heat::WaitCondition": "timeout",
}
"""Type -> the property that is changed to have it replaced, where the first one that fits will not do."""
REFIXED: Mapping[str, Mapping[str, Any]] = {
    "OS::Senlin::Policy": {"properties": {"criteria": "YOUNGEST_FIRST"}},
    "OS::Senlin::Profile": {"properties": {"image": "my-image", "flavor": "other-flavor"}},
    "OS::Senlin::Receiver": {"action": "CLUSTER_SCALE_IN"},
}
"""Type -> values that have it replaced, where rules ask for others than the schema leads to."""


def other(prop: Property, name: str, now: Any) -> Any:
    """A value that fits the property and is not `now`."""
    for constraint in prop.constraints:
        ((rule, bounds),) = constraint.wire.items()
        if rule == "allowed_values":
            another = next(each for each in bounds if each not in (now if isinstance(now, list) else [now]))
            return [another] if prop.kind is ValueType.LIST else another
        if rule == "range":
            low = bounds.get("min", bounds.get("max", 0) - 1)
            return low + 1 if now == low else low
    match prop.kind:
        case ValueType.BOOLEAN:
            return not now
        case ValueType.INTEGER | ValueType.NUMBER:
            return (now or 0) + 1
        case ValueType.LIST:
            return examples.value(prop, name) if not now else [*now, *examples.value(prop, name)]
        case ValueType.MAP if prop.fields is None:
            return {**(now or {}), "changed": "yes"}
        case _:
            fresh = examples.value(prop, name)
            return fresh if fresh != now else f"{fresh}-2"


def example(name: str) -> dict[str, Any]:
    return examples.properties(types()[name])


def shown(kind: ResourceType) -> Iterator[tuple[str, Property]]:
    """Properties that templates should use."""
    return (
        (name, each)
        for name, each in kind.properties.items()
        if not each.hidden and name not in kind.deprecated_properties and each.implemented and not _settled(each)
    )


def _settled(prop: Property) -> bool:
    """There is one value that it may have."""
    return any(len(each.wire.get("allowed_values", "..")) == 1 for each in prop.constraints)


def fits(kind: ResourceType, values: Mapping[str, Any]) -> bool:
    try:
        kind.check(values)
    except Rejected:
        return False
    return True


def changed(name: str) -> dict[str, Any]:
    """Its properties with another value for each that may change in place."""
    kind, values = types()[name], example(name)
    defaults = kind.complete(kind.check(values))
    for key, prop in shown(kind):
        if prop.update:
            new = CHANGED.get(name, {}).get(key, None)
            new = other(prop, key, defaults.get(key)) if new is None else new
            if new is not LEFT:
                values[key] = new
    return values


def fixed(name: str) -> list[str]:
    """Names of properties of which a change makes a new thing."""
    mine = REFIXED.get(name, {})
    found = (key for key, prop in shown(types()[name]) if not (prop.update or prop.immutable))
    return [key for key in found if mine.get(key) is not LEFT]


def refixed(name: str) -> dict[str, Any]:
    """Its properties with another value for one that cannot change in place."""
    kind, values = types()[name], example(name)
    if name in REFIXED:
        return {**values, **REFIXED[name]}
    defaults = kind.complete(kind.check(values))
    for key in [FIXED[name]] if name in FIXED else fixed(name):
        attempt = {**values, key: other(kind.properties[key], key, defaults.get(key))}
        if fits(kind, attempt):
            return attempt
    raise AssertionError(f"no other value fits any of {fixed(name)}: add a row to FIXED")
