"""Groups: a nested stack is the reality of a resource."""

from typing import Any

import pytest

from homeostat.clouds.port import Operation
from homeostat.clouds.simulated import CloudBehaviour
from homeostat.convergence.nested_stacks import removal_requests
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.store.stacks import action_begin, revisions, stacks
from homeostat.store.stacks.contents import Content
from tests.component.running import Service, double, group, server, template


def names(service: Service) -> list[str]:
    """Names of the servers there are; members are called m<number>."""
    return sorted(each["name"] for each in service.cloud.things("server").values())


def created(count: int, behaviour: CloudBehaviour | None = None, **properties: Any) -> tuple[Service, str]:
    service = Service(behaviour)
    stack_id = service.create({"grp": group(count, **properties)})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def reader(attribute: str) -> dict[str, Any]:
    return double(value={"list_join": [",", {"get_attr": ["grp", attribute]}]})


@pytest.mark.parametrize(
    "behaviour", [CloudBehaviour(), CloudBehaviour(build_s=3.0, delete_s=2.0)], ids=["at once", "slow"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [(2, 4), (4, 1), (2, 0), (0, 2), (2, 2)],
    ids=["up", "down", "to none", "from none", "no change"],
)
def test_scaling(behaviour: CloudBehaviour, before: int, after: int) -> None:
    service, stack_id = created(before, behaviour)
    assert names(service) == [f"m{number}" for number in range(before)]
    kept = set(service.servers())
    service.update(stack_id, {"grp": group(after)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert names(service) == [f"m{number}" for number in range(after)]
    assert len(kept & set(service.servers())) == min(before, after), "who stays is not made anew"


def test_deleting_the_owner_deletes_the_members_and_their_stack() -> None:
    service, stack_id = created(2)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}
    assert all(each.deleted_at is not None for each in service.stacks())


def test_a_changed_definition_reaches_every_member() -> None:
    service, stack_id = created(2)
    service.update(stack_id, {"grp": group(2, server(name="m%index%", metadata={"k": "v"}))})
    service.rest()
    assert [each["metadata"] for each in service.cloud.things("server").values()] == [{"k": "v"}] * 2


@pytest.mark.parametrize("listed", [["0"], [0], ["server-1"]], ids=["name", "number", "reference"])
def test_removal_policies_choose_who_goes(listed: list[Any]) -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": group(2, removal_policies=[{"resource_list": listed}])})
    service.rest()
    assert names(service) == ["m1", "m2"]


def test_members_are_not_read_to_remove_one_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be a million."""
    service, stack_id = created(3)
    monkeypatch.setattr(removal_requests, "members_and_outputs", lambda *_: pytest.fail("all members were read"))
    service.update(stack_id, {"grp": group(2, removal_policies=[{"resource_list": ["0"]}])})
    service.rest()
    assert names(service) == ["m1", "m2"]


def test_a_name_removed_once_is_not_given_again() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": group(2, removal_policies=[{"resource_list": ["0"]}])})
    service.rest()
    service.update(stack_id, {"grp": group(3)})
    service.rest()
    assert names(service) == ["m1", "m2", "m3"]


def test_the_skip_list_may_start_afresh() -> None:
    service, stack_id = created(3)
    service.update(stack_id, {"grp": group(2, removal_policies=[{"resource_list": ["0"]}])})
    service.rest()
    service.update(stack_id, {"grp": group(2, removal_policies_mode="update")})
    service.rest()
    assert names(service) == ["m0", "m1"]


def test_a_dependant_reads_the_references_of_the_members() -> None:
    service = Service(CloudBehaviour(build_s=2.0))
    stack_id = service.create({"grp": group(2), "t": reader("refs")})
    service.rest()
    assert service.row(stack_id, "t").properties["value"] == "server-1,server-2"
    service.update(stack_id, {"grp": group(3), "t": reader("refs")})
    service.rest()
    assert service.row(stack_id, "t").properties["value"] == "server-1,server-2,server-3"


def test_a_member_that_is_healed_changes_what_dependants_read() -> None:
    service = Service()
    stack_id = service.create({"grp": group(2), "t": reader("refs")})
    service.rest()
    service.cloud.vanish("server-1")
    service.live(65)
    assert service.row(stack_id, "t").properties["value"] == "server-3,server-2"


def test_a_member_that_fails_fails_the_group_and_the_stack() -> None:
    service = Service(CloudBehaviour(quota=2))
    stack_id = service.create({"grp": group(3)})
    service.rest()
    assert service.state(service.child().id) == "CREATE_FAILED"
    assert service.states(stack_id) == {"grp": "CREATE_FAILED"}
    assert service.state(stack_id) == "CREATE_FAILED"


def test_a_group_that_failed_is_mended_by_an_update() -> None:
    service = Service(CloudBehaviour(quota=2))
    stack_id = service.create({"grp": group(3)})
    service.rest()
    service.cloud.behaviour.quota = None
    service.update(stack_id, {"grp": group(3)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert names(service) == ["m0", "m1", "m2"]


def test_a_deletion_that_a_member_refused_can_be_tried_again() -> None:
    service, stack_id = created(2)
    service.cloud.operate("server", [Operation("server-1", "lock")])
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    service.cloud.operate("server", [Operation("server-1", "unlock")])
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


def test_a_group_deleted_by_hand_is_made_anew() -> None:
    service, _ = created(1)
    service.delete(service.child().id)
    service.rest()
    assert names(service) == ["m0"]


def test_groups_of_groups_have_a_limit() -> None:
    service = Service()
    nested = server()
    for _ in range(6):
        nested = group(1, nested)
    with pytest.raises(Rejected, match=r"resource_def: Request limit exceeded: .* exceeds 5: .* --depth-max"):
        service.create({"grp": nested})
    assert service.stacks() == []


def test_what_is_nested_too_deeply_for_the_engine_fails_there() -> None:
    """It was accepted where more was allowed."""
    service = Service()
    service.stack_service.quotas = Quotas(depth_max=6)
    nested = server()
    for _ in range(6):
        nested = group(1, nested)
    stack_id = service.create({"grp": nested})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.servers() == []


def test_a_member_in_a_group_of_groups() -> None:
    service = Service()
    service.create({"grp": group(2, group(2))})
    service.rest()
    assert len(service.servers()) == 4


# -- what was wrong once -------------------------------------------------------------------------------------------


def test_the_reason_of_a_member_reaches_the_stack() -> None:
    service = Service(CloudBehaviour(quota=2))
    stack_id = service.create({"grp": group(3)})
    service.rest()
    reason = service.stack(stack_id).reason
    assert (
        reason == "Resource CREATE failed: Terminal: resources.grp.resources[2]: Quota exceeded: 2 things are allowed"
    )


def test_a_member_that_was_never_made_can_be_removed_by_its_name() -> None:
    service = Service(CloudBehaviour(quota=2))
    stack_id = service.create({"grp": group(3)})
    service.rest()
    service.cloud.behaviour.quota = None
    service.update(stack_id, {"grp": group(3, removal_policies=[{"resource_list": ["2"]}])})
    service.rest()
    assert names(service) == ["m0", "m1", "m3"]


def failed_group() -> tuple[Service, str]:
    """Three members; making a fourth failed, so that the group's stack is not COMPLETE."""
    service, stack_id = created(3)
    service.cloud.behaviour.quota = 3
    service.update(stack_id, {"grp": group(4)})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    service.cloud.behaviour.quota = None
    return service, stack_id


def test_members_of_a_failed_group_stay() -> None:
    service, stack_id = failed_group()
    before = service.servers()
    service.update(stack_id, {"grp": group(4)})
    service.rest()
    assert set(before) <= set(service.servers())


def test_a_rollback_keeps_the_members() -> None:
    service = Service(CloudBehaviour(quota=3))
    stack_id = service.create({"grp": group(3)}, disable_rollback=False)
    service.rest()
    before = service.servers()
    service.update(stack_id, {"grp": group(4)})
    service.rest()
    assert service.state(stack_id) == "ROLLBACK_COMPLETE"
    assert service.servers() == before


def test_a_change_of_mind_in_the_middle_keeps_the_removed_names() -> None:
    """The nested stack is still in progress when the second update comes."""
    service, stack_id = created(3, CloudBehaviour(build_s=3.0, delete_s=2.0))
    removed = [{"resource_list": ["0"]}]
    service.update(stack_id, {"grp": group(2, removal_policies=removed)})
    service.update(stack_id, {"grp": group(3, removal_policies=removed)})
    service.rest()
    assert names(service) == ["m1", "m2", "m3"]


def test_an_update_of_a_group_carried_out_twice_is_the_same_update() -> None:
    service, stack_id = created(3, CloudBehaviour(delete_s=8.0))
    removing = template({"grp": group(2, removal_policies=[{"resource_list": ["0"]}])})
    service.stack_service.update(stack_id, StackRequest(removing))
    service.die_after_nested_act()
    service.rest()
    assert names(service) == ["m1", "m2"]


def test_dependants_do_not_lose_what_they_read_while_the_nested_stack_is_updated_by_itself() -> None:
    service = Service(CloudBehaviour(build_s=3.0))
    stack_id = service.create({"grp": group(2), "t": reader("refs")})
    service.rest()
    child = service.child()
    with service.db.write() as tx:
        row = stacks.for_update(tx, child.id)
        assert row is not None
        content = revisions.content_of(tx, child.id, child.revision)
        more = revisions.encode(service.db, Content("group", {**content.template, "count": 3}))
        action_begin.revise(tx, row, Action.UPDATE, more, service.clock.now(), 3600.0)
    service.update(stack_id, {"grp": group(2), "t": reader("refs"), "other": double()})
    assert service.row(stack_id, "t").properties["value"].startswith("server-1,server-2")


def test_a_nested_stack_has_as_much_time_as_its_owner() -> None:
    service = Service(CloudBehaviour(build_s=5000.0))
    stack_id = service.create({"grp": group(1)}, timeout_mins=120)
    assert service.child().deadline >= service.stack(stack_id).deadline


def test_the_owner_learns_at_once_that_a_nested_stack_was_cancelled() -> None:
    service = Service(CloudBehaviour(build_s=60.0))
    stack_id = service.create({"grp": group(1)})
    service.stack_service.cancel(service.child().id, roll_back=False)
    service.live(10)
    assert service.state(stack_id) == "CREATE_FAILED"


def unhealed(service: Service, resources: dict[str, Any]) -> str:
    """Two servers; the second vanished, and making it anew was refused. What was in the way has gone since."""
    stack_id = service.create(resources)
    service.rest()
    service.cloud.behaviour.quota = 1
    service.cloud.vanish("server-2")
    service.live(65)
    assert len(service.servers()) == 1
    service.cloud.behaviour.quota = None
    return stack_id


def test_an_update_tries_again_what_could_not_be_healed() -> None:
    service = Service()
    resources = {"a": server(), "b": {**server(), "depends_on": "a"}}
    stack_id = unhealed(service, resources)
    service.update(stack_id, resources)
    service.rest()
    assert len(service.servers()) == 2


def test_an_update_tries_again_what_could_not_be_healed_in_a_group() -> None:
    """No dead end: the stack of a group is changed through its group only."""
    service = Service()
    stack_id = unhealed(service, {"grp": group(2)})
    service.update(stack_id, {"grp": group(2)})
    service.rest()
    assert len(service.servers()) == 2


def test_a_group_of_none_is_let_alone_whatever_its_members_would_be() -> None:
    service = Service()
    wrong = {"type": "OS::Heat::RandomString", "properties": {"length": "long"}}
    stack_id = service.create({"grp": group(0, wrong)})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    with pytest.raises(Rejected, match="long"):
        service.update(stack_id, {"grp": group(1, wrong)})
