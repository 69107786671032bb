"""Environments with the genuine client: several files, types that stand for templates, hooks."""

import json
import time
from typing import Any

import httpx
import pytest
from heatclient.common import event_utils, hook_utils
from heatclient.exc import HTTPBadRequest
from heatclient.v1.client import Client

from tests.wire.running import settled

PART = """
heat_template_version: rocky
parameters: {word: {type: string}}
resources: {leaf: {type: "My::Value", properties: {value: {get_param: word}}}}
outputs: {told: {value: {get_attr: [leaf, value]}}}
"""
TEMPLATE = """
heat_template_version: rocky
parameters: {word: {type: string}}
resources: {part: {type: "My::Part", properties: {word: {get_param: word}}}}
outputs: {told: {value: {get_attr: [part, told]}}}
"""
FILES = {
    "part.yaml": PART,
    "types": json.dumps({"resource_registry": {"My::Part": "part.yaml", "My::Value": "OS::Heat::Value"}}),
    "word": json.dumps({"parameters": {"word": "hello"}}),
    "more": json.dumps({"parameters": {"word": " world"}, "parameter_merge_strategies": {"word": "merge"}}),
}


def create(heat: Client, name: str, **more: Any) -> str:
    given = {"template": TEMPLATE, "files": FILES, "environment_files": ["types", "word", "more"], **more}
    created: str = heat.stacks.create(stack_name=name, **given)["stack"]["id"]
    return created


def waiting(heat: Client, name: str) -> list[str]:
    """Names of the resources that wait at hooks, nested ones too, once there are any."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        hook = hook_utils.get_hook_type_via_status(heat, name)
        events = event_utils.get_hook_events(heat, name, event_args={"sort_dir": "asc"}, nested_depth=2, hook_type=hook)
        names = [each.resource_name for each in events]
        if names:
            return names
        time.sleep(0.1)
    raise AssertionError("nothing waits")


def test_files_are_merged_and_types_stand_for_templates(heat: Client, http: httpx.Client) -> None:
    stack = settled(http, create(heat, "merged"), status="CREATE_COMPLETE")
    assert [each["output_value"] for each in stack["outputs"]] == ["hello world"]
    found = {each.resource_name: each.resource_type for each in heat.resources.list("merged", nested_depth=2)}
    assert found == {"part": "My::Part", "leaf": "My::Value"}
    shown = heat.stacks.environment("merged")
    assert shown["parameters"] == {"word": "hello world"}
    registry = {"My::Part": "part.yaml", "My::Value": "OS::Heat::Value", "resources": {}}
    assert shown["resource_registry"] == registry
    assert heat.stacks.files("merged") == FILES


def test_a_hook_in_a_nested_stack_is_seen_and_cleared(heat: Client, http: httpx.Client) -> None:
    hooked = json.dumps({"resource_registry": {"resources": {"part": {"leaf": {"hooks": "pre-create"}}}}})
    types = json.loads(FILES["types"])["resource_registry"]
    both = {"resource_registry": {**types, **json.loads(hooked)["resource_registry"]}}
    files = {**FILES, "types": json.dumps(both)}
    stack_id = create(heat, "hooked", files=files)
    assert waiting(heat, "hooked") == ["leaf"]
    part = heat.resources.get("hooked", "part")
    with pytest.raises(HTTPBadRequest, match="it does not wait there"):
        heat.resources.signal(part.physical_resource_id, "leaf", {"unset_hook": "post-create"})
    hook_utils.clear_wildcard_hooks(heat, stack_id, ["part"], "pre-create", "l*")
    settled(http, stack_id, status="CREATE_COMPLETE")
