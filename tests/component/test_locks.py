"""Observers and passes write about the same things at the same time; neither may have to give way to a deadlock."""

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from homeostat.clock import SystemClock
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.observer import Observer
from homeostat.model.errors import Transient
from homeostat.model.observed import Observation
from homeostat.model.world import Seen
from homeostat.store.database import Database
from homeostat.store.shards import leases, observations, shard_state
from homeostat.store.shards.leases import Lease
from homeostat.store.shards.shard_state import Writes
from tests.contract.store_cases import LEASE_S, NOW, add_stack, claim, resource
from tests.databases import on_a_server

THINGS = 40
ROUNDS = 60


class Contention:
    """One shard of servers in the database and in a cloud; a pass and an observer that write about all of them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.cloud = SimulatedCloud(time.time)
        self.observer = Observer(db, lambda _project: self.cloud, SystemClock(), 60.0, 1.0)
        self.stack_id = add_stack(db)
        self.lease: Lease = claim(db, self.stack_id)
        self.deadlocks: list[str] = []
        writes = Writes()
        for number in range(THINGS):
            made = self.cloud.create("server", [Creation(f"t{number}", {"name": f"n{number}"})])[0]
            assert isinstance(made, Observation)
            row = resource(f"key{number:09d}", self.stack_id, f"r{number}", handle=made.handle)
            writes.insert(row)
            writes.seen[row.key] = (row, Seen(made, 1))
        self._store(writes)

    def _store(self, writes: Writes) -> None:
        with self.db.write() as tx:
            leases.renew(tx, self.lease, NOW, LEASE_S)
            shard_state.record(tx, self.stack_id, writes, NOW)

    def one_pass(self) -> None:
        """Outcomes and looks of every row, as a pass stores them."""
        with self.db.read() as tx:
            rows, seen = shard_state.load_rows(tx, self.stack_id, 0)
        writes = Writes()
        for key, row in rows.items():
            writes.conclude(row)
            writes.seen[key] = (row, Seen(seen[key].observation, seen[key].number + 1))
        self._store(writes)

    def one_look(self, number: int) -> None:
        """A look at every thing, all of which have changed."""
        for handle in self.cloud.things("server"):
            self.cloud.change(handle, metadata={"n": str(number)})
        with self.db.read() as tx:
            watched = observations.in_shards(tx, [(self.stack_id, 0)], ["OS::Nova::Server"])
        self.observer.look(watched)

    def run(self) -> None:
        """Both at once, until one has to give way or all rounds are over."""
        numbers = itertools.count()
        acts = (self.one_pass, lambda: self.one_look(next(numbers)))
        threads = [threading.Thread(target=self._repeat, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, act: Callable[[], None]) -> None:
        for _ in range(ROUNDS):
            if self.deadlocks:
                return
            try:
                act()
            except Transient as error:
                self.deadlocks.append(str(error))


@pytest.mark.heavy
@on_a_server
def test_an_observer_and_a_pass_never_wait_for_each_other(server_database_url: str) -> None:
    db = Database(server_database_url, time.time)
    db.migrate()
    contention = Contention(db)
    contention.run()
    db.close()
    assert contention.deadlocks == []
