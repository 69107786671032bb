"""What a resource that should exist needs now: one case a branch."""

from typing import Any

import pytest
from tests.unit.planner.worlds import (
    LONG_AGO,
    NOW,
    TEST,
    VOLUME,
    absent,
    decide,
    decide_leftover,
    described,
    row,
    seen,
    unanswered,
    unknown,
    wanted,
    world,
)

from homeostat.model.desired import Definition
from homeostat.model.world import Resource, Seen

Case = tuple[Definition, Resource | None, Seen | None, dict[str, Any], str]

UPDATED = {"revision": 2, "action": "UPDATE", "settled_revision": 1}
HALTED = {**UPDATED, "status": "FAILED", "reason": "another one failed"}
AT_REST = {"status": "COMPLETE", "settled_revision": 1}
HERE = wanted("a")

BEGINNING: dict[str, Case] = {
    "there is no row": (HERE, None, None, {}, "create in a new row"),
    "there is no row, and the stack has failed": (HERE, None, None, HALTED, "waits: halted"),
    "its values do not fit its type": (
        wanted("a", VOLUME, size="big"),
        None,
        None,
        {},
        "record CREATE_FAILED in a new row",
    ),
    "a reserved row whose predecessor is gone": (
        HERE,
        row("a", state="INIT_COMPLETE", handle="", token="", replaces="a0"),
        None,
        {},
        "create",
    ),
}

IN_PROGRESS: dict[str, Case] = {
    "sent perhaps, asked to come later": (HERE, unanswered("a", due_at=NOW + 3), None, {}, "waits: backoff +3"),
    "sent perhaps, a look would not show it yet": (
        HERE,
        unanswered("a"),
        None,
        {"listing_lag_s": 5},
        "waits: backoff +5",
    ),
    "sent perhaps: look first": (HERE, unanswered("a"), None, {}, "find"),
    "sent perhaps, due now": (HERE, unanswered("a", due_at=NOW), None, {}, "find"),
    "looked for in vain: try anew": (HERE, unanswered("a", token=""), None, {}, "create"),
    "being built": (HERE, row("a", state="CREATE_IN_PROGRESS"), seen("building"), {}, "waits: building"),
    "as it should be": (HERE, row("a", state="CREATE_IN_PROGRESS"), seen(), {}, "record CREATE_COMPLETE"),
    "drift is judged once it rests": (
        wanted("a", metadata={"k": "v"}),
        row("a", state="CREATE_IN_PROGRESS", properties={"image": "i", "flavor": "small", "metadata": {"k": "v"}}),
        seen(metadata={"k": "w"}),
        {},
        "record CREATE_COMPLETE",
    ),
    "made, but not listed yet": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS", acted_at=NOW - 1),
        absent(),
        {"listing_lag_s": 5},
        "waits: building +4",
    ),
    "made, and gone again": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS", acted_at=NOW - 6),
        absent(),
        {"listing_lag_s": 5, "looked": {"a1"}},
        "create in a new row",
    ),
    "vanished during an update": (HERE, row("a", state="UPDATE_IN_PROGRESS"), absent(), {}, "observe"),
    "vanished during an update, by two looks": (
        HERE,
        row("a", state="UPDATE_IN_PROGRESS"),
        absent(),
        {"looked": {"a1"}},
        "create in a new row",
    ),
    "built, but broken: it goes first": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen("error"),
        {},
        "record INIT_COMPLETE in a new row",
    ),
    "broken again: at growing intervals": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS", attempts=3, updated_at=NOW),
        seen("error"),
        {},
        "waits: backoff +2",
    ),
    "broken too often": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS", attempts=5),
        seen("error"),
        {},
        "record CREATE_FAILED",
    ),
    "the cloud is silent": (HERE, row("a", state="CREATE_IN_PROGRESS"), unknown(), {}, "waits: unseen"),
    "stopped before it was seen running": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen("stopped"),
        {},
        "operate start",
    ),
    "broken in a way that needs people": (
        wanted("a", TEST, fail=True),
        row("a", TEST, "CREATE_IN_PROGRESS", properties={"fail": True}),
        seen(None),
        {},
        "record CREATE_FAILED",
    ),
    "time alone makes it ready": (
        wanted("a", TEST, wait_secs=5),
        row("a", TEST, "CREATE_IN_PROGRESS", properties={"value": "v", "wait_secs": 5}, acted_at=NOW - 2),
        seen(None),
        {},
        "waits: building +3",
    ),
    "an update without an answer is asked for again": (
        HERE,
        row("a", state="UPDATE_IN_PROGRESS", acted_at=None),
        None,
        {},
        "update",
    ),
    "an update without an answer, asked to come later": (
        HERE,
        row("a", state="UPDATE_IN_PROGRESS", acted_at=None, due_at=NOW + 3),
        None,
        {},
        "waits: backoff +3",
    ),
    "what runs in a failed stack is finished": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen(),
        {"status": "FAILED"},
        "record CREATE_COMPLETE",
    ),
}

