"""Templates of others and what they are given; the values to which properties change in place, by type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/web-tier.yaml"
TEMPLATES = Path(__file__).parent / "templates"
Document = dict[str, Any]
Signals = Mapping[str, tuple[str, tuple[Document, ...]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A template, and what it is given.

    parameters — values of parameters; `{project}` is the project's name. changed — those that change in place. signals
    — resource that waits -> the one that is signalled, and with what. services — the optional ones that it needs.
    as_admin — its stack is the administrator's, in the project: it makes what users may not.
    """

    path: str
    parameters: Document = field(default_factory=dict)
    changed: Document = field(default_factory=dict)
    signals: Signals = field(default_factory=dict)
    services: tuple[str, ...] = ()
    slow: bool = True
    as_admin: bool = False

    @property
    def file(self) -> Path:
        return ROOT / self.path if self.path.startswith("examples/") else TEMPLATES / self.path

    @property
    def name(self) -> str:
        return self.file.name.partition(".")[0]


KEY = {"key_name": "stack_key"}
SMALL = {"image": "mini", "flavor": "m1.tiny"}
SERVER = {**KEY, **SMALL}
OLD_SMALL = {"image_id": "mini", "instance_type": "m1.tiny"}
NEW_NET = {
    "private_net_name": "made",
    "private_net_cidr": "10.30.0.0/24",
    "private_net_gateway": "10.30.0.1",
    "private_net_pool_start": "10.30.0.50",
    "private_net_pool_end": "10.30.0.90",
}
OLD_NET = {"private_net_id": "private", "private_subnet_id": "private"}
NET = {"net_id": "private", "subnet_id": "private"}
MANY_SIGNALS = tuple({"status": "SUCCESS", "id": str(each), "data": f"data{each}"} for each in range(5))
CASES = (
    Case("examples/web-tier.yaml", SMALL, {"message": "Good evening"}, services=("octavia",)),
    Case("heat-templates/hello_world.yaml", {**SERVER, "admin_pass": "Secret1"}),
    Case("heat-templates/vm_with_cinder.yaml", SERVER),
    Case("heat-templates/servers_in_new_neutron_net.yaml", {**SERVER, **NEW_NET, "public_net": "public"}),
    Case("heat-templates/servers_in_existing_neutron_net.yaml", {**SERVER, **OLD_NET, "public_net_id": "public"}),
    Case("heat-templates/servers_in_existing_neutron_network_no_floating_ips.yaml", {**SERVER, **NET}),
    Case("heat-templates/asg_of_servers.yaml", SERVER),
    Case("heat-templates/asg_of_stacks.yaml", SERVER),
    Case(
        "heat-templates/native_waitcondition.yaml",
        SERVER,
        signals={"wait_condition": ("wait_handle", MANY_SIGNALS)},
        slow=False,
    ),
    Case("heat-templates/swift.yaml", services=("swift",), slow=False),
    Case("heat-templates/condition.yaml", slow=False),
    Case(
        "heat-templates/server_with_volumes.yaml",
        {**KEY, **OLD_SMALL},
        {"num_volumes": 3},
    ),
    Case(
        "heat-templates/server_with_encrpyted_volume.yaml",
        # The tests' Barbican makes no longer keys.
        {**KEY, **OLD_SMALL, "volume_type_name": "{project}-type", "encryption_key_size": 256},
        services=("barbican",),
        as_admin=True,
    ),
    Case("heat-templates/resource_group_index_lookup.yaml", slow=False),
    Case("heat-templates/container_generic.yaml", services=("barbican",)),
    Case(
        "heat-templates/servers_with_octavia.yaml",
        {**SMALL, "subnet": "private", "private_network": "private", "server1_name": "one", "server2_name": "two"},
        services=("octavia",),
    ),
    Case("heat-templates/WordPress_2_Instances.yaml", {**KEY, **OLD_SMALL}),
    Case("heat-templates/example-cloud-init.yaml", SERVER),
    Case("rally-openstack/autoscaling-policy.yaml.template", slow=False),
    Case("rally-openstack/server-with-ports.yaml.template", SMALL),
    Case("rally-openstack/server-with-volume.yaml.template", SMALL),
    Case("rally-openstack/resource-group-with-outputs.yaml.template", slow=False),
)

