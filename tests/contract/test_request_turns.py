"""Processes keep one limit of requests together, and use it."""

import contextlib
import threading
import time

import pytest

from homeostat.clouds.openstack.budget import SLICE_S, Budget
from homeostat.model.rates import Rate
from homeostat.store.database import Database
from homeostat.store.operation.request_turns import RequestTurns, free_in

PROCESSES, THREADS = 4, 3
RUN_S = 3.0


def test_turns_follow_one_another_and_none_is_given_twice(database: Database) -> None:
    one, other, rate = RequestTurns(database), RequestTurns(database), Rate(1.0, 3)
    first, _ = one.take("compute", rate, 4, 10.0)
    second, free_s = other.take("compute", rate, 2, 10.0)
    assert first[:3] == [0.0, 0.0, 0.0]
    assert [*first[3:], *second] == pytest.approx([1.0, 2.0, 3.0], abs=0.9)
    assert free_s == pytest.approx(4.0, abs=0.9)
    assert one.take("network", rate, 1, 0.0)[0] == [0.0]
    assert set(free_in(database)) == {"compute", "network"}


def test_turns_too_far_away_are_left(database: Database) -> None:
    turns, rate = RequestTurns(database), Rate(1.0, 1)
    given, free_s = turns.take("compute", rate, 100, 5.0)
    assert len(given) == 6
    assert turns.take("compute", rate, 1, 1.0)[0] == []
    assert free_s == pytest.approx(6.0)


def test_a_clock_that_was_set_back_stops_nothing(database: Database) -> None:
    turns, rate = RequestTurns(database), Rate(1.0, 1)
    turns.take("compute", rate, 1, 5.0)
    database.now = lambda: time.time() - 3600
    again = turns.take("compute", rate, 1, 5.0)[0]
    # PostgreSQL's own clock decides.
    assert again == [0.0] if database.is_sqlite else again == pytest.approx([1.0], abs=0.9)


class Process:
    """One process of the service: connections and turns of its own."""

    def __init__(self, url: str, rate: Rate) -> None:
        self._db = Database(url, time.time)
        self._budget = Budget({"": rate}, RequestTurns(self._db))
        self.sent: list[float] = []

    def send(self, until: float) -> None:
        while True:
            self._budget.take("compute")
            now = time.monotonic()
            if now > until:
                return
            self.sent.append(now)

    def close(self) -> None:
        self._db.close()


def test_processes_keep_the_limit_together(database: Database) -> None:
    rate = Rate(100.0, 10)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(contextlib.closing(Process(database.url, rate))) for _ in range(PROCESSES)]
        started = time.monotonic()
        threads = [
            threading.Thread(target=each.send, args=(started + RUN_S,)) for each in processes for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Bounded by the time that it took, however busy the machine; how fully the limit is used is seen in virtual time.
    took_s = max(at for each in processes for at in each.sent) - started
    assert all(each.sent for each in processes)
    assert sum(len(each.sent) for each in processes) <= rate.per_s * (took_s + SLICE_S) + rate.burst
