"""Resources of policies for single nodes: their pool members and server groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from homeostat.clustering.decisions.placement import GROUP
from homeostat.clustering.decisions.states import NOT_BALANCED, STILL_BALANCED, NodeStatus
from homeostat.clustering.store import living, parts
from homeostat.model.status import Action, Status
from homeostat.resources.registry import shown_id
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import NodeRow

MEMBER = "lb_member"
"""Key of the data of a node: the id of its pool member."""


@dataclass(frozen=True, slots=True)
class NodeParts:
    """Resources of policies for some nodes.

    Attributes:
        places: (root stack of a node, its number) -> row of the pool member.
        server_groups: Id of a cluster -> id of its server group.
    """

    places: Mapping[tuple[str, int], living.NodeResource] = field(default_factory=dict)
    server_groups: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Transaction, rows: Sequence[NodeRow], groups: Mapping[str, str]) -> Self:
        """Read the resources of policies for nodes.

        Args:
            tx: A consistent read.
            groups: Stack of a group of nodes -> its root stack.
        """
        places = living.places_of(tx, groups, {row.number for row in rows}) if groups else {}
        grouped = {row.cluster_id for row in rows if row.cluster_id and GROUP in (row.data.get("placement") or {})}
        bound, cluster_parts = parts.policies(tx, grouped), parts.of_clusters(tx, grouped)
        server_groups = {
            cluster_id: parts.server_group(bound.get(cluster_id, ()), cluster_parts.get(cluster_id, parts.NONE))
            for cluster_id in grouped
        }
        return cls({(groups[stack_id], number): row for (stack_id, number), row in places.items()}, server_groups)

    def data(self, row: NodeRow) -> dict[str, Any]:
        """Return the data of a node in the format of the API."""
        data, place = dict(row.data), self.places.get((row.stack_id, row.number))
        placement = data.get("placement") or {}
        if GROUP in placement:
            data["placement"] = {**placement, GROUP: self.server_groups.get(row.cluster_id or "", "")}
        if place is not None and place.handle:
            data[MEMBER] = shown_id(place.type, place.handle)
        return data

    def status(self, row: NodeRow) -> tuple[str, str] | None:
        """Return status and reason of an active node whose pool member has failed; None for other nodes."""
        place = self.places.get((row.stack_id, row.number))
        if place is None or place.status != Status.FAILED:
            return None
        return NodeStatus.WARNING, STILL_BALANCED if place.action == Action.DELETE else NOT_BALANCED
