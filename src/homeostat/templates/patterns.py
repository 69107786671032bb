"""Regular expressions of users, in Python's syntax, compiled and matched in bounded time and memory."""

import re
from functools import lru_cache
from typing import Any

import regex

LENGTH_MAX = 4096
"""Longest expression, in characters."""
UNROLLED_MAX = 100_000
"""Most characters of an expression with its repetitions written out, as the library does for fixed counts."""
MATCH_S = 0.5
"""Most seconds for one match, which normally takes far less unless the expression backtracks catastrophically."""
_MATCHES_S, _MATCH_MIN_S = 5.0, 0.001
"""Seconds for all matches of a template together, and the least share of each match."""

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<times>\d+)(?:,\d*)?\}|.", re.DOTALL)
Pattern = Any
"""A compiled expression; the library has no types."""


class TooComplicated(ValueError):
    """The expression took too long, or could take too long."""

    def __init__(self, why: str) -> None:
        """Create the error; `why` completes the message."""
        super().__init__(f"the expression is too complicated: {why}")


@lru_cache(maxsize=256)
def compiled(expression: str, flags: int = 0) -> Pattern:
    """Compile an expression.

    Raises:
        ValueError: The text is not a regular expression.
        TooComplicated: The expression is too large.
    """
    if len(expression) > LENGTH_MAX:
        raise TooComplicated(f"it is longer than {LENGTH_MAX} characters")
    if _unrolled(expression) > UNROLLED_MAX:
        raise TooComplicated(f"it repeats more than {UNROLLED_MAX} characters")
    try:
        return regex.compile(expression, flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def match_s(count: int) -> float:
    """Return the seconds that each of `count` matches may take."""
    return max(min(MATCH_S, _MATCHES_S / max(count, 1)), _MATCH_MIN_S)


def fullmatch(pattern: Pattern, text: str, seconds: float = MATCH_S) -> bool:
    """Return whether all of `text` matches.

    Raises:
        TooComplicated: The match takes too long.
    """
    return bounded(pattern.fullmatch, text, seconds=seconds) is not None


def bounded(operation: Any, *arguments: Any, seconds: float = MATCH_S) -> Any:
    """Return the result of an operation of a compiled pattern, such as `pattern.search`.

    Raises:
        TooComplicated: The operation takes too long.
    """
    try:
        return operation(*arguments, timeout=seconds)
    except (TimeoutError, MemoryError, RecursionError) as error:
        raise TooComplicated("it can match in so many ways that it takes too long") from error


def _unrolled(expression: str) -> int:
    """Estimate the length of the expression with `{n}` written out; nested groups multiply."""
    # sums: length so far of each open group, outermost first; atom: length of the text that a following `{n}` repeats.
    sums, atom = [0], 0
    for token in _TOKEN.finditer(expression):
        text, times = token[0], token["times"]
        if text == "(":
            sums.append(0)
            continue
        if times is not None:
            more = atom * (int(times[:9]) - 1)
            atom += more
            sums[-1] += more
        elif text == ")" and len(sums) > 1:
            atom = sums.pop() + 1
            sums[-1] += atom
        else:
            atom = 1
            sums[-1] += 1
    return sum(sums)
