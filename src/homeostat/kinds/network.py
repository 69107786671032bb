"""Networking: networks, ports, routers, addresses and security groups."""

from dataclasses import replace

from homeostat.kinds.base import BOOLEAN, INTEGER, LIST, MAP, TEXT, Field, FieldType, Kind, Statuses, listing
from homeostat.model.observed import Remedy

NETWORKING_STATUSES = Statuses(
    ready=frozenset({"active", "down", "inactive", "n/a"}),
    busy=frozenset({"build", "building", "deleting", "pending_create", "pending_delete", "pending_update"}),
    broken={"error": Remedy.RECREATE},
)

NETWORK = Kind(
    name="network",
    description="A network.",
    fixed={
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "shared": BOOLEAN,
        "dhcp_agent_ids": LIST,
        "port_security_enabled": BOOLEAN,
        "qos_policy_id": TEXT,
        "dns_domain": TEXT,
        "tags": LIST,
        "availability_zone_hints": LIST,
        "provider:network_type": TEXT,
        "router:external": BOOLEAN,
        "provider:physical_network": TEXT,
        "provider:segmentation_id": TEXT,
    },
    reported={
        "status": TEXT,
        "mtu": INTEGER,
        "subnets": listing("[id]"),
    },
    statuses=NETWORKING_STATUSES,
)
SUBNET = Kind(
    name="subnet",
    description="A range of addresses on a network.",
    fixed={
        "network_id": TEXT,
        "cidr": TEXT,
        "ip_version": INTEGER,
        "subnetpool_id": TEXT,
        "prefixlen": INTEGER,
        "tenant_id": TEXT,
        "ipv6_ra_mode": TEXT,
        "ipv6_address_mode": TEXT,
    },
    mutable={
        "name": TEXT,
        "dns_nameservers": LIST,
        "enable_dhcp": BOOLEAN,
        "gateway_ip": TEXT,
        "allocation_pools": LIST,
        "host_routes": LIST,
        "segment_id": TEXT,
        "tags": LIST,
    },
    statuses=NETWORKING_STATUSES,
)
PORT = Kind(
    name="port",
    description="A port: the place of one server or other device on a network.",
    fixed={
        "network_id": TEXT,
        "description": TEXT,
    },
    mutable={
        "name": TEXT,
        "mac_address": TEXT,
        "device_id": TEXT,
        "device_owner": TEXT,
        "admin_state_up": BOOLEAN,
        "binding:vnic_type": TEXT,
        "security_groups": LIST,
        "dns_name": TEXT,
        "tags": LIST,
        "allowed_address_pairs": LIST,
        "port_security_enabled": BOOLEAN,
        "qos_policy_id": TEXT,
        "propagate_uplink_status": BOOLEAN,
        "fixed_ips": listing("[{subnet_id, ip_address}]"),
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
    notes=(("If created without network_id, it lies on the network of the first subnet of fixed_ips."),),
)
ROUTER = Kind(
    name="router",
    description="A router between networks.",
    fixed={
        "distributed": BOOLEAN,
        "ha": BOOLEAN,
        "tenant_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "admin_state_up": BOOLEAN,
        "l3_agent_ids": LIST,
        "availability_zone_hints": LIST,
        "tags": LIST,
        "external_gateway_info": MAP,
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
ROUTER_INTERFACE = Kind(
    name="router_interface",
    description="A router's place on a subnet.",
    fixed={
        "router_id": TEXT,
        "subnet_id": TEXT,
        "port_id": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
ROUTER_GATEWAY = Kind(
    name="router_gateway",
    description="The external gateway of a router, apart from the router.",
    fixed={
        "router_id": TEXT,
        "network_id": TEXT,
    },
    statuses=NETWORKING_STATUSES,
    notes=("Without network_id, it lies on the external network.",),
)
EXTRA_ROUTE_SET = Kind(
    name="extra_route_set",
    description="Routes of a router, apart from the router.",
    fixed={
        "router_id": TEXT,
    },
    mutable={
        "routes": listing("[{destination, nexthop}]"),
    },
    statuses=NETWORKING_STATUSES,
    notes=("Other routes of the router are left alone.",),
)
FLOATING_IP = Kind(
    name="floating_ip",
    description="An outside address that leads to a port.",
    fixed={
        "floating_network_id": TEXT,
        "subnet_id": TEXT,
        "floating_ip_address": TEXT,
    },
    mutable={
        "port_id": TEXT,
        "fixed_ip_address": TEXT,
        "dns_name": TEXT,
        "dns_domain": TEXT,
        "server": TEXT,
    },
    reported={
        "status": TEXT,
        "router_id": TEXT,
    },
    statuses=replace(NETWORKING_STATUSES, operations={"stopped": "start"}),
    operations={"start": "Only where it has a process that can die; its status is then `stopped`."},
    notes=(
        ("It may be created with `server` in place of port_id: the server's first port with an address."),
        "Without floating_network_id, it lies on the external network.",
    ),
)
FLOATING_IP_ASSOCIATION = Kind(
    name="floating_ip_association",
    description="The association of a floating IP with a port.",
    mutable={
        "server": TEXT,
        "floatingip_id": TEXT,
        "port_id": TEXT,
        "fixed_ip_address": TEXT,
    },
    statuses=NETWORKING_STATUSES,
    notes=(
        ("It may be created with `server` in place of port_id: the server's first port with an address."),
        "Its floatingip_id may be the address itself.",
    ),
)
FLOATING_IP_PORT_FORWARD = Kind(
    name="floating_ip_port_forward",
    description="A port forwarding: one port number of a floating IP leads to a port.",
    fixed={
        "floatingip_id": TEXT,
    },
    mutable={
        "internal_ip_address": TEXT,
        "external_port": INTEGER,
        "internal_port_id": TEXT,
        "protocol": TEXT,
        "internal_port": INTEGER,
    },
    statuses=NETWORKING_STATUSES,
)
SECURITY_GROUP = Kind(
    name="security_group",
    description="Rules for the traffic that may pass ports.",
    mutable={
        "name": TEXT,
        "rules": Field(FieldType.LIST, "[...]"),
        "description": TEXT,
        "stateful": BOOLEAN,
    },
    statuses=NETWORKING_STATUSES,
    notes=("Its rules do not include things of the kind security_group_rule.",),
)
SECURITY_GROUP_RULE = Kind(
    name="security_group_rule",
    description="One rule of a security group, apart from the rules that the group itself names.",
    fixed={
        "security_group_id": TEXT,
        "direction": TEXT,
        "ethertype": TEXT,
        "protocol": TEXT,
        "description": TEXT,
        "port_range_min": INTEGER,
        "port_range_max": INTEGER,
        "remote_group_id": TEXT,
        "remote_ip_prefix": TEXT,
    },
    statuses=NETWORKING_STATUSES,
    operations={"adopt": "Marks it, so that its group does not take it for a rule of its own."},
)
TRUNK = Kind(
    name="trunk",
    description="A trunk: carries the traffic of several ports over one.",
    fixed={
        "port_id": TEXT,
    },
    mutable={
        "name": TEXT,
        "sub_ports": listing("[{port_id, segmentation_type, segmentation_id}]"),
        "description": TEXT,
        "admin_state_up": BOOLEAN,
    },
    reported={
        "status": TEXT,
    },
    statuses=NETWORKING_STATUSES,
)
NETWORK_QUOTA = Kind(
    name="network_quota",
    description="The networking quota of a project.",
    fixed={
        "project": TEXT,
    },
    mutable={
        "port": INTEGER,
        "subnet": INTEGER,
        "network": INTEGER,
        "floatingip": INTEGER,
        "security_group_rule": INTEGER,
        "security_group": INTEGER,
        "router": INTEGER,
        "subnetpool": INTEGER,
        "rbac_policy": INTEGER,
    },
    notes=("Deleting one restores the defaults of the cloud.",),
)

KINDS = (
    NETWORK,
    SUBNET,
    PORT,
    ROUTER,
    ROUTER_INTERFACE,
    ROUTER_GATEWAY,
    EXTRA_ROUTE_SET,
    FLOATING_IP,
    FLOATING_IP_ASSOCIATION,
    FLOATING_IP_PORT_FORWARD,
    SECURITY_GROUP,
    SECURITY_GROUP_RULE,
    TRUNK,
    NETWORK_QUOTA,
)
