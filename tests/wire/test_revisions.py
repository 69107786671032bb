"""What was wanted of a stack before: read, and wanted again."""

from typing import Any

import httpx
import pytest
import yaml
from heatclient.v1.client import Client as HeatClient

from tests.wire.running import Running, settled

TEMPLATE: dict[str, Any] = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string"}, "password": {"type": "string", "hidden": True}},
    "resources": {
        "said": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}},
        "file": {"type": "OS::Heat::Value", "properties": {"value": {"get_file": "note"}}},
        "secret": {"type": "OS::Heat::RandomString", "properties": {"salt": {"get_param": "password"}}},
    },
    "outputs": {"said": {"value": {"get_attr": ["said", "value"]}}, "note": {"value": {"get_attr": ["file", "value"]}}},
}
NEVER = 4_000


def update_of(word: str, note: str, password: str) -> dict[str, Any]:
    return {"template": TEMPLATE, "parameters": {"word": word, "password": password}, "files": {"note": note}}


@pytest.fixture
def stack(heat: HeatClient, http: httpx.Client) -> str:
    """Address of a stack that has two revisions, below the project."""
    stack_id = heat.stacks.create(stack_name="web", **update_of("one", "first", "swordfish"))["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    heat.stacks.update(stack_id, **update_of("two", "second", "marlin"))
    settled(http, stack_id, status="UPDATE_COMPLETE")
    return f"stacks/web/{stack_id}"


def outputs(http: httpx.Client, stack: str) -> dict[str, Any]:
    found = http.get(stack).json()["stack"]["outputs"]
    return {each["output_key"]: each["output_value"] for each in found}


@pytest.mark.shows("CV1")
def test_all_revisions_are_listed_the_newest_first(http: httpx.Client, stack: str) -> None:
    found = http.get(f"{stack}/revisions").json()["revisions"]
    assert [(each["number"], each["action"], each["newest"], each["complete"], each["empty"]) for each in found] == [
        (2, "UPDATE", True, True, False),
        (1, "CREATE", False, False, False),
    ]
    assert [each["number"] for each in http.get(f"{stack}/revisions?limit=1").json()["revisions"]] == [2]
    assert [each["number"] for each in http.get(f"{stack}/revisions?marker=2").json()["revisions"]] == [1]
    assert http.get("stacks/web/revisions", follow_redirects=True).json()["revisions"] == found


def test_one_is_shown_as_it_was_without_what_is_hidden(http: httpx.Client, stack: str) -> None:
    answer = http.get(f"{stack}/revisions/1")
    shown = answer.json()["revision"]
    assert shown["template"] == TEMPLATE
    assert (shown["environment"]["parameters"]["word"], shown["files"]) == ("one", {"note": "first"})
    assert "swordfish" not in answer.text


def test_it_is_text_for_people_to_those_who_want_yaml(http: httpx.Client, stack: str) -> None:
    many = "#!/bin/sh\necho 1\n"
    values = {"said": {"type": "OS::Heat::Value", "properties": {"value": many}}}
    changed = {"template": {**TEMPLATE, "resources": values, "outputs": {}}}
    assert http.patch(stack, json=changed).status_code == 202
    answer = http.get(f"{stack}/template", headers={"Accept": "application/yaml"})
    assert answer.headers["content-type"].startswith("application/yaml")
    assert "\n      value: |\n        #!/bin/sh\n        echo 1\n" in answer.text
    assert yaml.safe_load(answer.text) == http.get(f"{stack}/template").json() == changed["template"]
    whole = http.get(f"{stack}/revisions/3", headers={"Accept": "application/yaml"}).text
    shown = http.get(f"{stack}/revisions/3").json()["revision"]
    assert yaml.safe_load(whole)["template"] == shown["template"]
    assert yaml.safe_load(whole)["environment"]["parameters"] == {"word": "two", "password": "******"}


def test_going_back_to_one_wants_all_of_it_again(http: httpx.Client, stack: str) -> None:
    """Hidden values, too, which nobody could say again."""
    salted = http.get(f"{stack}/resources/secret").json()["resource"]["physical_resource_id"]
    assert outputs(http, stack) == {"said": "two", "note": "second"}
    preview = http.patch(f"{stack}/preview", json={"revision": 1}).json()["resource_changes"]
    assert {each["resource_name"] for each in preview["updated"]} == {"said", "file"}
    assert {each["resource_name"] for each in preview["replaced"]} == {"secret"}

    assert http.patch(stack, json={"revision": 1}).status_code == 202
    settled(http, stack.rpartition("/")[2])
    assert outputs(http, stack) == {"said": "one", "note": "first"}
    assert http.get(f"{stack}/resources/secret").json()["resource"]["physical_resource_id"] != salted
    assert [each["number"] for each in http.get(f"{stack}/revisions").json()["revisions"]] == [3, 2, 1]


def test_parameters_of_the_request_come_on_top(http: httpx.Client, stack: str) -> None:
    assert http.patch(stack, json={"revision": 1, "parameters": {"word": "three"}}).status_code == 202
    settled(http, stack.rpartition("/")[2])
    assert outputs(http, stack) == {"said": "three", "note": "first"}


def test_what_is_no_revision_is_refused(http: httpx.Client, stack: str) -> None:
    assert http.get(f"{stack}/revisions/{NEVER}").status_code == 404
    refused = http.patch(stack, json={"revision": NEVER})
    assert refused.status_code == 404
    assert f"The Revision ({NEVER})" in refused.json()["error"]["message"]
    for wrong in (0, -1, "1", 1.5, True, 2**31):
        refused = http.patch(stack, json={"revision": wrong})
        assert (refused.status_code, "revision: " in refused.json()["error"]["message"]) == (400, True)
    refused = http.put(stack, json={"revision": 1, "template": TEMPLATE})
    assert refused.status_code == 400
    assert "PATCH" in refused.json()["error"]["message"]


def test_those_of_another_project_are_not_there(service: Running, stack: str) -> None:
    with httpx.Client(base_url=service.endpoint("another-project")) as other:
        assert other.get(f"{stack}/revisions").status_code == 404
        assert other.get(f"{stack}/revisions/1").status_code == 404


def test_a_deleted_stack_keeps_them(http: httpx.Client, stack: str) -> None:
    assert http.delete(stack).status_code == 204
    settled(http, stack.rpartition("/")[2])
    newest, *older = http.get(f"{stack}/revisions").json()["revisions"]
    assert (newest["empty"], len(older)) == (True, 2)
    assert http.get(f"{stack}/revisions/{newest['number']}").json()["revision"]["template"] == {}


VALUE = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}}
WORD = {
    "heat_template_version": "wallaby",
    "parameters": {"word": {"type": "string", "default": "one"}},
    "resources": {"v": VALUE},
}


