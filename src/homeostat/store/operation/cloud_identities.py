"""Which cloud the handles in the rows are of: a cloud that can be mistaken for another one says who it is."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Database

_resource = schema.resource
_stack = schema.stack
_CHUNK = 500
CLOUD = "cloud_identity"
"""Kind of the record whose token is the name of a cloud, and whose id is its identity."""


def identity(tx: Connection, cloud: str) -> str:
    """Of the cloud of this name; "" where none is known."""
    found = records.of_tokens(tx, CLOUD, [cloud]).get(cloud)
    return found.id if found is not None else ""


class CloudLedger:
    """What the rows tell of the cloud of this name."""

    def __init__(self, db: Database, cloud: str) -> None:
        self._db = db
        self._cloud = cloud

    def agree(self, found: str) -> str:
        """The identity that holds: the one that is known, else what was found ("" for nothing), kept from now on.

        Fails: Transient where the database does not answer.
        """
        with self._db.read() as tx:
            known = identity(tx, self._cloud)
        if known or not found:
            return known
        with self._db.write() as tx:
            made = records.Record(found, CLOUD, "", self._cloud, {}, created_at=self._db.now_of(tx))
            records.add(self._db, tx, [made])
            return identity(tx, self._cloud)

    def projects(self, handles: Collection[str]) -> dict[str, str]:
        """Handle -> project of the stack whose own thing it is, for those that are known; "" -> the project of all
        stacks there are, where there is one only."""
        wanted = sorted(handles)
        found: dict[str, str] = {}
        with self._db.read() as tx:
            for start in range(0, len(wanted), _CHUNK):
                mine = (_resource.c.handle.in_(wanted[start : start + _CHUNK]), _resource.c.external_id.is_(None))
                chosen = select(_resource.c.handle, _stack.c.project).join(_stack, _stack.c.id == _resource.c.stack_id)
                found |= {row.handle: row.project for row in tx.execute(chosen.where(*mine))}
            there = tx.execute(select(_stack.c.project).distinct().limit(2)).scalars().all()
        return found | ({"": there[0]} if len(there) == 1 else {})
