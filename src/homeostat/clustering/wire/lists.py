"""Filters, order and pages of lists, as the query of a request says them."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import Response

from homeostat.api.http.answer_budget import PAGE_BYTES
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.clustering.store.listing import Order, Page
from homeostat.clustering.wire import bodies
from homeostat.clustering.wire.context import PREFIX, ClusteringContext
from homeostat.json_pieces import Encoded, Items
from homeostat.model.errors import Rejected

_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\Z")
_read_limit = bodies.integer(0, COUNT_MAX)
PAGED = ("limit", "marker", "sort", "global_project")
PAGE_MAX = 1000
"""Entries of one answer; a link leads to the next ones."""
FIRST_READ = 10
"""Rows that are read first: each may be as large as a body."""
READ_MAX = 500
READ_BYTES = 1024 * 1024
"""Bytes of what is read at once after that, as far as one can tell from what was read before."""
R = TypeVar("R")
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
            raise Rejected("BadRequest", f"Field value {each} is invalid", remedy=remedy)
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


def _id_of(row: Any) -> str:
    return str(row.id)


@dataclass(frozen=True, slots=True)
class ListSource(Generic[R]):
    """Where the entries of a list come from.

    Attributes:
        read: Reads one page of rows.
        show: Returns rows as users see them.
        keeps: Whether an entry is listed, by what only its shown form has.
        id_of: Returns the id of a row.
    """

    read: Callable[[Page], Sequence[R]]
    show: Callable[[Sequence[R]], Sequence[Mapping[str, Any]]]
    keeps: Callable[[Mapping[str, Any]], bool] = lambda _: True
    id_of: Callable[[R], str] = _id_of


def listed(context: ClusteringContext, request: Request, name: str, wanted: Page, source: ListSource[R]) -> Response:
    """Return one page of a list.

    A page ends after `limit` or `PAGE_MAX` entries, or where it becomes long. What follows has a link then, unless
    it was the caller's limit that ended it: a caller who gives one asks on by the marker.
    """
    most = PAGE_MAX if wanted.limit is None else min(wanted.limit, PAGE_MAX)
    found: list[Encoded] = []
    size, last, more = 0, None, False
    for row, entry, text in _entries(wanted, source):
        if len(found) >= most or size >= PAGE_BYTES:
            more = len(found) != wanted.limit
            break
        last = source.id_of(row)
        if source.keeps(entry):
            found.append(text)
            size += len(text.text)
    if not more:
        return context.json({name: Items(found)})
    url = _following(context, request, last)
    # openstacksdk follows `next`, gophercloud `links`. Neither must find the header Link: openstacksdk fails on it.
    return context.json({name: Items(found), "links": {"next": url}, "next": url})


def _entries(wanted: Page, source: ListSource[R]) -> Iterator[tuple[R, Mapping[str, Any], Encoded]]:
    """Yield rows, how they are shown, and that as JSON. No more of them are read at once than a process bears."""
    count, marker = FIRST_READ if wanted.limit is None else min(FIRST_READ, wanted.limit + 1), wanted.marker
    while True:
        rows = source.read(replace(wanted, marker=marker, limit=count))
        shown = source.show(rows)
        size = 1
        for row, entry in zip(rows, shown, strict=True):
            text = Encoded(entry)
            size += len(text.text)
            yield row, entry, text
        if len(rows) < count:
            return
        marker = source.id_of(rows[-1])
        count = max(1, min(READ_MAX, READ_BYTES * len(rows) // size))


def _following(context: ClusteringContext, request: Request, marker: str | None) -> str:
    """Return the URL of the next page."""
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "marker"]
    path = request.url.path.partition(f"{PREFIX}/v1")[2]
    return f"{context.base}{path}?{urlencode([*query, ('marker', marker or '')])}"
