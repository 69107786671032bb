"""Which cloud the handles in the rows are of: a cloud that can be mistaken for another one says who it is."""

from sqlalchemy import Connection

from homeostat.store import records
from homeostat.store.database import Database

CLOUD = "cloud_identity"
"""Kind of the record whose token is the name of a cloud, and whose id is its identity."""


def identity(tx: Connection, cloud: str) -> str:
    """Of the cloud of this name; "" where none is known."""
    found = records.of_tokens(tx, CLOUD, [cloud]).get(cloud)
    return found.id if found is not None else ""


def agree(db: Database, cloud: str, found: str) -> str:
    """The identity that holds: the one that is known, else what was found ("" for nothing), kept from now on.

    Fails: Transient where the database does not answer.
    """
    with db.read() as tx:
        known = identity(tx, cloud)
    if known or not found:
        return known
    with db.write() as tx:
        records.add(db, tx, [records.Record(found, CLOUD, "", cloud, {}, created_at=db.now_of(tx))])
        return identity(tx, cloud)
