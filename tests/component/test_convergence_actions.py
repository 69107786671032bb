"""What users ask besides a new desired state: to observe, to converge, to check, and the switches (CV8, CV9)."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.planner.actions.check import left_alone
from homeostat.services.actions import ConvergenceSettings
from homeostat.store.shards import look_schedule
from homeostat.store.shards.shard_state import Rows
from homeostat.store.stacks import stacks, views
from tests.component.running import Service, double, group, server, volume

OFF = ConvergenceSettings({"converge": False})
ON = ConvergenceSettings({"converge": True})


def started(*, behaviour: CloudBehaviour | None = None) -> tuple[Service, str, str]:
    """A service with one server that is well and was looked at; its stack and its handle."""
    service = Service(behaviour)
    stack_id = service.create({"srv": server(), "t": double(value="1")})
    service.rest()
    return service, stack_id, service.servers()[0]


# -- switches ----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("CV8")
def test_with_convergence_off_what_dies_is_left_and_known() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.cloud.vanish(handle)
    service.live(300.0)
    assert service.servers() == []
    assert service.states(stack_id) == {"srv": "CREATE_COMPLETE", "t": "CREATE_COMPLETE"}
    rows, seen = loaded(service, stack_id)
    (srv,) = [row for row in rows.values() if row.name == "srv"]
    assert left_alone(srv) == "there is no such server"
    assert seen[srv.key].observation.presence == "absent"


@pytest.mark.shows("CV8")
def test_switched_on_again_it_is_healed() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.cloud.vanish(handle)
    service.live(300.0)
    service.actions.switch(stack_id, ON)
    service.live(1.0)
    assert len(service.servers()) == 1
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"


def test_what_comes_back_by_itself_is_not_left_alone_any_more() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.cloud.change(handle, status="stopped")
    service.live(100.0)
    service.cloud.change(handle, status="active")
    service.live(100.0)
    rows, _ = loaded(service, stack_id)
    assert [left_alone(row) for row in rows.values()] == ["", ""]
    service.actions.switch(stack_id, ON)
    service.live(1.0)
    assert service.servers() == [handle]


@pytest.mark.shows("CV8")
def test_one_resource_may_differ_from_its_stack() -> None:
    service = Service()
    stack_id = service.create({"a": server(name="a"), "b": server(name="b")})
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings({}, {"a": {"converge": False}}))
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.live(100.0)
    (left,) = service.cloud.things("server").values()
    assert left["name"] == "b"
    service.actions.switch(stack_id, ConvergenceSettings({}, {"a": {}}))
    service.live(1.0)
    assert len(service.servers()) == 2


def test_the_switch_of_a_group_reaches_its_members() -> None:
    service = Service()
    stack_id = service.create({"grp": group(2), "srv": server()})
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings({}, {"grp": {"converge": False}}))
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.live(100.0)
    assert len(service.servers()) == 1
    service.actions.switch(stack_id, ConvergenceSettings({}, {"grp": {}}))
    service.live(1.0)
    assert len(service.servers()) == 3


def test_an_update_heals_what_was_left_alone() -> None:
    """Switched off is the healing in the background, not what users ask for."""
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.cloud.vanish(handle)
    service.live(100.0)
    service.update(stack_id, {"srv": server(), "t": double(value="2")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1


def test_looks_follow_the_stacks_own_interval() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, ConvergenceSettings({"observe_s": 600.0}))
    service.live(1.0)
    service.cloud.vanish(handle)
    service.live(500.0)
    assert service.servers() == []
    service.live(200.0)
    assert len(service.servers()) == 1


def test_an_interval_of_0_means_no_looks_but_those_asked_for() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, ConvergenceSettings({"observe_s": 0.0}))
    service.live(1.0)
    service.cloud.vanish(handle)
    service.live(10_000.0)
    assert service.servers() == []
    service.actions.observe(stack_id)
    service.live(1.0)
    assert len(service.servers()) == 1


# -- observe -----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("CV9")
def test_observe_looks_at_once_and_says_when() -> None:
    service, stack_id, handle = started()
    service.live(5.0)
    service.cloud.vanish(handle)
    asked_at = service.actions.observe(stack_id)
    service.live(0.5)
    assert looked_at(service, stack_id) >= asked_at
    assert len(service.servers()) == 1, "seen long before the next round, and healed"


def test_observe_reaches_nested_stacks_and_stacks_with_nothing_to_look_at() -> None:
    service = Service()
    stack_id = service.create({"grp": group(2, double(value="1"))})
    service.rest()
    asked_at = service.actions.observe(stack_id)
    service.live(0.5)
    assert looked_at(service, stack_id) >= asked_at


def test_an_outage_makes_things_unknown_and_nothing_is_recreated() -> None:
    service, stack_id, handle = started()
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    asked_at = service.actions.observe(stack_id)
    service.live(200.0)
    with service.db.read() as tx:
        at, blind = look_schedule.last_complete_look(tx, stacks.tree_of(stack_id))
    assert at is None or at < asked_at
    assert blind
    assert service.servers() == [handle]
    service.cloud.behaviour.faults = Faults()
    service.live(100.0)
    with service.db.read() as tx:
        at, blind = look_schedule.last_complete_look(tx, stacks.tree_of(stack_id))
    assert at is not None
    assert at > asked_at
    assert blind == ""
    assert service.servers() == [handle]


# -- converge ----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("CV9")
def test_converge_looks_and_heals_although_it_is_switched_off() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    service.cloud.vanish(handle)
    service.actions.converge(stack_id)
    service.work()
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS", "nothing is at rest before it was looked at"
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1
    service.cloud.vanish(service.servers()[0])
    service.live(300.0)
    assert service.servers() == [], "the switch is as it was"


def test_converge_tries_again_what_has_failed() -> None:
    service = Service()
    service.cloud.behaviour.faults = Faults(error=1.0)
    stack_id = service.create({"srv": server()})
    service.rest(2000.0)
    assert service.state(stack_id) == "CREATE_FAILED"
    service.cloud.behaviour.faults = Faults()
    service.actions.converge(stack_id)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1


def test_converge_in_the_middle_keeps_the_action() -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create({"srv": server()})
    service.actions.converge(stack_id)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(service.servers()) == 1


def test_converge_reaches_the_members_of_a_group() -> None:
    service = Service()
    stack_id = service.create({"grp": group(2)})
    service.rest()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.actions.converge(stack_id)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 2


@pytest.mark.shows("CV9")
def test_converge_one_resource_leaves_the_others_alone() -> None:
    service = Service()
    stack_id = service.create({"a": server(name="a"), "b": server(name="b")})
    service.rest()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.actions.converge(stack_id, "a")
    service.live(10.0)
    (left,) = service.cloud.things("server").values()
    assert left["name"] == "a"
    assert service.state(stack_id) == "CREATE_COMPLETE"
    rows, _ = loaded(service, stack_id)
    assert [row.converge_requested_at for row in rows.values()] == [None] * len(rows)


def test_converge_one_that_is_well_does_nothing_to_it() -> None:
    service, stack_id, handle = started()
    service.actions.converge(stack_id, "srv")
    service.actions.converge(stack_id, "t")
    service.live(10.0)
    assert service.servers() == [handle]
    rows, _ = loaded(service, stack_id)
    assert [row.converge_requested_at for row in rows.values()] == [None, None]


def test_a_resource_that_has_not_been_begun_cannot_be_converged() -> None:
    service = Service()
    stack_id = service.begin({"srv": server()})
    with pytest.raises(Rejected, match="not been made yet"):
        service.actions.converge(stack_id, "srv")


def test_no_rollback_from_a_converge_that_fails() -> None:
    """It asked for nothing new: there is nothing to go back to."""
    service = Service()
    stack_id = service.create({"srv": server()}, disable_rollback=False)
    service.rest()
    service.live(1.0)
    service.cloud.behaviour.faults = Faults(error=1.0)
    service.cloud.vanish(service.servers()[0])
    service.actions.converge(stack_id)
    service.rest(3000.0)
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.cloud.behaviour.faults = Faults()
    service.actions.converge(stack_id)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"


# -- check -------------------------------------------------------------------------------------------------------------


def test_check_of_what_is_well() -> None:
    service, stack_id, handle = started()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_COMPLETE"
    assert service.states(stack_id) == {"srv": "CHECK_COMPLETE", "t": "CHECK_COMPLETE"}
    assert service.row(stack_id, "t").reason == "CHECK not supported for OS::Heat::TestResource"
    assert service.story(stack_id, "srv")[-2:] == ["srv CHECK_IN_PROGRESS", "srv CHECK_COMPLETE"]
    assert service.servers() == [handle]


def test_check_of_what_is_gone_with_convergence_off() -> None:
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    service.cloud.vanish(handle)
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    assert service.stack(stack_id).reason == "Resource CHECK failed: srv: there is no such server"
    assert service.states(stack_id) == {"srv": "CHECK_FAILED", "t": "CHECK_COMPLETE"}
    service.live(300.0)
    assert service.servers() == []
    service.update(stack_id, {"srv": server(), "t": double(value="1")})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1


def test_what_a_check_found_wrong_is_healed_where_convergence_is_on() -> None:
    service, stack_id, handle = started()
    service.live(1.0)
    service.cloud.vanish(handle)
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    service.live(5.0)
    assert service.story(stack_id, "web")[-3:] == ["web CHECK_IN_PROGRESS", "web CHECK_FAILED", "web CHECK_COMPLETE"]
    assert len(service.servers()) == 1
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"


def test_a_check_reports_all_failures_also_those_of_nested_stacks() -> None:
    service = Service()
    stack_id = service.create({"a": server(name="a"), "grp": group(2)})
    service.rest()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    reason = service.stack(stack_id).reason
    assert "a: there is no such server; ResourceInError: resources.grp: " in reason
    assert "0: there is no such server; 1: there is no such server" in reason


def test_a_check_of_a_group_that_is_well() -> None:
    service = Service()
    stack_id = service.create({"grp": group(3)})
    service.rest()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_COMPLETE"
    child = service.child()
    assert (child.action, child.status) == ("CHECK", "COMPLETE")


def test_a_check_does_not_finish_a_failed_update() -> None:
    service = Service()
    stack_id = service.create({"t": double(value="1")})
    service.update(
        stack_id, {"t": double(value="1"), "bad": double(fail=True), "disk": {**volume(), "depends_on": "bad"}}
    )
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    service.live(300.0)
    assert service.cloud.things() == {}
    assert service.states(stack_id)["bad"] == "CREATE_FAILED"


def test_no_check_while_something_goes_on() -> None:
    service = Service(CloudBehaviour(build_s=5.0))
    stack_id = service.create({"srv": server()})
    with pytest.raises(Rejected, match=r"already has an action \(CREATE\) in progress") as refused:
        service.actions.begin(stack_id, Action.CHECK)
    assert refused.value.code == 409


def test_an_update_that_looks_first() -> None:
    """Option `converge` of an update: nothing counts as done before it was looked at."""
    service, stack_id, handle = started()
    service.actions.switch(stack_id, OFF)
    service.live(1.0)
    service.cloud.vanish(handle)
    service.update(stack_id, {"srv": server(), "t": double(value="1")}, look_first=True)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 1


def loaded(service: Service, stack_id: str) -> Rows:
    with service.db.read() as tx:
        return views.resources(tx, stack_id)


def looked_at(service: Service, stack_id: str) -> float:
    with service.db.read() as tx:
        at, _ = look_schedule.last_complete_look(tx, stacks.tree_of(stack_id))
    assert at is not None
    return at


def test_what_should_not_exist_is_not_checked() -> None:
    service = Service(CloudBehaviour(faults=Faults(snapshot=1.0)))
    stack_id = service.create({"disk": {**volume(), "deletion_policy": "Snapshot"}})
    service.rest()
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    with pytest.raises(Rejected, match="delete it once more"):
        service.actions.begin(stack_id, Action.CHECK)
    service.actions.converge(stack_id)
    service.cloud.behaviour.faults.snapshot = 0.0
    service.work()
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_a_check_of_what_never_became_complete_begins_nothing() -> None:
    """A server that is being built when its creation is cancelled dies during the check: it is not made anew."""
    service = Service(CloudBehaviour(build_s=60.0))
    stack_id = service.create({"srv": server(), "later": {**volume(), "depends_on": "srv"}})
    service.stack_service.cancel(stack_id, roll_back=False)
    service.work()
    service.actions.begin(stack_id, Action.CHECK)
    service.cloud.vanish(service.servers()[0])
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    assert service.states(stack_id) == {"srv": "CREATE_FAILED"}
    assert service.cloud.things() == {}


@pytest.mark.parametrize("heals", [True, False])
def test_what_was_made_broken_fails_the_check_and_is_left_to_the_next_update(heals: bool) -> None:
    service = Service(CloudBehaviour(build_s=1.0, faults=Faults(error=1.0)))
    stack_id = service.create({"srv": server()})
    service.rest()
    service.actions.switch(stack_id, ON if heals else OFF)
    assert service.states(stack_id) == {"srv": "CREATE_FAILED"}
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    service.live(60.0)
    assert (service.state(stack_id), service.states(stack_id)) == ("CHECK_FAILED", {"srv": "CREATE_FAILED"})
    assert service.stack(stack_id).reason.startswith("Resource CHECK failed: ResourceInError: resources.srv: ")
    assert len(service.servers()) == 1


def test_what_came_to_be_after_its_time_was_over_passes_a_check_and_is_kept() -> None:
    service = Service(CloudBehaviour(build_s=120.0))
    stack_id = service.create({"srv": server(), "later": double(value={"get_attr": ["srv", "name"]})}, timeout_mins=1)
    service.rest()
    assert service.states(stack_id) == {"srv": "CREATE_FAILED"}
    service.live(120.0)
    assert service.states(stack_id) == {"srv": "CREATE_FAILED"}
    made = service.servers()
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert (service.state(stack_id), service.states(stack_id)) == ("CHECK_FAILED", {"srv": "CHECK_COMPLETE"})
    assert service.stack(stack_id).reason.startswith("Some resources were never created")
    service.update(stack_id, {"srv": server(), "later": double(value={"get_attr": ["srv", "name"]})})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() == made


def test_what_could_not_be_made_fails_its_check() -> None:
    service = Service(CloudBehaviour(quota=0))
    stack_id = service.create({"bad": server(), "after": {**double(value="1"), "depends_on": "bad"}})
    service.rest()
    assert service.states(stack_id) == {"bad": "CREATE_FAILED"}
    reason = service.row(stack_id, "bad").reason
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert service.state(stack_id) == "CHECK_FAILED"
    assert (service.states(stack_id), service.row(stack_id, "bad").reason) == ({"bad": "CHECK_FAILED"}, reason)
    service.cloud.behaviour.quota = None
    service.update(stack_id, {"bad": server()})
    service.rest()
    assert (service.state(stack_id), service.states(stack_id)) == ("UPDATE_COMPLETE", {"bad": "CREATE_COMPLETE"})
