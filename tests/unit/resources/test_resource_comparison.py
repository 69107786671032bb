"""The rules by which an observed value counts as the wanted one, and the named constraints."""

from typing import Any

import pytest
from tests.unit.resources.resource_cases import ID_A, ID_B

from homeostat.resources import comparison, constraints
from homeostat.resources.registry import type_of
from homeostat.resources.schema import Constraint

EQUAL: list[tuple[Any, Any, bool, str]] = [
    (1, "1", True, "number as text"),
    (1.0, 1, True, "number as number"),
    ("a", "b", False, "texts"),
    ("1.10", "1.1", True, "texts that are numbers"),
    (True, "True", True, "truth as text"),
    (True, False, False, "truth"),
    (False, 0, True, "truth as number"),
    (True, "1", False, "a number is no truth"),
    ("x", None, True, "the cloud does not say"),
    ({"a": 1}, {"a": "1", "b": 2}, True, "only wanted keys"),
    ({"a": 1, "b": None}, {"a": 1}, True, "nulls want nothing"),
    ({"a": 1}, {}, False, "a wanted key is missing"),
    ({"a": 1}, [1], False, "another shape"),
    ([1, 2], ["1", "2"], True, "items"),
    ([1, 2], [2, 1], False, "items out of order"),
    ([1], [1, 2], False, "items too many"),
    ("2001:DB8:0:0::0:1", "2001:db8::1", True, "an address of IPv6 in two ways"),
    ("2001:DB8:0::/64", "2001:db8::/64", True, "a range of IPv6 in two ways"),
    ("2001:db8::1", "2001:db8::2", False, "other addresses of IPv6"),
    ("FA:16:3E:00:00:01", "fa:16:3e:00:00:01", True, "a MAC address in two ways"),
    ("A:B", "a:b", False, "texts with a colon"),
    ("  a b ", "a b", True, "space around a text"),
    ({"m": {"x": [1]}}, {"m": "{'x': [1]}"}, True, "a map that became a text"),
    ({"m": {"x": [1]}}, {"m": "{'x': [2]}"}, False, "another map that became a text"),
]


RANGES: list[tuple[list[str], Any, bool, str]] = [
    (["10.0.0.7/8"], ["10.0.0.0/8"], True, "an address within a range"),
    (["10.0.0.0/8", "192.168.0.0/16"], ["192.168.0.0/16", "10.0.0.0/8"], True, "another order"),
    (["10.0.0.7"], ["10.0.0.7/32"], True, "an address alone"),
    (["FD00:0:0::1/64"], ["fd00::/64"], True, "a range of IPv6"),
    (["10.0.0.0/8"], ["10.0.0.0/9"], False, "another range"),
    (["10.0.0.0/8"], [], False, "none"),
    (["10.0.0.0/8"], None, True, "the cloud does not say"),
]


DISTINCT: list[tuple[list[Any], Any, bool, str]] = [
    (["10.0.0.1", "10.0.0.1"], ["10.0.0.1"], True, "one twice"),
    (["b", "a"], ["a", "b"], True, "another order"),
    (["FD00:0:0::7"], ["fd00::7"], True, "an address in another form"),
    (["a"], ["a", "b"], False, "one more"),
    (["a", "b", "b"], ["a"], False, "one less"),
    (["a"], [], False, "none"),
    (["a"], None, True, "the cloud does not say"),
]


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), DISTINCT, ids=[case[3] for case in DISTINCT])
def test_distinct(wanted: list[Any], seen: Any, same: bool, reason: str) -> None:
    assert comparison.distinct(wanted, seen) is same


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), RANGES, ids=[case[3] for case in RANGES])
def test_ranges(wanted: list[str], seen: Any, same: bool, reason: str) -> None:
    assert comparison.ranges(wanted, seen) is same


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), EQUAL, ids=[case[3] for case in EQUAL])
def test_equal(wanted: Any, seen: Any, same: bool, reason: str) -> None:
    assert comparison.equal(wanted, seen) is same


SSH = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
OUT = {"direction": "egress", "ethertype": "IPv4"}
SEEN_SSH = {**SSH, "id": "r-1", "protocol": "TCP", "port_range_min": "22", "remote_group_id": None}

ALL = {**SSH, "port_range_min": 1, "port_range_max": 65535}
OF_UDP = {"direction": "ingress", "ethertype": "IPv4", "protocol": "udp"}
OF_6 = {**OF_UDP, "ethertype": "IPv6"}
IN_RANGE = {**OF_UDP, "remote_ip_prefix": "10.0.0.0/8"}

