"""Types of networking between networks: routers, their interfaces, floating IPs and their associations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing, payload
from homeostat.resources.constraints import CIDR, DNS_DOMAIN, IP_ADDRESS, RELATIVE_DNS_NAME
from homeostat.resources.families.neutron import SPECS, NetworkingType, link, owner, tags, value_specs
from homeostat.resources.graph import Graph, entries, mentioned, of_type, pick, same, subnets_of
from homeostat.resources.rules import at_most_one, conflict, exactly_one, is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Schema,
    ValueType,
    between,
    boolean,
    integer,
    listing,
    mapping,
    one_of,
    text,
)
from homeostat.resources.support import deprecated, hidden, unsupported

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
FORWARDED = ("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")
"""Protocols of port forwarding."""

_GATEWAY: Schema = {
    "network": text("External network.", required=True, update=True),
    "enable_snat": boolean("Translate addresses on the way out.", update=True),
    "external_fixed_ips": listing(
        "Addresses to have there.",
        update=True,
        items=mapping(
            fields={
                "ip_address": text("The address.", constraints=(IP_ADDRESS,)),
                "subnet": link("Subnet to have it on.", "subnet"),
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
        "external_gateway_info": mapping("Its way out.", update=True, same=comparison.gateway, fields=_GATEWAY),
        "value_specs": value_specs(update=True),
        "admin_state_up": boolean("The router is switched on.", default=True, update=True),
        "l3_agent_id": text("Agent that runs it; use l3_agent_ids.", update=True, hidden=True, drift=False),
        "l3_agent_ids": listing("Agents that run it.", update=True, items=text(), same=comparison.unordered),
        "distributed": boolean("Run it on every host."),
        "ha": boolean("Run it on several agents."),
        "availability_zone_hints": listing("Availability zones to prefer.", update=True, drift=False),
        "tags": tags(),
        "tenant_id": owner(),
    }
    attributes = {
        "status": Attribute("Status of the router."),
        "external_gateway_info": Attribute("Its way out.", ValueType.MAP),
        "name": Attribute("Name of the router."),
        "admin_state_up": Attribute("Whether it is switched on."),
        "tenant_id": Attribute("Project that owns it."),
    }
    unsent = {SPECS, "l3_agent_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        at_most_one(values, path, "l3_agent_id", "l3_agent_ids")
        agents = [name for name in ("l3_agent_id", "l3_agent_ids") if is_set(values, name)]
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
        """Return the subnets of its external network, without which the router gets no address there."""
        gateway = properties.get("external_gateway_info")
        return subnets_of(graph, gateway.get("network")) if isinstance(gateway, Mapping) else set()

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        agent = spec.pop("l3_agent_id", None)
        if agent:
            spec["l3_agent_ids"] = [agent]
        gateway = spec.pop("external_gateway_info", None)
        if gateway:
            spec["external_gateway_info"] = payload(gateway, network="network_id", subnet="subnet_id")
        return spec


class RouterInterface(NetworkingType):
    name = "OS::Neutron::RouterInterface"
    kind = "router_interface"
    description = "A router's place on a subnet."
    properties = {
        "router": link("The router.", "router", required=True),
        "router_id": link("The router; use router.", "router", hidden=True),
        "subnet_id": link("The subnet; use subnet.", "subnet", hidden=True),
        "subnet": link("Subnet to be on.", "subnet"),
        "port_id": link("The port; use port.", "port", hidden=True),
        "port": link("Port to use.", "port"),
    }
    renamed = {"router": "router_id", "subnet": "subnet_id", "port": "port_id"}
    deprecated_properties = {"router_id": "router", "subnet_id": "subnet", "port_id": "port"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "subnet", "port")

    def reference(self, thing: Thing) -> Any:
        """`<router>:subnet_id=<id>` or `<router>:port_id=<id>`."""
        if not thing.handle:
            return thing.name
        end = "subnet" if thing.properties["subnet"] else "port"
        wanted = {"router_id": thing.properties["router"], f"{end}_id": thing.properties[end]}
        known = {**wanted, **{name: value for name, value in thing.seen.properties.items() if value}}
        return f"{known['router_id']}:{end}_id={known[f'{end}_id']}"


class FloatingIP(NetworkingType):
    name = "OS::Neutron::FloatingIP"
    kind = "floating_ip"
    description = "An outside address that leads to a port."
    properties = {
        "floating_network_id": link("Network; use floating_network.", "network", hidden=True),
        "floating_network": link("External network to have the address on.", "network", required=True),
        "floating_subnet": link("Subnet to have it on.", "subnet"),
        "value_specs": value_specs(),
        "port_id": link("Port it leads to.", "port", update=True),
        "fixed_ip_address": text("Which address of the port.", update=True, drift=False, constraints=(IP_ADDRESS,)),
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
    deprecated_properties = {"floating_network_id": "floating_network"}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the resources that make its port reachable: routers on the network, interfaces on the subnet."""
        network = pick(properties, "floating_network", "floating_network_id")
        required = _interfaces_reaching(properties.get("port_id"), graph)
        for name, tree in of_type(graph, "OS::Neutron::RouterGateway"):
            if same(pick(tree, "network", "network_id"), network):
                required.add(name)
        for name, tree in of_type(graph, "OS::Neutron::Router"):
            gateway = tree.get("external_gateway_info")
            if isinstance(gateway, Mapping) and same(gateway.get("network"), network):
                required.add(name)
        return required


