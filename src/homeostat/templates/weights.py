"""Weight of values: their size when written out, or when stored in memory without shared parts.

Functions pass values on without a copy, so a value that contains another value twice costs nothing until it is stored.
Doubling forty times exceeds any memory: each value computed by a template is weighed before further use.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.templates.yaml_parser import DEPTH_MAX

VALUE_WEIGHT = 32
"""Weight of a value besides its characters: the memory of an empty value."""


class Unacceptable(ValueError):
    """A template is wrong whatever values its functions get, or computes values that are too large.

    Refused at once, even in outputs; all other wrong values there cause an error only when the output is read.
    """


class TooHeavy(Unacceptable):
    """A value weighs more than allowed."""


def weight(tree: Any, most: int) -> int:
    """Return the weight of plain data: its characters, plus `VALUE_WEIGHT` for each value and key.

    Shared parts count each time. Each character of a text that is not ASCII counts 4. The walk stops at `most`.

    Raises:
        TooHeavy: The weight exceeds `most`.
        ValueError: Values are nested too deeply.
    """
    total, depth, level = 0, 0, [tree]
    while level:
        if depth > DEPTH_MAX:
            raise ValueError(f"a value is nested more than {DEPTH_MAX} levels deep")
        total += VALUE_WEIGHT * len(level)
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                total += _length(value)
            elif isinstance(value, Mapping):
                total += sum(VALUE_WEIGHT + _length(key) for key in value)
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
            if total + VALUE_WEIGHT * len(below) > most:
                raise TooHeavy(f"values and characters are more than {most}")
        level, depth = below, depth + 1
    return total


def _length(text: Any) -> int:
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else 4 * len(text)
