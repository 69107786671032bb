"""The register of workers (CV5): who runs where, in which version, on which job board. No ownership depends on it."""

from dataclasses import asdict, dataclass
from importlib import metadata

from sqlalchemy import Connection, delete, select

from homeostat.store import schema
from homeostat.store.database import Database

VERSION = metadata.version("homeostat")
"""Of this program."""
SILENT_S = 10.0
"""A worker that was not heard of for so long is dead. (What it owned was taken over before: leases are shorter.)"""
FORGOTTEN_S = 600.0
"""The dead are shown for so long, where the service has no other setting."""

_worker = schema.worker


@dataclass(frozen=True, slots=True)
class Worker:
    """board — `sql` or `redis`; started_at, seen_at — seconds since the epoch."""

    name: str
    host: str
    pid: int
    version: str
    board: str
    started_at: float
    seen_at: float

    def is_alive(self, now: float) -> bool:
        return self.seen_at > now - SILENT_S


def report(db: Database, tx: Connection, worker: Worker, forgotten_s: float = FORGOTTEN_S) -> None:
    """It is alive (`seen_at`); one that was forgotten comes back. Forgets those that were silent for `forgotten_s`."""
    row = asdict(worker)
    tx.execute(
        db.insert(_worker).values(row).on_conflict_do_update(index_elements=["name"], set_={"seen_at": worker.seen_at})
    )
    tx.execute(delete(_worker).where(_worker.c.seen_at < worker.seen_at - forgotten_s))


def leave(tx: Connection, name: str) -> None:
    """It ends in order."""
    tx.execute(delete(_worker).where(_worker.c.name == name))


def forget_dead(tx: Connection, now: float) -> list[str]:
    """Take the dead out of the register. Gives their names."""
    dead = delete(_worker).where(_worker.c.seen_at <= now - SILENT_S).returning(_worker.c.name)
    return sorted(tx.execute(dead).scalars())


def listed(tx: Connection) -> list[Worker]:
    """All, the dead included, the oldest first."""
    rows = tx.execute(select(_worker).order_by(_worker.c.started_at, _worker.c.name))
    return [Worker(**row._mapping) for row in rows]


def of_other_versions(tx: Connection, now: float) -> list[str]:
    """Names of living workers that are not of this program's version. Who owns a shard and is not in the register is
    of a version that had none."""
    known = listed(tx)
    shard = schema.shard
    owners = set(tx.execute(select(shard.c.owner).where(shard.c.lease_until > now)).scalars())
    others = {each.name for each in known if each.is_alive(now) and each.version != VERSION}
    return sorted(others | (owners - {each.name for each in known}))
