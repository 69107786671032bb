"""What a worker does beside the passes: begun when it is due, never twice at once, and tried again when it fails."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from homeostat.convergence.threads.periodic import PeriodicTask, PeriodicTasks
from homeostat.store.database import Database, sqlite_url
from homeostat.store.operation import periodic
from homeostat.store.shards import orphans
from homeostat.store.shards.orphans import Orphan
from tests.waiting import until

NAMES = (periodic.LOOKS, periodic.ORPHANS, periodic.SNAPSHOTS, periodic.EVENTS)


class Work:
    """Something to do; `go` lets it end."""

    def __init__(self, did: int = 1, go: bool = True) -> None:
        self.begun = 0
        self.go = threading.Event()
        self._did = did
        if go:
            self.go.set()

    def __call__(self) -> int:
        self.begun += 1
        assert self.go.wait(60)
        return self._did


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(Database(sqlite_url(tmp_path / "db"), time.time)) as db:
        db.migrate()
        yield db


@contextlib.contextmanager
def doing(db: Database, late: Callable[[], int]) -> Iterator[PeriodicTasks]:
    """`late` is due as long as something is to be looked for; nothing else is."""
    other = Work()
    runs: dict[str, Callable[[], int]] = {**dict.fromkeys(NAMES, other), periodic.ORPHANS: late}
    running = PeriodicTasks(db, [PeriodicTask(name, runs[name], 0.01) for name in NAMES])
    running.start()
    try:
        yield running
    finally:
        running.stop()
        assert other.begun == 0


def lose(db: Database, due_at: float) -> None:
    with db.write() as tx:
        orphans.add(tx, [Orphan("token", "volume", "p")], due_at - orphans.LOOK_S)


def find(db: Database) -> None:
    with db.write() as tx:
        orphans.drop(tx, ["token"])


def test_what_is_due_is_done_until_it_is_not(db: Database) -> None:
    work = Work()
    with doing(db, work) as running:
        lose(db, db.now())
        running.nudge()
        until(lambda: work.begun >= 3)
        find(db)
        until(lambda: running.begin_due() > 0.0)


def test_without_a_nudge_it_is_begun_when_it_becomes_due(db: Database) -> None:
    work = Work()
    due_at = db.now() + 0.2
    lose(db, due_at)
    with doing(db, work):
        until(lambda: work.begun)
        assert db.now() >= due_at


def test_what_goes_on_is_not_begun_again(db: Database) -> None:
    work = Work(go=False)
    lose(db, db.now())
    with doing(db, work) as running:
        until(lambda: work.begun)
        assert [running.begin_due() > 0.0 for _ in range(5)] == [True] * 5, "it is not asked for all the time"
        assert work.begun == 1
        work.go.set()
        until(lambda: work.begun > 1)


def test_what_fails_is_tried_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.convergence.threads.periodic.RETRY_S", 0.01)
    begun = 0

    def broken() -> int:
        nonlocal begun
        begun += 1
        raise ValueError("broken")

    lose(db, db.now())
    with doing(db, broken):
        until(lambda: begun >= 3)


def test_while_nothing_is_due_there_is_one_question_for_all(db: Database) -> None:
    asked = 0

    def count(*_args: object) -> None:
        nonlocal asked
        asked += 1

    running = PeriodicTasks(db, [PeriodicTask(name, Work(), 0.01) for name in NAMES])
    event.listen(db.engine, "before_cursor_execute", count)
    running.begin_due()
    assert asked == 2, "BEGIN, and the question"
