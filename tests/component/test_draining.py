"""Servers that leave their group are drained first: out of load balancers, then deleted a while later (ADR 0069)."""

import json
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.errors import Rejected
from homeostat.services.explainer import Explainer
from tests.component.running import Service, group, server
from tests.component.test_scaling import LAUNCH
from tests.component.test_scaling_balancers import balanced, elb, places

DRAIN_S = 100


def plain(count: int, image: str = "i", **policy: Any) -> dict[str, Any]:
    one = server(image=image, image_update_policy="REPLACE")
    return {"g": {**group(count, one), "update_policy": {"drain_time": DRAIN_S, **policy}}, "other": server()}


def behind(size: int, launch: dict[str, Any] = LAUNCH, drain_s: int = DRAIN_S) -> dict[str, Any]:
    found = balanced(size, ["elb"], launch, elb=elb((80, 8080)))
    found["group"] = {**found["group"], "update_policy": {"drain_time": drain_s}}
    return found


def made(resources: dict[str, Any]) -> tuple[Service, str]:
    service = Service(CloudBehaviour(build_s=1.0))
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def changed(service: Service, stack_id: str, resources: dict[str, Any]) -> None:
    service.update(stack_id, resources)
    service.live(10)


def servers(service: Service) -> set[str]:
    return set(service.cloud.things("server"))


def explained(service: Service, stack_id: str) -> list[tuple[str, float | None]]:
    """Why resources of a stack wait in the end, and until when."""
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(service.stack(stack_id), 100)
    causes = [each.explanation if each.cause is None else each.cause.explanation for each in page.explanations]
    return [(str(each.why), each.due_at) for each in causes]


def test_a_server_that_scaling_in_removes_stays_for_its_drain_time() -> None:
    service, stack_id = made(plain(3))
    before, began = servers(service), service.clock.time
    changed(service, stack_id, plain(2))
    assert servers(service) == before
    assert service.state(stack_id) == "UPDATE_IN_PROGRESS"
    for explained_in in (stack_id, service.child().id):
        [(why, due)] = explained(service, explained_in)
        assert (why, round((due or 0) - began)) == ("draining", DRAIN_S)
    service.live(DRAIN_S - 15)
    assert servers(service) == before
    service.live(20)
    assert len(servers(service)) == 3
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_one_that_is_replaced_stays_until_its_successor_has_served_for_a_while() -> None:
    service, stack_id = made(plain(1))
    before = servers(service)
    changed(service, stack_id, plain(1, "j"))
    service.live(DRAIN_S - 15)
    assert before < servers(service), "the new one is there"
    service.live(20)
    assert len(servers(service) & before) == 1, "the one beside the group"
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_it_leaves_its_load_balancer_first() -> None:
    service, stack_id = made(behind(2))
    before = servers(service)
    changed(service, stack_id, behind(1))
    assert servers(service) == before
    assert len(places(service)) == 1
    service.live(DRAIN_S - 15)
    assert servers(service) == before
    service.live(20)
    assert {each for _, each, _ in places(service)} == servers(service)
    assert len(servers(service)) == 1


def test_its_successor_takes_its_place_before_it_is_drained() -> None:
    service, stack_id = made(behind(1))
    (before,) = servers(service)
    changed(service, stack_id, behind(1, {**LAUNCH, "properties": {**LAUNCH["properties"], "ImageId": "another"}}))
    service.live(10)
    assert before in servers(service)
    assert [each for _, each, _ in places(service)] == [*(servers(service) - {before})]
    service.live(DRAIN_S)
    assert before not in servers(service)
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_the_deletion_of_the_stack_does_not_drain() -> None:
    for resources in (plain(2), behind(2)):
        service, stack_id = made(resources)
        service.delete(stack_id)
        service.live(15)
        assert service.cloud.things() == {}


def test_the_deletion_of_the_stack_ends_a_drain() -> None:
    service, stack_id = made(plain(3))
    changed(service, stack_id, plain(2))
    service.delete(stack_id)
    service.live(15)
    assert service.cloud.things() == {}


NESTED = {
    "member.yaml": json.dumps({"heat_template_version": "2018-08-31", "resources": {"s": server()}}),
    "outer.yaml": json.dumps({"heat_template_version": "2018-08-31", "resources": {"m": {"type": "member.yaml"}}}),
}
"""Members that are stacks of their own."""


