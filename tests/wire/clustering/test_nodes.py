"""Nodes by openstacksdk: in clusters and without one, and the events of both."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from tests.wire.clustering.lives import SERVER, done, made, members


def settled(api: Any, node: Any) -> Any:
    return api.wait_for_status(node, "ACTIVE", wait=60)


def ended(api: Any, target: str) -> None:
    for action in api.actions(target=target):
        api.wait_for_status(action, "SUCCEEDED", wait=60)


def test_a_node_without_a_cluster_lives(api: Any, profile: Any) -> None:
    node = settled(api, api.create_node(name="alone", profile_id=profile.id, role="db", metadata={"a": "b"}))
    assert (node.name, node.index, node.cluster_id, node.role, node.metadata) == ("alone", -1, "", "db", {"a": "b"})
    details = api.get_node(node.id, details=True).details
    assert (details["name"], details["metadata"]) == ("alone", {"cluster_node_id": node.id})
    api.update_node(node, name="renamed", role="web")
    ended(api, node.id)
    node = api.get_node(node.id, details=True)
    assert (node.name, node.role, node.details["name"]) == ("renamed", "web", "renamed")
    node = api.get_node(node.id)
    api.delete_node(node.id)
    api.wait_for_delete(node, wait=60)
    assert list(api.nodes()) == []


def test_a_node_is_made_in_a_cluster(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=1, max_size=2)
    node = settled(api, api.create_node(name="ignored", profile_id=profile.id, cluster_id=cluster.id, role="db"))
    ended(api, node.id)
    assert (node.index, node.role, node.name != "ignored") == (2, "db", True)
    assert api.get_cluster(cluster.id).desired_capacity == 2
    with pytest.raises(exceptions.BadRequestException, match="greater than the cluster's max_size"):
        api.create_node(name="full", profile_id=profile.id, cluster_id=cluster.id)


def test_a_node_of_a_cluster_has_a_profile_of_its_own(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    large = {**SERVER, "properties": {**SERVER["properties"], "flavor": "m1.large"}}
    other = api.create_profile(name="large", spec=large)
    first = members(api, cluster)[1]
    api.update_node(first, profile_id=other.id)
    ended(api, first.id)
    done(api, api.scale_out_cluster(cluster, 1))
    flavors = {
        each.index: api.get_node(each.id, details=True).details["flavor"] for each in members(api, cluster).values()
    }
    assert flavors == {1: "m1.large", 2: "m1.small", 3: "m1.small"}
    assert api.get_node(first.id).physical_id == first.physical_id


def test_a_tainted_node_goes_first(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=3)
    second = members(api, cluster)[2]
    api.update_node(second, tainted=True)
    assert api.get_node(second.id).tainted is True
    done(api, api.scale_in_cluster(cluster, 1))
    assert sorted(members(api, cluster)) == [1, 3]


def test_a_node_of_a_cluster_is_deleted(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    first = members(api, cluster)[1]
    api.delete_node(first)
    api.wait_for_delete(first, wait=60)
    assert (sorted(members(api, cluster)), api.get_cluster(cluster.id).desired_capacity) == ([2], 1)


def test_nothing_to_change_is_refused(api: Any, profile: Any, senlin: httpx.Client) -> None:
    first = members(api, made(api, profile))[1]
    answer = senlin.patch(f"/nodes/{first.id}", json={"node": {"name": first.name}})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "No property needs an update.")


def test_events_say_what_happened(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=1)
    node = members(api, cluster)[1]
    happened = [(each.obj_type, each.action, each.status) for each in api.events(cluster_id=cluster.id)]
    assert happened[0] == ("CLUSTER", "CLUSTER_CREATE", "start")
    assert ("NODE", "NODE_CREATE", "end") in happened
    assert happened[-1] == ("CLUSTER", "CLUSTER_CREATE", "end")
    (created,) = [each for each in api.events(obj_id=node.id) if each.status == "end"]
    assert api.get_event(created.id).obj_name == node.name
    first = senlin.get("/events?limit=1").json()["events"]
    following = senlin.get(f"/events?limit=1&marker={first[0]['id']}").json()["events"]
    assert first[0]["id"] < following[0]["id"] or first[0]["timestamp"] <= following[0]["timestamp"]
    assert first[0]["id"] != following[0]["id"]
    assert senlin.get("/events?level=ERROR").json() == {"events": []}
    assert senlin.get("/events", headers={"X-Project-Id": "another"}).json() == {"events": []}
    assert senlin.get(f"/events/{first[0]['id']}", headers={"X-Project-Id": "another"}).status_code == 404


def test_a_node_that_is_named_in_two_ways_goes_once(api: Any, senlin: httpx.Client, profile: Any) -> None:
    """Counted twice, it would take another node with it."""
    cluster = made(api, profile, desired_capacity=3)
    first = members(api, cluster)[1]
    body = {"del_nodes": {"nodes": [first.id, first.name], "destroy_after_deletion": True}}
    answer = senlin.post(f"/clusters/{cluster.id}/actions", json=body)
    assert answer.status_code == 400
    assert "names the node" in answer.json()["error"]["message"]
    assert (len(members(api, cluster)), api.get_cluster(cluster.id).desired_capacity) == (3, 3)
