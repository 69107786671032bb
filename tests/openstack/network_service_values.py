"""Values that templates set on VPNs, chains of services and taps; see `normal_values`."""

from collections.abc import Mapping
from typing import Any

from tests.openstack.normal_values import NAMES, OFF, TEXTS, Values

WORDS: Mapping[str, Any] = {"name": NAMES, "description": TEXTS}
AUTHENTICATIONS = ["sha384", "sha512"]
CIPHERS = ["3des", "aes-256", "aes-256-gcm-16"]
GROUPS = ["group2", "group14"]
LIFETIMES = [{"units": "seconds", "value": 7200}, {"units": "seconds", "value": "7200"}, {"value": 1800}]
VIRTUAL_PRIVATE_NETWORKS: Mapping[str, Values] = {
    "OS::Neutron::VPNService": Values(
        {"subnet": "$vpn_subnet", "router": "$vpn_router"},
        {
            **WORDS,
            "admin_state_up": OFF,
            "subnet": ["$vpn_subnet_name"],
            "subnet_id": ["$vpn_subnet"],
            "router": ["$vpn_router_name"],
            "router_id": ["$vpn_router"],
        },
        together={"subnet_id": {"subnet": None}, "router_id": {"router": None}},
    ),
    "OS::Neutron::IKEPolicy": Values(
        {"auth_algorithm": "sha256"},
        {
            **WORDS,
            "auth_algorithm": [*AUTHENTICATIONS, "sha1"],
            "encryption_algorithm": CIPHERS,
            "lifetime": LIFETIMES,
            "pfs": GROUPS,
            "phase1_negotiation_mode": ["main"],
            "ike_version": ["v2"],
        },
    ),
    "OS::Neutron::IPsecPolicy": Values(
        {"auth_algorithm": "sha256"},
        {
            **WORDS,
            "transform_protocol": ["ah", "ah-esp"],
            "encapsulation_mode": ["transport"],
            "auth_algorithm": [*AUTHENTICATIONS, "sha1"],
            "encryption_algorithm": CIPHERS,
            "lifetime": LIFETIMES,
            "pfs": GROUPS,
        },
    ),
    "OS::Neutron::IPsecSiteConnection": Values(
        {
            "peer_address": "192.0.2.7",
            "peer_id": "192.0.2.7",
            "peer_cidrs": ["10.99.0.0/24"],
            "psk": "secret",
            "vpnservice_id": "$vpn",
            "ikepolicy_id": "$ike_policy",
            "ipsecpolicy_id": "$ipsec_policy",
        },
        {
            **WORDS,
            "peer_address": ["192.0.2.8", "Peer.Example.org"],
            "peer_id": ["@Peer.Example.org"],
            "peer_cidrs": [["10.98.0.0/24", "10.97.0.0/24"], ["10.99.0.7/24"]],
            "mtu": [1400, "1400"],
            "dpd": [
                {"actions": "restart", "interval": 10, "timeout": 60},
                {"actions": "hold", "interval": "10", "timeout": "60"},
                {"actions": "clear"},
            ],
            "psk": ["  Secret  "],
            "initiator": ["response-only"],
            "admin_state_up": OFF,
            "vpnservice_id": ["$other_vpn"],
            "ikepolicy_id": ["$other_ike_policy"],
            "ipsecpolicy_id": ["$other_ipsec_policy"],
        },
    ),
}
SERVICE_CHAINS: Mapping[str, Values] = {
    "OS::Neutron::FlowClassifier": Values(
        {"protocol": "tcp", "logical_source_port": "$chain_port_1"},
        {
            **WORDS,
            "protocol": ["udp", "icmp"],
            "ethertype": ["IPv6"],
            "source_ip_prefix": ["10.99.0.0/24", "10.99.0.7/24"],
            "destination_ip_prefix": ["10.98.0.7/32"],
            "source_port_range_min": [1000, "1000"],
            "source_port_range_max": [2000, "2000"],
            "destination_port_range_min": [80, "80"],
            "destination_port_range_max": [81, "81"],
            "logical_source_port": ["$chain_port_2", "$chain_port_2_name"],
            "logical_destination_port": ["$chain_port_2", "$chain_port_2_name"],
            "l7_parameters": [{}],
        },
        together={
            "source_port_range_min": {"source_port_range_max": 2000},
            "source_port_range_max": {"source_port_range_min": 1000},
            "destination_port_range_min": {"destination_port_range_max": 81},
            "destination_port_range_max": {"destination_port_range_min": 80},
        },
    ),
    "OS::Neutron::PortPair": Values(
        {"ingress": "$chain_port_1", "egress": "$chain_port_2"},
        {
            **WORDS,
            "ingress": ["$chain_port_1_name", "$chain_port_2"],
            "egress": ["$chain_port_2_name", "$chain_port_1"],
            "service_function_parameters": [{"correlation": "mpls"}, {"weight": 2}, {"weight": "2"}],
        },
    ),
    "OS::Neutron::PortPairGroup": Values(
        {"port_pairs": ["$pair_1"]},
        {**WORDS, "port_pairs": [["$pair_2", "$pair_1"], ["$pair_1_name"], []]},
    ),
    "OS::Neutron::PortChain": Values(
        {"port_pair_groups": ["$pair_group_1"]},
        {
            **WORDS,
            "port_pair_groups": [["$pair_group_2", "$pair_group_1"], ["$pair_group_1_name"]],
            "flow_classifiers": [["$classifier"], ["$classifier_name"], []],
            "chain_parameters": [{"symmetric": True}, {"correlation": "nsh"}, {"symmetric": "true"}],
        },
    ),
}
TAPS: Mapping[str, Values] = {
    "OS::Neutron::TaaS::TapService": Values(
        {"port": "$chain_port_1"}, {**WORDS, "port": ["$chain_port_2", "$chain_port_2_name"]}
    ),
    "OS::Neutron::TaaS::TapFlow": Values(
        {"port": "$chain_port_1", "tap_service": "$tap_service"},
        {
            **WORDS,
            "port": ["$chain_port_2", "$chain_port_2_name"],
            "tap_service": ["$tap_service_name"],
            "direction": ["IN", "OUT"],
            "vlan_filter": ["10,20-30", "30-40,9"],
        },
    ),
}