LARGE = wanted("a", flavor="large")
REDIRECTED: dict[str, Case] = {
    "the new revision wants the same": (
        HERE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen("building"),
        UPDATED,
        "waits: building",
    ),
    "built for what nobody wants any more": (
        LARGE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen("building"),
        UPDATED,
        "record INIT_COMPLETE in a new row",
    ),
    "an update is overtaken by another": (
        LARGE,
        row("a", state="UPDATE_IN_PROGRESS"),
        seen("resizing"),
        UPDATED,
        "update",
    ),
    "an update without an answer is asked for again before the newer one": (
        LARGE,
        row("a", state="UPDATE_IN_PROGRESS", acted_at=None),
        None,
        UPDATED,
        "update",
    ),
    "a creation without an answer is looked for before a new one": (
        LARGE,
        unanswered("a"),
        None,
        UPDATED,
        "find",
    ),
    "another type": (
        wanted("a", VOLUME),
        row("a", state="CREATE_IN_PROGRESS"),
        seen(),
        UPDATED,
        "record INIT_COMPLETE in a new row",
    ),
    "another type, nothing sent yet": (wanted("a", VOLUME), unanswered("a", token=""), None, UPDATED, "create"),
    "what was begun goes on in a failed stack": (
        LARGE,
        row("a", state="CREATE_IN_PROGRESS"),
        seen("building"),
        HALTED,
        "waits: building",
    ),
}

FAILED: dict[str, Case] = {
    "at this revision: only people can help": (HERE, row("a", state="CREATE_FAILED"), None, {}, "waits: failed"),
    "the stack has failed again meanwhile": (HERE, row("a", state="CREATE_FAILED"), None, HALTED, "waits: halted"),
    "nothing was made: the same row tries again": (
        HERE,
        row("a", state="CREATE_FAILED", handle="", token=""),
        None,
        UPDATED,
        "create",
    ),
    "what was made goes first": (
        HERE,
        row("a", state="CREATE_FAILED"),
        seen("error"),
        UPDATED,
        "record INIT_COMPLETE in a new row",
    ),
    "an update failed and the thing is broken: the new one first": (
        HERE,
        row("a", state="UPDATE_FAILED"),
        seen("error"),
        UPDATED,
        "create in a new row",
    ),
    "found unhealthy: the new one first": (
        HERE,
        row("a", state="CHECK_FAILED"),
        seen("error"),
        UPDATED,
        "create in a new row",
    ),
}

RESTING: dict[str, Case] = {
    "nothing is new": (HERE, row("a"), None, AT_REST, "settled"),
    "an update that leaves it alone": (HERE, row("a"), None, UPDATED, "settled"),
    "changed in place": (LARGE, row("a"), None, UPDATED, "update"),
    "changed in place, in a failed stack": (LARGE, row("a"), None, HALTED, "waits: halted"),
    "what cannot change in place": (wanted("a", key_name="k"), row("a"), None, UPDATED, "create in a new row"),
    "another type": (wanted("a", VOLUME), row("a"), None, UPDATED, "create in a new row"),
    "replaced on the type's own judgement": (
        wanted("a", TEST, value="w", update_replace=True),
        row("a", TEST, properties={"value": "v", "update_replace": True}),
        seen(None),
        UPDATED,
        "create in a new row",
    ),
    "a change that is refused": (
        wanted("a", VOLUME, size=1),
        row("a", VOLUME, properties={"size": 2}),
        seen("available"),
        UPDATED,
        "record UPDATE_FAILED",
    ),
    "a change that no cloud hears of": (
        wanted("a", flavor_update_policy="REPLACE"),
        row("a"),
        None,
        UPDATED,
        "record UPDATE_COMPLETE",
    ),
    "only the deletion policy changed": (wanted("a", policy="Retain"), row("a"), None, UPDATED, "settled, noted"),
    "taken back by a rollback": (HERE, row("a", replaced_by="a2"), None, UPDATED, "settled, noted"),
}

