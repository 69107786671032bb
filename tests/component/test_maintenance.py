"""Suspending, resuming, locking and unlocking a stack (LK1-LK7, engine-semantics.md section 1)."""

from typing import Any

import pytest

from homeostat.api.services.actions import ConvergenceSettings, StackActions
from homeostat.api.services.stacks import StackRequest
from homeostat.clouds.simulated import Faults, Weather
from homeostat.convergence.explainer import Explainer
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.desired import graphs
from homeostat.model.errors import Rejected
from homeostat.planner.actions.check import left_alone
from homeostat.store.shards import shards
from homeostat.store.stacks import views
from homeostat.store.stacks.locks import Lock
from tests.component.running import Service, double, group, server, template, volume


def asks(service: Service) -> StackActions:
    return StackActions(service.db, 3600.0)


def lock_of(level: str = "all", owner: str | None = "ann", **more: Any) -> Lock:
    return {"level": level, "owner": owner, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None, **more}


def lock(service: Service, stack_id: str, level: str = "all", **more: Any) -> None:
    asks(service).lock(stack_id, lock_of(level, **more), lambda _: True)


def unlock(service: Service, stack_id: str) -> None:
    asks(service).unlock(stack_id, lambda _: True)


def made(resources: dict[str, Any], weather: Weather | None = None) -> tuple[Service, str]:
    """A service with a stack of these resources that is well and was looked at."""
    service = Service(weather)
    stack_id = service.create(resources)
    service.rest()
    return service, stack_id


def rested(service: Service, stack_id: str) -> str:
    service.rest()
    return service.state(stack_id)


def statuses(service: Service) -> list[str]:
    return sorted(each["status"] for each in service.cloud.things("server").values())


