"""Filters, order and pages of lists, as the query of a request says them."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from homeostat.api.clustering import bodies
from homeostat.api.clustering.context import ClusteringContext
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.model.errors import Rejected
from homeostat.store.clusters.listing import Order, Page

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\Z")
_read_limit = bodies.integer(0, COUNT_MAX)
PAGED = ("limit", "marker", "sort", "global_project")
Filter = Collection[str] | Callable[[str], Any] | None
"""What a filter accepts: one of these words, or what this converts; None for anything."""


@dataclass(frozen=True, slots=True)
class ListRules:
    """What a list accepts.

    Attributes:
        filters: Name -> see `Filter`.
        single: Filters that may be given once.
        sortable: Key -> column.
        default: Columns in whose order the list is.
        paged: It has pages, and `global_project`.
        quoted: Unknown parameters are named in quotes.
    """

    filters: Mapping[str, Filter]
    sortable: Mapping[str, str]
    default: Sequence[str] = ("created_at",)
    single: Collection[str] = ()
    paged: bool = True
    quoted: bool = False


def read_query(context: ClusteringContext, request: Request, rules: ListRules) -> Page:
    """Return the page of a list that a request asks for.

    Raises:
        Rejected: BadRequest names the parameter; Forbidden where another than an admin asks for all projects.
    """
    query = request.query_params
    known = {*rules.filters, "sort", *(PAGED if rules.paged else ())}
    strange = next((name for name in query if name not in known), None)
    if strange is not None:
        shown = f"'{strange}'" if rules.quoted else strange
        raise Rejected("BadRequest", f"Invalid parameter {shown}")
    everywhere = rules.paged and flag_of(query.get("global_project"), "global_project", default=False)
    if everywhere and not context.caller.is_admin and not context.caller.is_anybody:
        raise Rejected("Forbidden", "You are not authorized to complete this operation.")
    only = {name: _values(name, query.getlist(name), rules) for name in rules.filters if name in query}
    return Page(
        project=None if everywhere or context.caller.is_admin else context.project,
        only=only,
        order=_order(query.get("sort"), rules),
        marker=_marker(query.get("marker")) if rules.paged else None,
        limit=_limit(query.get("limit")) if rules.paged else None,
    )


def _values(name: str, given: Sequence[str], rules: ListRules) -> list[Any]:
    rule = rules.filters[name]
    if name in rules.single:
        given = given[-1:]
    if rule is None:
        return list(given)
    if callable(rule):
        return [rule(each) for each in given]
    for each in given:
        if each not in rule:
            remedy = f"at {name}: there is {', '.join(rule)}"
            raise Rejected("BadRequest", f"Field value {list(given)} is invalid", remedy=remedy)
    return list(given)


def _order(sort: str | None, rules: ListRules) -> tuple[Order, ...]:
    if not sort:
        return tuple(Order(name) for name in rules.default)
    found = []
    for entry in sort.split(","):
        key, _, direction = entry.strip().partition(":")
        if not key:
            raise Rejected("BadRequest", "Missing sort key for 'sort'.")
        if key not in rules.sortable:
            remedy = f"there is {', '.join(rules.sortable)}"
            raise Rejected("BadRequest", f"Unsupported sort key '{key}' for 'sort'.", remedy=remedy)
        if direction not in ("", "asc", "desc"):
            message = f"Unsupported sort dir '{direction}' for 'sort'."
            raise Rejected("BadRequest", message, remedy="there is asc, desc")
        found.append(Order(rules.sortable[key], direction == "desc"))
    return tuple(found)


def _marker(given: str | None) -> str | None:
    if given is not None and not _UUID.match(given):
        message = f"The value for marker is not a valid UUID: '{given}'."
        raise Rejected("BadRequest", message, remedy="give the id of the last entry that you have")
    return given


def _limit(given: str | None) -> int | None:
    if given is None:
        return None
    return int(_read_limit(given, "limit"))


def flag_of(given: Any, name: str, *, default: bool = False) -> bool:
    """Return a boolean as clients send it.

    Raises:
        Rejected: BadRequest.
    """
    if given is None:
        return default
    word = str(given).strip().lower()
    if word not in ("true", "false"):
        raise Rejected("BadRequest", f"Invalid value '{given}' specified for '{name}'")
    return word == "true"
