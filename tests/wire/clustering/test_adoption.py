"""Servers that exist already become nodes."""

from typing import Any

import httpx
import pytest
from openstack import exceptions

from homeostat.clouds.port import Creation
from tests.waiting import until
from tests.wire.clustering.lives import done, made
from tests.wire.running import Running, settled

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
    properties = {"flavor": "m1.large", "image": "cirros", "metadata": {"a": "b"}, "networks": [{"network": "private"}]}
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
        ({"identity": "SERVER", "type": "os.heat.stack-1.0"}, 404, "could not be found"),
        ({"identity": "SERVER", "type": "container.dockerinc.docker-1.0"}, 404, "could not be found"),
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


TEMPLATE = """
heat_template_version: 2018-08-31
parameters: {word: {type: string, default: a}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}}
outputs: {word: {value: {get_param: word}}}
"""
HIDDEN = TEMPLATE.replace("default: a", "default: a, hidden: true")
STACKS = "os.heat.stack-1.0"


def made_stack(http: httpx.Client, name: str, template: str = TEMPLATE) -> str:
    body = {"stack_name": name, "template": template, "parameters": {"word": "b"}}
    answer = http.post("stacks", json=body)
    assert answer.status_code == 201, answer.text
    identity = str(answer.json()["stack"]["id"])
    settled(http, identity, status="CREATE_COMPLETE")
    return identity


def resources(http: httpx.Client, stack: str) -> set[tuple[str, str]]:
    listed = http.get(f"stacks/{stack}/resources?nested_depth=5", follow_redirects=True).json()["resources"]
    return {(each["resource_name"], each["physical_resource_id"]) for each in listed}


def test_a_stack_becomes_a_node(api: Any, http: httpx.Client) -> None:
    stack = made_stack(http, "old")
    before = resources(http, stack)
    assert len(before) == 3
    preview = api.adopt_node(preview=True, identity="old", type=STACKS)["node_profile"]["node_preview"]
    assert preview["properties"]["parameters"] == {"word": "b"}
    node = api.adopt_node(identity="old", type=STACKS, name="adopted")
    assert (node.status, node.physical_id) == ("ACTIVE", stack)
    root = api.get_node(node.id)
    assert [each["stack_name"] for each in http.get("stacks").json()["stacks"]] == [f"node-{root.id[:8]}"]
    assert resources(http, stack) == before
    cluster = made(api, api.get_profile(node.profile_id), desired_capacity=1)
    done(api, api.add_nodes_to_cluster(cluster, [node.id]))
    assert resources(http, stack) == before
    assert api.get_node(node.id).physical_id == stack
    other = api.get_profile(node.profile_id).spec
    other = {**other, "properties": {**other["properties"], "parameters": {"word": "c"}}}
    api.update_cluster(cluster, profile_id=api.create_profile(name="c", spec=other).id)
    for action in api.actions(target=cluster.id):
        api.wait_for_status(action, "SUCCEEDED", wait=60)
    shown = http.get(f"stacks/{stack}", follow_redirects=True).json()["stack"]
    assert shown["parameters"]["word"] == "c"
    api.delete_cluster(cluster.id)
    api.wait_for_delete(cluster, wait=60)
    assert http.get("stacks").json()["stacks"] == []
    assert http.get(f"stacks/{stack}", follow_redirects=True).json()["stack"]["stack_status"] == "DELETE_COMPLETE"


def test_stacks_that_cannot_become_nodes(api: Any, profile: Any, http: httpx.Client, senlin: httpx.Client) -> None:
    def refused(identity: str) -> str:
        answer = senlin.post("/nodes/adopt", json={"identity": identity, "type": STACKS})
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"]["message"])

    assert "hidden" in refused(made_stack(http, "secret", HIDDEN))
    cluster = made(api, profile, desired_capacity=0)
    assert "that of a cluster" in refused(cluster.id)
    whole = made_stack(http, "whole")
    inside = dict(resources(http, whole))["group"]
    assert "a part of another stack" in refused(inside)
    foreign = {"X-Project-Id": "another"}
    answer = senlin.post("/nodes/adopt", json={"identity": whole, "type": STACKS}, headers=foreign)
    assert answer.status_code == 404
