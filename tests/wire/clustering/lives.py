"""What tests of clusters do with them, by openstacksdk."""

from typing import Any

SERVER: dict[str, Any] = {
    "type": "os.nova.server",
    "version": "1.0",
    "properties": {"flavor": "m1.small", "image": "cirros", "networks": [{"network": "net"}]},
}


def made(api: Any, profile: Any, **values: Any) -> Any:
    given = {"name": "c", "desired_capacity": 2, "max_size": 5, **values}
    cluster = api.create_cluster(profile_id=profile.id, **given)
    return api.wait_for_status(cluster, "ACTIVE", wait=60)


def done(api: Any, answer: Any) -> Any:
    """The action that a request has begun, once it has ended."""
    return api.wait_for_status(api.get_action(answer["action"]), "SUCCEEDED", wait=60)


def members(api: Any, cluster: Any) -> dict[int, Any]:
    return {each.index: each for each in api.nodes(cluster_id=cluster.id)}
