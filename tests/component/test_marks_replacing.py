"""What is marked unhealthy is replaced: by the next update, by hand, or at once (MU7, MU8)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.services.marks import MarkRequest
from homeostat.services.pipeline.request import StackRequest
from tests.component.marked import OFF, PAIR, UNHEALTHY, mark, refused, send_marks, started
from tests.component.running import Service, double, group, server

# -- replaced ----------------------------------------------------------------------------------------------------------


@pytest.mark.shows("MU7")
def test_the_next_update_replaces_it_once_and_references_follow() -> None:
    """Nothing of the template changes (MU7)."""
    service, stack_id = started()
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    service.update(stack_id, PAIR)
    service.rest()
    (new,) = service.servers()
    assert new != old
    assert service.row(stack_id, "user").properties["value"] == new
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    story = service.story(stack_id)
    moved = story.index("user UPDATE_COMPLETE")
    assert story.index("srv CREATE_COMPLETE", story.index("srv CHECK_FAILED")) < moved
    assert moved < story.index("srv DELETE_IN_PROGRESS")
    service.update(stack_id, PAIR)
    assert service.servers() == [new]


def test_where_convergence_is_on_it_is_replaced_at_once() -> None:
    service, stack_id = started(converge=True)
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    service.live(30.0)
    (new,) = service.servers()
    assert new != old
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"
    assert service.state(stack_id) == "CREATE_COMPLETE"


def test_converging_it_by_hand_replaces_it() -> None:
    service, stack_id = started()
    (old,) = service.servers()
    mark(service, stack_id, "srv")
    service.actions.converge(stack_id, "srv")
    service.live(30.0)
    assert old not in service.servers()
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"


def test_a_mark_in_the_middle_of_an_update_is_acted_on_by_it() -> None:
    """What the update is done with already is replaced all the same, and the update does not fail of it."""
    service, stack_id = started({"srv": server()})
    (old,) = service.servers()
    service.update(stack_id, {"srv": server(metadata={"k": "v"}), "slow": double(wait_secs=50)})
    assert service.states(stack_id) == {"srv": "UPDATE_COMPLETE", "slow": "CREATE_IN_PROGRESS"}
    mark(service, stack_id, "srv")
    service.rest()
    service.live(60.0)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert old not in service.servers()
    assert len(service.servers()) == 1


@pytest.mark.parametrize("made", [False, True], ids=["create", "update"])
def test_a_mark_in_a_nested_stack_fails_no_action_of_the_stacks_around_it(made: bool) -> None:
    """Found by the simulation (seed 39004559): what was being created was rolled back, and so deleted."""
    wanted = {"grp": group(2, group(3, server())), "slow": double(wait_secs=100)}
    service = Service()
    stack_id = service.create({"grp": group(1, group(3, server()))}) if made else ""
    service.rest()
    if made:
        service.update(stack_id, wanted, disable_rollback=False)
    else:
        stack_id = service.begin(wanted, disable_rollback=False)
    service.live(30.0)
    before = service.servers()
    action = "UPDATE" if made else "CREATE"
    assert (service.state(stack_id), len(before)) == (f"{action}_IN_PROGRESS", 6)
    for each in service.stacks():
        service.actions.switch(each.id, OFF)
    send_marks(service, stack_id, UNHEALTHY, "grp/0/1")
    service.live(60.0)
    assert service.state(stack_id) == f"{action}_IN_PROGRESS"
    service.live(60.0)
    assert service.story(stack_id, "web")[-2:] == [f"web {action}_COMPLETE", "web CHECK_FAILED"]
    assert "1: state changed by resource_mark_unhealthy api" in service.stack(stack_id).reason
    assert service.servers() == before


@pytest.mark.shows("MU7")
def test_a_nested_stack_that_is_marked_is_replaced_as_a_whole() -> None:
    service, stack_id = started({"grp": group(2)})
    old = service.child().id
    before = service.servers()
    mark(service, stack_id, "grp")
    service.update(stack_id, {"grp": group(2)})
    service.rest()
    service.live(60.0)
    assert service.child().id != old
    assert len(service.servers()) == 2
    assert not set(before) & set(service.servers())


def test_a_restricted_one_is_not_replaced_by_itself() -> None:
    service = Service()
    restricted = {"resource_registry": {"resources": {"srv": {"restricted_actions": "replace"}}}}
    stack_id = service.create(PAIR, environment=restricted)
    service.rest()
    before = service.servers()
    mark(service, stack_id, "srv")
    service.live(100.0)
    assert service.servers() == before
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.update(stack_id, PAIR, environment=restricted)
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "replace is restricted" in service.stack(stack_id).reason
    service.update(stack_id, PAIR)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() != before


def test_what_is_of_others_is_looked_at_anew_by_the_next_update() -> None:
    service = Service()
    theirs = service.create({"srv": server()}, name="theirs")
    service.rest()
    (handle,) = service.servers()
    ours = {"srv": {**server(), "external_id": handle, "properties": {}}}
    stack_id = service.create(ours, name="ours")
    service.rest()
    mark(service, stack_id, "srv")
    service.live(100.0)
    assert service.states(stack_id)["srv"] == "CHECK_FAILED"
    service.update(stack_id, ours)
    service.rest()
    assert service.states(stack_id)["srv"] == "UPDATE_COMPLETE"
    assert service.row(stack_id, "srv").marks is None
    assert service.servers() == [handle]
    assert service.state(theirs) == "CREATE_COMPLETE"


def test_what_is_listed_and_not_made_yet_is_no_unknown_name() -> None:
    service = Service(CloudBehaviour(build_s=100.0))
    stack_id = service.create({"srv": server(), "after": {**server(), "depends_on": "srv"}})
    assert refused(service, stack_id, "after").fault == "ActionInProgress"
    assert refused(service, stack_id, "other").fault == "EntityNotFound"


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converge", [True, False])
@pytest.mark.shows("MU8")
def test_a_member_is_replaced_under_its_name(converge: bool) -> None:
    """MU8: marked in its own stack, mended by an update of the group's that changes nothing, or at once."""
    service, stack_id = started({"grp": group(3)}, converge=converge)
    child = service.child().id
    before = {each.name: each.handle for each in service.rows(child)}
    mark(service, child, "1")
    if not converge:
        service.live(100.0)
        service.update(stack_id, {"grp": group(3)})
    service.rest()
    service.live(60.0)
    after = {each.name: each.handle for each in service.rows(child)}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"1"}
    assert len(service.servers()) == 3


