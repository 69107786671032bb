"""Servers that exist already become nodes."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from homeostat.clouds.port import Creation
from tests.waiting import until
from tests.wire.clustering.lives import done, made
from tests.wire.running import Running

TYPE = "os.nova.server-1.0"


@pytest.fixture
def server(service: Running, project: str) -> str:
    """A server that no stack has; its handle."""
    spec = {"name": "old", "flavor": "m1.small", "image": "cirros", "metadata": {"a": "b"}, "networks": []}
    (answer,) = service.cloud.create("server", [Creation(f"by-hand-{project}", spec)])
    handle = str(answer.handle)  # type: ignore[union-attr]
    until(lambda: service.cloud.things("server")[handle]["status"] == "active", "the server to be active")
    return handle


def test_a_server_becomes_a_node_that_joins_a_cluster(api: Any, profile: Any, server: str, service: Running) -> None:
    servers = set(service.cloud.things("server"))
    node = api.adopt_node(identity=server, type=TYPE, name="adopted", role="db", metadata={"c": "d"})
    assert (node.name, node.role, node.metadata, node.physical_id) == ("adopted", "db", {"c": "d"}, server)
    assert (node.status, node.status_reason) == ("ACTIVE", "Node adopted successfully")
    assert api.get_profile(node.profile_id).name == "prof-adopted"
    assert api.get_profile(node.profile_id).spec["properties"]["flavor"] == "m1.small"

    def marked() -> bool:
        seen: Any = service.cloud.things("server")[server]
        return (seen["name"], seen["metadata"]) == ("adopted", {"a": "b", "cluster_node_id": node.id})

    until(marked, "the server to say which node it is")
    cluster = made(api, profile, desired_capacity=1)
    api.wait_for_status(api.get_node(node.id), "ACTIVE", wait=60)
    done(api, api.add_nodes_to_cluster(cluster, [node.id]))
    joined = api.get_node(node.id)
    assert (joined.physical_id, joined.cluster_id) == (server, cluster.id)
    assert set(service.cloud.things("server")) >= servers
    api.delete_cluster(cluster.id)
    api.wait_for_delete(cluster, wait=60)
    assert server not in service.cloud.things("server")


def test_what_it_would_be_is_previewed(api: Any, server: str) -> None:
    shown = api.adopt_node(preview=True, identity=server, type=TYPE, overrides={"flavor": "m1.large"}, snapshot=False)
    properties = {"flavor": "m1.large", "image": "cirros", "metadata": {"a": "b"}, "networks": [{"network": "default"}]}
    assert shown["node_profile"]["node_preview"] == {
        "type": "os.nova.server",
        "version": "1.0",
        "properties": properties,
    }
    assert list(api.nodes()) == []
    assert list(api.profiles()) == []


def test_a_server_has_one_owner(api: Any, server: str) -> None:
    node = api.adopt_node(identity=server, type=TYPE)
    with pytest.raises(exceptions.BadRequestException, match="cannot be adopted"):
        api.adopt_node(identity=server, type=TYPE)
    assert [each.id for each in api.nodes()] == [node.id]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"type": TYPE}, 400, "'identity' is a required property"),
        ({"identity": "none-such", "type": TYPE}, 404, "could not be found"),
        ({"identity": "SERVER", "type": "none-such"}, 404, "could not be found"),
        ({"identity": "SERVER", "type": "os.heat.stack-1.0"}, 400, "cannot be adopted"),
        ({"identity": "SERVER", "type": TYPE, "snapshot": True}, 400, "make an image of it first"),
        ({"identity": "SERVER", "type": TYPE, "overrides": {"flaver": "x"}}, 400, "flaver"),
        ({"identity": "SERVER", "type": TYPE, "more": 1}, 400, "'more' was unexpected"),
    ],
)
def test_what_cannot_be_adopted(senlin: httpx.Client, server: str, body: Any, code: int, message: str) -> None:
    body = {name: server if value == "SERVER" else value for name, value in body.items()}
    for path in ("/nodes/adopt", "/nodes/adopt-preview"):
        answer = senlin.post(path, json=body)
        assert answer.status_code == code, answer.text
        assert message in answer.json()["error"]["message"]
    old = senlin.post("/nodes/adopt", json=body, headers={"OpenStack-API-Version": "clustering 1.6"})
    assert old.json()["error"]["type"] == "MethodVersionNotFound"


def test_a_server_becomes_a_node_with_a_profile_that_is_named(api: Any, profile: Any, senlin: httpx.Client) -> None:
    """An extension: the server is taken to be as the profile says, and is not made again."""
    node = api.wait_for_status(api.create_node(name="n", profile_id=profile.id), "ACTIVE", wait=60)
    body = {"identity": node.physical_id, "type": TYPE, "profile_id": profile.id}
    refused = senlin.post("/nodes/adopt", json=body)
    assert (refused.status_code, "cannot be adopted" in refused.json()["error"]["message"]) == (400, True)
    refused = senlin.post("/nodes/adopt", json={**body, "overrides": {"flavor": "m1.large"}})
    assert (refused.status_code, "goes without overrides" in refused.json()["error"]["message"]) == (400, True)
    assert len(list(api.profiles())) == 1