NEW_VALUES: Mapping[str, Document] = {
    "OS::Cinder::Volume": {"size": 2, "name": "new", "description": "new", "metadata": {"new": "yes"}},
    "OS::Cinder::VolumeType": {"description": "new"},
    "OS::Heat::AutoScalingGroup": {"max_size": 6, "cooldown": 1},
    "OS::Heat::ScalingPolicy": {"scaling_adjustment": 2, "adjustment_type": "exact_capacity", "cooldown": 30},
    "OS::Heat::TestResource": {"value": "new"},
    "OS::Heat::WaitCondition": {"count": 4},
    "OS::Neutron::FloatingIP": {},
    "OS::Neutron::Net": {"name": "new", "admin_state_up": False, "port_security_enabled": False, "tags": ["new"]},
    "OS::Neutron::Port": {
        "name": "new",
        "tags": ["new"],
        "admin_state_up": False,
        "allowed_address_pairs": [{"ip_address": "10.99.0.0/24"}],
    },
    "OS::Neutron::Router": {"name": "new", "admin_state_up": False, "tags": ["new"]},
    "OS::Neutron::SecurityGroup": {
        "name": "new",
        "description": "new",
        "rules": [{"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}, {"protocol": "icmp"}],
    },
    "OS::Neutron::Subnet": {
        "name": "new",
        "dns_nameservers": ["192.0.2.53"],
        "enable_dhcp": False,
        "host_routes": [{"destination": "203.0.113.0/24", "nexthop": "192.0.2.1"}],
        "tags": ["new"],
    },
    "OS::Nova::Server": {
        "name": "new",
        "flavor": "m1.small",
        "metadata": {"new": "yes"},
        "tags": ["new"],
        "admin_pass": "Changed1",
        "user_data_update_policy": "IGNORE",
    },
    "OS::Octavia::HealthMonitor": {"delay": 9, "timeout": 5, "max_retries": 5, "admin_state_up": False},
    "OS::Octavia::Listener": {
        "name": "new",
        "description": "new",
        "connection_limit": 100,
        "allowed_cidrs": ["198.51.100.0/24"],
        "admin_state_up": False,
    },
    "OS::Octavia::LoadBalancer": {"name": "new", "description": "new", "admin_state_up": False},
    "OS::Octavia::Pool": {
        "name": "new",
        "description": "new",
        "lb_algorithm": "LEAST_CONNECTIONS",
        "session_persistence": {"type": "SOURCE_IP"},
        "admin_state_up": False,
    },
    "OS::Octavia::PoolMember": {"weight": 7, "tags": ["new"], "admin_state_up": False},
}
"""Type -> new values of the properties that can change in place."""

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "OS::Cinder::EncryptedVolumeType": dict.fromkeys(
        ("provider", "control_location", "cipher", "key_size"), "never of a type that volumes have"
    ),
    "OS::Cinder::Volume": {
        "backup_id": "what it holds",
        "volume_type": "there is one",
        "read_only": "not while it is attached",
    },
    "OS::Cinder::VolumeAttachment": dict.fromkeys(
        ("instance_uuid", "volume_id", "mountpoint"), "it is what it joins: another one is another attachment"
    ),
    "OS::Cinder::VolumeType": {
        "name": "no two have the same",
        "is_public": "who sees it",
        "projects": "who sees it",
        "metadata": "never of a type that volumes have",
    },
    "OS::Heat::AutoScalingGroup": {
        "resource": "changes with the values of its type",
        "min_size": "how many there are",
        "desired_capacity": "how many there are",
        "rolling_updates": "how it is done",
        "metadata_update_pattern": "how it is done",
    },
    "OS::Heat::ResourceGroup": {
        "count": "a parameter",
        "resource_def": "changes with the values of its type",
        "removal_policies": "takes members away",
        "removal_policies_mode": "takes members away",
        "metadata_update_pattern": "how it is done",
    },
    "OS::Heat::ScalingPolicy": {"min_adjustment_step": "for changes in percent"},
    "OS::Heat::TestResource": dict.fromkeys(
        (
            *("fail", "update_replace", "wait_secs", "action_wait_secs", "attr_wait_secs", "constraint_prop_secs"),
            *("client_name", "entity_name"),
        ),
        "how it is done",
    ),
    "OS::Neutron::FloatingIP": {
        **dict.fromkeys(("port_id", "fixed_ip_address"), "leads elsewhere: test_networking.py"),
        **dict.fromkeys(("dns_name", "dns_domain"), "Networking has no DNS"),
    },
    "OS::Neutron::Net": {
        "value_specs": "anything",
        "shared": "for administrators",
        "dhcp_agent_ids": "there are none",
        "qos_policy": "there is none",
        "dns_domain": "Networking has no DNS",
    },
    "OS::Neutron::Port": {
        **dict.fromkeys(("device_id", "device_owner"), "the server's"),
        **dict.fromkeys(("fixed_ips", "no_fixed_ips"), "addresses of a server that runs: test_networking.py"),
        **dict.fromkeys(("security_groups", "port_security_enabled"), "by the template: test_networking.py"),
        "replacement_policy": "how it is done",
        "mac_address": "for administrators alone: test_networking.py",
        "value_specs": "anything",
        "dns_name": "Networking has no DNS",
        "binding:vnic_type": "not while it is bound",
        "qos_policy": "there is none",
        "propagate_uplink_status": "Networking has it not",
    },
    "OS::Neutron::Router": {
        "external_gateway_info": "the way of floating IPs: test_networking.py",
        "value_specs": "anything",
        "availability_zone_hints": "there is one zone",
        **dict.fromkeys(("l3_agent_id", "l3_agent_ids"), "there are none"),
    },
    "OS::Neutron::SecurityGroup": {"stateful": "not while ports use it"},
    "OS::Neutron::Subnet": {
        "value_specs": "anything",
        "gateway_ip": "not while a router has it",
        "allocation_pools": "by the template: test_networking.py",
        "segment": "there are none",
    },
    "OS::Nova::Server": {
        "image": "deletes what is on the disk: test_servers.py",
        "networks": "by the template: test_servers.py",
        **dict.fromkeys(
            ("flavor_update_policy", "image_update_policy", "user_data"), "how it is done: test_servers.py"
        ),
        **dict.fromkeys(("software_config_transport", "deployment_swift_data"), "replaces by user data"),
        "server_group": "of new servers alone",
    },
    "OS::Octavia::HealthMonitor": dict.fromkeys(("expected_codes", "http_method", "url_path"), "for HTTP alone"),
    "OS::Octavia::Listener": {
        "default_pool": "another pool",
        **dict.fromkeys(("default_tls_container_ref", "sni_container_refs"), "for TLS alone"),
    },
    "OS::Octavia::Pool": {"tls_enabled": "for TLS alone"},
}
"""Type -> properties that could change in place as well, and why they do not here."""


def loaded(path: Path) -> Document:
    document: Document = yaml.safe_load(path.read_text())
    return document


def renewed(template: Document) -> Document:
    """The template with the new values in all resources, and in what groups are made of."""
    resources = {name: _renewed(each) for name, each in template["resources"].items()}
    return {**template, "resources": resources}


def _renewed(resource: Document) -> Document:
    properties = resource.get("properties") or {}
    inner = {
        name: _renewed(properties[name])
        for name in ("resource", "resource_def")
        if isinstance(properties.get(name), dict) and "type" in properties[name]
    }
    return {**resource, "properties": {**properties, **inner, **NEW_VALUES.get(resource["type"], {})}}
