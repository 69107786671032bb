"""The bare row traffic of creating resources: what no engine on this store could be faster than."""

import contextlib
import time

from bench.databases import database_url, opened
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Event
from homeostat.model.world import Resource, Seen
from homeostat.store.database import Database
from homeostat.store.shards import leases, shard_state
from homeostat.store.shards.shard_state import Writes
from homeostat.store.stacks.action_begin import NewStack, add
from homeostat.store.stacks.revisions import empty

BATCH = 500


def bare_rows(n: int, database: str) -> tuple[float, float]:
    """Seconds of wall clock and of CPU for n resources: insert with intent, outcome, observation, two events; epoch
    and version checked; in batches."""
    with database_url(database) as url, contextlib.closing(opened(url)) as db:
        with db.write() as tx:
            add(tx, NewStack("s", "p", "n"), empty(db), time.time(), 3600.0)
            lease = leases.claim(tx, "s", 0, "bench", time.time(), 600.0)
        if lease is None:
            raise RuntimeError("the shard could not be claimed")
        wall, cpu = time.perf_counter(), time.process_time()
        for start in range(0, n, BATCH):
            _batch(db, lease, range(start, min(start + BATCH, n)))
        return time.perf_counter() - wall, time.process_time() - cpu


def raw_transactions(n: int, database: str) -> tuple[float, float]:
    """Seconds of wall clock and of CPU for n transactions of one row each, sent by the driver alone."""
    with database_url(database) as url, contextlib.closing(opened(url)) as db:
        mark = "?" if db.is_sqlite else "%s"
        connection = db.engine.raw_connection()
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE bench_raw (number INTEGER PRIMARY KEY, word VARCHAR(255))")
        connection.commit()
        wall, cpu = time.perf_counter(), time.process_time()
        for number in range(n):
            cursor.execute(f"INSERT INTO bench_raw VALUES ({mark}, {mark})", (number, "word"))
            connection.commit()
        spent = time.perf_counter() - wall, time.process_time() - cpu
        connection.close()
        return spent


def _batch(db: Database, lease: leases.Lease, numbers: range) -> None:
    rows = [
        Resource(f"k{i:011d}", "s", 0, f"r{i}", "OS::Heat::TestResource", properties={"value": "v"}) for i in numbers
    ]
    intended = Writes(events=[_event(row, "IN_PROGRESS") for row in rows])
    outcome = Writes(events=[_event(row, "COMPLETE") for row in rows])
    for row in rows:
        intended.insert(row)
    with db.write() as tx:
        leases.renew(tx, lease, time.time(), 600.0)
        shard_state.record(tx, "s", intended, time.time())
    for row in rows:
        row.handle, row.status = row.key, "COMPLETE"
        outcome.conclude(row)
        outcome.seen[row.key] = (row, Seen(Observation(Presence.PRESENT, row.key, {"value": "v"}, 0.0), 1))
    with db.write() as tx:
        leases.renew(tx, lease, time.time(), 600.0)
        shard_state.record(tx, "s", outcome, time.time())


def _event(row: Resource, status: str) -> Event:
    return Event(row.name, "CREATE", status, "state changed", row.type, row.key, row.handle)
