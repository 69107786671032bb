"""Shortages that end without a change of the template: capacity, quota, a name in use. Pure (ADR 0098).

Healing in a stack at rest keeps retrying a creation during such a shortage: no update of the stack is needed, since the
template is not the problem.
"""

import re
from dataclasses import dataclass

from homeostat.model.retry import RetryPolicy
from homeostat.model.status import Action
from homeostat.model.world import Resource

PATIENT_RETRY = RetryPolicy(first_s=30.0, longest_s=600.0)
"""Shortages last longer than other failures."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A shortage.

    Attributes:
        words: Pattern of the services' error messages.
        released_by: The event that ends it.
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
    """Return the shortage behind a failed creation; None if its reason names no known shortage."""
    if not row.failed or row.action != Action.CREATE:
        return None
    return next((cause for cause in CAUSES if cause.words.search(row.reason)), None)


def due_at(row: Resource) -> float:
    """Return the time of the next try during a shortage."""
    return row.updated_at + PATIENT_RETRY.delay_s(max(row.attempts, 1))
