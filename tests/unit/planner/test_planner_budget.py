"""One budget: how many members may be away, who is, for whom something waits, and what batches take within it."""

import random
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.planner.worlds import absent, row, seen

from homeostat.model.budget import Absence, Limit
from homeostat.model.group import GroupDefinition
from homeostat.model.marks import Marks, UnhealthyMark
from homeostat.model.world import Resource, Seen
from homeostat.planner.members import rolling_update
from homeostat.planner.policies import budget
from homeostat.resources import groups

OLD, NEW = {"type": "T::Old"}, {"type": "T::New"}
MARKED = Marks(UnhealthyMark("it smells", 0.0))
HEALED = Marks(healing=True)


@pytest.mark.parametrize(
    ("limit", "members", "most"),
    [
        (Limit(), 10, 10),
        (Limit(8), 10, 2),
        (Limit(10), 10, 0),
        (Limit(12), 10, 0),
        (Limit(0, "3"), 10, 3),
        (Limit(0, "25%"), 10, 2),
        (Limit(0, "29%"), 100, 29),
        (Limit(0, "1%"), 10, 1),
        (Limit(9, "50%"), 10, 1),
        (Limit(5, "2"), 10, 2),
    ],
    ids=str,
)
def test_how_many_may_be_away(limit: Limit, members: int, most: int) -> None:
    assert limit.away_max(members) == most
    assert [budget.room(limit, members, away) for away in (0, 1, 99)] == [most, max(most - 1, 0), 0]


def test_without_numbers_there_is_no_limit() -> None:
    assert [each.binds for each in (Limit(), Limit(1), Limit(0, "1%"))] == [False, True, True]


def test_limits_come_from_the_update_policy() -> None:
    assert budget.limit_of({}) == Limit()
    assert budget.limit_of({"rolling_update": None, "max_unavailable": None}) == Limit()
    assert budget.limit_of({"rolling_update": {"min_in_service": 2}, "max_unavailable": "10%"}) == Limit(2, "10%")


@pytest.mark.parametrize(
    ("one", "look", "why"),
    [
        (row("1"), None, None),
        (row("1"), seen(), None),
        (row("1"), absent(), Absence.GONE),
        (row("1", handle="", state="CREATE_IN_PROGRESS"), None, None),
        (row("1", handle="", state="INIT_COMPLETE"), None, None),
        (row("1", state="CREATE_IN_PROGRESS", replaces="a0"), None, Absence.CHANGED),
        (row("1", handle="", state="INIT_COMPLETE", replaces="a0"), None, Absence.CHANGED),
        (row("1", state="CREATE_COMPLETE", replaces="a0"), None, None),
        (row("1", state="UPDATE_IN_PROGRESS"), seen(), Absence.CHANGED),
        (row("1", state="CHECK_IN_PROGRESS"), seen(), None),
        (row("1", state="UPDATE_IN_PROGRESS", marks=HEALED), seen(), Absence.HEALED),
        (row("1", handle="", state="INIT_COMPLETE", replaces="a0", marks=HEALED), None, Absence.HEALED),
        (row("1", state="UPDATE_FAILED"), seen(), Absence.FAILED),
        (row("1", state="CHECK_FAILED", marks=MARKED), seen(), Absence.MARKED),
        (row("1", state="CHECK_FAILED", replaced_by="a9"), absent(), None),
        (row("1", state="DELETE_IN_PROGRESS"), absent(), None),
    ],
)
def test_who_is_away(one: Resource, look: Seen | None, why: Absence | None) -> None:
    assert budget.absence_of(one, look) == why
    assert budget.away_of([one], {} if look is None else {one.key: look}) == ({} if why is None else {"1": why})


