"""Requests for a revision of the stack of a cluster, or of a node without a cluster."""

import math
from collections.abc import Mapping
from typing import Any

from homeostat.clustering.service.stack_texts import StackText
from homeostat.clustering.store import living
from homeostat.resources.families import node_groups
from homeostat.services.pipeline.request import CheckTypes, StackRequest

INTERNAL = frozenset(node_type.name for node_type in node_groups.INTERNAL)
"""Types for the stacks of clusters only, not for templates of users."""
LEFT_ALONE: Mapping[str, Any] = {living.GROUP: {"converge": False}}
"""Exceptions of the stack of a cluster: without a health policy lost nodes are not replaced."""
TIMEOUT_S = 3600
"""Time limit of an action of a node without a cluster."""


def request_of(text: StackText, timeout: int, check_types: CheckTypes | None) -> StackRequest:
    """Return the request that makes a text the revision of a stack, with a timeout in seconds."""
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
    return max(1, math.ceil(seconds / 60))
