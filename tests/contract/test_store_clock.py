"""A clock that is set: the service's time goes on evenly, on every database and in every process."""

import contextlib
import re
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from homeostat.doctor.checks import Level
from homeostat.doctor.database import LOOKS
from homeostat.store.database import Database
from homeostat.store.sql.timeline import RATE, KeptTime, Timeline

HOUR_S = 3600.0
CLOSE_S = 5.0


class Passed:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


class Process(Database):
    """One process of the service. set_by — how far its database's clock was set ahead."""

    def __init__(self, url: str) -> None:
        self.set_by = 0.0
        self.passed = Passed()
        super().__init__(url, lambda: time.time() + self.set_by, passed=self.passed)
        self._clock = self.backend.clock

    def set_clock(self, by_s: float) -> None:
        self.set_by += by_s
        if self._clock:
            self.backend.clock = f"{self._clock} + ({self.set_by})"

    def shown(self) -> float:
        """The service's time, as a difference from the right one."""
        with self.read() as tx:
            return self.now_of(tx) - time.time()

    def note(self) -> None:
        with self.write() as tx:
            self.note_time(tx)


@pytest.fixture
def processes(database: Database) -> Iterator[tuple[Process, Process, Process]]:
    """Three on one database; the last one has not started yet."""
    url = database.engine.url.render_as_string(hide_password=False)
    with contextlib.ExitStack() as stack:
        one, other, later = (stack.enter_context(contextlib.closing(Process(url))) for _ in range(3))
        yield one, other, later


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_the_time_of_the_service_goes_on_where_the_clock_is_set(
    processes: tuple[Process, Process, Process], step_s: float
) -> None:
    one, other, later = processes
    for each in (one, other):
        each.note()
        assert abs(each.shown()) < CLOSE_S
    for each in processes:
        each.set_clock(step_s)
    assert abs(one.shown()) < CLOSE_S
    assert abs(other.shown()) < CLOSE_S
    other.note()
    one.note()
    assert abs(later.shown()) < CLOSE_S
    assert {each.kept_time.known.generation for each in processes if each.kept_time is not None} == {1}
    assert abs(later.agreed_now() - time.time()) < CLOSE_S


def test_a_clock_that_was_set_back_while_no_process_ran_is_noticed(
    processes: tuple[Process, Process, Process],
) -> None:
    one, _, later = processes
    one.note()
    later.set_clock(-HOUR_S)
    assert abs(later.shown()) < CLOSE_S


def test_a_machine_that_was_stopped_takes_the_time_of_the_others_for_right(
    processes: tuple[Process, Process, Process],
) -> None:
    """The others have lived on for an hour, and have noted so; by the machine that was stopped no time has passed."""
    stopped, living, _ = processes
    stopped.note()
    living.note()
    living.passed.s += HOUR_S
    stopped.passed.s += 2.0
    for each in (living, stopped):
        each.set_clock(HOUR_S)
    living.note()
    assert abs(stopped.shown() - HOUR_S) < CLOSE_S
    assert stopped.kept_time is not None
    assert stopped.kept_time.known.generation == 0


def test_the_doctor_warns_of_a_clock_that_was_set(processes: tuple[Process, Process, Process]) -> None:
    one, *_ = processes
    one.note()
    one.set_clock(-HOUR_S)
    with one.read() as tx:
        (found,) = [each for each in (look(tx) for look in LOOKS) if each.name == "clocks"]
    said = re.search(r"the clock was set back by (\d+) s", found.found)
    assert found.level == Level.WARN
    assert said is not None
    # By the clock of the database time has passed meanwhile, by that of the process none.
    assert abs(int(said[1]) - HOUR_S) < CLOSE_S


# -- the value -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_the_time_of_the_service_comes_closer_and_never_goes_back(step_s: float) -> None:
    stepped = Timeline().stepped(100.0, 100.0 + step_s)
    began = 100.0 + step_s
    times = [wall + stepped.ahead_s(wall) for wall in (began + each for each in range(0, 100_000, 100))]
    assert times[0] == 100.0
    paces = [(after - before) / 100 for before, after in pairwise(times)]
    assert (min(paces) >= 1 - RATE - 1e-6, max(paces) <= 1 + RATE + 1e-6) == (True, True)
    assert stepped.ahead_s(began + 80_000) == 0.0


def test_an_answer_that_came_late_says_nothing_about_a_step() -> None:
    passed = Passed()
    kept = KeptTime(passed)
    kept.read(lambda: (100.0, None))

    def slow() -> tuple[float, None]:
        passed.s += 20.0
        return 100.0, None

    assert kept.read(slow) == 100.0
    assert kept.known.generation == 0
