"""Stacks that are suspended and resumed."""

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.desired import graphs, members
from homeostat.model.status import Action
from homeostat.planner.actions.check import left_alone
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.explainer import Explainer
from homeostat.services.marks import MarkRequest, Marks
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.stacks import views
from tests.component.maintained import check_still_suspended, made, refusal, rested, statuses
from tests.component.running import Service, double, group, server, template, volume

# -- suspend and resume ------------------------------------------------------------------------------------------------


def test_a_suspended_stack_has_suspended_servers_and_resumes_them() -> None:
    service, stack_id = made({"srv": server(), "vol": volume(), "t": double(value="1")})
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"]
    assert set(service.states(stack_id).values()) == {"SUSPEND_COMPLETE"}
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"]
    assert set(service.states(stack_id).values()) == {"RESUME_COMPLETE"}
    assert service.row(stack_id, "srv").marks is None, "its row remembers that the stack had suspended it"


def test_what_requires_others_is_suspended_first_and_resumed_last() -> None:
    service, stack_id = made({"a": server(), "b": server(metadata={"of": {"get_resource": "a"}})})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.actions.begin(stack_id, Action.RESUME)
    service.rest()
    found = [line for line in service.story(stack_id) if "SUSPEND" in line or "RESUME" in line]
    assert found == [
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
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    before = service.story(stack_id)
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert service.story(stack_id) == before


def test_nested_stacks_are_suspended_and_resumed_with_their_parent() -> None:
    service, stack_id = made({"grp": group(2), "srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert service.state(service.child().id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"] * 3
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert service.state(service.child().id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"] * 3


def test_a_suspended_server_is_not_healed_and_one_that_vanishes_is_noticed() -> None:
    service, stack_id = made({"a": server(), "b": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
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
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.cloud.vanish(service.row(stack_id, "a").handle)
    service.live(120.0)
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    service.live(60.0)
    assert statuses(service) == ["active", "active"]


def test_a_resumed_stack_is_healed_and_updated_as_before() -> None:
    service, stack_id = made({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.actions.begin(stack_id, Action.RESUME)
    service.rest()
    service.cloud.vanish(service.servers()[0])
    service.live(120.0)
    assert statuses(service) == ["active"]
    service.update(stack_id, {"srv": server(metadata={"a": "b"}), "t": double(value="1")})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"


def test_a_suspended_stack_is_not_updated_nor_converged_but_deleted() -> None:
    service, stack_id = made({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    assert refusal(service.update, stack_id, {"srv": server()}) == "400 NotSupported"
    assert refusal(service.actions.converge, stack_id) == "400 NotSupported"
    service.delete(stack_id)
    assert rested(service, stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


def test_a_checked_stack_stays_suspended() -> None:
    service, stack_id = made({"srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.actions.begin(stack_id, Action.CHECK)
    assert rested(service, stack_id) == "CHECK_COMPLETE"
    check_still_suspended(service, stack_id)


def test_a_server_that_is_locked_by_others_cannot_be_suspended_until_they_unlock_it() -> None:
    service, stack_id = made({"srv": server()})
    service.cloud.change(service.servers()[0], locked=True)
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_FAILED"
    assert "is locked" in service.stack(stack_id).reason
    service.cloud.change(service.servers()[0], locked=False)
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert statuses(service) == ["suspended"]


def test_nothing_stays_suspended_since_another_one_cannot_be_resumed() -> None:
    """Found by the simulation: one group failed, and another one slept until the stack was updated."""
    service, stack_id = made({"a": server(), "b": {**server(), "depends_on": "a"}})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    first = service.row(stack_id, "a").handle
    service.cloud.change(first, locked=True)
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_FAILED"
    assert "resources.a: " in service.stack(stack_id).reason
    assert service.states(stack_id) == {"a": "RESUME_FAILED", "b": "RESUME_COMPLETE"}
    service.cloud.change(first, locked=False)
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active", "active"]


def test_what_failed_before_is_not_suspended() -> None:
    service, stack_id = made({"srv": server()})
    service.update(stack_id, {"srv": server(), "t": double(fail=True)})
    assert rested(service, stack_id) == "UPDATE_FAILED"
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_FAILED"
    assert "resources.t: State CREATE_FAILED invalid for suspend" in service.stack(stack_id).reason
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_FAILED"
    assert service.states(stack_id) == {"srv": "RESUME_COMPLETE", "t": "CREATE_FAILED"}


def test_what_was_replaced_is_not_suspended_in_the_place_of_what_could_not_be_made() -> None:
    """Found by the simulation (seed 30233421): what was to replace it broke and went first, and nothing could be made
    in the place of that. Nobody knew any more that it had been replaced: it stood for its name, and hindered nothing.
    """
    service, stack_id = made({"vol": volume()}, CloudBehaviour(delete_s=5.0))
    service.cloud.behaviour.faults = Faults(error=1.0)
    Marks(service.db).mark(stack_id, MarkRequest(unhealthy=True), {"": "vol"})
    service.live(3.0)
    service.cloud.behaviour.quota = 1
    service.live(30.0)
    replaced, unmade = sorted(service.rows(stack_id), key=lambda row: row.born)
    assert (replaced.status, replaced.replaced_by, unmade.action) == ("FAILED", unmade.key, "CREATE")
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_FAILED"
    assert "resources.vol: State CREATE_FAILED invalid for suspend" in service.stack(stack_id).reason


def test_while_something_else_goes_on_a_stack_is_not_suspended() -> None:
    service = Service(CloudBehaviour(build_s=30.0))
    stack_id = service.create({"srv": server()})
    assert refusal(service.actions.begin, stack_id, Action.SUSPEND) == "409 ActionInProgress"


def test_the_newest_revision_wins_while_a_stack_is_suspended() -> None:
    service, stack_id = made({"a": server(), "b": server(metadata={"of": {"get_resource": "a"}})})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active", "active"]


def test_trouble_of_the_cloud_holds_suspending_up_only() -> None:
    service = Service(CloudBehaviour(faults=Faults(refused=0.4, lost=0.3, unreachable=0.1)))
    stack_id = service.create({name: server() for name in "abcd"})
    service.rest(3000.0)
    for _ in range(3):
        service.actions.begin(stack_id, Action.SUSPEND)
        service.rest(3000.0)
        assert (service.state(stack_id), statuses(service)) == ("SUSPEND_COMPLETE", ["suspended"] * 4)
        service.actions.begin(stack_id, Action.RESUME)
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

    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    service.live(120.0)
    assert enabled() == {"on": False, "off": False}
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    service.live(120.0)
    assert enabled() == {"on": True, "off": False}


def test_what_was_being_suspended_while_its_stack_was_resumed_and_updated_is_resumed_too() -> None:
    """The nested stack hears of the suspension only, since an update overtakes the resumption."""
    service, stack_id = made({"grp": group(1), "srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    while service.child().action != "SUSPEND":
        run_pass(service.reconciler, service.claim())
    service.actions.begin(stack_id, Action.RESUME)
    service.stack_service.update(stack_id, StackRequest(template({"grp": group(1), "srv": server(flavor="large")})))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active", "active"]
    assert service.child().status == "COMPLETE"


def left_asleep(service: Service, stack_id: str) -> None:
    """The nested stack hears of the suspension only, since an update overtakes the resumption, and fails."""
    service.actions.begin(stack_id, Action.SUSPEND)
    while service.child().action != "SUSPEND":
        run_pass(service.reconciler, service.claim())
    service.actions.begin(stack_id, Action.RESUME)
    environment = {"resource_registry": {"resources": {"srv": {"restricted_actions": ["update", "replace"]}}}}
    wanted = template({"grp": group(1), "srv": server(metadata={"v": "2"})})
    service.stack_service.update(stack_id, StackRequest(wanted, environment=environment))
    assert rested(service, stack_id) == "UPDATE_FAILED"


def test_a_nested_stack_is_resumed_too_where_the_update_that_overtook_that_has_failed() -> None:
    """Found by the simulation (seed 30213882): it was suspended for ever, and nothing in it was healed."""
    service, stack_id = made({"grp": group(1), "srv": server()})
    left_asleep(service, stack_id)
    assert statuses(service) == ["active", "active"]
    assert service.states(stack_id)["grp"] == "UPDATE_COMPLETE"
    assert (service.child().action, service.child().status) == ("RESUME", "COMPLETE")


def test_a_nested_stack_that_sleeps_on_with_convergence_switched_off_is_reported_and_woken_by_the_next_update() -> None:
    service, stack_id = made({"grp": group(1), "srv": server()})
    service.actions.switch(stack_id, ConvergenceSettings({"converge": False}))
    left_asleep(service, stack_id)
    service.actions.begin(stack_id, Action.CHECK)
    service.rest()
    assert (service.child().action, service.child().suspended) == ("CHECK", True)
    with service.db.read() as tx:
        asking = Explainer(tx, graphs.DesiredGraphs(), service.clock.now())
        (found,) = [each for each in asking.of_resource(service.stack(stack_id), "grp") if each.path == ("grp",)]
    assert found.explanation.reason == "its stack is suspended; convergence is switched off"
    service.update(stack_id, {"grp": group(1), "srv": server(metadata={"v": "2"})}, environment={})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active", "active"]


def test_a_nested_stack_of_which_a_check_has_failed_is_resumed_with_its_stack() -> None:
    """Found by the simulation (seed 2384 of health): with convergence switched off it was suspended for ever."""
    service, stack_id = made({"grp": group(2), "srv": server()})
    service.actions.switch(stack_id, ConvergenceSettings({"converge": False}))
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    (gone, *_) = [row.handle for row in service.rows(service.child().id)]
    service.cloud.vanish(gone)
    service.actions.begin(stack_id, Action.CHECK)
    assert rested(service, stack_id) == "CHECK_FAILED"
    service.actions.begin(stack_id, Action.RESUME)
    service.rest()
    assert (service.child().suspended, statuses(service)) == (False, ["active", "active"])


def test_what_vanished_while_it_was_resumed_is_made_anew_by_the_update_that_overtakes_that() -> None:
    """Found by the simulation (seed 30202821): the update was complete without it."""
    service, stack_id = made({"srv": server(metadata={"v": "1"})})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.cloud.behaviour.faults = Faults(refused=1.0)
    service.actions.begin(stack_id, Action.RESUME)
    service.live(3.0)
    assert service.states(stack_id) == {"srv": "RESUME_IN_PROGRESS"}
    service.cloud.behaviour.faults = Faults()
    service.cloud.vanish(*service.servers())
    service.update(stack_id, {"srv": server(metadata={"v": "2"})})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert [thing["metadata"] for thing in service.cloud.things("server").values()] == [{"v": "2"}]


@pytest.mark.parametrize("action", [Action.RESUME, Action.CHECK], ids=["resume", "check"])
def test_what_differs_when_it_is_found_while_its_stack_is_asked_for_something_else_is_mended(action: Action) -> None:
    """Found by the simulation (seed 30231073): the answer to its creation was lost, and the stack never was complete.
    It was judged by the look that found it, and what a user had changed stayed so for ever."""
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    stack_id = service.create({"vol": volume(description="mine")})
    service.stack_service.cancel(stack_id, roll_back=False)
    (made,) = service.cloud.things("volume")
    service.cloud.change(made, description="by hand")
    service.cloud.behaviour.faults = Faults()
    service.actions.begin(stack_id, action)
    service.rest()
    service.live(1.0)
    assert [thing["description"] for thing in service.cloud.things("volume").values()] == ["mine"]
    assert service.states(stack_id) == {"vol": "UPDATE_COMPLETE"}


def test_all_members_of_a_group_are_resumed_by_the_update_that_overtakes_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those, too, that the update does not change."""
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    service, stack_id = made({"grp": group(5), "srv": server()})
    service.actions.begin(stack_id, Action.SUSPEND)
    service.rest()
    service.actions.begin(stack_id, Action.RESUME)
    service.stack_service.update(stack_id, StackRequest(template({"grp": group(5), "srv": server(flavor="large")})))
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    assert statuses(service) == ["active"] * 6
    rows = [*service.rows(stack_id), *service.rows(service.child().id)]
    assert [row.marks for row in rows] == [None] * len(rows), "nothing is suspended any more"


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_suspended_nested_stack_that_was_kept_is_resumed_by_itself(verb: str) -> None:
    service, stack_id = made({"grp": {**group(2), "deletion_policy": "Retain"}, "srv": server()})
    child = service.child().id
    service.actions.begin(stack_id, Action.SUSPEND)
    assert rested(service, stack_id) == "SUSPEND_COMPLETE"
    assert refusal(service.actions.begin, child, Action.RESUME) == "400 NotSupported"
    if verb == "delete":
        service.delete(stack_id)
    else:  # before the nested stack hears that it is resumed
        service.actions.begin(stack_id, Action.RESUME)
        service.update(stack_id, {"srv": server()})
    assert rested(service, stack_id) == f"{verb.upper()}_COMPLETE"
    service.cloud.vanish(service.row(child, "0").handle)
    service.live(120.0)
    assert service.state(child) == "SUSPEND_COMPLETE"
    service.actions.begin(child, Action.RESUME)
    assert rested(service, child) == "RESUME_COMPLETE"
    service.live(60.0)
    assert set(statuses(service)) == {"active"}
    assert service.state(child) == "RESUME_COMPLETE"
    service.actions.begin(child, Action.SUSPEND)
    assert rested(service, child) == "SUSPEND_COMPLETE"
