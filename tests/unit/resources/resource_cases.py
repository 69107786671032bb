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
    "OS::Nova::ServerGroup": {},
    "OS::Nova::Flavor": {"ram": 512, "vcpus": 1},
    "OS::Nova::HostAggregate": {"name": "ssd"},
    "OS::Nova::FloatingIP": {},
    "OS::Nova::FloatingIPAssociation": {"server_id": ID_A, "floating_ip": ID_B},
    "OS::Nova::Quota": {"project": "p", "cores": 4},
    "OS::Neutron::Quota": {"project": "p", "port": 4},
    "OS::Neutron::SecurityGroupRule": {"security_group": "web"},
    "OS::Neutron::RouterGateway": {"router_id": "r1", "network": "public"},
    "OS::Neutron::ExtraRoute": {"router_id": "r1", "destination": "10.1.0.0/24", "nexthop": "10.0.0.2"},
    "OS::Neutron::ExtraRouteSet": {"router": "r1"},
    "OS::Neutron::FloatingIPPortForward": {
        "internal_ip_address": "10.0.0.5",
        "external_port": 80,
        "internal_port": ID_A,
        "protocol": "tcp",
        "floating_ip": ID_B,
    },
    "OS::Neutron::QoSPolicy": {},
    "OS::Neutron::QoSBandwidthLimitRule": {"policy": "slow", "max_kbps": 100},
    "OS::Neutron::QoSDscpMarkingRule": {"policy": "slow", "dscp_mark": 8},
    "OS::Neutron::QoSMinimumBandwidthRule": {"policy": "slow", "min_kbps": 100},
    "OS::Neutron::QoSMinimumPacketRateRule": {"policy": "slow", "min_kpps": 100},
    "OS::Neutron::ProviderNet": {"network_type": "vlan", "physical_network": "left"},
    "OS::Neutron::Segment": {"network": "net", "network_type": "local"},
    "OS::Neutron::AddressScope": {},
    "OS::Neutron::SubnetPool": {"prefixes": ["10.0.0.0/8"]},
    "OS::Neutron::RBACPolicy": {
        "object_type": "network",
        "object_id": ID_A,
        "action": "access_as_shared",
        "target_tenant": "q",
    },
    "OS::Neutron::Trunk": {"port": ID_A},
    "OS::Neutron::L2Gateway": {"name": "l2", "devices": [{"device_name": "d", "interfaces": [{"name": "i"}]}]},
    "OS::Neutron::L2GatewayConnection": {"l2_gateway_id": ID_A, "network_id": "net"},
    "OS::Neutron::NetworkGateway": {"devices": [{"id": "d", "interface_name": "i"}]},
    "OS::Neutron::MeteringLabel": {},
    "OS::Neutron::MeteringRule": {"metering_label_id": ID_A, "remote_ip_prefix": "10.0.0.0/24"},
    "OS::Neutron::VPNService": {"subnet": "s1", "router": "r1"},
    "OS::Neutron::IKEPolicy": {},
    "OS::Neutron::IPsecPolicy": {},
    "OS::Neutron::IPsecSiteConnection": {
        "peer_address": "192.0.2.1",
        "peer_id": "192.0.2.1",
        "peer_cidrs": ["10.9.0.0/24"],
        "psk": "secret",
        "ikepolicy_id": ID_A,
        "ipsecpolicy_id": ID_A,
        "vpnservice_id": ID_A,
    },
    "OS::Neutron::FirewallRule": {},
    "OS::Neutron::FirewallPolicy": {},
    "OS::Neutron::Firewall": {"firewall_policy_id": ID_A},
    "OS::Neutron::FlowClassifier": {},
    "OS::Neutron::PortPair": {"ingress": ID_A, "egress": ID_B},
    "OS::Neutron::PortPairGroup": {"port_pairs": [ID_A]},
    "OS::Neutron::PortChain": {"port_pair_groups": [ID_A]},
    "OS::Neutron::TaaS::TapService": {"port": ID_A},
    "OS::Neutron::TaaS::TapFlow": {"port": ID_A, "tap_service": ID_B},
    "OS::Cinder::VolumeType": {"name": "fast"},
    "OS::Cinder::EncryptedVolumeType": {"provider": "luks", "volume_type": "fast"},
    "OS::Cinder::QoSSpecs": {"specs": {"total_iops_sec": 100}},
    "OS::Cinder::QoSAssociation": {"qos_specs": "slow", "volume_types": ["fast"]},
    "OS::Cinder::Quota": {"project": "p", "volumes": 4},
    "OS::Octavia::L7Policy": {"listener": "li", "action": "REJECT"},
    "OS::Octavia::L7Rule": {"l7policy": ID_A, "type": "PATH", "compare_type": "EQUAL_TO", "value": "/x"},
    "OS::Octavia::FlavorProfile": {"flavor_data": "{}"},
    "OS::Octavia::Flavor": {"flavor_profile": "fp"},
    "OS::Octavia::AvailabilityZoneProfile": {"availability_zone_data": "{}"},
    "OS::Octavia::AvailabilityZone": {"availability_zone_profile": "zp"},
    "OS::Octavia::Quota": {"project": "p", "listener": 4},
    "OS::Neutron::LBaaS::LoadBalancer": {"vip_subnet": "s1"},
    "OS::Neutron::LBaaS::Listener": {"protocol": "TCP", "protocol_port": 80, "loadbalancer": "lb"},
    "OS::Neutron::LBaaS::Pool": {"lb_algorithm": "ROUND_ROBIN", "protocol": "TCP", "listener": "li"},
    "OS::Neutron::LBaaS::PoolMember": {"pool": "p", "address": "10.0.0.5", "protocol_port": 80, "subnet": "s1"},
    "OS::Neutron::LBaaS::HealthMonitor": {"pool": "p", "type": "TCP", "delay": 5, "timeout": 2, "max_retries": 3},
    "OS::Neutron::LBaaS::L7Policy": {"listener": "li", "action": "REJECT"},
    "OS::Neutron::LBaaS::L7Rule": {"l7policy": ID_A, "type": "PATH", "compare_type": "EQUAL_TO", "value": "/x"},
    "AWS::EC2::Instance": {"ImageId": "debian", "InstanceType": "m1.small"},
    "AWS::EC2::Volume": {"AvailabilityZone": "nova", "Size": 1},
    "AWS::EC2::VolumeAttachment": {"InstanceId": ID_A, "VolumeId": ID_B, "Device": "/dev/vdb"},
    "AWS::EC2::SecurityGroup": {"GroupDescription": "web"},
    "AWS::EC2::EIP": {},
    "AWS::EC2::EIPAssociation": {"InstanceId": ID_A, "EIP": "203.0.113.5"},
    "AWS::EC2::NetworkInterface": {"SubnetId": "s1"},
    "AWS::AutoScaling::AutoScalingGroup": {
        "AvailabilityZones": ["nova"],
        "LaunchConfigurationName": "launch",
        "MinSize": 0,
        "MaxSize": 2,
    },
    "AWS::AutoScaling::LaunchConfiguration": {"ImageId": "debian", "InstanceType": "m1.small"},
    "AWS::AutoScaling::ScalingPolicy": {
        "AutoScalingGroupName": ID_A,
        "ScalingAdjustment": 1,
        "AdjustmentType": "ChangeInCapacity",
    },
    "OS::Heat::InstanceGroup": {"AvailabilityZones": ["nova"], "LaunchConfigurationName": "launch", "Size": 1},
    "OS::Heat::AutoScalingGroup": {"resource": {"type": "OS::Heat::None"}, "min_size": 0, "max_size": 2},
    "OS::Heat::ScalingPolicy": {
        "auto_scaling_group_id": ID_A,
        "scaling_adjustment": 1,
        "adjustment_type": "change_in_capacity",
    },
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
