"""Values that templates set, in the forms that services may make others of: case, ranges, units, empty, order, doubles.

From public templates, and from what services say that they take.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Values:
    """What a resource of a type is, and the values of properties that are tried on it, one at a time.

    Attributes:
        base: Properties that it has in any case; a text `$name` is the id of something that is there.
        tried: Property -> its values.
        by_admin: Whether only an administrator may.
        admin_sets: Properties that only an administrator may set.
        together: Property -> further properties that it needs.
    """

    base: Mapping[str, Any]
    tried: Mapping[str, Sequence[Any]]
    by_admin: bool = False
    admin_sets: Sequence[str] = ()
    together: Mapping[str, Mapping[str, Any]] | None = None

    def is_by_admin(self, key: str) -> bool:
        """Return whether an administrator has to set a property."""
        return self.by_admin or key in self.admin_sets


TCP = {"protocol": "tcp"}
NAMES = ["Mixed Case", "  spaces  ", "grüße"]
TAGS = [["b", "a", "A"], ["a b"]]
OFF = [False, "true"]
TEXTS = ["  spaces  ", "two\nlines", ""]
OF_6 = {"ip_version": 6, "cidr": "2001:db8:71::/64"}
GRANTS: Sequence[Sequence[Mapping[str, Any]]] = (
    [{"role": "$role", "project": "$target"}],
    [{"role": "$role_name", "domain": "default"}, {"role": "$role", "project": "$target"}],
    [{"role": "$role", "project": "$target"}] * 2,
)
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMTVjk3nrwIXANnmV3Sj7fcbC5XJXIhuP7LMlWxU0RPB user@example.org"
RULES: Sequence[Sequence[Mapping[str, Any]]] = (
    [{**TCP, "port_range_min": 1, "port_range_max": 65535}],
    [{"protocol": "udp", "port_range_min": "1", "port_range_max": "65535"}],
    [{"protocol": "sctp", "port_range_min": 1, "port_range_max": 65535}],
    [{**TCP, "port_range_min": "22", "port_range_max": 22}],
    [{"protocol": "6", "port_range_min": 80, "port_range_max": 81}],
    [{"protocol": "TCP", "port_range_min": 443, "port_range_max": 443}],
    [{"protocol": "icmp"}],
    [{"protocol": "icmp", "port_range_min": 0, "port_range_max": 0}],
    [{"protocol": "icmp", "port_range_min": 8}],
    [{"protocol": "1"}],
    [{"protocol": "icmpv6", "ethertype": "IPv6"}],
    [{"protocol": "icmp", "ethertype": "IPv6"}],
    [{"protocol": "58", "ethertype": "IPv6"}],
    [{"protocol": "vrrp"}],
    [{"protocol": "112"}],
    [{"protocol": "0"}],
    [{"protocol": "4"}],
    [{"protocol": "41", "ethertype": "IPv6"}],
    [{"ethertype": "ipv4"}],
    [{"direction": "EGRESS", **TCP}],
    [{**TCP, "remote_ip_prefix": "0.0.0.0/0"}],
    [{**TCP, "remote_ip_prefix": "10.0.0.7/8"}],
    [{**TCP, "remote_ip_prefix": "10.0.0.7/32"}],
    [{"ethertype": "IPv6", "remote_ip_prefix": "::/0"}],
    [{"ethertype": "IPv6", "remote_ip_prefix": "FD00:0:0::1/64"}],
    [{"remote_mode": "remote_group_id"}],
    [{"remote_mode": "remote_group_id", "remote_group_id": "$security_group"}],
    [{**TCP, "description": "words"}],
    [TCP, TCP],
    [TCP, {"protocol": "6"}],
    [{"protocol": "udp"}, TCP, {"protocol": "icmp"}],
)

NETWORKING: Mapping[str, Values] = {
    "OS::Neutron::Net": Values(
        {},
        {
            "name": NAMES,
            "admin_state_up": [False, "True"],
            "port_security_enabled": [False, "true"],
            "dns_domain": ["one.test.", "One.Test."],
            "qos_policy": ["$shared_qos_policy", "$shared_qos_policy_name"],
            "tags": TAGS,
            "value_specs": [{"mtu": 1400}, {"mtu": "1400"}, {"description": "words"}],
            "availability_zone_hints": [["nova"]],
            "shared": [True, "true"],
        },
        admin_sets=("shared",),
    ),
    "OS::Neutron::Subnet": Values(
        {"network": "$pool_network", "cidr": "10.71.0.0/24"},
        {
            "name": NAMES,
            "network": ["$pool_network_name"],
            "cidr": ["10.72.0.7/24", "10.73.0.0/255.255.255.0"],
            "gateway_ip": ["10.71.0.9", ""],
            "enable_dhcp": [False, "True"],
            "dns_nameservers": [["10.71.0.3", "10.71.0.2"], ["8.8.8.8"]],
            "allocation_pools": [
                [{"start": "10.71.0.20", "end": "10.71.0.30"}],
                [{"start": "10.71.0.40", "end": "10.71.0.50"}, {"start": "10.71.0.20", "end": "10.71.0.30"}],
                [{"start": "10.71.0.20", "end": "10.71.0.30"}, {"start": "10.71.0.31", "end": "10.71.0.40"}],
            ],
            "host_routes": [
                [{"destination": "10.99.0.7/16", "nexthop": "10.71.0.9"}],
                [
                    {"destination": "10.99.0.0/16", "nexthop": "10.71.0.9"},
                    {"destination": "10.98.0.0/16", "nexthop": "10.71.0.8"},
                ],
            ],
            "tags": TAGS,
            "subnetpool": ["$subnetpool", "$subnetpool_name"],
            "prefixlen": [26, "27"],
            "value_specs": [{"description": "words"}],
            "ip_version": [6, "6"],
            "ipv6_ra_mode": ["slaac", "dhcpv6-stateful"],
            "ipv6_address_mode": ["slaac", "dhcpv6-stateless"],
            "segment": ["$segment"],
        },
        together={
            "subnetpool": {"cidr": None, "prefixlen": 24},
            "prefixlen": {"cidr": None, "subnetpool": "$subnetpool"},
            "ip_version": OF_6,
            "ipv6_ra_mode": OF_6,
            "ipv6_address_mode": OF_6,
            "segment": {"network": "$segmented_network"},
        },
        admin_sets=("segment",),
    ),
    "OS::Neutron::Port": Values(
        {"network": "$network"},
        {
            "name": NAMES,
            "network": ["$network_name"],
            "admin_state_up": [False, "True"],
            "mac_address": ["FA:16:3E:77:00:02", "fa-16-3e-77-00-03"],
            "fixed_ips": [
                [{"subnet": "$subnet"}],
                [{"subnet": "$subnet_name", "ip_address": "10.30.0.60"}],
                [{"ip_address": "10.30.0.61"}],
                [{"subnet": "$subnet", "ip_address": "10.30.0.63"}, {"subnet": "$subnet", "ip_address": "10.30.0.62"}],
            ],
            "security_groups": [["$security_group"], ["default", "$security_group_name"], [], ["$security_group"] * 2],
            "allowed_address_pairs": [
                [{"ip_address": "10.9.0.7/16"}],
                [{"ip_address": "10.9.0.7"}],
                [{"ip_address": "10.9.0.7", "mac_address": "FA:16:3E:00:00:01"}],
                [{"ip_address": "10.9.0.8"}, {"ip_address": "10.9.0.7"}],
                [{"ip_address": "FD00:0:0::7"}],
            ],
            "device_id": ["Some Device"],
            "device_owner": ["me"],
            "dns_name": ["one", "One"],
            "binding:vnic_type": ["direct"],
            "port_security_enabled": [True, "true"],
            "qos_policy": ["$shared_qos_policy", "$shared_qos_policy_name"],
            "no_fixed_ips": [True],
            "propagate_uplink_status": [True, "false"],
            "value_specs": [{"description": "words"}],
            "tags": TAGS,
        },
    ),
    "OS::Neutron::SecurityGroup": Values(
        {}, {"name": NAMES, "description": TEXTS, "rules": RULES, "stateful": [False, "true"]}
    ),
    "OS::Neutron::SecurityGroupRule": Values(
        {"security_group": "$security_group", "direction": "ingress"},
        {
            "security_group": ["$security_group_name"],
            "direction": ["egress"],
            "protocol": ["udp", "47", "icmp"],
            "ethertype": ["ipv6"],
            "port_range_min": [1, "22"],
            "port_range_max": [65535, "23"],
            "remote_ip_prefix": ["10.0.0.7/8", "0.0.0.0/0"],
            "remote_group": ["$security_group_name"],
            "description": ["words"],
        },
        together={
            "port_range_min": {"port_range_max": 65535, "protocol": "tcp"},
            "port_range_max": {"port_range_min": 22, "protocol": "tcp"},
        },
    ),
    "OS::Neutron::Router": Values(
        {},
        {
            "name": NAMES,
            "admin_state_up": [False],
            "external_gateway_info": [{"network": "public"}, {"network": "$public", "external_fixed_ips": []}],
            "value_specs": [{"description": "words"}],
            "tags": TAGS,
        },
    ),
    "OS::Neutron::FloatingIP": Values(
        {"floating_network": "public"},
        {
            "floating_network": ["$public"],
            "port_id": ["$port", "$port_name"],
            "value_specs": [{"description": "words"}],
            "fixed_ip_address": ["10.30.0.11"],
            "floating_subnet": ["$public_subnet", "$public_subnet_name"],
            "floating_ip_address": ["$public_address"],
            "dns_name": ["one", "One"],
            "dns_domain": ["one.test.", "One.Test."],
        },
        together={
            "fixed_ip_address": {"port_id": "$port"},
            "dns_name": {"dns_domain": "one.test."},
            "dns_domain": {"dns_name": "one"},
        },
        admin_sets=("floating_ip_address",),
    ),
    "OS::Neutron::SubnetPool": Values(
        {"prefixes": ["10.80.0.0/16"]},
        {
            "name": NAMES,
            "prefixes": [["10.81.0.0/16", "10.80.0.0/16"], ["10.80.0.0/17", "10.80.128.0/17"], ["10.80.0.7/16"]],
            "default_prefixlen": [25, "25"],
            "min_prefixlen": [20],
            "max_prefixlen": [28],
            "address_scope": ["$address_scope"],
            "default_quota": [256, "64"],
            "is_default": [True, "false"],
            "shared": [True, "true"],
            "tags": TAGS,
        },
        admin_sets=("is_default", "shared"),
    ),
    "OS::Neutron::AddressScope": Values(
        {}, {"name": NAMES, "ip_version": [6], "shared": [True, "true"]}, admin_sets=("shared",)
    ),
    "OS::Neutron::QoSPolicy": Values(
        {}, {"name": NAMES, "description": TEXTS, "shared": [True, "true"]}, by_admin=True
    ),
    "OS::Neutron::QoSBandwidthLimitRule": Values(
        {"policy": "$qos_policy", "max_kbps": 1000},
        {
            "policy": ["$qos_policy_name"],
            "max_kbps": ["2000"],
            "max_burst_kbps": [1500, "1500"],
            "direction": ["ingress"],
        },
        by_admin=True,
    ),
    "OS::Neutron::QoSDscpMarkingRule": Values(
        {"policy": "$qos_policy", "dscp_mark": 0},
        {"policy": ["$qos_policy_name"], "dscp_mark": [10, "0"]},
        by_admin=True,
    ),
    "OS::Neutron::ProviderNet": Values(
        {"network_type": "vlan", "physical_network": "physnet1", "segmentation_id": "3971"},
        {
            "name": NAMES,
            "network_type": ["vlan"],
            "physical_network": ["physnet1"],
            "admin_state_up": [False],
            "port_security_enabled": OFF,
            "dns_domain": ["One.Test."],
            "segmentation_id": [3972, "3973"],
            "router_external": [True],
            "shared": [False],
            "availability_zone_hints": [["nova"]],
            "tags": TAGS,
        },
        by_admin=True,
    ),
    "OS::Neutron::MeteringLabel": Values({}, {"name": NAMES, "description": TEXTS, "shared": [True]}, by_admin=True),
    "OS::Neutron::MeteringRule": Values(
        {"metering_label_id": "$metering_label", "remote_ip_prefix": "10.0.0.0/24"},
        {
            "metering_label_id": ["$metering_label_name"],
            "remote_ip_prefix": ["10.0.1.7/24"],
            "direction": ["egress"],
            "excluded": [True, "true"],
        },
        by_admin=True,
    ),
    "OS::Neutron::RBACPolicy": Values(
        {"object_type": "network", "object_id": "$network", "action": "access_as_shared", "target_tenant": "$target"},
        {
            "target_tenant": ["$other_target"],
            "object_type": ["security_group"],
            "object_id": ["$free_network"],
            "action": ["access_as_shared"],
        },
        together={"object_type": {"object_id": "$security_group"}},
    ),
    "OS::Neutron::Trunk": Values(
        {"port": "$trunk_port"},
        {
            "name": NAMES,
            "port": ["$trunk_port_name"],
            "description": TEXTS,
            "admin_state_up": [False],
            "sub_ports": [[{"port": "$sub_port", "segmentation_type": "vlan", "segmentation_id": "7"}]],
        },
    ),
}
METADATA = [{"Key": "Value"}, {"a": 1, "b": True, "c": None}, {"n": 1.5}, {"m": {"x": [1, 2]}}]
OTHERS: Mapping[str, Values] = {
    "OS::Cinder::Volume": Values(
        {"size": 1},
        {
            "name": NAMES,
            "description": TEXTS,
            "size": ["2"],
            "availability_zone": ["nova", ""],
            "metadata": METADATA,
            "scheduler_hints": [{"a": "b"}],
            "read_only": [True, "true"],
            "imageRef": ["$image"],
            "image": ["$image_name"],
            "volume_type": ["$volume_type", "$volume_type_name"],
            "snapshot_id": ["$volume_snapshot", "$volume_snapshot_name"],
            "source_volid": ["$volume", "$volume_name"],
            "multiattach": [True, "false"],
        },
    ),
    "OS::Nova::Server": Values(
        {"image": "$image", "flavor": "$flavor", "networks": [{"network": "$network"}]},
        {
            "name": ["Mixed Case"],
            "flavor": ["$flavor_name"],
            "image": ["$image_name"],
            "metadata": METADATA,
            "availability_zone": ["nova", ""],
            "key_name": [""],
            "security_groups": [["default"], ["$security_group"], ["$security_group_name", "default"]],
            "networks": [
                [{"network": "$network_name"}],
                [{"subnet": "$subnet"}],
                [{"network": "$network", "fixed_ip": "10.30.0.70"}],
                [{"uuid": "$network"}],
            ],
            "tags": [["b", "a"], ["A", "a"]],
            "user_data": ["#!/bin/sh\ntrue\n", ""],
            "user_data_format": ["RAW"],
            "config_drive": [True, "false"],
            "diskConfig": ["MANUAL", "AUTO"],
            "admin_pass": ["swordfish"],
            "scheduler_hints": [{"a": "b"}],
            "server_group": ["$server_group"],
            "reservation_id": ["$network"],
            "personality": [{"/etc/motd": "words"}],
            "block_device_mapping": [
                [{"device_name": "vdb", "volume_id": "$volume"}],
                [{"device_name": "/dev/vdb", "snapshot_id": "$volume_snapshot", "delete_on_termination": "true"}],
            ],
            "block_device_mapping_v2": [
                [{"device_name": "vdb", "volume_id": "$volume", "delete_on_termination": False}],
                [{"volume_id": "$volume", "boot_index": "-1"}],
                [{"swap_size": "1"}],
                [{"ephemeral_size": 1, "ephemeral_format": "ext4"}],
            ],
        },
    ),
    "OS::Nova::ServerGroup": Values(
        {},
        {"name": NAMES, "policies": [["soft-affinity"]], "rules": [{"max_server_per_host": 2}]},
        together={"rules": {"policies": ["anti-affinity"]}},
    ),
    "OS::Nova::KeyPair": Values(
        {"name": "$unique"},
        {
            "name": ["$unique_mixed"],
            "type": ["ssh"],
            "save_private_key": [True],
            "public_key": [PUBLIC_KEY, f"  {PUBLIC_KEY}\n"],
            "user": ["$user"],
        },
        admin_sets=("user",),
    ),
    "OS::Nova::Flavor": Values(
        {"ram": 64, "vcpus": 1, "disk": 1},
        {
            "name": ["$unique"],
            "ram": ["128"],
            "vcpus": ["2"],
            "disk": [0, "2"],
            "flavorid": ["$unique"],
            "swap": [0, "64"],
            "ephemeral": [1],
            "rxtx_factor": [1, "1.0"],
            "extra_specs": [{"hw:cpu_policy": "shared"}, {"hw:numa_nodes": 1}, {"hide_hypervisor_id": True}],
            "is_public": [False, "true"],
            "tenants": [["$target"], ["$target", "$other_target"], ["$target"] * 2],
        },
        by_admin=True,
        together={"tenants": {"is_public": False}},
    ),
    "OS::Cinder::VolumeType": Values(
        {"name": "$unique"},
        {
            "name": ["$unique_mixed"],
            "metadata": [{"Key": "Value"}, {"a": 1, "b": True}],
            "description": ["words", "  spaces  ", "grüße"],
            "is_public": [False, "true"],
            "projects": [["$target"], ["$target", "$other_target"], ["$target"] * 2],
        },
        by_admin=True,
        together={"projects": {"is_public": False}},
    ),
    "OS::Cinder::QoSSpecs": Values(
        {"name": "$unique", "specs": {"consumer": "back-end"}},
        {"name": ["$unique_mixed"], "specs": [{"total_iops_sec": 100}, {"consumer": "front-end", "a": "B"}]},
        by_admin=True,
    ),
    "OS::Keystone::Project": Values(
        {"name": "$unique"},
        {
            "name": ["$unique_mixed"],
            "description": TEXTS,
            "enabled": [False, "true"],
            "domain": ["default"],
            "tags": [["b", "a"], ["A"]],
            "parent": ["$target", "default"],
        },
        by_admin=True,
    ),
    "OS::Keystone::User": Values(
        {"name": "$unique"},
        {
            "name": ["$unique_mixed"],
            "description": TEXTS,
            "enabled": [False],
            "email": ["A@Example.org"],
            "domain": ["default"],
            "password": ["swordfish", "  spaces  "],
            "default_project": ["$target"],
            "groups": [["$group"], ["$group_name", "$other_group"], ["$group"] * 2],
            "roles": GRANTS,
        },
        by_admin=True,
    ),
    "OS::Keystone::Group": Values(
        {"name": "$unique"},
        {"name": ["$unique_mixed"], "description": TEXTS, "domain": ["default"], "roles": GRANTS},
        by_admin=True,
    ),
    "OS::Keystone::Domain": Values(
        {"name": "$unique"}, {"name": ["$unique_mixed"], "description": TEXTS, "enabled": OFF}, by_admin=True
    ),
    "OS::Keystone::Role": Values({}, {"name": ["$unique"], "domain": ["default", "$domain"]}, by_admin=True),
    "OS::Keystone::Service": Values(
        {"name": "$unique", "type": "test"},
        {"name": ["$unique_mixed"], "description": TEXTS, "enabled": [False], "type": ["Test"]},
        by_admin=True,
    ),
}
TABLE: Mapping[str, Values] = {**NETWORKING, **OTHERS}
