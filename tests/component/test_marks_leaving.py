"""Who is marked unhealthy leaves first when a group gets smaller, whatever has begun for the mark (MU8)."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from tests.component.marked import mark
from tests.component.node_clusters import Cluster
from tests.component.previewed import changes, preview
from tests.component.running import Service, group, server

SLOW = CloudBehaviour(build_s=10.0, delete_s=10.0)
LAUNCH = {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": {"ImageId": "i", "InstanceType": "small"}}
KINDS = (
    "OS::Heat::ResourceGroup",
    "OS::Heat::AutoScalingGroup",
    "OS::Heat::InstanceGroup",
    "AWS::AutoScaling::AutoScalingGroup",
)
MOMENTS = {
    "not begun": 0.0,
    "a moment ago": 0.1,
    "being made": 5.0,
    "made, the marked one being deleted": 15.0,
}


def sized(kind: str, size: int) -> dict[str, Any]:
    launched = {"AvailabilityZones": ["nova"], "LaunchConfigurationName": {"get_resource": "launch"}}
    match kind:
        case "OS::Heat::ResourceGroup":
            return {"grp": group(size)}
        case "OS::Heat::AutoScalingGroup":
            properties = {"min_size": 0, "max_size": 5, "desired_capacity": size, "resource": server()}
        case "OS::Heat::InstanceGroup":
            properties = {"Size": size, **launched}
        case _:
            properties = {"MinSize": 0, "MaxSize": 5, "DesiredCapacity": size, **launched}
    return {"launch": LAUNCH, "grp": {"type": kind, "properties": properties}}


def members(service: Service) -> dict[str, str]:
    """Name -> handle."""
    return {each.name: each.handle for each in service.rows(service.child().id)}


def begun(kind: str, size: int, name: str, moment: str) -> tuple[Service, str, dict[str, str]]:
    """A group one of whose members was marked a while ago."""
    service = Service(SLOW)
    stack_id = service.create(sized(kind, size))
    service.rest()
    service.live(60.0)
    before = members(service)
    mark(service, service.child().id, name)
    service.live(MOMENTS[moment])
    return service, stack_id, before


@pytest.mark.shows("MU8")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_marked_leaves_first_whatever_has_begun_for_the_mark(kind: str, moment: str) -> None:
    service, stack_id, before = begun(kind, 3, "1", moment)
    shown = changes(preview(service, stack_id, sized(kind, 2)))
    assert {place for place, fate in shown.items() if fate == "deleted"} >= {("grp", "1")}
    service.update(stack_id, sized(kind, 2))
    service.rest()
    service.live(60.0)
    assert members(service) == {name: each for name, each in before.items() if name != "1"}
    assert (service.state(stack_id), len(service.servers())) == ("UPDATE_COMPLETE", 2)


def test_nothing_is_begun_for_a_mark_that_a_smaller_size_follows() -> None:
    """Tacker marks who is to go, and makes the group smaller at once: no other one is made, only to be deleted."""
    service, stack_id, before = begun("OS::Heat::AutoScalingGroup", 3, "1", "a moment ago")
    service.update(stack_id, sized("OS::Heat::AutoScalingGroup", 2))
    service.rest()
    service.live(60.0)
    assert members(service) == {name: each for name, each in before.items() if name != "1"}
    assert sum(line.endswith("CREATE_IN_PROGRESS") for line in service.story(service.child().id)) == 4


@pytest.mark.parametrize("moment", ["being made", "made, the marked one being deleted"])
def test_a_signal_takes_who_is_being_replaced_for_a_mark(moment: str) -> None:
    policy = {"adjustment_type": "change_in_capacity", "scaling_adjustment": -1}
    resources = sized("OS::Heat::AutoScalingGroup", 3)
    properties = {**policy, "auto_scaling_group_id": {"get_resource": "grp"}}
    resources["down"] = {"type": "OS::Heat::ScalingPolicy", "properties": properties}
    service = Service(SLOW)
    stack_id = service.create(resources)
    service.rest()
    before = members(service)
    mark(service, service.child().id, "1")
    service.live(MOMENTS[moment])
    service.signal(stack_id, "down")
    service.rest()
    service.live(60.0)
    assert members(service) == {name: each for name, each in before.items() if name != "1"}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_smaller_cluster_loses_the_node_that_is_being_replaced_for_a_mark(moment: str) -> None:
    there = Cluster(3, behaviour=SLOW)
    before = members(there)
    mark(there, there.child().id, "1")
    there.live(MOMENTS[moment])
    there.resize(2)
    there.live(60.0)
    assert members(there) == {name: each for name, each in before.items() if name != "1"}


@pytest.mark.parametrize("mode", ["append", "update"])
def test_the_name_of_who_left_a_resource_group_for_a_mark_stays_out_of_use(mode: str) -> None:
    def sized(count: int, **more: Any) -> dict[str, Any]:
        return {"grp": group(count, removal_policies_mode=mode, **more)}

    service = Service(SLOW)
    stack_id = service.create(sized(4))
    service.rest()
    mark(service, service.child().id, "0")
    mark(service, service.child().id, "2")
    service.update(stack_id, sized(3))
    service.rest()
    service.live(60.0)
    there = members(service)
    assert sorted(there) == ["0", "1", "3"], "of several that are marked, those with the highest numbers"
    service.update(stack_id, sized(2, removal_policies=[{"resource_list": ["0"]}]))
    service.rest()
    kept = {name: there[name] for name in ("1", "3")}
    assert members(service) == kept
    service.update(stack_id, sized(3))
    service.rest()
    back = "0" if mode == "update" else "4"
    assert sorted(members(service)) == sorted([*kept, back])
    assert {name: members(service)[name] for name in kept} == kept
