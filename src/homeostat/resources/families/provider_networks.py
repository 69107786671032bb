"""Types of networking for operators: provider networks, segments, pools of addresses, sharing, trunks."""

from itertools import pairwise
from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props
from homeostat.resources.constraints import DNS_DOMAIN
from homeostat.resources.families.neutron import PORT_SECURITY, NetworkingType, link, owner, tags
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    ValueType,
    between,
    boolean,
    custom,
    integer,
    length,
    listing,
    mapping,
    one_of,
    text,
)

PHYSICAL = ("flat", "vlan")
"""Types of networks that are carried by a named physical network."""
TUNNELS = ("vxlan", "gre", "geneve")
NETWORK_TYPES = ("local", "vlan", *TUNNELS, "flat")
VLAN_MAX = 4094
SHARED_TYPES = ("network", "qos_policy", "security_group", "address_scope", "subnetpool")
EXTERNAL = "access_as_external"


class ProviderNet(NetworkingType):
    name = "OS::Neutron::ProviderNet"
    kind = "network"
    description = "A network that lies on a given physical one."
    properties = {
        "name": text("Name of the network.", update=True),
        "network_type": text(
            "How it is carried.", required=True, update=True, drift=False, constraints=(one_of(*NETWORK_TYPES),)
        ),
        "physical_network": text("Physical network that carries it.", update=True, drift=False),
        "segmentation_id": text("Its number there, such as the VLAN.", update=True, drift=False),
        "admin_state_up": boolean("The network is switched on.", default=True, update=True),
        "shared": boolean("All projects may use it.", default=True, update=True),
        "port_security_enabled": PORT_SECURITY,
        "router_external": boolean("It leads outside.", default=False, update=True),
        "tags": tags(),
        "dns_domain": text("DNS domain of its ports.", update=True, constraints=(DNS_DOMAIN,)),
        "availability_zone_hints": listing("Availability zones to prefer.", update=True, drift=False),
        "tenant_id": owner(),
    }
    attributes = {
        "status": Attribute("Status of the network."),
        "subnets": Attribute("Ids of its subnets.", ValueType.LIST),
        "segments": Attribute("Its segments.", ValueType.LIST),
    }
    renamed = {
        "network_type": "provider:network_type",
        "physical_network": "provider:physical_network",
        "segmentation_id": "provider:segmentation_id",
        "router_external": "router:external",
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        carried = values.get("network_type") in (*PHYSICAL, UNKNOWN)
        require(carried or not is_set(values, "physical_network"), _misplaced(values, "physical_network"), path)


class Segment(NetworkingType):
    name = "OS::Neutron::Segment"
    kind = "segment"
    description = "A part of a network that is one link."
    properties = {
        "network": link("Network it belongs to.", "network", required=True),
        "network_type": text("How it is carried.", required=True, constraints=(one_of(*NETWORK_TYPES),)),
        "physical_network": text("Physical network that carries it."),
        "segmentation_id": integer("Its number there, such as the VLAN.", constraints=(between(1),)),
        "name": text("Name of the segment.", update=True),
        "description": text("Description of the segment.", update=True),
    }
    renamed = {"network": "network_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        kind = values.get("network_type")
        if kind in PHYSICAL:
            require(is_set(values, "physical_network"), f"physical_network is needed for type {kind}", path)
        if kind in TUNNELS:
            require(not is_set(values, "physical_network"), _misplaced(values, "physical_network"), path)
        if kind in ("local", "flat"):
            require(not is_set(values, "segmentation_id"), _misplaced(values, "segmentation_id"), path)
        if kind == "vlan":
            number = values.get("segmentation_id")
            require(number is not None, "segmentation_id is needed for type vlan", path)
            fits = not isinstance(number, int) or number <= VLAN_MAX
            require(fits, f"segmentation_id of a vlan is at most {VLAN_MAX}", path)


def _misplaced(values: Props, name: str) -> str:
    return f"{name} must not be given for type {values.get('network_type')}"


class AddressScope(NetworkingType):
    name = "OS::Neutron::AddressScope"
    kind = "address_scope"
    description = "A range within which addresses are unique, for pools to be in."
    properties = {
        "name": text("Name of the scope.", update=True),
        "shared": boolean("All projects may use it; it cannot be taken back.", default=False, update=True),
        "tenant_id": owner(constraints=(custom("keystone.project"),)),
        "ip_version": integer("Version of IP.", default=4, constraints=(one_of(4, 6),)),
    }


class SubnetPool(NetworkingType):
    name = "OS::Neutron::SubnetPool"
    kind = "subnetpool"
    description = "A pool that subnets take their ranges from."
    properties = {
        "name": text("Name of the pool.", update=True),
        "prefixes": listing(
            "Ranges of the pool; they may grow only.",
            required=True,
            update=True,
            items=text(constraints=(custom("net_cidr"),)),
            same=comparison.includes,
            constraints=(length(1),),
        ),
        "address_scope": link("Scope that its addresses are unique in.", "address_scope", update=True),
        "default_quota": integer("Addresses that a project may take.", update=True, constraints=(between(0),)),
        "default_prefixlen": integer(
            "Length of the prefix of a subnet that names none.", update=True, constraints=(between(0),)
        ),
        "min_prefixlen": integer("Shortest prefix of a subnet.", update=True, constraints=(between(0),)),
        "max_prefixlen": integer("Longest prefix of a subnet.", update=True, constraints=(between(0),)),
        "is_default": boolean("Subnets that name no pool use it.", default=False, update=True),
        "tenant_id": owner(),
        "shared": boolean("All projects may use it.", default=False),
        "tags": tags(),
    }
    renamed = {"address_scope": "address_scope_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        """Check that the shortest prefix ≤ the default prefix ≤ the longest prefix."""
        names = ("min_prefixlen", "default_prefixlen", "max_prefixlen")
        known = [(name, values[name]) for name in names if is_set(values, name) and values[name] is not UNKNOWN]
        for (low_name, low), (high_name, high) in pairwise(known):
            require(low <= high, f"{low_name} ({low}) is longer than {high_name} ({high})", path)


class RBACPolicy(NetworkingType):
    name = "OS::Neutron::RBACPolicy"
    kind = "rbac_policy"
    description = "Lets one project use a thing of networking that belongs to another."
    properties = {
        "object_type": text("Kind of the thing.", required=True, constraints=(one_of(*SHARED_TYPES),)),
        "target_tenant": text("Project that may use it; * for all.", required=True, update=True),
        "action": text("What the project may do.", required=True, constraints=(one_of("access_as_shared", EXTERNAL),)),
        "object_id": text("The thing, by name or id.", required=True, same=comparison.reference),
        "tenant_id": owner(),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        external = values.get("action") == EXTERNAL
        network = values.get("object_type") in ("network", UNKNOWN)
        require(not external or network, f"action {EXTERNAL} is for networks only; set access_as_shared", path)


class Trunk(NetworkingType):
    name = "OS::Neutron::Trunk"
    kind = "trunk"
    description = "Carries the traffic of several ports over one."
    properties = {
        "name": text("Name of the trunk.", update=True),
        "port": link("Port that carries the others.", "port", required=True, immutable=True),
        "sub_ports": listing(
            "Ports that are carried.",
            update=True,
            same=comparison.trunk_ports,
            items=mapping(
                fields={
                    "port": link("The port.", "port", required=True),
                    "segmentation_type": text(
                        "How its traffic is tagged.", required=True, constraints=(one_of("vlan"),)
                    ),
                    "segmentation_id": integer("Its number there.", required=True, constraints=(between(1, 4094),)),
                }
            ),
        ),
        "description": text("Description of the trunk.", update=True),
        "admin_state_up": boolean("The trunk is switched on.", update=True),
    }
    attributes = {"port_id": Attribute("Port that carries the others.")}
    renamed = {"port": "port_id"}

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        """Return the desired object; sub-ports are in Neutron's form: {port_id, segmentation_type, segmentation_id}."""
        spec = super().spec(values, physical_name)
        if "sub_ports" in spec:
            spec["sub_ports"] = [{**_without_port(port), "port_id": port["port"]} for port in spec["sub_ports"]]
        return spec


def _without_port(entry: Props) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "port"}


TYPES = [ProviderNet, Segment, AddressScope, SubnetPool, RBACPolicy, Trunk]
