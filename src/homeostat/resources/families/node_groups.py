"""Groups whose members are the nodes of a cluster: a single one may have a definition of its own."""

from collections.abc import Mapping
from typing import Any

from homeostat.resources.base import Props
from homeostat.resources.families.resource_groups import ResourceGroup
from homeostat.resources.schema import listing, mapping, text


class NodeGroup(ResourceGroup):
    """The nodes of a cluster: made by the service alone, so that no list of types has it.

    What no property says, which node has which name and id, follows from their numbers (see `clustering.names`).
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
            items=mapping(
                fields={
                    "numbers": listing("Ranges of numbers of nodes; the end is not included.", required=True),
                    "resource_def": mapping(
                        "Their definition.",
                        required=True,
                        fields={
                            "type": text("Type of the nodes.", required=True),
                            "properties": mapping("Properties of the nodes."),
                            "metadata": mapping("Metadata of the nodes."),
                        },
                    ),
                }
            ),
        ),
    }

    def further(self, values: Props) -> dict[str, Any]:
        """Return what the revision of their stack has besides that of a group of alike members (`resources.groups`)."""
        own = [{"numbers": each["numbers"], "resource_def": each["resource_def"]} for each in values["own"] or ()]
        return {"nodes": dict(values["nodes"]), **({"own": own} if own else {})}


def definitions_of(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the definitions of single nodes, each once."""
    found: list[Mapping[str, Any]] = []
    for each in values.get("own") or ():
        if each["resource_def"] not in found:
            found.append(each["resource_def"])
    return found
