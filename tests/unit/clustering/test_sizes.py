"""Sizes of clusters: limits, resizes and scaling."""

import itertools
import math
from typing import Any

import pytest

from homeostat.clustering.decisions.policies import check_policy
from homeostat.clustering.decisions.sizes import (
    Adjustment,
    Direction,
    Resize,
    Scaled,
    ScalingRule,
    Sizes,
    adjusted,
    check_count,
    check_resize,
    cooldown_left_s,
    new_sizes,
    resized,
    scaled,
    scaling_rule,
    size_problem,
)
from homeostat.model.errors import Rejected

EXACT, CHANGE, PERCENT = Adjustment.EXACT, Adjustment.CHANGE, Adjustment.PERCENT
OUT, IN = Direction.OUT, Direction.IN
CLUSTER = Sizes(2, 6, 4)


@pytest.mark.parametrize(
    ("cluster", "desired", "low", "high", "strict", "problem"),
    [
        (CLUSTER, 4, None, None, True, ""),
        (CLUSTER, 6, None, None, True, ""),
        (CLUSTER, 2, None, None, True, ""),
        (CLUSTER, None, None, None, True, ""),
        (
            CLUSTER,
            1001,
            None,
            None,
            False,
            "The target capacity (1001) is greater than the maximum number of nodes allowed per cluster (1000).",
        ),
        (CLUSTER, 2, 3, None, False, "The target capacity (2) is less than the specified min_size (3)."),
        (CLUSTER, 1, None, None, True, "The target capacity (1) is less than the cluster's min_size (2)."),
        (CLUSTER, 1, None, None, False, ""),
        (CLUSTER, 6, None, 5, False, "The target capacity (6) is greater than the specified max_size (5)."),
        (CLUSTER, 99, None, -1, True, ""),
        (CLUSTER, 7, None, None, True, "The target capacity (7) is greater than the cluster's max_size (6)."),
        (CLUSTER, 7, None, None, False, ""),
        (Sizes(0, -1, 4), 7, None, None, True, ""),
        (None, 2, 3, 1, True, "The target capacity (2) is less than the specified min_size (3)."),
        (None, 3, 3, 1, True, "The target capacity (3) is greater than the specified max_size (1)."),
        (None, None, 3, 1, True, "The specified min_size (3) is greater than the specified max_size (1)."),
        (None, None, 3, -1, True, ""),
        (
            CLUSTER,
            None,
            7,
            None,
            True,
            "The specified min_size (7) is greater than the current max_size (6) of the cluster.",
        ),
        (
            CLUSTER,
            None,
            5,
            None,
            True,
            "The specified min_size (5) is greater than the current desired_capacity (4) of the cluster.",
        ),
        (CLUSTER, None, 5, None, False, ""),
        (CLUSTER, 5, 5, None, True, ""),
        (
            CLUSTER,
            None,
            None,
            1001,
            True,
            "The specified max_size (1001) is greater than the maximum number of nodes allowed per cluster (1000).",
        ),
        (
            CLUSTER,
            None,
            None,
            1,
            False,
            "The specified max_size (1) is less than the current min_size (2) of the cluster.",
        ),
        (CLUSTER, 1, 0, 1, True, ""),
        (
            CLUSTER,
            None,
            None,
            3,
            True,
            "The specified max_size (3) is less than the current desired_capacity (4) of the cluster.",
        ),
        (CLUSTER, None, None, 3, False, ""),
        (CLUSTER, None, None, -1, True, ""),
        (CLUSTER, None, None, 1000, True, ""),
        (CLUSTER, None, 6, None, False, ""),
        (CLUSTER, None, None, 2, False, ""),
        (CLUSTER, None, None, 4, True, ""),
        (CLUSTER, None, 4, None, True, ""),
        (None, 1000, None, None, True, ""),
        (None, 1, None, 0, True, "The target capacity (1) is greater than the specified max_size (0)."),
        (None, None, 1, 0, True, "The specified min_size (1) is greater than the specified max_size (0)."),
        (Sizes(0, 0, 0), 1, None, None, True, "The target capacity (1) is greater than the cluster's max_size (0)."),
        (
            Sizes(0, 0, 0),
            None,
            1,
            None,
            False,
            "The specified min_size (1) is greater than the current max_size (0) of the cluster.",
        ),
        (
            CLUSTER,
            None,
            None,
            0,
            False,
            "The specified max_size (0) is less than the current min_size (2) of the cluster.",
        ),
    ],
)
def test_limits_are_checked_in_the_words_of_senlin(
    cluster: Sizes | None, desired: int | None, low: int | None, high: int | None, strict: bool, problem: str
) -> None:
    assert size_problem(cluster, desired, low, high, strict=strict) == problem


