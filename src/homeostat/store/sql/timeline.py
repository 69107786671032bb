"""The time of the service: the time of the database's clock, but continuous if the clock is set (ADR 0091).

Each process compares the progress of the clock with the time that has passed. If the clock was set, manually or by NTP,
the service's time does not step with it: its offset from the clock changes by as much, and then shrinks by `RATE`.
The offset is stored in a row, so that all processes agree on the time, including later ones.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, update

from homeostat.store import schema

STEP_S = 10.0
"""Minimum difference that counts as a step of the clock; smaller ones are drift, harmless and corrected by NTP."""
SLOW_S, TRIES = 1.0, 3
"""Maximum latency of a read of the clock that counts, and the number of attempts."""
RATE = 0.05
"""Fraction by which the service's time passes faster or slower until it equals the clock's again."""
_table = schema.timeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """The offset of the service's time from the clock's; all times except `…_s` are times of the clock.

    Attributes:
        generation: The number of steps noticed.
        anchor: When the last step was noticed.
        offset_s: Seconds that the service's time was ahead of the clock then.
        kept_at: The newest time of the clock that a process has stored.
        step_s: Seconds by which the last step set the clock ahead; negative if back.
    """

    generation: int = 0
    anchor: float = 0.0
    offset_s: float = 0.0
    kept_at: float = 0.0
    step_s: float = 0.0

    def ahead_s(self, wall: float, rate: float = RATE) -> float:
        """Return by how much the service's time is ahead of the clock when the clock shows `wall`."""
        made_up = max(wall - self.anchor, 0.0) * rate
        left = max(abs(self.offset_s) - made_up, 0.0)
        return left if self.offset_s > 0 else -left

    def stepped(self, before: float, wall: float, rate: float = RATE) -> "Timeline":
        """Return the timeline after the clock was set: it shows `wall` when it should show `before`."""
        step_s = wall - before
        return Timeline(self.generation + 1, wall, self.ahead_s(before, rate) - step_s, wall, step_s)


class KeptTime:
    """The service's time, as known to a process. Safe to share between threads.

    Args:
        passed: Monotonic seconds, which also pass while the machine sleeps; see `clock.passed`.
        rate: The fraction by which the time approaches the clock again.
    """

    def __init__(self, passed: Callable[[], float], rate: float = RATE) -> None:
        self._passed, self._rate = passed, rate
        self._lock = threading.Lock()
        self._known = Timeline()
        self._last: tuple[float, float] | None = None

    def read(self, look: Callable[[], tuple[float, Timeline | None]]) -> float:
        """Return the service's time.

        Args:
            look: Returns the time of the clock, and the row as the transaction sees it; None if there is no row yet.
        """
        for _ in range(TRIES):
            asked = self._passed()
            wall, stored = look()
            passed = self._passed()
            if passed - asked < SLOW_S:
                return self._judged(wall, passed, stored or Timeline())
        # It is unknown when the clock showed this time, so nothing follows about a step.
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
        """Return the time that the clock should show; None if unknown."""
        if self._last is None:
            # Nobody has noticed steps while no process ran, but a stored time has passed already and cannot come again.
            return row.kept_at if row.kept_at > wall + STEP_S else None
        before = self._last[0] + passed - self._last[1]
        # A suspended machine has missed the passed time, unlike the processes elsewhere: they stored a time in between.
        lives_on = before + STEP_S < row.kept_at <= wall
        return None if lives_on else before

    @property
    def known(self) -> Timeline:
        return self._known


COLUMNS = (_table.c.generation, _table.c.anchor, _table.c.offset_s, _table.c.kept_at, _table.c.step_s)


def clock_and_row(tx: Connection, clock: str, now: Callable[[], float]) -> tuple[float, Timeline | None]:
    """Return the time of the clock, and the row (None if no process has stored a time yet), by one statement.

    Args:
        clock: SQL of the server's clock; "" if there is no server.
        now: The clock of this machine, used if there is no server.
    """
    time, *row = tx.exec_driver_sql(_reading(clock)).one()
    return float(time) if clock else now(), None if row[0] is None else Timeline(*row)


@cache
def _reading(clock: str) -> str:
    """Return SQL in the driver's form: no statement runs more often."""
    columns = ", ".join(f"t.{column.name}" for column in COLUMNS)
    return f"SELECT {clock or '0'}, {columns} FROM (SELECT 1 AS id) one LEFT JOIN timeline t ON t.id = one.id"


def note(tx: Connection, insert: Any, known: Timeline, wall: float) -> None:
    """Store the time of the clock, and a step noticed here, unless another process has stored the step already."""
    values = {"id": 1, **{column.name: getattr(known, column.name) for column in COLUMNS}, "kept_at": wall}
    same = tx.execute(
        update(_table).where(_table.c.id == 1, _table.c.generation == known.generation).values(kept_at=wall)
    )
    if same.rowcount:
        return
    newer = tx.execute(update(_table).where(_table.c.id == 1, _table.c.generation < known.generation).values(values))
    if not newer.rowcount:
        tx.execute(insert(_table).values(values).on_conflict_do_nothing(index_elements=["id"]))
