"""Named constraints whose rule needs no cloud: addresses and domain names."""

import re
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any

from homeostat.resources.schema import Constraint, custom

_MAC = re.compile(r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}", re.IGNORECASE)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.IGNORECASE)


def _named(name: str, what: str, fits: Callable[[str], bool]) -> Constraint:
    def check(value: Any) -> str | None:
        return None if fits(str(value)) else f"Error validating value {value!r}: it is not {what}"

    return custom(name, check)


def _is_address(value: str) -> bool:
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def _is_cidr(value: str) -> bool:
    try:
        ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


def _is_name(value: str) -> bool:
    return len(value) <= 255 and all(_LABEL.fullmatch(label) for label in value.removesuffix(".").split("."))


IP_ADDRESS = _named("ip_addr", "an IP address", _is_address)
CIDR = _named("net_cidr", "a network such as 10.0.0.0/24", _is_cidr)
IP_OR_CIDR = _named("ip_or_cidr", "an IP address or a network", lambda value: _is_address(value) or _is_cidr(value))
MAC_ADDRESS = _named("mac_addr", "a MAC address", lambda value: bool(_MAC.fullmatch(value)))
DNS_NAME = _named("dns_name", "a DNS name", _is_name)
RELATIVE_DNS_NAME = _named(
    "rel_dns_name",
    "a relative DNS name (no dot at its end)",
    lambda value: _is_name(value) and value[-1] != ".",
)
DNS_DOMAIN = _named(
    "dns_domain", "a DNS domain that ends with a dot", lambda value: _is_name(value) and value[-1] == "."
)
