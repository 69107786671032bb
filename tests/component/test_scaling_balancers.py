"""Groups of servers behind load balancers: who is in their pools, in which order, and what happens when they change."""

from collections.abc import Sequence
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Creation
from homeostat.clouds.simulated import CloudBehaviour, Faults, SimulatedCloud
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.services.pipeline.request import StackRequest
from tests.component.previewed import changes, preview
from tests.component.running import PROJECT, Service
from tests.component.test_scaling import AWS, LAUNCH, MEMBER, instances, shown

ELB = "AWS::ElasticLoadBalancing::LoadBalancer"


def elb(*ports: tuple[int, int], **properties: Any) -> dict[str, Any]:
    """A balancer. ports — on which it listens, and on which the servers do."""
    listeners = [{"LoadBalancerPort": one, "InstancePort": other, "Protocol": "TCP"} for one, other in ports]
    return {"type": ELB, "properties": {"AvailabilityZones": ["nova"], "Listeners": listeners, **properties}}


def balanced(size: int, names: Any, launch: dict[str, Any] = LAUNCH, **balancers: dict[str, Any]) -> dict[str, Any]:
    sizes = {"MinSize": 0, "MaxSize": 9, "DesiredCapacity": size, "LoadBalancerNames": names}
    return {**balancers, **instances(AWS, launch, **sizes)}


def places(service: Service) -> list[tuple[str, str, int]]:
    """The members of pools: pool, server, port."""
    return sorted(
        (each["pool"], each["server"], each["protocol_port"]) for each in service.cloud.things("pool_member").values()
    )


def everywhere(service: Service, *ports: int) -> list[tuple[str, str, int]]:
    """What there has to be where each server is in each pool; ports — of the pools in the order of their ids."""
    pools = sorted(service.cloud.things("pool"))
    return sorted((pool, server, port) for pool, port in zip(pools, ports, strict=True) for server in service.servers())


@pytest.mark.parametrize("names", [["elb"], [{"get_resource": "elb"}], ["elb", {"get_resource": "elb"}]])
def test_each_server_is_in_the_pool_of_each_listener(names: Any) -> None:
    service = Service()
    stack_id = service.create(balanced(2, names, elb=elb((80, 8080), (90, 9090))))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    by_port = {pool: port for pool, _, port in places(service)}
    assert sorted(by_port.values()) == [8080, 9090]
    assert [(pool, server) for pool, server, _ in places(service)] == sorted(
        (pool, server) for pool in by_port for server in service.servers()
    )
    addresses = [each["address"] for each in service.cloud.things("server").values()]
    assert shown(service, stack_id, "InstanceList") == ",".join(addresses)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


def test_the_pools_follow_the_size() -> None:
    service = Service()
    stack_id = service.create(balanced(1, ["elb"], elb=elb((80, 8080))))
    service.rest()
    for size in (3, 2, 0, 1):
        service.update(stack_id, balanced(size, ["elb"], elb=elb((80, 8080))))
        service.rest()
        if size:
            assert len(service.servers()) == size
        assert places(service) == everywhere(service, 8080)


def test_a_signal_takes_servers_in_and_out() -> None:
    service = Service()
    policy = {"AutoScalingGroupName": {"get_resource": "group"}, "AdjustmentType": "ChangeInCapacity"}
    scale = {
        name: {"type": "AWS::AutoScaling::ScalingPolicy", "properties": {**policy, "ScalingAdjustment": amount}}
        for name, amount in (("up", 2), ("down", -1))
    }
    stack_id = service.create({**balanced(1, ["elb"], elb=elb((80, 8080))), **scale})
    service.rest()
    for name, size in (("up", 3), ("down", 2)):
        service.signal(stack_id, name)
        service.rest()
        assert len(service.servers()) == size
        assert places(service) == everywhere(service, 8080)


class Ordered(SimulatedCloud):
    """Notes in which order servers and their places come and go."""

    def __init__(self, now: Any) -> None:
        super().__init__(now, CloudBehaviour(build_s=2.0, delete_s=1.0))
        self.order: list[str] = []

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        if kind == "pool_member":
            for each in intents:
                ready = self.things("server")[each.spec["server"]]["status"] == "active"
                self.order.append(f"in {'a ready' if ready else 'an unready'} server")
        return super().create(kind, intents)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        for handle in handles if kind == "server" else ():
            there = any(each.get("server") == handle for each in self.things("pool_member").values())
            self.order.append(f"delete a server {'in a pool' if there else 'of no pool'}")
        return super().delete(kind, handles)


