"""References, attributes and the objects of types that live in the service alone."""

import json
from random import Random
from typing import Any

import pytest
from tests.unit.resources.resource_cases import ID_A, MINIMAL, thing

from homeostat.resources.base import Thing
from homeostat.resources.families.heat import CHARACTERS
from homeostat.resources.registry import resource_type

SERVER, VOLUME, VALUE = "OS::Nova::Server", "OS::Cinder::Volume", "OS::Heat::Value"
INTERFACE, RANDOM = "OS::Neutron::RouterInterface", "OS::Heat::RandomString"

REFERENCES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (SERVER, {}, {}, "h-1"),
    ("OS::Nova::KeyPair", {"name": "mine"}, {}, "mine"),
    (INTERFACE, {}, {"router_id": ID_A, "subnet_id": "s-9"}, f"{ID_A}:subnet_id=s-9"),
    (INTERFACE, {"subnet": None, "port": "p"}, {"port_id": "p-9", "subnet_id": "s-9"}, "r1:port_id=p-9"),
    (INTERFACE, {}, {"router_id": None, "subnet_id": None}, "r1:subnet_id=s1"),
    ("OS::Neutron::FloatingIPAssociation", {}, {}, "abcdefghijkl"),
    (RANDOM, {}, {"value": "x7"}, "x7"),
    ("OS::Heat::ResourceGroup", {}, {}, "h-1"),
]


@pytest.mark.parametrize(("type_name", "given", "seen", "wanted"), REFERENCES)
def test_reference(type_name: str, given: dict[str, Any], seen: dict[str, Any], wanted: str) -> None:
    assert resource_type(type_name).reference(thing(type_name, given, seen)) == wanted


@pytest.mark.parametrize("type_name", sorted(MINIMAL))
def test_before_its_creation_a_reference_is_the_name(type_name: str) -> None:
    assert resource_type(type_name).reference(thing(type_name, handle="")) == "res"


ADDRESSES = {"lan": [{"addr": "10.0.0.5", "version": 4, "port": "p-1", "mac": "aa:bb", "network": ID_A}]}
SHOWN = [{"OS-EXT-IPS-MAC:mac_addr": "aa:bb", "OS-EXT-IPS:type": "fixed", **ADDRESSES["lan"][0]}]

ATTRIBUTES: list[tuple[str, dict[str, Any], dict[str, Any], str, Any]] = [
    (SERVER, {}, {"addresses": ADDRESSES}, "networks", {"lan": ["10.0.0.5"], ID_A: ["10.0.0.5"]}),
    (SERVER, {}, {"addresses": ADDRESSES}, "addresses", {"lan": SHOWN, ID_A: SHOWN}),
    (SERVER, {}, {"addresses": ADDRESSES}, "first_address", "10.0.0.5"),
    (SERVER, {}, {}, "first_address", ""),
    (SERVER, {}, {"name": "web"}, "name", "web"),
    (SERVER, {}, {"access_ipv4": "192.0.2.1"}, "accessIPv4", "192.0.2.1"),
    (SERVER, {}, {}, "accessIPv4", ""),
    (SERVER, {}, {}, "console_urls", {}),
    (SERVER, {}, {"tags": ["a"]}, "tags", ["a"]),
    ("OS::Nova::KeyPair", {}, {"private_key": "secret"}, "private_key", ""),
    ("OS::Nova::KeyPair", {"save_private_key": True}, {"private_key": "secret"}, "private_key", "secret"),
    ("OS::Nova::KeyPair", {"save_private_key": True}, {}, "private_key", ""),
    ("OS::Neutron::Net", {}, {"subnets": ["s"]}, "subnets", ["s"]),
    ("OS::Neutron::FloatingIP", {}, {"floating_ip_address": "192.0.2.7"}, "floating_ip_address", "192.0.2.7"),
    (VOLUME, {"name": "data"}, {}, "display_name", "data"),
    (VOLUME, {"metadata": {"a": "b"}}, {}, "metadata", '{"a": "b"}'),
    (VOLUME, {"metadata": {"a": "b"}}, {}, "metadata_values", {"a": "b"}),
    (VOLUME, {"size": 3}, {}, "size", "3"),
    (VOLUME, {}, {"attachments": [{"id": "x"}]}, "attachments_list", [{"id": "x"}]),
    (VOLUME, {}, {"attachments": [{"id": "x"}]}, "attachments", '[{"id": "x"}]'),
    (VOLUME, {}, {}, "snapshot_id", None),
    ("OS::Octavia::LoadBalancer", {}, {}, "vip_subnet_id", "s1"),
    ("OS::Octavia::LoadBalancer", {}, {"vip_address": "10.0.0.2"}, "vip_address", "10.0.0.2"),
    ("OS::Octavia::Listener", {}, {}, "loadbalancers", ["lb"]),
    ("OS::Octavia::Listener", {}, {"loadbalancers": [{"id": "l"}]}, "loadbalancers", [{"id": "l"}]),
    ("OS::Octavia::Listener", {"default_pool": "p"}, {}, "default_pool_id", "p"),
    ("OS::Octavia::Pool", {}, {}, "listeners", ["li"]),
    ("OS::Octavia::Pool", {}, {"members": ["m"]}, "members", ["m"]),
    ("OS::Octavia::HealthMonitor", {}, {}, "pools", ["p"]),
    ("OS::Heat::TestResource", {"value": "v"}, {}, "output", "v"),
    ("OS::Heat::None", {}, {}, "anything", None),
    (VALUE, {"value": {"a": [1]}}, {}, "value", {"a": [1]}),
    (VALUE, {"value": "5", "type": "number"}, {}, "value", 5),
    (VALUE, {"value": 5, "type": "string"}, {}, "value", "5"),
    (VALUE, {"value": "a, b", "type": "comma_delimited_list"}, {}, "value", ["a", "b"]),
    (VALUE, {"value": "", "type": "comma_delimited_list"}, {}, "value", []),
    (VALUE, {"value": '{"a": 1}', "type": "json"}, {}, "value", {"a": 1}),
    (VALUE, {"value": "true", "type": "boolean"}, {}, "value", True),
    (VALUE, {"value": None}, {}, "value", None),
    (VALUE, {"value": None, "type": "string"}, {}, "value", ""),
    (VALUE, {"value": None, "type": "json"}, {}, "value", {}),
    (VALUE, {"value": None, "type": "number"}, {}, "value", 0),
]


