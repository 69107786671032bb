"""Types of clusters: what they ask for, what they compare, and what has to come before them."""

from typing import Any

import pytest
from tests.unit.resources.resource_cases import thing

from homeostat.resources.base import Thing
from homeostat.resources.families.senlin import Cluster, Node, Policy, Profile, Receiver, attached
from homeostat.resources.graph import Graph

CLUSTER = {"profile": "p"}
GRAPH: Graph = {
    "web": ("OS::Senlin::Profile", {"name": "p"}),
    "other": ("OS::Senlin::Profile", {"name": "q"}),
    "rule": ("OS::Senlin::Policy", {"name": "r"}),
    "cluster": ("OS::Senlin::Cluster", {"name": "c"}),
    "nameless": ("OS::Senlin::Cluster", {}),
}


@pytest.mark.parametrize(
    ("kind", "properties", "before"),
    [
        (Cluster(), {"profile": "p", "policies": [{"policy": "r"}]}, {"web", "rule"}),
        (Cluster(), {"profile": "elsewhere"}, set()),
        (Node(), {"profile": "q", "cluster": "c"}, {"other", "cluster"}),
        (Node(), {"profile": "q"}, {"other"}),
        (Policy(), {"bindings": [{"cluster": "c"}]}, {"cluster"}),
        (Receiver(), {"cluster": "c"}, {"cluster"}),
    ],
)
def test_what_is_named_in_the_template_comes_first(kind: Any, properties: dict[str, Any], before: set[str]) -> None:
    assert kind.implied_requires(properties, GRAPH) == before


def test_names_that_follow_from_the_stack_are_those_that_the_clustering_api_takes() -> None:
    assert Profile().spec({"type": "t-1"}, "a stack/with (signs)")["name"] == "a-stack-with--signs-"
    assert Node().spec({"profile": "p", "cluster": "c"}, "web-node") == {"profile_id": "p", "cluster_id": "c"}
    assert Node().spec({"profile": "p", "cluster": None}, "web-node") == {"profile_id": "p", "name": "web-node"}


def test_no_time_is_the_time_of_the_service() -> None:
    kind = Cluster()
    assert "timeout" not in kind.spec(kind.complete({**CLUSTER, "timeout": 0}), "c")


def cluster(seen: dict[str, Any], **properties: Any) -> Thing:
    return thing("OS::Senlin::Cluster", {**CLUSTER, **properties}, seen=seen)


def test_what_scales_a_cluster_is_no_drift_and_other_changes_are() -> None:
    kind = Cluster()
    seen = {"status": "active", "desired_capacity": 7, "max_size": 9, "profile_id": "any", "policies": []}
    assert kind.drift(cluster(seen, max_size=9, desired_capacity=2)) == ()
    assert kind.drift(cluster({**seen, "max_size": 5}, max_size=9)) == ("max_size",)
    wanted = [{"policy": "r", "enabled": True}]
    assert kind.drift(cluster(seen, max_size=9, policies=wanted)) == ("policies",)


@pytest.mark.parametrize(
    ("seen", "same"),
    [
        ([{"policy_id": "11111111-1111-4111-8111-111111111111", "enabled": True}], True),
        ([{"policy_id": "11111111-1111-4111-8111-111111111111", "enabled": False}], False),
        ([{"policy_id": "22222222-2222-4222-8222-222222222222", "enabled": True}], False),
        ([], False),
        (None, True),
    ],
)
def test_a_policy_is_attached_as_wanted_whatever_else_is(seen: Any, same: bool) -> None:
    other = {"policy_id": "33333333-3333-4333-8333-333333333333", "enabled": True}
    wanted = [{"policy_id": "11111111-1111-4111-8111-111111111111", "enabled": True}]
    assert attached(wanted, seen) is same
    assert attached(wanted, None if seen is None else [other, *seen]) is same


def test_the_nodes_that_attributes_are_read_from_are_no_part_of_what_is_shown() -> None:
    kind, members = Cluster(), [{"id": "a", "details": {"ip": "10.0.0.1"}}, {"id": "b", "details": {}}]
    there = cluster({"status": "active", "members": members})
    assert kind.resolve(there, "collect", ("$.details.ip",)) == ["10.0.0.1"]
    assert kind.resolve(there, "collect", ("id", 1)) == "b"
    assert kind.resolve(there, "show").keys() == there.seen.properties.keys() - {"members"}
    assert kind.all_attributes(there)["collect"] is None


def test_the_address_of_a_receiver_is_not_part_of_what_is_shown() -> None:
    seen = {"id": "r", "channel": {"alarm_url": "http://a/b"}}
    there = thing("OS::Senlin::Receiver", {"cluster": "c", "action": "CLUSTER_SCALE_IN"}, seen=seen)
    assert Receiver().show(there).keys() == there.seen.properties.keys() - {"channel"}
    assert Receiver().attribute(there, "channel") == {"alarm_url": "http://a/b"}
    assert Receiver.attributes["channel"].secret
