"""Requests that make the template of a cluster, or of a node without one, the revision of its stack."""

import math
from collections.abc import Mapping
from typing import Any

from homeostat.clustering.service.stack_texts import StackText
from homeostat.clustering.store import living
from homeostat.resources.families import node_groups
from homeostat.services.pipeline.request import CheckTypes, StackRequest

INTERNAL = frozenset(each.name for each in node_groups.INTERNAL)
"""Types that the stacks of clusters have, and no template of a user."""
LEFT_ALONE: Mapping[str, Any] = {living.GROUP: {"converge": False}}
"""Exceptions of the stack of a cluster: without a health policy no lost node is replaced."""
TIMEOUT_S = 3600
"""Time that an action of a node without a cluster may take."""


def request_of(text: StackText, timeout: int, check_types: CheckTypes | None) -> StackRequest:
    """Return the request that makes a text the revision of a stack.

    Args:
        text: What the stack is made from.
        timeout: Seconds that the action may take.
        check_types: See `StackRequest`.
    """
    return StackRequest(
        template=text.template,
        files=dict(text.files),
        environment=text.environment,
        timeout_mins=_minutes(timeout),
        disable_rollback=True,
        internal_types=INTERNAL,
        check_types=check_types,
    )


def _minutes(seconds: int) -> int:
    """Return the time that an action may take in minutes, as stacks have it."""
    return max(1, math.ceil(seconds / 60))
