"""New desired states at any moment (CV2), and the three stuck cases (CV14)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.services.pipeline.request import StackRequest
from tests.component.running import Service, double, server, template, volume

SLOW = CloudBehaviour(build_s=3.0, delete_s=3.0)


@pytest.mark.parametrize("after_s", [0.0, 1.0, 2.5])
@pytest.mark.shows("CV2")
def test_an_update_while_a_delete_runs_wins(after_s: float) -> None:
    service = Service(SLOW)
    stack_id = service.create({"disk": volume(), "srv": {**server(), "depends_on": "disk"}})
    service.rest()
    service.stack_service.delete(stack_id)
    service.live(after_s)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.update(stack_id, {"disk": volume(), "more": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE", "more": "CREATE_COMPLETE"}
    assert len(service.cloud.things()) == 2


@pytest.mark.shows("CV2")
def test_a_delete_after_an_update_after_a_delete_wins() -> None:
    service = Service(SLOW)
    stack_id = service.create({"srv": server()})
    service.rest()
    service.delete(stack_id)
    service.update(stack_id, {"srv": server()})
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


def test_a_failed_delete_is_left_by_an_update() -> None:
    service = Service(CloudBehaviour(delete_s=1e9))
    stack_id = service.create({"srv": server(), "t": double(value="1")}, timeout_mins=1)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    service.update(stack_id, {"t": double(value="2")})
    service.cloud.vanish(service.servers()[0])
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id) == {"t": "CREATE_COMPLETE"}


@pytest.mark.parametrize("patch", [False, True], ids=["PUT", "PATCH"])
@pytest.mark.parametrize("timed_out", [False, True], ids=["hanging", "timed out"])
@pytest.mark.shows("CV14")
def test_a_hanging_delete_goes_on_under_another_deletion_policy(patch: bool, timed_out: bool) -> None:
    """CV14: the undeletable thing stays, and the stack is gone at once."""
    service = Service(CloudBehaviour(delete_s=1e9))
    resources = {"srv": server(), "t": double(value="1")}
    stack_id = service.create(resources, timeout_mins=1)
    service.delete(stack_id)
    service.live(120.0 if timed_out else 5.0)
    assert service.state(stack_id) == ("DELETE_FAILED" if timed_out else "DELETE_IN_PROGRESS")
    retained = template({**resources, "srv": {**server(), "deletion_policy": "Retain"}})
    service.stack_service.update(stack_id, StackRequest(retained), patch=patch)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert len(service.servers()) == 1
    assert service.story(stack_id, "srv")[-1] == "srv DELETE_COMPLETE"


def test_policies_may_be_changed_again_while_it_is_deleted() -> None:
    service = Service(CloudBehaviour(delete_s=30.0, snapshot_s=1e9))
    stack_id = service.create({"vol": {**volume(), "deletion_policy": "Snapshot"}})
    service.delete(stack_id)
    service.live(5.0)
    service.update(stack_id, {"vol": {**volume(), "deletion_policy": "Delete"}})
    service.live(1.0)
    assert service.states(stack_id) == {"vol": "DELETE_IN_PROGRESS"}
    service.update(stack_id, {"vol": {**volume(), "deletion_policy": "Retain"}})
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    "resources",
    [
        {"srv": server(), "t": double(value="1")},
        {"srv": {**server(), "deletion_policy": "Retain"}, "t": double(value="2")},
        {"srv": {**server(), "deletion_policy": "Retain"}},
    ],
    ids=["nothing is changed", "something else, too", "something is taken out"],
)
def test_a_user_who_changes_their_mind_has_the_stack_back(resources: dict[str, Any]) -> None:
    service = Service(CloudBehaviour(delete_s=1e9))
    stack_id = service.create({"srv": server(), "t": double(value="1")})
    service.delete(stack_id)
    service.live(5.0)
    service.update(stack_id, resources)
    service.cloud.behaviour.delete_s = 0.0
    for handle in service.servers():
        service.cloud.vanish(handle)
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id).keys() == resources.keys()
