"""Comparison of desired with observed values: the `same` rules of properties.

Every rule takes (wanted, seen), both plain data, wanted not empty. It returns False only for a certain difference:
false drift is worse than undetected drift.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Rule = Callable[[Any, Any], bool]

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", re.IGNORECASE)
_ANYWHERE = ("0.0.0.0/0", "::/0")
_NUMBERS = {
    **{
        "hopopt": "0",
        "icmp": "1",
        "igmp": "2",
        "ipip": "4",
        "tcp": "6",
        "egp": "8",
        "udp": "17",
        "dccp": "33",
        "ipv6-encap": "41",
    },
    **{"ipv6-route": "43", "ipv6-frag": "44", "rsvp": "46", "gre": "47", "esp": "50", "ah": "51", "ipv6-icmp": "58"},
    **{"icmpv6": "58", "ipv6-nonxt": "59", "ipv6-opts": "60", "ospf": "89", "vrrp": "112", "pgm": "113"},
    **{"sctp": "132", "udplite": "136"},
}
"""Name of a protocol -> its number, by which rules are compared: users and services write either."""
_ANY_PROTOCOL = ("any", "-1")
_ICMP, _ICMP_OF_6 = "1", "58"
_WITH_PORTS = frozenset({"6", "17", "33", "132", "136"})
_ALL_PORTS = ("1", "65535")


def equal(wanted: Any, seen: Any) -> bool:
    """Compare values after conversion, and in maps only the wanted keys; an observed null means "not reported"."""
    if seen is None or wanted is None:
        return True
    if isinstance(wanted, Mapping | list) and isinstance(seen, str):
        return str(wanted) == seen
    if isinstance(wanted, Mapping):
        return isinstance(seen, Mapping) and all(
            value is None or (key in seen and equal(value, seen[key])) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(seen, list) and len(seen) == len(wanted) and all(map(equal, wanted, seen))
    return wanted == seen or _scalar(wanted) == _scalar(seen)


def _scalar(value: Any) -> str | float:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return float(value)
    except (TypeError, ValueError):
        # Services cut off the space around names.
        text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    return _address(text) if ":" in text else text


def _address(text: str) -> str:
    """Return an IPv6 or MAC address, or a range, in the canonical form: clouds and users write them in several ways."""
    if _MAC.fullmatch(text):
        return text.lower()
    try:
        return str(ipaddress.ip_network(text) if "/" in text else ipaddress.ip_address(text))
    except ValueError:
        return text


def unordered(wanted: Sequence[Any], seen: Any) -> bool:
    """Compare lists whose items may be in any order."""
    return seen is None or (isinstance(seen, list) and _paired(wanted, seen, equal))


def distinct(wanted: Sequence[Any], seen: Any) -> bool:
    """Compare sets: lists in any order, whose items count once."""
    return seen is None or (isinstance(seen, list) and includes(wanted, seen) and includes(seen, wanted))


def includes(wanted: Sequence[Any], seen: Any) -> bool:
    """Return whether every wanted item is present; more items may be (a cloud or its adapter adds its own tags)."""
    return seen is None or all(any(equal(item, other) for other in seen) for item in wanted)


def ranges(wanted: Sequence[str], seen: Any) -> bool:
    """Compare ranges of addresses in any order; an address with a prefix length stands for its range."""
    return seen is None or (isinstance(seen, list) and _paired(wanted, seen, _same_range))


def _same_range(wanted: Any, seen: Any) -> bool:
    return _network(str(wanted)) == _network(str(seen))


def json_text(wanted: str, seen: Any) -> bool:
    """Compare JSON texts by their content."""
    try:
        return equal(json.loads(wanted), json.loads(seen))
    except (TypeError, ValueError):
        return equal(wanted, seen)


def at_least(wanted: Any, seen: Any) -> bool:
    """Compare sizes that can never shrink: a larger size cannot be brought back, so it agrees."""
    return seen is None or float(seen) >= float(wanted)


def reference(wanted: Any, seen: Any) -> bool:
    """Return whether something is linked, and, if both values are ids, whether the link is the wanted one.

    A wanted name agrees with any observed id, since this package cannot look it up.
    """
    if not seen:
        return False
    if _UUID.fullmatch(str(wanted)) and _UUID.fullmatch(str(seen)):
        return _plain_id(wanted) == _plain_id(seen)
    return True


def references(wanted: Sequence[Any], seen: Any) -> bool:
    """Compare sets of links, each as `reference` does: a name agrees with any id that is not itself wanted."""
    items = list(dict.fromkeys(map(str, wanted)))
    named = [item for item in items if not _UUID.fullmatch(item)]
    ids = [item for item in items if item not in named]
    return isinstance(seen, list) and _paired([*ids, *named], list(dict.fromkeys(seen)), reference)


def references_in_order(wanted: Sequence[Any], seen: Any) -> bool:
    """Compare lists of links whose order matters, each link as `reference` does."""
    return isinstance(seen, list) and len(seen) == len(wanted) and all(map(reference, wanted, seen))


def gateway(wanted: Mapping[str, Any], seen: Any) -> bool:
    """Compare external gateways of a router: their network, and `enable_snat` if wanted."""
    if not seen or not reference(wanted.get("network_id"), seen.get("network_id")):
        return False
    return equal(wanted.get("enable_snat"), seen.get("enable_snat"))


def fixed_ips(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Return whether a port has addresses on the wanted subnets; the addresses may differ, clouds may change them."""
    subnets = [item["subnet_id"] for item in wanted if item.get("subnet_id")]
    observed = [item.get("subnet_id") for item in seen or []]
    return seen is None or all(any(reference(subnet, other) for other in observed) for subnet in subnets)