RULES: list[tuple[list[dict[str, Any]], list[dict[str, Any]], bool, str]] = [
    ([SSH], [SEEN_SSH], True, "as wanted"),
    ([SSH], [SEEN_SSH, OUT], True, "with the cloud's own egress rule"),
    ([SSH], [], False, "taken away"),
    ([SSH], [SEEN_SSH, {**SEEN_SSH, "port_range_max": 80}], False, "one more"),
    ([SSH], [SEEN_SSH, SEEN_SSH], False, "one twice"),
    ([SSH, SSH], [SEEN_SSH], True, "wanted twice"),
    ([SSH, SSH], [SEEN_SSH, SEEN_SSH], True, "wanted and there twice"),
    ([SSH, OUT], [OUT, SEEN_SSH], True, "in any order"),
    ([SSH, {**OUT, "protocol": "udp"}], [SEEN_SSH, OUT], False, "another egress rule"),
    ([{**SSH, "remote_ip_prefix": "0.0.0.0/0"}], [SEEN_SSH], True, "anywhere is no limit"),
    ([{**SSH, "remote_ip_prefix": "10.0.0.0/8"}], [SEEN_SSH], False, "a limit lost"),
    ([{**SSH, "protocol": "6"}], [SEEN_SSH], True, "protocol by number"),
    ([{**SSH, "remote_group_id": ""}], [{**SEEN_SSH, "remote_group_id": ID_A}], True, "the group itself"),
    ([{**SSH, "remote_group_id": "web"}], [{**SEEN_SSH, "remote_group_id": ID_A}], True, "a group by name"),
    ([{**SSH, "remote_group_id": ID_B}], [{**SEEN_SSH, "remote_group_id": ID_A}], False, "another group"),
    ([{**SSH, "description": "x"}], [SEEN_SSH], True, "descriptions do not matter"),
    ([ALL], [{**ALL, "port_range_min": None, "port_range_max": None}], True, "all ports are no range"),
    ([{**ALL, "protocol": "udp"}], [{**OF_UDP, "port_range_min": None}], True, "all ports of UDP"),
    ([{**ALL, "port_range_min": 2}], [{**ALL, "port_range_min": None, "port_range_max": None}], False, "all but one"),
    ([{**OF_UDP, "protocol": "any"}], [{**OF_UDP, "protocol": None}], True, "any protocol is none"),
    ([{**OF_UDP, "protocol": "vrrp"}], [{**OF_UDP, "protocol": "112"}], True, "a protocol of routers by number"),
    ([{**OF_6, "protocol": "icmp"}], [{**OF_6, "protocol": "ipv6-icmp"}], True, "ICMP of IPv6"),
    ([{**OF_UDP, "protocol": "icmp"}], [{**OF_UDP, "protocol": "ipv6-icmp"}], False, "ICMP of another version"),
    ([{**OF_UDP, "ethertype": "ipv4"}], [OF_UDP], True, "a version in another case"),
    ([{**OF_UDP, "remote_ip_prefix": "10.0.0.7/8"}], [IN_RANGE], True, "a range by an address in it"),
    ([{**OF_UDP, "remote_ip_prefix": "10.0.0.7"}], [{**OF_UDP, "remote_ip_prefix": "10.0.0.7/32"}], True, "an address"),
    ([{**OF_6, "remote_ip_prefix": "FD00:0::/8"}], [{**OF_6, "remote_ip_prefix": "fd00::/8"}], True, "a range of IPv6"),
    ([{**OF_UDP, "remote_ip_prefix": "9.9.9.9/0"}], [OF_UDP], True, "anywhere in other words"),
]


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), RULES, ids=[case[3] for case in RULES])
def test_rules(wanted: list[dict[str, Any]], seen: list[dict[str, Any]], same: bool, reason: str) -> None:
    assert comparison.rules(wanted, seen) is same


FINGERPRINTS: list[tuple[Any, Any, bool, str]] = [
    ([{"a": 1}], [{"a": 2, "id": "y"}], True, "a part made anew has another id"),
    ([{"a": 1}], [{"a": 3, "id": "x"}], False, "another value"),
    ([{"a": 2}], [{"a": 2, "id": "x"}], False, "another wish"),
    ([{"a": 1}], [{"a": 2, "id": "x"}, {"a": 2, "id": "z"}], False, "one more"),
]


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), FINGERPRINTS, ids=[case[3] for case in FINGERPRINTS])
def test_differences_are_compared_by_what_is_wanted(wanted: Any, seen: Any, same: bool, reason: str) -> None:
    first = comparison.fingerprint([{"a": 1}], [{"id": "x", "a": 2}])
    assert (comparison.fingerprint(wanted, seen) == first) is same


