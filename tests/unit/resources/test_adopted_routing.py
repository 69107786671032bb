"""Handles of things that Heat knew by other ids."""

from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.resources.registry import resource_type

ROUTER = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
ROUTE = {"destination": "10.1.0.0/16", "nexthop": "10.0.0.9"}
OTHER = {"destination": "2001:db8::/64", "nexthop": "2001:db8:1::9"}
CASES: list[tuple[str, str, Mapping[str, Any], str]] = [
    ("ExtraRoute", f"{ROUTER}:10.1.0.0/16:10.0.0.9", ROUTE, f"{ROUTER}:10.1.0.0/16=10.0.0.9"),
    ("ExtraRoute", f"{ROUTER}:10.1.0.0/16=10.0.0.9", ROUTE, f"{ROUTER}:10.1.0.0/16=10.0.0.9"),
    (
        *("ExtraRouteSet", ROUTER, {"routes": [ROUTE, OTHER]}),
        f"{ROUTER}:10.1.0.0/16=10.0.0.9,2001:db8::/64=2001:db8:1::9",
    ),
    ("ExtraRouteSet", "extra_route_set-7", {"routes": [ROUTE]}, "extra_route_set-7"),
    ("FloatingIPAssociation", "17", {"floatingip_id": "f-1"}, "f-1"),
    ("FloatingIPAssociation", "f-1:p-1", {"floatingip_id": "f-1"}, "f-1:p-1"),
    ("RouterInterface", f"{ROUTER}:subnet_id=s-1", {}, f"{ROUTER}:subnet_id=s-1"),
    ("RouterGateway", f"{ROUTER}:n-1", {}, f"{ROUTER}:n-1"),
]


@pytest.mark.parametrize(("name", "id", "values", "handle"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_adopted_handle(name: str, id: str, values: Mapping[str, Any], handle: str) -> None:
    assert resource_type(f"OS::Neutron::{name}").adopted_handle(id, values) == handle
