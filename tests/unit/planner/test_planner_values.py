"""The small parts of deciding: which row is current, names, backoff."""

from typing import Any

import pytest
from tests.unit.planner.worlds import NOW, row, world

from homeostat.model.marks import Marks, UnhealthyMark
from homeostat.planner.current import current_row
from homeostat.planner.names import physical_name, token
from homeostat.planner.retry.policy import RETRY
from homeostat.resources.base import NAME_LIMIT

CURRENT: dict[str, Any] = {
    "nothing is there": ([], {}, None),
    "the only one": ([row("a")], {}, "a1"),
    "a replacement under way goes before the old one": (
        [row("a", born=1), row("a", state="CREATE_IN_PROGRESS", key="a2", born=2)],
        {"revision": 2},
        "a2",
    ),
    "the old one goes before a replacement that failed at an earlier revision": (
        [row("a", born=1), row("a", state="CREATE_FAILED", key="a2", born=2, revision=2)],
        {"revision": 3},
        "a1",
    ),
    "a failure at the newest revision stands for the name": (
        [row("a", born=1), row("a", state="CREATE_FAILED", key="a2", born=2, revision=2)],
        {"revision": 2},
        "a2",
    ),
    "a row whose deletion has begun is nobody's": (
        [row("a", born=1), row("a", state="DELETE_IN_PROGRESS", key="a2", born=2, revision=2)],
        {"revision": 2},
        "a1",
    ),
    "a row whose deletion failed is nobody's": ([row("a", state="DELETE_FAILED")], {}, None),
    "a rollback takes the old one back though the new one is done": (
        [row("a", born=1), row("a", key="a2", born=2, revision=2)],
        {"revision": 3, "rollback_to": 1},
        "a1",
    ),
    "a rollback does not take back what was never complete": (
        [row("a", state="CREATE_FAILED", born=1), row("a", key="a2", born=2, revision=2)],
        {"revision": 3, "rollback_to": 1},
        "a2",
    ),
    "a rollback keeps the successor of what is marked unhealthy": (
        [row("a", born=1, marks=Marks(UnhealthyMark("by hand", NOW))), row("a", key="a2", born=2, revision=2)],
        {"revision": 3, "rollback_to": 1},
        "a2",
    ),
    "a rollback keeps what it has made itself": (
        [row("a", born=1), row("a", state="CREATE_IN_PROGRESS", key="a3", born=3, revision=3)],
        {"revision": 3, "rollback_to": 1},
        "a3",
    ),
}


@pytest.mark.parametrize("reason", CURRENT)
def test_which_row_is_the_resource(reason: str) -> None:
    rows, stack, expected = CURRENT[reason]
    for given in (rows, rows[::-1]):
        found = current_row(given, world(**stack).stack)
        assert (found.key if found else None) == expected


@pytest.mark.parametrize(
    ("attempt", "asked_s", "expected"),
    [
        (1, None, 1.0),
        (2, None, 2.0),
        (6, None, 32.0),
        (7, None, 60.0),
        (10_000, None, 60.0),
        (3, 7.5, 7.5),
        (1, 0.0, 0.1),
    ],
    ids=["first", "doubles", "still grows", "has a limit", "for ever", "as the cloud asks", "but never at once"],
)
def test_delay(attempt: int, asked_s: float | None, expected: float) -> None:
    assert RETRY.delay_s(attempt, asked_s) == expected


def test_physical_names() -> None:
    assert physical_name("web", "srv", "abcdefghijkl") == "web-srv-abcdefghijkl"


def test_a_long_physical_name_keeps_its_beginning_and_its_unique_end() -> None:
    name = physical_name("stack" * 10, "resource" * 10, "abcdefghijkl")
    assert len(name) == NAME_LIMIT
    assert name.startswith("st-")
    assert name.endswith("resource-abcdefghijkl")


def test_names_at_the_limit_stay_whole() -> None:
    assert physical_name("s" * 40, "r" * 9, "abcdefghijkl") == f"{'s' * 40}-{'r' * 9}-abcdefghijkl"


def test_each_creation_has_a_token_of_its_own() -> None:
    assert token("abc", 1) != token("abc", 2) != token("abd", 2)
    assert token("abc", 2).rpartition("-")[0] == "abc", "the row is found by its token"