GROWN = {"image": "i", "flavor": "small", "metadata": {"k": "v"}}
TWICE: dict[str, Any] = {**AT_REST, "looked": {"a1"}}
HEALING: dict[str, Case] = {
    "gone, by one look": (HERE, row("a"), absent(), AT_REST, "observe"),
    "gone, a moment ago": (HERE, row("a"), absent(), {**AT_REST, "second_look_s": 0.5}, "waits: unseen +0.5"),
    "gone, and cannot be looked for now": (HERE, row("a", due_at=NOW + 2), absent(), AT_REST, "waits: unseen +2"),
    "gone, by two looks": (HERE, row("a"), absent(), TWICE, "create in a new row"),
    "gone, in a failed stack too": (HERE, row("a"), absent(), {**TWICE, "status": "FAILED"}, "create in a new row"),
    "stopped": (HERE, row("a"), seen("stopped", 2), AT_REST, "operate start"),
    "paused": (HERE, row("a"), seen("paused", 2), AT_REST, "operate unpause"),
    "in error": (HERE, row("a"), seen("error", 2), AT_REST, "record INIT_COMPLETE in a new row"),
    "changed outside": (
        wanted("a", metadata={"k": "v"}),
        row("a", properties=GROWN),
        seen("active", 2, metadata={"k": "w"}),
        AT_REST,
        "update",
    ),
    "only people can help": (
        wanted("a", VOLUME),
        row("a", VOLUME),
        seen("error", 2, attachments=[{"id": "x"}]),
        AT_REST,
        "record CHECK_FAILED",
    ),
    "changing by itself": (HERE, row("a"), seen("rebooting", 2), AT_REST, "settled, noted"),
    "the cloud is silent": (HERE, row("a"), unknown(), AT_REST, "settled, noted"),
    "switched off by the user": (HERE, row("a"), absent(), {**AT_REST, "converge": False}, "settled, noted"),
    "judged already": (HERE, row("a", judged_observation=2), seen("stopped", 2), AT_REST, "settled"),
    "gone for the second time in a minute": (
        HERE,
        row("a", updated_at=NOW - 0.5, attempts=2),
        absent(),
        AT_REST,
        "waits: backoff +0.5",
    ),
    "gone often, but well for long since": (
        HERE,
        row("a", updated_at=LONG_AGO, attempts=9),
        absent(),
        TWICE,
        "create in a new row",
    ),
    "stopped for the third time in a minute": (
        HERE,
        row("a", updated_at=NOW - 0.5, attempts=2),
        seen("stopped", 2),
        AT_REST,
        "waits: backoff +0.5",
    ),
}

TABLES = {
    "beginning": BEGINNING,
    "in progress": IN_PROGRESS,
    "redirected": REDIRECTED,
    "failed": FAILED,
    "resting": RESTING,
    "healing": HEALING,
}
CASES = [
    pytest.param(*case, id=f"{table}: {reason}") for table, cases in TABLES.items() for reason, case in cases.items()
]


@pytest.mark.parametrize(("definition", "mine", "look", "more", "expected"), CASES)
def test_keep(
    definition: Definition, mine: Resource | None, look: Seen | None, more: dict[str, Any], expected: str
) -> None:
    rows = [mine] if mine is not None else []
    looks = {"a1": look} if look is not None else {}
    assert described(decide(world([definition], rows, looks, **more), definition)) == expected


DROPPED: dict[str, tuple[Resource, Seen | None, dict[str, Any], str]] = {
    "a thing that nobody wants": (row("a"), None, {}, "delete"),
    "still being built": (row("a", state="CREATE_IN_PROGRESS"), seen("building"), {}, "delete"),
    "sent perhaps, and to be kept: look first, to tell its handle": (
        unanswered("a", deletion_policy="Retain"),
        None,
        {},
        "find",
    ),
    "kept by its policy": (row("a", deletion_policy="Retain"), None, {}, "removed"),
    "nothing was ever made": (row("a", state="CREATE_FAILED", handle="", token=""), None, {}, "removed"),
    "reserved only": (row("a", state="INIT_COMPLETE", handle="", token=""), None, {}, "removed"),
    "sent perhaps: look first": (unanswered("a"), None, {}, "find"),
    "sent perhaps, a look would not show it yet": (unanswered("a"), None, {"listing_lag_s": 5}, "waits: backoff +5"),
    "looked for in vain": (unanswered("a", token=""), None, {}, "removed"),
    "its deletion has no answer": (row("a", state="DELETE_IN_PROGRESS", acted_at=None), None, {}, "delete"),
    "its deletion is asked to come later": (
        row("a", state="DELETE_IN_PROGRESS", acted_at=None, due_at=NOW + 3),
        None,
        {},
        "waits: backoff +3",
    ),
    "being deleted": (row("a", state="DELETE_IN_PROGRESS"), seen("deleting"), {}, "waits: building"),
    "gone": (row("a", state="DELETE_IN_PROGRESS"), absent(), {}, "removed"),
    "its deletion failed at this revision": (row("a", state="DELETE_FAILED"), None, {}, "waits: failed"),
    "its deletion failed at an earlier revision": (row("a", state="DELETE_FAILED"), None, UPDATED, "delete"),
    "found unhealthy before": (row("a", state="CHECK_FAILED"), absent(), {}, "delete"),
}


@pytest.mark.parametrize("reason", DROPPED)
def test_drop(reason: str) -> None:
    leftover, look, more, expected = DROPPED[reason]
    looks = {"a1": look} if look is not None else {}
    assert described(decide_leftover(world([], [leftover], looks, **more), leftover)) == expected
