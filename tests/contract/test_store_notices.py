"""Notices that something is due: from transaction to listeners, in this process and in others."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from tests.contract.store_cases import LEASE_S, NOW, add_stack, claim, schedule_look, stack_row
from tests.waiting import until

from homeostat.clock import AgreedClock, Entropy
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence.limits import Limits
from homeostat.convergence.worker import Worker
from homeostat.store.database import Database
from homeostat.store.operation import periodic
from homeostat.store.shards import fair_queue, leases, shards
from homeostat.store.sql import notices

WAKE = """
import sys, time
from homeostat.store.shards import shards
from homeostat.store.database import Database
db = Database(sys.argv[1], time.time)
with db.write() as tx:
    shards.wake(tx, sys.argv[2], 0.0, 0)
time.sleep(float(sys.argv[3]))
"""
"""Another process that wakes a stack; PostgreSQL's notice is sent by a thread of it."""
LISTEN = """
import sys, time
from homeostat.store.database import Database
db = Database(sys.argv[1], time.time)
with db.notices.listening(lambda: None):
    while not db.notices.connected:
        time.sleep(0.01)
    print("listening", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def hearing(database: Database) -> Iterator[threading.Event]:
    news = threading.Event()
    with database.notices.listening(news.set):
        until(lambda: database.notices.connected, "notices to come in")
        while news.wait(0.3):  # what was told before may still be on its way
            news.clear()
        yield news


def test_a_stack_that_is_woken_is_notified_once_it_is_committed(database: Database) -> None:
    stack_id = add_stack(database)
    with hearing(database) as news:
        with database.write() as tx:
            shards.wake(tx, stack_id, NOW, shards.USER)
            assert not news.is_set()
        until(news.is_set, "a notice")


def test_what_is_rolled_back_is_not_notified(database: Database) -> None:
    stack_id = add_stack(database)
    with hearing(database) as news:
        with contextlib.suppress(ZeroDivisionError), database.write() as tx:
            shards.wake(tx, stack_id, NOW, shards.USER)
            raise ZeroDivisionError
        with database.write() as tx:  # on the same connection
            tx.execute(text("SELECT 1"))
        assert not news.wait(0.05)


def test_what_makes_nothing_due_is_not_notified(database: Database) -> None:
    stack_id = add_stack(database)
    lease = claim(database, stack_id)
    with hearing(database) as news:
        with database.write() as tx:
            leases.renew(tx, lease, NOW, LEASE_S)
        assert not news.wait(0.05)


@pytest.mark.heavy
def test_notices_of_another_process_arrive(database: Database) -> None:
    stack_id = add_stack(database)
    with hearing(database) as news:
        subprocess.run([sys.executable, "-c", WAKE, database.url, stack_id, "1"], check=True)
        until(news.is_set, "a notice of another process")


def test_what_becomes_due_later_is_waited_for_until_then(database: Database) -> None:
    stack_id = add_stack(database, at=NOW + 30)
    with database.read() as tx:
        waits = [fair_queue.due_in(tx, now, 20.0) for now in (NOW, NOW + 20, NOW + 30, NOW + 40)]
    assert waits == [20.0, 10.0, 0.0, 0.0]
    with database.write() as tx:
        leases.claim(tx, stack_id, 0, "w", NOW + 30, LEASE_S)
    with database.read() as tx:
        assert fair_queue.due_in(tx, NOW + 31, 20.0) == LEASE_S - 1, "its owner may die"


def test_a_look_that_becomes_due_later_is_waited_for_until_then(database: Database) -> None:
    stack_id = add_stack(database)
    with database.read() as tx:
        assert periodic.due_in(tx, NOW, 20.0)[periodic.LOOKS] == 20.0
    with database.write() as tx:
        schedule_look(tx, stack_id, 0, NOW + 30)
    with database.read() as tx:
        waits = [periodic.due_in(tx, now, 20.0)[periodic.LOOKS] for now in (NOW, NOW + 20, NOW + 40)]
    assert waits == [20.0, 10.0, 0.0]


def test_the_pipe_of_a_process_that_was_killed_goes(tmp_path: Path) -> None:
    with contextlib.closing(Database(f"sqlite:///{tmp_path}/db", time.time)) as database:
        database.migrate()
        stack_id = add_stack(database)
        with subprocess.Popen(
            [sys.executable, "-c", LISTEN, database.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert len(os.listdir(tmp_path / "notices-db")) == 1
            other.kill()
        with database.write() as tx:
            shards.wake(tx, stack_id, NOW, shards.USER)
        assert os.listdir(tmp_path / "notices-db") == []


def test_a_full_pipe_does_not_block(tmp_path: Path) -> None:
    """A user who listens is frozen."""
    pipes = notices.Pipes(str(tmp_path / "notices"))
    opened = threading.Event()
    receiving = pipes.receive(lambda: False, opened.set)
    reader = threading.Thread(target=lambda: next(receiving))
    reader.start()
    until(opened.is_set, "a pipe")
    pipes.send()
    reader.join()  # has read one, and reads no more
    for _ in range(100_000):
        pipes.send()
    receiving.close()
    assert os.listdir(tmp_path / "notices") == []


def test_what_is_no_pipe_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "notices"
    directory.mkdir()
    (directory / "readme").write_text("mine")
    notices.Pipes(str(directory)).send()
    assert (directory / "readme").read_text() == "mine"


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_connection_that_breaks_is_listened_to_anew(database: Database) -> None:
    with hearing(database) as news:
        with database.write() as tx:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            assert tx.execute(text(ended)).all()
        until(lambda: not database.notices.connected, "the connection to be missed")
        assert database.notices.longest_wait_s() == notices.LOOK_S, "until then it looks often"
        until(lambda: database.notices.connected, "a new connection")
        news.clear()
        database.notices.notify()
        until(news.is_set, "a notice")


def test_an_idle_worker_asks_seldom(database: Database) -> None:
    """What a worker costs that has nothing to do are its questions: fifty a second once."""
    asked = 0

    def count(_connection: Any, _cursor: Any, statement: str, *_args: object) -> None:
        nonlocal asked
        asked += "FROM latch" not in statement  # MariaDB sends no notices, so they are asked for

    worker = Worker(
        database, SimulatedCloud(time.time), AgreedClock(database.agreed_now), Entropy(), Limits(lease_s=60.0)
    )
    worker.start()
    try:
        until(lambda: database.notices.connected, "notices to come in")
        time.sleep(0.5)
        event.listen(database.engine, "before_cursor_execute", count)
        began = time.monotonic()
        time.sleep(2.0)
        rate = asked / (time.monotonic() - began)
    finally:
        worker.stop()
    assert 0 < rate < 8


GONE: dict[str, Callable[[Path], object]] = {
    "a pipe is removed": lambda directory: next(directory.iterdir()).unlink(),
    "all of it is removed": shutil.rmtree,
    "it is moved away": lambda directory: directory.rename(directory.with_name("elsewhere")),
    "a file is put in its place": lambda directory: another(next(directory.iterdir()), Path.touch),
    "another pipe is put in its place": lambda directory: another(next(directory.iterdir()), os.mkfifo),
}


def another(pipe: Path, make: Callable[[Path], None]) -> None:
    pipe.unlink()
    make(pipe)


@pytest.mark.parametrize("go", GONE.values(), ids=GONE.keys())
def test_a_pipe_that_is_taken_away_is_made_anew(
    tmp_path: Path, go: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "STOP_S", 0.05)
    monkeypatch.setattr(notices, "AGAIN_S", 0.05)
    directory = tmp_path / "notices-db"
    with contextlib.closing(Database(f"sqlite:///{tmp_path}/db", time.time)) as database, hearing(database) as news:
        go(directory)

        def heard() -> bool:
            """That a new pipe was made is news, too; the short time without any may pass unseen."""
            news.clear()
            notices.Pipes(str(directory)).send()
            return news.wait(0.2)

        until(heard, "a new pipe")
        until(lambda: database.notices.connected, "it to be open")
        news.clear()
        notices.Pipes(str(directory)).send()
        until(news.is_set, "a notice")


@pytest.mark.heavy
@pytest.mark.parametrize("error", [errno.EACCES, errno.ENOSPC, errno.EMFILE, errno.ENXIO, errno.EIO])
def test_what_is_committed_is_not_refused_because_notices_cannot_be_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: int
) -> None:
    def fail(*_args: object) -> None:
        raise OSError(error, os.strerror(error), "notices")

    with contextlib.closing(Database(f"sqlite:///{tmp_path}/db", time.time)) as database:
        database.migrate()
        stack_id = add_stack(database)
        monkeypatch.setattr(notices.Pipes, "send", fail)
        for _ in range(3):
            with database.write() as tx:
                shards.wake(tx, stack_id, NOW, shards.USER)
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


def test_one_broken_pipe_does_not_keep_notices_from_the_others(tmp_path: Path) -> None:
    directory = tmp_path / "notices"
    pipes = notices.Pipes(str(directory))
    opened = threading.Event()
    receiving = pipes.receive(lambda: False, opened.set)
    reader = threading.Thread(target=lambda: next(receiving))
    reader.start()
    until(opened.is_set, "a pipe")
    (directory / "0").symlink_to(tmp_path)
    (directory / "g").symlink_to(tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        pipes.send()
    reader.join(60)
    assert not reader.is_alive()
    receiving.close()


@pytest.mark.parametrize("error", [errno.EACCES, errno.ENOSPC])
def test_who_cannot_listen_looks_often_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: int
) -> None:
    tried = 0
    made = os.mkfifo

    def fail(path: str, mode: int = 0o600) -> None:
        nonlocal tried
        tried += 1
        if tried <= 3:
            raise OSError(error, os.strerror(error), path)
        made(path, mode)

    monkeypatch.setattr(notices, "AGAIN_S", 0.01)
    monkeypatch.setattr(os, "mkfifo", fail)
    with contextlib.closing(Database(f"sqlite:///{tmp_path}/db", time.time)) as database:
        assert database.notices.longest_wait_s() == notices.LOOK_S
        with hearing(database):
            assert tried == 4
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


WORKERS = 10


@pytest.mark.heavy
def test_a_notice_has_many_idle_workers_ask_little(database: Database) -> None:
    """All of them wake up; all but one find that there is nothing left to do."""
    limits = Limits(lease_s=60.0)
    cloud = SimulatedCloud(time.time)
    workers = [Worker(database, cloud, AgreedClock(database.agreed_now), Entropy(), limits) for _ in range(WORKERS)]
    asked = 0

    def count(*_args: object) -> None:
        nonlocal asked
        asked += 1

    with contextlib.ExitStack() as context:
        for worker in workers:
            worker.start()
            context.callback(worker.stop)
        until(lambda: database.notices.connected, "notices to come in")
        time.sleep(0.5)
        event.listen(database.engine, "before_cursor_execute", count)
        began = time.monotonic()
        add_stack(database, at=time.time())
        until(lambda: stack_row(database, "p-web").status == "COMPLETE", "the stack")
        asked_for_it, passed_s = asked, time.monotonic() - began
    assert asked_for_it < 30 * WORKERS + passed_s * 3 * WORKERS, "each wakes a few times, and asks a few times"
