"""Stacks that are locked and unlocked (LK)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.stack_actions import REQUESTED
from homeostat.model.status import Action
from homeostat.services.pipeline.request import StackRequest
from tests.component.maintained import check_still_suspended, lock, lock_of, made, refusal, rested, statuses, unlock
from tests.component.running import Service, double, group, server, template, volume

# -- locks -------------------------------------------------------------------------------------------------------------


def locked_servers(service: Service) -> list[bool]:
    return [bool(each.get("locked")) for each in service.cloud.things("server").values()]


@pytest.mark.shows("LK3")
def test_a_locked_stack_has_locked_servers_and_unlocks_them() -> None:
    service, stack_id = made({"srv": server(), "vol": volume()})
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert set(service.states(stack_id).values()) == {"LOCK_COMPLETE"}
    assert locked_servers(service) == [True]
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    assert set(service.states(stack_id).values()) == {"UNLOCK_COMPLETE"}
    assert locked_servers(service) == [False]
    assert service.stack(stack_id).lock is None


@pytest.mark.shows("LK3")
def test_a_lock_of_stacks_alone_touches_no_resource() -> None:
    service, stack_id = made({"srv": server()})
    before = service.story(stack_id, "srv")
    lock(service, stack_id, "stacks")
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert locked_servers(service) == [False]
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    assert service.story(stack_id, "srv") == before


def test_the_level_of_a_lock_can_be_changed_both_ways() -> None:
    service, stack_id = made({"srv": server(), "grp": group(1)})
    lock(service, stack_id, "stacks")
    service.rest()
    lock(service, stack_id, "all")
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert locked_servers(service) == [True, True]
    lock(service, stack_id, "stacks")
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert locked_servers(service) == [False, False]
    assert service.stack(stack_id).lock["level"] == service.child().lock["level"] == "stacks"


@pytest.mark.shows("LK5")
def test_unlocking_leaves_locked_what_others_had_locked() -> None:
    service, stack_id = made({"mine": server(), "theirs": server()})
    theirs = service.row(stack_id, "theirs").handle
    service.cloud.change(theirs, locked=True)
    service.live(1.0)
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    things = service.cloud.things("server")
    assert [bool(things[service.row(stack_id, name).handle].get("locked")) for name in ("mine", "theirs")] == [
        False,
        True,
    ]


@pytest.mark.shows("LK2")
def test_everything_that_changes_a_locked_stack_is_refused_and_nested_ones_at_once() -> None:
    service, stack_id = made({"srv": server(), "grp": group(1)})
    lock(service, stack_id)
    ask = service.actions
    begun = [lambda id, each=each: ask.begin(id, each) for each in sorted(REQUESTED)]
    acts: list[Any] = [*begun, ask.converge, service.stack_service.delete]
    for state in ("LOCK_IN_PROGRESS", "LOCK_COMPLETE"):
        assert service.state(stack_id) == state
        for act in acts:
            assert refusal(act, stack_id) == "409 StackLocked"
            assert refusal(act, service.child().id) == "409 StackLocked"
        assert refusal(service.stack_service.update, stack_id, StackRequest({})) == "409 StackLocked"
        assert refusal(service.stack_service.cancel, stack_id, roll_back=True) == "409 StackLocked"
        service.rest()
    assert refusal(unlock, service, service.child().id) == "400 NotSupported"


@pytest.mark.parametrize("level", ["all", "stacks"])
def test_what_becomes_of_things_of_others_is_reported_once_the_stack_is_unlocked(level: str) -> None:
    service = Service()
    service.create({"v": volume()}, name="theirs")
    service.rest()
    (theirs,) = service.cloud.things("volume")
    stack_id = service.create({"a": {**volume(), "external_id": theirs}}, name="mine")
    service.rest()
    lock(service, stack_id, level)
    service.rest()
    before = service.states(stack_id)
    service.cloud.vanish(theirs)
    service.live(100.0)
    assert (service.state(stack_id), service.states(stack_id)) == ("LOCK_COMPLETE", before)
    unlock(service, stack_id)
    service.rest()
    assert service.states(stack_id) == {"a": "CHECK_FAILED"}


@pytest.mark.shows("LK2")
@pytest.mark.parametrize("level", ["all", "stacks"])
@pytest.mark.parametrize("ours", [True, False], ids=["ours", "of others"])
def test_whose_a_thing_was_to_become_is_of_no_concern_in_a_locked_stack(ours: bool, level: str) -> None:
    """Found by the simulation (seed 30240890): its update was cancelled, and went on once the stack was locked."""
    service, _ = made({"s": server()})
    (theirs,) = service.servers()
    of_both = [{"srv": server()}, {"srv": {**server(), "external_id": theirs}}]
    before, after = of_both if ours else reversed(of_both)
    stack_id = service.create(before, name="mine")
    service.rest()
    service.stack_service.update(stack_id, StackRequest(template(after)))
    service.stack_service.cancel(stack_id, roll_back=False)
    lock(service, stack_id, level)
    service.live(100.0)
    mine = "LOCK_COMPLETE" if level == "all" else "CREATE_COMPLETE"
    assert (service.state(stack_id), service.states(stack_id)) == ("LOCK_COMPLETE", {"srv": mine})
    unlock(service, stack_id)
    service.live(100.0)
    assert (service.state(stack_id), service.row(stack_id, "srv").status) == ("UPDATE_FAILED", "COMPLETE")
    assert not any(locked_servers(service))


@pytest.mark.shows("LK2")
def test_nothing_is_healed_in_a_locked_stack_until_it_is_unlocked() -> None:
    service, stack_id = made({"srv": server(), "grp": group(1)})
    lock(service, stack_id)
    service.rest()
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.live(600.0)
    assert service.servers() == []
    unlock(service, stack_id)
    service.live(60.0)
    assert service.state(stack_id) == "UNLOCK_COMPLETE"
    assert len(service.servers()) == 2
    assert locked_servers(service) == [False, False]


def test_being_unlocked_hides_no_failure() -> None:
    service, stack_id = made({"srv": server(), "bad": double(fail=True)})
    assert service.state(stack_id) == "CREATE_FAILED"
    reason = service.stack(stack_id).reason
    for level in ("all", "stacks"):  # the second one changes the level
        lock(service, stack_id, level=level)
        service.rest()
        assert service.state(stack_id) == "LOCK_COMPLETE"
    unlock(service, stack_id)
    service.rest()
    service.live(60.0)
    assert (service.state(stack_id), service.stack(stack_id).reason) == ("CREATE_FAILED", reason)
    assert service.story(stack_id, "web")[-2:] == ["web UNLOCK_COMPLETE", "web CREATE_FAILED"]


def test_being_unlocked_does_not_hide_that_it_is_suspended() -> None:
    service, stack_id = made({"srv": server(), "grp": group(1)})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    service.rest()
    assert {service.state(each.id) for each in service.stacks()} == {"SUSPEND_COMPLETE"}


def test_what_is_gone_cannot_be_locked_and_everything_else_is() -> None:
    service, stack_id = made({"srv": server(), "other": server(), "third": server()})
    service.clock.time += 1.0
    service.cloud.vanish(service.row(stack_id, "srv").handle)
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    reason = service.stack(stack_id).reason
    assert reason == "Resource LOCK failed: ResourceInError: resources.srv: there is no such server"
    assert service.states(stack_id) == {"srv": "LOCK_FAILED", "other": "LOCK_COMPLETE", "third": "LOCK_COMPLETE"}
    assert locked_servers(service) == [True, True]
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    service.live(60.0)
    assert service.state(stack_id) == "UNLOCK_COMPLETE"
    assert locked_servers(service) == [False, False, False], "the one that was gone is there again"


def test_a_group_of_which_a_member_is_gone_is_locked_but_for_that_one() -> None:
    service, stack_id = made({"grp": group(3), "srv": server()})
    service.clock.time += 1.0
    service.cloud.vanish(service.row(service.child().id, "1").handle)
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    assert service.states(stack_id) == {"grp": "LOCK_FAILED", "srv": "LOCK_COMPLETE"}
    assert service.states(service.child().id) == {"0": "LOCK_COMPLETE", "1": "LOCK_FAILED", "2": "LOCK_COMPLETE"}
    assert "resources.grp.resources[1]: there is no such server" in service.stack(stack_id).reason
    assert locked_servers(service) == [True, True, True]


def test_an_update_that_overtakes_the_deletion_of_a_locked_stack_unlocks_what_it_keeps() -> None:
    """Found by the simulation (41018058): servers that nothing changed stayed locked in a stack without a lock."""
    service, stack_id = made({"srv": server(), "other": server()})
    service.clock.time += 1.0
    service.cloud.vanish(service.row(stack_id, "srv").handle)
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    service.stack_service.delete(stack_id)
    service.update(stack_id, {"srv": server(), "other": server(), "third": double()})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    service.live(60.0)
    assert locked_servers(service) == [False, False]
    assert service.states(stack_id)["other"] == "UNLOCK_COMPLETE"


@pytest.mark.shows("LK3")
def test_images_are_protected_while_locked_but_for_what_the_template_protects() -> None:
    image = {"disk_format": "raw", "container_format": "bare", "location": "http://images.test/one"}
    both = {name: {"type": "OS::Glance::WebImage", "properties": {**image, "protected": name == "kept"}}
            for name in ("kept", "loose")}  # fmt: skip
    service, stack_id = made(both)

    def protected() -> dict[str, bool]:
        things = service.cloud.things("image")
        return {name: things[service.row(stack_id, name).handle]["protected"] for name in both}

    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    service.live(120.0)
    assert protected() == {"kept": True, "loose": True}
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    service.live(120.0)
    assert protected() == {"kept": True, "loose": False}


@pytest.mark.shows("LK4")
def test_the_table_of_states_and_actions() -> None:
    """As the document gives it (LK4)."""
    service, stack_id = made({"srv": server()})
    assert refusal(unlock, service, stack_id) == "409 StackNotLocked"
    lock(service, stack_id)
    assert refusal(lock, service, stack_id) == "409 ActionInProgress"
    assert refusal(unlock, service, stack_id) == "409 ActionInProgress"
    service.rest()
    unlock(service, stack_id)
    assert refusal(lock, service, stack_id) == "409 StackLocked"
    assert refusal(unlock, service, stack_id) == "409 ActionInProgress"
    assert refusal(service.delete, stack_id) == "409 StackLocked"
    service.rest()
    assert refusal(unlock, service, stack_id) == "409 StackNotLocked"


def failing(verb: str) -> Any:
    """A cloud that refuses this operation while it is told to."""
    from homeostat.clouds.port import Answer, Operation
    from homeostat.clouds.simulated import SimulatedCloud
    from homeostat.model.errors import Terminal

    class Failing(SimulatedCloud):
        refuses = ""

        def _operate(self, kind: str, operation: Operation) -> Answer:
            if operation.verb == self.refuses:
                return Terminal(f"{operation.verb} is out of order")
            return super()._operate(kind, operation)

    return lambda clock: Failing(clock.now)


def half_locked(verb: str) -> tuple[Service, str]:
    """A stack of which locking or unlocking has failed."""
    service = Service(cloud=failing(verb))
    stack_id = service.create({"a": server(), "b": server()})
    service.rest()
    if verb == "unlock":
        lock(service, stack_id)
        service.rest()
    service.cloud.refuses = verb  # type: ignore[attr-defined]
    (unlock if verb == "unlock" else lock)(service, stack_id)
    assert rested(service, stack_id) == f"{verb.upper()}_FAILED"
    return service, stack_id


def test_after_a_failed_lock_it_can_be_locked_again_or_unlocked() -> None:
    service, stack_id = half_locked("lock")
    assert "lock is out of order" in service.stack(stack_id).reason
    assert refusal(service.update, stack_id, {"a": server()}) == "409 StackLocked"
    assert refusal(service.actions.begin, stack_id, Action.CHECK) == "409 StackLocked"
    service.cloud.refuses = ""  # type: ignore[attr-defined]
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert locked_servers(service) == [True, True]


def test_a_failed_lock_can_be_taken_back() -> None:
    service, stack_id = half_locked("lock")
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    assert locked_servers(service) == [False, False]


def test_after_a_failed_unlock_it_can_only_be_unlocked_or_deleted() -> None:
    service, stack_id = half_locked("unlock")
    assert refusal(lock, service, stack_id) == "409 StackLocked"
    assert refusal(service.actions.begin, stack_id, Action.SUSPEND) == "409 StackLocked"
    service.cloud.refuses = ""  # type: ignore[attr-defined]
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    assert locked_servers(service) == [False, False]


@pytest.mark.parametrize("verb", ["lock", "unlock"])
def test_after_a_failure_it_can_be_deleted_with_what_is_locked(verb: str) -> None:
    service, stack_id = half_locked(verb)
    service.cloud.refuses = ""  # type: ignore[attr-defined]
    service.stack_service.delete(stack_id)  # and no pass follows before the update
    assert rested(service, stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


def test_what_was_suspended_stays_so_when_it_was_locked_and_unlocked() -> None:
    service, stack_id = made({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    check_still_suspended(service, stack_id)


def test_what_failed_stays_failed_when_it_was_locked_and_unlocked() -> None:
    service, stack_id = made({"srv": server()})
    service.update(stack_id, {"srv": server(), "t": double(fail=True), "u": server(name={"get_attr": ["t", "output"]})})
    assert rested(service, stack_id) == "UPDATE_FAILED"
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UPDATE_FAILED"
    service.live(120.0)
    assert service.states(stack_id) == {"srv": "UNLOCK_COMPLETE", "t": "CREATE_FAILED"}
    service.update(stack_id, {"srv": server()})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"


def test_what_failed_or_was_never_made_waits_while_locking_has_failed() -> None:
    service = Service(cloud=failing("lock"))
    stack_id = service.create({"srv": server()})
    service.rest()
    service.update(stack_id, {"srv": server(), "t": double(fail=True), "u": server(name={"get_attr": ["t", "output"]})})
    assert rested(service, stack_id) == "UPDATE_FAILED"
    service.cloud.refuses = "lock"  # type: ignore[attr-defined]
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    before = service.story(stack_id)
    service.live(300.0)
    assert service.story(stack_id) == before
    assert service.states(stack_id) == {"srv": "LOCK_FAILED", "t": "CREATE_FAILED"}


@pytest.mark.shows("LK7")
def test_a_lock_ends_by_itself_when_its_time_is_over() -> None:
    service, stack_id = made({"srv": server(), "grp": group(1)})
    lock(service, stack_id, expires_at=service.clock.now() + 600.0)
    service.live(599.0)
    assert service.state(stack_id) == "LOCK_COMPLETE"
    service.live(5.0)
    assert service.state(stack_id) == "UNLOCK_COMPLETE"
    assert locked_servers(service) == [False, False]
    assert service.stack(stack_id).lock is None
    assert service.child().lock is None


@pytest.mark.shows("LK7")
def test_only_the_owner_and_who_may_break_locks_take_one_away() -> None:
    service, stack_id = made({"srv": server()})
    lock(service, stack_id)
    service.rest()
    assert refusal(service.actions.unlock, stack_id, lambda held: held["owner"] == "bob") == "403 Forbidden"
    assert refusal(service.actions.lock, stack_id, lock_of(), lambda _: False) == "403 Forbidden"
    service.actions.unlock(stack_id, lambda held: held["owner"] == "ann")
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"


def test_what_is_being_healed_comes_to_its_end_before_the_stack_is_locked() -> None:
    service, stack_id = made({"srv": server()}, CloudBehaviour(build_s=20.0))
    service.cloud.vanish(service.servers()[0])
    service.observer.round()
    service.live(2.0)
    service.actions.observe(stack_id)
    service.live(5.0)
    assert service.states(stack_id)["srv"].endswith("IN_PROGRESS") or len(service.rows(stack_id)) == 2
    lock(service, stack_id)
    service.live(1.0)
    assert service.state(stack_id) == "LOCK_IN_PROGRESS"
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert statuses(service) == ["active"]
    assert locked_servers(service) == [True]


def test_what_a_user_locks_after_the_stack_was_unlocked_stays_locked() -> None:
    """Its row forgets that the stack had locked it: the next lock finds it locked, and leaves it so."""
    service, stack_id = made({"srv": server()})
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    service.rest()
    assert service.row(stack_id, "srv").marks is None
    service.cloud.change(*service.servers(), locked=True)
    service.live(70.0)
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    service.rest()
    assert locked_servers(service) == [True]


def test_a_suspended_stack_that_was_checked_says_after_its_lock_that_it_is_suspended() -> None:
    service, stack_id = made({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_COMPLETE"
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    service.rest()
    assert service.state(stack_id) == "SUSPEND_COMPLETE"


def test_being_unlocked_does_not_try_a_failed_deletion_again() -> None:
    """It failed for good and its stack says so: the stack would go on saying so when the rest had gone."""
    service, stack_id = made({"srv": server()})
    (handle,) = service.servers()
    service.cloud.change(handle, locked=True)
    service.stack_service.delete(stack_id)  # and no pass follows before the update
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    lock(service, stack_id)
    service.rest()
    service.cloud.change(handle, locked=False)
    unlock(service, stack_id)
    service.live(100.0)
    assert (service.state(stack_id), service.servers()) == ("DELETE_FAILED", [handle])
    service.stack_service.delete(stack_id)  # and no pass follows before the update
    service.rest()
    assert service.servers() == []


def test_a_lock_that_could_not_be_taken_away_when_its_time_was_over_waits_for_people() -> None:
    """Found by the simulation: what had never been made woke its stack for the end of the lock, again and again."""
    service = Service()
    hooks = {"resource_registry": {"resources": {"late": {"hooks": "pre-create"}}}}
    stack_id = service.create({"srv": server(), "late": double()}, environment=hooks)
    service.stack_service.cancel(stack_id, roll_back=False)
    service.rest()
    lock(service, stack_id, expires_at=service.clock.now() + 600.0)
    service.rest()
    assert service.states(stack_id) == {"srv": "LOCK_COMPLETE", "late": "INIT_COMPLETE"}
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    service.live(8000.0)
    assert service.state(stack_id) == "UNLOCK_FAILED"
    before = [each.epoch for each in service.shards(stack_id)]
    service.live(600.0)
    assert [each.epoch for each in service.shards(stack_id)] == before
    service.cloud.behaviour.faults = Faults()
    unlock(service, stack_id)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