def refusal(act: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(Rejected) as caught:
        act(*given, **named)
    return f"{caught.value.code} {caught.value.fault}"


# -- suspend and resume ------------------------------------------------------------------------------------------------


def test_a_suspended_stack_has_suspended_servers_and_resumes_them() -> None:
    service, stack_id = made({"srv": server(), "vol": volume(), "t": double(value="1")})
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"]
    assert set(service.states(stack_id).values()) == {"SUSPEND_COMPLETE"}
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"]
    assert set(service.states(stack_id).values()) == {"RESUME_COMPLETE"}
    assert service.row(stack_id, "srv").marks is None, "its row remembers that the stack had suspended it"


def test_what_requires_others_is_suspended_first_and_resumed_last() -> None:
    service, stack_id = made({"a": server(), "b": server(metadata={"of": {"get_resource": "a"}})})
    asks(service).suspend(stack_id)
    service.rest()
    asks(service).resume(stack_id)
    service.rest()
    told = [line for line in service.story(stack_id) if "SUSPEND" in line or "RESUME" in line]
    assert told == [
        "web SUSPEND_IN_PROGRESS",
        "b SUSPEND_IN_PROGRESS",
        "b SUSPEND_COMPLETE",
        "a SUSPEND_IN_PROGRESS",
        "a SUSPEND_COMPLETE",
        "web SUSPEND_COMPLETE",
        "web RESUME_IN_PROGRESS",
        "a RESUME_IN_PROGRESS",
        "a RESUME_COMPLETE",
        "b RESUME_IN_PROGRESS",
        "b RESUME_COMPLETE",
        "web RESUME_COMPLETE",
    ]


def test_suspending_what_is_suspended_does_nothing() -> None:
    service, stack_id = made({"srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    before = service.story(stack_id)
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert service.story(stack_id) == before


def test_nested_stacks_are_suspended_and_resumed_with_their_parent() -> None:
    service, stack_id = made({"grp": group(2), "srv": server()})
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert service.state(service.child().id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"] * 3
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert service.state(service.child().id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"] * 3


def test_a_suspended_server_is_not_healed_and_one_that_vanishes_is_noticed() -> None:
    service, stack_id = made({"a": server(), "b": server()})
    asks(service).suspend(stack_id)
    service.rest()
    service.cloud.vanish(service.row(stack_id, "a").handle)
    service.cloud.change(service.row(stack_id, "b").handle, status="active")
    service.live(300.0)
    with service.db.read() as tx:
        rows, _ = views.resources(tx, stack_id)
    notes = {row.name: left_alone(row) for row in rows.values()}
    assert notes == {"a": "there is no such server", "b": "its status is active, though it is suspended"}
    assert service.state(stack_id) == "SUSPEND_COMPLETE"
    assert len(service.servers()) == 1


def test_resuming_brings_back_what_vanished_meanwhile() -> None:
    service, stack_id = made({"a": server(), "b": server()})
    asks(service).suspend(stack_id)
    service.rest()
    service.cloud.vanish(service.row(stack_id, "a").handle)
    service.live(120.0)
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    service.live(60.0)
    assert statuses(service) == ["active", "active"]


def test_a_resumed_stack_is_healed_and_updated_as_before() -> None:
    service, stack_id = made({"srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    asks(service).resume(stack_id)
    service.rest()
    service.cloud.vanish(service.servers()[0])
    service.live(120.0)
    assert statuses(service) == ["active"]
    service.update(stack_id, {"srv": server(metadata={"a": "b"}), "t": double(value="1")})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"


def test_a_suspended_stack_is_not_updated_nor_converged_but_deleted() -> None:
    service, stack_id = made({"srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    assert refusal(service.update, stack_id, {"srv": server()}) == "400 NotSupported"
    assert refusal(asks(service).converge, stack_id) == "400 NotSupported"
    service.delete(stack_id)
    assert rested(service, stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


def test_a_checked_stack_stays_suspended() -> None:
    service, stack_id = made({"srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    asks(service).check(stack_id)
    assert rested(service, stack_id) == "CHECK_COMPLETE"
    service.live(120.0)
    assert statuses(service) == ["suspended"]
    assert refusal(service.update, stack_id, {"srv": server()}) == "400 NotSupported"
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"]


def test_a_server_that_is_locked_by_others_cannot_be_suspended_until_they_unlock_it() -> None:
    service, stack_id = made({"srv": server()})
    service.cloud.change(service.servers()[0], locked=True)
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_FAILED"
    assert "is locked" in service.stack(stack_id).reason
    service.cloud.change(service.servers()[0], locked=False)
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"]


def test_what_failed_before_is_not_suspended() -> None:
    service, stack_id = made({"srv": server()})
    service.update(stack_id, {"srv": server(), "t": double(fail=True)})
    assert rested(service, stack_id) == "UPDATE_FAILED"
    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_FAILED"
    assert "resources.t: State CREATE_FAILED invalid for suspend" in service.stack(stack_id).reason
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert service.states(stack_id)["t"] == "CREATE_FAILED"


def test_while_something_else_goes_on_a_stack_is_not_suspended() -> None:
    service = Service(Weather(build_s=30.0))
    stack_id = service.create({"srv": server()})
    assert refusal(asks(service).suspend, stack_id) == "409 ActionInProgress"


def test_the_newest_wish_wins_while_a_stack_is_suspended() -> None:
    service, stack_id = made({"a": server(), "b": server(metadata={"of": {"get_resource": "a"}})})
    asks(service).suspend(stack_id)
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active", "active"]


def test_trouble_of_the_cloud_holds_suspending_up_only() -> None:
    service = Service(Weather(faults=Faults(refused=0.4, lost=0.3, unreachable=0.1)))
    stack_id = service.create({name: server() for name in "abcd"})
    service.rest(3000.0)
    for _ in range(3):
        asks(service).suspend(stack_id)
        service.rest(3000.0)
        assert (service.state(stack_id), statuses(service)) == ("SUSPEND_COMPLETE", ["suspended"] * 4)
        asks(service).resume(stack_id)
        service.rest(3000.0)
        assert (service.state(stack_id), statuses(service)) == ("RESUME_COMPLETE", ["active"] * 4)


def test_alarms_are_switched_off_while_suspended_but_for_those_that_are_off_anyway() -> None:
    alarm = "OS::Aodh::GnocchiAggregationByMetricsAlarm"
    rule = {"metrics": ["m"], "threshold": 1, "granularity": 60, "aggregation_method": "mean"}
    on = {"type": alarm, "properties": rule}
    off = {"type": alarm, "properties": {**rule, "enabled": False}}
    service, stack_id = made({"on": on, "off": off})

    def enabled() -> dict[str, bool]:
        things = service.cloud.things("alarm")
        return {name: things[service.row(stack_id, name).handle]["enabled"] for name in ("on", "off")}

    asks(service).suspend(stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    service.live(120.0)
    assert enabled() == {"on": False, "off": False}
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    service.live(120.0)
    assert enabled() == {"on": True, "off": False}


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
    ask = asks(service)
    acts: list[Any] = [ask.suspend, ask.resume, ask.check, ask.converge, service.intake.delete]
    for state in ("LOCK_IN_PROGRESS", "LOCK_COMPLETE"):
        assert service.state(stack_id) == state
        for act in acts:
            assert refusal(act, stack_id) == "409 StackLocked"
            assert refusal(act, service.child().id) == "409 StackLocked"
        assert refusal(service.intake.update, stack_id, StackRequest({})) == "409 StackLocked"
        assert refusal(service.intake.cancel, stack_id, roll_back=True) == "409 StackLocked"
        service.rest()
    assert refusal(unlock, service, service.child().id) == "400 NotSupported"


@pytest.mark.parametrize("level", ["all", "stacks"])
def test_what_becomes_of_things_of_others_is_told_once_the_stack_is_unlocked(level: str) -> None:
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
    asks(service).suspend(stack_id)
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
    assert refusal(asks(service).check, stack_id) == "409 StackLocked"
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
    assert refusal(asks(service).suspend, stack_id) == "409 StackLocked"
    service.cloud.refuses = ""  # type: ignore[attr-defined]
    unlock(service, stack_id)
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"
    assert locked_servers(service) == [False, False]


@pytest.mark.parametrize("verb", ["lock", "unlock"])
def test_after_a_failure_it_can_be_deleted_with_what_is_locked(verb: str) -> None:
    service, stack_id = half_locked(verb)
    service.cloud.refuses = ""  # type: ignore[attr-defined]
    service.delete(stack_id)
    assert rested(service, stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


def test_what_was_suspended_stays_so_when_it_was_locked_and_unlocked() -> None:
    service, stack_id = made({"srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    service.live(120.0)
    assert statuses(service) == ["suspended"]
    assert refusal(service.update, stack_id, {"srv": server()}) == "400 NotSupported"
    asks(service).resume(stack_id)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"]


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
    assert refusal(asks(service).unlock, stack_id, lambda held: held["owner"] == "bob") == "403 Forbidden"
    assert refusal(asks(service).lock, stack_id, lock_of(), lambda _: False) == "403 Forbidden"
    asks(service).unlock(stack_id, lambda held: held["owner"] == "ann")
    assert rested(service, stack_id) == "UNLOCK_COMPLETE"


def test_what_is_being_healed_comes_to_its_end_before_the_stack_is_locked() -> None:
    service, stack_id = made({"srv": server()}, Weather(build_s=20.0))
    service.cloud.vanish(service.servers()[0])
    service.observer.round()
    service.live(2.0)
    asks(service).observe(stack_id)
    service.live(5.0)
    assert service.states(stack_id)["srv"].endswith("IN_PROGRESS") or len(service.rows(stack_id)) == 2
    lock(service, stack_id)
    service.live(1.0)
    assert service.state(stack_id) == "LOCK_IN_PROGRESS"
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert statuses(service) == ["active"]
    assert locked_servers(service) == [True]


def test_what_was_being_suspended_while_its_stack_was_resumed_and_updated_is_resumed_too() -> None:
    """The nested stack hears of the suspension only, since an update overtakes the resumption."""
    service, stack_id = made({"grp": group(1), "srv": server()})
    asks(service).suspend(stack_id)
    while service.child().action != "SUSPEND":
        run_pass(service.passes, service.claim())
    asks(service).resume(stack_id)
    service.intake.update(stack_id, StackRequest(template({"grp": group(1), "srv": server(flavor="large")})))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active", "active"]
    assert service.child().status == "COMPLETE"


def left_asleep(service: Service, stack_id: str) -> None:
    """The nested stack hears of the suspension only, since an update overtakes the resumption, and fails."""
    asks(service).suspend(stack_id)
    while service.child().action != "SUSPEND":
        run_pass(service.passes, service.claim())
    asks(service).resume(stack_id)
    environment = {"resource_registry": {"resources": {"srv": {"restricted_actions": ["update", "replace"]}}}}
    wanted = template({"grp": group(1), "srv": server(metadata={"v": "2"})})
    service.intake.update(stack_id, StackRequest(wanted, environment=environment))
    assert rested(service, stack_id) == "UPDATE_FAILED"


def test_a_nested_stack_is_resumed_too_where_the_update_that_overtook_that_has_failed() -> None:
    """Found by the simulation (seed 30213882): it was suspended for ever, and nothing in it was healed."""
    service, stack_id = made({"grp": group(1), "srv": server()})
    left_asleep(service, stack_id)
    assert statuses(service) == ["active", "active"]
    assert service.states(stack_id)["grp"] == "UPDATE_COMPLETE"
    assert (service.child().action, service.child().status) == ("RESUME", "COMPLETE")


def test_a_nested_stack_that_sleeps_on_with_convergence_switched_off_is_told_and_woken_by_the_next_update() -> None:
    service, stack_id = made({"grp": group(1), "srv": server()})
    asks(service).switch(stack_id, ConvergenceSettings({"converge": False}))
    left_asleep(service, stack_id)
    asks(service).check(stack_id)
    service.rest()
    assert (service.child().action, service.child().suspended) == ("CHECK", True)
    with service.db.read() as tx:
        asking = Explainer(tx, graphs.DesiredGraphs(), service.clock.now())
        (told,) = [each for each in asking.of_resource(service.stack(stack_id), "grp") if each.path == ("grp",)]
    assert told.explanation.reason == "its stack is suspended; convergence is switched off"
    service.update(stack_id, {"grp": group(1), "srv": server(metadata={"v": "2"})}, environment={})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active", "active"]


def test_what_vanished_while_it_was_resumed_is_made_anew_by_the_update_that_overtakes_that() -> None:
    """Found by the simulation (seed 30202821): the update was complete without it."""
    service, stack_id = made({"srv": server(metadata={"v": "1"})})
    asks(service).suspend(stack_id)
    service.rest()
    service.cloud.weather.faults = Faults(refused=1.0)
    asks(service).resume(stack_id)
    service.live(3.0)
    assert service.states(stack_id) == {"srv": "RESUME_IN_PROGRESS"}
    service.cloud.weather.faults = Faults()
    service.cloud.vanish(*service.servers())
    service.update(stack_id, {"srv": server(metadata={"v": "2"})})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert [thing["metadata"] for thing in service.cloud.things("server").values()] == [{"v": "2"}]


@pytest.mark.parametrize("verb", ["resume", "check"])
def test_what_differs_when_it_is_found_while_its_stack_is_asked_for_something_else_is_mended(verb: str) -> None:
    """Found by the simulation (seed 30231073): the answer to its creation was lost, and the stack never was complete.
    It was judged by the look that found it, and what somebody had changed stayed so for ever."""
    service = Service(Weather(faults=Faults(lost=1.0)))
    stack_id = service.create({"vol": volume(description="mine")})
    service.intake.cancel(stack_id, roll_back=False)
    (made,) = service.cloud.things("volume")
    service.cloud.change(made, description="by hand")
    service.cloud.weather.faults = Faults()
    getattr(asks(service), verb)(stack_id)
    service.rest()
    service.live(1.0)
    assert [thing["description"] for thing in service.cloud.things("volume").values()] == ["mine"]
    assert service.states(stack_id) == {"vol": "UPDATE_COMPLETE"}


def test_all_members_of_a_group_are_resumed_by_the_update_that_overtakes_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those, too, that the update does not change."""
    monkeypatch.setattr(graphs, "MEMBERS_PER_SHARD", 2)
    service, stack_id = made({"grp": group(5), "srv": server()})
    asks(service).suspend(stack_id)
    service.rest()
    asks(service).resume(stack_id)
    service.intake.update(stack_id, StackRequest(template({"grp": group(5), "srv": server(flavor="large")})))
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active"] * 6


def test_what_somebody_locks_after_the_stack_was_unlocked_stays_locked() -> None:
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
    asks(service).suspend(stack_id)
    service.rest()
    asks(service).check(stack_id)
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
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    lock(service, stack_id)
    service.rest()
    service.cloud.change(handle, locked=False)
    unlock(service, stack_id)
    service.live(100.0)
    assert (service.state(stack_id), service.servers()) == ("DELETE_FAILED", [handle])
    service.delete(stack_id)
    service.rest()
    assert service.servers() == []


def test_a_lock_that_could_not_be_taken_away_when_its_time_was_over_waits_for_people() -> None:
    """Found by the simulation: what had never been made woke its stack for the end of the lock, again and again."""
    service = Service()
    hooks = {"resource_registry": {"resources": {"late": {"hooks": "pre-create"}}}}
    stack_id = service.create({"srv": server(), "late": double()}, environment=hooks)
    service.intake.cancel(stack_id, roll_back=False)
    service.rest()
    lock(service, stack_id, expires_at=service.clock.now() + 600.0)
    service.rest()
    assert service.states(stack_id) == {"srv": "LOCK_COMPLETE", "late": "INIT_COMPLETE"}
    service.cloud.weather.faults = Faults(unreachable=1.0)
    service.live(8000.0)
    assert service.state(stack_id) == "UNLOCK_FAILED"
    with service.db.read() as tx:
        before = [each.epoch for each in shards.of_stack(tx, stack_id)]
    service.live(600.0)
    with service.db.read() as tx:
        assert [each.epoch for each in shards.of_stack(tx, stack_id)] == before
    service.cloud.weather.faults = Faults()
    unlock(service, stack_id)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