@pytest.mark.parametrize(("type_name", "given", "seen", "name", "wanted"), ATTRIBUTES)
def test_attribute(type_name: str, given: dict[str, Any], seen: dict[str, Any], name: str, wanted: Any) -> None:
    assert resource_type(type_name).attribute(thing(type_name, given, seen), name) == wanted


def test_show_keeps_a_private_key_to_itself() -> None:
    kind = resource_type("OS::Nova::KeyPair")
    assert kind.attribute(thing("OS::Nova::KeyPair", {}, {"private_key": "secret", "id": "me"}), "show") == {
        "id": "me",
        "name": "me",
    }


RANDOMS: list[tuple[dict[str, Any], int, dict[str, int], str]] = [
    ({}, 32, {"lettersdigits": 32}, "32 letters and digits by default"),
    ({"length": 1}, 1, {"lettersdigits": 1}, "the shortest"),
    ({"length": 512}, 512, {"lettersdigits": 512}, "the longest"),
    ({"length": 9, "sequence": "digits"}, 9, {"digits": 9}, "the old way to name a class"),
    (
        {"length": 8, "character_classes": [{"class": "uppercase", "min": 3}, {"class": "digits", "min": 5}]},
        8,
        {"uppercase": 3, "digits": 5},
        "minimums that fill it",
    ),
    (
        {"length": 20, "character_classes": [{"class": "octdigits"}, {"class": "lowercase", "min": 2}]},
        20,
        {"octdigits": 1, "lowercase": 2},
        "the rest from any class",
    ),
]


@pytest.mark.parametrize(("given", "length", "minimums", "reason"), RANDOMS, ids=[case[3] for case in RANDOMS])
def test_random_string(given: dict[str, Any], length: int, minimums: dict[str, int], reason: str) -> None:
    kind = resource_type(RANDOM)
    values = kind.complete(kind.check(given))
    text = kind.build_object(values, "token", Random(7).randbytes)["value"]
    assert len(text) == length
    for name, minimum in minimums.items():
        assert sum(letter in CHARACTERS[name] for letter in text) >= minimum
    assert set(text) <= set("".join(CHARACTERS[item["class"]] for item in values["character_classes"]))
    assert kind.build_object(values, "token", Random(7).randbytes)["value"] == text
    if length > 8:
        assert kind.build_object(values, "token", Random(8).randbytes)["value"] != text


def test_random_string_from_own_characters() -> None:
    kind = resource_type(RANDOM)
    given = {"length": 6, "character_classes": [], "character_sequences": [{"sequence": "+-", "min": 2}]}
    text = kind.build_object(kind.complete(kind.check(given)), "token", Random(1).randbytes)["value"]
    assert len(text) == 6
    assert set(text) <= set("+-")


def test_random_string_puts_minimums_anywhere() -> None:
    kind = resource_type(RANDOM)
    classes = [{"class": "digits", "min": 1}, {"class": "lowercase", "min": 1}]
    values = kind.complete(kind.check({"length": 4, "character_classes": classes}))
    texts = [kind.build_object(values, "t", Random(seed).randbytes)["value"] for seed in range(40)]
    assert any(text[0].isalpha() for text in texts)
    assert any(text[0].isdigit() for text in texts)


@pytest.mark.parametrize("type_name", sorted(MINIMAL))
def test_conformance(type_name: str) -> None:
    """From the least properties to a judgement and every attribute, without a hitch and in plain data."""
    kind = resource_type(type_name)
    there = thing(type_name)
    spec = kind.spec(there.properties, "stack-res-abc")
    assert json.loads(json.dumps(spec)) == spec
    assert None not in spec.values()
    assert kind.check(kind.check(MINIMAL[type_name])) == kind.check(MINIMAL[type_name])
    assert kind.complete(there.properties) == there.properties
    if not kind.kind:
        body = kind.build_object(there.properties, "token", Random(1).randbytes)
        assert json.loads(json.dumps(body)) == body
    bare = Thing(there.key, there.name, "p", there.properties, type(there.seen)(there.seen.presence, "h"), "h")
    for name in kind.attributes:
        for subject in (there, bare):
            json.dumps(kind.attribute(subject, name))
    for subject in (there, bare):
        kind.judge(subject, 0.0)
        kind.reference(subject)
        kind.observed_properties(subject)


@pytest.mark.parametrize("type_name", sorted(MINIMAL))
def test_names_of_twins_and_fields_are_declared(type_name: str) -> None:
    kind = resource_type(type_name)
    for twin, name in kind.deprecated_properties.items():
        assert kind.properties[twin].hidden
        assert name in kind.properties
    assert set(kind.renamed) <= set(kind.properties)
