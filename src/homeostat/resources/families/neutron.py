"""Types of networking: networks, subnets, ports, security groups. Base of the other types of networking."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import EMPTY, AdoptionTag, Props, ResourceType, Thing, payload
from homeostat.resources.constraints import (
    CIDR,
    DNS_DOMAIN,
    DNS_NAME,
    IP_ADDRESS,
    IP_OR_CIDR,
    MAC_ADDRESS,
)
from homeostat.resources.graph import Graph, pick, subnets_of
from homeostat.resources.rules import at_most_one, conflict, exactly_one, is_set, maps, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    Schema,
    ValueType,
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


def link(description: str, kind: str, **options: Any) -> Property:
    """Return a property that refers to another object of networking by name or id; `kind` names its constraint."""
    rule = (custom(f"neutron.{kind}"),)
    return text(description, constraints=rule, same=comparison.reference, **options)


def tags() -> Property:
    return listing("Tags.", update=True, items=text(), same=comparison.includes)


def owner(**options: Any) -> Property:
    return text("Project that owns it.", **options)


PORT_SECURITY = boolean("Filter the traffic of its ports by default.", update=True)


SPECS = "value_specs"


def value_specs(**options: Any) -> Property:
    return mapping("Further fields, passed on as they are.", default={}, drift=False, **options)


class NetworkingType(ResourceType):
    """Base of the types of networking."""

    unsent = {SPECS}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec.update(spec.pop(SPECS, None) or {})
        return spec

    def fields_of(self, name: str, values: Props) -> tuple[str, ...]:
        return tuple(values.get(SPECS) or ()) if name == SPECS else super().fields_of(name, values)

    def drift(self, thing: Thing) -> tuple[str, ...]:
        """Return the drifted properties; `value_specs` is included if any of its fields has another value."""
        drifted, wanted = super().drift(thing), thing.properties.get(SPECS)
        if not wanted or not self.properties[SPECS].update:
            return drifted
        seen = thing.seen.properties
        differs = any(
            field in seen and value not in EMPTY and not comparison.equal(value, seen[field])
            for field, value in wanted.items()
        )
        return (*drifted, SPECS) if differs else drifted

    def sent_and_seen(self, thing: Thing, name: str) -> tuple[Any, Any]:
        if name != SPECS:
            return super().sent_and_seen(thing, name)
        wanted, seen = thing.properties.get(SPECS) or {}, thing.seen.properties
        return wanted, {field: seen[field] for field in wanted if field in seen} or None


class Net(NetworkingType):
    name = "OS::Neutron::Net"
    kind = "network"
    description = "A network."
    properties = {
        "name": text("Name of the network.", update=True),
        "value_specs": value_specs(update=True),
        "admin_state_up": boolean("The network is switched on.", default=True, update=True),
        "tenant_id": owner(),
        "shared": boolean("All projects may use it.", default=False, update=True),
        "dhcp_agent_ids": listing("DHCP agents that serve it.", update=True, same=comparison.unordered),
        "port_security_enabled": PORT_SECURITY,
        "qos_policy": link("Quality of service policy.", "qos_policy", update=True),
        "dns_domain": text("DNS domain of its ports.", update=True, constraints=(DNS_DOMAIN,)),
        "availability_zone_hints": listing("Availability zones to prefer."),
        "tags": tags(),
    }
    attributes = {
        "status": Attribute("Status of the network."),
        "name": Attribute("Name of the network."),
        "subnets": Attribute("Ids of its subnets.", ValueType.LIST),
        "admin_state_up": Attribute("Whether it is switched on."),
        "tenant_id": Attribute("Project that owns it."),
        "port_security_enabled": Attribute("Whether traffic is filtered by default.", ValueType.BOOLEAN),
        "mtu": Attribute("Largest packet in bytes.", ValueType.INTEGER),
        "qos_policy_id": Attribute("Quality of service policy."),
        "l2_adjacency": Attribute("Whether its ports share one link.", ValueType.BOOLEAN),
        "segments": Attribute("Its segments.", ValueType.LIST),
    }
    renamed = {"qos_policy": "qos_policy_id"}


class Subnet(NetworkingType):
    name = "OS::Neutron::Subnet"
    kind = "subnet"
    description = "A range of addresses on a network."
    properties = {
        "network_id": link("Network; use network.", "network", hidden=True),
        "network": link("Network it lies on.", "network", required=True),
        "subnetpool": link("Pool to take the range from.", "subnetpool"),
        "prefixlen": integer("Length of the prefix to take from the pool.", constraints=(between(0),)),
        "cidr": text("The range.", constraints=(CIDR,)),
        "value_specs": value_specs(update=True),
        "name": text("Name of the subnet.", update=True),
        "ip_version": integer("Version of IP.", default=4, constraints=(one_of(4, 6),)),
        "dns_nameservers": listing("DNS servers, the first is asked first.", default=[], update=True),
        "gateway_ip": text("Address of the gateway; null or empty for none.", update=True, blank=True),
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
        "tenant_id": owner(),
        "host_routes": listing(
            "Routes that its servers receive.",
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
        "segment": link("Segment it lies on.", "segment", update=True),
        "tags": tags(),
    }
    attributes = {
        "name": Attribute("Name of the subnet."),
        "network_id": Attribute("Network it lies on."),
        "tenant_id": Attribute("Project that owns it."),
        "allocation_pools": Attribute("Ranges of addresses it hands out.", ValueType.LIST),
        "gateway_ip": Attribute("Address of the gateway."),
        "host_routes": Attribute("Routes that its servers receive.", ValueType.LIST),
        "ip_version": Attribute("Version of IP."),
        "cidr": Attribute("The range."),
        "dns_nameservers": Attribute("DNS servers.", ValueType.LIST),
        "enable_dhcp": Attribute("Whether it hands out addresses by DHCP."),
    }
    renamed = {"network": "network_id", "subnetpool": "subnetpool_id", "segment": "segment_id"}
    deprecated_properties = {"network_id": "network"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "cidr", "subnetpool")
        pooled = is_set(values, "subnetpool") or not is_set(values, "prefixlen")
        require(pooled, "prefixlen needs a subnetpool", path)
        modes = [values[name] for name in ("ipv6_ra_mode", "ipv6_address_mode") if is_set(values, name)]
        if modes and UNKNOWN not in modes:
            version = values.get("ip_version", 4)
            require(version in (6, UNKNOWN), "ipv6_ra_mode and ipv6_address_mode need ip_version 6", path)
            require(len(set(modes)) == 1, "ipv6_ra_mode and ipv6_address_mode must be equal", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object; without `gateway_ip` the cloud chooses a gateway, None means no gateway."""
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
        "network_id": link("Network; use network.", "network", hidden=True),
        "network": link("Network it lies on.", "network", required=True),
        "device_id": text("Device that uses it.", default="", update=True, blank=True),
        "device_owner": text("Kind of that device.", default="", update=True, blank=True),
        "fixed_ips": listing(
            "Addresses to have.",
            update=True,
            same=comparison.fixed_ips,
            items=mapping(
                fields={
                    "subnet_id": link("Subnet; use subnet.", "subnet", hidden=True),
                    "subnet": link("Subnet to have an address on.", "subnet"),
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
        "tags": tags(),
        "value_specs": value_specs(update=True),
        "admin_state_up": boolean("The port is switched on.", default=True, update=True),
        # Ironic overwrites the addresses of ports with those of its interfaces: no drift.
        "mac_address": text("MAC address.", update=True, drift=False, constraints=(MAC_ADDRESS,)),
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
        "qos_policy": link("Quality of service policy.", "qos_policy", update=True),
        "propagate_uplink_status": boolean("Pass the uplink's status on to it.", update=True),
        "no_fixed_ips": boolean("It gets no addresses.", default=False, update=True, drift=False),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "device_id": Attribute("Device that uses it."),
        "device_owner": Attribute("Kind of that device."),
        "fixed_ips": Attribute("Its addresses.", ValueType.LIST),
        "mac_address": Attribute("MAC address."),
        "name": Attribute("Name of the port."),
        "network_id": Attribute("Network it lies on."),
        "security_groups": Attribute("Its security groups.", ValueType.LIST),
        "status": Attribute("Status of the port."),
        "tenant_id": Attribute("Project that owns it."),
        "allowed_address_pairs": Attribute("Further addresses that may pass.", ValueType.LIST),
        "subnets": Attribute("Subnets it has addresses on.", ValueType.LIST),
        "port_security_enabled": Attribute("Whether its traffic is filtered.", ValueType.BOOLEAN),
        "qos_policy_id": Attribute("Quality of service policy."),
        "dns_assignment": Attribute("DNS names of its addresses.", ValueType.MAP),
        "network": Attribute("The network it lies on.", ValueType.MAP),
        "propagate_uplink_status": Attribute("Whether it has its uplink's status.", ValueType.BOOLEAN),
    }
    renamed = {"network": "network_id", "qos_policy": "qos_policy_id"}
    unsent = {SPECS, "replacement_policy", "no_fixed_ips"}
    deprecated_properties = {"network_id": "network"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if is_set(values, "fixed_ips") and values.get("no_fixed_ips") is True:
            raise conflict(path, "fixed_ips", "no_fixed_ips")
        for index, address in maps(values, "fixed_ips"):
            if is_set(address, "subnet") and is_set(address, "subnet_id"):
                raise conflict((*path, "fixed_ips", index), "subnet", "subnet_id")

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return every subnet of its network, without which the port would get no address."""
        return subnets_of(graph, pick(properties, "network", "network_id"))

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        spec.pop("replacement_policy", None)
        addresses = spec.pop("fixed_ips", None)
        if spec.pop("no_fixed_ips", False):
            spec["fixed_ips"] = []
        elif addresses:
            spec["fixed_ips"] = payload(addresses, subnet="subnet_id")
        if spec.get("allowed_address_pairs"):
            spec["allowed_address_pairs"] = payload(spec["allowed_address_pairs"])
        return spec


_TRAFFIC: Schema = {
    "direction": text(
        "Way of the traffic.", default="ingress", any_case=True, constraints=(one_of("ingress", "egress"),)
    ),
    "ethertype": text("Kind of packets.", default="IPv4", any_case=True, constraints=(one_of("IPv4", "IPv6"),)),
    "port_range_min": integer("First port.", constraints=(between(0, 65535),)),
    "port_range_max": integer("Last port.", constraints=(between(0, 65535),)),
}
"""Properties of security group rules about the traffic, besides its protocol and the remote side."""


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
                    **_TRAFFIC,
                    "protocol": text("Protocol; none means any.", any_case=True, constraints=(one_of(*PROTOCOLS),)),
                    "remote_mode": text(
                        "Whether the other side is a network or a group.",
                        default="remote_ip_prefix",
                        constraints=(one_of("remote_ip_prefix", "remote_group_id"),),
                    ),
                    "remote_group_id": link("The group; none means this one.", "security_group"),
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
        """Return the desired object.

        In a rule, `remote_group_id` "" means the group itself. Without egress rules the cloud uses its own.
        """
        spec = super().spec(values, physical_name)
        spec["rules"] = [_rule(item) for item in values.get("rules") or []]
        return spec

    def once_tagged(self, seen: Props, of: Sequence[str]) -> Props:
        """Leave out the rules that the tags of the group name: these are separate resources."""
        return {**seen, "rules": [rule for rule in seen.get("rules") or () if rule.get("id") not in of]}


def _rule(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule with only the remote side that its mode selects."""
    mode = item.get("remote_mode") or "remote_ip_prefix"
    other_side = ("remote_mode", "remote_group_id", "remote_ip_prefix")
    rule: dict[str, Any] = payload({name: value for name, value in item.items() if name not in other_side})
    if mode == "remote_group_id" or item.get(mode):
        rule[mode] = item.get(mode) or ""
    return rule


class SecurityGroupRule(NetworkingType):
    name = "OS::Neutron::SecurityGroupRule"
    kind = "security_group_rule"
    description = "One rule of a security group, apart from the rules that the group itself names."
    properties = {
        "security_group": link("Group that it belongs to.", "security_group", required=True),
        "description": text("Description of the rule."),
        **_TRAFFIC,
        "protocol": text("Protocol of the traffic.", default="tcp", any_case=True, constraints=(one_of(*PROTOCOLS),)),
        "remote_group": link("Group of the other side.", "security_group"),
        "remote_ip_prefix": text("Network of the other side; none means any.", constraints=(CIDR,)),
    }
    renamed = {"security_group": "security_group_id", "remote_group": "remote_group_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        at_most_one(values, path, "remote_group", "remote_ip_prefix")
        low, high = values.get("port_range_min"), values.get("port_range_max")
        if values.get("protocol", "tcp") in ("tcp", "udp") and UNKNOWN not in (low, high):
            together = (low is None) == (high is None) and (low is None or low <= high)
            require(together, "port_range_min and port_range_max are set together, the smaller one first", path)

    def adoption(self, data: Props) -> dict[str, Any] | None:
        """Return no arguments: adopting tags the rule's group, to tell the rule from the group's own rules."""
        return {}

    def adoption_tags(self, thing: Thing, arguments: Props) -> list[AdoptionTag]:
        group = thing.seen.properties.get("security_group_id") or thing.properties["security_group"]
        return [AdoptionTag("security_group", str(group), thing.handle)]


TYPES: list[type[ResourceType]] = [Net, Subnet, Port, SecurityGroup, SecurityGroupRule]
