"""Deletion policy Snapshot: what may be lost is snapshotted first, and deleted only after that (CV12, CV14)."""

from typing import Any

import pytest
from tests.unit.planner.worlds import (
    NOW,
    SERVER,
    TEST,
    VOLUME,
    absent,
    decide_leftover,
    described,
    events,
    row,
    seen,
    unknown,
    wanted,
    world,
)

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected, Terminal, Transient
from homeostat.model.intent import ChangeIntent, OperationIntent, SnapshotMade
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Operate, Step
from homeostat.model.status import joined
from homeostat.model.world import Resource, Seen, World
from homeostat.planner import outcome

NEWER = {"revision": 2, "action": "UPDATE", "settled_revision": 1}
ASKED = OperationIntent("snapshot", token="a1-7")


def lived(name: str = "a", type: str = VOLUME, **more: Any) -> Resource:
    """A row that was complete once."""
    return row(name, type, **{"deletion_policy": "Snapshot", "changed": 3, "resolved": 7, **more})


def leaving(state: str = "DELETE_IN_PROGRESS", **more: Any) -> Resource:
    """One whose snapshot was asked for three seconds ago."""
    return lived(state=state, **{"intent": ASKED, "acted_at": NOW - 3, **more})


def snapshot(status: str, token: str = "a1-7", **more: Any) -> Seen:
    return seen("available", 2, snapshots=[{"id": "s-1", "token": token, "status": status, **more}])


HERE = wanted("a", VOLUME, policy="Delete")
CASES: dict[str, tuple[Resource, Seen | None, Definition | None, dict[str, Any], str]] = {
    "it lived": (lived(), None, None, {}, "operate snapshot"),
    "a server that lived": (lived(type=SERVER), None, None, {}, "operate snapshot"),
    "it never came to be": (lived(state="CREATE_FAILED", changed=0), None, None, {}, "delete"),
    "it was still being built": (lived(state="CREATE_IN_PROGRESS", changed=0), seen("creating"), None, {}, "delete"),
    "it failed after it had lived": (lived(state="UPDATE_FAILED"), None, None, {}, "operate snapshot"),
    "nothing of it is known to the cloud": (lived(handle=""), None, None, {}, "removed"),
    "its type cannot: it is kept": (lived(type=TEST), None, None, {}, "removed"),
    "broken, and to be made anew": (
        lived(state="DELETE_IN_PROGRESS", acted_at=None, intent=ChangeIntent()),
        seen("error", 2),
        wanted("a", VOLUME, policy="Snapshot"),
        {},
        "operate snapshot",
    ),
    "asked for without an answer": (leaving(acted_at=None), None, None, {}, "operate snapshot"),
    "the cloud was busy": (leaving(acted_at=None, due_at=NOW + 4), None, None, {}, "waits: backoff +4"),
    "being made": (leaving(), snapshot("creating"), None, {}, "waits: snapshot"),
    "complete": (leaving(), snapshot("available"), None, {}, "delete"),
    "another one is complete": (leaving(acted_at=NOW), snapshot("available", "b"), None, {}, "waits: snapshot +1"),
    "not seen yet": (leaving(acted_at=NOW), None, None, {}, "waits: snapshot +1"),
    "not seen yet by a cloud that lists late": (leaving(), None, None, {"listing_lag_s": 9}, "waits: snapshot +7"),
    "lost on the way": (leaving(), None, None, {}, "operate snapshot"),
    "failed": (leaving(), snapshot("error"), None, {}, "record DELETE_FAILED"),
    "one look has missed the thing meanwhile": (leaving(), absent(), None, {}, "observe"),
    "the cloud does not answer": (leaving(), unknown(), None, {}, "waits: unseen"),
    "complete, deletion without answer": (
        leaving(acted_at=None, intent=SnapshotMade("s")),
        None,
        None,
        {},
        "delete",
    ),
    "complete, being deleted": (leaving(intent=SnapshotMade("s")), seen("deleting", 2), None, {}, "waits: building"),
    "complete, gone": (leaving(intent=SnapshotMade("s")), absent(), None, {}, "removed"),
    "failed at this revision": (leaving("DELETE_FAILED"), snapshot("error"), None, {}, "waits: failed"),
    "failed at an earlier revision": (leaving("DELETE_FAILED"), snapshot("error"), None, NEWER, "operate snapshot"),
    "being made, not wanted by a newer revision": (
        leaving(),
        snapshot("creating"),
        None,
        NEWER,
        "waits: snapshot",
    ),
    "now to be deleted, while it is being made": (leaving(), snapshot("creating"), HERE, NEWER, "delete"),
    "now to be deleted, while the cloud is busy": (leaving(acted_at=None, due_at=NOW + 9), None, HERE, NEWER, "delete"),
    "now to be deleted, after it failed": (leaving("DELETE_FAILED"), snapshot("error"), HERE, NEWER, "delete"),
    "now to be kept, while it is being made": (
        leaving(),
        snapshot("creating"),
        wanted("a", VOLUME, policy="Retain"),
        NEWER,
        "removed",
    ),
    "the revision that replaced it has another policy": (leaving(), snapshot("creating"), HERE, {}, "waits: snapshot"),
    "deleted so far, its deletion failed, now to be snapshotted": (
        lived(state="DELETE_FAILED", deletion_policy="Delete"),
        None,
        wanted("a", VOLUME, policy="Snapshot"),
        NEWER,
        "operate snapshot",
    ),
    "the deletion is under way, too late for another policy": (
        lived(state="DELETE_IN_PROGRESS", deletion_policy="Delete"),
        seen("deleting", 2),
        wanted("a", VOLUME, policy="Snapshot"),
        NEWER,
        "waits: building",
    ),
}