def grants(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Return whether every wanted role is granted; additional grants agree."""
    return seen is None or all(any(_same_grant(item, other) for other in seen) for item in wanted)


def _same_grant(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    links = ("role", "project_id", "domain_id")
    return all(reference(wanted[name], seen.get(name)) for name in links if wanted.get(name))


def trunk_ports(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Compare the sub-ports of a trunk with their segmentation types and ids, in any order."""
    return seen is None or _paired(wanted, seen, _same_trunk_port)


def _same_trunk_port(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    numbered = ("segmentation_type", "segmentation_id")
    return reference(wanted["port_id"], seen.get("port_id")) and all(
        equal(wanted[name], seen.get(name)) for name in numbered
    )


def rules(wanted: Sequence[Mapping[str, Any]], seen: Any) -> bool:
    """Compare the rules of a security group; egress rules are left to the cloud as long as none is wanted."""
    return seen is None or not any(rule_changes(wanted, seen))


def rule_changes(
    wanted: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the missing wanted rules, and the present rules that are not wanted.

    A rule wanted twice may be present once: clouds refuse duplicates.
    """
    governed = {"ingress", *(rule.get("direction") for rule in wanted)}
    left = [rule for rule in seen if rule.get("direction", "ingress") in governed]
    missing: list[Mapping[str, Any]] = []
    for index, rule in enumerate(wanted):
        match = next((other for other in left if _same_rule(_clean(rule), _clean(other))), None)
        if match is not None:
            left.remove(match)
        elif _clean(rule) not in map(_clean, wanted[:index]):
            missing.append(rule)
    return missing, left


def _clean(rule: Mapping[str, Any]) -> dict[str, str]:
    """Return the canonical form of a rule: services write the same rule in different ways."""
    names = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")
    fields = {name: str(rule[name]).lower() for name in names if rule.get(name) not in (None, "")}
    fields = {"direction": "ingress", "ethertype": "ipv4", **fields}
    _clean_protocol(fields)
    prefix = fields.pop("remote_ip_prefix", "")
    if prefix and (network := _network(prefix)) not in _ANYWHERE:
        fields["remote_ip_prefix"] = network
    if rule.get("remote_group_id") is not None:
        fields["remote_group_id"] = str(rule["remote_group_id"])
    return fields


def _clean_protocol(fields: dict[str, str]) -> None:
    protocol = fields.pop("protocol", "any")
    if protocol in _ANY_PROTOCOL:
        return
    number = _NUMBERS.get(protocol, protocol)
    # Services take the protocol of the other version as this one's.
    number = _ICMP_OF_6 if number == _ICMP and fields["ethertype"] == "ipv6" else number
    fields["protocol"] = number
    ports = (fields.get("port_range_min"), fields.get("port_range_max"))
    if "-1" in ports or (number in _WITH_PORTS and ports == _ALL_PORTS):
        fields.pop("port_range_min", None)
        fields.pop("port_range_max", None)


def _network(prefix: str) -> str:
    """Return a range, or an address, in the canonical form: with a prefix length, and without host bits."""
    try:
        return str(ipaddress.ip_network(prefix, strict=False))
    except ValueError:
        return prefix


def _same_rule(wanted: Mapping[str, str], seen: Mapping[str, str]) -> bool:
    if wanted.keys() != seen.keys():
        return False
    # An empty group means the group itself, whose id only the cloud knows.
    return all(
        (not value or reference(value, seen[name])) if name == "remote_group_id" else value == seen[name]
        for name, value in wanted.items()
    )


def _paired(wanted: Sequence[Any], seen: Sequence[Any], same: Rule) -> bool:
    """Return whether wanted and seen items can be paired one to one."""
    left = list(seen)
    for item in wanted:
        index = next((index for index, other in enumerate(left) if same(item, other)), None)
        if index is None:
            return False
        del left[index]
    return not left


def _plain_id(value: Any) -> str:
    return str(value).replace("-", "").lower()


def fingerprint(wanted: Any, seen: Any) -> str:
    """Return a hash of a wanted and an observed value.

    Only the wanted keys of maps count, and no order of lists: parts that are created again have new ids, and clouds
    report lists in any order.
    """
    text = json.dumps([wanted, reduced(wanted, seen)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def reduced(wanted: Any, seen: Any) -> Any:
    """Return the observed value, reduced to the wanted keys of maps, with sorted lists."""
    if isinstance(seen, Mapping) and isinstance(wanted, Mapping):
        return {name: reduced(wanted[name], value) for name, value in seen.items() if name in wanted}
    if isinstance(seen, list):
        maps = [item for item in wanted if isinstance(item, Mapping)] if isinstance(wanted, list) else []
        of_each: dict[str, Any] = {name: value for item in maps for name, value in item.items()}
        items = [reduced(of_each, item) if of_each else item for item in seen]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True, default=str))
    return seen
