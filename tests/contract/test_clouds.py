"""What every adapter of the cloud port must do, kind by kind. Another adapter is one more parameter of `subject`."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from tests.wire.running import database, serving, working

from homeostat.api.access.auth import NoAccess
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.heat_api import REGION_KIND, Regions
from homeostat.clouds.local import LocalCloud
from homeostat.clouds.port import Answer, Change, Cloud, Creation, Operation
from homeostat.clouds.regions import OWN, Region
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient
from homeostat.model.observed import Observation, Presence

BUILDING = ("building", "creating", "in_progress")
REMOTE = """
heat_template_version: wallaby
parameters: {value: {type: string}}
resources: {a: {type: OS::Heat::TestResource, properties: {value: {get_param: value}}}}
outputs: {value: {value: {get_attr: [a, output]}}}
"""
NOWHERE = "00000000-0000-4000-8000-000000000000"


@dataclass
class Subject:
    """A cloud under test.

    rest — lets time pass, of whichever sort the cloud goes by; all_kinds — whether it has every kind of CASES, so that
    no test is skipped; idempotent — whether a second creation with a token gives the same thing; by_id — fields
    that may name a thing, and are told as its id; own_words — whether refusals come in the words of other services.
    """

    cloud: Cloud
    rest: Callable[[float], None]
    all_kinds: bool = True
    idempotent: bool = True
    by_id: frozenset[str] = frozenset()
    own_words: bool = False
    made: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> str:
        """Handle of a thing of that kind, made with all it needs when first asked for."""
        if kind not in self.made:
            answer = self.create(kind, f"ground-{kind}")
            self.made[kind] = answer.handle
        return self.made[kind]

    def needs(self, *kinds: str) -> None:
        """Skip the test where a cloud of some kinds lacks one of these."""
        missing = () if self.all_kinds else sorted(set(kinds) - self.cloud.kinds)
        if missing:
            pytest.skip(f"this cloud has no {', '.join(missing)}")

    def create(self, kind: str, token: str, **fields: Any) -> Observation:
        self.needs(kind)
        spec = {**CASES[kind].spec(self), **fields}
        return self.until_built(kind, present(self.cloud.create(kind, [Creation(token, spec)])[0]).handle)

    def until_built(self, kind: str, handle: str) -> Observation:
        return self.until(kind, handle, lambda seen: seen.properties.get("status") not in BUILDING)

    def until(self, kind: str, handle: str, fits: Callable[[Observation], bool]) -> Observation:
        def fitting() -> Observation | None:
            seen = self.cloud.observe(kind, [handle])[0]
            return seen if fits(seen) else None

        return until(fitting, f"{kind} {handle} to fit", self.rest)

    def until_absent(self, kind: str, handle: str) -> None:
        self.until(kind, handle, lambda seen: seen.presence is Presence.ABSENT)


def local(path: Path, others: Regions) -> Iterator[Subject]:
    cloud = LocalCloud(path / "cloud")
    yield Subject(JoinedCloud(cloud, others.of(path.name)), time.sleep)
    cloud.destroy()


ADAPTERS: dict[str, Callable[[Path, Regions], Iterator[Subject]]] = {"local": local}


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    """A region: a whole service, with a worker, behind its API."""
    with (
        database(tmp_path_factory.mktemp("region")) as db,
        working(db, SimulatedCloud(time.time)),
        serving(db, NoAccess()) as url,
        contextlib.closing(Regions([Region(OWN, url)])) as regions,
    ):
        yield regions


@pytest.fixture(params=sorted(ADAPTERS))
def subject(request: pytest.FixtureRequest, tmp_path: Path, others: Regions) -> Iterator[Subject]:
    with contextlib.contextmanager(ADAPTERS[request.param])(tmp_path, others) as opened:
        parameters = request.node.callspec.params
        opened.needs(*(parameters[each] for each in ("kind", "used", "user") if parameters.get(each) in CASES))
        yield opened


@dataclass(frozen=True)
class Case:
    """spec — what to ask for, from what is there; change — an update in place; bad — fields that cannot be had."""

    spec: Callable[[Subject], dict[str, Any]]
    change: dict[str, Any]
    bad: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {
    "server": Case(
        lambda at: {"name": "web", "image": "cirros", "flavor": "m1.tiny", "metadata": {"role": "web"}},
        {"name": "renamed", "metadata": {"role": "db"}},
        {"image": "no-such-image"},
    ),
    "keypair": Case(
        lambda at: {"name": "key", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJustAKeyForTest me"},
        {},
        {"name": "other", "public_key": "nonsense"},
    ),
    "network": Case(lambda at: {"name": "net", "admin_state_up": True}, {"name": "renamed"}),
    "subnet": Case(
        lambda at: {"name": "sub", "network_id": at["network"], "cidr": "10.7.0.0/24", "ip_version": 4},
        {"name": "renamed", "dns_nameservers": ["10.7.0.2"]},
        {"network_id": NOWHERE},
    ),
    "port": Case(
        lambda at: {"name": "port", "network_id": at["network"], "fixed_ips": [{"subnet_id": at["subnet"]}]},
        {"name": "renamed"},
        {"network_id": NOWHERE},
    ),
    "router": Case(
        lambda at: {"name": "router"},
        {"name": "renamed"},
        {"external_gateway_info": {"network_id": NOWHERE}},
    ),
    "router_interface": Case(
        lambda at: {"router_id": at["router"], "subnet_id": at["subnet"]}, {}, {"router_id": NOWHERE}
    ),
    "security_group": Case(
        lambda at: {"name": "web", "rules": [{"direction": "ingress", "protocol": "tcp"}]},
        {"rules": [{"direction": "ingress", "protocol": "udp"}]},
    ),
    "security_group_rule": Case(
        lambda at: {"security_group_id": at["security_group"], "protocol": "tcp", "direction": "ingress"},
        {},
        {"security_group_id": NOWHERE},
    ),
    "router_gateway": Case(lambda at: {"router_id": at["router"]}, {}, {"router_id": NOWHERE}),
    "server_group": Case(lambda at: {"name": "group", "policies": ["soft-anti-affinity"]}, {}),
    "flavor": Case(
        lambda at: {"name": "huge", "ram": 4096, "vcpus": 4, "disk": 10},
        {"extra_specs": {"cpu": "fast"}},
        {"name": "huge"},
    ),
    "floating_ip": Case(lambda at: {"floating_network_id": "public"}, {}, {"floating_network_id": NOWHERE}),
    "floating_ip_association": Case(
        lambda at: {"floatingip_id": at["floating_ip"], "port_id": at["port"]}, {}, {"port_id": NOWHERE}
    ),
    "volume": Case(lambda at: {"name": "disk", "size": 1}, {"name": "renamed", "size": 2}, {"source_volid": NOWHERE}),
    "volume_attachment": Case(
        lambda at: {"instance_uuid": at["server"], "volume_id": at["volume"]},
        {"mountpoint": "/dev/vdm"},
        {"volume_id": NOWHERE},
    ),
    "load_balancer": Case(
        lambda at: {"name": "balancer", "vip_subnet": at["subnet"]}, {"name": "renamed"}, {"vip_subnet": NOWHERE}
    ),
    "listener": Case(
        lambda at: {"name": "web", "loadbalancer": at["load_balancer"], "protocol": "TCP", "protocol_port": 8080},
        {"connection_limit": 10},
        {"loadbalancer": NOWHERE},
    ),
    "pool": Case(
        lambda at: {"name": "webs", "listener": at["listener"], "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"},
        {"lb_algorithm": "LEAST_CONNECTIONS"},
        {"listener": NOWHERE},
    ),
    "pool_member": Case(
        lambda at: {"pool": at["pool"], "address": "127.0.0.1", "protocol_port": 9, "weight": 1},
        {"weight": 5},
        {"pool": NOWHERE},
    ),
    "health_monitor": Case(
        lambda at: {"pool": at["pool"], "type": "TCP", "delay": 5, "timeout": 1, "max_retries": 2},
        {"delay": 7},
        {"pool": NOWHERE},
    ),
    "remote_stack": Case(
        lambda at: {"name": "remote", "template": REMOTE, "parameters": {"value": "one"}},
        {"outputs": {"value": "two"}, "parameters": {"value": "two"}},
        {"template": "heat_template_version: wallaby\nresources: {a: {type: OS::No::Such}}"},
    ),
}
KINDS = sorted(CASES)
NOT_REPORTED = {"floating_network_id", "fixed_ips", "template", "parameters"}
"""Fields that may be asked for, and are not told as they were asked for."""
SINGLE = {"remote_stack", "subnet", "keypair", "flavor", "listener", "health_monitor", "volume_attachment"}
SINGLE |= {"floating_ip_association"}
"""Of these no two with the same spec can be had at once."""

IN_USE = [
    ("network", "port"),
    ("subnet", "port"),
    ("router", "router_interface"),
    ("subnet", "router_interface"),
    ("router", "router_gateway"),
    ("volume", "volume_attachment"),
    ("floating_ip", "floating_ip_association"),
    ("load_balancer", "listener"),
    ("pool", "pool_member"),
]


def present(answer: Answer) -> Observation:
    assert isinstance(answer, Observation), f"{answer!r}"
    assert answer.presence is Presence.PRESENT
    return answer


def test_every_kind_has_a_case(subject: Subject) -> None:
    more = {"server_snapshot", "volume_snapshot", "hypervisor", REGION_KIND}  # see other suites; and no thing
    assert subject.cloud.kinds <= {*CASES, *more}
    assert (subject.cloud.kinds == {*CASES, *more}) == subject.all_kinds


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_created_is_seen_by_handle_and_by_token(subject: Subject, kind: str) -> None:
    spec = CASES[kind].spec(subject)
    created = present(subject.cloud.create(kind, [Creation("token", spec)])[0])
    seen = subject.until_built(kind, created.handle)
    assert seen.handle == created.handle == seen.properties["id"]
    found, missing = subject.cloud.find(kind, ["token", "another"])
    assert (found.presence, found.handle) == (Presence.PRESENT, created.handle)
    assert missing.presence is Presence.ABSENT
    assert seen.properties.get("status") not in ("error", "stopped")
    for name in spec.keys() - NOT_REPORTED - subject.by_id:
        assert seen.properties[name] == spec[name], name


@pytest.mark.parametrize("kind", KINDS)
def test_create_with_a_known_token_gives_the_same_thing(subject: Subject, kind: str) -> None:
    if not subject.idempotent:
        pytest.skip("this cloud knows no tokens: what was made is looked for before a second creation")
    spec = CASES[kind].spec(subject)
    first = present(subject.cloud.create(kind, [Creation("token", spec)])[0])
    again = present(subject.cloud.create(kind, [Creation("token", spec)])[0])
    assert again.handle == first.handle


@pytest.mark.parametrize("kind", [kind for kind in KINDS if CASES[kind].change])
def test_update_in_place(subject: Subject, kind: str) -> None:
    handle = subject[kind]
    spec = {**CASES[kind].spec(subject), **CASES[kind].change}
    answer = present(subject.cloud.update(kind, [Change(handle, spec, tuple(CASES[kind].change))])[0])
    assert answer.handle == handle
    seen = subject.until_built(kind, handle)
    changed = {name: value for name, value in CASES[kind].change.items() if name not in NOT_REPORTED}
    assert {name: seen.properties[name] for name in changed} == changed


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_delete_and_delete_again(subject: Subject, kind: str) -> None:
    handle = subject[kind]
    (first,) = subject.cloud.delete(kind, [handle])
    assert isinstance(first, Observation)
    assert not first.not_found
    subject.until_absent(kind, handle)
    (again,) = subject.cloud.delete(kind, [handle])
    assert isinstance(again, Observation)
    assert again.presence is Presence.ABSENT
    assert again.not_found
    assert subject.cloud.find(kind, [f"ground-{kind}"])[0].presence is Presence.ABSENT


@pytest.mark.parametrize("kind", KINDS)
def test_what_never_was_is_absent_to_every_verb(subject: Subject, kind: str) -> None:
    cloud = subject.cloud
    answers = [
        *cloud.observe(kind, [NOWHERE]),
        *cloud.update(kind, [Change(NOWHERE, {"name": "x"}, ("name",))]),
        *cloud.delete(kind, [NOWHERE]),
        *cloud.operate(kind, [Operation(NOWHERE, "start")]),
    ]
    assert [answer.presence for answer in answers if isinstance(answer, Observation)] == [Presence.ABSENT] * 4


@pytest.mark.parametrize("kind", [kind for kind in KINDS if CASES[kind].bad])
def test_one_bad_item_does_not_spoil_the_others(subject: Subject, kind: str) -> None:
    good = CASES[kind].spec(subject)
    bad = {**good, **CASES[kind].bad}
    last = [] if kind in SINGLE else [Creation("c", good)]
    answers = subject.cloud.create(kind, [Creation("a", good), Creation("b", bad), *last])
    handles = [present(answers[0]).handle, *(present(answer).handle for answer in answers[2:])]
    assert isinstance(answers[1], Terminal), "only a change of what is desired can mend it"
    assert len(set(handles)) == len(handles)
    assert subject.cloud.find(kind, ["b"])[0].presence is Presence.ABSENT
    seen = subject.cloud.observe(kind, [handles[0], NOWHERE, *handles[1:]])
    assert [each.handle for each in seen if each.present] == handles
    assert seen[1].presence is Presence.ABSENT
    deleted = subject.cloud.delete(kind, [*handles, NOWHERE])
    assert not [answer for answer in deleted if isinstance(answer, HomeostatError)]


@pytest.mark.parametrize(("used", "user"), IN_USE)
def test_what_is_in_use_cannot_be_deleted_yet(subject: Subject, used: str, user: str) -> None:
    holder = subject[user]
    (refused,) = subject.cloud.delete(used, [subject[used]])
    assert isinstance(refused, Transient)
    assert subject.own_words or "in use" in str(refused)
    assert subject.cloud.observe(used, [subject[used]])[0].present
    subject.cloud.delete(user, [holder])
    subject.until_absent(user, holder)
    for between in ("port", "listener"):
        if between in subject.made and between not in (used, user):
            subject.cloud.delete(between, [subject[between]])
    assert isinstance(subject.cloud.delete(used, [subject[used]])[0], Observation)
    subject.until_absent(used, subject[used])


@pytest.mark.parametrize(
    ("verbs", "status"),
    [
        (["stop"], "stopped"),
        (["stop", "start"], "active"),
        (["pause"], "paused"),
        (["pause", "unpause"], "active"),
        (["pause", "stop"], "stopped"),
        (["reboot"], "active"),
        (["rebuild"], "active"),
        (["suspend"], "suspended"),
        (["suspend", "suspend"], "suspended"),
        (["suspend", "resume"], "active"),
        (["suspend", "stop"], "stopped"),
        (["resume"], "active"),
        (["lock", "lock", "unlock", "stop"], "stopped"),
        (["start"], "active"),
    ],
)
def test_operations_on_servers(subject: Subject, verbs: list[str], status: str) -> None:
    handle = subject["server"]
    for verb in verbs:
        assert isinstance(subject.cloud.operate("server", [Operation(handle, verb)])[0], Observation), verb
    subject.until("server", handle, lambda seen: seen.properties["status"] == status)


def test_a_locked_server_stays_as_it_is(subject: Subject) -> None:
    handle = subject["server"]
    subject.cloud.operate("server", [Operation(handle, "lock")])
    spec = {**CASES["server"].spec(subject), "name": "x"}
    refused = [
        *subject.cloud.operate("server", [Operation(handle, "stop"), Operation(handle, "rebuild")]),
        *subject.cloud.operate("server", [Operation(handle, "suspend"), Operation(handle, "resume")]),
        *subject.cloud.update("server", [Change(handle, spec, ("name",))]),
        *subject.cloud.delete("server", [handle]),
    ]
    assert all(isinstance(answer, HomeostatError) for answer in refused)
    assert "unlock" in str(refused[0])
    seen = subject.cloud.observe("server", [handle])[0].properties
    assert (seen["status"], seen["locked"]) == ("active", True)


def test_an_unknown_operation_is_refused(subject: Subject) -> None:
    (refused,) = subject.cloud.operate("server", [Operation(subject["server"], "dance")])
    assert isinstance(refused, Terminal)


def test_a_volume_cannot_shrink(subject: Subject) -> None:
    volume = subject.create("volume", "big", size=5)
    (refused,) = subject.cloud.update("volume", [Change(volume.handle, {"name": "disk", "size": 2}, ("size",))])
    assert isinstance(refused, Terminal)
    assert subject.cloud.observe("volume", [volume.handle])[0].properties["size"] == 5


def test_only_named_fields_change(subject: Subject) -> None:
    handle = subject["server"]
    spec = {"name": "renamed", "image": "cirros", "flavor": "m1.large", "metadata": {"role": "other"}}
    present(subject.cloud.update("server", [Change(handle, spec, ("name",))])[0])
    seen = subject.until_built("server", handle).properties
    assert (seen["name"], seen["flavor"], seen["metadata"]) == ("renamed", "m1.tiny", {"role": "web"})


def test_servers_have_addresses_of_their_networks_and_show_their_volumes(subject: Subject) -> None:
    port = subject["port"]
    server = subject.create("server", "on-port", networks=[{"port": port}, {"network": subject["network"]}])
    entries = server.properties["addresses"]["net"]
    fixed = subject.cloud.observe("port", [port])[0].properties["fixed_ips"]
    assert [entry["addr"] for entry in entries][:1] == [fixed[0]["ip_address"]] == [server.properties["address"]]
    assert len({entry["addr"] for entry in entries}) == 2
    subject.made["server"] = server.handle
    volume = subject["volume"]
    attachment = subject["volume_attachment"]
    seen = subject.cloud.observe("volume", [volume])[0].properties
    assert seen["status"] == "in-use"
    assert [each["server_id"] for each in seen["attachments"]] == [server.handle]
    subject.cloud.delete("server", [server.handle])
    subject.until_absent("server", server.handle)
    subject.until_absent("volume_attachment", attachment)
    assert subject.cloud.observe("volume", [volume])[0].properties["status"] == "available"


def test_a_port_serves_one_server_at_a_time(subject: Subject) -> None:
    networks = [{"port": subject["port"]}]
    first = subject.create("server", "first", networks=networks)
    spec = {**CASES["server"].spec(subject), "networks": networks}
    (refused,) = subject.cloud.create("server", [Creation("second", spec)])
    assert isinstance(refused, Transient), "the first may be about to go"
    assert subject.cloud.find("server", ["second"])[0].presence is Presence.ABSENT
    subject.cloud.delete("server", [first.handle])
    subject.until_absent("server", first.handle)
    present(subject.cloud.create("server", [Creation("second", spec)])[0])


def test_a_made_key_is_shown_once(subject: Subject) -> None:
    subject.needs("keypair")
    created = present(subject.cloud.create("keypair", [Creation("k", {"name": "made"})])[0])
    assert "PRIVATE KEY" in created.properties["private_key"]
    seen = subject.cloud.observe("keypair", ["made"])[0]
    assert "private_key" not in seen.properties
    assert seen.properties["public_key"] == created.properties["public_key"]


def test_a_name_of_a_key_is_taken_once(subject: Subject) -> None:
    subject.create("keypair", "first")
    (refused,) = subject.cloud.create("keypair", [Creation("second", CASES["keypair"].spec(subject))])
    assert isinstance(refused, Terminal)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_there_is_resolved_by_id_and_by_name(subject: Subject, kind: str) -> None:
    handle = subject[kind]
    name = CASES[kind].spec(subject).get("name")
    names = [handle, *([name] if name else []), NOWHERE, "nothing is called so"]
    found = subject.cloud.resolve(kind, names)
    assert found == [*[handle] * (len(names) - 2), None, None]
    subject.cloud.delete(kind, [handle])
    subject.until_absent(kind, handle)
    assert subject.cloud.resolve(kind, names) == [None] * len(names)


def test_a_name_that_several_things_have_is_refused(subject: Subject) -> None:
    subject.needs("network")
    spec = CASES["network"].spec(subject)
    one, _ = subject.cloud.create("network", [Creation("a", spec), Creation("b", spec)])
    with pytest.raises(Rejected, match=r"Multiple physical resources were found with name \(net\)"):
        subject.cloud.resolve("network", ["net"])
    assert subject.cloud.resolve("network", [present(one).handle]) == [present(one).handle]


@pytest.mark.parametrize(("kind", "name"), [("image", "cirros"), ("flavor", "m1.tiny"), ("network", "public")])
def test_what_was_there_before_is_resolved_too(subject: Subject, kind: str, name: str) -> None:
    subject.needs("server", "network")
    (found,) = subject.cloud.resolve(kind, [name])
    assert found is not None
    assert subject.cloud.resolve(kind, [found, "no-such-thing"]) == [found, None]


def test_a_kind_that_a_cloud_does_not_know_has_no_things(subject: Subject) -> None:
    assert subject.cloud.resolve("hovercraft", ["full of eels"]) == [None]


def test_snapshots_are_resolved_once_they_are_complete(subject: Subject) -> None:
    handle = subject["volume"]
    arguments = {"token": "copy", "name": "copy of disk"}
    subject.cloud.operate("volume", [Operation(handle, "snapshot", arguments)])
    seen = subject.until(
        "volume",
        handle,
        lambda seen: [each["status"] for each in seen.properties.get("snapshots", ())] == ["available"],
    )
    (snapshot,) = seen.properties["snapshots"]
    assert subject.cloud.resolve("volume_snapshot", ["copy of disk", snapshot["id"], "other"]) == [
        snapshot["id"],
        snapshot["id"],
        None,
    ]
    assert subject.cloud.resolve("image", ["copy of disk"]) == [None], "a volume cannot be booted from"
