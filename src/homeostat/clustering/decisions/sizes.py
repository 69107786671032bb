"""Sizes of clusters: their limits, and the sizes after a resize or scaling. Pure.

The current size is the number of members, not the desired capacity: failed members count until they are deleted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from homeostat.clustering.decisions.specs import Spec
from homeostat.model.errors import Rejected

NODES_MAX = 1000
"""Default maximum of nodes of a cluster."""
NUMBER_MAX = 1_000_000_000
"""Largest number of an adjustment: more than any cluster needs, and far from overflows of arithmetic."""


class Adjustment(StrEnum):
    """The meaning of the number of a resize."""

    EXACT = "EXACT_CAPACITY"
    CHANGE = "CHANGE_IN_CAPACITY"
    PERCENT = "CHANGE_IN_PERCENTAGE"


class Direction(StrEnum):
    """Ways to scale; the values are the names of the actions."""

    OUT = "CLUSTER_SCALE_OUT"
    IN = "CLUSTER_SCALE_IN"

    @property
    def called(self) -> str:
        """The name in messages, such as `scale-out`."""
        return self.value.removeprefix("CLUSTER_").replace("_", "-").lower()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Limits of a cluster, and its desired capacity.

    Attributes:
        max_size: -1 for no limit.
    """

    min_size: int = 0
    max_size: int = -1
    desired: int = 0


@dataclass(frozen=True, slots=True)
class Resize:
    """A request to resize; absent fields are None."""

    type: Adjustment | None = None
    number: float | None = None
    min_size: int | None = None
    max_size: int | None = None
    min_step: int | None = None
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """A scaling policy as the engine reads it.

    Attributes:
        event: The action that the rule applies to.
        min_step: Least change in nodes, for a percentage.
        best_effort: Whether to go as far as the limits allow, instead of refusing.
        cooldown_s: Minimum of seconds between two such actions.
    """

    event: Direction
    type: Adjustment = Adjustment.CHANGE
    number: float = 1
    min_step: int = 1
    best_effort: bool = False
    cooldown_s: int = 0


def size_problem(
    cluster: Sizes | None,
    desired: int | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    *,
    strict: bool = True,
    most: int = NODES_MAX,
) -> str:
    """Return why sizes are refused, in the words of Senlin; "" if they are allowed.

    Args:
        cluster: Current sizes of the cluster; None for a new cluster.
        desired, min_size, max_size: New values; None if unchanged.
        strict: Whether the current limits of the cluster apply.
        most: Maximum of nodes of any cluster.
    """
    checks = (
        _desired_problem(cluster, desired, min_size, max_size, strict, most),
        _min_problem(cluster, desired, min_size, max_size, strict),
        _max_problem(cluster, desired, min_size, max_size, strict, most),
    )
    return next(filter(None, checks), "")


def _desired_problem(
    cluster: Sizes | None, desired: int | None, low: int | None, high: int | None, strict: bool, most: int
) -> str:
    if desired is None:
        return ""
    start = f"The target capacity ({desired}) is"
    if desired > most:
        return f"{start} greater than the maximum number of nodes allowed per cluster ({most})."
    if low is not None and desired < low:
        return f"{start} less than the specified min_size ({low})."
    if low is None and cluster is not None and strict and desired < cluster.min_size:
        return f"{start} less than the cluster's min_size ({cluster.min_size})."
    if high is not None and desired > high >= 0:
        return f"{start} greater than the specified max_size ({high})."
    if high is None and cluster is not None and strict and desired > cluster.max_size >= 0:
        return f"{start} greater than the cluster's max_size ({cluster.max_size})."
    return ""


def _min_problem(cluster: Sizes | None, desired: int | None, low: int | None, high: int | None, strict: bool) -> str:
    if low is None:
        return ""
    start = f"The specified min_size ({low}) is greater than"
    if high is not None and low > high >= 0:
        return f"{start} the specified max_size ({high})."
    if cluster is None:
        return ""
    if high is None and low > cluster.max_size >= 0:
        return f"{start} the current max_size ({cluster.max_size}) of the cluster."
    if desired is None and strict and low > cluster.desired:
        return f"{start} the current desired_capacity ({cluster.desired}) of the cluster."
    return ""


