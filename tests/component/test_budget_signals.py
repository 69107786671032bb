"""One budget (ADR 0067) where an update waits for the signals of members (ADR 0065): until they come these are away."""

from typing import Any

import pytest

from homeostat.convergence.facts.absences import absences
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.budget import Absence
from homeostat.model.group import GroupDefinition
from homeostat.services.explainer import Explainer
from homeostat.services.marks import MarkRequest, Marks
from homeostat.store.stacks import revisions, stacks
from tests.component.fleets import HEAT, Fleet

LOOK_S = 70.0
"""Within this time a look finds what has changed outside."""


def away(fleet: Fleet) -> dict[str, Absence]:
    with fleet.db.read() as tx:
        stack = stacks.get(tx, fleet.child().id)
        assert stack is not None
        return absences(
            tx, stacks.facts(stack), revisions.group_of(tx, stack.id, stack.revision) or GroupDefinition({}, None, 0)
        )


def explained(fleet: Fleet, stack_id: str, name: str) -> tuple[str, str] | None:
    """Why a resource waits; None if it does not."""
    with fleet.db.read() as tx:
        found = Explainer(tx, DesiredGraphs(), fleet.clock.now()).of_resource(fleet.stack(stack_id), name)
    return None if not found else (str(found[0].explanation.why), found[0].explanation.reason)


def is_odd(fleet: Fleet, number: int) -> bool:
    return bool(fleet.cloud.things("server")[fleet.handle(number)]["metadata"] == {"odd": "1"})


def drift(fleet: Fleet, number: int) -> None:
    fleet.cloud.change(fleet.handle(number), metadata={"odd": "1"})
    fleet.live(LOOK_S)


@pytest.mark.parametrize("limit", [{"limit": "1"}, {"MinInstancesInService": 2}])
def test_a_member_whose_signal_is_awaited_is_away(limit: dict[str, Any]) -> None:
    """To repair one that has drifted would take a second one out of service; it is repaired when the update is over."""
    fleet = Fleet(PauseTime="PT20M", **limit)
    fleet.change("two")
    assert away(fleet) == {"2": Absence.AWAITED}
    drift(fleet, 0)
    assert is_odd(fleet, 0)
    words = "1 of 3 members is away: 2 has yet to signal success; it goes on with at least 2 in service"
    why, reason = explained(fleet, fleet.child().id, "0") or ("", "")
    assert (why, reason.partition("; ")[2]) == ("budget", words)
    assert (explained(fleet, fleet.id, "group") or ("",))[0] == "reports"
    fleet.say(2)
    assert away(fleet) == {"1": Absence.AWAITED}
    fleet.say(1)
    fleet.say(0)
    assert (fleet.status, away(fleet)) == ("UPDATE_COMPLETE", {})
    assert not is_odd(fleet, 0)


def test_what_has_drifted_is_repaired_when_the_last_signal_has_come() -> None:
    fleet = Fleet(PauseTime="PT20M", limit="1")
    fleet.change("two")
    for number in (2, 1):
        fleet.say(number)
    drift(fleet, 2)
    assert (away(fleet), is_odd(fleet, 2)) == ({"0": Absence.AWAITED}, True)
    fleet.say(0)
    assert (fleet.status, away(fleet)) == ("UPDATE_COMPLETE", {})
    assert not is_odd(fleet, 2), "nobody had to look again"


def test_without_a_limit_it_is_repaired_at_once() -> None:
    fleet = Fleet(PauseTime="PT20M")
    fleet.change("two")
    drift(fleet, 0)
    assert not is_odd(fleet, 0)


def test_a_marked_member_is_replaced_while_others_have_to_signal() -> None:
    """Another one is made first, so that takes no one away; and the update goes on once it is there."""
    fleet = Fleet(PauseTime="PT20M", limit="1")
    fleet.change("two")
    before = fleet.handle(0)
    Marks(fleet.db).mark(fleet.child().id, MarkRequest(True, "by a monitor"), {"resources[0]": "0"})
    fleet.live(30)
    assert fleet.handle(0) != before
    for number in (2, 1, 0):
        fleet.say(number)
    assert fleet.status == "UPDATE_COMPLETE"


def test_a_batch_whose_members_have_signalled_waits_for_one_that_is_healed() -> None:
    fleet = Fleet(4, PauseTime="PT20M", limit="1")
    fleet.change("two")
    fleet.say(3)
    assert (fleet.images(), away(fleet)) == ("oott", {"2": Absence.AWAITED})
    fleet.cloud.behaviour.build_s = 100.0
    fleet.cloud.vanish(fleet.handle(3))
    fleet.live(LOOK_S)
    assert away(fleet) == {"3": Absence.HEALED, "2": Absence.AWAITED}
    fleet.cloud.behaviour.build_s = 1.0
    fleet.say(2)
    assert (fleet.images(), away(fleet)) == ("oott", {"3": Absence.HEALED})
    words = "1 of 4 members is away: 3 is being healed; the update goes on with at least 3 in service"
    assert explained(fleet, fleet.id, "group") == ("budget", words)
    fleet.live(100)
    assert fleet.images() == "ottt", "what 2 had said was not asked for once more"
    for number in (1, 0):
        fleet.say(number)
    assert fleet.status == "UPDATE_COMPLETE"


def test_what_is_lost_is_healed_although_healing_is_suspended_if_the_update_would_wait_for_it() -> None:
    fleet = Fleet(PauseTime="PT20M", limit="1", SuspendProcesses=["HealthCheck"])
    fleet.change("two")
    fleet.say(2)
    gone = fleet.handle(2)
    fleet.cloud.vanish(gone)
    fleet.live(LOOK_S)
    fleet.say(1)
    fleet.live(30)
    assert fleet.handle(2) != gone
    assert fleet.images() == "ttt"
    fleet.say(0)
    assert fleet.status == "UPDATE_COMPLETE"


def test_those_who_did_not_signal_success_go_back_first() -> None:
    """Of four two have changed; one of these failed. Going back begins with that one: only one is away."""
    fleet = Fleet(4, rollback=True, limit="1")
    fleet.change("two")
    fleet.say(3)
    fleet.say(2, "FAILURE", "no")
    assert (fleet.images(), away(fleet)) == ("ooot", {"2": Absence.AWAITED})
    fleet.say(2)
    assert (fleet.images(), away(fleet)) == ("oooo", {"3": Absence.AWAITED})
    fleet.say(3)
    assert (fleet.status, away(fleet)) == ("ROLLBACK_COMPLETE", {})


def test_another_update_begins_with_those_who_have_not_signalled() -> None:
    """Three were being changed at once. Of the next update one at a time may be, and these three are away already."""
    fleet = Fleet(6, HEAT, MaxBatchSize=3, limit="3")
    fleet.change("two")
    fleet.say(4)
    assert away(fleet) == {"3": Absence.AWAITED, "5": Absence.AWAITED}
    fleet.change("x", MaxBatchSize=1, limit="2")
    assert (fleet.images(), away(fleet)) == ("ooottx", {"3": Absence.AWAITED, "5": Absence.AWAITED})
    fleet.say(5)
    assert (fleet.images(), away(fleet)) == ("oooxtx", {"3": Absence.AWAITED})
    for number in (3, 4, 2, 1):
        assert len(away(fleet)) == 1
        fleet.say(number)
    assert fleet.images() == "xxxxxx"
    fleet.say(0)
    assert (fleet.status, away(fleet)) == ("UPDATE_COMPLETE", {})
