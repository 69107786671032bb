"""Rollouts of a new definition: members of a group are changed or replaced step by step, behind gates (ADR 0068)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Change, Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import Rejected, Terminal
from homeostat.model.rollout import Steering
from homeostat.model.status import Action
from homeostat.store.stacks import revisions, rollouts
from tests.component.running import Service, group, server
from tests.component.test_steered_rollouts import FAILING
from tests.simulation.actors import VirtualClock

TIMEOUT_S = 600


def resources(
    image: str,
    count: int = 4,
    pattern: str = "canary",
    gated: bool = True,
    metadata: str = "",
    replaces: bool = True,
    **policy: Any,
) -> dict[str, Any]:
    """A group of servers whose image is changed by a rollout, and a wait condition that depends on it.

    replaces — whether another image comes with other user data, so that servers are replaced, not rebuilt.
    """
    member = server(name="m%index%", image=image, **({"user_data": image} if replaces else {}))
    mine: dict[str, Any] = group(count, member, metadata_update_pattern=pattern)
    mine["update_policy"] = {"rollout": {"applies_to": "definition", **policy}}
    if metadata:
        mine["metadata"] = {"v": metadata}
    condition = {"handle": {"get_resource": "handle"}, "timeout": TIMEOUT_S, "count": 1}
    gate = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {"type": "OS::Heat::WaitCondition", "properties": condition, "depends_on": ["group"]},
    }
    return {"group": mine, **(gate if gated else {})}


class Images(SimulatedCloud):
    """A cloud that may have some images only: `images`, or "" for any."""

    images = ""

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return [self._refused(each.spec) or super(Images, self).create(kind, [each])[0] for each in intents]

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return [self._refused(each.spec) or super(Images, self).update(kind, [each])[0] for each in changes]

    def _refused(self, spec: Mapping[str, Any]) -> Terminal | None:
        missing = self.images and spec.get("image") not in (None, *self.images)
        return Terminal(f"there is no image {spec['image']}") if missing else None


class Fleet(Service):
    """A service with one group at rest."""

    def __init__(self, made: Callable[..., dict[str, Any]] = resources, **more: Any) -> None:
        super().__init__(cloud=self._made)
        self.made, self.more = made, more
        gated = more.get("gated", made is resources)
        self.id = self.begin(made("a", **more))
        if gated:
            self.live(5)
            self.signal(self.id, "handle")
        self.rest()
        assert self.state(self.id) == "CREATE_COMPLETE"

    def _made(self, clock: VirtualClock) -> SimulatedCloud:
        self.some = Images(clock.now)
        return self.some

    def change(self, image: str, seconds: float = 30, there: str = "", **more: Any) -> None:
        """there — the images that the cloud has in the meantime; any by default."""
        self.more |= more
        self.some.images = there
        self.update(self.id, self.made(image, **self.more))
        self.live(seconds)
        self.some.images = ""

    def members(self) -> list[Any]:
        """Rows of the members, in the order of their numbers."""
        rows = [row for row in self.rows(self.child().id) if row.replaced_by is None and row.action != "DELETE"]
        return sorted(rows, key=lambda row: int(row.name))

    def images(self) -> str:
        """What each member really has in the cloud."""
        things = self.cloud.things("server")
        return "".join(things[row.handle]["image"] if row.handle in things else "-" for row in self.members())

    def values(self) -> str:
        """The metadata of the group that each member reads."""
        with self.db.read() as tx:
            found = [rollouts.metadata_of(tx, self.id, "group", row.handle) for row in self.members()]
        return "".join(rollouts.seen_by(each)["v"] for each in found if each is not None)

    def report(self, member: int, status: str = "SUCCESS", reason: str = "done", seconds: float = 20) -> None:
        handle = self.members()[member].handle
        self.signal(self.id, "handle", {"status": status, "reason": reason, "data": handle})
        self.live(seconds)

    def wanted(self) -> dict[str, Any]:
        child = self.child()
        with self.db.read() as tx:
            found = revisions.group_of(tx, child.id, child.revision)
        assert found is not None
        return found.encoded()

    @property
    def group_row(self) -> Any:
        return self.row(self.id, "group")

    def steer(self, verb: str, **more: Any) -> None:
        getattr(self.rollouts, verb)(self.group_row.key, **more)
        self.live(30)


@pytest.mark.parametrize("replaces", [True, False])
def test_members_get_the_new_definition_step_by_step_as_those_before_report(replaces: bool) -> None:
    fleet = Fleet(steps=["1", "50%", "100%"], replaces=replaces)
    assert fleet.images() == "aaaa"
    first = fleet.members()[0].handle
    fleet.change("b")
    seen = [fleet.images()]
    for number in range(3):
        fleet.report(number)
        seen.append(fleet.images())
    assert seen == ["baaa", "bbaa", "bbbb", "bbbb"]
    assert fleet.state(fleet.id) == "UPDATE_IN_PROGRESS"
    fleet.report(3)
    fleet.rest()
    assert fleet.state(fleet.id) == "UPDATE_COMPLETE"
    assert (fleet.members()[0].handle != first) == replaces
    assert "staged" not in fleet.wanted()
    assert "earlier" not in fleet.wanted()
    with fleet.db.read() as tx:
        assert len(revisions.page(tx, fleet.child().id, 100)) <= 4


def test_a_failure_brings_the_old_definition_back_to_all_at_once() -> None:
    fleet = Fleet(steps=["1", "50%", "100%"])
    fleet.change("b")
    fleet.report(0)
    assert fleet.images() == "bbaa"
    fleet.report(1, "FAILURE", "it does not boot")
    assert fleet.images() == "aaaa"
    fleet.rest()
    assert fleet.state(fleet.id) == "UPDATE_FAILED"
    assert "step 2: 1 member failed" in fleet.group_row.reason
    assert "it does not boot" in fleet.group_row.reason
    assert "2 members have the old definition again" in fleet.group_row.reason
    assert "staged" not in fleet.wanted()


@pytest.mark.parametrize("gated", [False, True])
def test_without_reports_time_or_nothing_decides(gated: bool) -> None:
    fleet = Fleet(steps=["1", "100%"], gated=gated)
    fleet.change("b", 1000)
    fleet.rest()
    assert fleet.images() == ("aaaa" if gated else "bbbb")
    assert fleet.state(fleet.id) == ("UPDATE_FAILED" if gated else "UPDATE_COMPLETE")


# -- what a gate leads to ----------------------------------------------------------------------------------------------


def test_held_it_waits_for_a_person_who_lets_it_go_on() -> None:
    fleet = Fleet(steps=["1", "100%"], on_failure="hold")
    fleet.change("b")
    fleet.report(0, "FAILURE", "no")
    fleet.live(3600)
    assert fleet.images() == "baaa"
    assert fleet.state(fleet.id) == "UPDATE_IN_PROGRESS"
    fleet.steer("resume")
    assert fleet.images() == "bbbb"
    for number in range(1, 4):
        fleet.report(number)
    fleet.rest()
    assert fleet.state(fleet.id) == "UPDATE_COMPLETE"


def test_aborted_all_members_keep_what_there_is_and_the_same_template_goes_on_from_there() -> None:
    fleet = Fleet(steps=["1", "100%"], on_failure="abort")
    fleet.change("b")
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("baaa", "UPDATE_FAILED")
    assert "1 member keeps the new definition, the others the old" in fleet.group_row.reason
    assert "staged" not in fleet.wanted()
    fleet.change("b")
    assert fleet.images() == "baaa"
    for number in range(4):
        fleet.report(number)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbbb", "UPDATE_COMPLETE")


def test_after_it_was_rolled_back_the_same_template_begins_anew() -> None:
    fleet = Fleet(steps=["1", "100%"])
    fleet.change("b")
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    fleet.change("b")
    assert fleet.images() == "baaa"
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")


def test_a_person_promotes_it_pauses_it_and_brings_all_back() -> None:
    fleet = Fleet(steps=["1", "50%", "100%"])
    fleet.change("b")
    fleet.steer("pause")
    fleet.report(0)
    assert fleet.images() == "baaa"
    fleet.steer("resume")
    assert fleet.images() == "bbaa"
    fleet.steer("roll_back", by="ann")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")
    assert "rolled back by ann; 2 members have the old definition again" in fleet.group_row.reason
    fleet.change("c")
    fleet.steer("promote")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("cccc", "UPDATE_COMPLETE")
    assert "staged" not in fleet.wanted()


@pytest.mark.heavy
def test_a_person_approves_each_step() -> None:
    fleet = Fleet(gated=False, steps=["1", "3", "100%"], approval=True)
    fleet.change("b", 3600)
    assert fleet.images() == "baaa"
    fleet.steer("approve", step=1)
    assert fleet.images() == "bbba"
    fleet.live(3600)
    assert fleet.images() == "bbba"
    fleet.steer("approve", step=2)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbbb", "UPDATE_COMPLETE")


def test_so_many_members_may_fail_as_the_budget_has_room_for() -> None:
    fleet = Fleet(steps=["2", "100%"], max_failures=1)
    fleet.change("b")
    fleet.report(0, "FAILURE", "old hardware")
    fleet.report(1)
    assert fleet.images() == "bbbb"
    fleet.report(2, "FAILURE", "no")
    assert fleet.images() == "aaaa"


def test_a_member_that_cannot_be_made_stops_it_whatever_the_budget_is() -> None:
    fleet = Fleet(steps=["1", "100%"], max_failures=3)
    fleet.change("x", 3600, there="a")
    fleet.rest(3600)
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")
    assert "step 1: Resource" in fleet.group_row.reason


def test_what_could_not_be_made_is_tried_again_by_resuming() -> None:
    fleet = Fleet(steps=["1", "100%"], on_failure="hold")
    fleet.change("b", 3600, there="a")
    assert fleet.state(fleet.id) == "UPDATE_IN_PROGRESS"
    fleet.steer("resume")
    assert fleet.images() == "baaa"
    for number in range(4):
        fleet.report(number)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbbb", "UPDATE_COMPLETE")


# -- a change of mind --------------------------------------------------------------------------------------------------


def test_a_corrected_template_repairs_it_from_what_each_member_has() -> None:
    fleet = Fleet(steps=["2", "100%"], order="random", seed=3, on_failure="hold")
    fleet.change("b")
    first = fleet.images()
    assert sorted(first) == ["a", "a", "b", "b"]
    fleet.report(first.index("b"), "FAILURE", "no")
    fleet.change("c")
    assert fleet.images() == first.replace("b", "c")
    for _ in range(2):
        for number in range(4):
            fleet.report(number)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("cccc", "UPDATE_COMPLETE")


def test_a_correction_that_is_wrong_too_brings_back_what_was_there_before_both() -> None:
    fleet = Fleet(steps=["1", "100%"], on_failure="hold")
    fleet.change("b")
    fleet.report(0)
    assert fleet.images() == "bbbb"
    fleet.change("c", on_failure="rollback")
    assert fleet.images() == "cbbb"
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_FAILED")


def test_a_correction_reaches_members_that_have_failed_first() -> None:
    fleet = Fleet(steps=["2", "100%"], on_failure="hold")
    fleet.change("b", 3600, there="a")
    assert fleet.group_row.status == "IN_PROGRESS"
    fleet.change("c", 60, there="ac", steps=["1", "100%"])
    assert fleet.images() == "ccaa"
    for number in range(4):
        fleet.report(number)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("cccc", "UPDATE_COMPLETE")


def test_the_former_template_brings_all_back_at_once() -> None:
    fleet = Fleet(steps=["2", "100%"])
    fleet.change("b")
    assert fleet.images() == "bbaa"
    fleet.change("a")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "UPDATE_COMPLETE")


def test_another_size_in_the_middle_goes_on_where_it_was() -> None:
    fleet = Fleet(steps=["1", "50%", "100%"])
    fleet.change("b")
    fleet.change("b", count=6)
    assert fleet.images() == "baaaaa"
    fleet.report(0)
    assert fleet.images() == "bbbaaa"
    fleet.change("b", count=2)
    assert fleet.images() == "bb"
    fleet.report(1)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bb", "UPDATE_COMPLETE")


def test_cancelled_all_members_have_the_old_definition() -> None:
    for stack_rolls_back in (False, True):
        fleet = Fleet(steps=["2", "100%"])
        fleet.change("b")
        fleet.stack_service.cancel(fleet.id, roll_back=stack_rolls_back)
        fleet.live(30)
        fleet.rest()
        assert fleet.images() == "aaaa"
        assert fleet.state(fleet.id) == ("ROLLBACK_COMPLETE" if stack_rolls_back else "UPDATE_FAILED")
        fleet.change("c")
        assert fleet.images() == "ccaa"


def test_a_stack_that_rolls_back_as_a_whole_does_so_without_steps() -> None:
    fleet = Fleet(steps=["2", "100%"])
    fleet.update(fleet.id, resources("b", steps=["2", "100%"]), disable_rollback=False)
    fleet.live(30)
    assert fleet.images() == "bbaa"
    fleet.report(0, "FAILURE", "no")
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("aaaa", "ROLLBACK_COMPLETE")


def test_deleted_in_the_middle_nothing_is_left() -> None:
    fleet = Fleet(steps=["2", "100%"])
    fleet.change("b")
    fleet.delete(fleet.id)
    fleet.live(60)
    fleet.rest()
    assert (fleet.servers(), fleet.state(fleet.id)) == ([], "DELETE_COMPLETE")


@pytest.mark.parametrize("steering", [Steering.RESUME, Steering.PROMOTE, Steering.ABORT, Steering.ROLL_BACK])
def test_in_a_suspended_stack_no_member_changes(steering: Steering) -> None:
    fleet = Fleet(gated=False, steps=["2", "100%"], approval=True)
    fleet.change("b")
    fleet.rollouts.pause(fleet.group_row.key)
    fleet.update(fleet.id, {**resources("b", **fleet.more), **FAILING})
    fleet.live(30)
    fleet.rest()
    assert (fleet.images(), fleet.state(fleet.id)) == ("bbaa", "UPDATE_FAILED")
    fleet.actions.begin(fleet.id, Action.SUSPEND)
    fleet.rest()
    with pytest.raises(Rejected, match="resume the stack web first"):
        fleet.steer(steering)
    assert fleet.images() == "bbaa"
    fleet.actions.begin(fleet.id, Action.RESUME)
    fleet.rest()
    fleet.steer(steering)
    fleet.live(60)
    assert fleet.images() == {"promote": "bbbb", "roll_back": "aaaa"}.get(steering, "bbaa")
