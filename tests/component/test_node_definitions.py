"""Nodes of clusters: what profiles become lives as a resource of a stack, and as members of a group."""

import json
from typing import Any

import pytest

from homeostat.clustering.decisions.profiles import Terms, check_profile, define, node_metadata
from tests.component.running import Service, group
from tests.unit.clustering.profile_cases import device, server, stack

METADATA = node_metadata("n-1", "c-1", 1)
TERMS = Terms("node-x", METADATA)
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"size": {"type": "number"}},
    "resources": {
        "outer": {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "size"}}},
        "inner": {"type": "my.yaml"},
    },
}
INNER = {
    "heat_template_version": "2018-08-31",
    "parameters": {"deep": {"type": "string"}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "deep"}}}},
}
URL = "http://example.com/template"
PROFILES: dict[str, dict[str, Any]] = {
    "server": server(networks=[{"network": "private"}], metadata={"get": "b", "x": "y"}),
    "floating": server(networks=[{"network": "private", "floating_network": "public"}], security_groups=["default"]),
    "volume": server(block_device_mapping_v2=[device(source_type="blank", delete_on_termination=True)]),
    "stack": stack(
        template=TEMPLATE,
        parameters={"size": 3},
        files={"my.yaml": json.dumps(INNER)},
        environment={"parameter_defaults": {"deep": "x"}},
        timeout=7,
    ),
    "url": stack(template_url=URL, parameters={"deep": "x"}),
    "region": server(context={"region_name": "north"}),
}
THINGS = {
    "server": {"server"},
    "floating": {"floating_ip", "port", "server"},
    "volume": {"server", "volume"},
    "stack": set(),
    "url": set(),
    "region": {"remote_stack"},
}


def kinds(service: Service) -> set[str]:
    return {handle.rpartition("-")[0] for handle in service.cloud.things()}


@pytest.mark.parametrize("members", [0, 2], ids=["a resource", "members of a group"])
@pytest.mark.parametrize("name", PROFILES)
def test_a_node_is_made_and_deleted(name: str, members: int) -> None:
    service = Service()
    definition = define(check_profile(PROFILES[name]), TERMS)
    node = group(members, dict(definition.resource)) if members else dict(definition.resource)
    # What a URL has is fetched by the API, which puts it among the files of the stack.
    files = {**definition.files, URL: json.dumps(INNER)}
    stack_id = service.create({"nodes": node}, files=files, environment=dict(definition.environment))
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert kinds(service) == THINGS[name]
    servers = service.cloud.things("server").values()
    if "server" in THINGS[name]:
        assert len(servers) == max(members, 1)
        assert {each["name"] for each in servers} == {"node-x"}
        assert all(each["metadata"].items() >= METADATA.items() for each in servers)
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


def test_a_nested_node_refers_to_its_server() -> None:
    service = Service()
    definition = define(check_profile(PROFILES["floating"]), TERMS)
    reader = {"type": "OS::Heat::Value", "properties": {"value": {"get_resource": "node"}}}
    stack_id = service.create({"node": dict(definition.resource), "reader": reader}, files=dict(definition.files))
    service.rest()
    (server_id,) = service.cloud.things("server")
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.attribute(stack_id, "reader", "value") == server_id