def test_a_server_is_ready_before_it_is_in_a_pool_and_leaves_it_before_it_goes() -> None:
    service = Service(cloud=lambda clock: Ordered(clock.now))
    stack_id = service.create(balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest()
    service.update(stack_id, balanced(1, ["elb"], elb=elb((80, 8080))))
    service.rest()
    assert isinstance(service.cloud, Ordered)
    assert service.cloud.order == ["in a ready server"] * 2 + ["delete a server of no pool"]


def test_new_servers_take_the_places_of_the_old_ones() -> None:
    service = Service(cloud=lambda clock: Ordered(clock.now))
    stack_id = service.create(balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest()
    before = service.servers()
    other = {**LAUNCH, "properties": {**LAUNCH["properties"], "ImageId": "fedora"}}
    service.update(stack_id, balanced(2, ["elb"], other, elb=elb((80, 8080))))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.states(stack_id)
    assert not set(before) & set(service.servers())
    assert places(service) == everywhere(service, 8080)
    assert isinstance(service.cloud, Ordered)
    assert set(service.cloud.order) == {"in a ready server", "delete a server of no pool"}


def test_a_server_that_dies_is_replaced_in_its_pools() -> None:
    service = Service()
    service.create(balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest()
    gone, kept = service.servers()
    service.cloud.vanish(gone)
    service.live(200)
    assert (len(service.servers()), kept in service.servers()) == (2, True)
    assert places(service) == everywhere(service, 8080)


def test_a_place_that_is_taken_away_outside_comes_back() -> None:
    service = Service()
    service.create(balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest()
    service.cloud.vanish(sorted(service.cloud.things("pool_member"))[0])
    service.live(200)
    assert places(service) == everywhere(service, 8080)


def test_the_group_follows_its_balancer() -> None:
    service = Service()
    stack_id = service.create(balanced(2, [{"get_resource": "elb"}], elb=elb((80, 8080))))
    service.rest()
    servers, pools = service.servers(), set(service.cloud.things("pool"))
    service.update(stack_id, balanced(2, [{"get_resource": "elb"}], elb=elb((80, 8081), (90, 9090))))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.states(stack_id)
    assert service.servers() == servers, "only their places have changed"
    assert not pools & set(service.cloud.things("pool")), "the balancer is another one"
    assert sorted(port for _, _, port in places(service)) == [8081, 8081, 9090, 9090]


def test_a_balancer_of_the_old_service_and_one_of_aws_side_by_side() -> None:
    service = Service()
    old = {"type": "OS::Neutron::LoadBalancer", "properties": {"pool_id": "pool-1", "protocol_port": 8000}}
    stack_id = service.create(balanced(2, ["old", "elb"], old=old, elb=elb((80, 8080), Instances=["pet"])))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    (pool,) = service.cloud.things("pool")
    expected = [("pool-1", server, 8000) for server in service.servers()]
    expected += [(pool, server, 8080) for server in [*service.servers(), "pet"]]
    assert places(service) == sorted(expected), "what the balancer says itself stays"


def test_other_balancers_are_another_group() -> None:
    service = Service()
    both = {"a": elb((80, 8080)), "b": elb((81, 8081))}
    stack_id = service.create(balanced(1, ["a"], **both))
    service.rest()
    first = service.servers()
    service.update(stack_id, balanced(1, ["b"], **both))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.servers() != first
    assert [(server, port) for _, server, port in places(service)] == [(service.servers()[0], 8081)]


def test_a_template_in_the_place_of_servers_says_which_server_is_balanced() -> None:
    service = Service()
    text = MEMBER + "outputs: {OS::stack_id: {value: {get_attr: [told, value]}}}\n"
    environment = {"resource_registry": {"OS::Heat::ScaledResource": "member.yaml"}}
    resources = balanced(1, ["elb"], elb=elb((80, 8080)))
    resources["group"]["properties"]["Tags"] = [{"Key": "metering.x", "Value": "server-of-the-template"}]
    stack_id = service.create(resources, files={"member.yaml": text}, environment=environment)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.row(stack_id, "group").reason
    assert [server for _, server, _ in places(service)] == ["server-of-the-template"]


READS = {"of all": ["group", "InstanceList"], "of one": ["group", "resource.0.PublicIp"]}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("names", [[], ["elb"]], ids=["alone", "balanced"])
def test_an_address_with_an_error_is_an_error_to_what_reads_it(names: list[str], read: list[str]) -> None:
    """The members are templates whose address cannot be told: nothing else fails for that."""
    service = Service()
    text = MEMBER + "outputs: {PublicIp: {value: {get_param: nobody}}}\n"
    environment = {"resource_registry": {"OS::Heat::ScaledResource": "member.yaml"}}
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": read}}}
    resources = {**balanced(1, names, elb=elb((80, 8080))), "reader": reader}
    stack_id = service.create(resources, files={"member.yaml": text}, environment=environment)
    service.rest()
    failed = {name for name, state in service.states(stack_id).items() if state != "CREATE_COMPLETE"}
    assert failed == {"reader"}
    assert "output PublicIp: The Parameter (nobody)" in service.row(stack_id, "reader").reason


def test_nothing_is_doubled_or_left_over_in_a_bad_cloud() -> None:
    service = Service(CloudBehaviour(build_s=2.0, faults=Faults(lost=0.2, refused=0.2)))
    stack_id = service.create(balanced(3, ["elb"], elb=elb((80, 8080))))
    service.rest(3600)
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    service.update(stack_id, balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest(3600)
    assert (len(service.servers()), places(service)) == (2, everywhere(service, 8080))
    assert service.cloud.doubled == []
    service.delete(stack_id)
    service.rest(3600)
    assert service.cloud.things() == {}


def test_a_balanced_group_is_suspended_and_resumed_with_its_stack() -> None:
    service = Service()
    stack_id = service.create(balanced(2, ["elb"], elb=elb((80, 8080))))
    service.rest()
    for action in (Action.SUSPEND, Action.RESUME):
        service.actions.begin(stack_id, action)
        service.rest()
        assert service.state(stack_id) == f"{action}_COMPLETE"
    assert places(service) == everywhere(service, 8080)


def test_a_group_that_would_be_too_large_with_its_places_is_not_begun() -> None:
    service = Service()
    service.nested_stacks.trees.resources_max = 60
    resources = balanced(9, ["elb"], elb=elb((80, 8080), (90, 9090)))
    resources["group"]["properties"] |= {"MaxSize": 20, "DesiredCapacity": 20}
    stack_id = service.create(resources)
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "would have 88 resources, at most 60" in service.stack(stack_id).reason
    assert service.servers() == []


def test_old_templates_name_their_balancer_by_ref() -> None:
    service = Service()
    resources = balanced(1, [{"Ref": "elb"}], elb=elb((80, 8080)))
    resources["group"]["properties"]["LaunchConfigurationName"] = {"Ref": "launch"}
    written = {name: {"Type": each["type"], "Properties": each["properties"]} for name, each in resources.items()}
    asked = StackRequest({"HeatTemplateFormatVersion": "2012-12-12", "Resources": written}, disable_rollback=True)
    stack_id = service.stack_service.create(PROJECT, None, "old", asked)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    assert places(service) == everywhere(service, 8080)


def test_a_plan_shows_the_server_and_its_places() -> None:
    service = Service()
    stack_id = service.create(balanced(1, ["elb"], elb=elb((80, 8080))))
    service.rest()
    larger = balanced(2, ["elb"], elb=elb((80, 8080)))
    assert changes(preview(service, stack_id, larger)) == {("group",): "updated", ("group", "1"): "added"} | {
        ("group", "1", name): "added" for name in ("server", "elb-80")
    }
    assert changes(preview(service, stack_id, balanced(1, ["elb"], elb=elb((80, 8080))))) == {}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["nowhere"], "there is no load balancer nowhere in the template: name an AWS::Elastic"),
        (["launch"], "launch is an AWS::AutoScaling::LaunchConfiguration, which a group cannot be behind"),
        ([{"get_attr": ["elb", "DNSName"]}], "load balancers that are known by their names"),
    ],
)
def test_what_no_group_can_be_behind_is_refused(names: Any, problem: str) -> None:
    with pytest.raises(Rejected, match=problem) as refused:
        Service().create(balanced(1, names, elb=elb((80, 8080))))
    assert refused.value.path == ("resources", "group", "properties", "LoadBalancerNames")


def test_a_balancer_that_waits_for_its_group_is_refused() -> None:
    circle = {**elb((80, 8080)), "depends_on": "group"}
    with pytest.raises(Rejected, match="Circular Dependency Found: group is behind elb"):
        Service().create(balanced(1, ["elb"], elb=circle))


def test_no_template_may_name_the_type_of_balanced_servers() -> None:
    own = {"type": "Homeostat::BalancedServer", "properties": {"server": {}, "places": []}}
    with pytest.raises(Rejected, match=r"The Resource Type \(Homeostat::BalancedServer\) could not be found"):
        Service().create({"own": own})
