"""Groups whose members are the nodes of a cluster, and the companions of nodes: pool members of load balancers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.model.group import Companion, GroupDefinition, MemberDefinition, NodeNames, RangedDefinition, ranges
from homeostat.resources.base import Props, ResourceType
from homeostat.resources.families import octavia
from homeostat.resources.families.octavia import PartType, link
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.schema import Property, between, boolean, integer, listing, mapping, text

_NUMBERS = listing("Ranges of numbers of nodes; the end is not included.", required=True)


def _definition(what: str) -> Property:
    return mapping(
        "Their definition.",
        required=True,
        fields={
            "type": text(f"Type of {what}.", required=True),
            "properties": mapping(f"Properties of {what}."),
            "metadata": mapping(f"Metadata of {what}."),
        },
    )


class NodeGroup(ResourceGroup):
    """The nodes of a cluster; internal, created by the service only.

    The names and ids of nodes are not stored: they follow from their numbers (see `clustering.decisions.names`).
    """

    name = "Homeostat::NodeGroup"
    description = "The nodes of a cluster."
    properties = {
        **ResourceGroup.properties,
        "nodes": mapping("What names and ids of nodes are made of: seed and format.", required=True, update=True),
        "own": listing(
            "Definitions of single nodes.",
            default=[],
            update=True,
            items=mapping(fields={"numbers": _NUMBERS, "resource_def": _definition("the nodes")}),
        ),
        "beside": listing(
            "Resources that stand beside nodes in their stack, one for each node (`resources.groups`).",
            default=[],
            update=True,
            items=mapping(
                fields={
                    "name": text("What follows the number of the node in its name.", required=True),
                    "numbers": _NUMBERS,
                    "member": text("Property that takes the reference of the node.", required=True),
                    "resource_def": _definition("the resources"),
                }
            ),
        ),
    }

    def of_nodes(self, group: GroupDefinition, values: Props) -> GroupDefinition:
        """Return a group with the names of its nodes, the definitions of single nodes, and their companions."""
        nodes = values["nodes"]
        return replace(
            group,
            own=tuple(RangedDefinition.decoded(entry) for entry in values["own"] or ()),
            nodes=NodeNames(nodes["seed"], nodes["format"]),
            companions=tuple(
                Companion(entry["name"], ranges(entry["numbers"]), entry["member"], _given(entry))
                for entry in values["beside"] or ()
            ),
        )


def _given(entry: Mapping[str, Any]) -> MemberDefinition:
    """Return the definition of a companion resource, without the properties that are null."""
    definition = entry["resource_def"]
    properties = {name: value for name, value in (definition["properties"] or {}).items() if value is not None}
    return {"type": definition["type"], "properties": properties}


class NodePlace(PartType):
    """The pool member of a node; internal, created by clusters only."""

    name = "Homeostat::NodePlace"
    kind = "pool_member"
    description = "The place of a node in the pool of a load balancer."
    properties = {
        "pool": link("The pool.", "octavia.pool", required=True),
        "server": text("Id of the server that the node is.", required=True),
        "subnet": link("Subnet on which the server is reached.", "neutron.subnet"),
        "protocol_port": integer("Port it listens on.", required=True, constraints=(between(1, 65535),)),
        "admin_state_up": boolean("The place is switched on.", default=True, update=True),
    }


class NetworkLoadBalancer(octavia.LoadBalancer):
    """A load balancer whose address may be on any subnet of a network; the public types need a subnet."""

    name = "Homeostat::LoadBalancer"
    properties = {
        **octavia.LoadBalancer.properties,
        "vip_subnet": link("Subnet to have the address on.", "neutron.subnet"),
        "vip_network": link("Network to have the address on.", "neutron.network"),
    }


INTERNAL: tuple[type[ResourceType], ...] = (NodeGroup, NodePlace, NetworkLoadBalancer)
"""The types of this module."""


def node_companions(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the companion resources of nodes."""
    return list(values.get("beside") or ())


def definitions_of(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the definitions of single nodes, without duplicates."""
    definitions: list[Mapping[str, Any]] = []
    for entry in values.get("own") or ():
        if entry["resource_def"] not in definitions:
            definitions.append(entry["resource_def"])
    return definitions
