"""Types of load balancing: load balancers, listeners, pools, members, health monitors."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.constraints import CIDR, IP_ADDRESS
from homeostat.resources.rules import is_set, missing, require
from homeostat.resources.schema import (
    Attribute,
    Property,
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

PROTOCOLS = ("TCP", "HTTP", "HTTPS", "TERMINATED_HTTPS", "PROXY", "UDP")
ALGORITHMS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH")
BY_HTTP = ("expected_codes", "http_method", "url_path")
"""Properties that only health monitors of HTTP have."""
READY = frozenset({"active", "online"})
BUSY = frozenset({"building", "deleting", "pending_create", "pending_update", "pending_delete"})


def link(description: str, kind: str, **options: Any) -> Property:
    """Return a property that refers to another cloud object by name or id; `kind` is its named constraint."""
    return text(description, constraints=(custom(kind),), same=comparison.reference, **options)


class LoadBalancer(ResourceType):
    name = "OS::Octavia::LoadBalancer"
    kind = "load_balancer"
    description = "A load balancer with an address of its own."
    properties = {
        "description": text("Description of the load balancer.", default="", update=True),
        "name": text("Name of the load balancer.", update=True),
        "provider": text("Who provides it."),
        "vip_address": text("Address to have.", constraints=(IP_ADDRESS,)),
        "vip_subnet": link("Subnet to have the address on.", "neutron.subnet", required=True),
        "admin_state_up": boolean("The load balancer is switched on.", default=True, update=True),
        "tenant_id": text("Project that owns it.", constraints=(custom("keystone.project"),)),
        "flavor": link("Flavor.", "octavia.flavor"),
        "availability_zone": text("Availability zone to be in.", constraints=(custom("octavia.availabilityzone"),)),
    }
    attributes = {
        "vip_address": Attribute("Its address."),
        "vip_port_id": Attribute("Port that has the address."),
        "vip_subnet_id": Attribute("Subnet of the address.", field="vip_subnet"),
        "pools": Attribute("Its pools.", ValueType.LIST),
        "flavor_id": Attribute("Flavor.", field="flavor"),
    }


class Listener(ResourceType):
    name = "OS::Octavia::Listener"
    kind = "listener"
    description = "A port on which a load balancer takes connections."
    properties = {
        "protocol_port": integer("The port.", required=True, constraints=(between(1, 65535),)),
        "protocol": text("Protocol spoken on it.", required=True, constraints=(one_of(*PROTOCOLS),)),
        "loadbalancer": link("The load balancer.", "octavia.loadbalancer", required=True),
        "default_pool": link("Pool that gets the connections.", "octavia.pool", update=True),
        "name": text("Name of the listener.", update=True),
        "admin_state_up": boolean("The listener is switched on.", default=True, update=True),
        "description": text("Description of the listener.", default="", update=True),
        "default_tls_container_ref": text("Where its certificate is kept.", update=True),
        "sni_container_refs": listing("Where further certificates are kept.", update=True, same=comparison.unordered),
        "connection_limit": integer(
            "Most connections at once; -1 for any number.",
            default=-1,
            update=True,
            constraints=(between(-1),),
        ),
        "tenant_id": text("Project that owns it."),
        "allowed_cidrs": listing(
            "Networks that may connect.",
            update=True,
            same=comparison.ranges,
            items=text(constraints=(CIDR,)),
        ),
    }
    attributes = {
        "loadbalancers": Attribute("The load balancer it belongs to, in a list.", ValueType.LIST),
        "default_pool_id": Attribute("Pool that gets the connections.", field="default_pool"),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        bare = values.get("protocol") == "TERMINATED_HTTPS" and not is_set(values, "default_tls_container_ref")
        require(not bare, "default_tls_container_ref is needed when protocol is TERMINATED_HTTPS", path)

    def attribute(self, thing: Thing, name: str) -> Any:
        if name == "loadbalancers":
            return _listed(thing, name, "loadbalancer")
        return super().attribute(thing, name)


class Pool(ResourceType):
    name = "OS::Octavia::Pool"
    kind = "pool"
    description = "Servers that share the connections of a load balancer."
    properties = {
        "admin_state_up": boolean("The pool is switched on.", default=True, update=True),
        "description": text("Description of the pool.", default="", update=True),
        "session_persistence": mapping(
            "How a client stays with one member.",
            update=True,
            fields={
                "type": text(
                    "What tells clients apart.",
                    required=True,
                    constraints=(one_of("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE"),),
                ),
                "cookie_name": text("Name of the application's cookie."),
            },
        ),
        "name": text("Name of the pool.", update=True),
        "lb_algorithm": text("How members are chosen.", required=True, update=True, constraints=(one_of(*ALGORITHMS),)),
        "listener": link("Listener whose connections it gets.", "octavia.listener"),
        "loadbalancer": link("Load balancer it belongs to.", "octavia.loadbalancer"),
        "protocol": text("Protocol spoken with members.", required=True, constraints=(one_of(*PROTOCOLS),)),
        "tls_enabled": boolean("Speak TLS with members.", default=False, update=True),
    }
    attributes = {
        "healthmonitor_id": Attribute("Its health monitor."),
        "listeners": Attribute("Its listeners."),
        "members": Attribute("Its members.", ValueType.LIST, live=True),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if not (is_set(values, "listener") or is_set(values, "loadbalancer")):
            raise missing(path, "listener", "loadbalancer")
        persistence = values.get("session_persistence")
        if not isinstance(persistence, dict):
            return
        kind, named = persistence.get("type"), is_set(persistence, "cookie_name")
        place = (*path, "session_persistence")
        require(kind != "APP_COOKIE" or named, "cookie_name is needed when type is APP_COOKIE", place)
        require(kind != "SOURCE_IP" or not named, "cookie_name must not be given when type is SOURCE_IP", place)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        persistence = spec.get("session_persistence")
        if persistence:
            spec["session_persistence"] = {k: v for k, v in persistence.items() if v is not None}
        return spec

    def attribute(self, thing: Thing, name: str) -> Any:
        return _listed(thing, name, "listener") if name == "listeners" else super().attribute(thing, name)


class PartType(ResourceType):
    """Base of the types of parts of another object; the handle may be `<parent>/<id>`."""

    def shown_id(self, handle: str) -> str:
        """Return the id without the parent."""
        return handle.rpartition("/")[2]

    def reference(self, thing: Thing) -> Any:
        """Its id."""
        return self.shown_id(thing.handle) or thing.name


class PoolMember(PartType):
    """A member of a pool.

    Its operating status is the health of the server behind it, which is healed on its own; the member stays.
    """

    name = "OS::Octavia::PoolMember"
    kind = "pool_member"
    description = "One server of a pool."
    properties = {
        "pool": link("The pool.", "octavia.pool", required=True),
        "address": text("Address of the server.", required=True, constraints=(IP_ADDRESS,)),
        "protocol_port": integer("Port it listens on.", required=True, constraints=(between(1, 65535),)),
        "monitor_address": text("Address to check instead.", constraints=(IP_ADDRESS,)),
        "monitor_port": integer("Port to check instead.", constraints=(between(1, 65535),)),
        "weight": integer("Its share of the connections.", default=1, update=True, constraints=(between(0, 256),)),
        "admin_state_up": boolean("The member is switched on.", default=True, update=True),
        "subnet": link("Subnet to reach it from.", "neutron.subnet"),
        "tags": listing("Tags.", update=True, same=comparison.includes),
    }


class HealthMonitor(ResourceType):
    name = "OS::Octavia::HealthMonitor"
    kind = "health_monitor"
    description = "Checks which members of a pool are healthy."
    properties = {
        "admin_state_up": boolean("The monitor is switched on.", default=True, update=True),
        "delay": integer("Seconds between checks.", required=True, update=True, constraints=(between(0),)),
        "expected_codes": text("HTTP codes that mean well.", update=True),
        "http_method": text("HTTP method of the check.", update=True, constraints=(one_of(*METHODS),)),
        "max_retries": integer(
            "Checks that must succeed or fail.", required=True, update=True, constraints=(between(1, 10),)
        ),
        "pool": link("The pool.", "octavia.pool", required=True),
        "timeout": integer("Seconds that a check may take.", required=True, update=True, constraints=(between(0),)),
        "type": text(
            "Kind of check.",
            required=True,
            constraints=(one_of("PING", "TCP", "HTTP", "HTTPS", "UDP-CONNECT"),),
        ),
        "url_path": text("Path to request.", update=True),
        "tenant_id": text("Project that owns it."),
    }
    attributes = {"pools": Attribute("The pool it checks, in a list.", ValueType.LIST)}

    def attribute(self, thing: Thing, name: str) -> Any:
        return _listed(thing, name, "pool") if name == "pools" else super().attribute(thing, name)


def _listed(thing: Thing, plural: str, single: str) -> list[Any]:
    """Return the reported list, or else a list of the single item reported."""
    seen = thing.seen.properties
    return seen.get(plural) or ([seen[single]] if seen.get(single) else [])


TYPES: list[type[ResourceType]] = [LoadBalancer, Listener, Pool, PoolMember, HealthMonitor]
