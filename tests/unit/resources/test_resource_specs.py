"""From properties to the objects of a cloud, and what is refused before anything exists."""

from typing import Any

import pytest
from tests.unit.resources.resource_cases import MINIMAL

from homeostat.model.errors import Rejected
from homeostat.resources.registry import resource_type
from homeostat.resources.schema import UNKNOWN

SERVER, PORT, SUBNET = "OS::Nova::Server", "OS::Neutron::Port", "OS::Neutron::Subnet"
ROUTER, GROUP, VOLUME = "OS::Neutron::Router", "OS::Neutron::SecurityGroup", "OS::Cinder::Volume"

SPECS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("physical name when none is given", "OS::Neutron::Net", {}, {"name": "stack-res-abc"}),
    ("given name", "OS::Neutron::Net", {"name": "lan"}, {"name": "lan"}),
    ("null name is the physical one", "OS::Neutron::Net", {"name": None}, {"name": "stack-res-abc"}),
    (
        "value_specs are fields of the object",
        "OS::Neutron::Net",
        {"value_specs": {"mtu": 1400}},
        {"mtu": 1400, "value_specs": None},
    ),
    ("the network by the cloud's word", PORT, {}, {"network_id": "net", "network": None}),
    (
        "addresses by the cloud's word, without nulls",
        PORT,
        {"fixed_ips": [{"subnet": "s", "ip_address": None}]},
        {"fixed_ips": [{"subnet_id": "s"}]},
    ),
    (
        "addresses on a subnet as old templates say it",
        PORT,
        {"fixed_ips": [{"subnet_id": "s", "subnet": None}]},
        {"fixed_ips": [{"subnet_id": "s"}]},
    ),
    ("no addresses", PORT, {"no_fixed_ips": True}, {"fixed_ips": [], "no_fixed_ips": None}),
    ("no policy of the service's own", PORT, {}, {"replacement_policy": None}),
    ("no gateway", SUBNET, {"gateway_ip": ""}, {"gateway_ip": None}),
    ("null means no gateway too", SUBNET, {"gateway_ip": None}, {"gateway_ip": None}),
    (
        "gateway of a router",
        ROUTER,
        {"external_gateway_info": {"network": "pub", "external_fixed_ips": [{"subnet": "s"}]}},
        {"external_gateway_info": {"network_id": "pub", "external_fixed_ips": [{"subnet_id": "s"}]}},
    ),
    ("one agent is a list of one", ROUTER, {"l3_agent_id": "a"}, {"l3_agent_ids": ["a"], "l3_agent_id": None}),
    (
        "ends of an interface",
        "OS::Neutron::RouterInterface",
        {},
        {"router_id": "r1", "subnet_id": "s1", "port_id": None},
    ),
    (
        "network of a floating IP",
        "OS::Neutron::FloatingIP",
        {"fixed_ip_address": None},
        {"floating_network_id": "public", "fixed_ip_address": None},
    ),
    (
        "rule for a network",
        GROUP,
        {"rules": [{"protocol": "tcp", "port_range_min": 22, "port_range_max": "22"}]},
        {
            "rules": [
                {
                    "direction": "ingress",
                    "ethertype": "IPv4",
                    "protocol": "tcp",
                    "port_range_min": 22,
                    "port_range_max": 22,
                }
            ]
        },
    ),
    (
        "rule for the group itself",
        GROUP,
        {"rules": [{"remote_mode": "remote_group_id", "remote_ip_prefix": "10.0.0.0/8"}]},
        {"rules": [{"direction": "ingress", "ethertype": "IPv4", "remote_group_id": ""}]},
    ),
    ("image of a volume by its old name", VOLUME, {"imageRef": "i"}, {"image": "i", "imageRef": None, "size": 1}),
    ("metadata as text", SERVER, {"metadata": {"a": 1, "b": "x"}}, {"metadata": {"a": "1", "b": "x"}}),
    (
        "networks without what is not said",
        SERVER,
        {"networks": [{"network": "n", "fixed_ip": "10.0.0.9"}, {"port": "p"}]},
        {"networks": [{"network": "n", "fixed_ip": "10.0.0.9"}, {"port": "p"}]},
    ),
    (
        "a network by its old name",
        SERVER,
        {"networks": [{"uuid": "n"}, {"uuid": None, "port": "p"}]},
        {"networks": [{"network": "n"}, {"port": "p"}]},
    ),
    (
        "words in any case",
        GROUP,
        {"rules": [{"protocol": "TCP", "direction": "Ingress", "ethertype": "ipv4"}]},
        {"rules": [{"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}]},
    ),
    (
        "first volume of the new form boots",
        SERVER,
        {"block_device_mapping_v2": [{"volume_id": "v"}, {"swap_size": 64}]},
        {"block_device_mapping": [{"boot_index": 0, "volume_id": "v"}, {"boot_index": -1, "swap_size": 64}]},
    ),
    (
        "vda of the old form boots",
        SERVER,
        {"block_device_mapping": [{"device_name": "vda", "volume_id": "v"}]},
        {"block_device_mapping": [{"device_name": "vda", "volume_id": "v", "boot_index": 0}]},
    ),
    ("policies stay in the service", SERVER, {}, {"flavor_update_policy": None, "user_data_update_policy": None}),
    (
        "a rebuild that keeps the ephemeral disk",
        SERVER,
        {"image_update_policy": "REBUILD_PRESERVE_EPHEMERAL"},
        {"preserve_ephemeral": True},
    ),
    ("user data of the first boot", SERVER, {"user_data_update_policy": "IGNORE"}, {"keeps_user_data": True}),
    ("no private matters of a key pair", "OS::Nova::KeyPair", {}, {"name": "me", "save_private_key": None}),
    (
        "persistence without a cookie",
        "OS::Octavia::Pool",
        {"session_persistence": {"type": "SOURCE_IP"}},
        {"session_persistence": {"type": "SOURCE_IP"}},
    ),
]


@pytest.mark.parametrize(("type_name", "given", "wanted"), [case[1:] for case in SPECS], ids=[c[0] for c in SPECS])
def test_spec(type_name: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    kind = resource_type(type_name)
    spec = kind.spec(kind.complete(kind.check({**MINIMAL[type_name], **given})), "stack-res-abc")
    assert {name: spec.get(name) for name in wanted} == wanted


def test_a_gateway_that_is_left_to_the_cloud_is_not_in_the_spec() -> None:
    kind = resource_type(SUBNET)
    assert "gateway_ip" not in kind.spec(kind.complete(kind.check(MINIMAL[SUBNET])), "x")
    assert "gateway_ip" in kind.spec(kind.complete(kind.check({**MINIMAL[SUBNET], "gateway_ip": None})), "x")


def test_a_long_physical_name_of_a_server_keeps_its_end() -> None:
    kind = resource_type(SERVER)
    spec = kind.spec(kind.complete(kind.check(MINIMAL[SERVER])), "st" + "x" * 60 + "-abcdefghijkl")
    assert len(spec["name"]) == 53
    assert spec["name"].startswith("st-")
    assert spec["name"].endswith("-abcdefghijkl")


TOGETHER = "Cannot define the following properties at the same time: "

REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("both twins", PORT, {"network": "a", "network_id": "b"}, TOGETHER + "network, network_id"),
    ("neither twin", PORT, {}, "Property network not assigned"),
    ("addresses and none", PORT, {"network": "n", "fixed_ips": [{"subnet": "s"}], "no_fixed_ips": True}, TOGETHER),
    ("bad address", PORT, {"network": "n", "fixed_ips": [{"ip_address": "10.0.0"}]}, "not an IP address"),
    (
        "tags of a server that differ in case",
        SERVER,
        {"flavor": "f", "image": "i", "tags": ["b", "a", "A"]},
        "a and A differ in case alone",
    ),
    (
        "tags of an image that differ in case",
        "OS::Glance::WebImage",
        {"disk_format": "raw", "container_format": "bare", "location": "http://a", "tags": ["x", "X"]},
        "x and X differ in case alone",
    ),
    ("bad MAC address", PORT, {"network": "n", "mac_address": "00:11"}, "not a MAC address"),
    ("no range", SUBNET, {"network": "n"}, "One of these properties is needed: cidr, subnetpool"),
    ("two ranges", SUBNET, {"network": "n", "cidr": "10.0.0.0/8", "subnetpool": "p"}, TOGETHER + "cidr, subnetpool"),
    ("no mask", SUBNET, {"network": "n", "cidr": "10.0.0.0"}, "not a network such as"),
    ("prefix without a pool", SUBNET, {"network": "n", "cidr": "10.0.0.0/8", "prefixlen": 24}, "needs a subnetpool"),
    (
        "mode of the other version",
        SUBNET,
        {"network": "n", "cidr": "10.0.0.0/8", "ipv6_ra_mode": "slaac"},
        "need ip_version 6",
    ),
    (
        "modes that differ",
        SUBNET,
        {
            "network": "n",
            "cidr": "fd00::/64",
            "ip_version": 6,
            "ipv6_ra_mode": "slaac",
            "ipv6_address_mode": "dhcpv6-stateful",
        },
        "must be equal",
    ),
    ("two of a kind", ROUTER, {"l3_agent_id": "a", "l3_agent_ids": ["b"]}, TOGETHER + "l3_agent_id, l3_agent_ids"),
    ("distributed and ha", ROUTER, {"distributed": True, "ha": True}, TOGETHER + "distributed, ha"),
    ("distributed with agents", ROUTER, {"distributed": True, "l3_agent_ids": ["a"]}, TOGETHER + "distributed"),
    ("many agents, not ha", ROUTER, {"l3_agent_ids": ["a", "b"]}, "set ha"),
    ("no end", "OS::Neutron::RouterInterface", {"router": "r"}, "One of these properties is needed: subnet, port"),
    ("two ends", "OS::Neutron::RouterInterface", {"router": "r", "subnet_id": "s", "port": "p"}, TOGETHER),
    ("reserved name", GROUP, {"name": "default"}, "choose another"),
    ("port out of range", GROUP, {"rules": [{"port_range_min": 70000}]}, "70000 is out of range"),
    ("no size", VOLUME, {"image": "i"}, "size is needed"),
    ("two sources", VOLUME, {"size": 1, "image": "i", "snapshot_id": "s"}, TOGETHER + "image, snapshot_id"),
    ("empty volume", VOLUME, {"size": 0}, "0 is out of range"),
    ("nothing to boot", SERVER, {"flavor": "f"}, "Neither image nor a bootable volume"),
    (
        "only a disk that does not boot",
        SERVER,
        {"flavor": "f", "block_device_mapping_v2": [{"swap_size": 1}]},
        "Neither image nor a bootable volume",
    ),
    (
        "both forms of devices",
        SERVER,
        {
            "flavor": "f",
            "block_device_mapping": [{"device_name": "vda", "volume_id": "v"}],
            "block_device_mapping_v2": [{"volume_id": "v"}],
        },
        TOGETHER + "block_device_mapping, block_device_mapping_v2",
    ),
    (
        "device of two sources",
        SERVER,
        {"flavor": "f", "block_device_mapping_v2": [{"volume_id": "v", "image": "i"}]},
        TOGETHER + "volume_id, image",
    ),
    (
        "groups of explicit ports",
        SERVER,
        {"flavor": "f", "image": "i", "security_groups": ["g"], "networks": [{"port": "p"}]},
        TOGETHER + "security_groups, networks/port",
    ),
    (
        "a network by two names",
        SERVER,
        {"flavor": "f", "image": "i", "networks": [{"network": "n", "uuid": "m"}]},
        "resources.r.networks[0]: " + TOGETHER + "network, uuid",
    ),
    ("no protocol", GROUP, {"rules": [{"protocol": "TPC"}]}, "'vrrp'], or one of 256 others"),
    ("network that says nothing", SERVER, {"flavor": "f", "image": "i", "networks": [{}]}, "is needed for each"),
    (
        "no network beside one",
        SERVER,
        {"flavor": "f", "image": "i", "networks": [{"allocate_network": "none"}, {"network": "n"}]},
        "only entry",
    ),
    (
        "chosen and given",
        SERVER,
        {"flavor": "f", "image": "i", "networks": [{"allocate_network": "auto", "network": "n"}]},
        TOGETHER + "allocate_network, network",
    ),
    ("unknown property", SERVER, {"flavor": "f", "image": "i", "colour": "red"}, "Unknown Property colour"),
    (
        "no certificate",
        "OS::Octavia::Listener",
        {"protocol": "TERMINATED_HTTPS", "protocol_port": 443, "loadbalancer": "l"},
        "default_tls_container_ref is needed",
    ),
    (
        "pool of nothing",
        "OS::Octavia::Pool",
        {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"},
        "One of these properties is needed: listener, loadbalancer",
    ),
    (
        "cookie without a name",
        "OS::Octavia::Pool",
        {**MINIMAL["OS::Octavia::Pool"], "session_persistence": {"type": "APP_COOKIE"}},
        "cookie_name is needed",
    ),
    (
        "cookie where there is none",
        "OS::Octavia::Pool",
        {**MINIMAL["OS::Octavia::Pool"], "session_persistence": {"type": "SOURCE_IP", "cookie_name": "c"}},
        "must not be given",
    ),
    (
        "sum of minimums",
        "OS::Heat::RandomString",
        {"length": 3, "character_classes": [{"class": "digits", "min": 4}]},
        "length (3) is less than",
    ),
    ("not a number", "OS::Heat::Value", {"type": "number", "value": "x"}, "resources.r.value: Value 'x'"),
    ("not JSON", "OS::Heat::Value", {"type": "json", "value": "{"}, "JSON text"),
    ("JSON of a number", "OS::Heat::Value", {"type": "json", "value": "1"}, "must hold a map or a list"),
    ("no definition", "OS::Heat::ResourceGroup", {}, "Property resource_def not assigned"),
    ("no type", "OS::Heat::ResourceGroup", {"resource_def": {}}, "Property type not assigned"),
]


@pytest.mark.parametrize(("type_name", "given", "text"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(type_name: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(Rejected) as raised:
        resource_type(type_name).check(given, ("resources", "r"))
    assert raised.value.fault == "StackValidationFailed"
    assert "resources.r" in str(raised.value)
    assert text in str(raised.value)


ACCEPTED: list[tuple[str, str, dict[str, Any]]] = [
    ("a twin alone", PORT, {"network_id": "n"}),
    ("a null twin", PORT, {"network": "n", "network_id": None}),
    ("a volume to boot from", SERVER, {"flavor": "f", "block_device_mapping_v2": [{"volume_id": UNKNOWN}]}),
    ("an unknown image", SERVER, {"flavor": UNKNOWN, "image": UNKNOWN}),
    ("unknown devices", SERVER, {"flavor": "f", "block_device_mapping_v2": UNKNOWN}),
    ("unknown networks", SERVER, {"flavor": "f", "image": "i", "networks": UNKNOWN}),
    ("an unknown network", SERVER, {"flavor": "f", "image": "i", "networks": [UNKNOWN]}),
    ("an unknown port", SERVER, {"flavor": "f", "image": "i", "networks": [{"port": UNKNOWN}]}),
    ("an unknown mode", SUBNET, {"network": UNKNOWN, "cidr": UNKNOWN, "ipv6_ra_mode": UNKNOWN}),
    ("an unknown size", VOLUME, {"size": UNKNOWN}),
    ("a volume from a snapshot", VOLUME, {"snapshot_id": "s"}),
    ("a volume from a backup", VOLUME, {"backup_id": "b"}),
    ("an unknown length", "OS::Heat::RandomString", {"length": UNKNOWN}),
    ("unknown classes", "OS::Heat::RandomString", {"character_classes": UNKNOWN}),
    ("an unknown value", "OS::Heat::Value", {"value": UNKNOWN, "type": "number"}),
    ("an unknown type", "OS::Heat::Value", {"value": "x", "type": UNKNOWN}),
    ("anything", "OS::Heat::None", {"what": "ever", "you": ["like"]}),
]


@pytest.mark.parametrize(("type_name", "given"), [case[1:] for case in ACCEPTED], ids=[c[0] for c in ACCEPTED])
def test_accepted(type_name: str, given: dict[str, Any]) -> None:
    resource_type(type_name).check(given, ("resources", "r"))


def test_twins_are_gone_after_the_check() -> None:
    kind = resource_type(PORT)
    assert kind.check({"network_id": "n"}) == {"network": "n"}
    assert "network_id" not in kind.complete({"network": "n"})
