"""Services on networks: VPN, firewalls, service chains, taps and gateways."""

from dataclasses import replace

from homeostat.kinds.base import BOOLEAN, INTEGER, TEXT, Kind, listing, mapping
from homeostat.kinds.network import NETWORKING_STATUSES

KINDS = (
    Kind(
        "vpn_service",
        "A VPN service: lets a router connect a subnet with other sites.",
        reported={"status": TEXT},
        statuses=replace(NETWORKING_STATUSES, ready=NETWORKING_STATUSES.ready | {"pending_create"}),
    ),
    Kind(
        "ike_policy",
        "An IKE policy: how two sites exchange keys.",
        extra_mutable={"lifetime": mapping("{units, value}")},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "ipsec_policy",
        "An IPsec policy: how the data between two sites is protected.",
        extra_fixed={"lifetime": mapping("{units, value}")},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "ipsec_site_connection",
        "A protected connection to another site.",
        reported={"status": TEXT, "auth_mode": TEXT, "route_mode": TEXT},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "firewall",
        "A firewall: applies a policy to the routers of a project.",
        reported={"status": TEXT},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "firewall_policy",
        "Rules of a firewall in their order.",
        extra_mutable={"firewall_rules": listing("[id]")},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "firewall_rule",
        "A rule for what a firewall lets pass.",
        reported={"position": INTEGER, "firewall_policy_id": TEXT},
        statuses=NETWORKING_STATUSES,
    ),
    Kind("flow_classifier", "A classifier for the traffic that goes through a chain.", statuses=NETWORKING_STATUSES),
    Kind("port_pair", "The two ports of one service that traffic goes through.", statuses=NETWORKING_STATUSES),
    Kind("port_pair_group", "A group of equivalent services that share the traffic.", statuses=NETWORKING_STATUSES),
    Kind(
        "port_chain", "A chain of services that traffic goes through one after the other.", statuses=NETWORKING_STATUSES
    ),
    Kind("tap_service", "A port that gets copies of traffic.", reported={"status": TEXT}, statuses=NETWORKING_STATUSES),
    Kind("tap_flow", "Traffic to be copied to a tap service.", reported={"status": TEXT}, statuses=NETWORKING_STATUSES),
    Kind(
        "l2_gateway", "Hardware devices that lead from virtual networks to physical ones.", statuses=NETWORKING_STATUSES
    ),
    Kind(
        "l2_gateway_connection",
        "A connection of a network through a gateway to a physical one.",
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "network_gateway",
        "A gateway between networks and devices of the physical network, as NSX offers it.",
        reported={"default": BOOLEAN},
        statuses=NETWORKING_STATUSES,
    ),
)
