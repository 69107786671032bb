"""Members of a group: names, definitions, and names out of use."""

from dataclasses import replace
from typing import Any

import pytest

from homeostat.desired.members import group_content, reached_shards, touched_shards
from homeostat.model.group import Companion, GroupDefinition, RangedDefinition, Series
from homeostat.model.member_names import member_of_name
from homeostat.resources import groups
from homeostat.resources.groups import (
    is_member,
    leaving_first,
    member_definition,
    member_names,
    names_between,
    names_end,
    numbers_below,
    resized,
    skip_list,
)


@pytest.mark.parametrize(
    ("count", "skip", "wanted", "reason"),
    [
        (3, [], ["0", "1", "2"], "numbers from 0"),
        (0, [], [], "none"),
        (3, ["0", "2"], ["1", "3", "4"], "skipped ones are made up for"),
        (2, ["9"], ["0", "1"], "skipping what is not reached changes nothing"),
    ],
)
def test_member_names(count: int, skip: list[str], wanted: list[str], reason: str) -> None:
    assert member_names(count, set(skip)) == wanted, reason


def test_a_shrunk_group_keeps_its_lowest_members() -> None:
    assert member_names(2, ()) == member_names(5, ())[:2]


DEFINITIONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"type": "T", "properties": {"a": "n%index%"}}, {"type": "T", "properties": {"a": "n7"}}, "in a text"),
    (
        {"type": "T", "properties": {"a": {"b": ["%index%", 1, {"c": "%index%%index%"}]}}},
        {"type": "T", "properties": {"a": {"b": ["7", 1, {"c": "77"}]}}},
        "at any depth, as often as it stands there",
    ),
    (
        {"type": "T%index%", "properties": {"%index%": "x"}, "metadata": {"m": "%index%"}},
        {"type": "T%index%", "properties": {"%index%": "x"}, "metadata": {"m": "%index%"}},
        "not in keys, type and metadata",
    ),
    ({"type": "T", "properties": {"a": None, "b": 0}}, {"type": "T", "properties": {"b": 0}}, "nulls are left out"),
    (
        {"type": "T", "properties": {"a": {"b": None}}},
        {"type": "T", "properties": {"a": {"b": None}}},
        "but not within values",
    ),
    ({"type": "T", "properties": None, "metadata": None}, {"type": "T", "properties": {}}, "no properties"),
]


@pytest.mark.parametrize(("given", "wanted", "reason"), DEFINITIONS, ids=[case[2] for case in DEFINITIONS])
def test_member_definition(given: dict[str, Any], wanted: dict[str, Any], reason: str) -> None:
    assert member_definition(given, "7", "%index%") == wanted


def test_own_index_variable() -> None:
    definition = {"type": "T", "properties": {"a": "%index% @@@"}}
    assert member_definition(definition, "3", "@@@")["properties"] == {"a": "%index% 3"}


MEMBERS = {"0": "id-a", "1": "id-b", "2": "id-c"}

SKIPS: list[tuple[list[str], list[dict[str, Any]], str, list[str], str]] = [
    ([], [], "append", [], "nothing to remove"),
    ([], [{"resource_list": ["1"]}], "append", ["1"], "by name"),
    ([], [{"resource_list": [1]}], "append", ["1"], "by number"),
    ([], [{"resource_list": ["id-c"]}], "append", ["2"], "by reference id"),
    ([], [{"resource_list": ["9", "id-z"]}], "append", [], "what is no member is ignored"),
    (["7"], [{"resource_list": [0]}], "append", ["7", "0"], "added to those of before"),
    (["7"], [{"resource_list": [0]}], "update", ["0"], "instead of those of before"),
    (["7"], [{"resource_list": [7]}], "update", ["7"], "still named: still out of use"),
    (["7"], [], "update", [], "afresh with nothing"),
    (["7"], [], "append", ["7"], "kept"),
    ([], [{"resource_list": [0, "id-a", "0"]}], "append", ["0"], "once"),
    ([], [{"resource_list": [2]}, {"resource_list": ["id-a"]}], "append", ["2", "0"], "several policies"),
    ([], [{}], "append", [], "an empty policy"),
]


@pytest.mark.parametrize(("previous", "policies", "mode", "wanted", "reason"), SKIPS, ids=[case[4] for case in SKIPS])
def test_skip_list(
    previous: list[str], policies: list[dict[str, Any]], mode: str, wanted: list[str], reason: str
) -> None:
    assert skip_list(previous, policies, mode, MEMBERS) == wanted


def test_names_of_those_that_left_for_a_mark_stay() -> None:
    assert skip_list(["7", "1"], [], "update", MEMBERS, left=["1"]) == ["1"]


LEAVING: list[tuple[int, list[str], set[str], list[str], str]] = [
    (4, [], set(), [], "nobody is marked"),
    (5, [], {"1"}, [], "it does not get smaller"),
    (4, [], {"1"}, ["1"], "the marked one, in place of the last"),
    (4, [], {"4"}, [], "the last one leaves anyway"),
    (3, [], {"1"}, ["1"], "the marked one and the last"),
    (4, [], {"0", "2"}, ["2"], "of several the highest"),
    (3, [], {"0", "2", "4"}, ["2"], "the last one leaves anyway, and one more"),
    (0, [], {"1"}, [], "everybody leaves"),
    (4, ["0"], {"1"}, [], "whom the removal policies name makes room"),
    (3, ["0"], {"1"}, ["1"], "one more than the removal policies name"),
    (4, [], {"7"}, [], "it is no member"),
]