def test_the_operator_says_how_many_nodes_a_cluster_may_have() -> None:
    assert size_problem(None, 11, most=10).endswith("nodes allowed per cluster (10).")
    assert not size_problem(None, 2000, most=2000)


@pytest.mark.parametrize(
    ("desired", "low", "high", "sizes"),
    [
        (None, None, None, Sizes(0, -1, 0)),
        (None, 2, None, Sizes(2, -1, 2)),
        (3, 2, 5, Sizes(2, 5, 3)),
        (0, None, 0, Sizes(0, 0, 0)),
        (1, 2, None, None),
        (6, 2, 5, None),
        (1001, None, None, None),
    ],
)
def test_sizes_of_a_new_cluster(desired: int | None, low: int | None, high: int | None, sizes: Sizes | None) -> None:
    if sizes is not None:
        assert new_sizes(desired, low, high) == sizes
        return
    with pytest.raises(Rejected) as found:
        new_sizes(desired, low, high)
    assert found.value.fault == "BadRequest"


@pytest.mark.parametrize(
    ("current", "kind", "number", "min_step", "size"),
    [
        (4, EXACT, 7, 0, 7),
        (4, EXACT, 0, 3, 0),
        (4, CHANGE, 2, 0, 6),
        (4, CHANGE, -6, 9, -2),
        (4, CHANGE, 1.9, 0, 5),
        (4, PERCENT, 50, 0, 6),
        (4, PERCENT, -50, 0, 2),
        (10, PERCENT, 25, 0, 12),
        (10, PERCENT, -25, 0, 8),
        (4, PERCENT, 10, 0, 5),
        (4, PERCENT, -10, 0, 3),
        (4, PERCENT, 10, 2, 6),
        (4, PERCENT, -10, 2, 2),
        (10, PERCENT, 50, 2, 15),
        (0, PERCENT, 50, 0, 0),
        (0, PERCENT, 50, 2, 2),
        (4, PERCENT, 0, 2, 4),
    ],
)
def test_arithmetic_of_adjustments(current: int, kind: Adjustment, number: float, min_step: int, size: int) -> None:
    assert adjusted(current, kind, number, min_step) == size


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Resize(), "Not enough parameters to do resize action."),
        (Resize(min_step=2, strict=False), "Not enough parameters to do resize action."),
        (Resize(EXACT), "Missing number value for size adjustment."),
        (Resize(number=3, min_size=1), "Missing adjustment_type value for size adjustment."),
        (Resize(EXACT, -1), "The 'number' must be non-negative integer for adjustment type 'EXACT_CAPACITY'."),
        (Resize(CHANGE, math.inf), "The 'number' must lie between -1000000000 and 1000000000."),
        (Resize(PERCENT, math.nan), "The 'number' must lie between -1000000000 and 1000000000."),
        (Resize(PERCENT, 1, min_step=-1), "The 'min_step' must not be negative."),
        (Resize(min_size=3, max_size=2), "The specified min_size (3) is greater than the specified max_size (2)."),
    ],
)
def test_an_incomplete_request_is_refused(request_: Resize, message: str) -> None:
    with pytest.raises(Rejected) as found:
        check_resize(request_)
    assert (found.value.fault, str(found.value)) == ("BadRequest", message)


