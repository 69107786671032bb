"""What an answer of the cloud means for a row."""

from typing import Any

import pytest
from tests.unit.planner.worlds import (
    NOW,
    row,
    seen,
    unanswered,
    world,
)

from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient, Uncertain, invalid
from homeostat.model.intent import ChangeIntent
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import DELETE, FIND, Act, Create, Operate, Step, StepOutcome, Update
from homeostat.model.status import joined
from homeostat.model.world import Resource
from homeostat.planner import outcome

ACTIVE = Observation(Presence.PRESENT, "h-new", {"status": "active"}, NOW)
BUILDING = Observation(Presence.PRESENT, "h-new", {"status": "building"}, NOW)
BROKEN = Observation(Presence.PRESENT, "h-new", {"status": "error", "fault": "no host"}, NOW)
STRANGE = Observation(Presence.PRESENT, "h-new", {"status": "odd"}, NOW)
GONE = Observation(Presence.ABSENT, "", seen_at=NOW)

UPDATING: dict[str, Any] = {"state": "UPDATE_IN_PROGRESS", "acted_at": None}
DELETING: dict[str, Any] = {"state": "DELETE_IN_PROGRESS", "acted_at": None}
CREATE, UPDATE, OPERATE = Create({}), Update({}, ()), Operate("start", {})
CASES: dict[str, tuple[Act, Resource, Observation | HomeostatError, str]] = {
    "made and ready": (CREATE, unanswered("a"), ACTIVE, "CREATE_COMPLETE h-new acted"),
    "made, not ready": (CREATE, unanswered("a"), BUILDING, "CREATE_IN_PROGRESS h-new acted"),
    "made, but broken: deciding knows the remedy": (
        CREATE,
        unanswered("a"),
        BROKEN,
        "CREATE_IN_PROGRESS h-new acted",
    ),
    "made, in a state that needs people": (CREATE, unanswered("a"), STRANGE, "CREATE_FAILED h-new acted"),
    "refused for good": (CREATE, unanswered("a"), Terminal("quota"), "CREATE_FAILED"),
    "the request was wrong": (CREATE, unanswered("a"), Rejected("NotSupported", "no"), "CREATE_FAILED"),
    "not now": (CREATE, unanswered("a"), Transient("busy", 7), "CREATE_IN_PROGRESS +7"),
    "perhaps": (CREATE, unanswered("a", retries=1), Uncertain("lost"), "CREATE_IN_PROGRESS +2"),
    "updated": (UPDATE, row("a", **UPDATING), ACTIVE, "UPDATE_COMPLETE h-new acted"),
    "updated, but it is gone": (UPDATE, row("a", **UPDATING), GONE, "UPDATE_IN_PROGRESS h-a1 +1"),
    "started": (OPERATE, row("a", **UPDATING), ACTIVE, "UPDATE_COMPLETE h-new acted"),
    "found": (FIND, unanswered("a"), ACTIVE, "CREATE_IN_PROGRESS h-new acted"),
    "not found: the token is given up": (FIND, unanswered("a"), GONE, "CREATE_IN_PROGRESS forsakes a1-1"),
    "the cloud cannot be asked": (FIND, unanswered("a"), Transient("down", 3), "CREATE_IN_PROGRESS +3"),
    "deleted": (DELETE, row("a", **DELETING), GONE, "removed"),
    "being deleted": (DELETE, row("a", **DELETING), BUILDING, "DELETE_IN_PROGRESS h-a1 acted"),
    "may not be deleted": (DELETE, row("a", **DELETING), Rejected("Forbidden", "locked"), "DELETE_FAILED h-a1"),
    "cannot be deleted now": (DELETE, row("a", **DELETING), Transient("busy", 4), "DELETE_IN_PROGRESS h-a1 +4"),
}


def described(record: StepOutcome) -> str:
    if record.removed:
        return "removed"
    mine = record.row
    parts = [joined(mine.action, mine.status), mine.handle]
    parts.append("acted" if mine.acted_at == NOW else "")
    parts.append(f"+{mine.due_at - NOW:g}" if mine.due_at is not None else "")
    parts.append(f"forsakes {record.orphan_token}" if record.orphan_token else "")
    return " ".join(part for part in parts if part)


@pytest.mark.parametrize("reason", CASES)
def test_conclude(reason: str) -> None:
    act, mine, answer, expected = CASES[reason]
    record = outcome.conclude(world(rows=[mine]), Step(mine, act), answer, NOW)
    assert described(record) == expected