def test_for_whom_something_waits() -> None:
    healed = dict.fromkeys(("7", "3"), Absence.HEALED)
    words = "2 of 10 members are away: 3 and 7 are being healed; the update goes on with at least 8 in service"
    assert budget.waits_for(healed, 10, Limit(8)) == words
    mixed = {"10": Absence.CHANGED, "9": Absence.GONE, "2": Absence.MARKED, "4": Absence.FAILED}
    assert budget.waits_for(mixed, 20, Limit(0, "10%"), 3, "it") == (
        "7 of 20 members are away: 10 is being changed, 2 is marked unhealthy, 4 has failed, 9 is gone, "
        "3 in other parts of the group; it goes on with at least 18 in service"
    )
    many = {str(number): Absence.GONE for number in range(8)}
    assert budget.waits_for(many, 9, Limit()) == (
        "8 of 9 members are away: 0, 1, 2, 3, 4 and 3 more are gone; the update goes on once they are back"
    )


# -- batches within it -----------------------------------------------------------------------------------------------


def group(count: int, old: Collection[int], rollout: dict[str, Any], skip: Collection[str] = ()) -> GroupDefinition:
    """Members of which those with these numbers have the earlier definition."""
    entry = {"resource_def": OLD, "numbers": [[number, number + 1] for number in sorted(old)]}
    plain = {"resource_def": NEW, "index_var": "%index%", "count": count, "skip": list(skip), "rollout": rollout}
    return GroupDefinition.decoded({**plain, "earlier": [entry]} if old else plain)


def rollout(target: int, size: int, in_service: int = 0, limit: str = "") -> dict[str, Any]:
    more = {"max_unavailable": limit} if limit else {}
    return {"target": target, "max_batch_size": size, "min_in_service": in_service, "pause_time": 0, **more}


def members(one: GroupDefinition) -> dict[str, str]:
    """Name of each member -> `o` with the earlier definition, `n` with the newest."""
    found = groups.definitions_between(one, 0, groups.end_of(one))
    return {name: "o" if definition == OLD else "n" for name, definition in found}


def letters(one: GroupDefinition | None) -> str:
    return "" if one is None else "".join(members(one).values())


ALL = range(4)


@pytest.mark.parametrize(
    ("before", "away", "after"),
    [
        (group(4, ALL, rollout(4, 2, 2)), "", "oonn"),
        (group(4, ALL, rollout(4, 2, 2)), "0", "noon"),
        (group(4, ALL, rollout(4, 2, 2)), "01", "nnoo"),
        (group(4, ALL, rollout(4, 2, 2)), "012", "onno"),
        (group(4, ALL, rollout(4, 1, 3)), "0", "nooo"),
        (group(4, [0, 1, 2], rollout(4, 1, 3)), "3", ""),
        (group(4, [0, 1, 2], rollout(4, 2, 2)), "3", "oonn"),
        (group(4, [0, 1, 2], rollout(4, 2, 1, "2")), "3", "oonn"),
        (group(4, [0, 1, 2], rollout(4, 2, 0, "1")), "3", ""),
        (group(4, ALL, rollout(4, 3, 0, "1")), "", "ooon"),
        (group(4, ALL, rollout(4, 3, 0, "50%")), "", "oonn"),
        (group(4, ALL, rollout(4, 1, 4)), "0", "oooon"),
        (group(5, ALL, rollout(4, 1, 4)), "4", ""),
        (group(5, ALL, rollout(4, 1, 4)), "2", "oonon"),
        (group(5, [], rollout(4, 1, 4)), "1", ""),
        (group(5, [], rollout(4, 1, 4)), "4", "nnnn"),
        (group(5, [], rollout(4, 1, 3)), "1", "nnnn"),
        (group(4, ALL, rollout(2, 1, 2)), "", "ono"),
        (group(4, ALL, rollout(2, 1, 2)), "0", "noo"),
        (group(4, ALL, rollout(2, 1, 2)), "01", "onoo"),
        (group(4, [], rollout(4, 1, 2)), "0", ""),
        (group(3, ALL, rollout(3, 1, 2)), "9", "oon"),
    ],
    ids=str,
)
def test_a_batch_with_members_away(before: GroupDefinition, away: str, after: str) -> None:
    assert letters(rolling_update.next_revision(before, list(away))) == after


