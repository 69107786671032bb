"""Records of the tokens by which the clusters, nodes, … of templates are found again."""

from collections.abc import Mapping

from sqlalchemy import Connection, Table, exists, select

from homeostat.clustering.store import living
from homeostat.resources.families.senlin import CLUSTER, NODE, POLICY, PROFILE, RECEIVER
from homeostat.store import schema
from homeostat.store.sql.delete_found import delete_found

TABLES: Mapping[str, Table] = {
    PROFILE: schema.profile,
    POLICY: schema.policy,
    CLUSTER: schema.cluster,
    NODE: schema.node,
    RECEIVER: schema.receiver,
}
"""Kind of the cloud port -> where its things are."""
_record = schema.record


def forget_gone(tx: Connection, kind: str, project: str) -> None:
    """Remove the records of those things of a kind that were deleted behind the back of their templates."""
    living.forget_gone(tx, project)
    table = TABLES[kind]
    there = exists(select(table.c.id).where(table.c.id == _record.c.id))
    delete_found(tx, _record, _record.c.kind == kind, _record.c.project == project, ~there)
