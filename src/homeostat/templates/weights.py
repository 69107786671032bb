"""Weight of values: the size they have when written out, or kept in memory without shared parts.

Functions hand values on without copying them, so a value that holds another one twice costs nothing until it is stored.
Doubling forty times exceeds any memory: each value that a template makes is weighed before it is used further.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.templates.yaml_parser import DEPTH_MAX

VALUE_WEIGHT = 32
"""Weight of a value besides its characters: the memory that even an empty one takes."""


class Unacceptable(ValueError):
    """A template is wrong whatever values its functions get, or makes values that are too large.

    It is refused at once, also in outputs, where other wrong values cause an error only when the output is read.
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
