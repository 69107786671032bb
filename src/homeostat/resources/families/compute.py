"""Types of compute besides servers: key pairs, server groups, flavors, host aggregates, and retired floating IPs."""

from typing import Any

from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.rules import is_set, require
from homeostat.resources.schema import (
    Attribute,
    ValueType,
    boolean,
    custom,
    integer,
    length,
    listing,
    mapping,
    number,
    one_of,
    text,
)
from homeostat.resources.support import deprecated, hidden


class KeyPair(ResourceType):
    """A key pair; clouds return its private key only in the response to the creation."""

    secretive = True
    name = "OS::Nova::KeyPair"
    kind = "keypair"
    description = "A key pair that may log in to servers."
    properties = {
        "name": text("Name of the key pair.", required=True, constraints=(length(1, 255),)),
        "save_private_key": boolean("Keep the private key, to give it as an attribute.", default=False),
        "public_key": text("Public key; without it the cloud makes a pair."),
        "type": text("Kind of key.", constraints=(one_of("ssh", "x509"),)),
        "user": text("User it belongs to.", constraints=(custom("keystone.user"),)),
    }
    unsent = {"save_private_key"}
    attributes = {
        "public_key": Attribute("The public key."),
        "private_key": Attribute("The private key where it was saved, else empty.", live=True, secret=True),
    }

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        del spec["save_private_key"]
        return spec

    def reference(self, thing: Thing) -> Any:
        """Its name."""
        return thing.properties["name"] if thing.handle else thing.name

    def lost_fields(self, thing: Thing) -> tuple[str, ...]:
        """Return the lost fields; the private key counts only if the cloud generated it and it should be saved."""
        properties = thing.properties
        generated = properties["save_private_key"] and not properties["public_key"]
        return super().lost_fields(thing) if generated else ()

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "private_key":
            return super().attribute(thing, name)
        saved = thing.properties["save_private_key"]
        return (thing.seen.properties.get("private_key") or "") if saved else ""

    def show(self, thing: Thing) -> Any:
        return {name: value for name, value in thing.seen.properties.items() if name != "private_key"}


class ServerGroup(ResourceType):
    name = "OS::Nova::ServerGroup"
    kind = "server_group"
    description = "Servers that should share a host, or should not; they name it as the group in scheduler_hints."
    properties = {
        "name": text("Name of the group."),
        "policies": listing(
            "Whether its servers share a host.",
            default=["anti-affinity"],
            items=text(),
            constraints=(one_of("anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"),),
        ),
        "rules": mapping(
            "Further rules.",
            fields={"max_server_per_host": number("Most of its servers on a host.")},
        ),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        policies = values.get("policies")
        spread = not isinstance(policies, list) or "anti-affinity" in policies
        require(not is_set(values, "rules") or spread, "rules are for the policy anti-affinity only", path)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        if "rules" in spec:
            spec["rules"] = {name: value for name, value in spec["rules"].items() if value is not None}
        return spec


class Flavor(ResourceType):
    name = "OS::Nova::Flavor"
    kind = "flavor"
    description = "A size of servers that users may choose."
    properties = {
        "tenants": listing(
            "Projects that may use it, where it is not public.",
            default=[],
            update=True,
            items=text(constraints=(custom("keystone.project"),)),
            same=comparison.references,
        ),
        "flavorid": text("Id; without one the cloud makes one."),
        "name": text("Name of the flavor."),
        "ram": integer("Memory in MiB.", required=True),
        "vcpus": integer("Processor cores.", required=True),
        "disk": integer("Size of the root disk in GiB; 0 for that of the image.", default=0),
        "swap": integer("Size of swap space in MiB.", default=0),
        "ephemeral": integer("Size of a second disk in GiB.", default=0),
        "rxtx_factor": number("Share of the network's bandwidth.", default=1.0),
        "extra_specs": mapping("Extra specifications for the scheduler and the hosts.", update=True),
        "is_public": boolean("All projects may use it.", default=True),
    }
    attributes = {
        "is_public": Attribute("Whether all projects may use it.", ValueType.BOOLEAN),
        "extra_specs": Attribute("Extra specifications for the scheduler and the hosts.", ValueType.MAP),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        shared = values.get("is_public", True) is True and is_set(values, "tenants")
        require(not shared, "tenants may be given only where is_public is false", (*path, "tenants"))


class HostAggregate(ResourceType):
    name = "OS::Nova::HostAggregate"
    kind = "host_aggregate"
    description = "Hosts of compute that have something in common."
    properties = {
        "name": text("Name of the aggregate.", required=True, update=True),
        "availability_zone": text("Availability zone that it makes.", update=True),
        "hosts": listing(
            "Its hosts.", update=True, items=text(constraints=(custom("nova.host"),)), same=comparison.unordered
        ),
        "metadata": mapping("What its hosts have in common.", default={}, update=True),
    }


_RETIRED = deprecated("9.0.0", "Use OS::Neutron::FloatingIP instead.")


class FloatingIP(ResourceType):
    """A floating IP of the former network service of compute, implemented by Neutron's."""

    name = "OS::Nova::FloatingIP"
    kind = "floating_ip"
    description = "An outside address, as old templates request it."
    support = hidden("11.0.0", "Use OS::Neutron::FloatingIP instead.", _RETIRED)
    properties = {"pool": text("External network, which was called a pool; without one the cloud chooses.")}
    attributes = {
        "pool": Attribute("External network of the address.", field="floating_network_id"),
        "ip": Attribute("The address.", field="floating_ip_address"),
    }
    renamed = {"pool": "floating_network_id"}

    def attribute(self, thing: Thing, name: str) -> Any:
        return (
            thing.properties["pool"] if name == "pool" and thing.properties["pool"] else super().attribute(thing, name)
        )


class FloatingIPAssociation(ResourceType):
    """An association of a floating IP with a server, by the server's first port, since compute had no ports."""

    name = "OS::Nova::FloatingIPAssociation"
    kind = "floating_ip_association"
    description = "Lets a floating IP lead to a server, as old templates request it."
    support = hidden("11.0.0", "Use OS::Neutron::FloatingIPAssociation instead.", _RETIRED)
    properties = {
        "server_id": text("The server.", required=True, update=True, drift=False, constraints=(custom("nova.server"),)),
        "floating_ip": text("The floating IP.", required=True, update=True, same=comparison.reference),
    }
    renamed = {"server_id": "server", "floating_ip": "floatingip_id"}

    def reference(self, thing: Thing) -> Any:
        """Its id in this service."""
        return thing.key if thing.handle else thing.name


TYPES: list[type[ResourceType]] = [
    KeyPair,
    ServerGroup,
    Flavor,
    HostAggregate,
    FloatingIP,
    FloatingIPAssociation,
]
