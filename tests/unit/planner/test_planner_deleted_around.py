"""What is nested in a stack that is being deleted: acts end, and none is begun, for what will be deleted anyway."""

from copy import deepcopy
from typing import Any

import pytest
from tests.unit.planner.worlds import (
    NOW,
    VOLUME,
    absent,
    decide,
    decide_leftover,
    described,
    row,
    seen,
    unanswered,
    wanted,
    world,
)

from homeostat.model.desired import Definition
from homeostat.model.marks import Marks, UnhealthyMark
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Enclosing, KeepPolicy, Resource, Seen
from homeostat.planner.lifecycle import deleted_around

WAITS = "waits: to_be_deleted"
AT_REST: dict[str, Any] = {"status": "COMPLETE", "settled_revision": 1, "complete_revision": 1}
UPDATED: dict[str, Any] = {"revision": 2, "action": "UPDATE", "settled_revision": 1, "complete_revision": 1}
CREATING = dict[str, Any]()
HERE = wanted("a")
MARKED = row("a", state="CHECK_FAILED", marks=Marks(UnhealthyMark("it smells", NOW - 30)))

Case = tuple[Definition, Resource | None, Seen | None, dict[str, Any], str, str]

CASES: dict[str, Case] = {
    "there is no row": (HERE, None, None, CREATING, "create in a new row", WAITS),
    "its predecessor is gone": (
        HERE,
        row("a", state="INIT_COMPLETE", handle="", token="", replaces="a0"),
        None,
        AT_REST,
        "create",
        WAITS,
    ),
    "it is well": (HERE, row("a"), None, AT_REST, "settled", "settled"),
    "it is well, and changed by itself": (HERE, row("a"), seen(number=3), AT_REST, "settled, noted", "settled, noted"),
    "it is gone": (HERE, row("a"), absent(), AT_REST, "observe", WAITS),
    "it is broken": (HERE, row("a"), seen("error", 3), AT_REST, "record INIT_COMPLETE in a new row", WAITS),
    "it was stopped": (HERE, row("a"), seen("stopped", 3), AT_REST, "operate start", WAITS),
    "it is marked unhealthy": (HERE, MARKED, None, AT_REST, "create in a new row", WAITS),
    "it is known to be gone": (
        HERE,
        row("a", state="CHECK_FAILED"),
        absent(),
        AT_REST,
        "observe",
        WAITS,
    ),
    "a newer revision changes it": (wanted("a", flavor="big"), row("a"), None, UPDATED, "update", WAITS),
    "it is being made": (HERE, row("a", state="CREATE_IN_PROGRESS"), seen("building"), CREATING,
                         "waits: building", "waits: building"),
    "it was made": (HERE, row("a", state="CREATE_IN_PROGRESS"), seen(), CREATING,
                    "record CREATE_COMPLETE", "record CREATE_COMPLETE"),
    "it broke while it was made": (HERE, row("a", state="CREATE_IN_PROGRESS", attempts=0), seen("error"), CREATING,
                                   "record INIT_COMPLETE in a new row", WAITS),
    "it was sent perhaps": (HERE, unanswered("a"), None, CREATING, "find", "find"),
    "it was sent, and not found": (HERE, unanswered("a", token=""), None, CREATING, "create", WAITS),
    "a newer revision replaces it in progress": (
        wanted("a", image="j"),
        row("a", state="UPDATE_IN_PROGRESS"),
        None,
        UPDATED,
        "update",
        "record UPDATE_COMPLETE",
    ),
    "it is gone, and stays": (
        wanted("a", policy="Retain"),
        row("a", deletion_policy="Retain"),
        absent(),
        AT_REST,
        "observe",
        "observe",
    ),
    "a newer revision has it stay": (
        wanted("a", policy="Retain"),
        row("a"),
        None,
        UPDATED,
        "settled, noted",
        "settled, noted",
    ),
    "it is gone, and the last revision had it stay": (
        HERE,
        row("a", deletion_policy="Retain"),
        absent(),
        AT_REST,
        "observe",
        "observe",
    ),
    "its data stay": (
        wanted("a", VOLUME, policy="Snapshot"),
        row("a", VOLUME, deletion_policy="Snapshot"),
        absent(),
        AT_REST,
        "observe",
        "observe",
    ),
}  # fmt: skip


@pytest.mark.parametrize("to_be_deleted", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_is_begun_for_what_goes_with_a_stack_around_its_own(case: Case, *, to_be_deleted: bool) -> None:
    definition, mine, look, facts, usually, then = case
    looks = {} if mine is None or look is None else {mine.key: look}
    of = world([definition], [] if mine is None else [deepcopy(mine)], looks, to_be_deleted=to_be_deleted, **facts)
    assert described(decide(of, definition)) == (then if to_be_deleted else usually)


def test_leftovers_of_such_a_stack_are_deleted() -> None:
    left = row("b")
    assert described(decide_leftover(world([], [left], to_be_deleted=True, **UPDATED), left)) == "delete"


def test_it_is_examined_again_since_nothing_wakes_it_where_the_deletion_around_it_has_ended_otherwise() -> None:
    decision = decide(world([HERE], [row("a")], {"a1": absent()}, to_be_deleted=True, **AT_REST), HERE)
    assert isinstance(decision, Waiting)
    assert decision.why is Why.TO_BE_DELETED
    assert decision.reason == "it is gone; nothing is made for what will be deleted"
    assert decision.ends_at == NOW + deleted_around.AGAIN_S


def around(state: str, policy: str = "Delete", spares: str | None = None) -> Enclosing:
    action, _, status = state.partition("_")
    return Enclosing(action, status, spares, policy)


@pytest.mark.parametrize(
    ("stacks", "to_be_deleted"),
    [
        ([], False),
        ([around("CREATE_COMPLETE")], False),
        ([around("UPDATE_IN_PROGRESS")], False),
        ([around("DELETE_IN_PROGRESS")], True),
        ([around("CREATE_COMPLETE"), around("UPDATE_FAILED"), around("DELETE_IN_PROGRESS")], True),
        ([around("DELETE_IN_PROGRESS"), around("UPDATE_IN_PROGRESS")], True),
        ([around("DELETE_FAILED")], False),
        ([around("DELETE_FAILED"), around("DELETE_IN_PROGRESS")], False),
        ([around("DELETE_COMPLETE", "Retain")], False),
        ([around("DELETE_COMPLETE")], False),
        ([around("DELETE_IN_PROGRESS", "Retain")], False),
        ([around("DELETE_IN_PROGRESS", "Snapshot")], False),
        ([around("CREATE_COMPLETE", "Retain"), around("DELETE_IN_PROGRESS")], False),
        ([around("CREATE_COMPLETE"), around("DELETE_IN_PROGRESS", "Retain")], False),
        ([around("DELETE_IN_PROGRESS", spares=KeepPolicy.ALL)], False),
        ([around("DELETE_IN_PROGRESS", spares=KeepPolicy.ADOPTED)], False),
    ],
)
def test_a_nested_stack_goes_with_what_is_deleted_around_it_unless_it_may_be_kept(
    stacks: list[Enclosing], *, to_be_deleted: bool
) -> None:
    assert deleted_around.is_to_be_deleted(stacks) is to_be_deleted
