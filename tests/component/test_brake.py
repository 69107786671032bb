"""Healing has a brake: a share at a time, nothing where the look itself is doubted, and a question where a user wants
to be asked."""

from typing import Any
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.facts.healing_brake import doubts
from homeostat.desired import members as desired_members
from homeostat.desired.graphs import DesiredGraphs
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.explainer import Explainer
from tests.component.running import Service, double, group, server, volume

SLOW = CloudBehaviour(build_s=10.0)


def why(service: Service, stack_id: str) -> dict[str, str]:
    """Name of what waits -> reason."""
    stack = service.stack(stack_id)
    with service.db.read() as tx:
        page = Explainer(tx, DesiredGraphs(), service.clock.now()).page(stack, 100)
    return {each.explanation.name: str(each.explanation.why) for each in page.explanations}


def vanish(service: Service, handles: list[str]) -> None:
    for handle in handles:
        service.cloud.vanish(handle)


def six(service: Service, **policy: Any) -> tuple[str, str, list[str]]:
    """A group of six servers: stack, stack of the group, servers. There is another server beside it."""
    properties = {"resources": {"g": {**group(6), **policy}, "other": server()}}
    stack_id = service.create(properties["resources"])
    service.rest()
    child = service.child().id
    return stack_id, child, sorted(row.handle for row in service.rows(child))


def healed_at_most(service: Service, seconds: float, members: list[str]) -> int:
    """Let time pass; gives how many servers more than there should be were in the making at a time."""
    most = 0
    for _ in range(int(seconds / 0.5)):
        service.live(0.5)
        building = [each for each in service.cloud.things("server").values() if each["status"] == "building"]
        most = max(most, len(building))
    return most


@pytest.mark.shows("HP12")
def test_of_six_lost_members_two_are_healed_at_a_time() -> None:
    service = Service(SLOW)
    _, child, members = six(service)
    vanish(service, members)
    while not any(each["status"] == "building" for each in service.cloud.things("server").values()):
        service.live(0.5)
    assert set(why(service, child).values()) == {"brake", "in_use"}
    assert healed_at_most(service, 100, members) == 2
    assert len(service.servers()) == 7
    assert why(service, child) == {}


def test_of_members_that_one_reporter_marks_two_are_replaced_at_a_time() -> None:
    from homeostat.services.marks import MarkRequest, Marks

    service = Service(SLOW)
    _, child, members = six(service)
    places = {f"resources[{place}]": str(place) for place in range(6)}
    Marks(service.db).mark(child, MarkRequest(True, "by a monitor"), places)
    assert healed_at_most(service, 20, members) == 2
    service.live(300.0)
    assert len(service.servers()) == 7
    assert not set(members) & set(service.servers())


def test_members_that_an_update_removes_take_no_place_under_the_brake() -> None:
    """They go last, once all others are well: two that were being healed kept a third from being healed for ever."""
    service = Service(CloudBehaviour(build_s=100.0))
    stack_id, child, _ = six(service)
    of = {row.name: row.handle for row in service.rows(child)}
    vanish(service, [of["4"], of["5"]])
    while sum(each["status"] == "building" for each in service.cloud.things("server").values()) < 2:
        service.live(0.5)
    vanish(service, [of["0"]])
    while why(service, child).get("0") != "brake":
        service.live(0.5)
    service.update(stack_id, {"g": group(4), "other": server()})
    service.live(250.0)
    assert service.stack(stack_id).status == "COMPLETE"
    assert len(service.servers()) == 5
    assert of["0"] not in service.servers()


def test_min_in_service_of_a_group_is_honoured_by_healing() -> None:
    service = Service(SLOW)
    policy = {"update_policy": {"rolling_update": {"min_in_service": 5, "max_batch_size": 1}}}
    _, _, members = six(service, **policy)
    vanish(service, members)
    assert healed_at_most(service, 200, members) == 1
    assert len(service.servers()) == 7


def test_the_share_counts_across_the_shards_of_a_group() -> None:
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 2):
        service = Service(SLOW)
        _, child, members = six(service)
        assert service.stack(child).shards == 3
        vanish(service, members)
        assert healed_at_most(service, 200, members) == 2
        assert len(service.servers()) == 7


def test_members_that_a_group_is_about_to_get_do_not_count() -> None:
    """Of six that are lost two are healed at a time, though there are to be thirty."""
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 10):
        service = Service(CloudBehaviour(build_s=100.0))
        stack_id, child, members = six(service)
        grown = {"resources": {"g": group(30), "other": server()}}
        service.update(stack_id, grown["resources"])
        vanish(service, members)
        service.live(60)
        assert service.stack(child).shards == 3
        healing = [row for row in service.rows(child) if row.marks is not None and row.marks.healing]
        assert len(healing) == 2


