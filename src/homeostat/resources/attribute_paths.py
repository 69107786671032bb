"""JSON paths by which `GET /clusters/{id}/attrs/{path}` reads an attribute of every node, at bounded cost. Pure.

A path goes down from the node: names, places in lists, slices, `*` and one `..`. So no part of a node is visited
twice, and each step costs at most one walk over the node. All other features of the language are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonpath_ng import jsonpath
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.parser import parse

from homeostat.model.errors import Rejected

LENGTH_MAX = 512
"""Longest path, in characters."""
STEPS_MAX = 32
"""Most steps of a path."""
DETAILS = "details"
"""Key of the details of a node, which have to be read from a cloud."""


@dataclass(frozen=True, slots=True)
class AttributePath:
    """A checked path.

    Attributes:
        needs_details: Whether the text names the details of a node, so that they have to be read.
    """

    text: str
    needs_details: bool
    _expression: jsonpath.JSONPath

    def first(self, node: Mapping[str, Any]) -> tuple[bool, Any]:
        """Return whether anything in a node matches, and the first match."""
        matches = self._expression.find(node)
        return (True, matches[0].value) if matches else (False, None)


def attribute_path(text: str) -> AttributePath:
    """Parse and check a path.

    Raises:
        Rejected: BadRequest.
    """
    if text.strip() in ("", "None"):
        raise Rejected("BadRequest", "Required path attribute is missing.")
    if len(text) > LENGTH_MAX:
        raise _invalid(f"it is longer than {LENGTH_MAX} characters")
    return AttributePath(text, DETAILS in text, _parsed(text))


@lru_cache(maxsize=64)
def _parsed(text: str) -> jsonpath.JSONPath:
    try:
        expression = parse(text)
    except (JSONPathError, ValueError, RecursionError) as error:
        raise _invalid(str(error)) from error
    _check(expression)
    return expression


def _check(expression: jsonpath.JSONPath) -> None:
    steps, searches = 0, 0
    # Each part with whether it is the first of the path.
    waiting: list[tuple[Any, bool]] = [(expression, True)]
    while waiting:
        part, is_first = waiting.pop()
        if isinstance(part, jsonpath.Child | jsonpath.Descendants):
            waiting += [(part.left, is_first), (part.right, False)]
            searches += isinstance(part, jsonpath.Descendants)
        else:
            _check_step(part, is_first)
            steps += 1
    if steps > STEPS_MAX:
        raise _invalid(f"it has more than {STEPS_MAX} steps")
    if searches > 1:
        raise _invalid("it has more than one ..")


def _check_step(step: Any, is_first: bool) -> None:
    several = (isinstance(step, jsonpath.Fields) and len(step.fields) > 1) or (
        isinstance(step, jsonpath.Index) and len(step.indices) > 1
    )
    if several:
        raise _invalid(f"{step} is more than one step; only the first match counts")
    if isinstance(step, jsonpath.Root) and not is_first:
        raise _invalid("$ stands at the beginning only")
    known = (jsonpath.Fields, jsonpath.Index, jsonpath.Slice, jsonpath.Wildcard, jsonpath.Root, jsonpath.This)
    if not isinstance(step, known):
        raise _invalid(f"{type(step).__name__} is not supported; there are names, [places], [from:to], * and one ..")


def _invalid(why: str) -> Rejected:
    return Rejected("BadRequest", f"Invalid attribute path - {why}")
