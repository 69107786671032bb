"""Services on networks: VPN, firewalls, service chains, taps and gateways."""

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Kind, Statuses, listing, mapping
from homeostat.kinds.network import NETWORKING_STATUSES
from homeostat.model.observed import Remedy

VPN_SERVICE = Kind(
    name="vpn_service",
    description="A VPN service: lets a router connect a subnet with other sites.",
    fixed={
        "subnet_id": TEXT,
        "router_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "description": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=Statuses(
        ready=frozenset({"active", "down", "inactive", "n/a", "pending_create"}),
        busy=frozenset({"build", "building", "deleting", "pending_create", "pending_delete", "pending_update"}),
        broken={"error": Remedy.RECREATE},
    ),
)
IKE_POLICY = Kind(
    name="ike_policy",
    description="An IKE policy: how two sites exchange keys.",
    fixed={
        "phase1_negotiation_mode": TEXT,
    },
    mutable={
        "name": TEXT,
        "auth_algorithm": TEXT,
        "encryption_algorithm": TEXT,
        "pfs": TEXT,
        "ike_version": TEXT,
        "description": TEXT,
        "lifetime": mapping("{units, value}"),
    },
    statuses=NETWORKING_STATUSES,
)
IPSEC_POLICY = Kind(
    name="ipsec_policy",
    description="An IPsec policy: how the data between two sites is protected.",
    fixed={
        "transform_protocol": TEXT,
        "encapsulation_mode": TEXT,
        "auth_algorithm": TEXT,
        "encryption_algorithm": TEXT,
        "pfs": TEXT,
        "lifetime": mapping("{units, value}"),
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
IPSEC_SITE_CONNECTION = Kind(
    name="ipsec_site_connection",
    description="A protected connection to another site.",
    fixed={
        "peer_address": TEXT,
        "peer_id": TEXT,
        "peer_cidrs": LIST,
        "mtu": INTEGER,
        "psk": TEXT,
        "initiator": TEXT,
        "ikepolicy_id": TEXT,
        "ipsecpolicy_id": TEXT,
        "vpnservice_id": TEXT,
        "dpd": MAP,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "description": TEXT,
    },
    reported={
        "status": TEXT,
        "auth_mode": TEXT,
        "route_mode": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
FIREWALL = Kind(
    name="firewall",
    description="A firewall: applies a policy to the routers of a project.",
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "firewall_policy_id": TEXT,
        "description": TEXT,
        "shared": BOOLEAN,
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
FIREWALL_POLICY = Kind(
    name="firewall_policy",
    description="Rules of a firewall in their order.",
    mutable={
        "name": TEXT,
        "shared": BOOLEAN,
        "audited": BOOLEAN,
        "description": TEXT,
        "firewall_rules": listing("[id]"),
    },
    statuses=NETWORKING_STATUSES,
)
FIREWALL_RULE = Kind(
    name="firewall_rule",
    description="A rule for what a firewall lets pass.",
    mutable={
        "name": TEXT,
        "shared": BOOLEAN,
        "protocol": TEXT,
        "ip_version": TEXT,
        "action": TEXT,
        "enabled": BOOLEAN,
        "description": TEXT,
        "source_ip_address": TEXT,
        "destination_ip_address": TEXT,
        "source_port": TEXT,
        "destination_port": TEXT,
    },
    reported={
        "position": INTEGER,
        "firewall_policy_id": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
FLOW_CLASSIFIER = Kind(
    name="flow_classifier",
    description="A classifier for the traffic that goes through a chain.",
    fixed={
        "ethertype": TEXT,
        "protocol": TEXT,
        "source_ip_prefix": TEXT,
        "destination_ip_prefix": TEXT,
        "source_port_range_min": INTEGER,
        "source_port_range_max": INTEGER,
        "destination_port_range_min": INTEGER,
        "destination_port_range_max": INTEGER,
        "logical_source_port": TEXT,
        "logical_destination_port": TEXT,
        "l7_parameters": MAP,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
PORT_PAIR = Kind(
    name="port_pair",
    description="The two ports of one service that traffic goes through.",
    fixed={
        "ingress": TEXT,
        "egress": TEXT,
        "service_function_parameters": MAP,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
PORT_PAIR_GROUP = Kind(
    name="port_pair_group",
    description="A group of equivalent services that share the traffic.",
    mutable={
        "name": TEXT,
        "port_pairs": LIST,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
PORT_CHAIN = Kind(
    name="port_chain",
    description="A chain of services that traffic goes through one after the other.",
    fixed={
        "chain_parameters": MAP,
    },
    mutable={
        "name": TEXT,
        "port_pair_groups": LIST,
        "flow_classifiers": LIST,
        "description": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
TAP_SERVICE = Kind(
    name="tap_service",
    description="A port that gets copies of traffic.",
    fixed={
        "port_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
TAP_FLOW = Kind(
    name="tap_flow",
    description="Traffic to be copied to a tap service.",
    fixed={
        "source_port": TEXT,
        "tap_service_id": TEXT,
        "direction": TEXT,
        "vlan_filter": TEXT,
    },
    mutable={
        "name": TEXT,
        "description": TEXT,
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
L2_GATEWAY = Kind(
    name="l2_gateway",
    description="Hardware devices that lead from virtual networks to physical ones.",
    mutable={
        "name": TEXT,
        "devices": LIST,
    },
    statuses=NETWORKING_STATUSES,
)
L2_GATEWAY_CONNECTION = Kind(
    name="l2_gateway_connection",
    description="A connection of a network through a gateway to a physical one.",
    fixed={
        "l2_gateway_id": TEXT,
        "network_id": TEXT,
        "segmentation_id": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
NETWORK_GATEWAY = Kind(
    name="network_gateway",
    description="A gateway between networks and devices of the physical network, as NSX offers it.",
    mutable={
        "name": TEXT,
        "devices": LIST,
        "connections": LIST,
    },
    reported={
        "default": BOOLEAN,
    },
    statuses=NETWORKING_STATUSES,
)

KINDS = (
    VPN_SERVICE,
    IKE_POLICY,
    IPSEC_POLICY,
    IPSEC_SITE_CONNECTION,
    FIREWALL,
    FIREWALL_POLICY,
    FIREWALL_RULE,
    FLOW_CLASSIFIER,
    PORT_PAIR,
    PORT_PAIR_GROUP,
    PORT_CHAIN,
    TAP_SERVICE,
    TAP_FLOW,
    L2_GATEWAY,
    L2_GATEWAY_CONNECTION,
    NETWORK_GATEWAY,
)
