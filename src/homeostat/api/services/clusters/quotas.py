"""How many clusters a project may have."""

from sqlalchemy import Connection, func, select

from homeostat.api.services.clusters.requester import Asking
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.clusters import living

CLUSTERS_MAX = 100
"""Clusters of one project."""


def check_room(tx: Connection, asking: Asking) -> None:
    """Check that a project may have one more cluster. Admins may always.

    Raises:
        Rejected: OverQuota.
    """
    mine = (schema.cluster.c.project == asking.project, living.is_living_cluster())
    there = tx.execute(select(func.count()).select_from(schema.cluster).where(*mine)).scalar_one()
    if there >= CLUSTERS_MAX and not asking.caller.is_admin:
        message = f"Quota exceeded: a project has at most {CLUSTERS_MAX} clusters: delete some first"
        raise Rejected("OverQuota", message)