@pytest.mark.parametrize(
    ("act", "mine", "answer", "expected"),
    [
        (CREATE, unanswered("a"), ACTIVE, ["CREATE_COMPLETE state changed"]),
        (CREATE, unanswered("a"), BUILDING, []),
        (CREATE, unanswered("a"), Terminal("quota"), ["CREATE_FAILED Terminal: resources.a: quota"]),
        (CREATE, unanswered("a"), Transient("busy"), []),
        (DELETE, row("a", **DELETING), GONE, ["DELETE_COMPLETE state changed"]),
    ],
    ids=["complete", "no change of state", "failed", "tried again", "gone"],
)
def test_every_change_of_state_has_its_event(act: Act, mine: Resource, answer: Any, expected: list[str]) -> None:
    record = outcome.conclude(world(rows=[mine]), Step(mine, act), answer, NOW)
    assert [f"{joined(each.action, each.status)} {each.reason}" for each in record.events] == expected


def test_completion_lets_dependants_read_again() -> None:
    mine = unanswered("a")
    of = world(rows=[mine])
    outcome.conclude(of, Step(mine, CREATE), ACTIVE, NOW)
    assert mine.changed == of.stamp > 0


def test_the_answer_becomes_the_newest_look_already_judged() -> None:
    mine = row("a", **UPDATING, judged_observation=6)
    of = world(rows=[mine], looks={"a1": seen("stopped", 7)})
    outcome.conclude(of, Step(mine, UPDATE), ACTIVE, NOW)
    assert of.seen["a1"].observation is ACTIVE
    assert mine.judged_observation == of.seen["a1"].number == 8


def test_backoff_grows_with_each_failure_that_time_mends() -> None:
    mine = unanswered("a", attempts=0)
    of = world(rows=[mine])
    delays = []
    for _ in range(4):
        outcome.conclude(of, Step(mine, CREATE), Uncertain("lost"), NOW)
        delays.append((mine.due_at or 0) - NOW)
    assert delays == [1, 2, 4, 8]


def test_what_may_come_late_keeps_its_token_until_that_time_is_over() -> None:
    mine = intended(unanswered("a"))
    of = world(rows=[mine])
    assert outcome.conclude(of, Step(mine, CREATE), Uncertain("lost", late_s=30), NOW).whole
    looks = {}
    for at in (1, 3, 29):
        assert outcome.conclude(of, Step(mine, FIND), GONE, NOW + at).orphan_token == ""
        looks[at] = (mine.token, mine.updated_at - NOW, (mine.due_at or 0) - NOW)
    assert looks == {1: ("a1-1", 0, 3), 3: ("a1-1", 0, 7), 29: ("a1-1", 0, 30)}
    # The cloud has to answer for all that time.
    outcome.conclude(of, Step(mine, FIND), Transient("down", 1), NOW + 29.5)
    assert outcome.conclude(of, Step(mine, FIND), GONE, NOW + 31).orphan_token == ""
    assert outcome.conclude(of, Step(mine, FIND), GONE, NOW + 60).orphan_token == "a1-1"
    assert mine.token == ""


def test_what_comes_late_is_taken() -> None:
    mine = intended(unanswered("a"))
    of = world(rows=[mine])
    outcome.conclude(of, Step(mine, CREATE), Uncertain("lost", late_s=30), NOW)
    outcome.conclude(of, Step(mine, FIND), GONE, NOW + 1)
    found = outcome.conclude(of, Step(mine, FIND), ACTIVE, NOW + 3)
    assert described(found).startswith("CREATE_IN_PROGRESS h-new")


def intended(mine: Resource) -> Resource:
    mine.intent = ChangeIntent((), 1)
    return mine


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("it broke", "ResourceInError: resources.a: it broke"),
        (Terminal("quota"), "Terminal: resources.a: quota"),
        (invalid("too long", "resources", "a", "name"), "Rejected: resources.a.name: too long"),
        (invalid("too long", "resources", "ab"), "Rejected: resources.a: resources.ab: too long"),
    ],
    ids=["a verdict", "an error", "an error that names the place", "an error that names another place"],
)
def test_failures_name_their_class_and_place(error: Exception | str, expected: str) -> None:
    assert outcome.failure_text(row("a"), error) == expected


def test_an_error_of_what_is_nested_keeps_its_place_where_names_are_the_same() -> None:
    described = outcome.failure_text(row("a", "OS::Heat::ResourceGroup"), invalid("too long", "resources", "a", "name"))
    assert described == "Rejected: resources.a: resources.a.name: too long"
