"""Policies that put something into the stack of a cluster, by openstacksdk: load balancers and server groups."""

from typing import Any

import httpx
import pytest

from tests.waiting import until
from tests.wire.clustering.lives import done, made, members
from tests.wire.running import Running

BALANCED: dict[str, Any] = {
    "pool": {"subnet": "back", "protocol_port": 8080},
    "vip": {"subnet": "front"},
    "health_monitor": {"type": "HTTP", "delay": 5, "url_path": "/"},
}


def policy(api: Any, kind: str = "loadbalance", version: str = "1.3", **properties: Any) -> Any:
    spec = {"type": f"senlin.policy.{kind}", "version": version, "properties": properties or BALANCED}
    return api.create_policy(name=kind, spec=spec)


def pool(service: Running, cluster: Any) -> tuple[str, set[str]]:
    """The pool of a cluster, and the servers that are its members."""
    things = service.cloud.things
    (found,) = [handle for handle, each in things("pool").items() if each["name"] == f"senlin-pool-{cluster.name}"]
    return found, {each["server"] for each in things("pool_member").values() if each["pool"] == found}


def servers(api: Any, cluster: Any) -> set[str]:
    return {each.physical_id for each in members(api, cluster).values()}


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3"])
def test_a_cluster_is_balanced_scaled_and_let_go(
    api: Any, profile: Any, senlin: httpx.Client, service: Running, version: str
) -> None:
    cluster = made(api, profile, name=f"balanced-{version}")
    balanced = policy(api, version=version)
    action = done(api, api.attach_policy_to_cluster(cluster, balanced.id, enabled=True))
    assert (action.action, action.status_reason) == ("CLUSTER_ATTACH_POLICY", "Action completed successfully.")
    handle, there = pool(service, cluster)
    assert there == servers(api, cluster)
    binding = api.get_cluster_policy(balanced.id, cluster.id)
    data = binding.data["LoadBalancingPolicy"]["data"]
    assert data["pool"] == handle
    assert {name for name, value in data.items() if value} == {
        "loadbalancer",
        "listener",
        "pool",
        "healthmonitor",
        "vip_address",
    }
    shown = senlin.get(f"/clusters/{cluster.id}").json()["cluster"]["data"]
    assert shown == {"loadbalancers": {balanced.id: {"vip_address": data["vip_address"]}}}
    done(api, api.scale_out_cluster(cluster, 1))
    assert pool(service, cluster)[1] == servers(api, cluster)
    for each in members(api, cluster).values():
        assert service.cloud.things("pool_member")[each.data["lb_member"]]["server"] == each.physical_id
    done(api, api.detach_policy_from_cluster(cluster, balanced.id))
    assert handle not in service.cloud.things("pool")
    assert len(members(api, cluster)) == 3


def test_what_goes_on_is_refused_meanwhile_and_what_is_wrong_is_said(
    api: Any, profile: Any, senlin: httpx.Client, service: Running
) -> None:
    cluster = made(api, profile, name="refusing", desired_capacity=1)
    balanced = policy(api)
    done(api, api.attach_policy_to_cluster(cluster, balanced.id, enabled=True))
    other = policy(api)
    answer = api.attach_policy_to_cluster(cluster, other.id)
    action = api.wait_for_status(api.get_action(answer["action"]), "FAILED", failures=["SUCCEEDED"], wait=60)
    assert "Only one instance of policy type (senlin.policy.loadbalance)" in action.status_reason
    again = api.attach_policy_to_cluster(cluster, balanced.id)
    assert api.get_action(again["action"]).status == "SUCCEEDED"
    with pytest.raises(Exception, match="still attached"):
        api.delete_policy(balanced.id)
    wrong = {"type": "senlin.policy.loadbalance", "version": "1.3", "properties": {"pool": {"subnet": "s", "id": "p"}}}
    refused = senlin.post("/policies", json={"policy": {"name": "wrong", "spec": wrong}})
    assert (refused.status_code, "name that one, too" in refused.text or "VIP" in refused.text) == (400, True)


def test_a_cluster_that_is_balanced_is_deleted_with_all_of_it(api: Any, profile: Any, service: Running) -> None:
    cluster = made(api, profile, name="gone", desired_capacity=1)
    done(api, api.attach_policy_to_cluster(cluster, policy(api).id, enabled=True))
    handle, _ = pool(service, cluster)
    api.delete_cluster(cluster.id)
    until(lambda: handle not in service.cloud.things("pool"), "the pool to go")
    api.wait_for_delete(cluster, wait=60)


def test_a_server_group_is_shown_with_the_nodes_that_are_in_it(api: Any, profile: Any, service: Running) -> None:
    cluster = made(api, profile, name="apart", desired_capacity=1)
    apart = policy(api, "affinity", "1.0", servergroup={"policies": "soft-anti-affinity"}, availability_zone="az1")
    done(api, api.attach_policy_to_cluster(cluster, apart.id, enabled=True))
    data = api.get_cluster_policy(apart.id, cluster.id).data["AffinityPolicy"]["data"]
    assert data["servergroup_id"] in service.cloud.things("server_group")
    done(api, api.scale_out_cluster(cluster, 1))
    nodes = members(api, cluster)
    assert (nodes[1].data, nodes[2].data) == ({}, {"placement": {"servergroup": data["servergroup_id"], "zone": "az1"}})
    hints = service.cloud.things("server")[nodes[2].physical_id]["scheduler_hints"]
    assert hints == {"group": data["servergroup_id"]}
    done(api, api.detach_policy_from_cluster(cluster, apart.id))
    assert data["servergroup_id"] not in service.cloud.things("server_group")