class FloatingIPAssociation(NetworkingType):
    name = "OS::Neutron::FloatingIPAssociation"
    kind = "floating_ip_association"
    description = "Lets a floating IP lead to a port."
    properties = {
        "floatingip_id": text("The floating IP.", required=True, update=True, same=comparison.reference),
        "port_id": link("Port it leads to.", "port", required=True, update=True),
        "fixed_ip_address": text("Which address of the port.", update=True, drift=False, constraints=(IP_ADDRESS,)),
    }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the router interfaces that make the port reachable."""
        return _interfaces_reaching(properties.get("port_id"), graph)

    def adopted_handle(self, id: str, values: Props) -> str:
        """Return the floating IP for the number by which Heat identifies an association."""
        return str(values["floatingip_id"]) if id.isdecimal() else id

    def reference(self, thing: Thing) -> Any:
        """Its id in this service."""
        return thing.key if thing.handle else thing.name


class RouterGateway(NetworkingType):
    name = "OS::Neutron::RouterGateway"
    kind = "router_gateway"
    description = "A router's way out, apart from the router."
    support = hidden(
        "5.0.0",
        "Use the property external_gateway_info of OS::Neutron::Router.",
        deprecated("2014.1"),
    )
    properties = {
        "router_id": link("The router.", "router", required=True),
        "network_id": link("Network; use network.", "network", hidden=True),
        "network": link("External network; without one the cloud chooses.", "network"),
    }
    renamed = {"network": "network_id"}
    deprecated_properties = {"network_id": "network"}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the interfaces of its router, and the subnets of its network."""
        router = properties.get("router_id")
        required = subnets_of(graph, pick(properties, "network", "network_id"))
        for name, tree in of_type(graph, "OS::Neutron::RouterInterface"):
            if same(pick(tree, "router", "router_id"), router):
                required.add(name)
        return required

    def reference(self, thing: Thing) -> Any:
        """`<router>:<network>`."""
        known = {**thing.properties, **{key: value for key, value in thing.seen.properties.items() if value}}
        return f"{known['router_id']}:{known.get('network_id') or ''}" if thing.handle else thing.name


_ROUTE: Schema = {
    "destination": text("Where it leads.", required=True, constraints=(CIDR,)),
    "nexthop": text("Address to go by.", required=True, constraints=(IP_ADDRESS,)),
}


class ExtraRoute(NetworkingType):
    name = "OS::Neutron::ExtraRoute"
    kind = "extra_route_set"
    description = "A route of a router, apart from the router."
    support = unsupported("Use OS::Neutron::ExtraRouteSet, which changes all routes at once.")
    properties = {
        "router_id": link("The router.", "router", required=True),
        "destination": text("Where it leads.", required=True),
        "nexthop": text("Address to go by.", required=True),
    }
    unsent = {"destination", "nexthop"}

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the interfaces and the gateway of the router, which make the next hop reachable."""
        return _ways_of(properties.get("router_id"), graph)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object, a set with a single route."""
        route = {name: values[name] for name in ("destination", "nexthop")}
        return {"router_id": values["router_id"], "routes": [route]}

    def adopted_handle(self, id: str, values: Props) -> str:
        """Return the handle of `<router>:<destination>:<nexthop>`, Heat's id of a route."""
        router, _, rest = id.partition(":")
        return _set_of(router, [values]) if rest and "=" not in rest else id

    def reference(self, thing: Thing) -> Any:
        """`<router>:<destination>:<nexthop>`."""
        return ":".join(str(thing.properties[name]) for name in self.properties) if thing.handle else thing.name