def _max_problem(
    cluster: Sizes | None, desired: int | None, low: int | None, high: int | None, strict: bool, most: int
) -> str:
    if high is None or high < 0:
        return ""
    start = f"The specified max_size ({high}) is"
    if high > most:
        return f"{start} greater than the maximum number of nodes allowed per cluster ({most})."
    if cluster is None:
        return ""
    if low is None and high < cluster.min_size:
        return f"{start} less than the current min_size ({cluster.min_size}) of the cluster."
    if desired is None and strict and high < cluster.desired:
        return f"{start} less than the current desired_capacity ({cluster.desired}) of the cluster."
    return ""


def new_sizes(desired: int | None, min_size: int | None, max_size: int | None, most: int = NODES_MAX) -> Sizes:
    """Return the sizes of a new cluster.

    Raises:
        Rejected: BadRequest.
    """
    low, high = min_size or 0, -1 if max_size is None else max_size
    size = low if desired is None else desired
    _refuse(size_problem(None, size, low, high, most=most))
    return Sizes(low, high, size)


def check_resize(request: Resize) -> None:
    """Check that a request to resize is complete.

    Raises:
        Rejected: BadRequest.
    """
    values = (request.type, request.number, request.min_size, request.max_size)
    if all(value is None for value in values):
        raise _bad("Not enough parameters to do resize action.")
    if request.type is not None and request.number is None:
        raise _bad("Missing number value for size adjustment.")
    if request.type is None and request.number is not None:
        raise _bad("Missing adjustment_type value for size adjustment.")
    if request.number is not None and not abs(request.number) <= NUMBER_MAX:
        raise _bad(f"The 'number' must lie between -{NUMBER_MAX} and {NUMBER_MAX}.")
    if request.type is Adjustment.EXACT and request.number is not None and request.number < 0:
        message = f"The 'number' must be non-negative integer for adjustment type '{request.type}'."
        raise _bad(message)
    if request.min_step is not None and request.min_step < 0:
        raise _bad("The 'min_step' must not be negative.")
    low, high = request.min_size, request.max_size
    if low is not None and high is not None and low > high >= 0:
        raise _bad(f"The specified min_size ({low}) is greater than the specified max_size ({high}).")


def resized(cluster: Sizes, current: int, request: Resize, most: int = NODES_MAX) -> Sizes:
    """Return the sizes of a cluster after a resize.

    Args:
        current: Number of members.

    Raises:
        Rejected: BadRequest.
    """
    check_resize(request)
    low, high, strict = request.min_size, request.max_size, request.strict
    if request.type is None or request.number is None:
        _refuse(size_problem(cluster, None, low, high, strict=strict, most=most))
        desired = current
    else:
        desired = adjusted(current, request.type, request.number, request.min_step or 0)
    limits = Sizes(cluster.min_size if low is None else low, cluster.max_size if high is None else high)
    if not strict:
        desired = _within(desired, limits, most)
    _refuse(size_problem(cluster, desired, low, high, strict=strict, most=most))
    return Sizes(limits.min_size, limits.max_size, max(desired, 0))


def adjusted(current: int, kind: Adjustment, number: float, min_step: int = 0) -> int:
    """Return the size after an adjustment, which may be negative.

    A change by percentage of less than one node becomes one node; larger changes are rounded toward zero.

    Args:
        min_step: Least change in nodes, for a percentage.
    """
    if kind is Adjustment.EXACT:
        return math.trunc(number)
    if kind is Adjustment.CHANGE:
        return current + math.trunc(number)
    exact = number * current / 100
    change = math.trunc(exact) if abs(exact) >= 1 else math.ceil(abs(exact))
    sign = (number > 0) - (number < 0)
    return current + sign * max(abs(change), min_step)


def _within(desired: int, limits: Sizes, most: int) -> int:
    high = most if limits.max_size < 0 else min(limits.max_size, most)
    return max(limits.min_size, min(desired, high))


def check_count(direction: Direction, count: int | None) -> None:
    """Check the count of a request to scale; None for none.

    Raises:
        Rejected: BadRequest.
    """
    if count is not None and count < 0:
        raise _bad("Value must be >= 0 for field 'count'.")
    if count == 0:
        raise _bad(f"Count for {direction.called} request cannot be 0.")


