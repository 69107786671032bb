"""Causes of failures that others take away: room, quota, a name. Pure (ADR 0098).

What is healed in a stack at rest is made again and again while it lacks such a thing: no update of the stack is needed
for what has nothing to do with its template.
"""

import re
from dataclasses import dataclass

from homeostat.model.retry import RetryPolicy
from homeostat.model.status import Action
from homeostat.model.world import Resource

PATIENT_RETRY = RetryPolicy(first_s=30.0, longest_s=600.0)
"""What is lacking takes its time to come."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that is lacking.

    Attributes:
        words: Pattern that the reasons of such failures have, in the words of the services.
        released_by: What ends it.
    """

    words: re.Pattern[str]
    released_by: str


CAUSES = (
    Cause(
        re.compile(r"no valid host|no weighed (hosts|backends)|not enough hosts", re.I), "a host that has room for it"
    ),
    Cause(
        re.compile(r"quota|(limit|allowed)\w* exceeded|exceeds? allowed|over.?limit", re.I),
        "a higher quota, or the deletion of other things of the project",
    ),
    Cause(re.compile(r"no more (ip )?addresses|address(es)? .*exhausted", re.I), "an address becoming free"),
    Cause(
        re.compile(r"insufficient prefix space", re.I), "a prefix for its subnet pool, or the deletion of other subnets"
    ),
    Cause(
        re.compile(r"already (exists|in use|allocated)|is in use|in use by", re.I), "its name or address becoming free"
    ),
)


def cause_of(row: Resource) -> Cause | None:
    """Return what was lacking when a resource could not be made; None where that is not known to be such a thing."""
    if not row.failed or row.action != Action.CREATE:
        return None
    return next((cause for cause in CAUSES if cause.words.search(row.reason)), None)


def due_at(row: Resource) -> float:
    """Return the time of the next try of a resource for which something is lacking."""
    return row.updated_at + PATIENT_RETRY.delay_s(max(row.attempts, 1))