def worded(http: httpx.Client) -> str:
    """The path of a stack of one value."""
    made = http.post("/stacks", json={"stack_name": "worded", "template": WORD}).json()["stack"]["id"]
    settled(http, made, status="CREATE_COMPLETE")
    return f"/stacks/worded/{made}"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_update_of_what_was_previewed_is_refused_once_the_stack_has_moved(http: httpx.Client, method: str) -> None:
    stack, body = worded(http), {"template": WORD, "parameters": {"word": "two"}}
    previewed = http.request(method, f"{stack}/preview", json=body)
    tag = previewed.headers["ETag"]
    assert tag == http.get(stack).headers["ETag"] == '"1"'
    assert previewed.json()["revision"] == 1
    moved = http.patch(stack, json={"parameters": {"word": "three"}})
    assert (moved.status_code, moved.headers["ETag"]) == (202, '"2"')
    refused = http.request(method, stack, json=body, headers={"If-Match": tag})
    assert refused.status_code == 412
    assert refused.json()["error"]["type"] == "PreconditionFailed"
    said = refused.json()["error"]["message"]
    assert said.startswith("The stack worded has moved since revision 1: UPDATE made revision 2 at ")
    assert http.get(stack).json()["stack"]["parameters"]["word"] == "three"
    again = http.request(method, stack, json=body, headers={"If-Match": moved.headers["ETag"]})
    assert (again.status_code, again.headers["ETag"]) == (202, '"3"')


def test_going_back_is_bound_to_a_revision_too(http: httpx.Client) -> None:
    stack = worded(http)
    for word in ("two", "three"):
        http.patch(stack, json={"parameters": {"word": word}})
    refused = http.patch(stack, json={"revision": 1}, headers={"If-Match": '"1"'})
    assert refused.status_code == 412
    assert "UPDATE made revision 2 at" in refused.json()["error"]["message"]
    assert "and 1 more came after it" in refused.json()["error"]["message"]
    assert http.patch(stack, json={"revision": 1}, headers={"If-Match": '"3"'}).status_code == 202


@pytest.mark.parametrize("tags", [None, "*", '"7", "1"'])
def test_without_a_revision_nothing_is_bound(http: httpx.Client, tags: str | None) -> None:
    headers = {} if tags is None else {"If-Match": tags}
    assert http.patch(worded(http), json={"parameters": {"word": "two"}}, headers=headers).status_code == 202


@pytest.mark.parametrize("tag", ["1", 'W/"1"', '"one"', "nonsense", '""'])
def test_a_tag_that_names_no_revision_of_the_stack_matches_none(http: httpx.Client, tag: str) -> None:
    refused = http.patch(worded(http), json={"parameters": {"word": "two"}}, headers={"If-Match": tag})
    assert refused.status_code == 412
