"""Types of databases."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.errors import Terminal
from homeostat.resources import comparison
from homeostat.resources.base import Props, ResourceType, Thing, payload
from homeostat.resources.constraints import IP_ADDRESS
from homeostat.resources.graph import Graph, subnets_of_mentioned
from homeostat.resources.rules import conflict, is_set, maps, missing, require
from homeostat.resources.schema import (
    UNKNOWN,
    Attribute,
    Property,
    ValueType,
    between,
    integer,
    length,
    link,
    listing,
    mapping,
    pattern,
    text,
)
from homeostat.resources.support import Support

USER_WORD = pattern(r"[a-zA-Z0-9_]+[a-zA-Z0-9_@?#\s]*[a-zA-Z0-9_]+")
DATABASE_WORD = pattern(r"[a-zA-Z0-9_\-]+[a-zA-Z0-9_@?#\s\-]*[a-zA-Z0-9_\-]+")


def _networks() -> Property:
    return listing(
        "Networks to be on.",
        default=[],
        items=mapping(
            fields={
                "network": link("Network to be on.", "neutron.network"),
                "port": link("Port to use instead of a network.", "neutron.port"),
                "fixed_ip": text("Address to have.", constraints=(IP_ADDRESS,)),
            }
        ),
    )


def _check_networks(values: Props, path: tuple[str | int, ...]) -> None:
    for index, network in maps(values, "networks"):
        place = (*path, "networks", index)
        if is_set(network, "network") and is_set(network, "port"):
            raise conflict(place, "network", "port")
        if not (is_set(network, "network") or is_set(network, "port")):
            raise missing(place, "network", "port")


def _same_names(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Compare databases by name, as clouds report nothing else."""
    return seen is None or {database["name"] for database in wanted} == {database.get("name") for database in seen}


class Instance(ResourceType):
    name = "OS::Trove::Instance"
    kind = "database_instance"
    support = Support(version="2014.1")
    description = "A server of databases."
    properties = {
        "name": text("Name of the instance.", update=True, constraints=(length(None, 255),)),
        "flavor": link("Flavor.", "trove.flavor", required=True, update=True),
        "datastore_type": text("Kind of database.", constraints=(length(None, 255),)),
        "datastore_version": text("Version of the database.", constraints=(length(None, 255),)),
        "size": integer(
            "Size of the volume in GiB.",
            required=True,
            update=True,
            same=comparison.at_least,
            constraints=(between(1, 150),),
        ),
        "networks": _networks(),
        "databases": listing(
            "Databases in it.",
            default=[],
            update=True,
            same=_same_names,
            items=mapping(
                fields={
                    "character_set": text("Set of characters.", default="utf8"),
                    "collate": text("Order of characters.", default="utf8_general_ci"),
                    "name": text("Name of the database.", required=True, constraints=(length(None, 64), DATABASE_WORD)),
                }
            ),
        ),
        "users": listing(
            "Users of the databases.",
            default=[],
            update=True,
            drift=False,
            items=mapping(
                fields={
                    "name": text(
                        "Name of the user.", required=True, update=True, constraints=(length(None, 16), USER_WORD)
                    ),
                    "password": text("Password of the user.", required=True, update=True, constraints=(USER_WORD,)),
                    "host": text("Hosts that it may come from.", default="%", update=True),
                    "databases": listing(
                        "Databases that it may use.",
                        required=True,
                        update=True,
                        items=text(),
                        constraints=(length(1),),
                    ),
                }
            ),
        ),
        "availability_zone": text("Availability zone to be in."),
        "restore_point": text("Backup to start from."),
        "replica_of": text("Instance to be a replica of."),
        "replica_count": integer("How many replicas."),
    }
    attributes = {
        "hostname": Attribute("Name of its host."),
        "href": Attribute("URL of the instance."),
    }
    renamed = {"flavor": "flavor_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        _check_networks(values, path)
        databases = values.get("databases") or []
        known = {database["name"] for _, database in maps(values, "databases")}
        for index, user in maps(values, "users"):
            if databases is UNKNOWN or UNKNOWN in databases or UNKNOWN in known or user["databases"] is UNKNOWN:
                return
            unknown = [name for name in user["databases"] if name is not UNKNOWN and name not in known]
            message = f"{', '.join(unknown)} must be one of databases"
            require(not unknown, message, (*path, "users", index, "databases"))

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of its networks."""
        return subnets_of_mentioned(graph, properties)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        return {**spec, "networks": payload(spec.get("networks") or [])}

    def replacement_reason(self, before: Props, after: Props, changed: frozenset[str]) -> str:
        """Return why a change needs a replacement.

        Raises:
            Terminal: A smaller size: a replacement would lose the data without consent.
        """
        reason = super().replacement_reason(before, after, changed)
        if not reason and "size" in changed and after["size"] < before["size"]:
            raise Terminal(
                f"The volume of a database cannot shrink (from {before['size']} to {after['size']} GiB): "
                "keep the size, or make a new instance under another name"
            )
        return reason


class Cluster(ResourceType):
    name = "OS::Trove::Cluster"
    kind = "database_cluster"
    support = Support(version="2015.1")
    description = "Servers of one database."
    properties = {
        "name": text("Name of the cluster.", constraints=(length(None, 255),)),
        "datastore_type": text("Kind of database.", required=True, constraints=(length(None, 255),)),
        "datastore_version": text("Version of the database.", required=True, constraints=(length(None, 255),)),
        "instances": listing(
            "The servers.",
            required=True,
            items=mapping(
                fields={
                    "flavor": link("Flavor.", "trove.flavor", required=True),
                    "volume_size": integer("Size of the volume in GiB.", required=True, constraints=(between(1, 150),)),
                    "networks": _networks(),
                    "availability_zone": text("Availability zone to be in."),
                }
            ),
        ),
    }
    attributes = {
        "instances": Attribute("Ids of its servers.", ValueType.LIST),
        "ip": Attribute("Addresses of its servers.", ValueType.LIST),
    }

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        for index, instance in maps(values, "instances"):
            _check_networks(instance, (*path, "instances", index))

    def implied_requires(self, properties: Props, graph: Graph) -> set[str]:
        """Return the subnets of the networks of its instances."""
        return subnets_of_mentioned(graph, properties)

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        spec = super().spec(values, physical_name)
        return {**spec, "instances": payload(spec["instances"], flavor="flavor_id")}

    def attribute(self, thing: Thing, name: str) -> Any:
        if name != "instances":
            return super().attribute(thing, name)
        return [instance["id"] for instance in thing.seen.properties.get("instances") or () if instance.get("id")]


TYPES: list[type[ResourceType]] = [Instance, Cluster]
