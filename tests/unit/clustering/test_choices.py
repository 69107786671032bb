"""Choices among nodes: victims, places and batches."""

from collections import Counter
from typing import Any

import pytest

from homeostat.clustering.decisions.choices import (
    BatchRule,
    DeletionRule,
    NodeFacts,
    Place,
    batch_rule,
    batches,
    deletion_rule,
    placed,
    places,
    removed,
    victims,
    victims_by_place,
)
from homeostat.clustering.decisions.policies import check_policy
from homeostat.model.errors import Rejected


def node(id: str, **facts: Any) -> NodeFacts:
    return NodeFacts(id, **{"index": ord(id[0]) - ord("a") + 1, "created_at": 100.0, **facts})


def policy(name: str, **properties: Any) -> Any:
    return check_policy({"type": f"senlin.policy.{name}", "version": "1.0", "properties": properties})


NODES = [
    node("a", created_at=30.0, profile_created_at=9.0, zone="x"),
    node("b", created_at=10.0, profile_created_at=7.0, zone="y"),
    node("c", created_at=20.0, profile_created_at=8.0, zone="x"),
    node("d", created_at=10.0, profile_created_at=7.0, zone="y"),
]
ERROR = node("e", status="ERROR", created_at=99.0)
WARNING = node("f", status="WARNING", created_at=99.0)
TAINTED = node("g", tainted=True, created_at=99.0)
NEVER = node("h", status="CREATING", created_at=None)


@pytest.mark.parametrize(
    ("nodes", "count", "criteria", "ids"),
    [
        (NODES, 4, "OLDEST_FIRST", "bdca"),
        (NODES, 2, "OLDEST_FIRST", "bd"),
        (NODES, 4, "YOUNGEST_FIRST", "acdb"),
        (NODES, 4, "OLDEST_PROFILE_FIRST", "bdca"),
        (NODES, 9, "OLDEST_FIRST", "bdca"),
        (NODES, 0, "OLDEST_FIRST", ""),
        (NODES, -1, "OLDEST_FIRST", ""),
        ([*NODES, NEVER, TAINTED, WARNING, ERROR], 5, "OLDEST_FIRST", "efghb"),
        ([*NODES, NEVER, ERROR], 2, "RANDOM", "eh"),
        ([*NODES, NEVER, ERROR], 2, "YOUNGEST_FIRST", "eh"),
        ([], 3, "RANDOM", ""),
    ],
)
def test_who_goes(nodes: list[NodeFacts], count: int, criteria: str, ids: str) -> None:
    assert "".join(each.id for each in victims(nodes, count, criteria, "seed")) == ids
    assert "".join(each.id for each in victims(reversed(nodes), count, criteria, "seed")) == ids


def test_the_random_choice_follows_from_the_seed_and_is_fair() -> None:
    assert victims(NODES, 2, "RANDOM", "one") == victims(NODES, 2, "RANDOM", "one")
    chosen = Counter(victims(NODES, 1, "RANDOM", f"seed {number}")[0].id for number in range(1000))
    assert set(chosen) == set("abcd")
    assert min(chosen.values()) > 200


def test_so_many_go_of_each_zone() -> None:
    found = victims_by_place(NODES, {"y": 1, "x": 2, "z": 3}, "OLDEST_FIRST", "seed", lambda each: each.zone)
    assert [each.id for each in found] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("current", "choices", "count", "result"),
    [
        ({}, [Place("a"), Place("b")], 4, {"a": 2, "b": 2}),
        ({}, [Place("a"), Place("b")], 1, {"a": 1}),
        ({"a": 3}, [Place("a"), Place("b")], 3, {"b": 3}),
        ({"a": 3}, [Place("a"), Place("b")], 5, {"a": 1, "b": 4}),
        ({}, [Place("a", 100), Place("b", 50)], 6, {"a": 4, "b": 2}),
        ({"elsewhere": 9}, [Place("a"), Place("b")], 2, {"a": 1, "b": 1}),
        ({}, [Place("a", 0), Place("b")], 3, {"b": 3}),
        ({}, [Place("a", cap=1), Place("b")], 5, {"a": 1, "b": 4}),
        ({"a": 2}, [Place("a", cap=2), Place("b")], 2, {"b": 2}),
        ({}, [Place("a", cap=1), Place("b", cap=1)], 3, None),
        ({}, [], 1, None),
        ({}, [Place("a", cap=0)], 1, None),
        ({}, [Place("a")], 0, {}),
    ],
)
def test_where_new_nodes_are_placed(
    current: dict[str, int], choices: list[Place], count: int, result: dict[str, int] | None
) -> None:
    if result is not None:
        assert placed(current, choices, count) == result
        return
    with pytest.raises(Rejected, match="There is no feasible plan to handle all nodes"):
        placed(current, choices, count)


