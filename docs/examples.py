"""Examples of resource types: the least that a template has to say to have one. Made from the schemas.

What a schema alone does not tell (a rule across properties, the form of a text) is in the table `VALUES`.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.resources.base import ResourceType
from homeostat.resources.registry import resource_type
from homeostat.resources.schema import Property, ValueType

VERSION = "2021-04-16"
PURE: Mapping[str, Any] = {
    "ip_addr": "192.0.2.10",
    "ip_or_cidr": "192.0.2.10",
    "net_cidr": "192.0.2.0/24",
    "mac_addr": "fa:16:3e:00:00:01",
    "dns_name": "www.example.org",
    "rel_dns_name": "www",
    "dns_domain": "example.org.",
    "cron_expression": "0 4 * * *",
    "timezone": "Europe/Amsterdam",
    "iso_8601": "2040-01-01T00:00:00Z",
    "expiration": "2040-01-01T00:00:00Z",
    "json_string": '{"a": 1}',
    "test_constr": 0,
}
"""Named constraint that needs no cloud -> a value that fits."""
FILES: Mapping[str, str] = {
    "https://example.org/part.template": "heat_template_version: rocky\nparameters: {key: {type: string, default: a}}"
}
"""Files that examples name -> their texts."""
ID_A = "11111111-1111-4111-8111-111111111111"
ID_B = "22222222-2222-4222-8222-222222222222"

VALUES: Mapping[str, Mapping[str, Any]] = {
    "AWS::AutoScaling::AutoScalingGroup": {"LaunchConfigurationName": "other", "MinSize": 1, "MaxSize": 3},
    "AWS::AutoScaling::LaunchConfiguration": {"ImageId": "my-image", "InstanceType": "my-flavor"},
    "AWS::EC2::Subnet": {"CidrBlock": "192.0.2.0/24"},
    "AWS::EC2::VPCGatewayAttachment": {"InternetGatewayId": "my-gateway"},
    "AWS::EC2::EIPAssociation": {"InstanceId": "my-server", "EIP": "192.0.2.10"},
    "AWS::EC2::Volume": {"Size": 1},
    "OS::Neutron::PoolMember": {"address": "192.0.2.10"},
    "AWS::EC2::VolumeAttachment": {"Device": "/dev/vdb"},
    "OS::Heat::AutoScalingGroup": {
        "min_size": 1,
        "max_size": 3,
        "resource": {"type": "OS::Heat::RandomString"},
    },
    "OS::Neutron::LBaaS::Listener": {"loadbalancer": "my-balancer"},
    "OS::Neutron::LBaaS::Pool": {"listener": "my-listener"},
    "AWS::CloudFormation::Stack": {"TemplateURL": "https://example.org/part.template"},
    "AWS::CloudFormation::WaitCondition": {"Timeout": 600},
    "OS::Barbican::Order": {"algorithm": "aes", "bit_length": 256},
    "OS::Barbican::Secret": {"payload": "swordfish"},
    "OS::Barbican::GenericContainer": {"secrets": [{"name": "password", "ref": "my-secret"}]},
    "OS::Blazar::Lease": {
        "start_date": "2040-01-01 08:00",
        "end_date": "2040-01-02 08:00",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 2}],
    },
    "OS::Cinder::Quota": {"volumes": 10},
    "OS::Cinder::Volume": {"size": 1},
    "OS::Designate::RecordSet": {"name": "www.example.org.", "records": ["192.0.2.10"]},
    "OS::Designate::Zone": {"name": "example.org.", "email": "admin@example.org"},
    "OS::Glance::WebImage": {
        "disk_format": "qcow2",
        "container_format": "bare",
        "location": "http://images.example.org/debian.qcow2",
    },
    "OS::Heat::AccessPolicy": {"AllowedResources": ["web"]},
    "OS::Heat::ResourceChain": {"resources": ["OS::Heat::RandomString"]},
    "OS::Heat::ResourceGroup": {"resource_def": {"type": "OS::Heat::RandomString"}},
    "OS::Heat::Stack": {"template": f"heat_template_version: {VERSION}"},
    "OS::Heat::SwiftSignal": {"timeout": 600},
    "OS::Heat::Value": {"value": "anything"},
    "OS::Heat::WaitCondition": {"timeout": 600},
    "OS::Ironic::Port": {"address": "fa:16:3e:00:00:01"},
    "OS::Keystone::Endpoint": {"url": "http://service.example.org/"},
    "OS::Keystone::Service": {"type": "compute"},
    "OS::Mistral::CronTrigger": {"pattern": "0 4 * * *"},
    "OS::Mistral::ExternalResource": {"actions": {"CREATE": {"workflow": "my-workflow"}}},
    "OS::Mistral::Workflow": {"tasks": [{"name": "greet", "action": "std.echo", "input": {"output": "hello"}}]},
    "OS::Neutron::FloatingIPAssociation": {"floatingip_id": ID_A, "port_id": ID_B},
    "OS::Neutron::Quota": {"port": 10},
    "OS::Neutron::RouterInterface": {"subnet": "my-subnet"},
    "OS::Neutron::Subnet": {"cidr": "192.0.2.0/24"},
    "OS::Nova::Quota": {"cores": 10},
    "OS::Nova::Server": {"image": "my-image"},
    "OS::Octavia::Pool": {"listener": "my-listener"},
    "OS::Octavia::Quota": {"listener": 10},
    "Homeostat::HealthPolicy": {
        "detection": {"interval": 60, "detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
        "recovery": {"actions": [{"name": "REBOOT"}, {"name": "RECREATE"}], "fencing": ["COMPUTE"]},
    },
    "OS::Senlin::Cluster": {"desired_capacity": 2, "max_size": 5},
    "OS::Senlin::Policy": {
        "type": "senlin.policy.deletion-1.1",
        "properties": {"criteria": "OLDEST_FIRST"},
    },
    "OS::Senlin::Profile": {
        "type": "os.nova.server-1.0",
        "properties": {"image": "my-image", "flavor": "my-flavor", "networks": [{"network": "my-network"}]},
    },
    "OS::Zaqar::Subscription": {"subscriber": "mailto:admin@example.org"},
}
"""Type -> values of its properties that the schema does not lead to."""
LINKS: Mapping[str, tuple[str, str]] = {
    "AWS::AutoScaling::AutoScalingGroup": ("LaunchConfigurationName", "AWS::AutoScaling::LaunchConfiguration"),
    "Homeostat::HealthPolicy": ("target", "OS::Nova::Server"),
    "OS::Heat::InstanceGroup": ("LaunchConfigurationName", "AWS::AutoScaling::LaunchConfiguration"),
    "OS::Heat::SoftwareDeployment": ("config", "OS::Heat::SoftwareConfig"),
    "OS::Heat::SoftwareDeploymentGroup": ("config", "OS::Heat::SoftwareConfig"),
    "OS::Heat::SoftwareDeployments": ("config", "OS::Heat::SoftwareConfig"),
    "OS::Heat::StructuredDeployment": ("config", "OS::Heat::StructuredConfig"),
    "OS::Heat::StructuredDeploymentGroup": ("config", "OS::Heat::StructuredConfig"),
    "OS::Heat::StructuredDeployments": ("config", "OS::Heat::StructuredConfig"),
    "OS::Heat::WaitCondition": ("handle", "OS::Heat::WaitConditionHandle"),
    "OS::Senlin::Cluster": ("profile", "OS::Senlin::Profile"),
    "OS::Senlin::Node": ("profile", "OS::Senlin::Profile"),
    "OS::Senlin::Receiver": ("cluster", "OS::Senlin::Cluster"),
    "OS::Heat::SwiftSignal": ("handle", "OS::Heat::SwiftSignalHandle"),
    "AWS::CloudFormation::WaitCondition": ("Handle", "AWS::CloudFormation::WaitConditionHandle"),
}
"""Type -> (property, type of a resource of the same template that it must name)."""


NAMES: Mapping[str, str] = {"OS::Heat::AccessPolicy": "AllowedResources"}
"""Type -> property with names of resources of the same template."""


def properties(kind: ResourceType) -> dict[str, Any]:
    """The least that a resource of this type needs."""
    return {**required(kind.properties), **VALUES.get(kind.name, {})}


def resources(kind: ResourceType, given: Mapping[str, Any], name: str = "example") -> dict[str, Any]:
    """A resource of this type with these properties, and what it needs beside it."""
    values = dict(given)
    found: dict[str, Any] = {}
    if kind.name in LINKS:
        link, other = LINKS[kind.name]
        beside = "another" if name == "other" else "other"
        found |= resources(resource_type(other), properties(resource_type(other)), beside)
        values[link] = {"get_resource": beside}
    for other in values.get(NAMES.get(kind.name, ""), []):
        found[other] = {"type": "OS::Heat::None"}
    found[name] = {"type": kind.name, **({"properties": values} if values else {})}
    return found


def template(kind: ResourceType) -> dict[str, Any]:
    return {"heat_template_version": VERSION, "resources": resources(kind, properties(kind))}


def required(schema: Mapping[str, Property]) -> dict[str, Any]:
    """A value for each required property without a default."""
    return {name: value(prop, name) for name, prop in schema.items() if prop.required and prop.default is None}


def value(prop: Property, name: str = "") -> Any:
    """Some value that fits the property."""
    for constraint in prop.constraints:
        ((rule, bounds),) = constraint.wire.items()
        if rule == "allowed_values":
            return [bounds[0]] if prop.kind is ValueType.LIST else bounds[0]
        if rule == "range":
            return bounds.get("min", bounds.get("max"))
        if rule == "custom_constraint":
            return PURE.get(bounds, f"my-{bounds.rpartition('.')[2].replace('_', '-')}")
        if rule == "length" and prop.kind is ValueType.LIST:
            return [_item(prop)] * bounds.get("min", 1)
    return _plain(prop, name)


def _plain(prop: Property, name: str) -> Any:
    match prop.kind:
        case ValueType.LIST:
            return [_item(prop)]
        case ValueType.MAP:
            return required(prop.fields) if prop.fields is not None else {"key": "value"}
        case ValueType.BOOLEAN:
            return True
        case ValueType.INTEGER | ValueType.NUMBER:
            return 1
        case _:
            return f"my-{name.replace('_', '-').lower()}" if name else "example"


def _item(prop: Property) -> Any:
    return value(prop.items) if prop.items is not None else "example"
