"""Regular expressions of users: as Python's, compiled and matched in bounded time and memory."""

import re
from functools import lru_cache
from typing import Any

import regex

LENGTH_MAX = 4096
"""Characters of an expression."""
UNROLLED_MAX = 100_000
"""Characters of an expression with its repetitions written out: the library does that for those with a fixed count."""
MATCH_S = 0.5
"""Time for one match; a match takes far less unless the expression goes back and forth without end."""
_MATCHES_S, _MATCH_MIN_S = 5.0, 0.001
"""Time for all matches of a template, and what each has at least."""

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<times>\d+)(?:,\d*)?\}|.", re.DOTALL)
Pattern = Any
"""A compiled expression; the library has no types."""


class TooComplicated(ValueError):
    """The expression could take too long, or did. why — in what way."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the expression is too complicated: {why}")


@lru_cache(maxsize=256)
def compiled(expression: str, flags: int = 0) -> Pattern:
    """Fails: ValueError for what is no regular expression, TooComplicated for what is too large."""
    if len(expression) > LENGTH_MAX:
        raise TooComplicated(f"it is longer than {LENGTH_MAX} characters")
    if _unrolled(expression) > UNROLLED_MAX:
        raise TooComplicated(f"it repeats more than {UNROLLED_MAX} characters")
    try:
        return regex.compile(expression, flags)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def match_s(count: int) -> float:
    """Time that each of so many matches may take."""
    return max(min(MATCH_S, _MATCHES_S / max(count, 1)), _MATCH_MIN_S)


def fullmatch(pattern: Pattern, text: str, seconds: float = MATCH_S) -> bool:
    """Whether all of `text` matches. Fails: TooComplicated when it takes too long."""
    return bounded(pattern.fullmatch, text, seconds=seconds) is not None


def bounded(operation: Any, *arguments: Any, seconds: float = MATCH_S) -> Any:
    """What an operation of a pattern gives. Fails: TooComplicated when it takes too long."""
    try:
        return operation(*arguments, timeout=seconds)
    except (TimeoutError, MemoryError, RecursionError) as error:
        raise TooComplicated("it can match in so many ways that it takes too long") from error


def _unrolled(expression: str) -> int:
    """About the length of the expression with `{n}` written out; groups multiply."""
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