@pytest.mark.parametrize("reason", CASES)
def test_leaving_with_a_snapshot(reason: str) -> None:
    mine, look, definition, more, expected = CASES[reason]
    looks = {"a1": look} if look is not None else {}
    of = world([definition] if definition is not None else [], [mine], looks, **more)
    assert described(decide_leftover(of, mine)) == expected


def operation(of: World, mine: Resource) -> tuple[Step, Operate]:
    step = decide_leftover(of, mine)
    assert isinstance(step, Step)
    assert isinstance(step.act, Operate)
    return step, step.act


def test_the_intent_is_in_the_row_before_the_cloud_hears_of_it() -> None:
    mine = lived()
    step, act = operation(world([], [mine]), mine)
    assert act.arguments == {"token": "a1-8", "name": "web-a-a1"}
    assert mine.intent == OperationIntent("snapshot", token="a1-8")
    assert (joined(mine.action, mine.status), mine.acted_at) == ("DELETE_IN_PROGRESS", None)
    assert events(step) == ["a DELETE_IN_PROGRESS"]


def test_what_has_no_answer_is_asked_for_with_the_same_token_and_no_second_event() -> None:
    mine = leaving(acted_at=None)
    step, act = operation(world([], [mine]), mine)
    assert act.arguments["token"] == "a1-7"
    assert step.events == []


@pytest.mark.parametrize(
    ("look", "token"),
    [
        (None, "a1-7"),  # it may still come
        (snapshot("creating"), "a1-7"),
        (snapshot("error"), "a1-8"),
        (snapshot("available"), "a1-8"),  # the thing may have been written to since
    ],
)
def test_a_new_attempt_goes_on_with_a_snapshot_that_may_still_come(look: Seen | None, token: str) -> None:
    mine = leaving("DELETE_FAILED")
    of = world([], [mine], {"a1": look} if look is not None else {}, **NEWER)
    step, act = operation(of, mine)
    assert act.arguments["token"] == token
    assert events(step) == ["a DELETE_IN_PROGRESS"]


def test_tokens_of_one_row_never_come_again() -> None:
    mine = lived()
    operation(world([], [mine]), mine)
    again = world([], [mine], {"a1": snapshot("error", "a1-8")}, **NEWER)
    mine.status = "FAILED"
    assert operation(again, mine)[1].arguments["token"] == "a1-9"


def test_the_snapshot_is_in_the_events_while_it_is_deleted_and_in_the_end() -> None:
    mine = leaving()
    of = world([], [mine], {"a1": snapshot("available")})
    step = decide_leftover(of, mine)
    assert isinstance(step, Step)
    assert step.events == []
    assert (mine.intent, mine.reason) == (SnapshotMade("s-1"), "state changed; its snapshot is s-1")
    gone = outcome.conclude(of, step, Observation(Presence.ABSENT, "h"), NOW)
    assert gone.removed
    assert [event.reason for event in gone.events] == ["state changed; its snapshot is s-1"]


def test_the_answer_alone_does_not_delete() -> None:
    mine = leaving(acted_at=None)
    of = world([], [mine])
    step, _ = operation(of, mine)
    record = outcome.conclude(of, step, snapshot("creating").observation, NOW)
    assert (record.removed, mine.acted_at, mine.status) == (False, NOW, "IN_PROGRESS")
    assert described(decide_leftover(of, mine)) == "waits: snapshot"


def test_what_is_gone_already_needs_no_snapshot_and_says_so() -> None:
    mine = leaving(acted_at=None)
    of = world([], [mine])
    record = outcome.conclude(of, operation(of, mine)[0], Observation(Presence.ABSENT, "h"), NOW)
    assert record.removed
    assert "before a snapshot" in record.events[0].reason


@pytest.mark.parametrize("error", [Terminal("quota"), Rejected("Forbidden", "quota")])
def test_a_refusal_keeps_the_thing_and_names_the_remedy(error: Exception) -> None:
    mine = leaving(acted_at=None)
    of = world([], [mine])
    step, _ = operation(of, mine)
    record = outcome.conclude(of, step, error, NOW)  # type: ignore[arg-type]
    assert not record.removed
    assert joined(mine.action, mine.status) == "DELETE_FAILED"
    assert "quota" in mine.reason
    assert "another deletion policy" in mine.reason


def test_a_failed_snapshot_names_its_fault_and_the_remedy() -> None:
    mine = leaving()
    decide_leftover(world([], [mine], {"a1": snapshot("error", fault="disk full")}), mine)
    assert "s-1 failed: disk full" in mine.reason
    assert "another deletion policy" in mine.reason


def test_a_busy_cloud_is_asked_again_later() -> None:
    mine = leaving(acted_at=None)
    of = world([], [mine])
    outcome.conclude(of, operation(of, mine)[0], Transient("busy", 5.0), NOW)
    assert described(decide_leftover(of, mine)) == "waits: backoff +5"


def test_a_deletion_that_fails_after_its_snapshot_does_not_speak_of_snapshots() -> None:
    mine = leaving(acted_at=None, intent=SnapshotMade("s"))
    of = world([], [mine])
    step = decide_leftover(of, mine)
    assert isinstance(step, Step)
    outcome.conclude(of, step, Terminal("locked"), NOW)
    assert joined(mine.action, mine.status) == "DELETE_FAILED"
    assert mine.reason == "Terminal: resources.a: locked; its snapshot is s"


def test_what_two_looks_have_not_found_has_gone_before_its_snapshot() -> None:
    """A list that left it out for a moment would leave it over, with its data."""
    mine = leaving()
    of = world([], [mine], {"a1": absent()})
    of.looked.add("a1")
    assert described(decide_leftover(of, mine)) == "removed"
