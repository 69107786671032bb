"""What a check of the service gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

CLOCKS_S = 1.0
"""Difference of clocks that is tolerated."""
SHOWN_MAX = 5
"""Things of one kind that a check names."""


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        found: What was found.
        remedy: What to do; empty where all is well.
    """

    name: str
    level: Level
    found: str
    remedy: str = ""


def named(found: Sequence[str], separator: str = "; ") -> str:
    """Return the first of many things in one text."""
    more = f" and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
    return separator.join(found[:SHOWN_MAX]) + more
