"""Groups and chains as the API shows them: in the middle of a rolling update too."""

from typing import Any

import httpx
import pytest
from heatclient.v1.client import Client

from homeostat.api.orchestration import inventory
from tests.waiting import until
from tests.wire.running import settled

VERSION = {"heat_template_version": "2018-08-31"}


def group(value: str, pause_s: float) -> dict[str, Any]:
    one = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    return {
        **VERSION,
        "resources": {
            "grp": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": 2, "resource_def": one},
                "update_policy": {"rolling_update": {"max_batch_size": 1, "pause_time": pause_s}},
            }
        },
    }


def created(http: httpx.Client, template: dict[str, Any]) -> str:
    answer = http.post("stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 201, answer.text
    stack_id: str = answer.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/s/{stack_id}"


def nested(http: httpx.Client, stack: str, name: str) -> str:
    """Path of the stack of a resource."""
    shown = http.get(f"{stack}/resources/{name}").json()["resource"]
    href = next(each["href"] for each in shown["links"] if each["rel"] == "nested")
    return str(href).removeprefix(str(http.base_url))


def values(http: httpx.Client, child: str) -> dict[str, Any]:
    """The value that the template of a nested stack has for each member."""
    members = http.get(f"{child}/template").json()["resources"]
    return {name: each["properties"]["value"] for name, each in members.items()}


def test_a_rolling_update_in_the_middle(http: httpx.Client) -> None:
    stack = created(http, group("a", 0))
    child = nested(http, stack, "grp")
    assert values(http, child) == {"0": "a", "1": "a"}
    assert http.put(stack, json={"template": group("b", 600)}).status_code == 202

    def first_is_done() -> bool:
        listed = http.get(f"{child}/resources").json()["resources"]
        return {each["resource_name"]: each["resource_status"] for each in listed} == {
            "0": "CREATE_COMPLETE",
            "1": "UPDATE_COMPLETE",
        }

    until(first_is_done, "the first batch")
    assert values(http, child) == {"0": "a", "1": "b"}
    assert http.get(stack).json()["stack"]["stack_status"] == "UPDATE_IN_PROGRESS"
    assert http.put(stack, json={"template": group("b", 0)}).status_code == 202
    settled(http, stack.rsplit("/", 1)[1], status="UPDATE_COMPLETE")
    assert values(http, child) == {"0": "b", "1": "b"}


def test_properties_of_ours_are_not_shown(http: httpx.Client) -> None:
    stack = created(http, group("a", 0))
    (first, *_) = http.get(f"{stack}/resources/grp/events").json()["events"]
    shown = http.get(f"{stack}/resources/grp/events/{first['id']}").json()["event"]
    assert sorted(shown["resource_properties"]) == ["count", "resource_def"]


def test_a_chain(http: httpx.Client) -> None:
    chain = {
        "type": "OS::Heat::ResourceChain",
        "properties": {"resources": ["OS::Heat::TestResource"] * 2, "resource_properties": {"value": "v"}},
    }
    stack = created(http, {**VERSION, "resources": {"c": chain}})
    child = nested(http, stack, "c")
    assert http.get(f"{child}/template").json()["resources"] == {
        "0": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}},
        "1": {"type": "OS::Heat::TestResource", "properties": {"value": "v"}, "depends_on": ["0"]},
    }
    listed = {each["resource_name"]: each for each in http.get(f"{child}/resources").json()["resources"]}
    assert listed["0"]["required_by"] == ["1"]
    refused = http.put(child, json={"template": VERSION})
    assert refused.status_code == 400
    assert "update the resource that it belongs to" in refused.text


