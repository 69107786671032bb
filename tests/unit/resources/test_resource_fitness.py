"""Judging what was seen: status words, drift, and what a change needs."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.resources.resource_cases import ID_A, ID_B, MINIMAL, thing

from homeostat.model.errors import Terminal
from homeostat.model.observed import Condition, Observation, Presence, Remedy
from homeostat.resources.base import Thing
from homeostat.resources.registry import resource_type

READY, PENDING, BROKEN = Condition.READY, Condition.PENDING, Condition.BROKEN
SERVER, NET, PORT = "OS::Nova::Server", "OS::Neutron::Net", "OS::Neutron::Port"
VOLUME, ATTACHMENT = "OS::Cinder::Volume", "OS::Cinder::VolumeAttachment"
FORWARDER, LISTENER, POOL = "OS::Octavia::LoadBalancer", "OS::Octavia::Listener", "OS::Octavia::Pool"
MEMBER, MONITOR = "OS::Octavia::PoolMember", "OS::Octavia::HealthMonitor"
TEST, GROUP = "OS::Heat::TestResource", "OS::Heat::ResourceGroup"

STATUSES: list[tuple[str, str, dict[str, Any], Condition, Remedy, str]] = [
    ("it runs", SERVER, {"status": "active"}, READY, Remedy.WAIT, ""),
    ("words in capitals are the same", SERVER, {"status": "ACTIVE"}, READY, Remedy.WAIT, ""),
    ("no status is no complaint", SERVER, {}, READY, Remedy.WAIT, ""),
    ("it is being built", SERVER, {"status": "building"}, PENDING, Remedy.WAIT, ""),
    ("a user deletes it: soon absent", SERVER, {"status": "deleting"}, PENDING, Remedy.WAIT, ""),
    ("it ended", SERVER, {"status": "stopped"}, BROKEN, Remedy.OPERATE, "start"),
    ("a user paused it", SERVER, {"status": "paused"}, BROKEN, Remedy.OPERATE, "unpause"),
    ("it failed", SERVER, {"status": "error"}, BROKEN, Remedy.RECREATE, ""),
    ("a word nobody knows asks for help", SERVER, {"status": "odd"}, BROKEN, Remedy.MANUAL, ""),
    ("a network without ports may be down", NET, {"status": "down"}, READY, Remedy.WAIT, ""),
    ("a port without a device is down", PORT, {"status": "down"}, READY, Remedy.WAIT, ""),
    ("the network failed", NET, {"status": "error"}, BROKEN, Remedy.RECREATE, ""),
    ("the volume is being made", VOLUME, {"status": "creating"}, PENDING, Remedy.WAIT, ""),
    ("in use is well", VOLUME, {"status": "in-use"}, READY, Remedy.WAIT, ""),
    ("an unused volume can be made anew", VOLUME, {"status": "error"}, BROKEN, Remedy.RECREATE, ""),
    (
        "a used volume may hold data",
        VOLUME,
        {"status": "error", "attachments": [{"server_id": "s"}]},
        BROKEN,
        Remedy.MANUAL,
        "",
    ),
    ("its extension failed: the data is there", VOLUME, {"status": "error_extending"}, BROKEN, Remedy.MANUAL, ""),
    ("on its way", ATTACHMENT, {"status": "attaching"}, PENDING, Remedy.WAIT, ""),
    ("attached", ATTACHMENT, {"status": "attached"}, READY, Remedy.WAIT, ""),
    ("it does not serve", FORWARDER, {"status": "stopped"}, BROKEN, Remedy.OPERATE, "start"),
    ("it failed, a start mends it", FORWARDER, {"status": "error"}, BROKEN, Remedy.OPERATE, "start"),
    ("it will serve", FORWARDER, {"status": "pending_update"}, PENDING, Remedy.WAIT, ""),
    ("the port was taken: try again", LISTENER, {"status": "error"}, BROKEN, Remedy.UPDATE, ""),
    ("members refer to it, so it stays", POOL, {"status": "error"}, BROKEN, Remedy.UPDATE, ""),
    ("nothing refers to it", MEMBER, {"status": "error"}, BROKEN, Remedy.RECREATE, ""),
    (
        "its server is down and healed for itself",
        MEMBER,
        {"status": "active", "operating_status": "offline"},
        READY,
        Remedy.WAIT,
        "",
    ),
    ("it failed", MONITOR, {"status": "error"}, BROKEN, Remedy.RECREATE, ""),
    ("its members are well", GROUP, {"status": "complete"}, READY, Remedy.WAIT, ""),
    ("its members failed", GROUP, {"status": "failed"}, BROKEN, Remedy.MANUAL, ""),
]


@pytest.mark.parametrize(
    ("type_name", "seen", "condition", "remedy", "operation"),
    [case[1:] for case in STATUSES],
    ids=[f"{case[1]}: {case[0]}" for case in STATUSES],
)
def test_status(type_name: str, seen: dict[str, Any], condition: Condition, remedy: Remedy, operation: str) -> None:
    verdict = resource_type(type_name).judge(thing(type_name, seen=seen), now=200.0)
    assert (verdict.condition, verdict.remedy, verdict.operation) == (condition, remedy, operation)
    assert bool(verdict.reason) == (condition is not READY)


def test_the_reason_names_status_and_fault() -> None:
    verdict = resource_type(SERVER).judge(thing(SERVER, seen={"status": "error", "fault": "no host"}), 0.0)
    assert verdict.reason == 'Went to status ERROR due to "no host"'


def test_a_server_is_suspended_when_its_stack_is_and_only_then() -> None:
    judge = resource_type(SERVER).judge
    suspended, active = (thing(SERVER, seen={"status": word}) for word in ("suspended", "active"))
    assert judge(suspended, 0.0).operation == "resume"
    assert judge(replace(suspended, maintained=("SUSPEND",)), 0.0).condition is READY
    assert judge(replace(active, maintained=("SUSPEND",)), 0.0).operation == "suspend"


def test_what_is_changed_to_lock_or_suspend_a_thing_is_no_drift() -> None:
    image, alarm = "OS::Glance::WebImage", "OS::Aodh::GnocchiAggregationByMetricsAlarm"
    for type_name, action, field, value in ((image, "LOCK", "protected", True), (alarm, "SUSPEND", "enabled", False)):
        found = thing(type_name, {field: not value}, seen={field: value})
        assert resource_type(type_name).drift(found) == (field,)
        assert resource_type(type_name).drift(replace(found, maintained=(action,))) == ()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("presence", "condition", "remedy"),
    [
        (Presence.ABSENT, Condition.ABSENT, Remedy.RECREATE),
        (Presence.UNKNOWN, Condition.UNKNOWN, Remedy.WAIT),
    ],
)
@pytest.mark.parametrize("type_name", sorted(MINIMAL))
def test_not_there(type_name: str, presence: Presence, condition: Condition, remedy: Remedy) -> None:
    there = thing(type_name)
    gone = Thing(there.key, there.name, there.physical_name, there.properties, Observation(presence, "h-1"), "h-1")
    verdict = resource_type(type_name).judge(gone, 0.0)
    assert (verdict.condition, verdict.remedy) == (condition, remedy)


WAITS: list[tuple[str, dict[str, Any], str, float, Condition, float | None]] = [
    ("no wait", {}, "CREATE", 100.0, READY, None),
    ("the wait goes on", {"wait_secs": 5}, "CREATE", 104.0, PENDING, 105.0),
    ("the wait is over", {"wait_secs": 5}, "CREATE", 105.0, READY, None),
    ("for ever", {"wait_secs": -1}, "CREATE", 1e9, PENDING, None),
    ("a wait of its own", {"wait_secs": 5, "action_wait_secs": {"create": 1}}, "CREATE", 102.0, READY, None),
    ("none of its own", {"wait_secs": 5, "action_wait_secs": {"create": 1}}, "UPDATE", 102.0, PENDING, 105.0),
    ("no wait of its own", {"wait_secs": 5, "action_wait_secs": {"update": 0}}, "UPDATE", 100.0, READY, None),
    ("being deleted", {"action_wait_secs": {"delete": 2}}, "DELETE", 101.0, PENDING, 102.0),
    ("deleted", {"action_wait_secs": {"delete": 2}}, "DELETE", 102.0, Condition.ABSENT, None),
    ("failure waits too", {"wait_secs": 5, "fail": True}, "CREATE", 104.0, PENDING, 105.0),
    ("failure", {"wait_secs": 5, "fail": True}, "CREATE", 105.0, BROKEN, None),
    ("deleting never fails", {"fail": True}, "DELETE", 100.0, Condition.ABSENT, None),
]


@pytest.mark.parametrize(
    ("given", "action", "now", "condition", "due_at"), [case[1:] for case in WAITS], ids=[c[0] for c in WAITS]
)
def test_waits_of_the_test_resource(
    given: dict[str, Any], action: str, now: float, condition: Condition, due_at: float | None
) -> None:
    verdict = resource_type(TEST).judge(thing(TEST, given, action=action), now)
    assert (verdict.condition, verdict.due_at) == (condition, due_at)
    if condition is BROKEN:
        assert (verdict.remedy, verdict.reason) == (Remedy.MANUAL, "Test Resource failed res")


DRIFT: list[tuple[str, str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ("renamed", SERVER, {"name": "web"}, {"name": "bew"}, ("name",)),
    ("a name left to us is not the user's", SERVER, {}, {"name": "other"}, ()),
    ("metadata changed", SERVER, {"metadata": {"a": "1"}}, {"metadata": {"a": "2"}}, ("metadata",)),
    ("metadata removed", SERVER, {"metadata": {"a": "1"}}, {"metadata": {}}, ("metadata",)),
    ("metadata of others", SERVER, {"metadata": {"a": 1}}, {"metadata": {"a": "1", "token": "t"}}, ()),
    ("tags removed", SERVER, {"tags": ["a", "b"]}, {"tags": ["a"]}, ("tags",)),
    ("tags in any order, with others", SERVER, {"tags": ["a", "b"]}, {"tags": ["x", "b", "a"]}, ()),
    ("flavor told by its id", SERVER, {}, {"flavor": ID_A}, ()),
    ("image told by its id", SERVER, {}, {"image": ID_A}, ()),
    ("networks are not compared", SERVER, {"networks": [{"network": "n"}]}, {"networks": []}, ()),
    ("user data is not compared", SERVER, {"user_data": "#!/bin/sh"}, {"user_data": "IyEvYmlu"}, ()),
    ("switched off", NET, {}, {"admin_state_up": False}, ("admin_state_up",)),
    ("switched off, as wanted", NET, {"admin_state_up": False}, {"admin_state_up": "False"}, ()),
    ("null: the cloud does not say", NET, {"dns_domain": "a.org."}, {"dns_domain": None}, ()),
    ("policy by name", NET, {"qos_policy": "gold"}, {"qos_policy_id": ID_A}, ()),
    ("another policy", NET, {"qos_policy": ID_B}, {"qos_policy_id": ID_A}, ("qos_policy",)),
    ("policy taken away", NET, {"qos_policy": "gold"}, {"qos_policy_id": None}, ("qos_policy",)),
    (
        "servers in another order",
        "OS::Neutron::Subnet",
        {"dns_nameservers": ["1.1.1.1", "9.9.9.9"]},
        {"dns_nameservers": ["9.9.9.9", "1.1.1.1"]},
        ("dns_nameservers",),
    ),
    (
        "a server less",
        "OS::Neutron::Subnet",
        {"dns_nameservers": ["1.1.1.1", "9.9.9.9"]},
        {"dns_nameservers": ["9.9.9.9"]},
        ("dns_nameservers",),
    ),
    ("servers of the cloud's own", "OS::Neutron::Subnet", {}, {"dns_nameservers": ["9.9.9.9"]}, ()),
    ("gateway chosen by the cloud", "OS::Neutron::Subnet", {}, {"gateway_ip": "10.0.0.1"}, ()),
    ("groups by name", PORT, {"security_groups": ["web"]}, {"security_groups": [ID_A]}, ()),
    (
        "groups in any order",
        PORT,
        {"security_groups": [ID_A, ID_B]},
        {"security_groups": [ID_B, ID_A]},
        (),
    ),
    ("another group", PORT, {"security_groups": [ID_A]}, {"security_groups": [ID_B]}, ("security_groups",)),
    ("no group", PORT, {"security_groups": ["web"]}, {"security_groups": []}, ("security_groups",)),
    ("the default group", PORT, {}, {"security_groups": [ID_B]}, ()),
    ("used by a server", PORT, {}, {"device_id": ID_A, "device_owner": "compute:nova"}, ()),
    (
        "address translated by the cloud",
        PORT,
        {"fixed_ips": [{"subnet": ID_A, "ip_address": "10.0.0.5"}]},
        {"fixed_ips": [{"subnet_id": ID_A, "ip_address": "127.0.5.5"}]},
        (),
    ),
    (
        "address on another subnet",
        PORT,
        {"fixed_ips": [{"subnet": ID_A}]},
        {"fixed_ips": [{"subnet_id": ID_B, "ip_address": "10.0.0.5"}]},
        ("fixed_ips",),
    ),
    (
        "pairs with the cloud's own MAC address",
        PORT,
        {"allowed_address_pairs": [{"ip_address": "10.0.0.9"}]},
        {"allowed_address_pairs": [{"ip_address": "10.0.0.9", "mac_address": "aa:bb:cc:dd:ee:ff"}]},
        (),
    ),
    (
        "gateway taken away",
        "OS::Neutron::Router",
        {"external_gateway_info": {"network": "public"}},
        {"external_gateway_info": None},
        ("external_gateway_info",),
    ),
    (
        "gateway with the cloud's own address",
        "OS::Neutron::Router",
        {"external_gateway_info": {"network": "public"}},
        {"external_gateway_info": {"network_id": ID_A, "enable_snat": True, "external_fixed_ips": [{}]}},
        (),
    ),
    (
        "translation switched off",
        "OS::Neutron::Router",
        {"external_gateway_info": {"network": "public", "enable_snat": True}},
        {"external_gateway_info": {"network_id": ID_A, "enable_snat": False}},
        ("external_gateway_info",),
    ),
    ("led elsewhere", "OS::Neutron::FloatingIP", {"port_id": ID_A}, {"port_id": ID_B}, ("port_id",)),
    ("led nowhere", "OS::Neutron::FloatingIP", {"port_id": ID_A}, {"port_id": None}, ("port_id",)),
    ("led by an association", "OS::Neutron::FloatingIP", {}, {"port_id": ID_A}, ()),
    ("let go of", "OS::Neutron::FloatingIPAssociation", {}, {"port_id": ""}, ("port_id",)),
    ("grown outside", VOLUME, {"size": 10}, {"size": "20"}, ()),
    ("smaller than wanted", VOLUME, {"size": 10}, {"size": 5}, ("size",)),
    ("the same size as text", VOLUME, {"size": 10}, {"size": "10"}, ()),
    ("type told by its id", VOLUME, {"volume_type": "fast"}, {"volume_type": ID_A}, ()),
    ("device chosen by the server", ATTACHMENT, {"mountpoint": "/dev/vdb"}, {"mountpoint": "/dev/vdc"}, ()),
    ("attached elsewhere", ATTACHMENT, {}, {"instance_uuid": ID_B}, ("instance_uuid",)),
    ("weight changed", MEMBER, {"weight": 3}, {"weight": 1}, ("weight",)),
    ("limit by default", LISTENER, {}, {"connection_limit": 5}, ("connection_limit",)),
    ("pool by name", LISTENER, {"default_pool": "web"}, {"default_pool": ID_A}, ()),
    (
        "persistence with the cloud's nulls",
        POOL,
        {"session_persistence": {"type": "SOURCE_IP"}},
        {"session_persistence": {"type": "SOURCE_IP", "cookie_name": None}},
        (),
    ),
    ("a named port is detached", SERVER, {"networks": [{"port": ID_A}]}, {"ports": []}, ("networks",)),
    ("a named port is there", SERVER, {"networks": [{"port": ID_A}]}, {"ports": [{"id": ID_A, "name": "p"}]}, ()),
    ("it is named by its name", SERVER, {"networks": [{"port": "p"}]}, {"ports": [{"id": ID_A, "name": "p"}]}, ()),
    (
        "its id without dashes",
        SERVER,
        {"networks": [{"port": ID_A.replace("-", "")}]},
        {"ports": [{"id": ID_A, "name": ""}]},
        (),
    ),
    ("ports that are not told", SERVER, {"networks": [{"port": ID_A}]}, {"addresses": {}}, ()),
    (
        "further ports",
        SERVER,
        {"networks": [{"port": ID_A}]},
        {"ports": [{"id": ID_A, "name": ""}, {"id": ID_B, "name": ""}]},
        (),
    ),
    ("a further field", NET, {"value_specs": {"mtu": "1400"}}, {"mtu": 1500}, ("value_specs",)),
    ("the same further field", NET, {"value_specs": {"mtu": "1400"}}, {"mtu": 1400}, ()),
    ("a further field that is not told", NET, {"value_specs": {"mtu": "1400", "x": 1}}, {"mtu": 1400, "x": None}, ()),
    ("a further field that was left open", PORT, {"value_specs": {"dns_domain": None}}, {"dns_domain": "a."}, ()),
    (
        "further fields that are fixed",
        "OS::Neutron::FloatingIP",
        {"value_specs": {"description": "a"}},
        {"description": "b"},
        (),
    ),
    ("the service's own things do not drift", TEST, {"value": "a"}, {"value": "b"}, ()),
]


@pytest.mark.parametrize(
    ("type_name", "given", "seen", "drifted"),
    [case[1:] for case in DRIFT],
    ids=[f"{case[1]}: {case[0]}" for case in DRIFT],
)
def test_drift(type_name: str, given: dict[str, Any], seen: dict[str, Any], drifted: tuple[str, ...]) -> None:
    verdict = resource_type(type_name).judge(thing(type_name, given, seen), 200.0)
    assert verdict.drifted == drifted
    if drifted:
        assert (verdict.condition, verdict.remedy) == (Condition.DRIFTED, Remedy.UPDATE)
        assert all(name in verdict.reason for name in drifted)
    else:
        assert verdict.condition is READY


WAITING = {"OS::Heat::WaitCondition", "OS::Heat::SwiftSignal", "AWS::CloudFormation::WaitCondition"}
"""They are ready by what is told to their handles, see `test_resource_signals`."""


@pytest.mark.parametrize("type_name", sorted(MINIMAL.keys() - WAITING))
def test_what_was_asked_for_is_no_drift(type_name: str) -> None:
    assert resource_type(type_name).judge(thing(type_name), 200.0).condition is READY


CHANGES: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    ("resized", SERVER, {}, {"flavor": "m1.large"}, ""),
    ("replaced for a flavor", SERVER, {}, {"flavor": "l", "flavor_update_policy": "REPLACE"}, "flavor_update_policy"),
    ("rebuilt", SERVER, {}, {"image": "alpine"}, ""),
    ("rebuilt, disk kept", SERVER, {}, {"image": "x", "image_update_policy": "REBUILD_PRESERVE_EPHEMERAL"}, ""),
    ("replaced for an image", SERVER, {}, {"image": "x", "image_update_policy": "REPLACE"}, "image_update_policy"),
    (
        "from an image to a volume",
        SERVER,
        {"block_device_mapping_v2": [{"volume_id": "v"}]},
        {"image": "", "block_device_mapping_v2": [{"volume_id": "v"}]},
        "between image and volume",
    ),
    ("new user data", SERVER, {}, {"user_data": "x"}, "user_data_update_policy"),
    ("new user data, ignored", SERVER, {}, {"user_data": "x", "user_data_update_policy": "IGNORE"}, ""),
    ("new user data, rebuilt", SERVER, {}, {"user_data": "x", "user_data_update_policy": "REBUILD"}, ""),
    ("another key", SERVER, {}, {"key_name": "k"}, "key_name cannot change in place"),
    ("another name", SERVER, {}, {"name": "n"}, ""),
    ("networks in place", SERVER, {}, {"networks": [{"network": "n"}]}, ""),
    ("a policy alone", SERVER, {}, {"flavor_update_policy": "REPLACE"}, ""),
    ("another network", PORT, {}, {"network": "other"}, "network cannot change in place"),
    ("another range", "OS::Neutron::Subnet", {}, {"cidr": "10.9.0.0/16"}, "cidr cannot change in place"),
    ("led elsewhere", "OS::Neutron::FloatingIPAssociation", {}, {"port_id": ID_A}, ""),
    ("attached elsewhere", ATTACHMENT, {}, {"instance_uuid": ID_B, "volume_id": ID_A, "mountpoint": "/dev/vdb"}, ""),
    ("grown", VOLUME, {"size": 1}, {"size": 2}, ""),
    ("another image", VOLUME, {}, {"image": "i"}, "image cannot change in place"),
    ("smaller, but replaced anyhow", VOLUME, {"size": 2}, {"size": 1, "image": "i"}, "image cannot change in place"),
    ("another algorithm", POOL, {}, {"lb_algorithm": "SOURCE_IP"}, ""),
    ("another address", MEMBER, {}, {"address": "10.0.0.6"}, "address cannot change in place"),
    ("another value", TEST, {}, {"value": "x"}, ""),
    ("another value, replaced", TEST, {}, {"value": "x", "update_replace": True}, "update_replace is set"),
    ("replacing is set alone", TEST, {}, {"update_replace": True}, ""),
    ("replace value", TEST, {}, {"update_replace_value": "x"}, "update_replace_value cannot change in place"),
    ("more random", "OS::Heat::RandomString", {}, {"length": 8}, "length cannot change in place"),
    ("new salt", "OS::Heat::RandomString", {}, {"salt": "x"}, "salt cannot change in place"),
    ("another type of value", "OS::Heat::Value", {}, {"value": "1", "type": "number"}, ""),
    ("nothing is nothing", "OS::Heat::None", {"a": 1}, {"b": 2}, ""),
    ("more members", GROUP, {}, {"count": 5}, ""),
    ("other members", GROUP, {}, {"resource_def": {"type": "OS::Heat::Value"}}, ""),
    ("fewer of them", GROUP, {}, {"removal_policies": [{"resource_list": [1]}]}, ""),
    ("another index", GROUP, {}, {"index_var": "###"}, "index_var cannot change in place"),
]


def change(type_name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    kind = resource_type(type_name)
    old = kind.complete(kind.check({**MINIMAL[type_name], **before}))
    new = kind.complete(kind.check({**MINIMAL[type_name], **after}))
    return kind.replacement_reason(old, new, frozenset(name for name in old | new if old.get(name) != new.get(name)))


@pytest.mark.parametrize(
    ("type_name", "before", "after", "reason"),
    [case[1:] for case in CHANGES],
    ids=[f"{case[1]}: {case[0]}" for case in CHANGES],
)
def test_replaced_by(type_name: str, before: dict[str, Any], after: dict[str, Any], reason: str) -> None:
    found = change(type_name, before, after)
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_volume_is_never_shrunk_by_replacing_it() -> None:
    with pytest.raises(Terminal, match="from 2 to 1 GiB"):
        change(VOLUME, {"size": 2}, {"size": 1})


def test_observed_properties_are_those_that_are_set() -> None:
    seen = resource_type(PORT).observed_properties(thing(PORT, {"name": "p"}, {"name": "q", "mac_address": "m"}))
    assert seen["name"] == "q"
    assert seen["network"] == "net"
    assert "mac_address" not in seen
