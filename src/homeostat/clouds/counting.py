"""One answer for each item of a batch, however many an adapter gives."""

import logging
from collections.abc import Sequence

from homeostat.clouds.port import Answer, Cloud
from homeostat.model.errors import Uncertain

LOG = logging.getLogger(__name__)


def one_each(cloud: Cloud, operation: str, kind: str, asked: int, answers: Sequence[Answer]) -> list[Answer]:
    """Return one answer for each item of a batch, in order.

    Where there are too few, the last items have none, and are `Uncertain`. Where there are too many, nothing says which
    answer belongs to which item, so all are.

    Args:
        cloud: The cloud that gave the answers.
        operation: The operation of the port.
        kind: Kind of the things.
        asked: Number of items.
        answers: The answers as the adapter gave them.
    """
    given = list(answers)
    if len(given) == asked:
        return given
    message = f"the adapter of cloud {cloud.name} gave {len(given)} answers to {operation} of {asked} things ({kind})"
    LOG.error("%s", message)
    known = given if len(given) < asked else []
    return [*known, *[Uncertain(message)] * (asked - len(known))]