@pytest.mark.parametrize(("count", "skip", "first", "wanted", "reason"), LEAVING, ids=[case[4] for case in LEAVING])
def test_who_leaves_a_smaller_group_first(
    count: int, skip: list[str], first: set[str], wanted: list[str], reason: str
) -> None:
    before = GroupDefinition({"type": "T"}, None, 5)
    assert leaving_first(before, count, skip, first) == wanted


def test_members_of_a_batch_beyond_the_target_are_none_that_make_a_group_larger() -> None:
    before = GroupDefinition({"type": "T"}, None, 5, series=Series(4, 1, 0, 0.0))
    assert leaving_first(before, 4, [], {"1"}) == []


@pytest.mark.parametrize("skip", [(), ("0",), ("2", "3", "9"), ("0", "1", "2"), ("50",), ("x",), ("<3",), ("<3", "4")])
@pytest.mark.parametrize("count", [0, 1, 3, 10])
def test_names_of_a_range_are_those_of_the_whole(count: int, skip: tuple[str, ...]) -> None:
    """A shard of a group knows its members without listing all the others."""
    names = member_names(count, skip)
    assert names_end(count, skip) == max((int(name) + 1 for name in names), default=0)
    for low, high in ((0, 4), (4, 8), (8, 100)):
        assert names_between(count, skip, low, high) == [name for name in names if low <= int(name) < high]


ONE = {"type": "OS::Heat::None"}


def test_who_leaves_a_group_that_scales_is_failed_or_the_oldest() -> None:
    first = resized(None, ONE, 4, ())
    assert first == GroupDefinition(ONE, None, 4)
    second = resized(first, ONE, 2, {"2"})
    assert second.skip == ("<1", "2")
    assert member_names(2, second.skip) == ["1", "3"]
    third = resized(second, ONE, 3, ())
    assert member_names(3, third.skip) == ["1", "3", "4"]
    assert resized(third, ONE, 0, {"4"}).skip == ("<5",)


def test_a_group_that_has_scaled_often_is_described_in_few_words() -> None:
    """Each signal of an alarm that goes up and down takes a name out of use for good."""
    group = resized(None, ONE, 2, ())
    for _ in range(50):
        group = resized(resized(group, ONE, 3, ()), ONE, 2, ())
    assert group.skip == ("<50",)
    assert member_names(2, group.skip) == ["50", "51"]
    assert [name for name in ("49", "50", "51", "52") if is_member(name, group)] == ["50", "51"]
    assert numbers_below(group.skip, 40) == 40
    assert numbers_below(group.skip, 60) == 50


def test_only_shards_whose_members_leave_or_come_are_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.desired.members.MEMBERS_PER_SHARD", 10)
    large = resized(None, ONE, 35, ())
    smaller = resized(large, ONE, 22, ())
    assert smaller.skip == ("<13",)
    touched = touched_shards(group_content(large), group_content(smaller))
    assert touched is not None
    assert sorted(touched) == [0, 1]
    again = resized(smaller, ONE, 23, ())
    assert sorted(touched_shards(group_content(smaller), group_content(again)) or ()) == [3]
    other = replace(again, resource_def={"type": "OS::Heat::RandomString"})
    assert sorted(touched_shards(group_content(again), group_content(other)) or ()) == [1, 2, 3]


def test_the_shards_that_a_new_definition_has_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.desired.members.MEMBERS_PER_SHARD", 10)
    group = resized(None, ONE, 35, ())
    assert reached_shards(group) == {0, 1, 2, 3}
    none = replace(group, earlier=(RangedDefinition(ONE, ((0, 35),)),))
    assert reached_shards(none) == set()
    some = replace(group, earlier=(RangedDefinition(ONE, ((0, 12), (13, 30))),))
    assert reached_shards(some) == {1, 3}


def with_companions(*ranges: tuple[int, int]) -> GroupDefinition:
    place = Companion("lb", ranges, "server", {"type": "P"})
    return GroupDefinition({"type": "S"}, None, 3, ("1",), companions=(place,))


def test_a_companion_is_named_after_its_member() -> None:
    group = with_companions((0, 3))
    assert [name for name, _ in groups.companions_of(group, "2")] == ["2-lb"]
    assert list(groups.companions_of(group, "3")) == []
    assert groups.count_companions(group, 3) == 2, "of the numbers 0, 2 and 3"
    assert [
        groups.companion_named(group, name) is not None for name in ("0-lb", "0-x", "1-lb", "3-lb", "9-lb", "0")
    ] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "member"), [("3-lb", "3"), ("12-a-b", "12"), ("3", "3"), ("a-b", "a-b"), ("-1", "-1"), ("", "")]
)
def test_the_member_that_something_stands_beside(name: str, member: str) -> None:
    assert member_of_name(name) == member
