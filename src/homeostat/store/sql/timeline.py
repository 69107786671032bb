"""The time of the service: that of the database's clock, which goes on evenly where that clock is set (ADR 0091).

Each process compares what the clock has shown with how much time has passed since. Where the clock was set, by hand or
by NTP, the service's time does not step with it: it is off by as much from then on, and comes closer by `RATE`.
What has been noticed is a row, so that all processes have one time, also those that start later.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, update

from homeostat.store import schema

STEP_S = 10.0
"""Difference that is a step of the clock; a smaller one is drift, which NTP mends, and does no harm."""
SLOW_S, TRIES = 1.0, 3
"""Time that an answer may take which says when it was, and how often it is asked for."""
RATE = 0.05
"""Part by which the service's time passes faster or slower until it is the clock's again."""
_table = schema.timeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """How far the service's time is from the clock's; all times but those in `…_s` are the clock's.

    Attributes:
        generation: How many steps were noticed.
        anchor: When the last one was noticed.
        offset_s: Seconds that the service's time was ahead of the clock then.
        kept_at: The newest time of the clock that a process has noted.
        step_s: Seconds by which the clock was set ahead in the last step; negative where it was set back.
    """

    generation: int = 0
    anchor: float = 0.0
    offset_s: float = 0.0
    kept_at: float = 0.0
    step_s: float = 0.0

    def ahead_s(self, wall: float, rate: float = RATE) -> float:
        """Return by how much the service's time is ahead of the clock when that shows `wall`."""
        made_up = max(wall - self.anchor, 0.0) * rate
        left = max(abs(self.offset_s) - made_up, 0.0)
        return left if self.offset_s > 0 else -left

    def stepped(self, before: float, wall: float, rate: float = RATE) -> "Timeline":
        """Return what holds after the clock was set: it shows `wall` when it should show `before`."""
        step_s = wall - before
        return Timeline(self.generation + 1, wall, self.ahead_s(before, rate) - step_s, wall, step_s)


class KeptTime:
    """The service's time, as one process knows it. Safe to share between threads.

    Args:
        passed: Seconds that never step, and go on while the machine sleeps; see `clock.passed`.
        rate: The part by which it comes closer to the clock again.
    """

    def __init__(self, passed: Callable[[], float], rate: float = RATE) -> None:
        self._passed, self._rate = passed, rate
        self._lock = threading.Lock()
        self._known = Timeline()
        self._last: tuple[float, float] | None = None

    def read(self, look: Callable[[], tuple[float, Timeline | None]]) -> float:
        """Return the service's time.

        Args:
            look: Returns what the clock shows, and the row, as the transaction sees it; None where there is none yet.
        """
        for _ in range(TRIES):
            asked = self._passed()
            wall, stored = look()
            passed = self._passed()
            if passed - asked < SLOW_S:
                return self._judged(wall, passed, stored or Timeline())
        # When it was that the clock showed this is not known: it says nothing about a step.
        with self._lock:
            return wall + self._known.ahead_s(wall, self._rate)

    def _judged(self, wall: float, passed: float, row: Timeline) -> float:
        with self._lock:
            noticed = row.generation > self._known.generation
            if row.generation >= self._known.generation:
                self._known = row
            if not noticed:
                before = self._expected(wall, passed, row)
                if before is not None and abs(wall - before) > STEP_S:
                    self._known = self._known.stepped(before, wall, self._rate)
            self._last = wall, passed
            return wall + self._known.ahead_s(wall, self._rate)

    def _expected(self, wall: float, passed: float, row: Timeline) -> float | None:
        """Return what the clock should show; None where that is not known."""
        if self._last is None:
            # Nobody has noticed what happened while no process ran: time that was noted already cannot come again.
            return row.kept_at if row.kept_at > wall + STEP_S else None
        before = self._last[0] + passed - self._last[1]
        # A machine that was stopped has not seen time pass, which others have: they noted a time in between.
        lives_on = before + STEP_S < row.kept_at <= wall
        return None if lives_on else before

    @property
    def known(self) -> Timeline:
        return self._known


COLUMNS = (_table.c.generation, _table.c.anchor, _table.c.offset_s, _table.c.kept_at, _table.c.step_s)


def clock_and_row(tx: Connection, clock: str, now: Callable[[], float]) -> tuple[float, Timeline | None]:
    """Return what the clock shows, and the row, by one statement; None for the row where nobody has noted a time yet.

    Args:
        clock: SQL of the server's clock; "" where there is none.
        now: The clock of this machine, where there is no server.
    """
    shown, *row = tx.exec_driver_sql(_reading(clock)).one()
    return float(shown) if clock else now(), None if row[0] is None else Timeline(*row)


@cache
def _reading(clock: str) -> str:
    """Return SQL as it is sent: it is asked more often than anything else."""
    columns = ", ".join(f"t.{each.name}" for each in COLUMNS)
    return f"SELECT {clock or '0'}, {columns} FROM (SELECT 1 AS id) one LEFT JOIN timeline t ON t.id = one.id"


def note(tx: Connection, insert: Any, known: Timeline, wall: float) -> None:
    """Note the time of the clock, and a step that was noticed here, unless another process has noted that already."""
    values = {"id": 1, **{each.name: getattr(known, each.name) for each in COLUMNS}, "kept_at": wall}
    same = tx.execute(
        update(_table).where(_table.c.id == 1, _table.c.generation == known.generation).values(kept_at=wall)
    )
    if same.rowcount:
        return
    newer = tx.execute(update(_table).where(_table.c.id == 1, _table.c.generation < known.generation).values(values))
    if not newer.rowcount:
        tx.execute(insert(_table).values(values).on_conflict_do_nothing(index_elements=["id"]))
