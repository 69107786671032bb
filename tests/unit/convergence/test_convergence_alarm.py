"""What wakes an idle conductor."""

from typing import Any

import pytest

from homeostat.convergence import conductor
from homeostat.convergence.conductor import Alarm

LONG_S = 1e6
"""A test that waits for this does not end."""


class Board:
    """Has a job after so many questions."""

    def __init__(self, after: int) -> None:
        self.asked = 0
        self._after = after

    def waiting(self) -> bool:
        self.asked += 1
        return self.asked > self._after


def alarm_of(board: Any) -> Alarm:
    return Alarm(board)


def test_a_nudge_has_it_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor, "LOOK_S", LONG_S)
    monkeypatch.setattr(conductor, "LONGEST_WAIT_S", LONG_S * 2)
    board = Board(after=0)
    alarm = alarm_of(board)
    alarm.nudge()
    alarm.wait()
    assert board.asked == 1


def test_without_one_it_asks_again_and_again() -> None:
    board = Board(after=2)
    alarm_of(board).wait()
    assert board.asked == 3


def test_one_nudge_is_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor, "LOOK_S", 0.001)
    monkeypatch.setattr(conductor, "LONGEST_WAIT_S", 0.005)
    board = Board(after=100)
    alarm = alarm_of(board)
    alarm.nudge()
    alarm.wait()
    assert board.asked == 5, "it gave up after the longest wait"


def test_it_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(after=100)
    alarm = alarm_of(board)
    alarm.interrupt()
    alarm.wait()
    assert board.asked == 0
