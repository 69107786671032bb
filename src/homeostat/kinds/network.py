"""Networking: networks, ports, routers, addresses and security groups."""

from dataclasses import replace

from homeostat.kinds.base import INTEGER, TEXT, Kind, Statuses, listing
from homeostat.model.observed import Remedy

NETWORKING_STATUSES = Statuses(
    ready=frozenset({"active", "down", "inactive", "n/a"}),
    busy=frozenset({"build", "building", "deleting", "pending_create", "pending_delete", "pending_update"}),
    broken={"error": Remedy.RECREATE},
)

KINDS = (
    Kind(
        "network",
        "A network.",
        reported={"status": TEXT, "mtu": INTEGER, "subnets": listing("[id]")},
        statuses=NETWORKING_STATUSES,
    ),
    Kind("subnet", "A range of addresses on a network.", statuses=NETWORKING_STATUSES),
    Kind(
        "port",
        "A port: the place of one server or other device on a network.",
        extra_fixed={"description": TEXT},
        extra_mutable={"fixed_ips": listing("[{subnet_id, ip_address}]")},
        reported={"status": TEXT},
        statuses=NETWORKING_STATUSES,
        notes=("If created without network_id, it lies on the network of the first subnet of fixed_ips.",),
    ),
    Kind("router", "A router between networks.", reported={"status": TEXT}, statuses=NETWORKING_STATUSES),
    Kind("router_interface", "A router's place on a subnet.", statuses=NETWORKING_STATUSES),
    Kind(
        "router_gateway",
        "The external gateway of a router, apart from the router.",
        statuses=NETWORKING_STATUSES,
        notes=("Without network_id, it lies on the external network.",),
    ),
    Kind(
        "extra_route_set",
        "Routes of a router, apart from the router.",
        extra_mutable={"routes": listing("[{destination, nexthop}]")},
        statuses=NETWORKING_STATUSES,
        notes=("Other routes of the router are left alone.",),
    ),
    Kind(
        "floating_ip",
        "An outside address that leads to a port.",
        reported={"status": TEXT, "router_id": TEXT},
        statuses=replace(NETWORKING_STATUSES, operations={"stopped": "start"}),
        operations={"start": "Only where it has a process that can die; its status is then `stopped`."},
        notes=(
            "It may be created with `server` in place of port_id: the server's first port with an address.",
            "Without floating_network_id, it lies on the external network.",
        ),
    ),
    Kind(
        "floating_ip_association",
        "The association of a floating IP with a port.",
        statuses=NETWORKING_STATUSES,
        notes=(
            "It may be created with `server` in place of port_id: the server's first port with an address.",
            "Its floatingip_id may be the address itself.",
        ),
    ),
    Kind(
        "floating_ip_port_forward",
        "A port forwarding: one port number of a floating IP leads to a port.",
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "security_group",
        "Rules for the traffic that may pass ports.",
        extra_mutable={"rules": listing("[...]")},
        statuses=NETWORKING_STATUSES,
        notes=("Its rules do not include things of the kind security_group_rule.",),
    ),
    Kind(
        "security_group_rule",
        "One rule of a security group, apart from the rules that the group itself names.",
        statuses=NETWORKING_STATUSES,
        operations={"adopt": "Marks it, so that its group does not take it for a rule of its own."},
    ),
    Kind(
        "trunk",
        "A trunk: carries the traffic of several ports over one.",
        extra_mutable={"sub_ports": listing("[{port_id, segmentation_type, segmentation_id}]")},
        reported={"status": TEXT},
        statuses=NETWORKING_STATUSES,
    ),
    Kind(
        "network_quota",
        "The networking quota of a project.",
        notes=("Deleting one restores the defaults of the cloud.",),
    ),
)
