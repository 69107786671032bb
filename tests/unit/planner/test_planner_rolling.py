"""Batches of groups: how large they are, who is in them, and how a series begins, goes on and ends."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.model.group import GroupDefinition, RangedDefinition
from homeostat.planner.members import rolling_update
from homeostat.resources import groups

OLD, NEW, THIRD = ({"type": f"T::{name}"} for name in ("Old", "New", "Third"))
Batches = list[tuple[int, int]]

TABLE: list[tuple[tuple[int, int, int, int], Batches]] = [
    ((3, 3, 1, 0), [(3, 1), (3, 1), (3, 1)]),
    ((3, 3, 1, 3), [(4, 1), (4, 1), (4, 1), (4, 1), (3, 0)]),
    ((3, 3, 2, 2), [(4, 2), (4, 2), (3, 0)]),
    ((4, 4, 2, 3), [(5, 2), (5, 2), (4, 1)]),
    ((5, 3, 2, 3), [(5, 2), (5, 2), (5, 1)]),
    ((2, 4, 1, 2), [(3, 1), (3, 1), (2, 0)]),
    ((4, 0, 2, 0), [(2, 2), (4, 2)]),
    ((0, 0, 1, 0), []),
]
"""(target, current, batch size, in service) -> (members during the batch, members made or changed)."""


@pytest.mark.parametrize(("case", "wanted"), TABLE, ids=[str(case[0]) for case in TABLE])
def test_sizes_of_batches(case: tuple[int, int, int, int], wanted: Batches) -> None:
    target, current, size, in_service = case
    assert list(rolling_update.batches(target, current, 0, size, in_service)) == wanted


def group(count: int, one: dict[str, Any] = OLD, skip: Sequence[str] = (), **more: Any) -> GroupDefinition:
    return GroupDefinition.decoded({"resource_def": one, "index_var": "%index%", "count": count, "skip": skip, **more})


def policy(size: int, in_service: int = 0, pause: float = 0) -> dict[str, Any]:
    chosen = {"max_batch_size": size, "min_in_service": in_service, "pause_time": pause}
    return {"rolling_update": chosen, "batch_create": None}


def creating(size: int, pause: float = 0) -> dict[str, Any]:
    return {"rolling_update": None, "batch_create": {"max_batch_size": size, "pause_time": pause}}


def series(first: GroupDefinition) -> list[GroupDefinition]:
    found = [first]
    while (after := rolling_update.next_revision(found[-1])) is not None:
        found.append(after)
        assert len(found) < 100, "a series without an end"
    return found


def letters(one: GroupDefinition) -> str:
    """Its members in order: `o` with the old definition, `n` with the new one, `t` with the third."""
    members = groups.definitions_between(one, 0, groups.end_of(one))
    return "".join(definition["type"][3].lower() for _, definition in members)


def rolled(before: GroupDefinition | None, wanted: GroupDefinition, chosen: dict[str, Any], **more: Any) -> list[str]:
    first = rolling_update.begin(before, wanted, chosen, more.get("failed", ()), more.get("new", False))
    return [letters(each) for each in series(first)]


def test_what_is_still_to_come() -> None:
    first = rolling_update.begin(group(3), group(5, NEW), policy(2), (), False)
    assert [rolling_update.remaining(each) for each in series(first)] == [(3, 0), (1, 0), (0, 0)]
    first = rolling_update.begin(None, group(5, NEW), creating(2), (), True)
    assert [rolling_update.remaining(each) for each in series(first)] == [(0, 3), (0, 1), (0, 0)]
    assert rolling_update.remaining(group(3)) == (0, 0)


@pytest.mark.parametrize(
    ("before", "target", "chosen", "wanted"),
    [
        (3, 3, policy(1), ["oon", "onn", "nnn"]),
        (3, 3, policy(2), ["onn", "nnn"]),
        (3, 3, policy(9), ["nnn"]),
        (3, 3, policy(1, 3), ["ooon", "oonn", "onnn", "nnnn", "nnn"]),
        (3, 3, policy(2, 2), ["oonn", "nnnn", "nnn"]),
        (4, 4, policy(2, 3), ["ooonn", "onnnn", "nnnn"]),
        (3, 5, policy(2, 3), ["ooonn", "onnnn", "nnnnn"]),
        (4, 2, policy(1, 2), ["ono", "nno", "nn"]),
        (4, 0, policy(1), [""]),
        (0, 3, policy(1), ["nnn"]),
    ],
    ids=str,
)
def test_a_rolling_update(before: int, target: int, chosen: dict[str, Any], wanted: list[str]) -> None:
    assert rolled(group(before), group(target, NEW), chosen) == wanted


def test_every_batch_of_the_table_is_what_the_members_show() -> None:
    for (target, current, size, in_service), wanted in TABLE[:-2]:
        first = rolling_update.begin(group(current), group(target, NEW), policy(size, in_service), (), False)
        assert [each.count for each in series(first)] == [total for total, _ in wanted]


def test_members_that_were_removed_by_name_do_not_count() -> None:
    before, wanted = group(4, OLD, ["1"]), group(3, NEW, ["1", "3"])
    assert rolled(before, wanted, policy(1)) == ["oon", "onn", "nnn"]
    first = rolling_update.begin(before, wanted, policy(1), (), False)
    assert dict(groups.definitions_between(first, 0, 9)) == {"0": OLD, "2": OLD, "4": NEW}


def test_a_name_that_is_in_use_again_gets_the_new_definition() -> None:
    first = rolling_update.begin(group(2, OLD, ["0"]), group(3, NEW), policy(1), (), False)
    assert dict(groups.definitions_between(first, 0, 9)) == {"0": NEW, "1": OLD, "2": NEW}


def test_who_has_a_name_that_is_in_use_again_is_away_until_it_is_made() -> None:
    """Found by the simulation: it counted as in service, and another one was changed beside it."""
    first = rolling_update.begin(group(3, OLD, ["1"]), group(3, NEW), policy(2, 2), (), False)
    assert dict(groups.definitions_between(first, 0, 9)) == {"0": OLD, "1": NEW, "2": OLD, "3": NEW}


def test_without_a_policy_all_change_at_once() -> None:
    assert rolled(group(3), group(3, NEW), {"rolling_update": None, "batch_create": None}) == ["nnn"]


def test_only_a_new_definition_is_rolled_out() -> None:
    assert rolled(group(3), group(9), policy(1)) == ["ooooooooo"]


def interrupted(batches: int) -> GroupDefinition:
    """A rolling update of five members, one after the other, after so many of them."""
    return series(rolling_update.begin(group(5), group(5, NEW), policy(1), (), False))[batches - 1]


def test_a_change_of_mind_goes_on_from_what_there_is() -> None:
    now = interrupted(2)
    assert letters(now) == "ooonn"
    assert rolled(now, group(5, THIRD), policy(2)) == ["ooott", "otttt", "ttttt"]
    assert rolled(now, group(5, OLD), policy(1)) == ["ooono", "ooooo"], "back: only those that had moved"
    assert rolled(now, group(5, NEW), policy(3)) == ["nnnnn"], "on: only those that had not"
    assert rolled(now, group(5, NEW), {"rolling_update": None}) == ["nnnnn"], "without a policy, at once"


def test_interrupted_again_and_again() -> None:
    one = interrupted(2)
    other = rolling_update.begin(one, group(5, THIRD), policy(1), (), False)
    assert letters(other) == "ooont"
    assert rolled(other, group(6, NEW), policy(2)) == ["ooonnn", "onnnnn", "nnnnnn"]


def test_failed_members_are_mended_first_and_with_the_new_definition() -> None:
    assert rolled(group(3), group(3, NEW), policy(1), failed={"1"}) == ["ono", "onn", "nnn"]


def test_failed_members_that_are_not_wanted_are_not_mended() -> None:
    assert rolled(group(5), group(3, NEW), policy(1), failed={"4"}) == ["oooo", "oon", "onn", "nnn"]
    assert rolled(group(4), group(3, NEW), policy(1), failed={"3"})[0] == "ooo"


def test_members_are_created_in_batches() -> None:
    assert rolled(None, group(5), creating(2), new=True) == ["oo", "oooo", "ooooo"]
    assert rolled(None, group(0), creating(2), new=True) == [""]


def test_a_creation_that_failed_goes_on_in_batches() -> None:
    before = rolling_update.begin(None, group(5), creating(2), (), True)
    assert rolled(before, group(5), creating(2), failed={"1"}, new=True) == ["oo", "oooo", "ooooo"]
    assert rolled(before, group(5, NEW), creating(2), failed={"1"}, new=True) == ["nn", "nnnn", "nnnnn"]


def test_a_group_that_was_complete_grows_at_once() -> None:
    assert rolled(group(2), group(5), creating(2)) == ["ooooo"]


def test_pauses_are_between_batches() -> None:
    first = rolling_update.begin(group(3), group(3, NEW), policy(1, pause=10), (), False)
    assert list(rolling_update.pauses_s(first)) == [10.0, 10.0]


def test_a_large_group_takes_little_room() -> None:
    before = group(1_000_000)
    now = rolling_update.begin(before, group(1_000_000, NEW), policy(10), (), False)
    assert now.earlier == (RangedDefinition(OLD, ((0, 999_990),)),)
    after = rolling_update.next_revision(now)
    assert after is not None
    assert groups.differences(now, after) == [(999_980, 999_990)]


def test_at_the_end_nothing_is_left_of_earlier_definitions() -> None:
    last = series(rolling_update.begin(group(3), group(3, NEW), policy(2, 2), (), False))[-1]
    assert not last.earlier
    assert groups.all_runs(last) == [(0, 3, NEW)]


def own(*numbers: int, one: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"numbers": [[each, each + 1] for each in numbers], "resource_def": one}]


def test_members_with_definitions_of_their_own_change_in_batches_as_the_others_do() -> None:
    before, wanted = group(4, OLD, own=own(1, 2, one=OLD)), group(4, NEW, own=own(1, 2, one=THIRD))
    assert rolled(before, wanted, policy(2)) == ["ootn", "nttn"]
    assert rolled(before, wanted, {}) == ["nttn"]


def test_only_those_change_whose_own_definition_does() -> None:
    before, wanted = group(4, OLD, own=own(0, one=NEW)), group(4, OLD, own=own(0, 3, one=NEW))
    assert rolled(before, wanted, policy(1)) == ["noon"]
    assert rolled(before, group(4, NEW), policy(2)) == ["nonn", "nnnn"]
