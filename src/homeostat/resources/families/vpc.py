"""Types of the networks of AWS EC2. A VPC is a network and a router for all its subnets.

The only routes of a VPC are the routes of its router, so Internet gateways and route tables create nothing.
"""

from typing import Any

from homeostat.resources.base import Props, ResourceType, Thing
from homeostat.resources.composite import ID, Composed, part, ref
from homeostat.resources.families.ec2 import tags
from homeostat.resources.families.neutron import NetworkingType, link
from homeostat.resources.rules import is_set, missing
from homeostat.resources.schema import Attribute, one_of, text


class Vpc(Composed):
    """A network with a router; the router's name is the id of the network, by which subnets and gateways find it."""

    name = "AWS::EC2::VPC"
    description = "A network with a router."
    properties = {
        "CidrBlock": text("Range of its subnets."),
        "InstanceTenancy": text(
            "Whether others use the hosts.",
            default="default",
            implemented=False,
            constraints=(one_of("default", "dedicated"),),
        ),
        "Tags": tags("Accepted for old templates."),
    }

    def parts(self, values: Props) -> dict[str, Any]:
        return {"network": part("OS::Neutron::Net"), "router": part("OS::Neutron::Router", name=ref("network"))}

    def outputs(self, values: Props) -> dict[str, Any]:
        return {ID: ref("network")}


class VpcSubnet(Composed):
    name = "AWS::EC2::Subnet"
    description = "A range of addresses of a VPC."
    properties = {
        "AvailabilityZone": text("Accepted for old templates."),
        "CidrBlock": text("The range.", required=True),
        "VpcId": text("VPC it is of.", required=True),
        "Tags": tags("Accepted for old templates."),
    }
    attributes = {"AvailabilityZone": Attribute("Availability zone, as requested.")}

    def parts(self, values: Props) -> dict[str, Any]:
        vpc = values["VpcId"]
        return {
            "subnet": part("OS::Neutron::Subnet", network=vpc, cidr=values["CidrBlock"]),
            "interface": part("OS::Neutron::RouterInterface", router=vpc, subnet=ref("subnet")),
        }

    def outputs(self, values: Props) -> dict[str, Any]:
        return {ID: ref("subnet")}

    def attribute(self, thing: Thing, name: str) -> Any:
        return thing.properties["AvailabilityZone"] if name == "AvailabilityZone" else super().attribute(thing, name)


class GatewayAttachment(NetworkingType):
    name = "AWS::EC2::VPCGatewayAttachment"
    kind = "router_gateway"
    description = "Lets a VPC lead outside."
    properties = {
        "VpcId": text("The VPC.", required=True),
        "InternetGatewayId": text("The gateway."),
        "VpnGatewayId": text("Gateway of a private network.", implemented=False),
    }
    renamed = {"VpcId": "router_id"}

    def validate(self, values: Props, path: tuple[str | int, ...]) -> None:
        if not is_set(values, "InternetGatewayId"):
            raise missing(path, "InternetGatewayId")

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        return {"router_id": values["VpcId"]}


class InternetGateway(ResourceType):
    """Placeholder that creates nothing: the external network exists already."""

    name = "AWS::EC2::InternetGateway"
    description = "Stands for the way outside."
    properties = {"Tags": tags("Accepted for old templates.")}


class RouteTable(ResourceType):
    name = "AWS::EC2::RouteTable"
    description = "Stands for the routes of a VPC, which are those of its router."
    properties = {"VpcId": text("The VPC.", required=True), "Tags": tags("Accepted for old templates.")}


class RouteTableAssociation(ResourceType):
    name = "AWS::EC2::SubnetRouteTableAssociation"
    description = "Stands for the routes of a subnet, which are those of its VPC."
    properties = {
        "RouteTableId": text("The route table.", required=True),
        "SubnetId": link("The subnet.", "subnet", required=True),
    }


TYPES: list[type[ResourceType]] = [
    Vpc,
    VpcSubnet,
    GatewayAttachment,
    InternetGateway,
    RouteTable,
    RouteTableAssociation,
]
