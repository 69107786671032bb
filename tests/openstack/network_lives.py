"""Resources of networking, and what of them changes: tables for the tests of their lives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Life:
    """A thing to make and to change.

    Attributes:
        properties: Of the template; a text `$name` is the id of something that is there.
        changes: Properties that change together, one time after the other.
        by_admin: Whether only an administrator may.
        called: What it is called in the list of tests; the type if empty.
    """

    type: str
    properties: Fields
    changes: Sequence[Fields] = ()
    by_admin: bool = False
    called: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return self.called or self.type


SSH = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
WEB = {"protocol": "6", "port_range_min": 80, "port_range_max": 81, "remote_ip_prefix": "10.0.0.0/8"}
LIVES = (
    Life(
        "OS::Neutron::Net",
        {"name": "one", "tags": ["b", "a"], "value_specs": {"mtu": 1400, "description": "some words"}},
        [
            {"name": "two", "admin_state_up": False, "port_security_enabled": False, "tags": ["c"]},
            {"name": "three", "tags": [], "value_specs": {"mtu": 1300, "description": "other words"}},
        ],
    ),
    Life(
        "OS::Neutron::ProviderNet",
        {"network_type": "vlan", "physical_network": "physnet1", "segmentation_id": "3977", "shared": False},
        [{"router_external": True, "name": "outside"}, {"admin_state_up": False, "tags": ["a"]}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::Subnet",
        {
            "network": "$network",
            "cidr": "10.31.0.0/24",
            "dns_nameservers": ["10.31.0.3", "10.31.0.2"],
            "allocation_pools": [{"start": "10.31.0.20", "end": "10.31.0.30"}],
            "host_routes": [{"destination": "10.32.0.0/16", "nexthop": "10.31.0.9"}],
        },
        [
            {"name": "other", "gateway_ip": "10.31.0.4", "enable_dhcp": False, "tags": ["a"]},
            {"dns_nameservers": ["10.31.0.5"], "allocation_pools": [{"start": "10.31.0.40", "end": "10.31.0.50"}]},
            {"host_routes": None, "gateway_ip": ""},
        ],
    ),
    Life(
        "OS::Neutron::Subnet",
        {
            "network": "$network",
            "cidr": "2001:DB8:7:0::/64",
            "ip_version": 6,
            "gateway_ip": "2001:DB8:7:0::0:1",
            "dns_nameservers": ["2001:DB8:7::0:5"],
            "allocation_pools": [{"start": "2001:DB8:7::0:20", "end": "2001:DB8:7::0:30"}],
        },
        [{"dns_nameservers": ["2001:DB8:7::0:6"]}],
        called="subnet of IPv6",
    ),
    Life(
        "OS::Neutron::Subnet",
        {"network": "$pool_network", "subnetpool": "$subnetpool", "prefixlen": 28},
        [{"name": "other"}],
        called="subnet of a pool",
    ),
    Life(
        "OS::Neutron::Port",
        {
            "network": "$network_name",
            "fixed_ips": [{"subnet": "$subnet_name", "ip_address": "10.30.0.77"}],
            "security_groups": ["$security_group_name", "default"],
            "allowed_address_pairs": [{"ip_address": "10.9.0.0/16", "mac_address": "FA:16:3E:00:00:01"}],
            "mac_address": "fa:16:3e:77:00:01",
            "tags": ["a"],
        },
        [
            {"name": "other", "admin_state_up": False, "security_groups": ["$security_group"], "tags": ["b"]},
            {"fixed_ips": [{"subnet": "$subnet", "ip_address": "10.30.0.78"}, {"subnet": "$subnet"}]},
            {"binding:vnic_type": "direct", "allowed_address_pairs": None, "device_id": "some", "device_owner": "me"},
            {"security_groups": None, "fixed_ips": None},
            {"security_groups": [], "no_fixed_ips": True},
            {"port_security_enabled": False},
        ],
    ),
    Life(
        "AWS::EC2::NetworkInterface",
        {"SubnetId": "$subnet", "Description": "some words", "PrivateIpAddress": "10.30.0.79"},
        [{"GroupSet": ["$security_group"]}],
    ),
    Life(
        "OS::Neutron::Router",
        {"tags": ["a"], "external_gateway_info": {"network": "public"}},
        [
            {"name": "other", "admin_state_up": False, "tags": ["b"]},
            {"external_gateway_info": None},
            {"external_gateway_info": {"network": "$public"}},
        ],
    ),
    Life("OS::Neutron::RouterInterface", {"router": "$router_name", "subnet": "$free_subnet"}),
    Life("OS::Neutron::RouterInterface", {"router": "$router", "port": "$free_port"}, called="interface of a port"),
    Life("OS::Neutron::RouterInterface", {"router": "$router", "subnet": "$slaac"}, called="interface of IPv6"),
    Life("OS::Neutron::RouterGateway", {"router_id": "$free_router", "network": "public"}),
    Life("AWS::EC2::VPCGatewayAttachment", {"VpcId": "$free_router", "InternetGatewayId": "any"}),
    Life(
        "OS::Neutron::ExtraRouteSet",
        {"router": "$router", "routes": [{"destination": "10.91.0.0/16", "nexthop": "10.30.0.91"}]},
        [
            {"routes": [{"destination": f"10.9{each}.0.0/16", "nexthop": "10.30.0.92"} for each in (2, 1)]},
            {"routes": [{"destination": "10.92.0.0/16", "nexthop": "10.30.0.92"}]},
        ],
    ),
    Life("OS::Neutron::ExtraRoute", {"router_id": "$router", "destination": "10.93.0.0/16", "nexthop": "10.30.0.93"}),
    Life(
        "OS::Neutron::FloatingIP",
        {"floating_network": "public", "port_id": "$port"},
        [{"port_id": "$other_port", "fixed_ip_address": "10.30.0.12"}, {"port_id": None, "fixed_ip_address": None}],
    ),
    Life("AWS::EC2::EIP", {}),
    Life(
        "OS::Neutron::FloatingIPAssociation",
        {"floatingip_id": "$floating_ip", "port_id": "$port", "fixed_ip_address": "10.30.0.11"},
        [{"port_id": "$other_port", "fixed_ip_address": None}, {"floatingip_id": "$other_floating_ip"}],
    ),
    Life(
        "OS::Neutron::SecurityGroup",
        {"description": "words", "rules": [SSH, {"remote_mode": "remote_group_id"}, {**SSH, "ethertype": "IPv6"}]},
        [
            {"name": "other", "description": "other words", "rules": [WEB, SSH, SSH]},
            {"rules": [{**SSH, "direction": "egress"}, {"protocol": "ICMPv6", "ethertype": "IPv6"}]},
            {"rules": [{"remote_mode": "remote_group_id", "remote_group_id": "$security_group_name"}]},
            {"stateful": False, "rules": []},
        ],
    ),
    Life(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "words",
            "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}],
            "SecurityGroupEgress": [{"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}],
        },
        [{"SecurityGroupIngress": [{"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1}]}],
    ),
    Life("OS::Neutron::SecurityGroupRule", {"security_group": "$security_group", **SSH, "description": "words"}),
    Life("OS::Neutron::AddressScope", {"name": "scope"}, [{"name": "other"}]),
    Life(
        "OS::Neutron::SubnetPool",
        {"prefixes": ["10.50.0.0/16"], "min_prefixlen": 20, "default_prefixlen": 24, "max_prefixlen": 28},
        [
            {"name": "other", "prefixes": ["10.50.0.0/16", "10.52.0.0/16"], "default_quota": 4096, "tags": ["a"]},
            {"default_prefixlen": 25, "min_prefixlen": 21, "max_prefixlen": 27, "address_scope": "$address_scope"},
        ],
    ),
    Life(
        "OS::Neutron::RBACPolicy",
        {
            "object_type": "network",
            "object_id": "$network_name",
            "action": "access_as_shared",
            "target_tenant": "$target",
        },
        [{"target_tenant": "$other_target"}],
    ),
    Life(
        "OS::Neutron::Quota",
        {"project": "$other_project", "port": 77, "rbac_policy": 5},
        [{"port": 78, "subnetpool": 3}, {"rbac_policy": None}],
        by_admin=True,
    ),
    *(
        Life(
            "OS::Neutron::RBACPolicy",
            {
                "object_type": kind,
                "object_id": f"${kind}_name",
                "action": "access_as_shared",
                "target_tenant": "$target",
            },
            [{"target_tenant": "$other_target"}],
            kind == "qos_policy",
            called=f"RBAC policy of a {kind}",
        )
        for kind in ("qos_policy", "security_group", "address_scope", "subnetpool")
    ),
    Life(
        "OS::Neutron::QoSPolicy",
        {"description": "words"},
        [{"name": "other", "description": "other words", "shared": True}, {"description": None}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::QoSBandwidthLimitRule",
        {"policy": "$qos_policy_name", "max_kbps": 1000},
        [{"max_kbps": 2000, "max_burst_kbps": 3000}, {"direction": "ingress"}, {"max_burst_kbps": None}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::QoSDscpMarkingRule",
        {"policy": "$qos_policy", "dscp_mark": 10},
        [{"dscp_mark": 0}, {"dscp_mark": 56}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::QoSMinimumBandwidthRule",
        {"policy": "$qos_policy", "min_kbps": 10},
        [{"min_kbps": 20, "direction": "ingress"}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::QoSMinimumPacketRateRule",
        {"policy": "$qos_policy", "min_kpps": 10},
        [{"min_kpps": 20, "direction": "ingress"}, {"direction": "any"}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::Net",
        {"qos_policy": "$shared_qos_policy_name", "dns_domain": "one.test."},
        [{"qos_policy": "$other_qos_policy", "dns_domain": "other.test."}, {"qos_policy": None, "dns_domain": None}],
        called="network with QoS and a domain",
    ),
    Life(
        "OS::Neutron::Port",
        {
            "network": "$network",
            "qos_policy": "$shared_qos_policy_name",
            "dns_name": "one",
            "propagate_uplink_status": True,
            "value_specs": {"dns_domain": "one.test."},
        },
        [
            {"qos_policy": "$other_qos_policy", "dns_name": "other", "value_specs": {"dns_domain": "other.test."}},
            {"qos_policy": None, "dns_name": None},
        ],
        called="port with QoS and a name",
    ),
    Life(
        "OS::Neutron::FloatingIPPortForward",
        {
            "floating_ip": "$forwarding_ip",
            "internal_port": "$port",
            "internal_ip_address": "10.30.0.11",
            "internal_port_number": 22,
            "external_port": 2222,
            "protocol": "tcp",
        },
        [
            {"external_port": 2223, "protocol": "UDP"},
            {"internal_port": "$other_port", "internal_ip_address": "10.30.0.12", "internal_port_number": 23},
        ],
    ),
    Life(
        "OS::Neutron::Segment",
        {
            "network": "$segmented_network",
            "network_type": "vlan",
            "physical_network": "physnet1",
            "segmentation_id": 3978,
            "description": "words",
        },
        [{"name": "other", "description": "other words"}, {"description": None}],
        by_admin=True,
    ),
    Life("OS::Neutron::MeteringLabel", {"description": "words", "shared": True}, by_admin=True),
    Life(
        "OS::Neutron::MeteringRule",
        {"metering_label_id": "$metering_label_name", "remote_ip_prefix": "10.0.0.0/24", "excluded": True},
        by_admin=True,
    ),
    Life(
        "OS::Neutron::Trunk",
        {
            "port": "$trunk_port_name",
            "sub_ports": [{"port": "$sub_port_name", "segmentation_type": "vlan", "segmentation_id": 7}],
        },
        [
            {"name": "other", "description": "words", "admin_state_up": True},
            {
                "sub_ports": [
                    {"port": "$sub_port", "segmentation_type": "vlan", "segmentation_id": 8},
                    {"port": "$other_sub_port", "segmentation_type": "vlan", "segmentation_id": 7},
                ]
            },
            {"sub_ports": [{"port": "$other_sub_port", "segmentation_type": "vlan", "segmentation_id": 7}]},
            {"description": None, "sub_ports": []},
            {"admin_state_up": False},
        ],
    ),
)
