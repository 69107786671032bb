"""Limit on the members of a group that may be absent at a time: an entry of the update policy of groups."""

import re
from collections.abc import Mapping
from typing import Any

from homeostat.model.errors import invalid
from homeostat.resources.schema import Property, between, integer, text

MAX_UNAVAILABLE = "max_unavailable"
"""Entry of the update policy."""
DRAIN_TIME = "drain_time"
"""Entry of the update policy."""
DRAIN_MAX_S = 3600
AMOUNT = re.compile(r"[1-9][0-9]{0,8}|(?![0.]+%)(?:100(?:\.0{1,6})?|[1-9]?[0-9](?:\.[0-9]{1,6})?)%")


def limit_entry() -> dict[str, Property]:
    """Return the entries of the update policy about absent and leaving members."""
    described = (
        "Members that may be away at a time, for whatever reason: a number such as 2, or a share such as 10%. "
        "Without rolling updates of their own, as many members change at a time."
    )
    drained = (
        "Seconds for which a server that is removed or replaced stays after it has left its load balancers, before it "
        "is deleted."
    )
    within = (between(0, DRAIN_MAX_S),)
    return {MAX_UNAVAILABLE: text(described), DRAIN_TIME: integer(drained, constraints=within)}


def limits_of(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return these entries of an update policy."""
    return {name: policy.get(name) for name in (MAX_UNAVAILABLE, DRAIN_TIME)}


def check_limit(value: Any, path: tuple[str | int, ...]) -> None:
    """Check the limit of an update policy.

    Raises:
        Rejected: The limit is neither a number nor a share.
    """
    if value is not None and not (isinstance(value, str) and AMOUNT.fullmatch(value)):
        message = f"{value!r} is no number of members: give one such as 2, or a share such as 10%"
        raise invalid(message, *path, MAX_UNAVAILABLE, error="Property error")
