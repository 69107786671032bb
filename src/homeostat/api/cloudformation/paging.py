"""Long lists in pages: `NextToken` of an answer is sent with the next request."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.api.cloudformation.context import ActionContext

PAGE = 5_000
"""Items of one answer at most: more than callers who know of no pages have, and what memory can bear."""
Read = Callable[[Connection, str | None, int], Sequence[Row[Any]]]
"""Items after a marker, at most so many."""


def page_of(
    asking: ActionContext, read: Read, token_of: Callable[[Row[Any]], str] = lambda row: str(row.id)
) -> tuple[Sequence[Row[Any]], dict[str, str]]:
    """A page, and what the answer says of the next one. token_of — what begins the page after an item."""
    with asking.ask.db.read() as tx:
        rows = read(tx, asking.parameters.get("NextToken"), PAGE)
    return rows, {"NextToken": token_of(rows[-1])} if len(rows) == PAGE else {}
