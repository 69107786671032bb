"""Requests that hold for one revision of a stack alone: `If-Match`, and the `ETag` that says which (ADR 0092)."""

from typing import Annotated

from fastapi import Header
from sqlalchemy import Connection

from homeostat.api.orchestration.views import at
from homeostat.model.errors import Rejected
from homeostat.store.stacks import revisions, stacks

LISTED_MAX = 100
"""Newer revisions that are counted."""

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="`ETag` of the stack or of a preview: refuse the request with 412 if the stack has moved since.",
    ),
]


def tag_of(revision: int) -> dict[str, str]:
    """Return the header that names the revision on which an answer is based."""
    return {"ETag": f'"{revision}"'}


def check_match(tx: Connection, stack_id: str, wanted: str | None) -> None:
    """Check that a stack is still at the revision that a request was made for.

    Args:
        tx: The transaction; where it changes the stack, the stack is locked.
        stack_id: Id of the stack.
        wanted: The header If-Match, one or more tags; None or `*` holds for every revision.

    Raises:
        Rejected: (PreconditionFailed) It has moved; the message says what came first.
    """
    stack = stacks.get(tx, stack_id)
    if wanted is None or stack is None:
        return
    tags = [each.strip() for each in wanted.split(",")]
    if "*" in tags or f'"{stack.revision}"' in tags:
        return
    since = max(
        (int(each[1:-1]) for each in tags if each[1:-1].isdecimal() and each[0] == each[-1] == '"'), default=None
    )
    raise Rejected("PreconditionFailed", f"{_moved(tx, stack_id, stack.name, since)}. Look at it, and ask once more.")


def _moved(tx: Connection, stack_id: str, name: str, since: int | None) -> str:
    """Return what has become of a stack since a revision, the first step first."""
    newer = [] if since is None else [row for row in revisions.page(tx, stack_id, LISTED_MAX) if row.number > since]
    if not newer:
        return f"The stack {name} is not at the revision that the request was made for ({since or 'unknown'})"
    first, more = newer[-1], len(newer) - 1
    asker = f", as {first.requested_by} asked" if first.requested_by else ""
    steps = f"{first.action} made revision {first.number} at {at(first.created_at)}{asker}"
    later = f", and {more} more came after it" if more else ""
    return f"The stack {name} has moved since revision {since}: {steps}{later}"
