"""Named constraints: the rules that need no cloud, and where values under them stand."""

import pytest

from homeostat.resources.constraints import RULES
from homeostat.resources.custom_constraints import KINDS, Mention, mentions
from homeostat.resources.registry import types
from homeostat.resources.schema import UNKNOWN, Property, custom, listing, mapping, text

ABSENT_IN_CLOUDS = {"cron_expression", "dns_domain", "dns_name", "expiration", "rel_dns_name", "ip_addr", "iso_8601"}
ABSENT_IN_CLOUDS |= {"mac_addr", "net_cidr", "ip_or_cidr", "test_constr", "timezone", "json_string"}


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("ip_addr", "10.0.0.1", True),
        ("ip_addr", "10.0.0.256", False),
        ("mac_addr", "fa:16:3e:00:00:01", True),
        ("mac_addr", "fa:16:3e:00:00", False),
        ("net_cidr", "10.0.0.0/24", True),
        ("net_cidr", "10.0.0.0", False),
        ("ip_or_cidr", "10.0.0.0", True),
        ("dns_name", "www.example.org", True),
        ("dns_name", "www.example.123", False),
        ("dns_name", "-www", False),
        ("rel_dns_name", "www", True),
        ("rel_dns_name", "www.", False),
        ("dns_domain", "example.org.", True),
        ("dns_domain", "example.org", False),
        ("cron_expression", "*/5 3-6,22 1,15 jan-MAR mon", True),
        ("cron_expression", "0 0 * * *", True),
        ("cron_expression", "0 0 * * * 30", True),
        ("cron_expression", "0 0 * *", False),
        ("cron_expression", "60 0 * * *", False),
        ("cron_expression", "*/0 0 * * *", False),
        ("cron_expression", "1-2-3 0 * * *", False),
        ("cron_expression", "0 0 0 * *", False),
        ("cron_expression", "0 0 * * fry", False),
        ("timezone", "Europe/Berlin", True),
        ("timezone", "UTC", True),
        ("timezone", "Mars/Olympus", False),
        ("timezone", "../etc/passwd", False),
        ("iso_8601", "2026-08-31T12:00:00Z", True),
        ("iso_8601", "next tuesday", False),
        ("expiration", "2026-08-31T12:00:00+02:00", True),
        ("expiration", "soon", False),
        ("json_string", '{"a": [1]}', True),
        ("json_string", "{a: 1}", False),
        ("json_string", "[" * 100_000, False),
        ("test_constr", "whatever", True),
    ],
)
def test_rules_that_need_no_cloud(name: str, value: str, fits: bool) -> None:
    problem = RULES[name](value)
    assert (problem is None) is fits
    assert fits or str(problem).startswith(f"Error validating value {value!r}: it is not ")


def test_every_constraint_has_one_meaning() -> None:
    assert RULES.keys() == ABSENT_IN_CLOUDS
    assert not RULES.keys() & KINDS.keys()


def _constraints(prop: Property) -> set[str]:
    own = {str(each.wire["custom_constraint"]) for each in prop.constraints if "custom_constraint" in each.wire}
    inner = [*(prop.fields or {}).values(), *([prop.items] if prop.items is not None else [])]
    return own.union(*map(_constraints, inner))


def test_constraints_of_all_types_are_known() -> None:
    used = {name for each in types().values() for prop in each.properties.values() for name in _constraints(prop)}
    assert used - KINDS.keys() - RULES.keys() == set()


SCHEMA = {
    "image": text(constraints=(custom("glance.image"),)),
    "networks": listing(items=mapping(fields={"network": text(constraints=(custom("neutron.network"),))})),
    "groups": listing(constraints=(custom("neutron.security_group"),)),
    "plain": text(),
}


def test_values_are_found_wherever_they_stand() -> None:
    values = {
        "image": "cirros",
        "networks": [{"network": "lan"}, {"network": UNKNOWN}, UNKNOWN],
        "groups": ["web", UNKNOWN],
        "plain": "x",
    }
    assert list(mentions(SCHEMA, values, ("at",))) == [
        Mention("glance.image", "cirros", ("at", "image")),
        Mention("neutron.network", "lan", ("at", "networks", 0, "network")),
        Mention("neutron.security_group", "web", ("at", "groups", 0)),
    ]


@pytest.mark.parametrize("nothing", [None, "", UNKNOWN])
def test_what_says_nothing_names_nothing(nothing: object) -> None:
    assert list(mentions(SCHEMA, {"image": nothing, "networks": nothing}, ())) == []


def test_what_is_missing_is_reported_in_the_words_that_clients_know() -> None:
    assert KINDS["glance.image"].missing("x") == "The Image (x) could not be found."
    assert KINDS["neutron.network"].missing("x") == "Unable to find network with name or id 'x'"
