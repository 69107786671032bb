"""Nodes that join clusters and leave them alive, by openstacksdk: their servers do not hear of it."""

from typing import Any

import httpx
import pytest

from tests.wire.clustering.lives import SERVER, done, made, members
from tests.wire.clustering.test_nodes import ended, settled
from tests.wire.running import Running

DETAILED = {
    **SERVER,
    "properties": {**SERVER["properties"], "user_data": "%node_name% %node_id% %node_index%", "name": "s-%node_index%"},
}


@pytest.fixture
def detailed(api: Any) -> Any:
    """A profile whose servers are made with what their nodes are."""
    return api.create_profile(name="detailed", spec=DETAILED)


def alone(api: Any, profile: Any, name: str = "alone") -> Any:
    node = settled(api, api.create_node(name=name, profile_id=profile.id, role="db", metadata={"a": "b"}))
    ended(api, node.id)
    return node


def metadata_of(api: Any, node: Any) -> dict[str, str]:
    found: dict[str, str] = api.get_node(node.id, details=True).details["metadata"]
    return found


def same(node: Any, other: Any) -> bool:
    """Whether they are one node with one server, made once."""
    names = ("id", "name", "physical_id", "profile_id", "metadata", "created_at")
    return all(getattr(node, name) == getattr(other, name) for name in names)


def test_a_node_joins_a_cluster_and_leaves_it(api: Any, detailed: Any, service: Running) -> None:
    cluster, node = made(api, detailed, desired_capacity=1), alone(api, detailed)
    servers = dict(service.cloud.things("server"))
    done(api, api.add_nodes_to_cluster(cluster, [node.id]))
    joined = api.get_node(node.id)
    assert same(node, joined)
    assert (joined.cluster_id, joined.index, joined.role, joined.status) == (cluster.id, 2, "", "ACTIVE")
    after = api.get_cluster(cluster.id)
    assert (after.desired_capacity, after.status, set(after.node_ids)) == (2, "ACTIVE", {*cluster.node_ids, node.id})
    assert metadata_of(api, node) == {
        "cluster_node_id": node.id,
        "cluster_id": cluster.id,
        "cluster_node_index": "2",
    }
    done(api, api.remove_nodes_from_cluster(cluster, [node.id]))
    left = api.get_node(node.id)
    assert same(node, left)
    assert (left.cluster_id, left.index, left.status) == ("", -1, "ACTIVE")
    assert api.get_cluster(cluster.id).desired_capacity == 1
    ended(api, node.id)
    assert metadata_of(api, node) == {"cluster_node_id": node.id}
    assert set(service.cloud.things("server")) == set(servers), "no server came or went"


def test_a_node_of_a_cluster_leaves_it_and_goes_into_another(api: Any, detailed: Any, service: Running) -> None:
    first = made(api, detailed, desired_capacity=3)
    second = made(api, detailed, desired_capacity=1)
    servers = set(service.cloud.things("server"))
    node = members(api, first)[2]
    done(api, api.remove_nodes_from_cluster(first, [node.name]))
    assert sorted(members(api, first)) == [1, 3]
    done(api, api.add_nodes_to_cluster(second, [node.id]))
    assert same(node, members(api, second)[2])
    done(api, api.remove_nodes_from_cluster(second, [node.id]))
    done(api, api.add_nodes_to_cluster(first, [node.id]))
    assert same(node, members(api, first)[4])
    assert set(service.cloud.things("server")) == servers
    done(api, api.scale_out_cluster(first, 1))
    assert sorted(members(api, first)) == [1, 3, 4, 5]


