"""What one thing at a time can hold: what two objects cannot both have, and an object that has let go of it."""

from typing import Any

import pytest

from homeostat.kinds.exclusive import EXCLUSIVE, Shared, Way, can_let_go, shared, still_held, without
from homeostat.resources.kind_fields import fields_of

NET = {"network": "n", "fixed_ip": "10.0.0.5"}
ADDRESSES = {"addresses": {"n": [{"port": "p", "addr": "10.0.0.5"}]}}
BOOT = {"volume_id": "v", "boot_index": 0}

SHARED: dict[str, tuple[str, dict[str, Any], dict[str, Any], Shared]] = {
    "the same port": (
        "server",
        {"networks": [{"port": "p"}, {"network": "n"}]},
        {"networks": [{"network": "n"}, {"port": "p"}]},
        Shared(("port p",), Way.LETS_GO),
    ),
    "another port": ("server", {"networks": [{"port": "p"}]}, {"networks": [{"port": "q"}]}, Shared()),
    "a network alone": ("server", {"networks": [{"network": "n"}]}, {"networks": [{"network": "n"}]}, Shared()),
    "the same address": (
        "server",
        {"networks": [NET]},
        {"networks": [NET]},
        Shared(("address n 10.0.0.5",), Way.LETS_GO),
    ),
    "the same volume": (
        "server",
        {"block_device_mapping": [BOOT], "networks": [{"port": "p"}]},
        {"block_device_mapping": [BOOT], "networks": [{"port": "p"}]},
        Shared(("port p", "volume v"), Way.GOES),
    ),
    "a volume that would go with it": (
        "server",
        {"block_device_mapping": [{**BOOT, "delete_on_termination": True}]},
        {"block_device_mapping": [BOOT]},
        Shared(("volume v",), Way.GOES, ("volume v",)),
    ),
    "an address of a port": (
        "port",
        {"fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.5"}]},
        {"fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.5"}, {"subnet_id": "s"}]},
        Shared(("address s 10.0.0.5",), Way.LETS_GO),
    ),
    "a name": ("keypair", {"name": "k"}, {"name": "k", "public_key": "other"}, Shared(("name k",), Way.GOES)),
    "one of the things that both name": (
        "port_chain",
        {"flow_classifiers": ["a", "b"], "chain_parameters": {}},
        {"flow_classifiers": ["b"]},
        Shared(("classifier b",), Way.GOES),
    ),
    "none of such things": ("port_chain", {"flow_classifiers": ["a"]}, {"flow_classifiers": []}, Shared()),
    "names that are both made up": ("flavor", {"name": None, "ram": 1}, {"name": None, "ram": 2}, Shared()),
    "a kind that holds nothing": ("volume", {"name": "v"}, {"name": "v"}, Shared()),
}  # fmt: skip


@pytest.mark.parametrize("case", SHARED)
def test_what_two_cannot_both_have(case: str) -> None:
    kind, old, new, expected = SHARED[case]
    assert shared(kind, old, new) == expected


WITHOUT: dict[str, tuple[str, dict[str, Any], list[str], dict[str, Any], tuple[str, ...]]] = {
    "one of two ports": (
        "server",
        {"networks": [{"port": "p"}, {"port": "q"}], "name": "s"},
        ["port p"],
        {"networks": [{"port": "q"}], "name": "s"},
        ("networks",),
    ),
    "all": (
        "server",
        {"networks": [NET]},
        ["address n 10.0.0.5"],
        {"networks": [{"allocate_network": "none"}]},
        ("networks",),
    ),
    "of a port": (
        "port",
        {"fixed_ips": [{"ip_address": "10.0.0.5"}]},
        ["address 10.0.0.5"],
        {"fixed_ips": []},
        ("fixed_ips",),
    ),
    "of a floating address": (
        "floating_ip",
        {"port_id": "p", "fixed_ip_address": "10.0.0.5"},
        ["association with port 10.0.0.5 p"],
        {"port_id": None, "fixed_ip_address": None},
        ("fixed_ip_address", "port_id"),
    ),
    "what has to go": ("server", {"block_device_mapping": [BOOT]}, ["volume v"], {"block_device_mapping": [BOOT]}, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHOUT)
def test_an_object_that_has_let_go(case: str) -> None:
    kind, object, held, expected, changed = WITHOUT[case]
    assert without(kind, object, held) == (expected, changed)
    assert not set(can_let_go(kind, expected)) & set(held)


@pytest.mark.parametrize(
    ("kind", "seen", "held", "expected"),
    [
        ("server", ADDRESSES, ["port p"], ["port p"]),
        ("server", ADDRESSES, ["address n 10.0.0.5"], ["address n 10.0.0.5"]),
        ("server", {"addresses": {"n": [{"port": "q", "addr": "10.0.0.6"}]}}, ["port p"], []),
        ("server", {}, ["port p"], []),
        ("port", {"fixed_ips": [{"ip_address": "10.0.0.5"}]}, ["address s 10.0.0.5"], ["address s 10.0.0.5"]),
        ("port", {"fixed_ips": []}, ["address s 10.0.0.5"], []),
        ("floating_ip", {"port_id": "p"}, ["association with port p"], []),
    ],
)  # fmt: skip
def test_what_is_still_seen_to_be_held(kind: str, seen: Any, held: list[str], expected: list[str]) -> None:
    assert still_held(kind, seen, held) == expected


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_the_table_names_fields_of_its_kinds(name: str) -> None:
    """What lets go does so by an update in place."""
    kind = fields_of(name)
    for each in EXCLUSIVE[name]:
        assert each.entries in kind.all if each.entries else set(each.fields) <= kind.all.keys()
        assert each.way is Way.GOES or set([each.entries] if each.entries else each.fields) <= kind.mutable.keys()
        assert not each.reported_field or each.reported_field in kind.all
