"""Clusters by openstacksdk: made, resized, updated, deleted, and what is shown of them meanwhile."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from homeostat.clouds.simulated import CloudBehaviour, Faults
from tests.wire.clustering.lives import SERVER, done, made, members
from tests.wire.running import Running


def test_a_cluster_is_made(api: Any, profile: Any) -> None:
    cluster = made(api, profile, min_size=1, metadata={"tier": "web"})
    assert (cluster.min_size, cluster.max_size, cluster.desired_capacity) == (1, 5, 2)
    assert cluster.status_reason == ("CLUSTER_CREATE: number of active nodes is equal or above desired_capacity (2).")
    assert (cluster.metadata, cluster.profile_name) == ({"tier": "web"}, "web")
    nodes = members(api, cluster)
    assert sorted(nodes) == [1, 2]
    assert [nodes[index].id for index in (1, 2)] == cluster.node_ids
    assert all(
        each.status == "ACTIVE" and each.physical_id and each.name.startswith("node-") for each in nodes.values()
    )
    (action,) = api.actions(target=cluster.id)
    assert (action.action, action.status) == ("CLUSTER_CREATE", "SUCCEEDED")


def test_its_size_changes(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    done(api, api.scale_out_cluster(cluster, 2))
    assert sorted(members(api, cluster)) == [1, 2, 3, 4]
    done(api, api.scale_in_cluster(cluster, 3))
    assert len(members(api, cluster)) == 1
    done(api, api.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=3, max_size=3))
    after = api.get_cluster(cluster.id)
    assert (after.desired_capacity, after.max_size, after.status) == (3, 3, "ACTIVE")
    assert {5, 6} <= set(members(api, cluster)), "an index is never used again"
    failed = api.get_action(api.scale_out_cluster(cluster, 1)["action"])
    assert failed.status == "FAILED"
    assert failed.status_reason == "The target capacity (4) is greater than the cluster's max_size (3)."
    assert len(members(api, cluster)) == 3


def test_nodes_that_are_named_go(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=3)
    second = members(api, cluster)[2]
    done(api, api.remove_nodes_from_cluster(cluster, [second.id], destroy_after_deletion=True))
    assert sorted(members(api, cluster)) == [1, 3]
    assert api.get_cluster(cluster.id).desired_capacity == 2
    with pytest.raises(exceptions.NotFoundException):
        api.get_node(second.id)


def test_nodes_get_another_profile_in_place(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    before = {each.physical_id for each in members(api, cluster).values()}
    larger = api.create_profile(
        name="larger", spec={**SERVER, "properties": {**SERVER["properties"], "flavor": "m1.large"}}
    )
    api.update_cluster(cluster, profile_id=larger.id)
    cluster = api.wait_for_status(api.get_cluster(cluster.id), "ACTIVE", wait=60)
    after = members(api, cluster)
    assert {each.physical_id for each in after.values()} == before
    assert {each.profile_id for each in after.values()} == {larger.id}
    assert api.get_node(after[1].id, details=True).details["flavor"] == "m1.large"


def test_a_cluster_that_is_busy_refuses(
    api: Any, profile: Any, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It stays busy: its cloud makes no server for now.
    monkeypatch.setattr(service.cloud, "behaviour", CloudBehaviour(faults=Faults(refused=1.0)))
    cluster = api.create_cluster(name="busy", profile_id=profile.id, desired_capacity=2)
    refused = api.scale_out_cluster(cluster, 1)
    assert (refused["code"], refused["error"]["type"]) == (409, "ResourceIsLocked")
    locked = f"CLUSTER_SCALE_OUT for cluster '{cluster.id}' cannot be completed because it is already locked."
    assert refused["error"]["message"] == locked
    with pytest.raises(exceptions.ConflictException, match="is in status CREATING"):
        api.delete_cluster(cluster.id)


def test_a_cluster_goes(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    with pytest.raises(exceptions.ConflictException, match="still referenced"):
        api.delete_profile(profile.id)
    action = api.delete_cluster(cluster.id)
    api.wait_for_delete(cluster, wait=60)
    assert api.get_action(action.id).status == "SUCCEEDED"
    assert list(api.clusters()) == []
    assert list(api.nodes()) == []
    api.delete_profile(profile.id)


def test_attributes_of_all_nodes_are_collected(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    nodes = members(api, cluster)
    found = {each.node_id: each.attr_value for each in api.collect_cluster_attrs(cluster.id, "$.status")}
    assert found == {each.id: "ACTIVE" for each in nodes.values()}
    found = {each.node_id: each.attr_value for each in api.collect_cluster_attrs(cluster.id, "$.details.flavor")}
    assert found == {each.id: "m1.small" for each in nodes.values()}
    found = {each.node_id: each.attr_value for each in api.collect_cluster_attrs(cluster.id, "details.status")}
    assert found == {each.id: "ACTIVE" for each in nodes.values()}, "as Nova writes it"
    assert list(api.collect_cluster_attrs(cluster.id, "$.nowhere")) == []
    with pytest.raises(exceptions.BadRequestException, match="Invalid attribute path"):
        list(api.collect_cluster_attrs(cluster.id, "$.["))


def test_a_node_that_is_lost_says_so_and_goes_first(api: Any, profile: Any, service: Running) -> None:
    cluster = made(api, profile, desired_capacity=3)
    second = members(api, cluster)[2]
    service.cloud.change(second.physical_id, status="stopped")
    api.wait_for_status(second, "ERROR", failures=[], wait=60)
    assert api.get_node(second.id).status_reason
    seen = api.get_cluster(cluster.id)
    assert (seen.status, members(api, cluster)[1].status) == ("WARNING", "ACTIVE")
    done(api, api.scale_in_cluster(cluster, 1))
    assert sorted(members(api, cluster)) == [1, 3]
    assert api.get_cluster(cluster.id).status == "ACTIVE"


def test_a_cluster_shows_what_it_went_through_last(api: Any, profile: Any) -> None:
    cluster = made(api, profile)
    reason = "number of active nodes is equal or above desired_capacity (2)."
    done(api, api.recover_cluster(cluster.id))
    assert api.get_cluster(cluster.id).status_reason == f"CLUSTER_RECOVER: {reason}"
    done(api, api.resize_cluster(cluster, max_size=7))
    assert api.get_cluster(cluster.id).status_reason == f"CLUSTER_RESIZE: {reason}"


def test_the_lifecycle_of_what_does_not_wait_is_complete(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile)
    action = done(api, api.scale_out_cluster(cluster, 1))
    body = {"complete_lifecycle": {"lifecycle_action_token": action.id}}
    answer = senlin.post(f"/clusters/{cluster.id}/actions", json=body)
    assert (answer.status_code, answer.json()) == (202, {"action": action.id})
    assert answer.headers["Location"].endswith(f"/actions/{action.id}")
    assert api.get_action(action.id).status == "SUCCEEDED"