@dataclass(frozen=True, slots=True)
class Scaled:
    """The result of a request to scale a cluster.

    Attributes:
        sizes: The new sizes; the current sizes if the action fails.
        failure: Why the action fails, in the words of Senlin; "" if it succeeds.
    """

    sizes: Sizes
    failure: str = ""


def scaled(
    cluster: Sizes,
    current: int,
    direction: Direction,
    count: int | None,
    rule: ScalingRule | None = None,
    most: int = NODES_MAX,
    *,
    trimmed: bool = True,
) -> Scaled:
    """Return the sizes after scaling a cluster.

    Without a rule, removing more nodes than exist removes all nodes. With a rule, the count must fit the limits, unless
    the rule has `best_effort`.

    Args:
        current: Number of members.
        count: Nodes to add or remove; None for the adjustment of the rule, or for one node.
        rule: The scaling policy for this direction, or None.
        most: Maximum of nodes of any cluster.
        trimmed: Whether, without a rule, a count larger than the cluster is reduced to its size.

    Raises:
        Rejected: BadRequest: an invalid count, or more nodes than any cluster may have.
    """
    check_count(direction, count)
    step = count if count is not None else _step(current, rule)
    if rule is not None and step <= 0:
        return Scaled(cluster, f"Invalid count ({step}) for action '{direction}'.")
    if rule is None and direction is Direction.IN and trimmed:
        step = min(step, current)
    best_effort = rule is not None and rule.best_effort
    if best_effort:
        step = min(step, _room(cluster, current, direction, most))
    desired = current + step if direction is Direction.OUT else current - step
    _refuse(size_problem(None, desired, most=most))
    # With best effort a cluster beyond its limits keeps its size, instead of failing.
    failure = "" if best_effort else size_problem(cluster, desired, most=most)
    return Scaled(cluster if failure else Sizes(cluster.min_size, cluster.max_size, desired), failure)


def _room(cluster: Sizes, current: int, direction: Direction, most: int) -> int:
    """Return how many nodes may be added or removed within the limits of a cluster."""
    if direction is Direction.IN:
        return max(current - cluster.min_size, 0)
    high = most if cluster.max_size < 0 else min(cluster.max_size, most)
    return max(high - current, 0)


def _step(current: int, rule: ScalingRule | None) -> int:
    if rule is None:
        return 1
    if rule.type is Adjustment.EXACT:
        more = math.trunc(rule.number) - current
        return more if rule.event is Direction.OUT else -more
    if rule.type is Adjustment.CHANGE:
        return math.trunc(rule.number)
    return max(math.trunc(rule.number * current / 100), rule.min_step)


def scaling_rule(policy: Spec) -> ScalingRule:
    """Return a checked scaling policy as the engine reads it."""
    adjustment: Mapping[str, Any] = policy.properties["adjustment"]
    return ScalingRule(
        Direction(policy.properties["event"]),
        Adjustment(adjustment["type"]),
        adjustment["number"],
        adjustment["min_step"],
        adjustment["best_effort"],
        adjustment["cooldown"],
    )


def last_operation(noted_at: float | None, ended_at: float | None) -> float | None:
    """Return the start of a cooldown: the end of the last action under a policy.

    Args:
        noted_at: Start of the last action under the policy; None if there was no action.
        ended_at: End of the last action of the same kind; None if no action has ended.
    """
    return noted_at if noted_at is None or ended_at is None else max(noted_at, ended_at)


def cooldown_left_s(rule: ScalingRule, last_at: float | None, now: float) -> float:
    """Return the seconds until the next action of the rule's kind may start.

    Args:
        last_at: Time of the last action; None without one.
        now: The time. A clock set back does not make a cooldown longer than the rule's.
    """
    if last_at is None:
        return 0.0
    return min(max(0.0, last_at + rule.cooldown_s - now), float(rule.cooldown_s))


def _refuse(problem: str) -> None:
    if problem:
        raise _bad(problem)


def _bad(message: str) -> Rejected:
    return Rejected("BadRequest", message)