@pytest.mark.parametrize(
    ("current", "request_", "outcome"),
    [
        (4, Resize(EXACT, 6), Sizes(2, 6, 6)),
        (4, Resize(EXACT, 7), "The target capacity (7) is greater than the cluster's max_size (6)."),
        (4, Resize(EXACT, 7, strict=False), Sizes(2, 6, 6)),
        (4, Resize(EXACT, 7, max_size=9), Sizes(2, 9, 7)),
        (4, Resize(EXACT, 7, max_size=-1), Sizes(2, -1, 7)),
        (4, Resize(EXACT, 0), "The target capacity (0) is less than the cluster's min_size (2)."),
        (4, Resize(EXACT, 0, strict=False), Sizes(2, 6, 2)),
        (4, Resize(EXACT, 0, min_size=0), Sizes(0, 6, 0)),
        (4, Resize(CHANGE, -9, min_size=0), "The target capacity (-5) is less than the specified min_size (0)."),
        (4, Resize(CHANGE, -9, min_size=0, strict=False), Sizes(0, 6, 0)),
        (3, Resize(CHANGE, 2), Sizes(2, 6, 5)),
        (3, Resize(PERCENT, 10, min_step=2), Sizes(2, 6, 5)),
        (4, Resize(min_size=3), Sizes(3, 6, 4)),
        (4, Resize(max_size=5), Sizes(2, 5, 4)),
        (
            4,
            Resize(max_size=3),
            "The specified max_size (3) is less than the current desired_capacity (4) of the cluster.",
        ),
        (4, Resize(max_size=3, strict=False), Sizes(2, 3, 3)),
        (4, Resize(min_size=5), "The specified min_size (5) is greater than the current desired_capacity (4) of the"),
        (4, Resize(min_size=5, strict=False), Sizes(5, 6, 5)),
        (3, Resize(min_size=4), "The target capacity (3) is less than the specified min_size (4)."),
        (4, Resize(EXACT, 2000, max_size=-1, strict=False), Sizes(2, -1, 1000)),
        (4, Resize(EXACT, 2000, max_size=-1), "The target capacity (2000) is greater than the maximum number of nodes"),
        (
            4,
            Resize(EXACT, 5, max_size=2000, strict=False),
            "The specified max_size (2000) is greater than the maximum ",
        ),
        (4, Resize(EXACT, 5, 0, 0, strict=False), Sizes(0, 0, 0)),
        (4, Resize(EXACT, 3, 3, 3, min_step=0), Sizes(3, 3, 3)),
        (4, Resize(EXACT, 1, 1, 0), "The specified min_size (1) is greater than the specified max_size (0)."),
        (4, Resize(EXACT, 1_000_000_000), "The target capacity (1000000000) is greater than the maximum number of "),
        (4, Resize(EXACT, 5, min_size=7), "The target capacity (5) is less than the specified min_size (7)."),
        (4, Resize(EXACT, 7, min_size=7), "The target capacity (7) is greater than the cluster's max_size (6)."),
    ],
)
def test_a_resize(current: int, request_: Resize, outcome: Any) -> None:
    if isinstance(outcome, Sizes):
        assert resized(CLUSTER, current, request_) == outcome
        return
    with pytest.raises(Rejected) as found:
        resized(CLUSTER, current, request_)
    assert found.value.fault == "BadRequest"
    assert str(found.value).startswith(outcome)


def rule(event: Direction = OUT, *more: Any, **values: Any) -> ScalingRule:
    return ScalingRule(event, *more, **values)


TOO_MANY = "The target capacity ({}) is greater than the cluster's max_size (6)."
TOO_FEW = "The target capacity ({}) is less than the cluster's min_size (2)."


@pytest.mark.parametrize(
    ("current", "direction", "count", "policy", "outcome"),
    [
        (4, OUT, None, None, 5),
        (4, OUT, 2, None, 6),
        (4, OUT, 3, None, TOO_MANY.format(7)),
        (4, IN, None, None, 3),
        (4, IN, 2, None, 2),
        (4, IN, 3, None, TOO_FEW.format(1)),
        (4, IN, 99, None, TOO_FEW.format(0)),
        (4, OUT, None, rule(number=2), 6),
        (4, OUT, 1, rule(number=2), 5),
        (4, OUT, None, rule(number=3), TOO_MANY.format(7)),
        (4, OUT, None, rule(number=3, best_effort=True), 6),
        (4, OUT, 3, rule(number=1, best_effort=True), 6),
        (4, IN, 5, rule(IN, number=1), TOO_FEW.format(-1)),
        (4, IN, 5, rule(IN, number=1, best_effort=True), 2),
        (4, IN, None, rule(IN, number=3, best_effort=True), 2),
        (8, OUT, None, rule(number=1, best_effort=True), 8),
        (1, IN, None, rule(IN, number=1, best_effort=True), 1),
        (4, OUT, None, rule(OUT, EXACT, 6), 6),
        (4, OUT, None, rule(OUT, EXACT, 3), "Invalid count (-1) for action 'CLUSTER_SCALE_OUT'."),
        (4, OUT, None, rule(OUT, EXACT, 3, best_effort=True), "Invalid count (-1) for action 'CLUSTER_SCALE_OUT'."),
        (4, IN, None, rule(IN, EXACT, 3), 3),
        (4, IN, None, rule(IN, EXACT, 4), "Invalid count (0) for action 'CLUSTER_SCALE_IN'."),
        (4, OUT, None, rule(OUT, PERCENT, 50), 6),
        (4, OUT, None, rule(OUT, PERCENT, 10), 5),
        (4, OUT, None, rule(OUT, PERCENT, 10, min_step=2), 6),
        (4, IN, None, rule(IN, PERCENT, 50), 2),
        (4, OUT, None, rule(OUT, PERCENT, 10, min_step=0), "Invalid count (0) for action 'CLUSTER_SCALE_OUT'."),
        (4, OUT, None, rule(OUT, CHANGE, 0.5), "Invalid count (0) for action 'CLUSTER_SCALE_OUT'."),
    ],
)
def test_scaling(
    current: int, direction: Direction, count: int | None, policy: ScalingRule | None, outcome: Any
) -> None:
    found = scaled(CLUSTER, current, direction, count, policy)
    assert found == (Scaled(Sizes(2, 6, outcome)) if isinstance(outcome, int) else Scaled(CLUSTER, outcome))


