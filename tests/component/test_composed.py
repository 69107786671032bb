"""Types that are several things of the cloud at once, from end to end."""

from collections import Counter
from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from tests.component.running import Service


def aws(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"AWS::EC2::{kind}", "properties": properties}


def ref(name: str) -> dict[str, str]:
    return {"get_resource": name}


def network(cidr: str = "10.0.0.0/24") -> dict[str, Any]:
    return {
        "vpc": aws("VPC", CidrBlock="10.0.0.0/16"),
        "inside": aws("Subnet", VpcId=ref("vpc"), CidrBlock=cidr, AvailabilityZone="nova"),
        "gateway": aws("InternetGateway"),
        "way_out": aws("VPCGatewayAttachment", VpcId=ref("vpc"), InternetGatewayId=ref("gateway")),
        "table": aws("RouteTable", VpcId=ref("vpc")),
        "routes": aws("SubnetRouteTableAssociation", RouteTableId=ref("table"), SubnetId=ref("inside")),
        "server": aws("Instance", ImageId="debian", InstanceType="small", SubnetId=ref("inside")),
        "address": aws("EIP", InstanceId=ref("server")),
    }


def test_a_vpc_is_a_network_and_a_router_that_its_subnets_are_on() -> None:
    service = Service()
    stack_id = service.create(network())
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    ((net, _),) = service.cloud.things("network").items()
    ((subnet, subnet_fields),) = service.cloud.things("subnet").items()
    (router,) = service.cloud.things("router").values()
    (interface,) = service.cloud.things("router_interface").values()
    (way_out,) = service.cloud.things("router_gateway").values()
    (server,) = service.cloud.things("server").values()
    assert router["name"] == net
    assert (subnet_fields["network_id"], subnet_fields["cidr"]) == (net, "10.0.0.0/24")
    assert (interface["router_id"], interface["subnet_id"]) == (net, subnet)
    assert way_out["router_id"] == net
    assert server["networks"] == [{"subnet": subnet}]
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


def test_another_range_replaces_the_subnet_and_what_is_on_it_follows() -> None:
    service = Service()
    stack_id = service.create(network())
    service.rest()
    (before,) = service.cloud.things("subnet")
    service.update(stack_id, network("10.0.1.0/24"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    (after,) = service.cloud.things("subnet")
    assert after != before
    (server,) = service.cloud.things("server").values()
    assert server["networks"] == [{"subnet": after}]
    assert len(service.cloud.things("network")) == 1


def test_a_part_that_goes_is_made_again() -> None:
    service = Service()
    service.create(network())
    service.rest()
    (router,) = service.cloud.things("router")
    service.cloud.vanish(router)
    service.live(200)
    (again,) = service.cloud.things("router")
    assert again != router


def test_nothing_is_made_twice_on_a_cloud_whose_answers_get_lost() -> None:
    service = Service(CloudBehaviour(build_s=2.0, faults=Faults(lost=0.3, refused=0.2)))
    stack_id = service.create({**network(), **balanced(["a", "b"])})
    service.rest(3600)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.cloud.doubled == []
    made = Counter(kind for kind in (handle.rpartition("-")[0] for handle in service.cloud.things()))
    assert (made["network"], made["router"], made["load_balancer"], made["pool_member"]) == (1, 1, 1, 3)
    service.delete(stack_id)
    service.rest(3600)
    assert service.cloud.things() == {}


# -- load balancing of old templates -----------------------------------------------------------------------------------


def neutron(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"OS::Neutron::{kind}", "properties": properties}


def balanced(servers: list[str], delay: int = 5, method: str = "ROUND_ROBIN") -> dict[str, Any]:
    return {
        "check": neutron("HealthMonitor", type="HTTP", delay=delay, timeout=2, max_retries=3, url_path="/up"),
        "pool": neutron(
            "Pool",
            protocol="HTTP",
            subnet="s1",
            lb_method=method,
            vip={"protocol_port": 80, "session_persistence": {"type": "HTTP_COOKIE"}},
            monitors=[ref("check")],
        ),
        "members": neutron("LoadBalancer", pool_id=ref("pool"), protocol_port=8080, members=servers),
        "single": neutron("PoolMember", pool_id=ref("pool"), address="10.0.0.9", protocol_port=8081),
        "vip": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["pool", "vip", "address"]}}},
    }