class ExtraRouteSet(NetworkingType):
    name = "OS::Neutron::ExtraRouteSet"
    kind = "extra_route_set"
    description = "Routes of a router, apart from the router; others keep theirs."
    properties = {
        "router": link("The router.", "router", required=True),
        "routes": listing(
            "The routes.", default=[], update=True, same=comparison.includes, items=mapping(fields=_ROUTE)
        ),
    }
    renamed = {"router": "router_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        routes = values.get("routes")
        known = [route for route in routes if route is not UNKNOWN] if isinstance(routes, list) else []
        for index, route in enumerate(known):
            twice = any(dict(route) == dict(other) for other in known[:index])
            require(not twice, f"The same route is there twice: {dict(route)}", (*path, "routes", index))

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the interfaces and the gateway of the router, which make the next hops reachable."""
        return _ways_of(properties.get("router"), graph)

    def adopted_handle(self, id: str, values: Props) -> str:
        """Return the handle of the routes; in Heat their id is the id of the router."""
        return _set_of(id, values["routes"]) if _UUID.fullmatch(id) else id


class FloatingIPPortForward(NetworkingType):
    name = "OS::Neutron::FloatingIPPortForward"
    kind = "floating_ip_port_forward"
    description = "Lets one port number of a floating IP lead to a port."
    properties = {
        "internal_ip_address": text("Address of the port.", required=True, update=True, constraints=(IP_ADDRESS,)),
        "internal_port_number": integer("Port number there.", update=True, constraints=(between(1, 65535),)),
        "external_port": integer(
            "Port number of the floating IP.", required=True, update=True, constraints=(between(1, 65535),)
        ),
        "internal_port": link("Port that it leads to.", "port", required=True, update=True),
        "protocol": text("Protocol.", required=True, update=True, any_case=True, constraints=(one_of(*FORWARDED),)),
        "floating_ip": text("The floating IP.", required=True, same=comparison.reference),
    }
    renamed = {
        "internal_port_number": "internal_port",
        "internal_port": "internal_port_id",
        "floating_ip": "floatingip_id",
    }

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the router interfaces that make the port reachable."""
        return _interfaces_reaching(properties.get("internal_port"), graph)


def _set_of(router: str, routes: Sequence[Props]) -> str:
    """Return the handle of a set of routes: the router with the list of the routes."""
    return f"{router}:" + ",".join(f"{route['destination']}={route['nexthop']}" for route in routes)


def _ways_of(router: Any, graph: Graph) -> set[str]:
    """Return the names of a router's interfaces and of its gateway in the template."""
    names = set()
    for name, tree in of_type(graph, "OS::Neutron::RouterInterface", "OS::Neutron::RouterGateway"):
        if same(pick(tree, "router", "router_id"), router):
            names.add(name)
    return names


def _interfaces_reaching(port: Any, graph: Graph) -> set[str]:
    """Return the names of the router interfaces on the subnets where a port (a raw value) has or may get addresses."""
    ports = [graph[name][1] for name in mentioned(port) if graph.get(name, ("",))[0] == "OS::Neutron::Port"]
    names: set[str] = set()
    for tree in ports:
        subnets = [entry.get("subnet", entry.get("subnet_id")) for entry in entries(tree.get("fixed_ips"))]
        near = subnets_of(graph, pick(tree, "network", "network_id"))
        for name, interface in of_type(graph, "OS::Neutron::RouterInterface"):
            subnet = pick(interface, "subnet", "subnet_id")
            if any(same(subnet, other) for other in subnets) or (not any(subnets) and mentioned(subnet) & near):
                names.add(name)
    return names


TYPES: list[type[ResourceType]] = [
    Router,
    RouterInterface,
    RouterGateway,
    FloatingIP,
    FloatingIPAssociation,
    FloatingIPPortForward,
    ExtraRoute,
    ExtraRouteSet,
]
