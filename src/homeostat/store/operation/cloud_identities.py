"""Identities of clouds: a cloud that could be mistaken for another identifies itself.

The handles in the rows belong to a certain cloud. In another cloud all of them would be missing, and be created again.
"""

from collections.abc import Collection

from sqlalchemy import select

from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Database, Transaction

_resource = schema.resource
_stack = schema.stack
_CHUNK = 500
CLOUD = "cloud_identity"
"""The kind of the records whose token is the name of a cloud and whose id is the cloud's identity."""


def identity(tx: Transaction, cloud: str) -> str:
    """Return the stored identity of the cloud of this name; "" if unknown."""
    record = records.of_tokens(tx, CLOUD, [cloud]).get(cloud)
    return record.id if record is not None else ""


class CloudLedger:
    """The knowledge of the rows about a cloud."""

    def __init__(self, db: Database, cloud: str) -> None:
        self._db = db
        self._cloud = cloud

    def agree(self, reported: str) -> str:
        """Return the identity to expect: the stored identity, or else the reported one, which is stored.

        Args:
            reported: The identity that the cloud reports; "" for none.
        """
        with self._db.read() as tx:
            known = identity(tx, self._cloud)
        if known or not reported:
            return known
        with self._db.write() as tx:
            record = records.Record(reported, CLOUD, "", self._cloud, {}, created_at=tx.now())
            records.add(tx, [record])
            # Read again: if another worker was faster, its record stays and ours was left out.
            return identity(tx, self._cloud)

    def projects(self, handles: Collection[str]) -> dict[str, str]:
        """Return the projects of things, by the stacks that own them.

        Returns:
            Handle -> project, for known handles; "" -> the project of all stacks, if there is only one.
        """
        wanted = sorted(handles)
        project_of: dict[str, str] = {}
        with self._db.read() as tx:
            for start in range(0, len(wanted), _CHUNK):
                conditions = (_resource.c.handle.in_(wanted[start : start + _CHUNK]), _resource.c.external_id.is_(None))
                chosen = select(_resource.c.handle, _stack.c.project).join(_stack, _stack.c.id == _resource.c.stack_id)
                project_of |= {row.handle: row.project for row in tx.execute(chosen.where(*conditions))}
            projects = tx.execute(select(_stack.c.project).distinct().limit(2)).scalars().all()
        return project_of | ({"": projects[0]} if len(projects) == 1 else {})
