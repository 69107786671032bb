"""Networks and what belongs to them, in a real OpenStack: their lives through the cloud port, and what is special."""

import contextlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeostat.clouds.openstack import OpenStack, OpenStackConfig
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.collection import Collection
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.network import NetworkCollection
from homeostat.clouds.openstack.tokens import Joined
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.model.errors import Terminal, Transient, Uncertain
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.resources import comparison
from homeostat.resources.base import EMPTY, ResourceType, Thing
from homeostat.resources.kind_fields import fields_of
from homeostat.resources.registry import resource_type
from tests.kind_checks import misfits
from tests.openstack.network_lives import LIVES, SSH, WEB, Fields, Life
from tests.openstack.projects import Project
from tests.openstack.running import OpenStack as RunningCloud
from tests.openstack.test_cloud import create_server
from tests.waiting import until

API = "neutron-api"


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


def _projects(openstack_cloud: RunningCloud) -> list[Any]:
    """Those that the cloud begins with."""
    with contextlib.closing(openstack_cloud.admin()) as admin:
        identity: Any = admin.identity
        return [identity.find_project(name, ignore_missing=False) for name in ("admin", "demo", "service")]


@pytest.fixture(scope="module")
def there(clouds: tuple[OpenStackCloud, ...], openstack_cloud: RunningCloud) -> Iterator[dict[str, str]]:
    """Name -> id of what the lives need around them; `<name>_name` is its name."""
    cloud, admin = clouds
    others = [project.id for project in _projects(openstack_cloud)]
    found = dict(zip(("target", "other_target", "other_project"), others, strict=False))

    def make(called: str, kind: str, by: OpenStackCloud = cloud, **spec: Any) -> None:
        made = created(by, kind, {"name": f"{called}-{uuid.uuid4().hex[:6]}", **spec})
        found[called], found[f"{called}_name"] = made.handle, str(made.properties.get("name"))

    found["public"] = cloud.resolve("network", ["public"])[0] or ""
    for called in ("network", "free_network", "pool_network", "segmented_network"):
        make(called, "network")
    # Addresses that tests name are outside the pool: none of them is given to another thing by chance.
    pools = [{"start": "10.30.0.100", "end": "10.30.0.254"}]
    make("subnet", "subnet", network_id=found["network"], cidr="10.30.0.0/24", ip_version=4, allocation_pools=pools)
    make("free_subnet", "subnet", network_id=found["free_network"], cidr="10.33.0.0/24", ip_version=4)
    make("port_subnet", "subnet", network_id=found["free_network"], cidr="10.34.0.0/24", ip_version=4)
    modes: dict[str, Any] = {"ip_version": 6, "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
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
    for called in ("trunk_port", "sub_port", "other_sub_port"):
        make(called, "port", network_id=found["free_network"])
    for called in ("floating_ip", "other_floating_ip", "forwarding_ip"):
        found[called] = created(cloud, "floating_ip", {}).handle
    for called in ("qos_policy", "shared_qos_policy", "other_qos_policy"):
        make(called, "qos_policy", admin, shared=called != "qos_policy")
    make("metering_label", "metering_label", admin)
    yield found
    for kind in ("subnetpool", "address_scope", "metering_label"):
        admin.delete(kind, [found[kind]])
    for called in ("qos_policy", "shared_qos_policy", "other_qos_policy"):
        admin.delete("qos_policy", [found[called]])


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
        found = cloud.find(kind, [token])
        assert [each.handle for each in found] == ["" if _is_joined(cloud, kind) else handle]
        _assert_plain(cloud.collections[kind], handle, life)
        _batch_of_many(cloud, kind, handle)
    finally:
        _ended(cloud, kind, handle, token, wanted.spec)


def _assert_plain(things: Collection, handle: str, life: Life) -> None:
    """Assert that what others see as the description is what was wanted last, where a tag can have the token."""
    texts = [each["description"] for each in life.changes if "description" in each]
    if texts and isinstance(things, NetworkCollection) and ("tags" in things.separate or things.has_tags):
        assert things.get(handle)["description"] == (texts[-1] or "")


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
    changed = tuple({"name"} & spec.keys() & fields_of(kind).mutable.keys())
    answer = cloud.update(kind, [Change(handle, spec, changed)])[0]
    assert isinstance(answer, Observation), repr(answer)
    assert answer.presence is Presence.ABSENT


FIRST_OF_TYPE = {each.type: each for each in reversed(LIVES)}
COLLECTIONS = sorted(FIRST_OF_TYPE.values(), key=str)


@pytest.mark.parametrize("life", COLLECTIONS, ids=str)
def test_a_lost_answer_leaves_one_thing(
    life: Life, clouds: tuple[OpenStackCloud, ...], there: dict[str, str], openstack_cloud: RunningCloud
) -> None:
    cloud, wanted = clouds[life.by_admin], Wanted.of(life, life.properties, there)
    kind, token = wanted.type.kind, new_token()
    method, path = LOST.get(kind, ("POST", cloud.collections[kind].path))
    with openstack_cloud.fault("http", service=API, method=method, path=f"{path}$", status=502, after=True, times=1):
        answer = cloud.create(kind, [Creation(token, wanted.spec)])[0]
    assert isinstance(answer, Uncertain), repr(answer)
    found = cloud.find(kind, [token])[0]
    if _is_joined(cloud, kind):
        assert not found.present
        found = created(cloud, kind, wanted.spec, token)
    else:
        things = cloud.collections[kind]
        assert [things.handle_of(each) for each in things.list() if things.token.read(each) == token] == [found.handle]
    if found.properties.get("status") == "error":
        assert kind == "router_interface"
    else:
        again = created(cloud, kind, wanted.spec, token) if _is_joined(cloud, kind) else look(cloud, kind, found.handle)
        assert again.handle == found.handle
    _ended(cloud, kind, found.handle, token, wanted.spec)


LOST = {
    "router_gateway": ("PUT", r"/routers/[^/]*"),
    "extra_route_set": ("PUT", "/add_extraroutes"),
    "floating_ip_association": ("PUT", r"/floatingips/[^/]*"),
    "network_quota": ("PUT", r"/quotas/[^/]*"),
    "floating_ip_port_forward": ("POST", "/port_forwardings"),
    "qos_bandwidth_limit_rule": ("POST", "/bandwidth_limit_rules"),
    "qos_dscp_marking_rule": ("POST", "/dscp_marking_rules"),
    "qos_minimum_bandwidth_rule": ("POST", "/minimum_bandwidth_rules"),
    "qos_minimum_packet_rate_rule": ("POST", "/minimum_packet_rate_rules"),
}
"""Kind -> method and path of the request that makes a thing, where it is not the usual one."""


def test_an_interface_whose_joining_is_lost_is_found(
    cloud: OpenStackCloud, there: dict[str, str], openstack_cloud: RunningCloud
) -> None:
    for spec in ({"subnet_id": there["free_subnet"]}, {"port_id": port_on(cloud, there["port_subnet"])}):
        token = new_token()
        path = f"/{there['router']}/add_router_interface$"
        with openstack_cloud.fault("http", service=API, method="PUT", path=path, status=502, after=True, times=1):
            answer = cloud.create("router_interface", [Creation(token, {"router_id": there["router"], **spec})])[0]
        assert isinstance(answer, Uncertain), repr(answer)
        found = seen(cloud.find("router_interface", [token])[0])
        assert found.properties["router_id"] == there["router"]
        assert found.properties["status"] != "error"
        again = cloud.create("router_interface", [Creation(token, {"router_id": there["router"], **spec})])[0]
        # What has a token is another's: of a port of the user's it counts what it joins.
        assert isinstance(again, Transient) if "subnet_id" in spec else seen(again).handle == found.handle
        _ended(cloud, "router_interface", found.handle, token, {})


def port_on(cloud: OpenStackCloud, subnet: str) -> str:
    return created(cloud, "port", {"fixed_ips": [{"subnet_id": subnet}]}).handle


def test_an_interface_as_heat_calls_it(cloud: OpenStackCloud, there: dict[str, str]) -> None:
    made = created(cloud, "router_interface", {"router_id": there["router"], "subnet_id": there["free_subnet"]})
    handles = [f"{there['router']}:{end}={made.properties[end]}" for end in ("subnet_id", "port_id")]
    looks = cloud.observe("router_interface", [*handles, made.handle, f"{there['free_router']}:subnet_id=x"])
    assert [each.present for each in looks] == [True, True, True, False]
    assert {each.properties.get("port_id") for each in looks[:3]} == {made.handle}
    # A port of a router cannot be deleted, and neither can the router nor the subnet.
    waiting = [("port", made.handle), ("router", there["router"]), ("network", there["free_network"])]
    for kind, handle in waiting:
        assert isinstance(cloud.delete(kind, [handle])[0], Transient), kind
    assert not seen_or_gone(cloud.delete("router_interface", [handles[0]])[0]).present
    assert not look(cloud, "port", made.handle).present


def seen_or_gone(answer: Answer) -> Observation:
    assert isinstance(answer, Observation), repr(answer)
    return answer


def test_what_answers_mean(cloud: OpenStackCloud, project: Project, there: dict[str, str]) -> None:
    """What ends by itself is waited for; what only another wish helps is told."""
    port = {"network_id": there["network"]}
    unreachable = {"port_id": port_on(cloud, there["port_subnet"])}
    taken = {"fixed_ips": [{"subnet_id": there["subnet"], "ip_address": "10.30.0.11"}]}
    outside = {"fixed_ips": [{"subnet_id": there["subnet"], "ip_address": "10.99.0.1"}]}
    mac = look(cloud, "port", there["port"]).properties["mac_address"]
    cases: list[tuple[str, Fields, type[Exception], str]] = [
        ("floating_ip", unreachable, Transient, "not reachable"),
        ("floating_ip_association", {"floatingip_id": there["floating_ip"], **unreachable}, Transient, "not reachable"),
        ("port", {**port, **taken}, Transient, "in use|already allocated"),
        ("port", {**port, "mac_address": mac}, Transient, "in use"),
        ("port", {**port, **outside}, Terminal, "not a valid IP"),
        ("port", {**port, "security_groups": ["no such group"]}, Terminal, "no security group with the name"),
        ("port", {"network_id": str(uuid.uuid4())}, Terminal, "no network with the name or id"),
        ("port", {}, Terminal, "needs a network"),
        ("security_group", {"name": "g", "rules": [{"protocol": "no such"}]}, Uncertain, "not completed"),
        ("router_interface", {"router_id": there["router"], "subnet_id": there["subnet"]}, Transient, "in use|already"),
        ("network_quota", {"project": project.id, "port": 1}, Terminal, "polic"),
    ]
    for kind, spec, error, words in cases:
        answer = cloud.create(kind, [Creation(new_token(), spec)])[0]
        assert isinstance(answer, error), f"{kind} {spec}: {answer!r}"
        assert re.search(words, str(answer)), answer
    project.limit("network", routers=2)
    answer = cloud.create("router", [Creation(new_token(), {"name": "one too many"})])[0]
    project.limit("network", routers=20)
    assert isinstance(answer, Terminal), repr(answer)
    used = cloud.update("port", [Change(there["port"], {"qos_policy_id": "x" * 8}, ("qos_policy_id",))])[0]
    assert isinstance(used, Terminal), repr(used)


def test_rules_of_their_own_are_no_rules_of_the_group(cloud: OpenStackCloud, there: dict[str, str]) -> None:
    group = created(cloud, "security_group", {"name": "g", "rules": [{"direction": "ingress", **SSH}]})
    rule = created(cloud, "security_group_rule", {"security_group_id": group.handle, "direction": "ingress", **WEB})
    ingress = [
        each
        for each in look(cloud, "security_group", group.handle).properties["rules"]
        if each["direction"] == "ingress"
    ]
    assert [each["port_range_min"] for each in ingress] == [22]
    seen(cloud.update("security_group", [Change(group.handle, {"rules": []}, ("rules",))])[0])
    assert look(cloud, "security_group_rule", rule.handle).present
    used = created(cloud, "port", {"network_id": there["network"], "security_groups": [group.handle]})
    assert isinstance(cloud.delete("security_group", [group.handle])[0], Transient)
    for kind, handle in (("port", used.handle), ("security_group", group.handle)):
        assert not seen_or_gone(cloud.delete(kind, [handle])[0]).present


def test_nothing_is_asked_of_each_while_things_are_quiet(
    cloud: OpenStackCloud, there: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cloud.create("security_group", [Creation(new_token(), {"name": f"g{n}", "rules": []}) for n in range(6)])
    handles = [seen(each).handle for each in made]
    asked: list[str] = []
    api = cloud.service("network")
    whole = api.answer

    def counted(method: str, path: str, *args: Any, **more: Any) -> Any:
        asked.append(f"{method} {path}")
        return whole(method, path, *args, **more)

    monkeypatch.setattr(api, "answer", counted)
    assert all(each.present for each in cloud.observe("security_group", handles))
    assert asked == ["GET /security-groups"]
    cloud.delete("security_group", handles)


def test_a_floating_ip_leads_to_a_server(cloud: OpenStackCloud, project: Project, there: dict[str, str]) -> None:
    port = created(cloud, "port", {"fixed_ips": [{"subnet_id": there["subnet"]}]})
    with contextlib.closing(project.connection()) as user:
        server = create_server(user, "server", port=port.handle).id
    made = created(cloud, "floating_ip", {"server": server})
    assert made.properties["port_id"] == port.handle
    let_go = cloud.update("floating_ip", [Change(made.handle, {}, ("server",))])[0]
    assert seen(let_go).properties["port_id"] is None
    address = made.properties["floating_ip_address"]
    joined = created(cloud, "floating_ip_association", {"floatingip_id": address, "server": server})
    assert joined.properties["floatingip_id"] == made.handle
    assert joined.properties["port_id"] == port.handle
    _ended(cloud, "floating_ip_association", joined.handle, "", {"floatingip_id": address, "server": server})


def test_a_port_gets_another_hardware_address_in_place_where_users_may(
    clouds: tuple[OpenStackCloud, ...], there: dict[str, str]
) -> None:
    cloud, admin = clouds
    before = created(cloud, "port", {"network_id": there["network"]})
    change = Change(before.handle, {"mac_address": "FA-16-3E-77-00-09"}, ("mac_address",))
    assert isinstance(cloud.update("port", [change])[0], Terminal)
    after = seen(admin.update("port", [change])[0])
    assert after.properties["mac_address"] == "fa:16:3e:77:00:09"
    assert (after.handle, after.properties["fixed_ips"]) == (before.handle, before.properties["fixed_ips"])
    cloud.delete("port", [before.handle])
