"""YAQL functions that replace functions of the library with unbounded time or memory."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import regex
from yaql.language import exceptions, specs, utils, yaqltypes

from homeostat.templates import patterns

MEMORY_MAX = 10_000
"""Largest value in bytes, its parts not counted (Heat's option `memory_quota`)."""

FUNCTIONS: list[Callable[..., Any]] = []
"""All functions of this module, as the library registers them."""
TEXT = yaqltypes.String()
_Any = TypeVar("_Any", bound=Callable[..., Any])


def _function(name: str = "", *, method: bool = False, **types: Any) -> Callable[[_Any], _Any]:
    """Register the decorated function as a function of the language.

    Args:
        name: Name in the language; "" for the name of the Python function.
        method: Whether the function is called as a method of its first argument.
        types: Types of its parameters.
    """

    def decorate(function: _Any) -> _Any:
        for parameter, kind in types.items():
            hidden = isinstance(kind, yaqltypes.HiddenParameterType)
            (specs.inject if hidden else specs.parameter)(parameter, kind)(function)
        if method:
            specs.method(function)
        if name:
            specs.name(name)(function)
        FUNCTIONS.append(function)
        return function

    return decorate


def _fitting(size: int) -> None:
    if size > MEMORY_MAX:
        raise exceptions.MemoryQuotaExceededException


def _replaced(text: str, old: str, new: str, count: int) -> str:
    times = text.count(old) if count < 0 else min(count, text.count(old))
    _fitting(len(text) + times * (len(new) - len(old)))
    return text.replace(old, new, count)


@_function(method=True, string=TEXT, old=TEXT, new=TEXT, count=int)
def replace(string: str, old: str, new: str, count: int = -1) -> str:
    return _replaced(string, old, new, count)


@_function(
    "replace", method=True, string=TEXT, replacements=utils.MappingType, count=int, to_text=yaqltypes.Delegate("str")
)
def replace_all(string: str, to_text: Callable[[Any], str], replacements: Mapping[Any, Any], count: int = -1) -> str:
    for old, new in replacements.items():
        string = _replaced(string, to_text(old), to_text(new), count)
    return string


@_function("pow", left=yaqltypes.Number(), right=yaqltypes.Number(), modulo=yaqltypes.PythonType(int, nullable=True))
def power(left: Any, right: Any, modulo: int | None = None) -> Any:
    if modulo is None and isinstance(left, int) and isinstance(right, int) and right > 0:
        _fitting(left.bit_length() * right // 8)
    return pow(left, right, modulo)


@_function(value=int, bits_number=int)
def shift_bits_left(value: int, bits_number: int) -> int:
    _fitting((value.bit_length() + bits_number) // 8)
    return value << bits_number


@_function("#operator_*", left=yaqltypes.Sequence(), right=int)
def list_times(left: Any, right: int) -> Any:
    _fitting(len(left) * max(right, 0))
    return left * right


@_function("#operator_*", left=int, right=yaqltypes.Sequence())
def times_list(left: int, right: Any) -> Any:
    return list_times(right, left)


# -- regular expressions -----------------------------------------------------------------------------------------------

_PATTERN = type(regex.compile(""))
_MATCH_S, _MATCH_STEPS = 0.01, 50
"""Most seconds for one match, and its cost in steps."""


def _matched(context: Any, operation: str, pattern: Any, *arguments: Any) -> Any:
    """Return the result of an operation of a pattern, which may be compiled or a text."""
    context.budget.spend(_MATCH_STEPS)
    pattern = patterns.compiled(pattern) if isinstance(pattern, str) else pattern
    return patterns.bounded(getattr(pattern, operation), *arguments, seconds=_MATCH_S)


@_function("regex", pattern=TEXT)
def make_regex(pattern: str, ignore_case: bool = False, multi_line: bool = False, dot_all: bool = False) -> Any:
    flags = ignore_case * regex.IGNORECASE | multi_line * regex.MULTILINE | dot_all * regex.DOTALL
    return patterns.compiled(pattern, flags)


@_function(method=True, regexp=_PATTERN, string=TEXT)
def matches(context: Any, regexp: Any, string: str) -> bool:
    return _matched(context, "search", regexp, string) is not None


@_function("matches", method=True, string=TEXT, regexp=TEXT)
def string_matches(context: Any, string: str, regexp: str) -> bool:
    return matches(context, regexp, string)


@_function("#operator_=~", string=TEXT, regexp=_PATTERN)
def is_like(context: Any, string: str, regexp: Any) -> bool:
    return matches(context, regexp, string)


@_function("#operator_=~", string=TEXT, pattern=TEXT)
def is_like_text(context: Any, string: str, pattern: str) -> bool:
    return matches(context, pattern, string)


@_function("#operator_!~", string=TEXT, regexp=_PATTERN)
def is_unlike(context: Any, string: str, regexp: Any) -> bool:
    return not matches(context, regexp, string)


@_function("#operator_!~", string=TEXT, pattern=TEXT)
def is_unlike_text(context: Any, string: str, pattern: str) -> bool:
    return not matches(context, pattern, string)


@_function(method=True, regexp=_PATTERN, string=TEXT)
def search(context: Any, regexp: Any, string: str) -> str | None:
    match = _matched(context, "search", regexp, string)
    return None if match is None else str(match[0])


@_function(method=True, regexp=_PATTERN, string=TEXT)
def search_all(context: Any, regexp: Any, string: str) -> tuple[str, ...]:
    texts = []
    for match in _matched(context, "finditer", regexp, string):
        context.budget.spend(1)
        texts.append(str(match[0]))
    return tuple(texts)


@_function(method=True, regexp=_PATTERN, string=TEXT, max_split=int)
def split(context: Any, regexp: Any, string: str, max_split: int = 0) -> tuple[Any, ...]:
    return tuple(_matched(context, "split", regexp, string, max_split))


@_function("split", method=True, string=TEXT, regexp=_PATTERN, max_split=int)
def string_split(context: Any, string: str, regexp: Any, max_split: int = 0) -> tuple[Any, ...]:
    return split(context, regexp, string, max_split)


@_function("replace", method=True, regexp=_PATTERN, string=TEXT, repl=TEXT, count=int)
def regex_replace(context: Any, regexp: Any, string: str, repl: str, count: int = 0) -> str:
    size = len(string)

    def one(match: Any) -> str:
        nonlocal size
        expanded = str(match.expand(repl))
        size += len(expanded)
        _fitting(size)
        return expanded

    return str(_matched(context, "sub", regexp, one, string, count))


@_function("replace", method=True, string=TEXT, regexp=_PATTERN, repl=TEXT, count=int)
def string_regex_replace(context: Any, string: str, regexp: Any, repl: str, count: int = 0) -> str:
    return regex_replace(context, regexp, string, repl, count)


@_function(string=TEXT)
def escape_regex(string: str) -> str:
    return str(regex.escape(string))


@_function()
def is_regex(value: Any) -> bool:
    return isinstance(value, _PATTERN)
