"""The register of workers: host, version and job board of each (CV5). Ownership of shards does not use it."""

from dataclasses import asdict, dataclass
from importlib import metadata

from sqlalchemy import delete, select

from homeostat.store import schema
from homeostat.store.database import Transaction, row_lock

VERSION = metadata.version("homeostat")
"""The version of this program."""
SILENT_S = 10.0
"""A worker silent for so long counts as dead. Its shards are taken over earlier: leases are shorter."""
FORGOTTEN_S = 600.0
"""Default time for which dead workers are listed."""

_worker = schema.worker


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker in the register.

    Attributes:
        board: `sql` or `redis`.
    """

    name: str
    host: str
    pid: int
    version: str
    board: str
    started_at: float
    seen_at: float

    def is_alive(self, now: float) -> bool:
        return self.seen_at > now - SILENT_S


def report(tx: Transaction, worker: Worker, forgotten_s: float = FORGOTTEN_S) -> None:
    """Record that a worker is alive at `seen_at`, and delete workers that have been silent for `forgotten_s`.

    An unknown or deleted worker is inserted.
    """
    row = asdict(worker)
    tx.execute(
        tx.insert(_worker).values(row).on_conflict_do_update(index_elements=["name"], set_={"seen_at": worker.seen_at})
    )
    tx.execute(delete(_worker).where(_worker.c.seen_at < worker.seen_at - forgotten_s))


def leave(tx: Transaction, name: str) -> None:
    """Remove a worker that shuts down normally."""
    tx.execute(delete(_worker).where(_worker.c.name == name))


def forget_dead(tx: Transaction, now: float) -> list[str]:
    """Remove the dead workers from the register, and return their names."""
    silent = select(_worker.c.name).where(_worker.c.seen_at <= now - SILENT_S).order_by(_worker.c.name)
    # The locking query waits for a report in progress, and then judges by the new time: such a worker stays.
    dead = list(tx.execute(row_lock(silent)).scalars())
    if dead:
        tx.execute(delete(_worker).where(_worker.c.name.in_(dead)))
    return dead


def listed(tx: Transaction) -> list[Worker]:
    """Return all workers, including dead ones, the oldest first."""
    rows = tx.execute(select(_worker).order_by(_worker.c.started_at, _worker.c.name))
    return [Worker(**row._mapping) for row in rows]


def of_other_versions(tx: Transaction, now: float) -> list[str]:
    """Return the names of living workers of versions other than this program's.

    Owners of shards that are missing in the register count as well: their version had no register.
    """
    known = listed(tx)
    shard = schema.shard
    owners = set(tx.execute(select(shard.c.owner).where(shard.c.lease_until > now)).scalars())
    different = {worker.name for worker in known if worker.is_alive(now) and worker.version != VERSION}
    return sorted(different | (owners - {worker.name for worker in known}))