def test_nodes_take_the_places_of_others(api: Any, detailed: Any, senlin: httpx.Client) -> None:
    cluster, node = made(api, detailed), alone(api, detailed)
    old = members(api, cluster)[1]
    body = {"replace_nodes": {"nodes": {old.id: node.name}}}
    url = f"/clusters/{cluster.id}/actions"
    refused = senlin.post(url, json=body, headers={"OpenStack-API-Version": "clustering 1.2"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "MethodVersionNotFound")
    done(api, senlin.post(url, json=body).json())
    assert {index: each.id for index, each in members(api, cluster).items()} == {
        2: members(api, cluster)[2].id,
        3: node.id,
    }
    left = api.get_node(old.id)
    assert same(old, left)
    assert left.cluster_id == ""
    assert api.get_cluster(cluster.id).desired_capacity == 2


def test_a_deletion_policy_may_keep_the_nodes(api: Any, detailed: Any) -> None:
    cluster = made(api, detailed, desired_capacity=3)
    properties = {"criteria": "OLDEST_FIRST", "destroy_after_deletion": False}
    spec = {"type": "senlin.policy.deletion", "version": "1.0", "properties": properties}
    policy = api.create_policy(name="kept", spec=spec)
    done(api, api.attach_policy_to_cluster(cluster, policy.id))
    before = members(api, cluster)
    done(api, api.scale_in_cluster(cluster, 1))
    (gone,) = (before[index] for index in before.keys() - members(api, cluster).keys())
    assert same(gone, api.get_node(gone.id))


def test_a_node_that_moved_lives_on_as_others_do(api: Any, detailed: Any) -> None:
    """It gets another profile, and goes."""
    cluster, node = made(api, detailed, desired_capacity=1), alone(api, detailed)
    done(api, api.add_nodes_to_cluster(cluster, [node.id]))
    larger = api.create_profile(
        name="larger", spec={**DETAILED, "properties": {**DETAILED["properties"], "flavor": "m1.large"}}
    )
    api.update_cluster(cluster, profile_id=larger.id)
    ended(api, cluster.id)
    moved = api.get_node(node.id, details=True)
    assert (moved.details["flavor"], moved.physical_id) == ("m1.large", node.physical_id)
    done(api, api.remove_nodes_from_cluster(cluster, [node.id]))
    api.update_node(node.id, profile_id=detailed.id)
    ended(api, node.id)
    moved = api.get_node(node.id, details=True)
    assert (moved.details["flavor"], moved.physical_id) == ("m1.small", node.physical_id)
    api.delete_node(node.id)
    api.wait_for_delete(api.get_node(node.id), wait=60)
    api.delete_cluster(cluster.id)
    api.wait_for_delete(api.get_cluster(cluster.id), wait=60)
    assert list(api.nodes()) == []


NESTED = {
    **SERVER,
    "properties": {**SERVER["properties"], "networks": [{"network": "net", "floating_network": "public"}]},
}
STACK: dict[str, Any] = {
    "type": "os.heat.stack",
    "version": "1.0",
    "properties": {
        "template": {
            "heat_template_version": "2018-08-31",
            "resources": {"word": {"type": "OS::Heat::RandomString"}},
        }
    },
}


@pytest.mark.parametrize("spec", [NESTED, STACK], ids=["server with an address", "stack"])
def test_what_a_node_is_made_of_moves_along(api: Any, http: httpx.Client, spec: Any) -> None:
    profile = api.create_profile(name="several", spec=spec)
    cluster = made(api, profile, desired_capacity=2)
    node = members(api, cluster)[1]
    done(api, api.remove_nodes_from_cluster(cluster, [node.id]))
    assert same(node, api.get_node(node.id))
    ended(api, node.id)
    done(api, api.add_nodes_to_cluster(cluster, [node.id]))
    assert same(node, members(api, cluster)[3])
    ended(api, cluster.id)
    done(api, api.remove_nodes_from_cluster(cluster, [node.id]))
    api.delete_cluster(cluster.id)
    api.wait_for_delete(api.get_cluster(cluster.id), wait=60)
    assert api.get_node(node.id).status == "ACTIVE"
    api.delete_node(node.id)
    api.wait_for_delete(api.get_node(node.id), wait=60)


def test_what_may_not_be_moved_stays(api: Any, profile: Any, senlin: httpx.Client, service: Running) -> None:
    cluster = made(api, profile, desired_capacity=2, min_size=2, max_size=2)
    other = made(api, profile, desired_capacity=1)
    node = alone(api, profile)
    first, foreign = members(api, cluster)[1], members(api, other)[1]
    stacks = alone(api, api.create_profile(name="stacks", spec=STACK), "stacks")

    def refused(target: Any, body: Any) -> str:
        answer = senlin.post(f"/clusters/{target.id}/actions", json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "BadRequest"), answer.text
        return str(answer.json()["error"]["message"])

    assert "not found" in refused(other, {"add_nodes": {"nodes": ["none-such"]}})
    assert "already owned by some cluster" in refused(other, {"add_nodes": {"nodes": [first.id]}})
    assert "does not match that of the cluster" in refused(other, {"add_nodes": {"nodes": [stacks.id]}})
    assert "greater than the cluster's max_size (2)" in refused(cluster, {"add_nodes": {"nodes": [node.id]}})
    assert "less than the cluster's min_size (2)" in refused(cluster, {"del_nodes": {"nodes": [first.id]}})
    assert "not members" in refused(cluster, {"del_nodes": {"nodes": [foreign.id]}})
    assert "at least 1 item" in refused(cluster, {"add_nodes": {"nodes": []}})
    assert "must be unique" in refused(cluster, {"add_nodes": {"nodes": [node.id, node.id]}})
    assert "in the list already" in refused(other, {"add_nodes": {"nodes": [node.id, node.name]}})
    assert "is not a map" in refused(cluster, {"replace_nodes": {"nodes": {}}})
    assert "duplicated values" in refused(cluster, {"replace_nodes": {"nodes": {"a": "c", "b": "c"}}})
    assert "already member of a cluster" in refused(cluster, {"replace_nodes": {"nodes": {first.id: foreign.id}}})
    many = {"add_nodes": {"nodes": [node.id], "more": 1}}
    assert "'more' was unexpected" in refused(cluster, many)
    service.cloud.change(node.physical_id, status="stopped")
    api.wait_for_status(node, "ERROR", failures=[], wait=60)
    assert "not ACTIVE" in refused(other, {"add_nodes": {"nodes": [node.id]}})


def test_other_projects_cannot_reach_it(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster, node = made(api, profile, desired_capacity=1), alone(api, profile)
    theirs = {"X-Project-Id": "another"}
    body = {"add_nodes": {"nodes": [node.id]}}
    assert senlin.post(f"/clusters/{cluster.id}/actions", json=body, headers=theirs).status_code == 404
