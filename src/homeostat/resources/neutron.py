"""Types of networking: networks, subnets, ports, routers, floating IPs, security groups."""

from collections.abc import Mapping
from typing import Any

from homeostat.model.observed import Remedy
from homeostat.resources import comparison
from homeostat.resources.base import Lifecycle, Props, ResourceType, Thing
from homeostat.resources.constraints import (
    CIDR,
    DNS_DOMAIN,
    DNS_NAME,
    IP_ADDRESS,
    IP_OR_CIDR,
    MAC_ADDRESS,
    RELATIVE_DNS_NAME,
)
from homeostat.resources.graph import Graph, entries, mentioned, of_type, pick, same, subnets_of
from homeostat.resources.rules import at_most_one, conflict, exactly_one, given, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Kind,
    Property,
    Schema,
    between,
    boolean,
    custom,
    integer,
    listing,
    mapping,
    one_of,
    text,
)

PROTOCOLS = (
    *("ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipv6-encap", "ipv6-frag", "ipv6-icmp"),
    *(
        "ipv6-nonxt",
        "ipv6-opts",
        "ipv6-route",
        "ospf",
        "pgm",
        "rsvp",
        "sctp",
        "tcp",
        "udp",
        "udplite",
        "vrrp",
    ),
    *map(str, range(256)),
)
VNIC_TYPES = ("normal", "direct", "macvtap", "direct-physical", "baremetal", "virtio-forwarder", "smart-nic")
IPV6_MODES = ("dhcpv6-stateful", "dhcpv6-stateless", "slaac")


def _link(description: str, kind: str, **options: Any) -> Property:
    """Another thing of networking, by name or id."""
    rule = (custom(f"neutron.{kind}"),)
    return text(description, constraints=rule, same=comparison.reference, **options)


def _tags() -> Property:
    return listing("Tags.", update=True, items=text(), same=comparison.includes)


def _value_specs(**options: Any) -> Property:
    return mapping("Further fields, passed on as they are.", default={}, drift=False, **options)


class NetworkingType(ResourceType):
    """What the types of networking share."""

    lifecycle = Lifecycle(
        ready=frozenset({"active", "down", "n/a"}),
        busy=frozenset({"build", "building", "deleting"}),
        broken={"error": Remedy.RECREATE},
    )

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec.update(spec.pop("value_specs", None) or {})
        return spec


class Net(NetworkingType):
    name = "OS::Neutron::Net"
    kind = "network"
    description = "A network."
    properties = {
        "name": text("Name of the network.", update=True),
        "value_specs": _value_specs(update=True),
        "admin_state_up": boolean("The network is switched on.", default=True, update=True),
        "tenant_id": text("Project that owns it."),
        "shared": boolean("All projects may use it.", default=False, update=True),
        "dhcp_agent_ids": listing("DHCP agents that serve it.", update=True, same=comparison.unordered),
        "port_security_enabled": boolean("Filter traffic by default.", update=True),
        "qos_policy": _link("Quality of service policy.", "qos_policy", update=True),
        "dns_domain": text("DNS domain of its ports.", update=True, constraints=(DNS_DOMAIN,)),
        "availability_zone_hints": listing("Availability zones to prefer."),
        "tags": _tags(),
    }
    attributes = {
        "status": Attribute("Status of the network."),
        "name": Attribute("Name of the network."),
        "subnets": Attribute("Ids of its subnets.", Kind.LIST),
        "admin_state_up": Attribute("Whether it is switched on."),
        "tenant_id": Attribute("Project that owns it."),
        "port_security_enabled": Attribute("Whether traffic is filtered by default.", Kind.BOOLEAN),
        "mtu": Attribute("Largest packet in bytes.", Kind.INTEGER),
        "qos_policy_id": Attribute("Quality of service policy."),
        "l2_adjacency": Attribute("Whether its ports share one link.", Kind.BOOLEAN),
        "segments": Attribute("Its segments.", Kind.LIST),
    }
    renamed = {"qos_policy": "qos_policy_id"}


