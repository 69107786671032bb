"""Limits of a project: the number of clusters, and the size of the metadata of clusters and nodes."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import living
from homeostat.model.errors import Rejected
from homeostat.model.limits import METADATA_OF_PROJECT
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema import json_size
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.sql import sizes

CLUSTERS_MAX = 100
"""Clusters of one project."""


def check_room(tx: Transaction, scope: RequestScope) -> None:
    """Check that a project may have one more cluster; admins are exempt.

    Raises:
        Rejected: OverQuota.
    """
    conditions = (schema.cluster.c.project == scope.project, living.is_living_cluster())
    count = tx.execute(select(func.count()).select_from(schema.cluster).where(*conditions)).scalar_one()
    if count >= CLUSTERS_MAX and not scope.caller.is_admin:
        message = f"Quota exceeded: a project has at most {CLUSTERS_MAX} clusters: delete some first"
        raise Rejected("OverQuota", message)


def with_size(
    tx: Transaction, project: str, columns: Mapping[str, Any], before: ClusterRow | NodeRow | None = None
) -> dict[str, Any]:
    """Return columns of a cluster or node, with `size` added if they include metadata.

    Args:
        before: The current row; None for a new row.

    Raises:
        Rejected: OverQuota: too much metadata in the project.
    """
    if "metadata" not in columns:
        return dict(columns)
    size, replaced = _size(columns["metadata"]), 0
    if before is not None:
        replaced = before.size if before.size is not None else _size(before.metadata)
    if size > replaced:
        stored = sum(
            sizes.stored(tx, table.c.size, (table.c.metadata,), table.c.project == project)
            for table in (schema.cluster, schema.node)
        )
        METADATA_OF_PROJECT.check(0, stored, size - replaced, 0)
    return {**columns, "size": size}


def _size(metadata: Mapping[str, Any]) -> int:
    return json_size(metadata) if metadata else 0
