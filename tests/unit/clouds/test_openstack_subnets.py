"""What a subnet has of which a template does not say anything any more: what Networking chooses for a new one."""

import pytest

from homeostat.clouds.openstack.network import gateway_of, pools_of

Pools = list[tuple[str, str]]
CASES: list[tuple[str, str | None, Pools]] = [
    ("10.0.0.0/24", "10.0.0.1", [("10.0.0.2", "10.0.0.254")]),
    ("10.0.0.0/24", "10.0.0.9", [("10.0.0.1", "10.0.0.8"), ("10.0.0.10", "10.0.0.254")]),
    ("10.0.0.0/24", "10.0.0.254", [("10.0.0.1", "10.0.0.253")]),
    ("10.0.0.0/24", None, [("10.0.0.1", "10.0.0.254")]),
    ("10.0.0.0/24", "10.1.0.1", [("10.0.0.1", "10.0.0.254")]),
    ("fd00::/64", "fd00::1", [("fd00::2", "fd00::ffff:ffff:ffff:ffff")]),
    ("10.0.0.8/32", None, [("10.0.0.8", "10.0.0.8")]),
]


@pytest.mark.parametrize(("cidr", "gateway", "pools"), CASES)
def test_pools_are_all_addresses_but_the_gateway(cidr: str, gateway: str | None, pools: Pools) -> None:
    assert [(each["start"], each["end"]) for each in pools_of(cidr, gateway)] == pools


def test_the_gateway_is_the_first_address() -> None:
    assert [gateway_of(each) for each in ("10.0.0.0/24", "fd00::/64", "10.0.0.8/32")] == [
        "10.0.0.1",
        "fd00::1",
        "10.0.0.8",
    ]
