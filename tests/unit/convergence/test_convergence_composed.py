"""Types that are several things of the cloud at once, from end to end."""

from typing import Any

from tests.unit.convergence.running import Service


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
