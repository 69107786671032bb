"""What the reports of members decide about a batch, and what a series asks of which members."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from homeostat.model.budget import Absence
from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition, RangedDefinition, Reports
from homeostat.planner.members import member_reports, rolling_update
from homeostat.planner.members.member_reports import GoOn, Refuse, Rest, Tally
from homeostat.resources import groups
from homeostat.resources.instance_signals import SIGNAL_FIELDS, batches_of, creation_of, duration_s
from homeostat.resources.schema import with_defaults

DUE = 100.0
OLD, NEW, THIRD = {"type": "T::Old"}, {"type": "T::New"}, {"type": "T::Third"}


def asked(total: int = 4, percent: float = 100, **more: Any) -> Reports:
    return Reports(**{"timeout": 60.0, "percent": percent, "count": None, "total": total, "number": 2, **more})


@pytest.mark.parametrize(
    ("wanted", "tally", "now", "kind"),
    [
        (asked(), Tally(1, {}, ("1",)), 99.0, Rest),
        (asked(), Tally(2), 0.0, GoOn),
        (asked(), Tally(1, {}, ("1",)), DUE, Refuse),
        (asked(), Tally(1, {"1": ""}, ()), 0.0, Refuse),
        (asked(percent=75), Tally(1, {"1": ""}, ()), 0.0, GoOn),
        (asked(percent=75), Tally(0, {"1": ""}, ("2",)), 0.0, Rest),
        (asked(percent=75), Tally(0, {"1": ""}, ("2",)), DUE, Refuse),
        (asked(percent=75, lost=1), Tally(1, {"1": ""}), 0.0, Refuse),
        (asked(percent=75, lost=1), Tally(2), 0.0, GoOn),
        (asked(percent=0), Tally(0, {"1": ""}, ("2",)), 0.0, Rest),
        (asked(percent=0), Tally(0, {"1": ""}, ("2",)), DUE, GoOn),
        (asked(), Tally(), 0.0, GoOn),
        (asked(total=2, count=2), Tally(1, {}, ("1", "2", "3")), 0.0, Rest),
        (asked(total=2, count=2), Tally(2, {}, ("3", "4")), 0.0, GoOn),
        (asked(total=2, count=2), Tally(1), DUE, Refuse),
        (asked(total=9, count=9), Tally(2), 0.0, Rest),
        (asked(total=2, count=2, percent=50), Tally(0, {"1": ""}, ("2",)), 0.0, Rest),
        (asked(total=2, count=2, percent=50), Tally(1, {"1": ""}, ("2",)), 0.0, GoOn),
        (asked(total=2, count=2, percent=50), Tally(1, {}, ("2",)), DUE, GoOn),
    ],
)
def test_verdicts(wanted: Reports, tally: Tally, now: float, kind: type) -> None:
    assert isinstance(member_reports.verdict(wanted, tally, DUE, now), kind)


def refusal(wanted: Reports, tally: Tally) -> str:
    assert isinstance(member_reports.verdict(wanted, tally, DUE, DUE), Refuse)
    return member_reports.refusal(wanted, tally).partition("requirement, which ")[2]


def test_reasons_say_what_is_missing() -> None:
    assert refusal(asked(), Tally(1, {"3": "disk is full"}, ("1", "2"))) == (
        "needs 4: batch 2: 3 failed: disk is full; 1, 2 did not report within 60 s"
    )
    assert refusal(asked(10, 80, lost=2), Tally(0, {"3": ""})) == (
        "needs 8: batch 2: 3 failed; 2 of earlier batches did not report success"
    )
    assert refusal(asked(3, count=3), Tally(1, {}, ("4", "5", "6", "7"))) == (
        "needs 3: 2 of 4 (4, 5, 6, 7) did not report within 60 s"
    )
    assert refusal(asked(9, count=9), Tally(1)) == "needs 9: 8 did not report within 60 s"


def test_reasons_of_large_batches_stay_short() -> None:
    many = [str(number) for number in range(10_000)]
    reason = refusal(asked(20_000), Tally(0, dict.fromkeys(many, "x" * 1000), tuple(many)))
    assert "and 9995 more failed" in reason
    assert len(reason) < 6000


def test_batches_before_count() -> None:
    after = member_reports.after(asked(lost=1, succeeded=2), Tally(1, {"1": ""}, ("2",)))
    assert (after.succeeded, after.lost) == (3, 3)


# -- the series --------------------------------------------------------------------------------------------------------


def group(count: int, one: dict[str, Any] = OLD, skip: Sequence[str] = (), **more: Any) -> GroupDefinition:
    return GroupDefinition.decoded({"resource_def": one, "index_var": None, "count": count, "skip": skip, **more})


def policy(size: int, in_service: int = 0, **more: Any) -> dict[str, Any]:
    chosen = {"max_batch_size": size, "min_in_service": in_service, "pause_time": 0.0}
    return {"rolling_update": {**chosen, "reports": {"timeout": 60.0, "percent": 100.0}, **more}}


def begun(
    before: GroupDefinition | None, wanted: GroupDefinition, chosen: dict[str, Any], *failed: str, **more: Any
) -> Any:
    return rolling_update.begin(before, wanted, chosen, failed, more.pop("new", False), now=5.0, **more)


def series(first: GroupDefinition) -> list[GroupDefinition]:
    found = [first]
    while (after := rolling_update.next_revision(found[-1], now=10.0 * len(found))) is not None:
        found.append(after)
        assert len(found) < 100, "a series without an end"
    return found


def batches(first: GroupDefinition) -> list[list[list[int]]]:
    return [each.encoded()["rollout"]["batch"] for each in series(first)]


def test_each_revision_says_whom_it_moves_and_since_when() -> None:
    first = begun(group(5), group(5, NEW), policy(2))
    assert batches(first) == [[[3, 5]], [[1, 3]], [[0, 1]]]
    found = [each.encoded()["rollout"]["reports"] for each in series(first)]
    assert [(each["number"], each["since"]) for each in found] == [(1, 5.0), (2, 10.0), (3, 20.0)]
    assert {each["total"] for each in found} == {5}


def test_extra_members_report_too() -> None:
    first = begun(group(3), group(3, NEW), policy(1, 3))
    assert batches(first) == [[[3, 4]], [[2, 3]], [[1, 2]], [[0, 1]], []]
    assert first.encoded()["rollout"]["reports"]["total"] == 4


def test_failed_members_come_first_and_report() -> None:
    first = begun(group(4), group(4, NEW), policy(2), "1")
    assert batches(first) == [[[1, 2]], [[2, 4]], [[0, 1]]]
    assert first.encoded()["rollout"]["reports"]["total"] == 4


def test_members_that_are_made_report_too() -> None:
    first = begun(group(2), group(4, NEW), policy(2))
    assert batches(first) == [[[2, 4]], [[0, 2]]]
    assert first.encoded()["rollout"]["reports"]["total"] == 4


def test_a_batch_under_way_goes_on_where_the_definition_stays() -> None:
    second = series(begun(group(4), group(4, NEW), policy(1)))[1]
    again = begun(second, group(6, NEW), policy(3), pending=True)
    asked_again, before = again.encoded()["rollout"]["reports"], second.encoded()["rollout"]["reports"]
    assert again.encoded()["rollout"]["batch"] == second.encoded()["rollout"]["batch"] == [[2, 3]]
    assert (asked_again["since"], asked_again["number"]) == (before["since"], before["number"])
    assert again.encoded()["count"] == 4, "others come once it has reported"
    assert sum(high - low for batch in batches(again)[1:] for low, high in batch) == 4, "two others, and two new ones"


def test_a_last_batch_under_way_goes_on_too() -> None:
    last = series(begun(group(2), group(2, NEW), policy(1)))[-1]
    again = begun(last, group(2, NEW), policy(1), pending=True)
    assert (again.encoded()["rollout"]["batch"], again.encoded()["count"]) == ([[0, 1]], 2)
    assert rolling_update.next_revision(again) is None


@pytest.mark.parametrize(
    ("wanted", "chosen", "pending"),
    [
        (group(2, NEW), policy(1, reports=None), True),
        (group(2, NEW), policy(1), False),
        (group(0, NEW), policy(1), True),
    ],
    ids=["no reports wanted any more", "nothing under way", "no member left"],
)
def test_a_batch_is_forgotten(wanted: Any, chosen: Any, pending: bool) -> None:
    last = series(begun(group(2), group(2, NEW), policy(1)))[-1]
    assert begun(last, wanted, chosen, pending=pending).series is None


def test_members_keep_what_they_have_where_only_the_size_changes() -> None:
    second = series(begun(group(4), group(4, NEW), policy(1)))[1]
    kept = rolling_update.resized(second, group(5, NEW))
    assert groups.earlier_runs(kept) == [(0, 2, OLD)]
    assert rolling_update.next_revision(kept) is None
    assert groups.earlier_runs(rolling_update.resized(second, group(1, NEW))) == [(0, 1, OLD)]


def test_a_new_definition_begins_anew() -> None:
    second = series(begun(group(3), group(3, NEW), policy(1)))[1]
    third = {"type": "T::Third"}
    first = begun(second, group(3, third), policy(1), pending=True)
    assert batches(first) == [[[2, 3]], [[1, 2]], [[0, 1]]]
    assert first.encoded()["rollout"]["reports"]["number"] == 1


def test_nothing_is_kept_track_of_where_no_one_asks() -> None:
    chosen = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0, "pause_time": 3.0}}
    assert "batch" not in begun(group(3), group(3, NEW), chosen).encoded()["rollout"]
    still = {"rolling_update": {**chosen["rolling_update"], "suspended": ["healing"]}}
    first = begun(group(3), group(3, NEW), still)
    assert batches(first) == [[[2, 3]], [[1, 2]], [[0, 1]]]
    assert "reports" not in first.encoded()["rollout"]


def test_a_creation_asks_all_members_at_once() -> None:
    creation = {"count": 2, "timeout": 300.0, "percent": 50.0}
    first = begun(None, group(3, NEW), {**policy(1), "creation": creation}, new=True)
    assert (first.encoded()["count"], batches(first)) == (3, [[[0, 3]]])
    reports = first.encoded()["rollout"]["reports"]
    assert (reports["count"], reports["total"], reports["since"]) == (2, 2, 5.0)
    assert begun(first, group(3, NEW), {**policy(1), "creation": creation}, new=True).series is None
    grown = begun(first, group(4, NEW), {**policy(1), "creation": creation}, new=True, pending=True)
    assert (series(grown)[-1].count, grown.encoded()["rollout"]["reports"]["since"]) == (4, 5.0)


def test_ranges_that_move() -> None:
    assert rolling_update.moved(None, group(3)) == [(0, 3)]
    assert rolling_update.moved(None, group(0)) == []
    assert rolling_update.moved(group(5), group(3)) == []
    assert rolling_update.moved(group(3), group(5)) == [(3, 5)]
    assert rolling_update.moved(group(3, skip=["1"]), group(3)) == [(1, 2)]
    assert rolling_update.moved(group(3), group(3), [0, 1, 7]) == [(0, 2)]


# -- what templates say ------------------------------------------------------------------------------------------------


def test_sections_of_templates() -> None:
    waits = with_defaults(SIGNAL_FIELDS, {"WaitOnResourceSignals": True})
    assert batches_of(waits) == {"pause_time": 0.0, "reports": {"timeout": 300.0, "percent": 100.0}}
    still = with_defaults(SIGNAL_FIELDS, {"SuspendProcesses": ["HealthCheck", "ReplaceUnhealthy", "Launch"]})
    assert batches_of({**still, "PauseTime": "PT10S"}) == {"pause_time": 10.0, "suspended": ["healing"]}
    assert creation_of(None) is None
    assert creation_of({"AutoScalingCreationPolicy": {"MinSuccessfulInstancesPercent": 50}}) is None
    assert creation_of({"ResourceSignal": {}}) == {"count": 1, "timeout": 300.0, "percent": 100.0}
    assert duration_s("PT1H1M1S", "Timeout", 7200) == 3661


@pytest.mark.parametrize("text", ["PT" + "9" * 12 + "S", "PT\u0663S", "PT", "1", ""])
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(Rejected, match=r"is no time|is more than"):
        duration_s(text, "PauseTime")


@pytest.mark.parametrize("seed", range(200))
def test_as_many_are_asked_as_was_said_although_members_are_away_meanwhile(seed: int) -> None:
    rng = random.Random(seed)
    limit = {"max_unavailable": rng.choice(("1", "2", "40%"))} if rng.random() < 0.7 else {}
    chosen = policy(rng.randint(1, 4), rng.randint(0, 7))
    now = begun(group(rng.randint(1, 8)), group(rng.randint(0, 8), NEW), {**chosen, **limit})
    if now.series is None:
        return
    asked, total = size_of_batch(now), now.encoded()["rollout"]["reports"]["total"]
    for turn in range(80):
        away = [str(number) for number in range(12) if rng.random() < 0.25] if turn < 20 else []
        after = rolling_update.next_revision(now, away)
        if after is None and rolling_update.is_over(now):
            assert asked == total
            return
        if after is not None:
            asked, now = asked + size_of_batch(after), after
    raise AssertionError(f"a series without an end: {now}")


def size_of_batch(of: GroupDefinition) -> int:
    return groups.members_in([(low, high, {}) for low, high in of.encoded()["rollout"]["batch"]], of.encoded()["skip"])


def test_the_next_update_begins_with_those_that_did_not_report_and_names_those_that_it_leaves() -> None:
    """A batch of three was under way; of them 3 has reported. Now one at a time may be away."""
    before = group(6, NEW, earlier=[{"resource_def": OLD, "numbers": [[0, 3]]}])
    before = before.with_series(begun(group(6), group(6, NEW), policy(3)).series)
    away = {"4": Absence.AWAITED, "5": Absence.AWAITED}
    chosen = {**policy(1), "max_unavailable": "2"}
    first = begun(before, group(6, THIRD), chosen, away=away, pending=True)
    assert (first.encoded()["rollout"]["batch"], rolling_update.unheard(first)) == ([[5, 6]], ((4, 5, 5.0),))
    tight = first.with_series(replace(first.series, max_unavailable="1"))
    second = rolling_update.next_revision(tight, ["4"])
    assert second is not None, "a member that is away already takes no room"
    assert (second.encoded()["rollout"]["batch"], rolling_update.unheard(second)) == ([[4, 5]], ())
    other = rolling_update.next_revision(tight, ["0"])
    assert other is not None
    assert (other.encoded()["rollout"]["batch"], rolling_update.unheard(other)) == ([[0, 1]], ()), (
        "4 has reported meanwhile"
    )
    left = replace(tight, earlier=(RangedDefinition(OLD, ((1, 5),)),))
    assert rolling_update.next_revision(left, "0") is None


def test_who_has_the_wanted_definition_already_is_not_waited_for_once_more() -> None:
    """From the first to the second definition, and back before anybody has reported."""
    before = begun(group(3), group(3, NEW), policy(3))
    again = begun(before, group(3), policy(1), away=dict.fromkeys("12", Absence.AWAITED), pending=True)
    assert [each[0] for each in rolling_update.unheard(again)] == [1]
    back = begun(again, group(3, NEW), policy(1), away=dict.fromkeys("12", Absence.AWAITED), pending=True)
    assert not rolling_update.unheard(back)


def test_a_group_that_asks_nothing_remembers_none_that_did_not_report() -> None:
    plain = {"rolling_update": {"max_batch_size": 1, "min_in_service": 0, "pause_time": 0.0}}
    first = begun(group(3), group(3, NEW), plain, away={"0": Absence.AWAITED, "1": Absence.AWAITED}, pending=True)
    assert "unheard" not in first.encoded()["rollout"]
