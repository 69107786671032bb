"""Filters, order and pages of lists, from the query of a request."""

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
"""Maximum of entries in an answer, which then links to the next page."""
FIRST_READ = 10
"""Rows in the first read: each may be as large as a request body."""
READ_MAX = 500
READ_BYTES = 1024 * 1024
"""Target size in bytes of further reads, estimated from the rows read before."""
R = TypeVar("R")
Filter = Collection[str] | Callable[[str], Any] | None
"""The values that a filter accepts: these words, or values that the function converts; None for any value."""


@dataclass(frozen=True, slots=True)
class ListRules:
    """The query parameters that a list accepts.

    Attributes:
        filters: Name -> see `Filter`.
        single: Filters with a single value; the last value applies.
        sortable: Sort key -> column.
        default: Columns of the default order.
        paged: Whether the list has pages, and `global_project`.
        quoted: Whether error messages have unknown parameters in quotes.
    """

    filters: Mapping[str, Filter]
    sortable: Mapping[str, str]
    default: Sequence[str] = ("created_at",)
    single: Collection[str] = ()
    paged: bool = True
    quoted: bool = False


def read_query(context: ClusteringContext, request: Request, rules: ListRules) -> Page:
    """Return the requested page of a list.

    Raises:
        Rejected: BadRequest names the parameter; Forbidden: all projects are for admins only.
    """
    query = request.query_params
    known = {*rules.filters, "sort", *(PAGED if rules.paged else ())}
    strange = next((name for name in query if name not in known), None)
    if strange is not None:
        named = f"'{strange}'" if rules.quoted else strange
        raise Rejected("BadRequest", f"Invalid parameter {named}")
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


def _values(name: str, values: Sequence[str], rules: ListRules) -> list[Any]:
    rule = rules.filters[name]
    if name in rules.single:
        values = values[-1:]
    if rule is None:
        return list(values)
    if callable(rule):
        return [rule(value) for value in values]
    for value in values:
        if value not in rule:
            remedy = f"at {name}: there is {', '.join(rule)}"
            raise Rejected("BadRequest", f"Field value {value} is invalid", remedy=remedy)
    return list(values)


def _order(sort: str | None, rules: ListRules) -> tuple[Order, ...]:
    if not sort:
        return tuple(Order(name) for name in rules.default)
    orders = []
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
        orders.append(Order(rules.sortable[key], direction == "desc"))
    return tuple(orders)


def _marker(marker: str | None) -> str | None:
    if marker is not None and not _UUID.match(marker):
        message = f"The value for marker is not a valid UUID: '{marker}'."
        raise Rejected("BadRequest", message, remedy="give the id of the last entry that you have")
    return marker


def _limit(limit: str | None) -> int | None:
    if limit is None:
        return None
    return int(_read_limit(limit, "limit"))


def flag_of(value: Any, name: str, *, default: bool = False) -> bool:
    """Parse a boolean query parameter.

    Raises:
        Rejected: BadRequest.
    """
    if value is None:
        return default
    word = str(value).strip().lower()
    if word not in ("true", "false"):
        raise Rejected("BadRequest", f"Invalid value '{value}' specified for '{name}'")
    return word == "true"


def _id_of(row: Any) -> str:
    return str(row.id)


@dataclass(frozen=True, slots=True)
class ListSource(Generic[R]):
    """The source of the entries of a list.

    Attributes:
        read: Reads a page of rows.
        show: Converts rows to the format of the API.
        keeps: Whether an entry is listed; for filters on computed fields, which no column has.
        id_of: Returns the id of a row.
    """

    read: Callable[[Page], Sequence[R]]
    show: Callable[[Sequence[R]], Sequence[Mapping[str, Any]]]
    keeps: Callable[[Mapping[str, Any]], bool] = lambda _: True
    id_of: Callable[[R], str] = _id_of


def listed(context: ClusteringContext, request: Request, name: str, page: Page, source: ListSource[R]) -> Response:
    """Return a page of a list.

    A page ends after `limit` or `PAGE_MAX` entries, or after `PAGE_BYTES`. It links to the next page, unless the
    client's own limit ended the page: such a client continues by the marker.
    """
    most = PAGE_MAX if page.limit is None else min(page.limit, PAGE_MAX)
    entries: list[Encoded] = []
    size, last, more = 0, None, False
    for row, entry, text in _entries(page, source):
        if len(entries) >= most or size >= PAGE_BYTES:
            more = len(entries) != page.limit
            break
        last = source.id_of(row)
        if source.keeps(entry):
            entries.append(text)
            size += len(text.text)
    if not more:
        return context.json({name: Items(entries)})
    url = _following(context, request, last)
    # openstacksdk follows `next`, gophercloud `links`. No header Link: openstacksdk fails on it.
    return context.json({name: Items(entries), "links": {"next": url}, "next": url})


def _entries(page: Page, source: ListSource[R]) -> Iterator[tuple[R, Mapping[str, Any], Encoded]]:
    """Yield rows with their entries, also as JSON; the size of a read is limited to save memory."""
    count, marker = FIRST_READ if page.limit is None else min(FIRST_READ, page.limit + 1), page.marker
    while True:
        rows = source.read(replace(page, marker=marker, limit=count))
        entries = source.show(rows)
        size = 1
        for row, entry in zip(rows, entries, strict=True):
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