def test_differences_are_compared_whatever_the_order() -> None:
    assert comparison.fingerprint(["a"], ["b", "c"]) == comparison.fingerprint(["a"], ["c", "b"])


NET, OTHER = "11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-666666666666"
LINKS: list[tuple[list[Any], Any, bool, str]] = [
    ([NET, NET], [NET], True, "one twice"),
    (["net", "net"], [NET], True, "a name twice"),
    (["net", OTHER], [OTHER, NET], True, "a name, and what it stands for last"),
    (["net", OTHER], [OTHER], False, "a name that nothing is left for"),
    ([NET, "net"], [NET], False, "a name that may be another"),
    ([NET], [NET, OTHER], False, "one more"),
    ([NET], [OTHER], False, "another"),
    ([NET], None, False, "none"),
]


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), LINKS, ids=[case[3] for case in LINKS])
def test_references(wanted: list[Any], seen: Any, same: bool, reason: str) -> None:
    assert comparison.references(wanted, seen) is same


IN_ORDER: list[tuple[list[Any], Any, bool, str]] = [
    ([NET, OTHER], [NET, OTHER], True, "the same"),
    ([NET, OTHER], [OTHER, NET], False, "the other way round"),
    (["net", OTHER], [NET, OTHER], True, "a name"),
    (["net", OTHER], [OTHER, NET], False, "a name in the place of another"),
    ([NET], [NET, OTHER], False, "one more"),
    ([NET], None, False, "none"),
]


@pytest.mark.parametrize(("wanted", "seen", "same", "reason"), IN_ORDER, ids=[case[3] for case in IN_ORDER])
def test_references_in_order(wanted: list[Any], seen: Any, same: bool, reason: str) -> None:
    assert comparison.references_in_order(wanted, seen) is same


ORDERED = (
    ("OS::Neutron::PortChain", "port_pair_groups"),
    ("OS::Neutron::FirewallPolicy", "firewall_rules"),
    ("OS::Neutron::Subnet", "dns_nameservers"),
)


@pytest.mark.parametrize(("type_name", "key"), ORDERED)
def test_another_order_is_drift_where_it_says_something(type_name: str, key: str) -> None:
    same = type_of(type_name).properties[key].same
    assert same([NET, OTHER], [NET, OTHER])
    assert not same([NET, OTHER], [OTHER, NET])


def test_references_without_dashes_are_the_same() -> None:
    assert comparison.reference(ID_A, ID_A.replace("-", ""))
    assert not comparison.reference(ID_A, ID_B)


def test_texts_of_json_are_compared_by_what_they_say() -> None:
    assert comparison.json_text('{"=":   {"id": 1}}', '{"=": {"id": 1}}')
    assert not comparison.json_text('{"=": {"id": 1}}', '{"=": {"id": 2}}')
    assert not comparison.json_text("no JSON", '{"=": {"id": 1}}')
    assert comparison.json_text("no JSON", None)


CONSTRAINTS: list[tuple[Constraint, list[str], list[str]]] = [
    (constraints.IP_ADDRESS, ["10.0.0.1", "fd00::1"], ["10.0.0", "10.0.0.1/24", "x", ""]),
    (constraints.CIDR, ["10.0.0.0/24", "10.0.0.7/24", "fd00::/8"], ["10.0.0.0", "10.0.0.0/40", "x/8"]),
    (constraints.IP_OR_CIDR, ["10.0.0.1", "10.0.0.0/8"], ["x"]),
    (constraints.MAC_ADDRESS, ["aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-00"], ["aa:bb:cc:dd:ee", "aa:bb-cc:dd:ee:ff"]),
    (constraints.DNS_NAME, ["web", "web.example.org.", ""], ["-web", "a..b", "w_b", "x" * 64]),
    (constraints.RELATIVE_DNS_NAME, ["web", "web.lan", ""], ["web."]),
    (constraints.DNS_DOMAIN, ["example.org.", ""], ["example.org", "."]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CONSTRAINTS)
def test_constraint(constraint: Constraint, good: list[str], bad: list[str]) -> None:
    assert [value for value in good if constraint.check(value)] == []
    assert [value for value in bad if not constraint.check(value)] == []
    for value in bad:
        assert repr(value) in str(constraint.check(value))
