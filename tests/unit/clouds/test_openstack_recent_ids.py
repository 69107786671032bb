"""What was noted about things for some seconds."""

import sys
import threading
from collections.abc import Iterator

import pytest

from homeostat.clouds.openstack.recent_ids import RecentIds


def test_what_was_noted_is_known_for_a_while() -> None:
    now = [0.0]
    recent_ids = RecentIds(10, 5.0, lambda: now[0])
    recent_ids.note(["one", "two"])
    now[0] = 4.9
    recent_ids.note(["three"])
    assert recent_ids.recent(["one", "three", "four"]) == {"one", "three"}
    now[0] = 5.1
    assert recent_ids.recent(["one", "three", "four"]) == {"three"}


def test_what_is_forgotten_is_not_known() -> None:
    recent_ids = RecentIds(10, 5.0)
    recent_ids.note(["one", "two"])
    recent_ids.forget(["one", "three"])
    assert recent_ids.recent(["one", "two", "three"]) == {"two"}


def test_the_oldest_gives_way() -> None:
    recent_ids = RecentIds(2, 5.0)
    recent_ids.note(["one", "two", "three"])
    assert recent_ids.recent(["one", "two", "three"]) == {"two", "three"}


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns so often that they meet in the middle of everything."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_may_note_and_ask_at_once() -> None:
    recent_ids = RecentIds(50, 0.001)
    errors: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for step in range(500):
                ids = [f"{number}-{step}-{each}" for each in range(5)]
                recent_ids.note(ids)
                assert recent_ids.recent(ids) <= {*ids}
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
