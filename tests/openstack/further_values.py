"""Values of kinds that templates have less often; see `normal_values`."""

from collections.abc import Mapping

from tests.openstack.normal_values import NAMES, OFF, TEXTS, Values

LIMITS = [7, "-1"]
COMPUTE = ("cores", "instances", "key_pairs", "metadata_items", "ram", "server_groups", "server_group_members")
STORAGE = ("gigabytes", "volumes", "backups", "backup_gigabytes", "snapshots")
NETWORK = (
    *("subnet", "network", "floatingip", "security_group_rule", "security_group", "router", "port", "subnetpool"),
    "rbac_policy",
)


def _quota(names: tuple[str, ...]) -> Values:
    together = {name: {names[1] if name == names[0] else names[0]: 5} for name in names}
    return Values({"project": "$target"}, dict.fromkeys(names, LIMITS), by_admin=True, together=together)


FURTHER: Mapping[str, Values] = {
    "OS::Keystone::Region": Values(
        {"id": "$unique"},
        {"description": TEXTS, "enabled": OFF, "parent_region": ["RegionOne"]},
        by_admin=True,
    ),
    "OS::Keystone::Endpoint": Values(
        {"service": "keystone", "interface": "public", "url": "http://a.example/"},
        {
            "name": NAMES,
            "interface": ["internal", "admin"],
            "url": ["HTTP://B.Example/Path", "http://b.example/%(tenant_id)s"],
            "enabled": OFF,
            "region": ["RegionOne"],
        },
        by_admin=True,
    ),
    "OS::Nova::HostAggregate": Values(
        {"name": "$unique"},
        {"name": ["$unique"], "metadata": [{"Key": "Value"}, {"n": 1, "b": True}]},
        by_admin=True,
    ),
    "OS::Neutron::Segment": Values(
        {"network": "$segmented_network", "network_type": "vlan", "physical_network": "physnet1"},
        {"name": NAMES, "description": TEXTS, "segmentation_id": [3990, "3991"]},
        by_admin=True,
        together={"name": {"segmentation_id": 3992}, "description": {"segmentation_id": 3993}},
    ),
    "OS::Neutron::QoSMinimumBandwidthRule": Values(
        {"policy": "$qos_policy", "min_kbps": 1000}, {"min_kbps": ["2000"], "direction": ["ingress"]}, by_admin=True
    ),
    "OS::Neutron::QoSMinimumPacketRateRule": Values(
        {"policy": "$qos_policy", "min_kpps": 10}, {"min_kpps": ["20"], "direction": ["ingress", "any"]}, by_admin=True
    ),
    "OS::Neutron::ExtraRouteSet": Values(
        {"router": "$router"},
        {
            "routes": [
                [{"destination": "10.99.0.0/16", "nexthop": "10.30.0.9"}],
                [
                    {"destination": "10.99.0.0/16", "nexthop": "10.30.0.9"},
                    {"destination": "10.98.0.0/16", "nexthop": "10.30.0.8"},
                ],
            ]
        },
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
        {"protocol": ["udp"], "internal_port_number": ["81"], "external_port": ["8081"]},
    ),
    "OS::Cinder::Quota": _quota(STORAGE),
    "OS::Nova::Quota": _quota(COMPUTE),
    "OS::Neutron::Quota": _quota(NETWORK),
}