@pytest.mark.heavy
def test_what_waits_for_one_that_is_gone_does_not_keep_it_from_being_healed() -> None:
    """A server that was being healed when its volume vanished needed the whole share of the stack."""
    service = Service()
    stack_id = service.create({"disk": volume(), "web": {**server(), "depends_on": "disk"}})
    service.rest()
    service.cloud.behaviour.faults = Faults(refused=1.0)
    vanish(service, service.servers())
    service.live(120.0)
    assert any(row.name == "web" and row.status == "IN_PROGRESS" for row in service.rows(stack_id))
    vanish(service, [service.row(stack_id, "disk").handle])
    service.live(120.0)
    service.cloud.behaviour.faults = Faults()
    service.live(300.0)
    assert why(service, stack_id) == {}
    assert sorted(handle.rpartition("-")[0] for handle in service.cloud.things()) == ["server", "volume"]


@pytest.mark.parametrize("shards", [1, 3])
def test_what_cannot_be_replaced_does_not_keep_others_from_being_healed(shards: int) -> None:
    """What is broken is deleted first, and a user has protected it."""
    with patch.object(desired_members, "MEMBERS_PER_SHARD", 6 // shards):
        service = Service()
        _, child, members = six(service)
        assert service.stack(child).shards == shards
        for handle in members[-2:]:
            service.cloud.change(handle, status="error", fault="by hand", locked=True)
        service.live(120.0)
        vanish(service, members[:1])
        service.live(120.0)
        assert len(service.servers()) == 7
        for handle in members[-2:]:
            service.cloud.change(handle, locked=False)
        service.actions.converge(child)
        service.live(120.0)
        assert why(service, child) == {}
        assert len(service.servers()) == 7
        assert not set(members[-2:]) & set(service.servers())


def test_a_stack_says_how_much_of_it_is_healed_at_a_time() -> None:
    service = Service(SLOW)
    _, child, members = six(service)
    stack = service.stack(child)
    service.actions.switch(stack.parent_id, ConvergenceSettings(healing={"share": 1.0}))
    vanish(service, members)
    assert healed_at_most(service, 100, members) == 6


@pytest.mark.shows("HP12")
def test_when_everything_of_a_kind_is_gone_the_look_is_doubted() -> None:
    service = Service()
    stack_id = service.create({f"disk{number}": volume() for number in range(5)})
    service.rest()
    disks = sorted(service.cloud.things("volume"))
    for disk in disks:
        service.cloud.hide(disk)
    service.live(600.0)
    assert set(why(service, stack_id).values()) == {"blind"}
    for disk in disks:
        service.cloud.unhide(disk)
    service.live(120.0)
    assert sorted(service.cloud.things("volume")) == disks
    assert why(service, stack_id) == {}


def test_a_doubt_is_over_when_others_of_the_kind_are_seen() -> None:
    service = Service()
    service.create({f"disk{number}": volume() for number in range(5)})
    service.rest()
    disks = sorted(service.cloud.things("volume"))
    for disk in disks:
        service.cloud.hide(disk)
    service.live(120.0)
    service.cloud.unhide(disks[0])
    vanish(service, disks[1:])
    for disk in disks[1:]:
        service.cloud.unhide(disk)
    service.live(200.0)
    assert len(service.cloud.things("volume")) == 5
    assert disks[0] in service.cloud.things("volume")


def test_a_doubt_is_over_when_a_user_says_that_all_is_gone() -> None:
    service = Service()
    stack_id = service.create({f"disk{number}": volume() for number in range(5)})
    service.rest()
    vanish(service, sorted(service.cloud.things("volume")))
    service.live(120.0)
    assert service.cloud.things("volume") == {}
    service.actions.converge(stack_id)
    service.rest()
    assert len(service.cloud.things("volume")) == 5


def doubted(service: Service) -> list[tuple[str, int, list[str]]]:
    """What the doctor tells of doubted looks: kind, how many wait, the stacks to converge."""
    with service.db.read() as tx:
        return [(each.kind, each.absent, list(each.stacks)) for each in doubts(tx)]


def test_the_doctor_reports_a_doubt_as_long_as_something_waits_for_it() -> None:
    """Things that are younger than the doubt do not end it, so they must not hide it either."""
    service = Service()
    stack_id = service.create({f"disk{number}": volume() for number in range(5)})
    service.rest()
    vanish(service, sorted(service.cloud.things("volume")))
    service.live(120.0)
    younger = service.create({"disk": volume()}, name="younger")
    service.live(120.0)
    assert set(why(service, stack_id).values()) == {"blind"}
    assert why(service, younger) == {}
    assert doubted(service) == [("volume", 5, [stack_id])]
    service.actions.converge(stack_id)
    service.rest()
    assert why(service, stack_id) == {}
    assert doubted(service) == []


def test_a_doubt_about_a_nested_stack_ends_in_the_stack_that_still_passes_orders_on_to_it() -> None:
    """A nested stack that a deletion policy has kept hears nothing of what its former root stack is told."""
    service = Service()
    members = {**group(5), "deletion_policy": "Retain"}
    stack_id = service.create({"grp": members, "net": {"type": "OS::Neutron::Net"}})
    service.rest()
    child = service.child().id
    vanish(service, sorted(service.cloud.things("server")))
    service.live(120.0)
    assert doubted(service) == [("server", 5, [stack_id])]
    service.update(stack_id, {"net": {"type": "OS::Neutron::Net"}})
    service.rest()
    assert doubted(service) == [("server", 5, [child])]
    service.actions.converge(child)
    service.rest()
    assert len(service.cloud.things("server")) == 5
    assert doubted(service) == []


def test_a_few_things_that_are_gone_are_no_reason_for_doubt() -> None:
    service = Service()
    service.create({f"disk{number}": volume() for number in range(3)})
    service.rest()
    vanish(service, sorted(service.cloud.things("volume")))
    service.live(120.0)
    assert len(service.cloud.things("volume")) == 3


# -- asking first ------------------------------------------------------------------------------------------------------


def asking(service: Service, **resources: Any) -> str:
    stack_id = service.create(resources)
    service.rest()
    service.actions.switch(stack_id, ConvergenceSettings(healing={"policy": "ask"}))
    service.live(2.0)
    return stack_id


@pytest.mark.parametrize("whole", [True, False], ids=["the stack", "the resource"])
@pytest.mark.shows("CV13")
def test_what_is_gone_and_may_not_be_replaced_asks_for_help(whole: bool) -> None:
    service = Service()
    stack_id = asking(service, disk=volume(), t=double())
    vanish(service, list(service.cloud.things("volume")))
    service.live(300.0)
    assert service.cloud.things("volume") == {}
    assert service.states(stack_id)["disk"] == "CHECK_FAILED"
    assert "homeostat converge web disk" in service.row(stack_id, "disk").reason
    assert why(service, stack_id) == {"disk": "asks"}
    assert service.story(stack_id, "disk").count("disk CHECK_FAILED") == 1
    service.actions.converge(stack_id, None if whole else "disk")
    service.live(60.0)
    assert len(service.cloud.things("volume")) == 1
    assert service.states(stack_id)["disk"] == "CREATE_COMPLETE"


def test_what_asks_for_help_is_well_again_when_it_comes_back() -> None:
    service = Service()
    stack_id = asking(service, disk=volume())
    (disk,) = service.cloud.things("volume")
    service.cloud.hide(disk)
    service.live(120.0)
    assert service.states(stack_id) == {"disk": "CHECK_FAILED"}
    service.cloud.unhide(disk)
    service.live(120.0)
    assert service.states(stack_id) == {"disk": "CHECK_COMPLETE"}
    assert list(service.cloud.things("volume")) == [disk]


def test_an_update_does_not_replace_what_asks_for_help() -> None:
    service = Service()
    stack_id = asking(service, disk=volume())
    vanish(service, list(service.cloud.things("volume")))
    service.live(120.0)
    service.update(stack_id, {"disk": volume(), "t": double()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_FAILED"
    assert "homeostat converge web disk" in service.stack(stack_id).reason
    assert service.cloud.things("volume") == {}


def test_a_server_that_is_merely_stopped_is_started_without_asking() -> None:
    service = Service()
    asking(service, a=server())
    (machine,) = service.servers()
    service.cloud.change(machine, status="stopped")
    service.live(120.0)
    assert service.cloud.things()[machine]["status"] == "active"


def test_a_policy_of_a_group_holds_for_its_members() -> None:
    service = Service()
    stack_id = service.create({"g": group(2), "other": server()})
    service.rest()
    child = service.child().id
    service.actions.switch(stack_id, ConvergenceSettings({}, {"g": {"healing": "ask"}}))
    gone = service.row(child, "0").handle
    vanish(service, [gone])
    service.live(120.0)
    assert service.states(child)["0"] == "CHECK_FAILED"
    vanish(service, [service.row(stack_id, "other").handle])
    service.live(120.0)
    assert service.row(stack_id, "other").handle in service.servers()
