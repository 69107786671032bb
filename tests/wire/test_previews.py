"""Previews by the genuine clients and by plain requests."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from heatclient import exc
from heatclient.v1.client import Client as HeatClient

from tests.wire import templates
from tests.wire.running import settled
from tests.wire.test_openstack_cli import Command, openstack, shown

_ = openstack

BEFORE = """
heat_template_version: 2018-08-31
parameters:
  password: {type: string, hidden: true, default: swordfish}
resources:
  text: {type: OS::Heat::RandomString, properties: {length: 8}}
  reader: {type: OS::Heat::Value, properties: {value: {get_resource: text}}}
  secret:
    type: OS::Heat::Value
    properties: {value: {str_replace: {template: "x-P", params: {P: {get_param: password}}}}}
  crowd:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Heat::Value, properties: {value: "%index%"}}}
  old: {type: OS::Heat::Value, properties: {value: 1}}
"""
AFTER = (
    BEFORE.replace("length: 8", "length: 9")
    .replace("count: 2", "count: 3")
    .replace("  old:", "  new:")
    .replace("swordfish", "marlin-fish")
)


@pytest.fixture
def stack(heat: HeatClient, http: httpx.Client) -> str:
    """Address of a stack of the first template, below the project."""
    stack_id = heat.stacks.create(stack_name="web", template=BEFORE)["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/web/{stack_id}"


def names(changes: dict[str, list[Any]]) -> dict[str, list[str]]:
    return {key: sorted(each["resource_name"] for each in entries) for key, entries in changes.items()}


def test_an_update_is_previewed_resource_by_resource(http: httpx.Client, stack: str) -> None:
    answer = http.put(f"{stack}/preview", json={"template": AFTER})
    assert answer.status_code == 200, answer.text
    changes = answer.json()["resource_changes"]
    assert names(changes) == {
        "unchanged": [],
        "updated": ["crowd", "reader", "secret"],
        "replaced": ["text"],
        "added": ["new"],
        "deleted": ["old"],
    }
    (text,) = changes["replaced"]
    assert text["change_reason"] == "length cannot change in place"
    assert text["property_changes"] == [{"name": "length", "before": 8, "after": 9}]
    assert text["physical_resource_id"]
    assert (text["resource_action"], text["resource_status"]) == ("CREATE", "COMPLETE")
    by_name = {each["resource_name"]: each for each in changes["updated"]}
    assert by_name["reader"]["property_changes"][0]["after"] == "(not known yet)"
    assert by_name["secret"]["property_changes"] == [{"name": "value", "before": "******", "after": "******"}]
    assert "fish" not in answer.text
    after = http.get(f"{stack}/resources").json()["resources"]
    assert {each["resource_status"] for each in after} == {"CREATE_COMPLETE"}, "nothing was changed"


def test_nested_stacks_are_previewed_on_demand(http: httpx.Client, stack: str) -> None:
    changes = http.put(f"{stack}/preview?show_nested=true", json={"template": AFTER}).json()["resource_changes"]
    (member,) = [each for each in changes["added"] if each["path"]]
    assert (member["resource_name"], member["parent_resource"], member["path"]) == ("2", "crowd", ["crowd"])
    assert [each["resource_name"] for each in changes["unchanged"]] == ["0", "1"]


def test_a_patch_keeps_what_is_not_given(http: httpx.Client, stack: str) -> None:
    changes = http.patch(f"{stack}/preview", json={}).json()["resource_changes"]
    assert [len(changes[key]) for key in ("updated", "replaced", "added", "deleted")] == [0, 0, 0, 0]
    changes = http.patch(f"{stack}/preview", json={"parameters": {"password": "carpentry"}}).json()["resource_changes"]
    assert [each["resource_name"] for each in changes["updated"]] == ["secret"]


def test_what_could_not_be_updated_cannot_be_previewed(http: httpx.Client, stack: str) -> None:
    answer = http.put(f"{stack}/preview", json={"template": AFTER.replace("OS::Heat::Value", "OS::No::Such")})
    assert answer.status_code == 400
    assert "OS::No::Such" in answer.json()["error"]["message"]
    assert http.put("stacks/web/none/preview", json={"template": AFTER}).status_code == 404


def test_a_creation_is_previewed_by_the_client(heat: HeatClient) -> None:
    previewed = heat.stacks.preview(stack_name="web", template=BEFORE, tags="a,b")
    assert (previewed.stack_name, previewed.tags, previewed.disable_rollback) == ("web", ["a", "b"], True)
    assert previewed.parameters["password"] == "******"
    text, *others = previewed.resources
    assert (text["resource_name"], text["properties"]["length"]) == ("text", 8)
    assert text["properties"]["character_classes"] == [{"class": "lettersdigits", "min": 1}], "a default"
    assert text["attributes"] == {"value": None}
    assert (text["resource_action"], text["resource_status"]) == ("INIT", "COMPLETE")
    assert text["resource_identity"] == {**text["stack_identity"], "path": "/resources/text"}
    (members,) = [each for each in others if isinstance(each, list)]
    assert [each["properties"] for each in members] == [{"value": "0"}, {"value": "1"}]
    assert list(heat.stacks.list()) == []
    heat.stacks.create(stack_name="web", template=BEFORE)
    with pytest.raises(exc.HTTPConflict, match=r"The Stack \(web\) already exists"):
        heat.stacks.preview(stack_name="web", template=BEFORE)


def test_dry_runs_of_the_openstack_command(openstack: Command, tmp_path: Path) -> None:
    (tmp_path / "hello.yaml").write_text(templates.HELLO)
    dry = openstack("stack", "create", "--dry-run", "-t", "hello.yaml", "hello", "-f", "json")
    assert dry.returncode == 0, dry.stderr
    assert '"stack_name": "hello"' in dry.stdout
    checked = openstack("orchestration", "template", "validate", "--show-nested", "-t", "hello.yaml", "-f", "json")
    validated = shown(checked)
    assert validated["Description"] == "One thing, and what it says"
    made = openstack("stack", "create", "--wait", "-t", "hello.yaml", "hello")
    assert made.returncode == 0, made.stderr
    options = ("--dry-run", "--show-nested", "-t", "hello.yaml", "--parameter", "word=new", "-f", "json")
    changed = openstack("stack", "update", *options, "hello")
    assert changed.returncode == 0, changed.stderr
    reported = json.loads(changed.stdout)
    updated = json.loads(reported["updated"]) if isinstance(reported["updated"], str) else reported["updated"]
    assert [each["resource_name"] for each in updated] == ["speaker"]


def test_validation_lists_nested_templates(http: httpx.Client) -> None:
    asked = "parameters: {word: {type: string}, password: {type: string}}\n"
    leaf = f"heat_template_version: 2018-08-31\ndescription: the leaf\n{asked}"
    middle = (
        f"heat_template_version: 2018-08-31\n{asked}resources:\n"
        "  leaf: {type: leaf.yaml, properties: {word: {get_param: word}, password: {get_param: password}}}\n"
    )
    top = (
        "heat_template_version: 2018-08-31\nparameters: {secret: {type: string, hidden: true, default: swordfish}}\n"
        "resources:\n"
        "  middle: {type: middle.yaml, properties: {word: hello, password: {get_param: secret}}}\n"
        "  crowd:\n    type: OS::Heat::ResourceGroup\n"
        "    properties: {resource_def: {type: leaf.yaml, properties: {word: a, password: b}}}\n"
    )
    body = {"template": top, "files": {"middle.yaml": middle, "leaf.yaml": leaf}}
    answer = http.post("validate?show_nested=true", json=body)
    reported = answer.json()["NestedParameters"]
    assert (reported["middle"]["Type"], reported["middle"]["Parameters"]["word"]["Value"]) == ("middle.yaml", "hello")
    inner = reported["middle"]["NestedParameters"]["leaf"]
    assert (inner["Type"], inner["Description"]) == ("leaf.yaml", "the leaf")
    assert reported["crowd"]["NestedParameters"]["0"]["Type"] == "leaf.yaml"
    none = top.replace("{resource_def", "{count: 0, resource_def")
    disabled = {**body, "template": none}
    assert http.post("validate?show_nested=true", json=disabled).json()["NestedParameters"] == reported
    wrong = {**disabled, "template": none.replace("{word: a,", "{wrod: a,")}
    unshown = http.post("validate?show_nested=true", json=wrong).json()["NestedParameters"]["crowd"]
    assert "NestedParameters" not in unshown, "what is disabled may be wrong"
    assert "swordfish" not in json.dumps(reported), "the default is told where it is declared, and nowhere else"
    reported = http.post("validate", json=body).json()
    assert "NestedParameters" not in reported
    assert reported["Environment"] == {
        "event_sinks": [],
        "parameter_defaults": {},
        "parameters": {},
        "resource_registry": {"middle.yaml": "middle.yaml", "resources": {}},
    }
    refused = http.post("validate", json={**body, "template": top.replace("{word: hello", "{wrod: hello")}).json()[
        "error"
    ]
    assert refused["message"] == "Property error: : resources.middle.properties: : Unknown Property wrod"
