"""Pages of long lists: a response's `NextToken` is sent with the next request."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.api.cloudformation.context import ActionContext

PAGE = 5_000
"""Items of one response: more than callers without paging have, and few enough for memory."""
Read = Callable[[Connection, str | None, int], Sequence[Row[Any]]]
"""Read items after a marker, up to a number."""


def page_of(
    action: ActionContext, read: Read, token_of: Callable[[Row[Any]], str] = lambda row: str(row.id)
) -> tuple[Sequence[Row[Any]], dict[str, str]]:
    """Read a page; also return what the response says about the next page.

    Args:
        token_of: Returns the marker of an item.
    """
    with action.context.db.read() as tx:
        rows = read(tx, action.parameters.get("NextToken"), PAGE)
    return rows, {"NextToken": token_of(rows[-1])} if len(rows) == PAGE else {}