def test_what_a_series_waits_for() -> None:
    healed = {"3": Absence.HEALED}
    waiting = group(4, [0, 1, 2], rollout(4, 1, 3))
    assert rolling_update.waits(waiting, healed).endswith("goes on with at least 3 in service")
    assert rolling_update.waits(group(4, [0, 1, 2], rollout(4, 1)), healed).endswith("goes on once they are back")
    assert rolling_update.waits(waiting, {}) == ""
    assert rolling_update.waits(waiting, {"9": Absence.GONE}) == ""
    assert rolling_update.waits(group(4, [], rollout(4, 1, 3)), healed) == ""


def begun(away: dict[str, Absence], wanted: int = 4, **policy: Any) -> str:
    before = GroupDefinition(OLD, "%index%", 4)
    chosen = {"max_batch_size": 2, "min_in_service": 3, "pause_time": 0}
    after = replace(before, resource_def=NEW, count=wanted)
    return letters(rolling_update.begin(before, after, {"rolling_update": chosen, **policy}, (), False, away))


def test_an_update_begins_with_those_who_are_away() -> None:
    assert begun({}) == "ooonn", "one more than there should be, so that three stay"
    assert begun({"0": Absence.HEALED}) == "nooon", "none of the others"
    assert begun({"0": Absence.CHANGED}) == "nooon"


def test_an_update_that_waits_for_members_still_adds_others() -> None:
    assert begun({"0": Absence.HEALED}, wanted=6) == "nooonn"


def test_a_limit_alone_makes_batches() -> None:
    assert begun({}, rolling_update=None, max_unavailable="50%") == "oonn"
    assert begun({"0": Absence.GONE}, rolling_update=None, max_unavailable="2") == "noon"
    assert begun({}, rolling_update=None, max_unavailable=None) == "nnnn"


@pytest.mark.parametrize("seed", range(300))
def test_no_batch_exceeds_the_budget_and_every_series_ends(seed: int) -> None:
    rng = random.Random(seed)
    target, count = rng.randint(0, 8), rng.randint(0, 8)
    skip = [str(number) for number in range(9) if rng.random() < 0.15]
    limit = rng.choice(("", "", "1", "2", "40%"))
    plan = rollout(target, rng.randint(1, 4), rng.randint(0, 9), limit)
    names = [int(name) for name in groups.member_names(count, skip)]
    now = group(count, [number for number in names if rng.random() < 0.7], plan, skip)
    for turn in range(60):
        away = {str(number) for number in range(12) if rng.random() < 0.25} if turn < 20 else set()
        after = rolling_update.next_revision(now, away)
        if after is None and rolling_update.is_over(now):
            assert set(members(now).values()) <= {"n"}
            assert now.count == target
            return
        assert after is not None or away & members(now).keys(), "nobody is away, and it does not go on"
        if after is not None:
            judge(now, after, away)
            now = after
    raise AssertionError(f"a series without an end: {now}")


def judge(before: GroupDefinition, after: GroupDefinition, away: set[str]) -> None:
    plan, old, new = before.series, members(before), members(after)
    assert plan is not None
    kept = min(plan.min_in_service, plan.target, before.count)
    there, changed = old.keys() & new.keys(), {name for name in old.keys() & new.keys() if old[name] != new[name]}
    gone, taken = there & away, changed - away
    assert len(changed) <= plan.max_batch_size
    if taken or (old.keys() - new.keys()) - away:
        assert len(there) - len(gone) - len(taken) >= kept, (before, after, away)
    if taken:
        most = Limit(0, plan.max_unavailable).unavailable_max(plan.target)
        assert len(gone) + len(taken) <= most
        wanted = set(groups.member_names(plan.target, before.skip))
        left = {name for name in gone & wanted if old[name] == "o"} - changed
        assert not left, "others were changed before those who were away"
