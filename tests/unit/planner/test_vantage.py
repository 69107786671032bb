"""What URLs say that are asked from several places (`planner.policies.vantage`)."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.planner.test_planner_explain import policy_of

from homeostat.model.health_policy import VantagePoint
from homeostat.model.node_health import Finding
from homeostat.model.vantage import Seen, VantageLook
from homeostat.planner.policies.vantage import combined_look

HEALTHY, UNHEALTHY, UNKNOWN = Finding.HEALTHY, Finding.UNHEALTHY, Finding.UNKNOWN
NOW, MADE_AT = 1000.0, 100.0
POLICY = replace(
    policy_of(),
    interval_s=60,
    vantage_points=(VantagePoint("a"), VantagePoint("b"), VantagePoint("c", 2)),
    vantage_quorum=3,
)
Looks = Mapping[str, tuple[float | None, Finding]]
"""Name of a place -> when it has looked, and what it has found."""


def looks(said: Looks) -> dict[str, VantageLook]:
    return {
        name: VantageLook(at, {"k": {0: Seen(finding, "it says so")}} if finding is not HEALTHY else {})
        for name, (at, finding) in said.items()
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"a": (990.0, UNHEALTHY), "b": (990.0, HEALTHY), "c": (990.0, UNHEALTHY)}, UNHEALTHY),
        ({"a": (990.0, UNHEALTHY), "b": (990.0, UNHEALTHY), "c": (990.0, HEALTHY)}, HEALTHY),
        ({"a": (990.0, HEALTHY), "b": (990.0, HEALTHY), "c": (990.0, UNHEALTHY)}, HEALTHY),
        ({"a": (990.0, HEALTHY), "b": (990.0, UNKNOWN), "c": (990.0, UNHEALTHY)}, UNKNOWN),
        ({"a": (990.0, HEALTHY), "c": (990.0, UNHEALTHY)}, UNKNOWN),  # no worker in b
        ({"a": (990.0, HEALTHY), "b": (None, HEALTHY), "c": (990.0, UNHEALTHY)}, UNKNOWN),  # it has yet to look
        ({"a": (800.0, UNHEALTHY), "b": (990.0, HEALTHY), "c": (990.0, UNHEALTHY)}, UNKNOWN),  # long ago
        ({"a": (90.0, UNHEALTHY), "b": (90.0, UNHEALTHY), "c": (90.0, UNHEALTHY)}, UNKNOWN),
    ],
)
def test_the_weight_of_the_quorum_has_to_agree(said: Looks, expected: Finding) -> None:
    found = combined_look(POLICY, looks(said), ("k", 0), MADE_AT, None, NOW)
    assert found is not None
    assert found.finding is expected


@pytest.mark.parametrize(("changed_at", "expected"), [(985.0, UNHEALTHY), (995.0, UNKNOWN)])
def test_what_was_found_before_a_member_was_changed_says_nothing_of_it(changed_at: float, expected: Finding) -> None:
    said = looks({"a": (990.0, UNHEALTHY), "b": (990.0, UNHEALTHY), "c": (990.0, UNHEALTHY)})
    found = combined_look(POLICY, said, ("k", 0), changed_at, None, NOW)
    assert found is not None
    assert found.finding is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"a": (970.0, UNHEALTHY), "b": (975.0, UNHEALTHY), "c": (970.0, UNHEALTHY)}, None),
        ({"a": (990.0, UNHEALTHY), "b": (990.0, UNHEALTHY), "c": (970.0, UNHEALTHY)}, None),  # not as much as it takes
        ({"a": (990.0, UNHEALTHY), "b": (975.0, UNHEALTHY), "c": (995.0, UNHEALTHY)}, UNHEALTHY),
        ({"a": (990.0, HEALTHY), "b": (975.0, UNHEALTHY), "c": (970.0, HEALTHY)}, None),
        ({"a": (990.0, HEALTHY), "b": (975.0, UNHEALTHY), "c": (990.0, HEALTHY)}, HEALTHY),
        ({"a": (990.0, HEALTHY), "c": (990.0, UNHEALTHY)}, UNKNOWN),
    ],
)
def test_looks_in_a_row_are_counted_by_what_places_find_anew(said: Looks, expected: Finding | None) -> None:
    found = combined_look(POLICY, looks(said), ("k", 0), MADE_AT, 975.0, NOW)
    assert (found.finding if found is not None else None) is expected
    if found is not None and expected is not UNKNOWN:
        assert found.counted_at == max(at for at, _ in said.values() if at is not None)
