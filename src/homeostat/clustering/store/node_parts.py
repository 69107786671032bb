"""What policies have made for single nodes: their places in load balancers, and the server group that they are in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import Connection

from homeostat.clustering.decisions.placement import GROUP
from homeostat.clustering.decisions.states import NOT_BALANCED, STILL_BALANCED, NodeStatus
from homeostat.clustering.store import living, parts
from homeostat.model.status import Action, Status
from homeostat.resources.registry import shown_id
from homeostat.store.schema.rows import NodeRow

MEMBER = "lb_member"
"""Key, in the data of a node, of the id of its place in a pool."""


@dataclass(frozen=True, slots=True)
class NodeParts:
    """What policies have made for some nodes.

    Attributes:
        places: Rows of places in pools by the root stack of the node and its number.
        server_groups: Ids of server groups by cluster.
    """

    places: Mapping[tuple[str, int], living.NodeResource] = field(default_factory=dict)
    server_groups: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Connection, rows: Sequence[NodeRow], groups: Mapping[str, str]) -> Self:
        """Read what policies have made for nodes.

        Args:
            tx: A consistent read.
            rows: Rows of the nodes.
            groups: The stack that nodes are in -> the root stack of that.
        """
        places = living.places_of(tx, groups, {row.number for row in rows}) if groups else {}
        grouped = {row.cluster_id for row in rows if row.cluster_id and GROUP in (row.data.get("placement") or {})}
        bound, made = parts.policies(tx, grouped), parts.of_clusters(tx, grouped)
        found = {each: parts.server_group(bound.get(each, ()), made.get(each, parts.NONE)) for each in grouped}
        return cls({(groups[stack_id], number): row for (stack_id, number), row in places.items()}, found)

    def data(self, row: NodeRow) -> dict[str, Any]:
        """Return the data of a node as users see them."""
        data, place = dict(row.data), self.places.get((row.stack_id, row.number))
        placement = data.get("placement") or {}
        if GROUP in placement:
            data["placement"] = {**placement, GROUP: self.server_groups.get(row.cluster_id or "", "")}
        if place is not None and place.handle:
            data[MEMBER] = shown_id(place.type, place.handle)
        return data

    def status(self, row: NodeRow) -> tuple[str, str] | None:
        """Return status and reason of a node that is well by itself and not in its pool as it should be, else None."""
        place = self.places.get((row.stack_id, row.number))
        if place is None or place.status != Status.FAILED:
            return None
        return NodeStatus.WARNING, STILL_BALANCED if place.action == Action.DELETE else NOT_BALANCED
