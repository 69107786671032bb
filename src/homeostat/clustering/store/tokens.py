"""Records of tokens, by which the clusters, nodes, … of templates are found again."""

from collections.abc import Mapping

from sqlalchemy import exists, select

from homeostat.clustering.store import listing, living
from homeostat.resources.families.senlin import CLUSTER, NODE, POLICY, PROFILE, RECEIVER
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow, PolicyRow, ProfileRow, ReceiverRow
from homeostat.store.sql.delete_found import delete_found

KINDS: Mapping[str, type[listing.Entry]] = {
    PROFILE: ProfileRow,
    POLICY: PolicyRow,
    CLUSTER: ClusterRow,
    NODE: NodeRow,
    RECEIVER: ReceiverRow,
}
"""Kind of the cloud port -> the class of its rows."""
_record = schema.record


def forget_gone(tx: Transaction, kind: str, project: str) -> None:
    """Remove the records of objects of a kind that were deleted outside of their templates."""
    living.forget_gone(tx, project)
    table = listing.TABLES[KINDS[kind]]
    exists_still = exists(select(table.c.id).where(table.c.id == _record.c.id))
    delete_found(tx, _record, _record.c.kind == kind, _record.c.project == project, ~exists_still)
