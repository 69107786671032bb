"""Named constraints that are checked without a cloud: addresses, domain names, times, texts of a certain form."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any
from zoneinfo import available_timezones

from homeostat.resources.schema import Constraint, custom

_MAC = re.compile(r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}", re.IGNORECASE)
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.IGNORECASE)


RULES: dict[str, Callable[[Any], str | None]] = {}
"""Name of a constraint -> its check, which returns an error message for a wrong value, else None."""


def _named(name: str, what: str, fits: Callable[[str], bool], *, empty: bool = False) -> Constraint:
    """Return a constraint; `empty` allows an empty text, which means no value."""

    def check(value: Any) -> str | None:
        return (
            None
            if (empty and value == "") or fits(str(value))
            else f"Error validating value {value!r}: it is not {what}"
        )

    RULES[name] = check
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
    labels = value.removesuffix(".").split(".")
    if len(labels) > 1 and labels[-1].isdecimal():
        return False
    return len(value) <= 255 and all(map(_LABEL.fullmatch, labels))


IP_ADDRESS = _named("ip_addr", "an IP address", _is_address)
CIDR = _named("net_cidr", "a network such as 10.0.0.0/24", _is_cidr)
IP_OR_CIDR = _named("ip_or_cidr", "an IP address or a network", lambda value: _is_address(value) or _is_cidr(value))
MAC_ADDRESS = _named("mac_addr", "a MAC address", lambda value: bool(_MAC.fullmatch(value)))
DNS_NAME = _named("dns_name", "a DNS name", _is_name, empty=True)
RELATIVE_DNS_NAME = _named(
    "rel_dns_name",
    "a relative DNS name (no dot at its end)",
    lambda value: _is_name(value) and value[-1] != ".",
    empty=True,
)
DNS_DOMAIN = _named(
    "dns_domain", "a DNS domain that ends with a dot", lambda value: _is_name(value) and value[-1] == ".", empty=True
)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_CRON_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 7, _DAYS),
    (0, 59, ()),
)
"""Lowest and highest number, and words for numbers: minute, hour, day, month, day of the week, optionally seconds."""


def _is_cron(value: str) -> bool:
    fields = value.split()
    if len(fields) not in (5, 6):
        return False
    return all(
        _is_cron_part(part, *limits)
        for field, limits in zip(fields, _CRON_FIELDS, strict=False)
        for part in field.split(",")
    )


def _is_cron_part(part: str, low: int, high: int, words: tuple[str, ...]) -> bool:
    """Return whether `part` is `*`, `n` or `n-m`, each with an optional step as in `*/5`."""
    bounds, slash, step = part.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if bounds in ("*", "?"):
        return True
    numbers = [words.index(end.lower()) + low if end.lower() in words else _natural(end) for end in bounds.split("-")]
    return len(numbers) <= 2 and all(low <= number <= high for number in numbers)


def _natural(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


@cache
def _timezones() -> frozenset[str]:
    """Return the known time zones; cached, since their database does not change while the service runs."""
    return frozenset(available_timezones())


CRON_EXPRESSION = _named("cron_expression", "a CRON expression such as 0 3 * * 1-5", _is_cron, empty=True)
TIMEZONE = _named("timezone", "a time zone such as Europe/Berlin", lambda value: value in _timezones(), empty=True)
ISO_8601 = _named("iso_8601", "a time such as 2026-08-31T12:00:00Z", _is_time)
JSON_TEXT = _named("json_string", "JSON text", _is_json)
EXPIRATION = _named("expiration", "a time such as 2026-08-31T12:00:00Z", _is_time, empty=True)
"""Checks the form only. The API checks that the time lies in the future; this package knows no clock."""
TEST = _named("test_constr", "anything at all", lambda _value: True)
