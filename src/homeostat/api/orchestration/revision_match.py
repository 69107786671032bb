"""Requests that are valid for one revision of a stack: `If-Match` and `ETag` (ADR 0092)."""

from typing import Annotated

from fastapi import Header

from homeostat.api.orchestration.views import at
from homeostat.model.errors import Rejected
from homeostat.store.database import Transaction
from homeostat.store.stacks import revisions, stacks

LISTED_MAX = 100
"""Maximum number of newer revisions in the message."""

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="`ETag` of the stack or of a preview: refuse the request with 412 if the stack has changed since.",
    ),
]


def tag_of(revision: int) -> dict[str, str]:
    """Return the header that names the revision on which an answer is based."""
    return {"ETag": f'"{revision}"'}


def check_match(tx: Transaction, stack_id: str, wanted: str | None) -> None:
    """Check that a stack is still at the revision of a request.

    Args:
        tx: The transaction; to change the stack in it, lock the stack first.
        stack_id: Id of the stack.
        wanted: The header If-Match, with any number of tags; None or `*` matches every revision.

    Raises:
        Rejected: PreconditionFailed; the message names the first newer revision.
    """
    stack = stacks.get(tx, stack_id)
    if wanted is None or stack is None:
        return
    tags = [tag.strip() for tag in wanted.split(",")]
    if "*" in tags or f'"{stack.revision}"' in tags:
        return
    since = max((int(tag[1:-1]) for tag in tags if tag[1:-1].isdecimal() and tag[0] == tag[-1] == '"'), default=None)
    raise Rejected("PreconditionFailed", f"{_moved(tx, stack_id, stack.name, since)}. Look at it, and ask once more.")


def _moved(tx: Transaction, stack_id: str, name: str, since: int | None) -> str:
    """Return a message about the first revision after the given one, and the number of later ones."""
    newer = [] if since is None else [row for row in revisions.page(tx, stack_id, LISTED_MAX) if row.number > since]
    if not newer:
        return f"The stack {name} is not at the revision that the request was made for ({since or 'unknown'})"
    first, more = newer[-1], len(newer) - 1
    asker = f", as {first.requested_by} asked" if first.requested_by else ""
    steps = f"{first.action} made revision {first.number} at {at(first.created_at)}{asker}"
    later = f", and {more} more came after it" if more else ""
    return f"The stack {name} has moved since revision {since}: {steps}{later}"