class Subnet(NetworkingType):
    name = "OS::Neutron::Subnet"
    kind = "subnet"
    description = "A range of addresses on a network."
    properties = {
        "network_id": _link("Network; use network.", "network", hidden=True),
        "network": _link("Network it lies on.", "network", required=True),
        "subnetpool": _link("Pool to take the range from.", "subnetpool"),
        "prefixlen": integer("Length of the prefix to take from the pool.", constraints=(between(0),)),
        "cidr": text("The range.", constraints=(CIDR,)),
        "value_specs": _value_specs(update=True),
        "name": text("Name of the subnet.", update=True),
        "ip_version": integer("Version of IP.", default=4, constraints=(one_of(4, 6),)),
        "dns_nameservers": listing("DNS servers.", default=[], update=True, same=comparison.unordered),
        "gateway_ip": text("Address of the gateway; null or empty for none.", update=True),
        "enable_dhcp": boolean("Hand out addresses by DHCP.", default=True, update=True),
        "allocation_pools": listing(
            "Ranges of addresses to hand out.",
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "start": text("First address.", required=True, constraints=(IP_ADDRESS,)),
                    "end": text("Last address.", required=True, constraints=(IP_ADDRESS,)),
                }
            ),
        ),
        "tenant_id": text("Project that owns it."),
        "host_routes": listing(
            "Routes that its servers are told of.",
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "destination": text("Where it leads.", required=True, constraints=(CIDR,)),
                    "nexthop": text("Address to go by.", required=True, constraints=(IP_ADDRESS,)),
                }
            ),
        ),
        "ipv6_ra_mode": text("How routers are announced.", constraints=(one_of(*IPV6_MODES),)),
        "ipv6_address_mode": text("How servers get addresses.", constraints=(one_of(*IPV6_MODES),)),
        "segment": _link("Segment it lies on.", "segment", update=True),
        "tags": _tags(),
    }
    attributes = {
        "name": Attribute("Name of the subnet."),
        "network_id": Attribute("Network it lies on."),
        "tenant_id": Attribute("Project that owns it."),
        "allocation_pools": Attribute("Ranges of addresses it hands out.", Kind.LIST),
        "gateway_ip": Attribute("Address of the gateway."),
        "host_routes": Attribute("Routes that its servers are told of.", Kind.LIST),
        "ip_version": Attribute("Version of IP."),
        "cidr": Attribute("The range."),
        "dns_nameservers": Attribute("DNS servers.", Kind.LIST),
        "enable_dhcp": Attribute("Whether it hands out addresses by DHCP."),
    }
    renamed = {"network": "network_id", "subnetpool": "subnetpool_id", "segment": "segment_id"}
    twins = {"network_id": "network"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "cidr", "subnetpool")
        pooled = given(values, "subnetpool") or not given(values, "prefixlen")
        require(pooled, "prefixlen needs a subnetpool", path)
        modes = [values[name] for name in ("ipv6_ra_mode", "ipv6_address_mode") if given(values, name)]
        if modes and UNKNOWN not in modes:
            version = values.get("ip_version", 4)
            require(version in (6, UNKNOWN), "ipv6_ra_mode and ipv6_address_mode need ip_version 6", path)
            require(len(set(modes)) == 1, "ipv6_ra_mode and ipv6_address_mode must be equal", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """gateway_ip: absent — the cloud chooses; None — there is none."""
        spec = super().spec(values, physical_name)
        if spec.get("gateway_ip") == "":
            spec["gateway_ip"] = None
        return spec


class Port(NetworkingType):
    name = "OS::Neutron::Port"
    kind = "port"
    description = "A place on a network for one server or other device."
    properties = {
        "name": text("Name of the port.", update=True),
        "network_id": _link("Network; use network.", "network", hidden=True),
        "network": _link("Network it lies on.", "network", required=True),
        "device_id": text("Device that uses it.", default="", update=True),
        "device_owner": text("Kind of that device.", default="", update=True),
        "fixed_ips": listing(
            "Addresses to have.",
            update=True,
            same=comparison.fixed_ips,
            items=mapping(
                fields={
                    "subnet": _link("Subnet to have an address on.", "subnet"),
                    "ip_address": text("The address.", constraints=(IP_ADDRESS,)),
                }
            ),
        ),
        "security_groups": listing("Security groups.", update=True, same=comparison.references),
        "replacement_policy": text(
            "Accepted for old templates.",
            default="AUTO",
            update=True,
            hidden=True,
            drift=False,
            constraints=(one_of("REPLACE_ALWAYS", "AUTO"),),
        ),
        "dns_name": text("DNS name.", update=True, constraints=(DNS_NAME,)),
        "tags": _tags(),
        "value_specs": _value_specs(update=True),
        "admin_state_up": boolean("The port is switched on.", default=True, update=True),
        "mac_address": text("MAC address.", constraints=(MAC_ADDRESS,)),
        "allowed_address_pairs": listing(
            "Further addresses that may pass.",
            update=True,
            same=comparison.unordered,
            items=mapping(
                fields={
                    "mac_address": text("MAC address.", constraints=(MAC_ADDRESS,)),
                    "ip_address": text("Address or network.", required=True, constraints=(IP_OR_CIDR,)),
                }
            ),
        ),
        "binding:vnic_type": text(
            "Kind of network card.", default="normal", update=True, constraints=(one_of(*VNIC_TYPES),)
        ),
        "port_security_enabled": boolean("Filter its traffic.", update=True),
        "qos_policy": _link("Quality of service policy.", "qos_policy", update=True),
        "propagate_uplink_status": boolean("Pass the uplink's status on to it.", update=True),
        "no_fixed_ips": boolean("It gets no addresses.", default=False, update=True, drift=False),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "device_id": Attribute("Device that uses it."),
        "device_owner": Attribute("Kind of that device."),
        "fixed_ips": Attribute("Its addresses.", Kind.LIST),
        "mac_address": Attribute("MAC address."),
        "name": Attribute("Name of the port."),
        "network_id": Attribute("Network it lies on."),
        "security_groups": Attribute("Its security groups.", Kind.LIST),
        "status": Attribute("Status of the port."),
        "tenant_id": Attribute("Project that owns it."),
        "allowed_address_pairs": Attribute("Further addresses that may pass.", Kind.LIST),
        "subnets": Attribute("Subnets it has addresses on.", Kind.LIST),
        "port_security_enabled": Attribute("Whether its traffic is filtered.", Kind.BOOLEAN),
        "qos_policy_id": Attribute("Quality of service policy."),
        "dns_assignment": Attribute("DNS names of its addresses.", Kind.MAP),
        "network": Attribute("The network it lies on.", Kind.MAP),
        "propagate_uplink_status": Attribute("Whether it has its uplink's status.", Kind.BOOLEAN),
    }
    renamed = {"network": "network_id", "qos_policy": "qos_policy_id"}
    twins = {"network_id": "network"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if given(values, "fixed_ips") and values.get("no_fixed_ips") is True:
            raise conflict(path, "fixed_ips", "no_fixed_ips")

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Every subnet of its network: without one it would get no address."""
        return subnets_of(graph, pick(properties, "network", "network_id"))

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec.pop("replacement_policy", None)
        addresses = spec.pop("fixed_ips", None)
        if spec.pop("no_fixed_ips", False):
            spec["fixed_ips"] = []
        elif addresses:
            spec["fixed_ips"] = [_renamed(item, subnet="subnet_id") for item in addresses]
        if spec.get("allowed_address_pairs"):
            spec["allowed_address_pairs"] = [_renamed(item) for item in spec["allowed_address_pairs"]]
        return spec


def _renamed(item: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """The item under other names, without what is null or empty."""
    return {names.get(key, key): value for key, value in item.items() if value not in (None, "")}


_GATEWAY: Schema = {
    "network": text("External network.", required=True, update=True),
    "enable_snat": boolean("Translate addresses on the way out.", update=True),
    "external_fixed_ips": listing(
        "Addresses to have there.",
        update=True,
        items=mapping(
            fields={
                "ip_address": text("The address.", constraints=(IP_ADDRESS,)),
                "subnet": _link("Subnet to have it on.", "subnet"),
            }
        ),
    ),
}


class Router(NetworkingType):
    name = "OS::Neutron::Router"
    kind = "router"
    description = "A router between networks."
    properties = {
        "name": text("Name of the router.", update=True),
        "external_gateway_info": mapping(
            "Its way out.", update=True, same=comparison.gateway, fields=_GATEWAY
        ),
        "value_specs": _value_specs(update=True),
        "admin_state_up": boolean("The router is switched on.", default=True, update=True),
        "l3_agent_id": text("Agent that runs it; use l3_agent_ids.", update=True, hidden=True, drift=False),
        "l3_agent_ids": listing("Agents that run it.", update=True, items=text(), same=comparison.unordered),
        "distributed": boolean("Run it on every host."),
        "ha": boolean("Run it on several agents."),
        "availability_zone_hints": listing("Availability zones to prefer.", update=True, drift=False),
        "tags": _tags(),
        "tenant_id": text("Project that owns it."),
    }
    attributes = {
        "status": Attribute("Status of the router."),
        "external_gateway_info": Attribute("Its way out.", Kind.MAP),
        "name": Attribute("Name of the router."),
        "admin_state_up": Attribute("Whether it is switched on."),
        "tenant_id": Attribute("Project that owns it."),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        at_most_one(values, path, "l3_agent_id", "l3_agent_ids")
        agents = [name for name in ("l3_agent_id", "l3_agent_ids") if given(values, name)]
        if values.get("distributed") is True:
            others = [*(["ha"] if values.get("ha") is True else []), *agents]
            if others:
                raise conflict(path, "distributed", *others)
        listed = values.get("l3_agent_ids")
        several = isinstance(listed, list) and len(listed) > 1
        require(
            not several or values.get("ha") in (True, UNKNOWN),
            "A router on several agents must be highly available: set ha, or give one agent",
            path,
        )

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Subnets of its external network: without one it gets no address there."""
        gateway = properties.get("external_gateway_info")
        return subnets_of(graph, gateway.get("network")) if isinstance(gateway, Mapping) else set()

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        agent = spec.pop("l3_agent_id", None)
        if agent:
            spec["l3_agent_ids"] = [agent]
        gateway = spec.pop("external_gateway_info", None)
        if gateway:
            said = _renamed(gateway, network="network_id")
            if said.get("external_fixed_ips"):
                addresses = [_renamed(item, subnet="subnet_id") for item in said["external_fixed_ips"]]
                said["external_fixed_ips"] = addresses
            spec["external_gateway_info"] = said
        return spec


class RouterInterface(NetworkingType):
    name = "OS::Neutron::RouterInterface"
    kind = "router_interface"
    description = "A router's place on a subnet."
    properties = {
        "router": _link("The router.", "router", required=True),
        "router_id": _link("The router; use router.", "router", hidden=True),
        "subnet_id": _link("The subnet; use subnet.", "subnet", hidden=True),
        "subnet": _link("Subnet to be on.", "subnet"),
        "port_id": _link("The port; use port.", "port", hidden=True),
        "port": _link("Port to use.", "port"),
    }
    renamed = {"router": "router_id", "subnet": "subnet_id", "port": "port_id"}
    twins = {"router_id": "router", "subnet_id": "subnet", "port_id": "port"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "subnet", "port")

    def reference(self, thing: Thing) -> Any:
        """`<router>:subnet_id=<id>` or `<router>:port_id=<id>`."""
        if not thing.handle:
            return thing.name
        end = "subnet" if thing.properties["subnet"] else "port"
        wanted = {"router_id": thing.properties["router"], f"{end}_id": thing.properties[end]}
        said = {**wanted, **{name: value for name, value in thing.seen.properties.items() if value}}
        return f"{said['router_id']}:{end}_id={said[f'{end}_id']}"


class FloatingIP(NetworkingType):
    name = "OS::Neutron::FloatingIP"
    kind = "floating_ip"
    description = "An outside address that leads to a port."
    properties = {
        "floating_network_id": _link("Network; use floating_network.", "network", hidden=True),
        "floating_network": _link("External network to have the address on.", "network", required=True),
        "floating_subnet": _link("Subnet to have it on.", "subnet"),
        "value_specs": _value_specs(),
        "port_id": _link("Port it leads to.", "port", update=True),
        "fixed_ip_address": text(
            "Which address of the port.", update=True, drift=False, constraints=(IP_ADDRESS,)
        ),
        "floating_ip_address": text("The outside address.", constraints=(IP_ADDRESS,)),
        "dns_name": text("DNS name.", update=True, constraints=(RELATIVE_DNS_NAME,)),
        "dns_domain": text("DNS domain.", update=True, constraints=(DNS_DOMAIN,)),
    }
    attributes = {
        "router_id": Attribute("Router it goes by."),
        "tenant_id": Attribute("Project that owns it."),
        "floating_network_id": Attribute("Network of the outside address."),
        "fixed_ip_address": Attribute("Address it leads to.", live=True),
        "floating_ip_address": Attribute("The outside address."),
        "port_id": Attribute("Port it leads to.", live=True),
    }
    renamed = {"floating_network": "floating_network_id", "floating_subnet": "subnet_id"}
    twins = {"floating_network_id": "floating_network"}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """What makes its port reachable: routers to the same outside, and their interfaces on the port's subnet."""
        network = pick(properties, "floating_network", "floating_network_id")
        found = _interfaces_reaching(properties.get("port_id"), graph)
        for name, tree in of_type(graph, "OS::Neutron::Router"):
            gateway = tree.get("external_gateway_info")
            if isinstance(gateway, Mapping) and same(gateway.get("network"), network):
                found.add(name)
        return found


class FloatingIPAssociation(NetworkingType):
    name = "OS::Neutron::FloatingIPAssociation"
    kind = "floating_ip_association"
    description = "Lets a floating IP lead to a port."
    properties = {
        "floatingip_id": text("The floating IP.", required=True, update=True, same=comparison.reference),
        "port_id": _link("Port it leads to.", "port", required=True, update=True),
        "fixed_ip_address": text(
            "Which address of the port.", update=True, drift=False, constraints=(IP_ADDRESS,)
        ),
    }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """The router interfaces that make the port reachable."""
        return _interfaces_reaching(properties.get("port_id"), graph)

    def reference(self, thing: Thing) -> Any:
        return thing.key if thing.handle else thing.name


def _interfaces_reaching(port: Any, graph: Graph) -> set[str]:
    """Names of the router interfaces on the subnets where a port (a raw value) has, or may get, its addresses."""
    ports = [graph[name][1] for name in mentioned(port) if graph.get(name, ("",))[0] == "OS::Neutron::Port"]
    found: set[str] = set()
    for tree in ports:
        subnets = [entry.get("subnet", entry.get("subnet_id")) for entry in entries(tree.get("fixed_ips"))]
        near = subnets_of(graph, pick(tree, "network", "network_id"))
        for name, interface in of_type(graph, "OS::Neutron::RouterInterface"):
            subnet = pick(interface, "subnet", "subnet_id")
            if any(same(subnet, other) for other in subnets) or (
                not any(subnets) and mentioned(subnet) & near
            ):
                found.add(name)
    return found


class SecurityGroup(NetworkingType):
    name = "OS::Neutron::SecurityGroup"
    kind = "security_group"
    description = "Rules for the traffic that may pass ports."
    properties = {
        "name": text("Name of the group.", update=True),
        "description": text("Description of the group.", update=True),
        "rules": listing(
            "What may pass.",
            default=[],
            update=True,
            same=comparison.rules,
            items=mapping(
                fields={
                    "direction": text(
                        "Way of the traffic.", default="ingress", constraints=(one_of("ingress", "egress"),)
                    ),
                    "ethertype": text(
                        "Kind of packets.", default="IPv4", constraints=(one_of("IPv4", "IPv6"),)
                    ),
                    "port_range_min": integer("First port.", constraints=(between(0, 65535),)),
                    "port_range_max": integer("Last port.", constraints=(between(0, 65535),)),
                    "protocol": text("Protocol; none means any.", constraints=(one_of(*PROTOCOLS),)),
                    "remote_mode": text(
                        "Whether the other side is a network or a group.",
                        default="remote_ip_prefix",
                        constraints=(one_of("remote_ip_prefix", "remote_group_id"),),
                    ),
                    "remote_group_id": _link("The group; none means this one.", "security_group"),
                    "remote_ip_prefix": text("The network; none means any.", constraints=(CIDR,)),
                    "description": text("Description of the rule."),
                }
            ),
        ),
        "stateful": boolean("Let answers pass.", update=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        require(
            values.get("name") != "default",
            "A security group cannot be called default, every project has one of that name; choose another",
            (*path, "name"),
        )

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """A rule's remote_group_id "" is the group itself. Egress rules are the cloud's own while none is given."""
        spec = super().spec(values, physical_name)
        spec["rules"] = [_rule(item) for item in values.get("rules") or []]
        return spec


def _rule(item: Mapping[str, Any]) -> dict[str, Any]:
    mode = item.get("remote_mode") or "remote_ip_prefix"
    said = _renamed(
        {k: v for k, v in item.items() if k not in ("remote_mode", "remote_group_id", "remote_ip_prefix")}
    )
    if mode == "remote_group_id":
        return {**said, mode: item.get(mode) or ""}
    return {**said, mode: item[mode]} if item.get(mode) else said


TYPES: list[type[ResourceType]] = [
    Net,
    Subnet,
    Port,
    Router,
    RouterInterface,
    FloatingIP,
    FloatingIPAssociation,
    SecurityGroup,
]
