"""One answer per item of a batch, even if an adapter returns too few or too many."""

import logging
from collections.abc import Sequence

from homeostat.clouds.port import Answer, Cloud
from homeostat.model.errors import Uncertain

LOG = logging.getLogger(__name__)


def one_each(cloud: Cloud, operation: str, kind: str, asked: int, answers: Sequence[Answer]) -> list[Answer]:
    """Return one answer for each item of a batch, in order.

    With too few answers, the last items are `Uncertain`. With too many, nothing says which answer belongs to which
    item, so all items are `Uncertain`.

    Args:
        cloud: The cloud that gave the answers.
        asked: Number of items.
        answers: The answers as the adapter gave them.
    """
    received = list(answers)
    if len(received) == asked:
        return received
    message = (
        f"the adapter of cloud {cloud.name} gave {len(received)} answers to {operation} of {asked} things ({kind})"
    )
    LOG.error("%s", message)
    known = received if len(received) < asked else []
    return [*known, *[Uncertain(message)] * (asked - len(known))]
