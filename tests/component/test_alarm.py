"""What wakes an idle conductor."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from homeostat.convergence.jobs import conductor
from homeostat.convergence.jobs.conductor import Alarm
from homeostat.model.errors import Transient

LONG_S = 1e6
"""A test that waits for this does not end."""


class Board:
    """Has a job after so many questions; until then it says that the next one is due in `due_s`."""

    def __init__(self, after: int, due_s: float = LONG_S) -> None:
        self.asked = 0
        self.within: list[float] = []
        self._after = after
        self._due_s = due_s

    def due_in(self, within_s: float) -> float:
        self.asked += 1
        self.within.append(within_s)
        return 0.0 if self.asked > self._after else min(self._due_s, within_s)


@pytest.fixture(autouse=True)
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor, "REFRESH_S", LONG_S)


def alarm_of(board: Any, longest_s: Callable[[], float] = lambda: LONG_S) -> Alarm:
    return Alarm(board, longest_s)


def test_what_is_due_is_found_without_a_notice() -> None:
    board = Board(after=0)
    alarm_of(board).wait()
    assert board.asked == 1


def test_a_nudge_has_it_ask_at_once() -> None:
    board = Board(after=1)
    alarm = alarm_of(board)
    waiting = threading.Thread(target=alarm.wait)
    waiting.start()
    while waiting.is_alive():  # a nudge before it waits is heard by the question that comes then
        alarm.nudge()
        waiting.join(0.01)
    assert board.asked == 2


def test_it_asks_again_when_the_next_one_is_due() -> None:
    board = Board(after=2, due_s=0.001)
    alarm_of(board).wait()
    assert board.asked == 3


def test_a_notice_may_be_lost() -> None:
    board = Board(after=2)
    alarm_of(board, lambda: 0.001).wait()
    assert (board.asked, board.within) == (3, [0.001] * 3)


def test_it_gives_up_after_the_longest_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor, "REFRESH_S", 0.005)
    board = Board(after=1_000_000, due_s=0.001)
    alarm_of(board).wait()
    assert 1 <= board.asked < 1_000_000


def test_a_board_that_does_not_answer_is_asked_again() -> None:
    class Broken(Board):
        def due_in(self, within_s: float) -> float:
            if super().due_in(within_s):
                raise Transient("gone")
            return 0.0

    board = Broken(after=2)
    alarm_of(board, lambda: 0.001).wait()
    assert board.asked == 3


def test_it_asks_nothing_while_it_can_claim_nothing() -> None:
    board, full = Board(after=0), [True, True, False]
    alarm = Alarm(board, lambda: LONG_S, lambda: full.pop(0))  # type: ignore[arg-type]
    waiting = threading.Thread(target=alarm.wait)
    waiting.start()
    while waiting.is_alive():  # by the end of a pass
        alarm.nudge()
        waiting.join(0.01)
    assert (board.asked, full) == (1, [])


def test_a_conductor_that_is_full_leaves_the_board_alone_until_a_pass_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are due all the time, and there is a place for one pass."""
    entered, ends = threading.Semaphore(0), threading.Semaphore(0)

    def run_pass(*_: Any) -> None:
        entered.release()
        ends.acquire()

    class Full(Board):
        listed = 0

        def iterjobs(self, **_: Any) -> Any:
            self.listed += 1
            return iter([SimpleNamespace(name="a"), SimpleNamespace(name="b")])

        def claim(self, *_: Any) -> None: ...

        consume = abandon = register_entity = claim

    monkeypatch.setattr(conductor, "run_pass", run_pass)
    board = Full(after=0)
    reconciler: Any = SimpleNamespace(db=SimpleNamespace(notices=SimpleNamespace(longest_wait_s=lambda: LONG_S)))
    working = conductor.ShardConductor("w", cast(Any, board), reconciler, passes_max=1)
    running = threading.Thread(target=working.run)
    running.start()
    for passes in (1, 2, 3):
        entered.acquire()
        time.sleep(0.1)  # time to ask again and again, as it did once
        assert board.listed + board.asked <= 5 * passes
        ends.release()
    working.stop()
    ends.release(5)
    running.join(60)
    assert not running.is_alive()


def test_a_pass_that_cannot_be_given_back_leaves_its_place_all_the_same() -> None:
    class Away(Board):
        def consume(self, *_: Any) -> None:
            raise Transient("gone")

    reconciler: Any = SimpleNamespace(db=SimpleNamespace(notices=SimpleNamespace(longest_wait_s=lambda: LONG_S)))
    working = conductor.ShardConductor("w", cast(Any, Away(after=0)), reconciler, passes_max=1)
    ended: Future[bool] = Future()
    ended.set_result(True)
    working._dispatched.add(ended)
    waiting = threading.Thread(target=working._wait_timeout.wait, daemon=True)
    waiting.start()
    with pytest.raises(Transient):
        working._on_job_done(cast(Any, SimpleNamespace(name="a")), ended)
    waiting.join(60)
    assert not waiting.is_alive()


def test_it_ends_when_it_is_stopped() -> None:
    board = Board(after=100)
    alarm = alarm_of(board)
    waiting = threading.Thread(target=alarm.wait)
    waiting.start()
    alarm.interrupt()
    waiting.join(60)
    assert not waiting.is_alive()