def test_more_nodes_than_there_are_may_be_refused_without_a_rule_too() -> None:
    assert scaled(CLUSTER, 4, IN, 99, trimmed=False) == Scaled(CLUSTER, TOO_FEW.format(-95))
    assert scaled(CLUSTER, 4, IN, 1, trimmed=False) == Scaled(Sizes(2, 6, 3))


@pytest.mark.parametrize(
    ("direction", "count", "message"),
    [
        (OUT, 0, "Count for scale-out request cannot be 0."),
        (IN, 0, "Count for scale-in request cannot be 0."),
        (IN, -1, "Value must be >= 0 for field 'count'."),
        (
            OUT,
            997,
            "The target capacity (1001) is greater than the maximum number of nodes allowed per cluster (1000).",
        ),
    ],
)
def test_a_count_that_no_cluster_could_have_is_refused(direction: Direction, count: int, message: str) -> None:
    with pytest.raises(Rejected) as found:
        scaled(CLUSTER, 4, direction, count)
    assert (found.value.fault, str(found.value)) == ("BadRequest", message)


RULES = (None, *(rule(OUT, number=2, best_effort=each) for each in (False, True)))
TABLE = [
    (Sizes(low, high, current), current, direction, count, policy)
    for low, high in itertools.product(range(4), (-1, 0, 1, 2, 3, 5))
    if high < 0 or low <= high
    for current in range(7)
    for direction, count, policy in itertools.product((OUT, IN), (None, 1, 2, 4, 9), RULES)
]


def beyond(cluster: Sizes, size: int) -> int:
    """Return how far a size is from the limits of a cluster; 0 within."""
    high = cluster.max_size if cluster.max_size >= 0 else size
    return max(cluster.min_size - size, size - high, 0)


def test_no_scaling_goes_beyond_a_limit_or_in_the_other_direction() -> None:
    for cluster, current, direction, count, policy in TABLE:
        found = scaled(cluster, current, direction, count, policy)
        size, case = found.sizes.desired, (cluster, current, direction, count, policy, found)
        if found.failure:
            assert found.sizes == cluster, case
            assert policy is None or not policy.best_effort, case
            continue
        assert size >= current if direction is OUT else size <= current, case
        assert beyond(cluster, size) <= (beyond(cluster, current) if policy is not None and policy.best_effort else 0)


def test_without_best_effort_a_policy_takes_a_request_at_its_word() -> None:
    for cluster, current, direction, count, policy in TABLE:
        if policy is None or policy.best_effort:
            continue
        wanted = current + (count or 2) * (1 if direction is OUT else -1)
        within = cluster.min_size <= wanted and (cluster.max_size < 0 or wanted <= cluster.max_size)
        found = scaled(cluster, current, direction, count, policy)
        assert (not found.failure, found.sizes.desired) == (within, wanted if within else current)


def test_a_count_may_be_left_out() -> None:
    check_count(OUT, None)
    check_count(OUT, 3)


def test_a_scaling_policy_as_the_engine_reads_it() -> None:
    adjustment = {"type": "CHANGE_IN_PERCENTAGE", "number": "12.5", "min_step": 2, "best_effort": True, "cooldown": 60}
    properties = {"event": "CLUSTER_SCALE_IN", "adjustment": adjustment}
    policy = check_policy({"type": "senlin.policy.scaling", "version": "1.0", "properties": properties})
    assert scaling_rule(policy) == ScalingRule(IN, PERCENT, 12.5, 2, True, 60)


@pytest.mark.parametrize(
    ("last_at", "now", "left_s"),
    [(None, 0, 0), (100, 100, 60), (100, 130, 30), (100, 160, 0), (100, 999, 0), (900, 1, 60)],
)
def test_a_cooldown_ends(last_at: float | None, now: float, left_s: float) -> None:
    assert cooldown_left_s(rule(cooldown_s=60), last_at, now) == left_s
