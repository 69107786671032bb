"""Results of checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

CLOCKS_S = 1.0
"""Tolerated difference of clocks."""
SHOWN_MAX = 5
"""Number of items that a check lists."""


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check; `remedy` is empty if all is well."""

    name: str
    level: Level
    found: str
    remedy: str = ""


def named(items: Sequence[str], separator: str = "; ") -> str:
    """Join the first items, with the number of the rest."""
    more = f" and {len(items) - SHOWN_MAX} more" if len(items) > SHOWN_MAX else ""
    return separator.join(items[:SHOWN_MAX]) + more
