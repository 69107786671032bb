"""What comes first though nothing refers to it."""

from dataclasses import dataclass
from typing import Any

import pytest

from homeostat.resources.graph import mentioned, same
from homeostat.resources.registry import resource_type


@dataclass(frozen=True, eq=False)
class Waits:
    """Stands for a function of a template that waits for resources; no two are equal, as their places differ."""

    names: tuple[str, ...]

    def requires(self) -> tuple[str, ...]:
        return self.names


def ref(*names: str) -> Waits:
    return Waits(names)


def test_mentioned_finds_functions_at_any_depth() -> None:
    tree = {"a": [ref("x"), {"b": ref("y", "z")}], "c": "x1", "d": 5, "e": None, "f": (ref("x"),), "g": True}
    assert mentioned(tree) == {"x", "y", "z"}
    assert mentioned("name") == set()


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (ref("net"), ref("net"), True),
        (ref("net"), ref("other"), False),
        (ref("net"), "net", False),
        ("public", "public", True),
        ("public", "private", False),
        (None, None, False),
        ("", "", False),
    ],
)
def test_same(one: Any, other: Any, wanted: bool) -> None:
    assert same(one, other) is wanted


GRAPH: dict[str, tuple[str, dict[str, Any]]] = {
    "net": ("OS::Neutron::Net", {}),
    "sub": ("OS::Neutron::Subnet", {"network": ref("net"), "cidr": "10.0.0.0/24"}),
    "old_sub": ("OS::Neutron::Subnet", {"network_id": ref("net"), "cidr": "10.1.0.0/24"}),
    "far_sub": ("OS::Neutron::Subnet", {"network": "outside", "cidr": "10.2.0.0/24"}),
    "port": ("OS::Neutron::Port", {"network": ref("net")}),
    "pinned": ("OS::Neutron::Port", {"network": ref("net"), "fixed_ips": [{"subnet": ref("old_sub")}]}),
    "router": ("OS::Neutron::Router", {"external_gateway_info": {"network": "public"}}),
    "inner": ("OS::Neutron::Router", {}),
    "leg": ("OS::Neutron::RouterInterface", {"router": ref("router"), "subnet": ref("sub")}),
    "old_leg": ("OS::Neutron::RouterInterface", {"router": ref("router"), "subnet_id": ref("old_sub")}),
    "far_leg": ("OS::Neutron::RouterInterface", {"router": ref("router"), "subnet": ref("far_sub")}),
}

IMPLIED: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("subnets of its network", "OS::Neutron::Port", {"network": ref("net")}, {"sub", "old_sub"}),
    ("by the old name", "OS::Neutron::Port", {"network_id": ref("net")}, {"sub", "old_sub"}),
    ("of a network outside the template", "OS::Neutron::Port", {"network": "outside"}, {"far_sub"}),
    ("of another network", "OS::Neutron::Port", {"network": "elsewhere"}, set()),
    ("of no network", "OS::Neutron::Port", {}, set()),
    ("subnets of each network", "OS::Nova::Server", {"networks": [{"network": ref("net")}]}, {"sub", "old_sub"}),
    ("a port has its own", "OS::Nova::Server", {"networks": [{"port": ref("port")}]}, set()),
    ("no networks", "OS::Nova::Server", {}, set()),
    ("networks from a function", "OS::Nova::Server", {"networks": ref("group")}, set()),
    (
        "subnet of the way out",
        "OS::Neutron::Router",
        {"external_gateway_info": {"network": "outside"}},
        {"far_sub"},
    ),
    ("no way out", "OS::Neutron::Router", {}, set()),
    ("router to the same outside", "OS::Neutron::FloatingIP", {"floating_network": "public"}, {"router"}),
    ("by the old name", "OS::Neutron::FloatingIP", {"floating_network_id": "public"}, {"router"}),
    (
        "interfaces on any subnet of its port's network",
        "OS::Neutron::FloatingIP",
        {"floating_network": "x", "port_id": ref("port")},
        {"leg", "old_leg"},
    ),
    (
        "interfaces on the subnet of its port",
        "OS::Neutron::FloatingIP",
        {"floating_network": "x", "port_id": ref("pinned")},
        {"old_leg"},
    ),
    (
        "interfaces for an association",
        "OS::Neutron::FloatingIPAssociation",
        {"floatingip_id": "f", "port_id": ref("pinned")},
        {"old_leg"},
    ),
    (
        "a port outside the template",
        "OS::Neutron::FloatingIPAssociation",
        {"floatingip_id": "f", "port_id": "p"},
        set(),
    ),
    (
        "subnets of the networks of its members",
        "OS::Heat::AutoScalingGroup",
        {"resource": {"type": "member.yaml", "properties": {"net": ref("net")}}},
        {"sub", "old_sub"},
    ),
    ("of the networks of what it makes", "inner.yaml", {"nets": ["x", {"net": ref("net")}]}, {"sub", "old_sub"}),
    ("a nested stack on no network", "inner.yaml", {"size": ref("port")}, set()),
    (
        "subnets of the networks of its nodes",
        "OS::Senlin::Profile",
        {"type": "os.nova.server-1.0", "properties": {"networks": [{"network": ref("net")}]}},
        {"sub", "old_sub"},
    ),
    ("subnets of each network", "OS::Trove::Instance", {"networks": [{"network": ref("net")}]}, {"sub", "old_sub"}),
    (
        "subnets of each network",
        "OS::Trove::Cluster",
        {"instances": [{"networks": [{"network": ref("net")}]}]},
        {"sub", "old_sub"},
    ),
    ("subnets of each network", "OS::Zun::Container", {"networks": [{"network": ref("net")}]}, {"sub", "old_sub"}),
    ("most types imply nothing", "OS::Cinder::Volume", {"size": 1}, set()),
]


@pytest.mark.parametrize(
    ("type_name", "properties", "wanted"),
    [case[1:] for case in IMPLIED],
    ids=[f"{case[1]}: {case[0]}" for case in IMPLIED],
)
def test_implied_requires(type_name: str, properties: dict[str, Any], wanted: set[str]) -> None:
    assert resource_type(type_name).implied_requires(properties, GRAPH) == wanted


def test_a_subnet_of_which_nothing_is_known_comes_before_servers() -> None:
    graph = {**GRAPH, "odd": ("OS::Neutron::Subnet", {"cidr": "10.9.0.0/24"})}
    found = resource_type("OS::Nova::Server").implied_requires({"networks": [{"network": "x"}]}, graph)
    assert found == {"odd"}