def test_attributes_of_a_large_group_are_read_when_they_are_asked_for(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = created(http, group("a", 0))
    references = http.get(f"{stack}/resources/grp").json()["resource"]["attributes"]["refs"]
    assert len(references) == 2
    monkeypatch.setattr(inventory, "SHARDS_SHOWN", 0)
    assert http.get(f"{stack}/resources/grp").json()["resource"]["attributes"] == {}
    asked = http.get(f"{stack}/resources/grp", params={"with_attr": "refs"}).json()["resource"]["attributes"]
    assert asked["refs"] == references


def test_a_nested_stack_shows_the_time_that_its_parent_has(http: httpx.Client) -> None:
    body = {"stack_name": "s", "template": group("a", 0.0), "timeout_mins": 7}
    stack_id = http.post("stacks", json=body).json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    stack = f"stacks/s/{stack_id}"
    child = nested(http, stack, "grp")
    assert http.get(child).json()["stack"]["timeout_mins"] == 7
    answer = http.patch(stack, json={"timeout_mins": 9})
    assert answer.status_code == 202, answer.text
    assert http.get(child).json()["stack"]["timeout_mins"] == 9


def test_a_facade_whose_required_property_its_template_lacks_is_refused(http: httpx.Client) -> None:
    flavor = {"type": "OS::Nova::Flavor", "properties": {"ram": 1, "vcpus": 1}}
    body = {
        "stack_name": "s",
        "template": {**VERSION, "resources": {"f": flavor}},
        "environment": {"resource_registry": {"OS::Nova::Flavor": "f.yaml"}},
        "files": {"f.yaml": "heat_template_version: 2018-08-31\nparameters: {vcpus: {type: number}}\n"},
    }
    answer = http.post("stacks", json=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "StackValidationFailed")
    assert "Required property ram for facade OS::Nova::Flavor missing in provider" in answer.json()["error"]["message"]


def test_the_template_of_a_group_of_files_has_the_properties_that_its_user_gave(http: httpx.Client) -> None:
    inner = "heat_template_version: 2018-08-31\nparameters: {word: {type: string}}\n"
    one = {"type": "inner.yaml", "properties": {"word": "%index%"}}
    grp = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": one}}
    body = {
        "stack_name": "files",
        "template": {**VERSION, "resources": {"grp": grp}},
        "files": {"inner.yaml": inner},
    }
    answer = http.post("stacks", json=body)
    assert answer.status_code == 201, answer.text
    stack_id = answer.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    child = nested(http, f"stacks/files/{stack_id}", "grp")
    shown = http.get(f"{child}/template").json()["resources"]
    assert {name: each["properties"] for name, each in shown.items()} == {"0": {"word": "0"}, "1": {"word": "1"}}
    exported = http.get(f"stacks/files/{stack_id}/export").text
    assert "(content)" not in exported


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_the_own_stack_of_a_group_takes_a_template_that_lists_its_members(http: httpx.Client, method: str) -> None:
    stack = created(http, group("a", 0))
    child = nested(http, stack, "grp")
    listed = http.get(f"{child}/template").json()
    listed["resources"]["1"]["properties"]["value"] = "b"
    assert http.request(method, child, json={"template": listed}).status_code == 202
    settled(http, child.rpartition("/")[2], status="UPDATE_COMPLETE")
    assert values(http, child) == {"0": "a", "1": "b"}
    assert http.put(stack, json={"template": group("c", 0)}).status_code == 202
    settled(http, stack.rpartition("/")[2], status="UPDATE_COMPLETE")
    assert values(http, child) == {"0": "c", "1": "c"}


def test_a_list_of_members_that_no_group_can_have_names_the_place(http: httpx.Client) -> None:
    child = nested(http, created(http, group("a", 0)), "grp")
    listed = http.get(f"{child}/template").json()
    listed["resources"]["web"] = listed["resources"].pop("1")
    answer = http.patch(child, json={"template": listed})
    assert (answer.status_code, "resources.web" in answer.text) == (400, True), answer.text
    answer = http.patch(child, json={"parameters": {"v": "b"}})
    assert (answer.status_code, "The Parameter (v) was not defined in template" in answer.text) == (400, True)


def test_what_is_made_of_a_member_that_a_group_lacks_has_an_error(heat: Client, http: httpx.Client) -> None:
    member = {"type": "OS::Heat::TestResource"}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": member}}
    made = {"list_join": ["-", [{"get_attr": ["g", "resource.7.output"]}, "b"]]}
    outputs = {"made": {"value": made}, "first": {"value": {"get_attr": ["g", "resource.0"]}}}
    heat.stacks.create(stack_name="s", template={**VERSION, "resources": {"g": group}, "outputs": outputs})
    settled(http, heat.stacks.get("s").id, status="CREATE_COMPLETE")
    shown = {each["output_key"]: each for each in heat.stacks.get("s").outputs}
    assert shown["made"]["output_value"] is None
    assert "Member '7' not found in group resource 'g'." in shown["made"]["output_error"]
    assert "output_error" not in shown["first"]
    reader = {**member, "properties": {"value": made}}
    heat.stacks.create(stack_name="t", template={**VERSION, "resources": {"g": group, "reader": reader}})
    failed = settled(http, heat.stacks.get("t").id, status="CREATE_FAILED")
    assert "Member '7' not found in group resource 'g'." in failed["stack_status_reason"]
    assert heat.resources.get("t", "reader").resource_status == "CREATE_FAILED"
