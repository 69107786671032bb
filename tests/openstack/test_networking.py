"""Networks and what belongs to them, in a real OpenStack: their lives through the cloud port, and what is special."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeostat.clouds.openstack import OpenStack, OpenStackConfig
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.tokens import Joined
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.resources import comparison
from homeostat.resources.base import EMPTY, ResourceType, Thing
from homeostat.resources.registry import resource_type
from tests.kind_checks import misfits
from tests.openstack.projects import Project
from tests.waiting import until

Fields = Mapping[str, Any]
API = "neutron-api"


@dataclass(frozen=True, slots=True)
class Life:
    """A thing to make and to change.

    Attributes:
        properties: Of the template; a text `$name` is the id of something that is there.
        changes: Properties that change together, one time after the other.
        by_admin: Whether only an administrator may.
        once: Why it cannot be made side by side with others of its kind, for the reader.
    """

    type: str
    properties: Fields
    changes: Sequence[Fields] = ()
    by_admin: bool = False
    called: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return self.called or self.type


SSH = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
WEB = {"protocol": "6", "port_range_min": 80, "port_range_max": 81, "remote_ip_prefix": "10.0.0.0/8"}
LIVES = (
    Life(
        "OS::Neutron::Net",
        {"name": "one", "tags": ["b", "a"], "value_specs": {"mtu": 1400, "description": "some words"}},
        [
            {"name": "two", "admin_state_up": False, "port_security_enabled": False, "tags": ["c"]},
            {"name": "three", "tags": [], "value_specs": {"mtu": 1300, "description": "other words"}},
        ],
    ),
    Life(
        "OS::Neutron::ProviderNet",
        {"network_type": "vlan", "physical_network": "physnet1", "segmentation_id": "3977", "shared": False},
        [{"router_external": True, "name": "outside"}, {"admin_state_up": False, "tags": ["a"]}],
        by_admin=True,
    ),
    Life(
        "OS::Neutron::Subnet",
        {
            "network": "$network",
            "cidr": "10.31.0.0/24",
            "dns_nameservers": ["10.31.0.3", "10.31.0.2"],
            "allocation_pools": [{"start": "10.31.0.20", "end": "10.31.0.30"}],
            "host_routes": [{"destination": "10.32.0.0/16", "nexthop": "10.31.0.9"}],
        },
        [
            {"name": "other", "gateway_ip": "10.31.0.4", "enable_dhcp": False, "tags": ["a"]},
            {"dns_nameservers": ["10.31.0.5"], "allocation_pools": [{"start": "10.31.0.40", "end": "10.31.0.50"}]},
            {"host_routes": None, "gateway_ip": ""},
        ],
    ),
    Life(
        "OS::Neutron::Subnet",
        {
            "network": "$network",
            "cidr": "2001:DB8:7:0::/64",
            "ip_version": 6,
            "gateway_ip": "2001:DB8:7:0::0:1",
            "dns_nameservers": ["2001:DB8:7::0:5"],
            "allocation_pools": [{"start": "2001:DB8:7::0:20", "end": "2001:DB8:7::0:30"}],
        },
        [{"dns_nameservers": ["2001:DB8:7::0:6"]}],
        called="subnet of IPv6",
    ),
    Life(
        "OS::Neutron::Subnet",
        {"network": "$pool_network", "subnetpool": "$subnetpool", "prefixlen": 28},
        [{"name": "other"}],
        called="subnet of a pool",
    ),
    Life(
        "OS::Neutron::Port",
        {
            "network": "$network_name",
            "fixed_ips": [{"subnet": "$subnet_name", "ip_address": "10.30.0.77"}],
            "security_groups": ["$security_group_name", "default"],
            "allowed_address_pairs": [{"ip_address": "10.9.0.0/16", "mac_address": "FA:16:3E:00:00:01"}],
            "mac_address": "fa:16:3e:77:00:01",
            "tags": ["a"],
        },
        [
            {"name": "other", "admin_state_up": False, "security_groups": ["$security_group"], "tags": ["b"]},
            {"fixed_ips": [{"subnet": "$subnet", "ip_address": "10.30.0.78"}, {"subnet": "$subnet"}]},
            {"binding:vnic_type": "direct", "allowed_address_pairs": None, "device_id": "some", "device_owner": "me"},
            {"security_groups": None, "fixed_ips": None},
            {"security_groups": [], "no_fixed_ips": True},
            {"port_security_enabled": False},
        ],
    ),
    Life(
        "AWS::EC2::NetworkInterface",
        {"SubnetId": "$subnet", "Description": "some words", "PrivateIpAddress": "10.30.0.79"},
        [{"GroupSet": ["$security_group"]}],
    ),
    Life(
        "OS::Neutron::Router",
        {"tags": ["a"], "external_gateway_info": {"network": "public"}},
        [
            {"name": "other", "admin_state_up": False, "tags": ["b"]},
            {"external_gateway_info": None},
            {"external_gateway_info": {"network": "$public"}},
        ],
    ),
    Life("OS::Neutron::RouterInterface", {"router": "$router_name", "subnet": "$free_subnet"}),
    Life("OS::Neutron::RouterInterface", {"router": "$router", "port": "$free_port"}, called="interface of a port"),
    Life("OS::Neutron::RouterInterface", {"router": "$router", "subnet": "$slaac"}, called="interface of IPv6"),
    Life("OS::Neutron::RouterGateway", {"router_id": "$free_router", "network": "public"}),
    Life("AWS::EC2::VPCGatewayAttachment", {"VpcId": "$free_router", "InternetGatewayId": "any"}),
    Life(
        "OS::Neutron::ExtraRouteSet",
        {"router": "$router", "routes": [{"destination": "10.91.0.0/16", "nexthop": "10.30.0.91"}]},
        [
            {"routes": [{"destination": f"10.9{each}.0.0/16", "nexthop": "10.30.0.92"} for each in (2, 1)]},
            {"routes": [{"destination": "10.92.0.0/16", "nexthop": "10.30.0.92"}]},
        ],
    ),
    Life("OS::Neutron::ExtraRoute", {"router_id": "$router", "destination": "10.93.0.0/16", "nexthop": "10.30.0.93"}),
    Life(
        "OS::Neutron::FloatingIP",
        {"floating_network": "public", "port_id": "$port"},
        [{"port_id": "$other_port", "fixed_ip_address": "10.30.0.12"}, {"port_id": None, "fixed_ip_address": None}],
    ),
    Life("AWS::EC2::EIP", {}),
    Life(
        "OS::Neutron::FloatingIPAssociation",
        {"floatingip_id": "$floating_ip", "port_id": "$port", "fixed_ip_address": "10.30.0.11"},
        [{"port_id": "$other_port", "fixed_ip_address": None}, {"floatingip_id": "$other_floating_ip"}],
    ),
    Life(
        "OS::Neutron::SecurityGroup",
        {"description": "words", "rules": [SSH, {"remote_mode": "remote_group_id"}, {**SSH, "ethertype": "IPv6"}]},
        [
            {"name": "other", "description": "other words", "rules": [WEB, SSH, SSH]},
            {"rules": [{**SSH, "direction": "egress"}, {"protocol": "ICMPv6", "ethertype": "IPv6"}]},
            {"rules": [{"remote_mode": "remote_group_id", "remote_group_id": "$security_group_name"}]},
            {"stateful": False, "rules": []},
        ],
    ),
    Life(
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "words",
            "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}],
            "SecurityGroupEgress": [{"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}],
        },
        [{"SecurityGroupIngress": [{"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1}]}],
    ),
    Life("OS::Neutron::SecurityGroupRule", {"security_group": "$security_group", **SSH, "description": "words"}),
    Life("OS::Neutron::AddressScope", {"name": "scope"}, [{"name": "other"}]),
    Life(
        "OS::Neutron::SubnetPool",
        {"prefixes": ["10.50.0.0/16"], "min_prefixlen": 20, "default_prefixlen": 24, "max_prefixlen": 28},
        [
            {"name": "other", "prefixes": ["10.50.0.0/16", "10.52.0.0/16"], "default_quota": 4096, "tags": ["a"]},
            {"default_prefixlen": 25, "min_prefixlen": 21, "max_prefixlen": 27, "address_scope": "$address_scope"},
        ],
    ),
    Life(
        "OS::Neutron::RBACPolicy",
        {
            "object_type": "network",
            "object_id": "$network_name",
            "action": "access_as_shared",
            "target_tenant": "$target",
        },
        [{"target_tenant": "$other_target"}],
    ),
    Life(
        "OS::Neutron::Quota",
        {"project": "$other_project", "port": 77, "rbac_policy": 5},
        [{"port": 78, "subnetpool": 3}, {"rbac_policy": None}],
        by_admin=True,
    ),
)


@pytest.fixture(scope="module")
def clouds(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OpenStackCloud, ...]]:
    """The cloud as the user of the project sees it, and as the administrator does."""
    path: Path = tmp_path_factory.mktemp("clouds") / "clouds.yaml"
    with contextlib.closing(project.admin()) as admin:
        by_admin = {**admin.config.config["auth"], "project_name": project.name}
    both = {"user": project.auth, "admin": by_admin}
    named = {name: {"auth": auth, "region_name": "RegionOne"} for name, auth in both.items()}
    path.write_text(yaml.safe_dump({"clouds": named}))
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        made = []
        for name in named:
            config = OpenStackConfig(cloud=name)
            made.append(stack.enter_context(contextlib.closing(OpenStack(config, Connections(config)))).of(project.id))
        yield tuple(made)


@pytest.fixture(scope="module")
def cloud(clouds: tuple[OpenStackCloud, ...]) -> OpenStackCloud:
    return clouds[0]


@pytest.fixture(scope="module")
def there(cloud: OpenStackCloud, project: Project) -> dict[str, str]:
    """Name -> id of what the lives need around them; `<name>_name` is its name."""
    found = {"target": uuid.uuid4().hex, "other_target": uuid.uuid4().hex, "other_project": uuid.uuid4().hex}

    def make(called: str, kind: str, **spec: Any) -> None:
        made = created(cloud, kind, {"name": f"{called}-{uuid.uuid4().hex[:6]}", **spec})
        found[called], found[f"{called}_name"] = made.handle, str(made.properties.get("name"))

    found["public"] = cloud.resolve("network", ["public"])[0] or ""
    for called in ("network", "free_network", "pool_network"):
        make(called, "network")
    make("subnet", "subnet", network_id=found["network"], cidr="10.30.0.0/24", ip_version=4)
    make("free_subnet", "subnet", network_id=found["free_network"], cidr="10.33.0.0/24", ip_version=4)
    make("port_subnet", "subnet", network_id=found["free_network"], cidr="10.34.0.0/24", ip_version=4)
    modes = {"ip_version": 6, "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    make("slaac", "subnet", network_id=found["free_network"], cidr="2001:db8:8::/64", **modes)
    make("address_scope", "address_scope", ip_version=4)
    make("subnetpool", "subnetpool", prefixes=["10.60.0.0/16"])
    make("security_group", "security_group", rules=[])
    make("router", "router", external_gateway_info={"network_id": "public"})
    make("free_router", "router")
    created(cloud, "router_interface", {"router_id": found["router"], "subnet_id": found["subnet"]})
    for called, subnet, end in (("port", "subnet", 11), ("other_port", "subnet", 12), ("free_port", "port_subnet", 1)):
        address = f"10.{34 if subnet == 'port_subnet' else 30}.0.{end}"
        make(called, "port", fixed_ips=[{"subnet_id": found[subnet], "ip_address": address}])
    for called in ("floating_ip", "other_floating_ip"):
        found[called] = created(cloud, "floating_ip", {}).handle
    return found


def created(cloud: OpenStackCloud, kind: str, spec: Fields, token: str = "") -> Observation:
    return seen(cloud.create(kind, [Creation(token or new_token(), spec)])[0])


def new_token() -> str:
    return f"test-{uuid.uuid4().hex[:12]}-1"


def seen(answer: Answer) -> Observation:
    assert isinstance(answer, Observation), repr(answer)
    assert answer.present, answer.reason
    return answer


def look(cloud: OpenStackCloud, kind: str, handle: str) -> Observation:
    return cloud.observe(kind, [handle])[0]


def filled(tree: Any, there: Fields) -> Any:
    if isinstance(tree, Mapping):
        return {name: filled(value, there) for name, value in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [filled(each, there) for each in tree]
    return there[tree[1:]] if isinstance(tree, str) and tree.startswith("$") else tree


@dataclass(frozen=True, slots=True)
class Wanted:
    """A resource of a template."""

    type: ResourceType
    values: Fields
    name: str

    @classmethod
    def of(cls, life: Life, properties: Fields, there: Fields) -> "Wanted":
        kind = resource_type(life.type)
        given = {name: value for name, value in filled(properties, there).items() if value is not None}
        return cls(kind, kind.complete(kind.check(given)), "test-physical-name")

    @property
    def spec(self) -> Fields:
        return self.type.spec(self.values, self.name)

    def thing(self, observed: Observation) -> Thing:
        return Thing("abcdefghijkl", "it", self.name, self.values, observed, observed.handle)

    def drift(self, observed: Observation) -> tuple[str, ...]:
        return self.type.drift(self.thing(observed))

    def assert_as_wanted(self, observed: Observation) -> None:
        assert misfits(self.type.kind, observed.properties) == []
        verdict = self.type.judge(self.thing(observed), 0)
        assert verdict.condition is Condition.READY, f"{verdict.reason}: {self.spec}, but {observed.properties}"


@pytest.mark.parametrize("life", LIVES, ids=str)
def test_a_thing_lives(life: Life, clouds: tuple[OpenStackCloud, ...], there: dict[str, str]) -> None:
    cloud = clouds[life.by_admin]
    wanted = Wanted.of(life, life.properties, there)
    kind, token = wanted.type.kind, new_token()
    handle = created(cloud, kind, wanted.spec, token).handle
    try:
        wanted.assert_as_wanted(look(cloud, kind, handle))
        found = cloud.find(kind, [token, new_token()])
        assert [each.handle for each in found] == ["" if _is_joined(cloud, kind) else handle, ""]
        for number in range(len(life.changes)):
            properties = {
                name: value for each in (life.properties, *life.changes[: number + 1]) for name, value in each.items()
            }
            after = Wanted.of(life, properties, there)
            handle = _changed(cloud, handle, wanted, after)
            wanted = after
        _batch_of_many(cloud, kind, handle)
    finally:
        _ended(cloud, kind, handle, token, wanted.spec)


def _is_joined(cloud: OpenStackCloud, kind: str) -> bool:
    return isinstance(cloud.collections[kind].token, Joined)


def _changed(cloud: OpenStackCloud, handle: str, before: Wanted, after: Wanted) -> str:
    """Change a thing, and return its handle."""
    kind, old, new = before.type.kind, before.spec, after.spec
    changed = tuple(
        sorted(name for name in {*old, *new} if old.get(name) != new.get(name) or (name in old) != (name in new))
    )
    answer = seen(cloud.update(kind, [Change(handle, new, changed)])[0])
    again = look(cloud, kind, answer.handle)
    for observed in (answer, again):
        after.assert_as_wanted(observed)
    exactly = [each for each in before.type._compared if each[2] in (comparison.equal, comparison.rules)]
    compared = {name for name, field, _ in exactly if field in changed and new.get(field)}
    compared = {name for name in compared if before.values.get(name) not in EMPTY}
    assert not compared or set(before.drift(again)) & compared, f"nothing has changed: {changed}"
    return answer.handle


def _batch_of_many(cloud: OpenStackCloud, kind: str, handle: str) -> None:
    """See one among several that do not exist."""
    none = str(uuid.uuid4())
    looks = cloud.observe(kind, [none, handle, f"{none}:{none}", "no such"])
    assert [each.present for each in looks] == [False, True, False, False], looks


def _ended(cloud: OpenStackCloud, kind: str, handle: str, token: str, spec: Fields) -> None:
    gone = cloud.delete(kind, [handle])[0]
    assert isinstance(gone, Observation), repr(gone)
    until(lambda: look(cloud, kind, handle).presence is Presence.ABSENT, f"{kind} {handle} to be gone")
    again = cloud.delete(kind, [handle])[0]
    assert isinstance(again, Observation)
    assert again.not_found
    assert cloud.find(kind, [token])[0].presence is Presence.ABSENT
    answer = cloud.update(kind, [Change(handle, spec, tuple({"name"} & spec.keys()))])[0]
    assert isinstance(answer, Observation), repr(answer)
    assert answer.presence is Presence.ABSENT
