"""Writers of an SQLite file wait for their turn in a queue of the operating system."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from homeostat.model.errors import Outage
from homeostat.store.sql import write_queue
from homeostat.store.sql.write_queue import WriteQueue

HOLD = """
import sys
from homeostat.store.sql.write_queue import WriteQueue
with WriteQueue(sys.argv[1]).turn():
    print("there", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "queue")


def test_one_at_a_time(path: str) -> None:
    """Threads too, although a process has a lock on a file only once."""
    inside, most = 0, 0
    lock = threading.Lock()

    def write() -> None:
        nonlocal inside, most
        for _ in range(50):
            with WriteQueue(path).turn():
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_the_turn_of_a_process_that_dies_is_over(path: str) -> None:
    with holding(path) as process:
        waited = threading.Thread(target=lambda: WriteQueue(path).turn().__enter__())
        waited.start()
        assert waited.is_alive()
        process.kill()
        waited.join(timeout=30.0)
        assert not waited.is_alive()


def test_no_one_waits_for_ever(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "PATIENCE_S", 0.05)
    with holding(path) as process:
        with pytest.raises(Outage) as caught, WriteQueue(path).turn():
            pass
        assert "it has been locked for" in caught.value.details
        process.kill()
        process.wait()
    monkeypatch.setattr(write_queue, "PATIENCE_S", 30.0)
    with WriteQueue(path).turn():
        """A process that gave up does not hold it either."""


def test_a_turn_ends_with_an_error(path: str) -> None:
    with pytest.raises(ZeroDivisionError), WriteQueue(path).turn():
        raise ZeroDivisionError
    with WriteQueue(path).turn():
        """It is free again."""


def holding(path: str) -> "subprocess.Popen[str]":
    """A process whose turn it is."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    return process
