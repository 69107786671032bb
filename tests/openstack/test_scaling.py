"""Groups that scale on a real OpenStack: by an alarm of Aodh, behind a load balancer, and like an existing server."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.openstack.projects import Project
from tests.openstack.running import eventually
from tests.openstack.serving import Served, Wire, serving

pytestmark = [pytest.mark.services("aodh", "octavia")]
KEY = f"key-{uuid.uuid4()}"


def of(resource: str) -> dict[str, str]:
    return {"get_resource": resource}


@pytest.fixture(scope="module")
def served(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(project, tmp_path_factory.mktemp("service") / "state") as found:
        yield found


def made(served: Served, name: str, resources: Wire) -> None:
    served.create(name, resources)
    found = served.at_rest(name)
    assert found["stack_status"] == "CREATE_COMPLETE", (found, served.failures(name))


def removed(served: Served, name: str) -> None:
    id = served.stack(name)["id"]
    served.delete(name)
    assert served.at_rest(id)["stack_status"] == "DELETE_COMPLETE", served.failures(id)


def members(served: Served, name: str) -> int:
    """Of the group `group` of a stack: those that are complete."""
    nested = served.handles(name)["group"]
    return sum(each["resource_status"].endswith("_COMPLETE") for each in served.resources(nested).values())


# -- by an alarm -------------------------------------------------------------------------------------------------------


def alarmed(event: str) -> Wire:
    """A group of at most two, and an alarm on events of a type that calls the policy."""
    policy = {"auto_scaling_group_id": of("group"), "adjustment_type": "change_in_capacity", "scaling_adjustment": 1}
    member = {"type": "OS::Heat::RandomString"}
    actions = [{"get_attr": ["policy", "alarm_url"]}]
    return {
        "group": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 2, "resource": member},
        },
        "policy": {"type": "OS::Heat::ScalingPolicy", "properties": policy},
        "alarm": {
            "type": "OS::Aodh::EventAlarm",
            "properties": {"event_type": event, "alarm_actions": actions, "repeat_actions": False},
        },
    }


def signals(served: Served, name: str) -> list[str]:
    """The reasons of the signals to the policy."""
    found = served.events(name)
    return [each["resource_status_reason"] for each in found if each["resource_status"].startswith("SIGNAL")]


def test_an_alarm_of_aodh_scales_a_group(served: Served, project: Project) -> None:
    event = f"test.{uuid.uuid4().hex}"
    made(served, "alarmed", alarmed(event))
    assert members(served, "alarmed") == 1

    def is_scaled() -> bool:
        # Aodh may not know the alarm yet: then the event is lost.
        if not signals(served, "alarmed"):
            project.cloud.event(event, project_id=project.id)
        return members(served, "alarmed") == 2

    eventually(is_scaled, "the alarm to scale the group")
    assert served.at_rest("alarmed")["stack_status"] == "CREATE_COMPLETE"
    (reason, *_) = signals(served, "alarmed")
    assert reason.startswith("Signal: alarm state changed from "), reason
    assert " to alarm (" in reason
    removed(served, "alarmed")


# -- behind a load balancer, and like another server -------------------------------------------------------------------


def balanced(size: int) -> Wire:
    """A group like the server `model`, behind a load balancer."""
    listener = {"LoadBalancerPort": 80, "InstancePort": 8080, "Protocol": "TCP"}
    model = {"image": "mini", "flavor": "m1.tiny", "networks": [{"subnet": of("subnet")}], "key_name": of("key")}
    group = {
        "AvailabilityZones": ["nova"],
        "InstanceId": of("model"),
        "VPCZoneIdentifier": [of("subnet")],
        "LoadBalancerNames": [of("front")],
        "MinSize": 1,
        "MaxSize": 2,
        "DesiredCapacity": size,
    }
    return {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {"network": of("net"), "cidr": "10.7.0.0/24"}},
        "key": {"type": "OS::Nova::KeyPair", "properties": {"name": KEY}},
        "model": {"type": "OS::Nova::Server", "properties": model},
        "front": {
            "type": "AWS::ElasticLoadBalancing::LoadBalancer",
            "properties": {"AvailabilityZones": ["nova"], "Listeners": [listener]},
            "depends_on": "subnet",
        },
        "group": {"type": "AWS::AutoScaling::AutoScalingGroup", "properties": group},
    }


def test_servers_like_another_one_are_in_the_pool_of_the_load_balancer(served: Served, project: Project) -> None:
    with contextlib.closing(project.connection()) as user:

        def pooled() -> list[str]:
            (pool,) = user.load_balancer.pools(project_id=project.id)
            return sorted(each.address for each in user.load_balancer.members(pool.id))

        def of_group() -> list[Any]:
            return [each for each in user.compute.servers() if each.id != served.handles("balanced")["model"]]

        def addresses() -> list[str]:
            return sorted(each["addr"] for one in of_group() for found in one.addresses.values() for each in found)

        made(served, "balanced", balanced(1))
        assert (len(of_group()), pooled()) == (1, addresses())
        model = user.compute.get_server(served.handles("balanced")["model"])
        served.update("balanced", balanced(2))
        found = served.at_rest("balanced")
        assert found["stack_status"] == "UPDATE_COMPLETE", served.failures("balanced")
        assert (len(of_group()), pooled()) == (2, addresses())
        for each in of_group():
            assert (each.image.id, each.key_name) == (model.image.id, model.key_name)
            assert each.flavor["original_name"] == model.flavor["original_name"]
    removed(served, "balanced")