def stacks_of(count: int, member: str) -> dict[str, Any]:
    return {"g": {**group(count, {"type": member}), "update_policy": {"drain_time": DRAIN_S}}, "other": server()}


def draining(member: str) -> tuple[Service, str]:
    """A group of nested stacks of which one is being drained."""
    service = Service(CloudBehaviour(build_s=1.0))
    stack_id = service.create(stacks_of(3, member), files=NESTED)
    service.rest()
    before = servers(service)
    service.update(stack_id, stacks_of(2, member), files=NESTED)
    service.live(10)
    assert servers(service) == before, "it is being drained"
    return service, stack_id


@pytest.mark.parametrize("member", ["member.yaml", "outer.yaml"])
def test_the_deletion_of_the_stack_ends_the_drain_of_a_member_that_is_a_stack(member: str) -> None:
    service, stack_id = draining(member)
    service.delete(stack_id)
    service.live(15)
    assert service.cloud.things() == {}


@pytest.mark.parametrize("member", ["member.yaml", "outer.yaml"])
def test_the_deletion_of_the_group_ends_the_drain_of_a_member_that_is_a_stack(member: str) -> None:
    service, stack_id = draining(member)
    changed(service, stack_id, {"other": server()})
    service.live(5)
    assert len(servers(service)) == 1, "the one beside the group"
    assert service.state(stack_id) == "UPDATE_COMPLETE"


def test_what_another_group_drains_is_left_alone() -> None:
    """The deletion of one group wakes nothing that is nested in another."""
    service = Service(CloudBehaviour(build_s=1.0))
    both = {**stacks_of(2, "member.yaml"), "h": stacks_of(2, "member.yaml")["g"]}
    stack_id = service.create(both, files=NESTED)
    service.rest()
    before = servers(service)
    service.update(stack_id, {**both, "h": stacks_of(1, "member.yaml")["g"]}, files=NESTED)
    service.live(10)
    assert servers(service) == before
    service.update(stack_id, {"other": server(), "h": stacks_of(1, "member.yaml")["g"]}, files=NESTED)
    service.live(10)
    assert len(servers(service)) == 5, "what an update removes goes last: the other group is still being drained"
    service.rest()
    assert len(servers(service)) == 2, "the member of the group that is left, and the one beside it"


def test_healing_does_not_drain() -> None:
    service, stack_id = made(plain(2))
    child = service.child().id
    broken = service.row(child, "0").handle
    service.cloud.change(broken, status="error")
    service.live(80)
    assert broken not in servers(service)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    gone = service.row(child, "1").handle
    changed(service, stack_id, plain(1))
    service.cloud.vanish(gone)
    service.live(80)
    assert service.state(stack_id) == "UPDATE_COMPLETE", "what is gone is not drained any longer"


def test_what_is_wanted_again_stays_and_is_drained_anew_the_next_time() -> None:
    service, stack_id = made(plain(3))
    before = servers(service)
    changed(service, stack_id, plain(2))
    changed(service, stack_id, plain(3))
    service.live(2 * DRAIN_S)
    assert servers(service) == before
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    changed(service, stack_id, plain(2))
    service.live(DRAIN_S / 2)
    assert servers(service) == before


def test_a_cancelled_update_keeps_what_it_drained() -> None:
    service, stack_id = made(plain(3))
    before = servers(service)
    changed(service, stack_id, plain(2))
    service.stack_service.cancel(stack_id, roll_back=True)
    service.live(2 * DRAIN_S)
    assert (service.state(stack_id), servers(service)) == ("ROLLBACK_COMPLETE", before)


def test_a_drain_that_the_time_of_the_stack_does_not_suffice_for_goes_on_with_the_next_update() -> None:
    service, stack_id = made(plain(3))
    before = servers(service)
    service.update(stack_id, plain(2), timeout_mins=1)
    service.live(DRAIN_S + 20)
    assert (service.state(stack_id), servers(service)) == ("UPDATE_FAILED", before)
    changed(service, stack_id, plain(2))
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert len(servers(service)) == len(before) - 1, "its time was over"


def test_without_a_drain_time_a_server_goes_at_once() -> None:
    service, stack_id = made(behind(2, drain_s=0))
    changed(service, stack_id, behind(1, drain_s=0))
    assert len(servers(service)) == 1


@pytest.mark.parametrize("value", [-1, 3601, "long"])
def test_a_time_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(Rejected, match="drain_time"):
        Service().create({"g": {**group(2, server()), "update_policy": {"drain_time": value}}})
