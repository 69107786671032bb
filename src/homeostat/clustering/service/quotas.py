"""How many clusters a project may have, and how much metadata of them and of its nodes."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from homeostat.clustering.service.requester import RequestScope
from homeostat.clustering.store import living
from homeostat.model.errors import Rejected
from homeostat.model.limits import METADATA_OF_PROJECT
from homeostat.store import schema
from homeostat.store.schema import json_size
from homeostat.store.schema.rows import ClusterRow, NodeRow
from homeostat.store.sql import sizes

CLUSTERS_MAX = 100
"""Clusters of one project."""


def check_room(tx: Connection, scope: RequestScope) -> None:
    """Check that a project may have one more cluster. Admins may always.

    Raises:
        Rejected: OverQuota.
    """
    conditions = (schema.cluster.c.project == scope.project, living.is_living_cluster())
    there = tx.execute(select(func.count()).select_from(schema.cluster).where(*conditions)).scalar_one()
    if there >= CLUSTERS_MAX and not scope.caller.is_admin:
        message = f"Quota exceeded: a project has at most {CLUSTERS_MAX} clusters: delete some first"
        raise Rejected("OverQuota", message)


def with_size(
    tx: Connection, project: str, columns: Mapping[str, Any], before: ClusterRow | NodeRow | None = None
) -> dict[str, Any]:
    """Return columns of a cluster or node, with the size of its metadata where these are among them.

    Args:
        tx: The transaction that stores them.
        project: That of the cluster or node.
        columns: What is stored.
        before: The row so far; None for a new one.

    Raises:
        Rejected: OverQuota: the metadata of the project would be more than they may be.
    """
    if "metadata" not in columns:
        return dict(columns)
    size, replaced = _size(columns["metadata"]), 0
    if before is not None:
        replaced = before.size if before.size is not None else _size(before.metadata)
    if size > replaced:
        there = sum(
            sizes.stored(tx, each.c.size, (each.c.metadata,), each.c.project == project)
            for each in (schema.cluster, schema.node)
        )
        METADATA_OF_PROJECT.check(0, there, size - replaced, 0)
    return {**columns, "size": size}


def _size(metadata: Mapping[str, Any]) -> int:
    return json_size(metadata) if metadata else 0
