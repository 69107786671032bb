"""Retired types of load balancing, version 1 of Neutron LBaaS, and the load balancer of AWS, implemented by Octavia.

An object of these services corresponds to several objects of Octavia, so most types are nested stacks (see
`resources.composite`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.composite import ID, Composed, part, ref
from homeostat.resources.constraints import IP_ADDRESS
from homeostat.resources.families import octavia
from homeostat.resources.families.neutron import link
from homeostat.resources.families.octavia import METHODS
from homeostat.resources.rules import exactly_one, is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
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
from homeostat.resources.support import Support, deprecated, hidden

PROTOCOLS = ("TCP", "HTTP", "HTTPS")
POOLS = "(pools)"
"""Internal attribute of load balancers in front of groups, `[{listener, pool, port}]`: the port of the listener, the
pool behind it, and the port of the members. None while a pool is unknown."""


def retired(instead: str) -> Support:
    return hidden("9.0.0", instead, deprecated("7.0.0", instead))


def _up(description: str) -> Property:
    return boolean(description, default=True, update=True)


class HealthMonitor(ResourceType):
    """Settings of a health monitor, which in LBaaS belonged to no pool; each pool with them gets a monitor."""

    name = "OS::Neutron::HealthMonitor"
    description = "How the members of pools are checked."
    support = retired("Use OS::Octavia::HealthMonitor instead.")
    properties = {
        "delay": integer("Seconds between checks.", required=True, update=True),
        "type": text("Kind of check.", required=True, constraints=(one_of("PING", "TCP", "HTTP", "HTTPS"),)),
        "max_retries": integer("Checks that must succeed or fail.", required=True, update=True),
        "timeout": integer("Seconds that a check may take.", required=True, update=True),
        "admin_state_up": _up("The monitor is switched on."),
        "http_method": text("HTTP method of the check.", update=True, constraints=(one_of(*METHODS),)),
        "expected_codes": text("HTTP codes that mean well.", update=True),
        "url_path": text("Path to request.", update=True),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "delay": Attribute("Seconds between checks."),
        "expected_codes": Attribute("HTTP codes that mean well.", ValueType.LIST),
        "http_method": Attribute("HTTP method of the check."),
        "max_retries": Attribute("Checks that must succeed or fail."),
        "timeout": Attribute("Seconds that a check may take."),
        "type": Attribute("Kind of check."),
        "url_path": Attribute("Path that is requested."),
        "tenant_id": Attribute("Project that owns it."),
    }

    def reference(self, thing: Thing) -> Any:
        """Its settings as JSON text, which pools read."""
        wanted = {name: value for name, value in thing.properties.items() if value not in (None, "")}
        return json.dumps(wanted, sort_keys=True) if thing.handle else thing.name

    def attribute(self, thing: Thing, name: str) -> Any:
        value = thing.properties.get(name)
        return str(value).split(",") if name == "expected_codes" and value else value


def monitor(reference: str, pool: str) -> dict[str, Any] | None:
    """Return an Octavia monitor with the settings in a reference of `HealthMonitor`; None for any other text."""
    try:
        settings = json.loads(reference)
    except ValueError:
        return None
    if not isinstance(settings, Mapping):
        return None
    by_http = str(settings.get("type")).startswith("HTTP")
    properties = {name: value for name, value in settings.items() if by_http or name not in octavia.BY_HTTP}
    return part("OS::Octavia::HealthMonitor", **{**properties, "pool": ref(pool)})


class Pool(Composed):
    """A load balancer with a listener and a pool; its reference is the id of the pool."""

    name = "OS::Neutron::Pool"
    description = "Servers that share connections, and the address in front of them."
    support = retired("Use OS::Octavia::LoadBalancer, Listener and Pool instead.")
    properties = {
        "protocol": text("Protocol of the connections.", required=True, constraints=(one_of(*PROTOCOLS),)),
        "subnet_id": link("Subnet; use subnet.", "subnet", hidden=True),
        "subnet": link("Subnet of the members.", "subnet", required=True),
        "lb_method": text(
            "How members are chosen.", required=True, update=True, constraints=(one_of(*octavia.ALGORITHMS[:3]),)
        ),
        "name": text("Name of the pool."),
        "description": text("Description of the pool.", update=True),
        "admin_state_up": _up("The pool is switched on."),
        "vip": mapping(
            "Address in front of the members.",
            required=True,
            fields={
                "name": text("Name of the address."),
                "description": text("Description of the address."),
                "subnet": link("Subnet to have the address on.", "subnet"),
                "address": text("The address.", constraints=(IP_ADDRESS,)),
                "connection_limit": integer("Most connections at once; -1 for any number."),
                "protocol_port": integer("Port that takes connections.", required=True),
                "session_persistence": mapping(
                    "How a client stays with one member.",
                    fields={
                        "type": text(
                            "What tells clients apart.",
                            required=True,
                            constraints=(one_of("SOURCE_IP", "HTTP_COOKIE", "APP_COOKIE"),),
                        ),
                        "cookie_name": text("Name of the application's cookie."),
                    },
                ),
                "admin_state_up": boolean("The address is switched on.", default=True),
            },
        ),
        "provider": text("Who provides it."),
        "monitors": listing("Health monitors; one at most.", default=[], update=True),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "name": Attribute("Name of the pool."),
        "protocol": Attribute("Protocol of the connections."),
        "subnet_id": Attribute("Subnet of the members."),
        "lb_method": Attribute("How members are chosen."),
        "description": Attribute("Description of the pool."),
        "tenant_id": Attribute("Project that owns it."),
        "vip": Attribute("Address in front of the members.", ValueType.MAP),
        "provider": Attribute("Who provides it."),
    }
    deprecated_properties = {"subnet_id": "subnet"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        monitors = values.get("monitors")
        several = isinstance(monitors, list) and len(monitors) > 1
        require(not several, "a pool has one monitor at most: leave the others out", (*path, "monitors"))
        vip = values.get("vip")
        sticky = vip.get("session_persistence") if isinstance(vip, Mapping) else None
        if isinstance(sticky, Mapping):
            named = sticky.get("type") != "APP_COOKIE" or is_set(sticky, "cookie_name")
            require(named, "cookie_name is needed when type is APP_COOKIE", (*path, "vip", "session_persistence"))

    def parts(self, values: Props) -> dict[str, Any]:
        vip = values["vip"]
        protocol, up = values["protocol"], vip["admin_state_up"]
        sticky = {name: value for name, value in (vip["session_persistence"] or {}).items() if value is not None}
        parts = {
            "balancer": part(
                "OS::Octavia::LoadBalancer",
                name=vip["name"],
                description=vip["description"],
                vip_subnet=vip["subnet"] or values["subnet"],
                vip_address=vip["address"],
                provider=values["provider"],
                admin_state_up=up,
            ),
            "listener": part(
                "OS::Octavia::Listener",
                loadbalancer=ref("balancer"),
                protocol=protocol,
                protocol_port=vip["protocol_port"],
                connection_limit=vip["connection_limit"],
                admin_state_up=up,
            ),
            "pool": part(
                "OS::Octavia::Pool",
                name=values["name"],
                description=values["description"],
                listener=ref("listener"),
                protocol=protocol,
                lb_algorithm=values["lb_method"],
                session_persistence=sticky or None,
                admin_state_up=values["admin_state_up"],
            ),
        }
        checks = [check for reference in values["monitors"] if (check := monitor(str(reference), "pool")) is not None]
        return {**parts, "monitor": checks[0]} if checks else parts

    def outputs(self, values: Props) -> dict[str, Any]:
        address = {"get_attr": ["balancer", "vip_address"]}
        vip = {"id": ref("balancer"), "address": address, "port_id": {"get_attr": ["balancer", "vip_port_id"]}}
        return {ID: ref("pool"), "vip": {**vip, "protocol_port": values["vip"]["protocol_port"]}}

    def attribute(self, thing: Thing, name: str) -> Any:
        if name == "vip":
            return super().attribute(thing, name)
        return thing.properties.get("subnet" if name == "subnet_id" else name)


class PoolMember(ResourceType):
    """A member of a pool; generated templates give `server` in place of the address."""

    name = "OS::Neutron::PoolMember"
    kind = "pool_member"
    description = "One server of a pool."
    support = retired("Use OS::Octavia::PoolMember instead.")
    properties = {
        "pool_id": text("The pool.", required=True),
        "address": text("Address of the server.", constraints=(IP_ADDRESS,)),
        "protocol_port": integer("Port it listens on.", required=True, constraints=(between(0, 65535),)),
        "weight": integer("Its share of the connections.", update=True, constraints=(between(0, 256),)),
        "admin_state_up": _up("The member is switched on."),
        "server": text("The server, where its address is not known.", hidden=True),
    }
    attributes = {
        "admin_state_up": Attribute("Whether it is switched on."),
        "tenant_id": Attribute("Project that owns it."),
        "weight": Attribute("Its share of the connections."),
        "address": Attribute("Address of the server."),
        "pool_id": Attribute("The pool.", field="pool"),
        "protocol_port": Attribute("Port it listens on."),
    }
    renamed = {"pool_id": "pool"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        exactly_one(values, path, "address", "server")


def members(servers: Sequence[Any] | None, pool: Any, port: int, prefix: str = "member") -> dict[str, Any]:
    """Return a member for each server, named after the server: removing a server leaves all other members alone."""
    return {
        f"{prefix}-{server}": part("OS::Neutron::PoolMember", pool_id=pool, protocol_port=port, server=str(server))
        for server in servers or ()
    }


class LoadBalancer(Composed):
    name = "OS::Neutron::LoadBalancer"
    description = "Servers of a pool that all listen on one port."
    support = retired("Use an OS::Octavia::PoolMember for each server instead.")
    properties = {
        "pool_id": text("The pool.", required=True, update=True, constraints=(custom("neutron.lbaas.pool"),)),
        "protocol_port": integer("Port they listen on.", required=True, update=True, constraints=(between(0, 65535),)),
        "members": listing("The servers.", update=True),
    }

    def parts(self, values: Props) -> dict[str, Any]:
        return members(values["members"], values["pool_id"], values["protocol_port"])

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        if name != POOLS:
            return super().resolve(thing, name, path)
        pool, port = thing.properties["pool_id"], thing.properties["protocol_port"]
        return [{"listener": port, "pool": pool, "port": port}]


class ElasticLoadBalancer(Composed):
    """A load balancer of Octavia; the cloud chooses the subnet of its address."""

    name = "AWS::ElasticLoadBalancing::LoadBalancer"
    description = "A load balancer in front of servers."
    properties = {
        "AvailabilityZones": listing("Accepted for old templates.", required=True),
        "HealthCheck": mapping(
            "How servers are checked.",
            fields={
                "HealthyThreshold": integer("Checks that must succeed.", required=True),
                "Interval": integer("Seconds between checks.", required=True),
                "Target": text("What is requested, such as HTTP:80/path or TCP:80.", required=True),
                "Timeout": integer("Seconds that a check may take.", required=True),
                "UnhealthyThreshold": integer("Checks that must fail.", required=True),
            },
        ),
        "Instances": listing("The servers.", update=True),
        "Listeners": listing(
            "Ports that take connections.",
            required=True,
            items=mapping(
                fields={
                    "InstancePort": integer("Port that servers listen on.", required=True),
                    "LoadBalancerPort": integer("Port that takes connections.", required=True),
                    "Protocol": text("Protocol.", required=True, constraints=(one_of("TCP", "HTTP"),)),
                    "SSLCertificateId": text("Certificate.", implemented=False),
                    "PolicyNames": listing("Policies.", implemented=False),
                }
            ),
        ),
        "AppCookieStickinessPolicy": text("How clients stay by a cookie of theirs.", implemented=False),
        "LBCookieStickinessPolicy": text("How clients stay by a cookie of the balancer.", implemented=False),
        "SecurityGroups": listing("Security groups of the balancer; no cloud here has them.", update=True),
        "Subnets": listing("Subnets of the balancer.", implemented=False),
    }
    attributes = {
        "CanonicalHostedZoneName": Attribute("Its address."),
        "CanonicalHostedZoneNameID": Attribute("Empty: there is no such zone."),
        "DNSName": Attribute("Its address."),
        "SourceSecurityGroup.GroupName": Attribute("Empty: there is no such group."),
        "SourceSecurityGroup.OwnerAlias": Attribute("Empty: there is no such group."),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        grouped = is_set(values, "SecurityGroups")
        require(
            not grouped,
            "security groups of a balancer are not supported: leave them out",
            (*path, "SecurityGroups"),
        )
        check = values.get("HealthCheck")
        target = check.get("Target") if isinstance(check, Mapping) else None
        known = target in (None, UNKNOWN) or str(target).partition(":")[0] in PROTOCOLS
        require(known, "Target begins with TCP:, HTTP: or HTTPS:", (*path, "HealthCheck", "Target"))

    def parts(self, values: Props) -> dict[str, Any]:
        parts = {"balancer": part("OS::Octavia::LoadBalancer", vip_subnet="")}
        for listener in values["Listeners"]:
            parts |= self._listener(values, listener)
        return parts

    def _listener(self, values: Props, entry: Props) -> dict[str, Any]:
        port, protocol = entry["LoadBalancerPort"], entry["Protocol"]
        listener, pool = f"listener-{port}", f"pool-{port}"
        parts = {
            listener: part(
                "OS::Octavia::Listener", loadbalancer=ref("balancer"), protocol=protocol, protocol_port=port
            ),
            pool: part("OS::Octavia::Pool", listener=ref(listener), protocol=protocol, lb_algorithm="ROUND_ROBIN"),
            **members(values["Instances"], ref(pool), entry["InstancePort"], f"member-{port}"),
        }
        if values["HealthCheck"]:
            parts[f"monitor-{port}"] = _check(values["HealthCheck"], pool)
        return parts

    def resolve(self, thing: Thing, name: str, path: Sequence[str | int] = ()) -> Any:
        if name != POOLS:
            return super().resolve(thing, name, path)
        members = thing.seen.properties.get("members") or {}
        ports = {listener["LoadBalancerPort"]: listener["InstancePort"] for listener in thing.properties["Listeners"]}
        if any(f"pool-{listener}" not in members for listener in ports):
            return None
        return [
            {"listener": listener, "pool": members[f"pool-{listener}"]["reference"], "port": port}
            for listener, port in ports.items()
        ]

    def outputs(self, values: Props) -> dict[str, Any]:
        address = {"get_attr": ["balancer", "vip_address"]}
        return {ID: ref("balancer"), "DNSName": address, "CanonicalHostedZoneName": address}

    def attribute(self, thing: Thing, name: str) -> Any:
        value = super().attribute(thing, name)
        return "" if value is None and name not in ("DNSName", "CanonicalHostedZoneName") else value


def _check(values: Props, pool: str) -> dict[str, Any]:
    """Return a monitor that checks servers on the port of their service, and ignores the port of the target."""
    kind, _, place = str(values["Target"]).partition(":")
    _, slash, path = place.partition("/")
    return part(
        "OS::Octavia::HealthMonitor",
        pool=ref(pool),
        type=kind,
        delay=values["Interval"],
        timeout=values["Timeout"],
        max_retries=min(max(values["UnhealthyThreshold"], 1), 10),
        url_path=f"/{path}" if slash and kind.startswith("HTTP") else None,
    )


TYPES: list[type[ResourceType]] = [HealthMonitor, Pool, PoolMember, LoadBalancer, ElasticLoadBalancer]