@pytest.mark.parametrize(
    ("current", "choices", "count", "result"),
    [
        ({"a": 2, "b": 2}, [Place("a"), Place("b")], 2, {"a": 1, "b": 1}),
        ({"a": 2, "b": 2}, [Place("a"), Place("b")], 1, {"b": 1}),
        ({"a": 4, "b": 1}, [Place("a"), Place("b")], 3, {"a": 3}),
        ({"a": 4, "b": 2}, [Place("a", 100), Place("b", 50)], 3, {"a": 2, "b": 1}),
        ({"a": 2, "gone": 1}, [Place("a")], 2, {"gone": 1, "a": 1}),
        ({"a": 2, "b": 2}, [Place("a", 0), Place("b")], 3, {"a": 2, "b": 1}),
        ({"a": 3, "b": 9}, [Place("a", cap=1), Place("b")], 3, {"a": 2, "b": 1}),
        ({"a": 3, "b": 5}, [Place("a", cap=1), Place("b", cap=4)], 1, {"a": 1}),
        ({"a": 2, "b": 9}, [Place("a", cap=0), Place("b")], 2, {"a": 2}),
        ({"a": 1}, [Place("a")], 2, None),
        ({"a": 0}, [Place("a")], 1, None),
        ({"a": 5}, [Place("a")], 0, {}),
    ],
)
def test_where_nodes_go(
    current: dict[str, int], choices: list[Place], count: int, result: dict[str, int] | None
) -> None:
    if result is not None:
        assert removed(current, choices, count) == result
        return
    with pytest.raises(Rejected, match="There is no feasible plan to handle all nodes"):
        removed(current, choices, count)


def test_shares_come_close_to_the_weights() -> None:
    choices = [Place("a", 70), Place("b", 20), Place("c", 10)]
    assert placed({}, choices, 1000) == {"a": 700, "b": 200, "c": 100}
    gone = removed({"a": 700, "b": 200, "c": 100}, choices, 500)
    assert gone == {"a": 350, "b": 100, "c": 50}


@pytest.mark.parametrize(
    ("count", "rule", "sizes"),
    [
        (10, BatchRule(min_in_service=6), [4, 4, 2]),
        (10, BatchRule(min_in_service=6, batch_max=3), [3, 3, 3, 1]),
        (10, BatchRule(min_in_service=0), [10]),
        (10, BatchRule(min_in_service=0, batch_max=0), [10]),
        (3, BatchRule(min_in_service=5), [2, 1]),
        (1, BatchRule(min_in_service=1), [1]),
        (0, BatchRule(), []),
    ],
)
def test_batches_leave_nodes_in_service(count: int, rule: BatchRule, sizes: list[int]) -> None:
    nodes = [node("a", index=place) for place in range(count)]
    found = batches(nodes, rule)
    assert [len(each) for each in found] == sizes
    assert [each for batch in found for each in batch] == nodes


def test_bad_nodes_are_updated_first() -> None:
    (first, *_) = batches([*NODES, ERROR, TAINTED], BatchRule(min_in_service=4))
    assert [each.id for each in first] == ["e", "g"]


def test_policies_as_the_engine_reads_them() -> None:
    hooks = {"type": "webhook", "params": {"url": "http://x"}, "timeout": 9}
    rule = deletion_rule(
        policy(
            "deletion",
            criteria="OLDEST_FIRST",
            destroy_after_deletion=False,
            grace_period=5,
            reduce_desired_capacity=False,
            hooks=hooks,
        )
    )
    assert rule == DeletionRule(
        "OLDEST_FIRST", False, 5, False, {"type": "webhook", "params": {"queue": "", "url": "http://x"}, "timeout": 9}
    )
    assert deletion_rule(policy("deletion")) == DeletionRule()
    assert batch_rule(policy("batch")) == BatchRule()
    assert batch_rule(policy("batch", min_in_service=3, max_batch_size=2, pause_time=1)) == BatchRule(3, 2, 1)
    assert places(policy("zone_placement", zones=[{"name": "a", "weight": 3}])) == (Place("a", 3),)
    assert places(policy("region_placement", regions=[{"name": "a", "cap": 3}])) == (Place("a", 100, 3),)
