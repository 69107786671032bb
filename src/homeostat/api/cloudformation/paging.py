"""Pages of long lists: a response's `NextToken` is sent with the next request."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from homeostat.api.cloudformation.context import ActionContext
from homeostat.api.cloudformation.responses import REMEDY, XML_BYTES_MAX
from homeostat.api.http.answer_budget import PAGE_BYTES, too_large
from homeostat.json_pieces import encoded
from homeostat.store.database import Transaction

PAGE = 5_000
"""Items of a response: more than callers without paging have, and few enough for memory."""
PAGE_S = 1.0
"""CPU time after which a page ends early: outputs may take long to resolve."""
READ_MAX = 500
"""Items that are read at once."""
R = TypeVar("R")


def page_of(
    action: ActionContext,
    read: Callable[[Transaction, str | None, int], Sequence[R]],
    show: Callable[[Transaction, R], Any],
    token_of: Callable[[R], str],
) -> tuple[list[Any], dict[str, str]]:
    """Return a page, and the response's reference to the next page.

    The page ends after `PAGE` items, `PAGE_BYTES` or `PAGE_S`.

    Args:
        read: Reads items after a marker, up to a number.
        show: Builds the response for an item.
        token_of: Returns the marker of an item.
    """
    items: list[Any] = []
    size, token, ends_at = 0, action.parameters.get("NextToken"), time.thread_time() + PAGE_S
    with action.context.db.read() as tx:
        while not items or (len(items) < PAGE and _has_room(size, ends_at)):
            count = min(READ_MAX, PAGE - len(items))
            rows = read(tx, token, count)
            for row in rows:
                if items and not _has_room(size, ends_at):
                    break
                items.append(show(tx, row))
                size += len(encoded(items[-1]))
                token = token_of(row)
            else:
                if len(rows) < count:
                    return items, {}
    return items, {"NextToken": token} if token is not None else {}


def _has_room(size: int, ends_at: float) -> bool:
    return size < PAGE_BYTES and time.thread_time() < ends_at


def whole(items: Iterable[Any]) -> list[Any]:
    """Return all items of a list that has no pages.

    Raises:
        Rejected: RequestLimitExceeded.
    """
    all_items: list[Any] = []
    size = 0
    for item in items:
        all_items.append(item)
        size += len(encoded(item))
        if size > XML_BYTES_MAX:
            raise too_large(REMEDY)
    return all_items
