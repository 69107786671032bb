"""Several things that hold healing back at once, and what happens meanwhile: nothing is stuck, nothing left over."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkRequest, Marks
from tests.component.running import Service, group, server, volume

ROLLING = {"update_policy": {"rolling_update": {"min_in_service": 4, "max_batch_size": 1, "pause_time": 5}}}


def members(flavor: str = "small") -> dict[str, Any]:
    return {"g": {**group(6, server(flavor=flavor, name="m%index%")), **ROLLING}, "other": server()}


def switch(service: Service, stack_id: str, **switches: Any) -> None:
    service.actions.switch(stack_id, ConvergenceSettings(**switches))


def mark_all(service: Service, child: str) -> None:
    Marks(service.db).mark(child, MarkRequest(True, "by a monitor"), {f"resources[{n}]": str(n) for n in range(6)})


def six(**more: Any) -> tuple[Service, str, str]:
    service = Service(CloudBehaviour(build_s=10.0))
    stack_id = service.create(members(), **more)
    service.rest()
    return service, stack_id, service.child().id


@pytest.mark.parametrize("policy", ["ask", "replace"])
def test_all_marked_in_the_middle_of_a_rolling_update_and_then_deleted(policy: str) -> None:
    service, stack_id, child = six()
    switch(service, stack_id, healing={"policy": policy, "share": 0.3})
    service.update(stack_id, members("large"))
    service.live(12.0)
    assert service.state(child) == "UPDATE_IN_PROGRESS"
    mark_all(service, child)
    service.live(20.0)
    service.cloud.vanish(service.servers()[0])
    service.live(20.0)
    service.delete(stack_id)
    service.rest(300.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.servers() == []


def test_all_marked_in_the_middle_of_a_rolling_update_that_goes_on() -> None:
    service, stack_id, child = six()
    before = set(service.servers())
    service.update(stack_id, members("large"))
    service.live(12.0)
    mark_all(service, child)
    service.live(900.0)
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    flavors = [each["flavor"] for each in service.cloud.things("server").values()]
    assert sorted(flavors) == ["large"] * 6 + ["small"]
    assert not {row.handle for row in service.rows(child)} & before


def test_what_is_lost_and_cannot_be_made_again_is_explained_and_tried_when_there_is_room() -> None:
    service, stack_id, child = six()
    service.cloud.behaviour.quota = 3
    for row in service.rows(child):
        service.cloud.vanish(row.handle)
    service.live(300.0)
    assert len(service.servers()) == 3
    assert service.state(stack_id) == service.state(child) == "CHECK_FAILED"
    assert "quota" in service.stack(stack_id).reason.lower()
    service.cloud.behaviour.quota = None
    service.actions.converge(stack_id)
    service.live(900.0)
    assert len(service.servers()) == 7
    assert set(service.states(child).values()) <= {"CREATE_COMPLETE", "CHECK_COMPLETE", "UPDATE_COMPLETE"}


@pytest.mark.parametrize("first", ["ask", "replace"])
def test_the_policy_is_switched_while_healing_is_under_way(first: str) -> None:
    service, stack_id, child = six()
    switch(service, stack_id, healing={"policy": first})
    for row in service.rows(child):
        service.cloud.vanish(row.handle)
    service.live(70.0)
    switch(service, stack_id, healing={"policy": "ask" if first == "replace" else "replace"})
    service.live(600.0)
    if first == "ask":
        assert len(service.servers()) == 7
        return
    there = len(service.servers())
    waiting = [name for name, state in service.states(child).items() if state == "CHECK_FAILED"]
    assert there + len(waiting) == 7  # what was begun is finished, the rest asks
    service.actions.converge(stack_id)
    service.live(600.0)
    assert len(service.servers()) == 7


@pytest.mark.heavy
@pytest.mark.parametrize("share", [0.0001, 1.0, None])
def test_the_ends_of_the_share_heal_everything_in_the_end(share: float | None) -> None:
    service, stack_id, child = six()
    switch(service, stack_id, healing={"share": share})
    for row in service.rows(child):
        service.cloud.vanish(row.handle)
    service.live(900.0)
    assert len(service.servers()) == 7
    assert set(service.states(child).values()) == {"CREATE_COMPLETE"}


def test_a_worker_that_dies_between_the_two_looks_loses_nothing() -> None:
    """The next one looks again itself before it makes another one; what came back meanwhile is kept."""
    service = Service()
    stack_id = service.create({"disk": volume()})
    service.rest()
    (disk,) = service.cloud.things("volume")
    service.cloud.hide(disk)
    service.live(0.1)
    service.clock.time += 61.0
    service.observer.round()
    service.claim()  # and is never heard of again
    service.cloud.unhide(disk)
    service.live(120.0)
    assert list(service.cloud.things("volume")) == [disk]
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE"}
