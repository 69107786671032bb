"""Which members of a group have a new definition, step by step, and how all go back: tables of cases."""

from typing import Any

import pytest

from homeostat.model.group import GroupDefinition
from homeostat.model.rollout import MemberOrder, RolloutSettings
from homeostat.planner.members import staged_group
from homeostat.planner.members.staged_group import Unreached
from homeostat.resources import groups

A, B, C = ({"type": name} for name in "abc")


def group(definition: Any, count: int = 4, skip: tuple[str, ...] = ()) -> GroupDefinition:
    return GroupDefinition(definition, None, count, skip)


def shown(found: Any) -> str:
    """The definitions of the members, in order."""
    members = groups.definitions_between(found, 0, groups.end_of(found))
    return "".join(definition["type"] for _, definition in members)


def names(found: Any, wanted: int, failed: tuple[str, ...] = (), **settings: Any) -> str:
    return "".join(staged_group.chosen(found, RolloutSettings(**settings), wanted, failed))


@pytest.fixture
def staged() -> GroupDefinition:
    return staged_group.begin(group(A), group(B), 7)


def test_no_member_has_it_before_the_first_step(staged: GroupDefinition) -> None:
    assert (shown(staged), staged_group.given(staged)) == ("aaaa", 0)
    assert staged_group.is_about(staged, 7)
    assert not staged_group.is_about(staged, 8)
    assert not staged_group.is_about(group(A), 7)


def test_it_goes_on_to_the_end_or_back(staged: GroupDefinition) -> None:
    step = staged_group.with_given(staged, ["0", "2"])
    assert (shown(step), staged_group.given(step)) == ("baba", 2)
    assert staged_group.finished(step) == group(B)
    assert staged_group.taken_back(step) == group(A)
    assert shown(staged_group.stopped(step)) == "baba"
    assert staged_group.stopped(step).staged is None


def test_members_that_come_have_the_old_definition(staged: GroupDefinition) -> None:
    step = staged_group.with_given(staged, ["0"])
    assert shown(staged_group.begin(step, group(B, 6), 9)) == "baaaaa"
    assert staged_group.is_about(staged_group.begin(step, group(B, 6), 9), 7), "it is the same rollout"
    assert shown(staged_group.begin(step, group(B, 1), 9)) == "b"
    assert shown(staged_group.begin(group(A, 2, ("0",)), group(B, 3), 9)) == "aaa"


def test_a_correction_keeps_what_each_has_and_goes_back_to_what_was_there_first(staged: GroupDefinition) -> None:
    step = staged_group.with_given(staged, ["0", "1"])
    corrected = staged_group.begin(step, group(C), 9)
    assert (shown(corrected), staged_group.is_about(corrected, 9)) == ("bbaa", True)
    assert shown(staged_group.taken_back(corrected)) == "aaaa"
    assert staged_group.begin(corrected, group(A), 11) == group(A), "at once"
    assert staged_group.begin(corrected, group(B), 11).staged is not None, "not what all had before"


def test_what_all_have_already_needs_no_steps() -> None:
    assert staged_group.begin(group(A), group(A, 9), 7) == group(A, 9)
    assert staged_group.begin(group(A, 0), group(B, 3), 7) == group(B, 3), "there was none to keep"


def test_after_an_abort_each_goes_back_to_what_it_had(staged: GroupDefinition) -> None:
    mixed = staged_group.stopped(staged_group.with_given(staged, ["1"]))
    again = staged_group.begin(mixed, group(B), 9)
    assert shown(again) == "abaa"
    assert shown(staged_group.taken_back(staged_group.with_given(again, ["0", "2"]))) == "abaa"


def test_wrong_ones_come_first_and_all_that_have_failed_before_them(staged: GroupDefinition) -> None:
    assert names(staged, 2) == "01"
    assert names(staged, 1, ("3", "2")) == "23"
    corrected = staged_group.begin(staged_group.with_given(staged, ["2"]), group(C), 9)
    assert list(Unreached(corrected).wrong()) == ["2"]
    assert names(corrected, 2) == "20"
    assert names(corrected, 2, ("3",)) == "32"
    assert names(corrected, 9) == "2013"


def test_a_random_order_is_the_same_for_the_same_seed(staged: GroupDefinition) -> None:
    orders = {names(staged, 4, order=MemberOrder.RANDOM, seed=seed) for seed in range(9)}
    assert len(orders) > 3
    assert {"".join(sorted(each)) for each in orders} == {"0123"}
    step = staged_group.with_given(staged, ["1"])
    assert names(step, 4, order=MemberOrder.RANDOM, seed=1) == names(
        staged, 4, order=MemberOrder.RANDOM, seed=1
    ).replace("1", "")


def test_who_is_unreached(staged: GroupDefinition) -> None:
    unreached = Unreached(staged_group.with_given(staged, ["1"]))
    assert [name for name in ("0", "1", "2", "3", "4", "x", "") if name in unreached] == ["0", "2", "3"]
