"""Pages of long lists: a response's `NextToken` is sent with the next request."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection

from homeostat.api.cloudformation.context import ActionContext
from homeostat.api.cloudformation.responses import REMEDY, XML_BYTES_MAX
from homeostat.api.http.answer_budget import PAGE_BYTES, too_large
from homeostat.json_pieces import encoded

PAGE = 5_000
"""Items of one response: more than callers without paging have, and few enough for memory."""
PAGE_S = 1.0
"""CPU time after which a page ends with what it has: what is shown may take long to be resolved."""
READ_MAX = 500
"""Items that are read at once."""
R = TypeVar("R")


def page_of(
    action: ActionContext,
    read: Callable[[Connection, str | None, int], Sequence[R]],
    show: Callable[[Connection, R], Any],
    token_of: Callable[[R], str],
) -> tuple[list[Any], dict[str, str]]:
    """Return a page, and what the response says about the next one.

    It ends after `PAGE` items, or where it is long, or takes long.

    Args:
        action: The request.
        read: Reads items after a marker, up to a number.
        show: Returns an item as callers see it.
        token_of: Returns the marker of an item.
    """
    found: list[Any] = []
    size, token, ends_at = 0, action.parameters.get("NextToken"), time.thread_time() + PAGE_S
    with action.context.db.read() as tx:
        while not found or (len(found) < PAGE and _has_room(size, ends_at)):
            count = min(READ_MAX, PAGE - len(found))
            rows = read(tx, token, count)
            for row in rows:
                if found and not _has_room(size, ends_at):
                    break
                found.append(show(tx, row))
                size += len(encoded(found[-1]))
                token = token_of(row)
            else:
                if len(rows) < count:
                    return found, {}
    return found, {"NextToken": token} if token is not None else {}


def _has_room(size: int, ends_at: float) -> bool:
    return size < PAGE_BYTES and time.thread_time() < ends_at


def whole(items: Iterable[Any]) -> list[Any]:
    """Return all items of a list that has no pages.

    Raises:
        Rejected: RequestLimitExceeded.
    """
    found: list[Any] = []
    size = 0
    for each in items:
        found.append(each)
        size += len(encoded(each))
        if size > XML_BYTES_MAX:
            raise too_large(REMEDY)
    return found