@pytest.mark.shows("MU8")
def test_a_marked_member_goes_first_when_the_group_shrinks() -> None:
    member = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}

    def scaled(size: int) -> dict[str, Any]:
        properties = {"min_size": 1, "max_size": 5, "desired_capacity": size, "resource": member}
        return {"grp": {"type": "OS::Heat::AutoScalingGroup", "properties": properties}}

    service, stack_id = started(scaled(3))
    child = service.child().id
    before = {each.name: each.handle for each in service.rows(child)}
    mark(service, child, "1")
    service.update(stack_id, scaled(2))
    service.rest()
    service.live(60.0)
    after = {each.name: each.handle for each in service.rows(child)}
    assert after == {name: handle for name, handle in before.items() if name != "1"}


DEEP = {1: group(2), 2: group(2, group(2, server())), 3: group(1, group(1, group(2, server())))}
PATHS = {1: "grp/1", 2: "grp/0/1", 3: "grp/0/0/1"}


@pytest.mark.shows("MU7")
@pytest.mark.parametrize("begun_s", [0.0, 0.1, 5.0, 15.0])
@pytest.mark.parametrize("converge", [True, False])
@pytest.mark.parametrize("depth", DEEP)
def test_an_update_is_complete_once_what_is_marked_below_is_replaced(
    depth: int, converge: bool, begun_s: float
) -> None:
    service = Service(CloudBehaviour(build_s=10.0, delete_s=10.0))
    stack_id = service.create({"grp": DEEP[depth]})
    service.rest()
    service.live(60.0)
    before = set(service.servers())
    if not converge:
        for each in service.stacks():
            service.actions.switch(each.id, OFF)
    send_marks(service, stack_id, UNHEALTHY, PATHS[depth])
    (marked,) = [row.handle for each in service.stacks() for row in service.rows(each.id) if row.marks is not None]
    service.live(begun_s)
    service.update(stack_id, {"grp": DEEP[depth]})
    while service.state(stack_id) == "UPDATE_IN_PROGRESS":
        service.live(0.5)
    after = set(service.servers())
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert before - after == {marked}
    assert len(after) == len(before)
    assert all(each.status == "COMPLETE" for each in service.stacks())


@pytest.mark.shows("MU7")
def test_a_patch_of_the_stack_of_a_group_that_changes_nothing_replaces_what_is_marked() -> None:
    service, stack_id = started({"grp": group(3)})
    child = service.child().id
    before = {each.name: each.handle for each in service.rows(child)}
    mark(service, child, "1")
    service.stack_service.update(child, StackRequest(), patch=True)
    service.work()
    service.rest()
    after = {each.name: each.handle for each in service.rows(child)}
    assert {name for name in after if after[name] != before[name]} == {"1"}
    assert (service.state(child), service.state(stack_id)) == ("UPDATE_COMPLETE", "CHECK_COMPLETE")
    with pytest.raises(Rejected, match=r"The Parameter \(a\) was not defined in template"):
        service.stack_service.update(child, StackRequest(parameters={"a": "b"}), patch=True)


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.shows("MU7")
def test_several_at_once_nested_ones_by_path() -> None:
    service, stack_id = started({"srv": server(), "grp": group(2)})
    handle = service.row(stack_id, "srv").handle
    outcomes = send_marks(service, stack_id, MarkRequest(True, "rack 7", lasts_s=60.0), "grp/0", handle, "srv", "grp/1")
    assert [(each.path, each.state, each.changed) for each in outcomes] == [
        (("grp", "0"), "CHECK_FAILED", True),
        (("srv",), "CHECK_FAILED", True),
        (("srv",), "CHECK_FAILED", True),
        (("grp", "1"), "CHECK_FAILED", True),
    ]
    service.work()
    assert set(service.states(service.child().id).values()) == {"CHECK_FAILED"}
    service.live(61.0)
    assert set(service.states(service.child().id).values()) == {"CHECK_COMPLETE"}


def test_all_or_none_and_what_is_wrong_has_its_place() -> None:
    service, stack_id = started({"srv": server(), "grp": group(1)})
    error = refused(service, stack_id, "srv", "no", "grp/7", "srv/x")
    assert error.fault == "EntityNotFound"
    assert "resources[1]: The Resource (no) could not be found in Stack web." in str(error)
    assert "resources[2]: The Resource (7) could not be found in Stack web-grp-" in str(error)
    assert "resources[3]: The Resource (srv) of Stack web has no nested stack." in str(error)
    assert service.states(stack_id)["srv"] == "CREATE_COMPLETE"