def test_old_balancing_is_made_of_todays_things() -> None:
    service = Service()
    stack_id = service.create(balanced(["a", "b"]))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    ((balancer, fields),) = service.cloud.things("load_balancer").items()
    ((listener, front),) = service.cloud.things("listener").items()
    ((pool, pooled),) = service.cloud.things("pool").items()
    (monitor,) = service.cloud.things("health_monitor").values()
    assert fields["vip_subnet"] == "s1"
    assert (front["loadbalancer"], front["protocol_port"]) == (balancer, 80)
    assert (pooled["listener"], pooled["session_persistence"]) == (listener, {"type": "HTTP_COOKIE"})
    assert (monitor["pool"], monitor["url_path"], monitor["delay"]) == (pool, "/up", 5)
    made = service.cloud.things("pool_member").values()
    assert {each["pool"] for each in made} == {pool}
    assert sorted(str(each.get("server")) for each in made) == ["None", "a", "b"]
    assert service.attribute(stack_id, "vip", "value") == fields["vip_address"]


def test_old_balancing_changes_in_place() -> None:
    service = Service()
    stack_id = service.create(balanced(["a", "b"]))
    service.rest()
    members = {each["server"]: id for id, each in service.cloud.things("pool_member").items() if "server" in each}
    (pool,) = service.cloud.things("pool")
    service.update(stack_id, balanced(["b", "c"], delay=9, method="SOURCE_IP"))
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    (monitor,) = service.cloud.things("health_monitor").values()
    assert monitor["delay"] == 9
    assert service.cloud.things("pool")[pool]["lb_algorithm"] == "SOURCE_IP"
    after = {each["server"]: id for id, each in service.cloud.things("pool_member").items() if "server" in each}
    assert (sorted(after), after["b"]) == (["b", "c"], members["b"])


def test_a_balancer_of_aws() -> None:
    service = Service()
    check = {"HealthyThreshold": 3, "Interval": 30, "Target": "HTTP:8080/up", "Timeout": 5, "UnhealthyThreshold": 4}
    balancer = {
        "type": "AWS::ElasticLoadBalancing::LoadBalancer",
        "properties": {
            "AvailabilityZones": ["nova"],
            "Instances": ["a"],
            "Listeners": [
                {"InstancePort": 8080, "LoadBalancerPort": port, "Protocol": protocol}
                for port, protocol in ((80, "HTTP"), (90, "TCP"))
            ],
            "HealthCheck": check,
        },
    }
    name = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["balancer", "DNSName"]}}}
    stack_id = service.create({"balancer": balancer, "name": name})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    assert sorted(each["protocol_port"] for each in service.cloud.things("listener").values()) == [80, 90]
    (address,) = [each["vip_address"] for each in service.cloud.things("load_balancer").values()]
    assert service.attribute(stack_id, "name", "value") == address
    monitors = service.cloud.things("health_monitor").values()
    assert [(each["url_path"], each["max_retries"]) for each in monitors] == [("/up", 4)] * 2
    assert [each["server"] for each in service.cloud.things("pool_member").values()] == ["a", "a"]
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


# -- with an environment -----------------------------------------------------------------------------------------------


def everything() -> dict[str, Any]:
    """A template with each type that is several things."""
    elb = {
        "AvailabilityZones": ["nova"],
        "Listeners": [{"InstancePort": 80, "LoadBalancerPort": 80, "Protocol": "HTTP"}],
    }
    old = {"type": "AWS::ElasticLoadBalancing::LoadBalancer", "properties": elb}
    return {**network(), **balanced(["a"]), "elb": old}


@pytest.mark.parametrize(
    "environment",
    [
        {"parameter_defaults": {"image": "debian"}},
        {"resource_registry": {"My::Net": "OS::Neutron::Net"}},
        {"resource_registry": {"resources": {"vpc": {"hooks": []}}}},
    ],
)
def test_what_an_environment_says_is_no_property_of_a_composed_type(environment: dict[str, Any]) -> None:
    service = Service()
    stack_id = service.create(everything(), environment=environment)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE", service.states(stack_id)
    before = service.cloud.things()
    service.update(stack_id, everything(), environment={"parameter_defaults": {"image": "other"}})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.states(stack_id)
    assert service.cloud.things().keys() == before.keys(), "everything is kept"
    service.update(stack_id, everything(), environment={})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE", service.states(stack_id)
    assert service.cloud.things().keys() == before.keys(), "everything is kept"
