"""What policies attached to a cluster make of its requests."""

import time
from typing import Any

import httpx
import pytest

from tests.wire.clustering.lives import done, made, members


def attached(api: Any, cluster: Any, kind: str, version: str = "1.0", **properties: Any) -> Any:
    spec = {"type": f"senlin.policy.{kind}", "version": version, "properties": properties}
    policy = api.create_policy(name=kind, spec=spec)
    done(api, api.attach_policy_to_cluster(cluster, policy.id, enabled=True))
    return policy


def scaling(event: str = "CLUSTER_SCALE_OUT", **adjustment: Any) -> dict[str, Any]:
    return {"event": event, "adjustment": adjustment}


def test_a_scaling_policy_says_how_many(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=2, max_size=6)
    attached(api, cluster, "scaling", **scaling(type="CHANGE_IN_PERCENTAGE", number=100))
    done(api, api.scale_out_cluster(cluster))
    assert len(members(api, cluster)) == 4
    done(api, api.scale_in_cluster(cluster))
    assert len(members(api, cluster)) == 3, "one, where no policy says more"


def test_it_goes_as_far_as_the_limits_let_it(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=2, max_size=3)
    attached(api, cluster, "scaling", **scaling(number=5, best_effort=True))
    done(api, api.scale_out_cluster(cluster))
    assert len(members(api, cluster)) == 3


def test_a_request_beyond_the_limits_fails_and_takes_no_node(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=1, min_size=0)
    policy = attached(api, cluster, "scaling", **scaling("CLUSTER_SCALE_IN", number=1))
    failed = api.get_action(api.scale_in_cluster(cluster, 2)["action"])
    why = "The target capacity (-1) is less than the cluster's min_size (0)."
    assert (failed.status, failed.status_reason) == (
        "FAILED",
        f"Policy check failure: Failed policy '{policy.name}': {why}",
    )
    after = api.get_cluster(cluster.id)
    assert (after.status, after.desired_capacity, len(members(api, cluster))) == ("ACTIVE", 1, 1)


def test_a_cooldown_refuses_what_comes_too_soon(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=1)
    policy = attached(api, cluster, "scaling", **scaling(number=1, cooldown=3600))
    done(api, api.scale_out_cluster(cluster))
    refused = api.scale_out_cluster(cluster)
    assert (refused["code"], refused["error"]["type"]) == (409, "ActionCooldown")
    assert policy.id in refused["error"]["message"]
    done(api, api.update_cluster_policy(cluster, policy.id, enabled=False))
    done(api, api.scale_out_cluster(cluster))
    assert api.get_cluster_policy(policy.id, cluster.id).data is None
    binding = senlin.get(f"/clusters/{cluster.id}/policies/{policy.id}").json()["cluster_policy"]
    assert (binding["enabled"], binding["last_op"] is not None) == (False, True)


@pytest.mark.parametrize(("criteria", "left"), [("OLDEST_FIRST", [3, 4]), ("YOUNGEST_FIRST", [1, 2])])
def test_a_deletion_policy_says_who_goes(api: Any, profile: Any, criteria: str, left: list[int]) -> None:
    cluster = made(api, profile, desired_capacity=1)
    for _ in range(3):  # one after the other, so that they have different ages
        done(api, api.scale_out_cluster(cluster, 1))
    attached(api, cluster, "deletion", criteria=criteria)
    done(api, api.scale_in_cluster(cluster, 2))
    assert sorted(members(api, cluster)) == left


def test_zones_are_filled_by_their_weights(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    attached(api, cluster, "zone_placement", zones=[{"name": "az1", "weight": 300}, {"name": "az2"}])
    done(api, api.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=4))
    nodes = members(api, cluster)
    zones = sorted(each.data["placement"]["zone"] for each in nodes.values())
    assert zones == ["az1", "az1", "az1", "az2"]
    for each in nodes.values():
        seen = api.get_node(each.id, details=True).details
        assert seen["availability_zone"] == each.data["placement"]["zone"]
    done(api, api.scale_in_cluster(cluster, 3))
    (last,) = members(api, cluster).values()
    assert last.data["placement"]["zone"] == "az1"


def test_a_batch_policy_leaves_nodes_in_service(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=3)
    attached(api, cluster, "batch", min_in_service=2, max_batch_size=1, pause_time=1)
    other = api.create_profile(
        name="other", spec={**profile.spec, "properties": {**profile.spec["properties"], "metadata": {"v": "2"}}}
    )
    began = time.monotonic()
    api.update_cluster(cluster, profile_id=other.id)
    api.wait_for_status(api.get_cluster(cluster.id), "ACTIVE", wait=60)
    assert time.monotonic() - began >= 2.0, "two pauses between three batches"
    for each in members(api, cluster).values():
        assert api.get_node(each.id, details=True).details["metadata"]["v"] == "2"


def test_bindings_are_shown(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=0)
    policy = attached(api, cluster, "deletion", "1.1", criteria="OLDEST_FIRST")
    (binding,) = api.cluster_policies(cluster.id)
    assert (binding.policy_id, binding.policy_name, binding.policy_type) == (
        policy.id,
        "deletion",
        "senlin.policy.deletion-1.1",
    )
    assert binding.is_enabled
    assert senlin.get(f"/clusters/{cluster.id}").json()["cluster"]["policies"] == [policy.id]
    done(api, api.detach_policy_from_cluster(cluster, policy.id))
    assert list(api.cluster_policies(cluster.id)) == []


def test_a_second_policy_of_a_type_fails_its_action(api: Any, profile: Any) -> None:
    cluster = made(api, profile, desired_capacity=0)
    attached(api, cluster, "deletion")
    spec = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
    again = api.create_policy(name="again", spec=spec)
    action = api.get_action(api.attach_policy_to_cluster(cluster, again.id)["action"])
    assert (action.status, len(list(api.cluster_policies(cluster.id)))) == ("FAILED", 1)
    assert "Only one instance of policy type" in action.status_reason


def test_what_cannot_be_carried_out_is_not_attached(api: Any, profile: Any, senlin: httpx.Client) -> None:
    cluster = made(api, profile, desired_capacity=0)
    spec = {"type": "senlin.policy.region_placement", "version": "1.0", "properties": {"regions": [{"name": "r"}]}}
    policy = api.create_policy(name="far", spec=spec)
    answer = senlin.post(f"/clusters/{cluster.id}/actions", json={"policy_attach": {"policy_id": policy.id}})
    action = api.get_action(answer.json()["action"])
    assert (action.status, list(api.cluster_policies(cluster.id))) == ("FAILED", [])
    assert "region r is not known here" in action.status_reason
