"""Resource types on the local cloud: what a type asks for is what it recognises again, at once and later."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.model.errors import Terminal
from homeostat.model.observed import Condition, Observation, Presence, Remedy, Verdict
from homeostat.resources.base import ResourceType, Thing
from homeostat.resources.registry import resource_type, types

TEMPLATE: dict[str, tuple[str, dict[str, Any]]] = {
    "lan": ("OS::Neutron::Net", {"name": "lan", "tags": ["blue"]}),
    "outside": ("OS::Neutron::Net", {"name": "outside"}),
    "far": ("OS::Neutron::Subnet", {"network": "@outside", "cidr": "192.0.2.0/24"}),
    "near": (
        "OS::Neutron::Subnet",
        {
            "network": "@lan",
            "cidr": "10.7.0.0/24",
            "gateway_ip": "10.7.0.1",
            "dns_nameservers": ["192.0.2.53"],
            "allocation_pools": [{"start": "10.7.0.10", "end": "10.7.0.99"}],
            "host_routes": [{"destination": "10.9.0.0/16", "nexthop": "10.7.0.5"}],
        },
    ),
    "web": (
        "OS::Neutron::SecurityGroup",
        {
            "description": "web servers",
            "rules": [
                {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80},
                {"remote_mode": "remote_group_id"},
            ],
        },
    ),
    "port": (
        "OS::Neutron::Port",
        {
            "network": "@lan",
            "fixed_ips": [{"subnet": "@near", "ip_address": "10.7.0.20"}],
            "security_groups": ["@web"],
            "allowed_address_pairs": [{"ip_address": "10.7.0.77"}],
        },
    ),
    "by_name": ("OS::Neutron::Port", {"network": "lan", "admin_state_up": False}),
    "router": ("OS::Neutron::Router", {"external_gateway_info": {"network": "outside", "enable_snat": True}}),
    "leg": ("OS::Neutron::RouterInterface", {"router": "@router", "subnet": "@near"}),
    "key": ("OS::Nova::KeyPair", {"name": "me"}),
    "server": (
        "OS::Nova::Server",
        {
            "flavor": "m1.small",
            "image": "cirros",
            "key_name": "@key",
            "networks": [{"port": "@port"}, {"network": "lan"}],
            "metadata": {"role": "web", "rank": 1},
            "tags": ["green"],
        },
    ),
    "address": ("OS::Neutron::FloatingIP", {"floating_network": "@outside", "port_id": "@by_name"}),
    "free_address": ("OS::Neutron::FloatingIP", {"floating_network": "outside"}),
    "association": ("OS::Neutron::FloatingIPAssociation", {"floatingip_id": "@free_address", "port_id": "@port"}),
    "outer": ("OS::Neutron::ProviderNet", {"network_type": "vlan", "physical_network": "left", "segmentation_id": 7}),
    "more_web": (
        "OS::Neutron::SecurityGroupRule",
        {"security_group": "@web", "port_range_min": 8, "port_range_max": 9},
    ),
    "plain_router": ("OS::Neutron::Router", {}),
    "other_router": ("OS::Neutron::Router", {"name": "vpc"}),
    "way_out": ("OS::Neutron::RouterGateway", {"router_id": "@plain_router", "network": "public"}),
    "huge": ("OS::Nova::Flavor", {"name": "huge", "ram": 64000, "vcpus": 64, "extra_specs": {"cpu": "fast"}}),
    "apart": ("OS::Nova::ServerGroup", {"policies": ["anti-affinity"]}),
    "other_server": (
        "OS::Nova::Server",
        {"flavor": "@huge", "image": "cirros", "scheduler_hints": {"group": "@apart"}},
    ),
    "old_address": ("OS::Nova::FloatingIP", {"pool": "public"}),
    "old_association": (
        "OS::Nova::FloatingIPAssociation",
        {"server_id": "@other_server", "floating_ip": "@old_address"},
    ),
    "volume": ("OS::Cinder::Volume", {"size": 1, "metadata": {"for": "data"}}),
    "attachment": ("OS::Cinder::VolumeAttachment", {"instance_uuid": "@server", "volume_id": "@volume"}),
    "aws_rules": (
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "web",
            "SecurityGroupIngress": [
                {"IpProtocol": "tcp", "FromPort": "80", "ToPort": "80", "CidrIp": "0.0.0.0/0"},
                {"IpProtocol": "-1", "SourceSecurityGroupId": "@web"},
            ],
        },
    ),
    "aws_port": ("AWS::EC2::NetworkInterface", {"SubnetId": "@near", "GroupSet": ["@aws_rules"]}),
    "aws_volume": ("AWS::EC2::Volume", {"AvailabilityZone": "nova", "Size": 1}),
    "aws_server": (
        "AWS::EC2::Instance",
        {
            "ImageId": "cirros",
            "InstanceType": "m1.small",
            "NetworkInterfaces": ["@aws_port"],
            "Tags": [{"Key": "role", "Value": "web"}],
        },
    ),
    "aws_attachment": (
        "AWS::EC2::VolumeAttachment",
        {"InstanceId": "@aws_server", "VolumeId": "@aws_volume", "Device": "/dev/vdb"},
    ),
    "aws_address": ("AWS::EC2::EIP", {}),
    "aws_association": ("AWS::EC2::EIPAssociation", {"InstanceId": "@aws_server", "EIP": "@aws_address"}),
    "aws_way_out": ("AWS::EC2::VPCGatewayAttachment", {"VpcId": "@other_router", "InternetGatewayId": "any"}),
    "old_balancer": ("OS::Neutron::LBaaS::LoadBalancer", {"vip_subnet": "@near"}),
    "old_listener": (
        "OS::Neutron::LBaaS::Listener",
        {"loadbalancer": "@old_balancer", "protocol": "HTTP", "protocol_port": 8082},
    ),
    "old_pool": (
        "OS::Neutron::LBaaS::Pool",
        {"listener": "@old_listener", "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"},
    ),
    "old_member": (
        "OS::Neutron::LBaaS::PoolMember",
        {"pool": "@old_pool", "address": "10.7.0.20", "protocol_port": 80, "subnet": "@near"},
    ),
    "old_monitor": (
        "OS::Neutron::LBaaS::HealthMonitor",
        {"pool": "@old_pool", "type": "TCP", "delay": 1, "timeout": 1, "max_retries": 2},
    ),
    "oldest_member": (
        "OS::Neutron::PoolMember",
        {"pool_id": "@old_pool", "server": "@aws_server", "protocol_port": 81},
    ),
    "balancer": ("OS::Octavia::LoadBalancer", {"vip_subnet": "@near"}),
    "listener": ("OS::Octavia::Listener", {"loadbalancer": "@balancer", "protocol": "TCP", "protocol_port": 8081}),
    "pool": (
        "OS::Octavia::Pool",
        {
            "listener": "@listener",
            "protocol": "TCP",
            "lb_algorithm": "ROUND_ROBIN",
            "session_persistence": {"type": "SOURCE_IP"},
        },
    ),
    "member": ("OS::Octavia::PoolMember", {"pool": "@pool", "address": "10.7.0.20", "protocol_port": 80}),
    "monitor": (
        "OS::Octavia::HealthMonitor",
        {"pool": "@pool", "type": "TCP", "delay": 1, "timeout": 1, "max_retries": 2},
    ),
}
"""One thing of each type that lives in a cloud, in an order that works; `@name` is a reference."""


@dataclass
class Stack:
    """Things of the template on a cloud."""

    cloud: LocalCloud
    things: dict[str, tuple[ResourceType, Thing]]

    def make(self, name: str) -> None:
        type_name, given = TEMPLATE[name]
        kind = resource_type(type_name)
        values = kind.complete(kind.check(self._resolved(given)))
        spec = kind.spec(values, f"stack-{name}")
        (answer,) = self.cloud.create(kind.kind, [Creation(f"token-{name}", spec)])
        assert isinstance(answer, Observation), answer
        self.things[name] = (kind, Thing(name, name, f"stack-{name}", values, answer, answer.handle))

    def _resolved(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: self._resolved(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self._resolved(item) for item in tree]
        if isinstance(tree, str) and tree.startswith("@"):
            kind, thing = self.things[tree[1:]]
            return kind.reference(thing)
        return tree

    def look(self, name: str) -> Verdict:
        kind, thing = self.things[name]
        (seen,) = self.cloud.observe(kind.kind, [thing.handle])
        thing = replace(thing, seen=seen)
        self.things[name] = (kind, thing)
        return kind.judge(thing, 0.0)

    def settle(self, name: str) -> Verdict:
        """The first verdict on it that is not pending."""
        return until(lambda: None if (verdict := self.look(name)).condition is Condition.PENDING else verdict, name)

    def change(self, name: str, **fields: Any) -> None:
        """A user changes it outside."""
        kind, thing = self.things[name]
        spec = {**kind.spec(thing.properties, thing.physical_name), **fields}
        (answer,) = self.cloud.update(kind.kind, [Change(thing.handle, spec, tuple(fields))])
        assert isinstance(answer, Observation), answer

    def repair(self, name: str, verdict: Verdict) -> None:
        kind, thing = self.things[name]
        spec = kind.spec(thing.properties, thing.physical_name)
        changed = tuple(kind.renamed.get(each, each) for each in verdict.drifted)
        (answer,) = self.cloud.update(kind.kind, [Change(thing.handle, spec, changed)])
        assert isinstance(answer, Observation), answer


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    root: Path = tmp_path_factory.mktemp("cloud")
    cloud = LocalCloud(root)
    made = Stack(cloud, {})
    try:
        for name in TEMPLATE:
            made.make(name)
            assert made.settle(name).condition is Condition.READY, name
        yield made
    finally:
        cloud.destroy()


def test_the_template_has_every_type_of_this_cloud(stack: Stack) -> None:
    of_a_cloud = {name for name, each in types().items() if each.kind in stack.cloud.kinds}
    assert {type_name for type_name, _ in TEMPLATE.values()} == of_a_cloud


@pytest.mark.parametrize("name", TEMPLATE)
def test_nothing_drifts_by_itself(stack: Stack, name: str) -> None:
    verdict = stack.settle(name)
    assert (verdict.condition, verdict.reason) == (Condition.READY, "")


CHANGED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("lan", {"admin_state_up": False}, ("admin_state_up",)),
    ("near", {"dns_nameservers": ["192.0.2.1"]}, ("dns_nameservers",)),
    ("web", {"rules": []}, ("rules",)),
    ("by_name", {"admin_state_up": True}, ("admin_state_up",)),
    ("router", {"external_gateway_info": None}, ("external_gateway_info",)),
    ("server", {"metadata": {"role": "db"}, "tags": []}, ("metadata", "tags")),
    ("volume", {"metadata": {}}, ("metadata",)),
    ("member", {"weight": 9}, ("weight",)),
    ("monitor", {"delay": 9}, ("delay",)),
    ("outer", {"router:external": True}, ("router_external",)),
    ("huge", {"extra_specs": {"cpu": "slow"}}, ("extra_specs",)),
]


@pytest.mark.parametrize(("name", "fields", "drifted"), CHANGED, ids=[case[0] for case in CHANGED])
def test_what_is_changed_outside_drifts_until_it_is_repaired(
    stack: Stack, name: str, fields: dict[str, Any], drifted: tuple[str, ...]
) -> None:
    stack.change(name, **fields)
    verdict = stack.settle(name)
    assert (verdict.condition, verdict.remedy, verdict.drifted) == (Condition.DRIFTED, Remedy.UPDATE, drifted)
    stack.repair(name, verdict)
    assert stack.settle(name).condition is Condition.READY


@pytest.mark.parametrize("verb", ["stop", "pause"])
def test_a_server_that_was_halted_says_what_brings_it_back(stack: Stack, verb: str) -> None:
    kind, thing = stack.things["server"]
    stack.cloud.operate(kind.kind, [Operation(thing.handle, verb)])
    verdict = stack.settle("server")
    assert (verdict.condition, verdict.remedy) == (Condition.BROKEN, Remedy.OPERATE)
    stack.cloud.operate(kind.kind, [Operation(thing.handle, verdict.operation)])
    assert stack.settle("server").condition is Condition.READY


def test_addresses_of_a_server_by_name_and_id_of_the_network(stack: Stack) -> None:
    assert stack.settle("server").condition is Condition.READY
    kind, server = stack.things["server"]
    networks = kind.attribute(server, "networks")
    assert networks["lan"] == networks[stack.things["lan"][1].handle]
    assert len(networks["lan"]) == 2
    assert kind.attribute(server, "first_address") == networks["lan"][0]


def test_a_group_that_keeps_servers_apart_has_room_for_one_on_one_host(stack: Stack) -> None:
    kind, server = stack.things["other_server"]
    spec = kind.spec(server.properties, "second")
    (refused,) = stack.cloud.create("server", [Creation("second", spec)])
    assert isinstance(refused, Terminal)
    assert "is one host" in str(refused)
    assert stack.cloud.find("server", ["second"])[0].presence is Presence.ABSENT
    assert stack.look("apart").condition is Condition.READY
    assert stack.things["apart"][1].seen.properties["members"] == [server.handle]


def test_an_old_association_leads_to_the_first_port_of_its_server(stack: Stack) -> None:
    assert stack.settle("old_address").condition is Condition.READY
    assert stack.settle("other_server").condition is Condition.READY
    address = stack.things["old_address"][1].seen.properties
    assert address["fixed_ip_address"] == stack.things["other_server"][1].seen.properties["address"]
    assert stack.things["old_association"][1].seen.properties["port_id"] == address["port_id"]


def test_an_address_of_ec2_leads_to_its_instance(stack: Stack) -> None:
    for name in ("aws_address", "aws_server", "aws_port"):
        assert stack.settle(name).condition is Condition.READY
    kind, server = stack.things["aws_server"]
    of_port, port = stack.things["aws_port"]
    assert kind.attribute(server, "PublicIp") == of_port.attribute(port, "PrivateIpAddress")
    of_address, address = stack.things["aws_address"]
    assert address.seen.properties["fixed_ip_address"] == kind.attribute(server, "PrivateIp")
    assert of_address.reference(address) == address.seen.properties["floating_ip_address"]
    assert of_address.attribute(address, "AllocationId") == address.handle


def test_a_member_named_by_its_server_has_its_address(stack: Stack) -> None:
    for name in ("oldest_member", "aws_server"):
        assert stack.settle(name).condition is Condition.READY
    server, member = stack.things["aws_server"][1], stack.things["oldest_member"][1]
    assert member.seen.properties["address"] == server.seen.properties["address"]
