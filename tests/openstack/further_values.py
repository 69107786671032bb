"""Values of kinds that templates have less often; see `normal_values`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.openstack.normal_values import NAMES, OFF, TEXTS, Values

LIMITS = [7, "-1"]
COMPUTE = (
    *("cores", "instances", "key_pairs", "metadata_items", "ram", "server_groups", "server_group_members"),
    *("fixed_ips", "floating_ips", "injected_files", "injected_file_content_bytes", "injected_file_path_bytes"),
    *("security_groups", "security_group_rules"),
)
STORAGE = ("gigabytes", "volumes", "backups", "backup_gigabytes", "snapshots")
NETWORK = (
    *("subnet", "network", "floatingip", "security_group_rule", "security_group", "router", "port", "subnetpool"),
    "rbac_policy",
)


def _quota(names: tuple[str, ...]) -> Values:
    together = {name: {names[1] if name == names[0] else names[0]: 5} for name in names}
    tried: dict[str, Sequence[Any]] = {"project": ["$target"], **dict.fromkeys(names, LIMITS)}
    together["project"] = {names[0]: 5}
    return Values({"project": "$target"}, tried, by_admin=True, together=together)


FURTHER: Mapping[str, Values] = {
    "OS::Keystone::Region": Values(
        {"id": "$unique"},
        {"id": ["$unique_mixed"], "description": TEXTS, "enabled": OFF, "parent_region": ["RegionOne"]},
        by_admin=True,
    ),
    "OS::Keystone::Endpoint": Values(
        {"service": "keystone", "interface": "public", "url": "http://a.example/"},
        {
            "name": NAMES,
            "service": ["keystone"],
            "interface": ["internal", "admin"],
            "url": ["HTTP://B.Example/Path", "http://b.example/%(tenant_id)s"],
            "enabled": OFF,
            "region": ["RegionOne"],
        },
        by_admin=True,
    ),
    "OS::Nova::HostAggregate": Values(
        {"name": "$unique"},
        {
            "name": ["$unique"],
            "metadata": [{"Key": "Value"}, {"n": 1, "b": True}],
            "availability_zone": ["$unique_mixed"],
            "hosts": [["compute1"], ["compute2", "compute1"], ["compute1", "compute1"]],
        },
        by_admin=True,
    ),
    "OS::Neutron::Segment": Values(
        {"network": "$segmented_network", "network_type": "vlan", "physical_network": "physnet1"},
        {
            "name": NAMES,
            "description": TEXTS,
            "segmentation_id": [3990, "3991"],
            "network": ["$segmented_network_name"],
            "network_type": ["vlan"],
            "physical_network": ["physnet1"],
        },
        by_admin=True,
        together={
            "name": {"segmentation_id": 3992},
            "description": {"segmentation_id": 3993},
            "network": {"segmentation_id": 3994},
            "network_type": {"segmentation_id": 3995},
            "physical_network": {"segmentation_id": 3996},
        },
    ),
    "OS::Neutron::QoSMinimumBandwidthRule": Values(
        {"policy": "$qos_policy", "min_kbps": 1000},
        {"policy": ["$qos_policy_name"], "min_kbps": ["2000"], "direction": ["ingress"]},
        by_admin=True,
    ),
    "OS::Neutron::QoSMinimumPacketRateRule": Values(
        {"policy": "$qos_policy", "min_kpps": 10},
        {"policy": ["$qos_policy_name"], "min_kpps": ["20"], "direction": ["ingress", "any"]},
        by_admin=True,
    ),
    "OS::Neutron::ExtraRouteSet": Values(
        {"router": "$router"},
        {
            "router": ["$router_name"],
            "routes": [
                [{"destination": "10.99.0.0/16", "nexthop": "10.30.0.9"}],
                [
                    {"destination": "10.99.0.0/16", "nexthop": "10.30.0.9"},
                    {"destination": "10.98.0.0/16", "nexthop": "10.30.0.8"},
                ],
            ],
        },
        together={"router": {"routes": [{"destination": "10.99.0.0/16", "nexthop": "10.30.0.9"}]}},
    ),
    "OS::Neutron::FloatingIPPortForward": Values(
        {
            "floating_ip": "$forwarding_ip",
            "internal_ip_address": "10.30.0.11",
            "internal_port": "$port",
            "internal_port_number": 80,
            "external_port": 8080,
            "protocol": "tcp",
        },
        {
            "floating_ip": ["$forwarding_ip"],
            "internal_ip_address": ["10.30.0.12"],
            "internal_port": ["$other_port"],
            "protocol": ["udp"],
            "internal_port_number": ["81"],
            "external_port": ["8081"],
        },
        together={
            "internal_ip_address": {"internal_port": "$other_port"},
            "internal_port": {"internal_ip_address": "10.30.0.12"},
        },
    ),
    "OS::Neutron::ExtraRoute": Values(
        {"router_id": "$router", "destination": "10.99.0.0/16", "nexthop": "10.30.0.9"},
        {"router_id": ["$router_name"], "destination": ["10.97.0.7/16"], "nexthop": ["10.30.0.7"]},
    ),
    "OS::Neutron::FloatingIPAssociation": Values(
        {"floatingip_id": "$other_floating_ip", "port_id": "$port"},
        {"floatingip_id": ["$floating_ip"], "port_id": ["$other_port"], "fixed_ip_address": ["10.30.0.11"]},
    ),
    "OS::Cinder::VolumeAttachment": Values(
        {"instance_uuid": "$server", "volume_id": "$volume"},
        {
            "instance_uuid": ["$other_server"],
            "volume_id": ["$other_volume", "$other_volume_name"],
            "mountpoint": ["/dev/vdx", ""],
        },
    ),
    "OS::Cinder::EncryptedVolumeType": Values(
        {"provider": "luks", "volume_type": "$volume_type"},
        {
            "provider": ["luks2", "nova.volume.encryptors.luks.LuksEncryptor"],
            "control_location": ["back-end", "front-end"],
            "cipher": ["aes-xts-plain64", "aes-cbc-essiv"],
            "key_size": [256, "512"],
            "volume_type": ["$volume_type_name"],
        },
        by_admin=True,
    ),
    "OS::Cinder::Quota": _quota(STORAGE),
    "OS::Nova::Quota": _quota(COMPUTE),
    "OS::Neutron::Quota": _quota(NETWORK),
}
