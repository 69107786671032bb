"""How much values weigh: what they take when they are written out, or kept in memory without shared parts.

Functions hand values on without copying them, so a value that holds another one twice costs nothing until it is stored.
Forty times twice is more than any machine has: whatever a template can make is weighed before it goes any further.
"""

from collections.abc import Mapping
from typing import Any

from homeostat.templates.yaml_parser import DEPTH_MAX

VALUE_WEIGHT = 32
"""A value takes at least as much memory as so many characters."""


class Unacceptable(ValueError):
    """A template is wrong whatever values its functions get, or what they make is too much: refused at once, also where
    other wrong values wait until somebody asks for the output."""


class TooHeavy(Unacceptable):
    """A value weighs more than it may."""


def weight(tree: Any, most: int) -> int:
    """Characters in `tree`, parts that are shared counted each time; each value and key counts `VALUE_WEIGHT` more,
    and a character outside of ASCII as much as its bytes.

    Looks no further than needed. Fails: Overweight for more than `most`, ValueError for values nested too deeply.
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
