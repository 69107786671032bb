"""Requests and answers to the letter: codes, fault bodies, addresses. What no client library shows."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.wire import templates
from tests.wire.running import Running, settled

CYCLE = """
heat_template_version: 2018-08-31
resources:
  a: {type: OS::Heat::TestResource, depends_on: b}
  b: {type: OS::Heat::TestResource, depends_on: a}
"""
HEAD = "heat_template_version: 2018-08-31\n"


def hooks(value: Any) -> dict[str, Any]:
    return {"resources": {"web*": {"hooks": value}}}


@pytest.fixture
def hello(http: httpx.Client) -> str:
    """Path of a complete stack called `hello`, below the project."""
    created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
    assert created.status_code == 201
    stack_id = created.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/hello/{stack_id}"


def assert_fault(answer: httpx.Response, code: int, kind: str, message: str = "") -> None:
    body = answer.json()
    assert (answer.status_code, body["code"], body["error"]["type"]) == (code, code, kind), answer.text
    assert body["title"]
    assert body["explanation"]
    assert body["error"]["traceback"] is None
    assert message in body["error"].get("message", "")


def test_creation(http: httpx.Client) -> None:
    created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
    assert created.status_code == 201
    stack = created.json()["stack"]
    assert created.headers["location"] == stack["links"][0]["href"]
    assert stack["links"] == [{"rel": "self", "href": f"{http.base_url}stacks/hello/{stack['id']}"}]
    again = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
    assert_fault(again, 409, "StackExists", "The Stack (hello) already exists.")


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"template": HEAD}, "HTTPBadRequest", "No stack name specified"),
        ({"stack_name": "7th", "template": HEAD}, "StackValidationFailed", "Invalid stack name 7th"),
        ({"stack_name": "a/b", "template": HEAD}, "StackValidationFailed", "Invalid stack name a/b"),
        ({"stack_name": "s"}, "HTTPBadRequest", "No template specified"),
        ({"stack_name": "s", "template": []}, "HTTPBadRequest", "template: it must be a map or text"),
        ({"stack_name": "s", "template": "a: [1"}, "HTTPBadRequest", "line 2, column 1"),
        ({"stack_name": "s", "template": "resources: {}"}, "InvalidTemplateVersion", "was not provided"),
        (
            {"stack_name": "s", "template": f"{HEAD}resources: {{a: {{type: 'OS::No::Such'}}}}"},
            "StackValidationFailed",
            "The Resource Type (OS::No::Such) could not be found",
        ),
        (
            {"stack_name": "s", "template": templates.GROUP.replace("OS::Heat::TestResource", "OS::No::Such")},
            "StackValidationFailed",
            "resources.crowd.properties.resource_def.type: : The Resource Type (OS::No::Such)",
        ),
        (
            {"stack_name": "s", "template": templates.GROUP.replace("value: member", "worth: member")},
            "StackValidationFailed",
            "resources.crowd.properties.resource_def.properties: : Unknown Property worth",
        ),
        ({"stack_name": "s", "template": CYCLE}, "CircularDependencyException", "a"),
        (
            {"stack_name": "s", "template": templates.HELLO, "parameters": {"wurd": 1}},
            "UnknownUserParameter",
            "The Parameter (wurd) was not defined in template.",
        ),
        (
            {"stack_name": "s", "template": f"{HEAD}parameters: {{p: {{type: string}}}}"},
            "UserParameterMissing",
            "The Parameter (p) was not provided.",
        ),
        (
            {
                "stack_name": "s",
                "template": HEAD + "resources:\n  a:\n    type: OS::Heat::TestResource\n"
                "    properties: {value: {get_file: gone.txt}}",
            },
            "StackValidationFailed",
            "gone.txt",
        ),
        (
            {
                "stack_name": "s",
                "template": HEAD + "resources:\n  a:\n    type: OS::Heat::RandomString\n    properties: {length: 1000}",
            },
            "StackValidationFailed",
            "resources.a.properties.length",
        ),
        (
            {"stack_name": "s", "template": f"{HEAD}outputs: {{o: {{value: {{get_attr: [x, y]}}}}}}"},
            "InvalidTemplateReference",
            "x",
        ),
        ({"stack_name": "s", "template": HEAD, "parameters": [1]}, "HTTPBadRequest", "parameters: it must be a map"),
        ({"stack_name": "s", "template": HEAD, "files": {"f": 1}}, "HTTPBadRequest", "the content of f must be text"),
        ({"stack_name": "s", "template": HEAD, "files": {"f": "a\0"}}, "HTTPBadRequest", "f holds a NUL character"),
        ({"stack_name": "s", "template": HEAD, "environment": [1]}, "HTTPBadRequest", "environment: it must be a map"),
        (
            {
                "stack_name": "s",
                "template": {
                    "heat_template_version": "2018-08-31",
                    "resources": {"a\0": {"type": "OS::Heat::TestResource"}},
                },
            },
            "StackValidationFailed",
            "A name cannot have the control character",
        ),
        ({"stack_name": "s", "template": HEAD, "timeout_mins": -1}, "HTTPBadRequest", "timeout_mins"),
        ({"stack_name": "s", "template": HEAD, "timeout_mins": "soon"}, "HTTPBadRequest", "timeout_mins: 'soon'"),
        ({"stack_name": "s", "template": HEAD, "disable_rollback": "maybe"}, "HTTPBadRequest", "disable_rollback"),
        ({"stack_name": "s", "template": HEAD, "tags": "x" * 81}, "HTTPBadRequest", "longer than 80"),
        ({"stack_name": "s", "template": HEAD, "tags": [1]}, "HTTPBadRequest", "tags"),
        ({"stack_name": "s", "template": HEAD, "converge": True}, "HTTPBadRequest", "converge"),
        (
            {"stack_name": "s", "template": HEAD, "environment": "colour: {}"},
            "HTTPBadRequest",
            'wrong section "colour"',
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment": {"resource_registry": {"A": 1}}},
            "HTTPBadRequest",
            "resource_registry.A: the name of a type",
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment": {"resource_registry": hooks("pre-lunch")}},
            "InvalidBreakPointHook",
            "pre-create",
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment": {"resource_registry": hooks(["pre-create", 7])}},
            "InvalidBreakPointHook",
            "resource_registry.resources.web*.hooks",
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment": {"event_sinks": [{"type": "carrier-pigeon"}]}},
            "HTTPBadRequest",
            "environment.event_sinks[0]: there is no event sink of type 'carrier-pigeon'",
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment": {"event_sinks": [{"type": "zaqar-queue"}]}},
            "HTTPBadRequest",
            "environment.event_sinks[0]: target: a text is needed",
        ),
        (
            {"stack_name": "s", "template": HEAD, "environment_files": ["e"]},
            "HTTPBadRequest",
            "e is not among the files",
        ),
        (
            {"stack_name": "s", "template_url": "http://127.0.0.1/t.yaml"},
            "HTTPBadRequest",
            "not on the public internet",
        ),
        ({"stack_name": "s", "template_url": "file:///etc/passwd"}, "HTTPBadRequest", "only http and https"),
        ({"stack_name": "s", "template_url": 7}, "HTTPBadRequest", "template_url: it must be text"),
        ({"stack_name": "s", "template": HEAD, "adopt_stack_data": "['Test']"}, "HTTPBadRequest", "Adopt data"),
        (
            {
                "stack_name": "s",
                "template": HEAD + "parameters: {p: {type: json}}\n"
                "resources: {v: {type: OS::Heat::Value, properties: {value: {get_param: p}}}}",
                "parameters": {"p": '{"n": 123456789012345678901}'},
            },
            "HTTPBadRequest",
            "resources.v.properties: it holds a value that cannot be stored",
        ),
        (
            {"stack_name": "s", "template": HEAD + "outputs: {o: {value: " + "9" * 30 + "}}"},
            "HTTPBadRequest",
            "template: it holds a value that cannot be stored",
        ),
        ({"stack_name": "s", "template": {"x": "y" * 10}}, "InvalidTemplateVersion", "version"),
    ],
)
def test_what_cannot_be_created(http: httpx.Client, body: dict[str, Any], kind: str, message: str) -> None:
    """Nothing is stored, the text names the place, and the service goes on."""
    assert_fault(http.post("stacks", json=body), 400, kind, message)
    assert http.get("stacks").json() == {"stacks": []}


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b"{", "application/json"),
        (b'{"a": "\\ud800"}', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"{}", "application/x-www-form-urlencoded"),
        (b"{" * 100_000, "application/json"),
    ],
)
def test_bodies_that_are_no_objects(http: httpx.Client, content: bytes, content_type: str) -> None:
    answer = http.post("stacks", content=content, headers={"content-type": content_type})
    assert_fault(answer, 400, "HTTPBadRequest", "alformed")


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_is_read_only_where_its_type_is_json(http: httpx.Client, kind: str | None) -> None:
    """These are the kinds that a browser sends to other sites without asking them."""
    content = json.dumps({"stack_name": "plain", "template": HEAD})
    answer = http.post("stacks", content=content, headers={} if kind is None else {"content-type": kind})
    assert_fault(answer, 400, "HTTPBadRequest", "Content-Type: application/json")
    assert http.get("stacks").json() == {"stacks": []}
    said = {"content-type": "Application/JSON; charset=utf-8"}
    assert http.post("stacks", content=content, headers=said).status_code == 201


@pytest.mark.parametrize("mebibytes", [1, 2, 5, 40])
def test_bodies_that_are_too_large(http: httpx.Client, mebibytes: int) -> None:
    answer = http.post("stacks", json={"stack_name": "big", "template": "x" * (mebibytes << 20)})
    assert_fault(answer, 400, "RequestLimitExceeded", "1048576 bytes")


def test_bodies_that_hide_their_size(http: httpx.Client) -> None:
    chunks = (b"x" * 65536 for _ in range(40))
    answer = http.post("stacks", content=chunks, headers={"content-type": "application/json"})
    assert_fault(answer, 400, "RequestLimitExceeded")


def test_short_addresses(http: httpx.Client, hello: str) -> None:
    """Any method, by name or id, with the query; what is below the stack, too."""
    stack_id = hello.rpartition("/")[2]
    for name in ("hello", stack_id):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            found = http.request(method, f"stacks/{name}?a=1&b=x%20y")
            assert found.status_code == 302
            assert found.headers["location"] == f"{http.base_url}{hello}?a=1&b=x%20y"
        for below in ("resources", "events", "template", "environment", "files"):
            assert http.get(f"stacks/{name}/{below}").headers["location"] == f"{http.base_url}{hello}/{below}"
        assert http.post(f"stacks/{name}/actions").headers["location"] == f"{http.base_url}{hello}/actions"
    project = str(http.base_url).rstrip("/").rpartition("/")[2]
    arn = f"stacks/arn:openstack:heat::{project}:stacks/hello/{stack_id}"
    assert http.get(arn).headers["location"] == f"{http.base_url}{hello}"
    encoded = f"stacks/{quote(arn.removeprefix('stacks/'), safe='')}/resources/a%20b"
    for method in ("GET", "POST", "PATCH"):
        found = http.request(method, f"{encoded}?a=1")
        assert (found.status_code, found.headers["location"]) == (302, f"{http.base_url}{hello}/resources/a%20b?a=1")
    assert_fault(http.get("stacks/nobody"), 404, "EntityNotFound", "The Stack (nobody) could not be found.")


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "kind"),
    [
        ("GET", "stacks/hullo/{id}", None, 404, "EntityNotFound"),
        ("GET", "stacks/hello/{id}?resolve_outputs=maybe", None, 400, "HTTPBadRequest"),
        ("PUT", "stacks/hello/{id}", None, 400, "HTTPBadRequest"),
        ("PUT", "stacks/hello/{id}", {}, 400, "HTTPBadRequest"),
        ("PATCH", "stacks/hello/{id}", {"template": "x"}, 400, "HTTPBadRequest"),
        ("PATCH", "stacks/nobody/{id}", {}, 404, "EntityNotFound"),
        ("DELETE", "stacks/nobody/{id}", None, 404, "EntityNotFound"),
        ("GET", "stacks/hello/{id}/outputs/none", None, 404, "NotFound"),
        ("GET", "stacks/hello/{id}/resources?type=a&type=b", None, 400, "HTTPBadRequest"),
        ("GET", "stacks/hello/{id}/resources?nested_depth=x", None, 400, "HTTPBadRequest"),
        ("GET", "stacks/hello/{id}/resources/none/metadata", None, 404, "EntityNotFound"),
        ("GET", "stacks/hello/{id}/resources/none/events", None, 404, "HTTPNotFound"),
        ("GET", "stacks/hello/{id}/resources/name/events/none", None, 404, "EntityNotFound"),
        ("GET", "stacks/hello/{id}/events?limit=-1", None, 400, "HTTPBadRequest"),
        ("GET", "stacks/hello/{id}/events?nested_depth=-1", None, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", None, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"check": "", "resume": ""}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"explode": ""}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"unlock": None}, 409, "StackNotLocked"),
        ("POST", "stacks/hello/{id}/actions", {"lock": {"level": "some"}}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"lock": {"until": "noon"}}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"lock": {"expires_in": 0}}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"lock": {"expires_at": "2001-01-01"}}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"lock": 5}, 400, "HTTPBadRequest"),
        ("POST", "stacks/hello/{id}/actions", {"cancel_update": None}, 400, "NotSupported"),
        ("POST", "stacks/preview", {}, 400, "HTTPBadRequest"),
        ("GET", "stacks?limit=x", None, 400, "HTTPBadRequest"),
        ("GET", "stacks?limit=99999999999999999999", None, 400, "HTTPBadRequest"),
        ("GET", "stacks?name=%00", None, 400, "HTTPBadRequest"),
        ("GET", "stacks/%00", None, 400, "HTTPBadRequest"),
        ("GET", "stacks?show_deleted=1", None, 400, "HTTPBadRequest"),
        ("GET", "stacks?timeout_mins=x", None, 400, "HTTPBadRequest"),
        ("POST", "validate", {}, 400, "HTTPBadRequest"),
        ("POST", "validate?ignore_errors=1", {"template": HEAD}, 400, "HTTPBadRequest"),
        ("GET", "resource_types?support_status=NICE", None, 400, "HTTPBadRequest"),
        ("GET", "resource_types/OS::Heat::Value/template?template_type=x", None, 400, "HTTPBadRequest"),
        ("PUT", "stacks", None, 405, "HTTPMethodNotAllowed"),
        ("DELETE", "stacks/hello/{id}/template", None, 405, "HTTPMethodNotAllowed"),
    ],
)
def test_faults(
    http: httpx.Client, hello: str, method: str, path: str, body: dict[str, Any] | None, code: int, kind: str
) -> None:
    answer = http.request(method, path.format(id=hello.rpartition("/")[2]), json=body)
    assert_fault(answer, code, kind)


def test_answers_without_body(http: httpx.Client, hello: str) -> None:
    assert http.patch(hello, json={}).status_code == 202
    deleted = http.delete(hello)
    assert (deleted.status_code, deleted.content) == (204, b"")
    settled(http, hello.rpartition("/")[2], status="DELETE_COMPLETE")
    assert_fault(http.delete(hello), 404, "EntityNotFound")
    assert_fault(http.patch(hello, json={}), 404, "EntityNotFound")
    assert_fault(http.get(f"{hello}/outputs"), 404, "EntityNotFound")
    shown = http.get(hello).json()["stack"]
    assert "outputs" not in shown
    assert shown["deletion_time"] is not None
    assert shown["template_description"] == "One thing, and what it says"
    assert http.get(f"{hello}/resources").json() == {"resources": []}


@pytest.mark.shows("CV2")
def test_an_update_of_what_is_being_deleted_wins(http: httpx.Client) -> None:
    """CV2, CV14: deleting would take an hour; with another deletion policy, and no other change, it ends at once."""
    slow = {"type": "OS::Heat::TestResource", "properties": {"value": "v", "action_wait_secs": {"delete": 3600}}}
    template = {"heat_template_version": "2018-08-31", "resources": {"slow": slow}}
    created = http.post("stacks", json={"stack_name": "hanging", "template": template}).json()["stack"]
    settled(http, created["id"], status="CREATE_COMPLETE")
    path = f"stacks/hanging/{created['id']}"
    assert http.delete(path).status_code == 204
    assert http.get(path).json()["stack"]["stack_status"] == "DELETE_IN_PROGRESS"
    template["resources"] = {"slow": {**slow, "deletion_policy": "Retain"}, "other": slow}
    assert http.put(path, json={"template": template}).status_code == 202
    settled(http, created["id"], status="UPDATE_COMPLETE")
    assert http.delete(path).status_code == 204
    template["resources"] = {name: {**slow, "deletion_policy": "Retain"} for name in ("slow", "other")}
    assert http.patch(path, json={"template": template}).status_code == 202
    settled(http, created["id"], status="DELETE_COMPLETE")


def test_every_answer_has_an_id(http: httpx.Client, service: Running) -> None:
    answers = [http.get("stacks"), http.get("nothing"), http.put("stacks"), httpx.get(service.url)]
    ids = {answer.headers["x-openstack-request-id"] for answer in answers}
    assert len(ids) == len(answers)
    assert all(each.startswith("req-") for each in ids)


def test_methods(http: httpx.Client) -> None:
    options = http.options("stacks")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, POST")
    assert http.request("BREW", "stacks").status_code == 405


def test_unknown_addresses(http: httpx.Client, service: Running) -> None:
    for url in (f"{http.base_url}nothing", f"{service.url}/nothing", f"{http.base_url}stacks/a/b/c/d"):
        answer = httpx.get(url)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["", "/", "/versions", "/v2", "/v7.1/x/stacks"])
def test_versions(service: Running, path: str) -> None:
    answer = httpx.get(f"{service.url}{path}")
    assert answer.status_code == 300
    (version,) = answer.json()["versions"]
    assert (version["id"], version["status"]) == ("v1.0", "CURRENT")
    assert version["links"] == [{"rel": "self", "href": f"{service.url}/v1/"}]


def test_ways_to_name_the_version(service: Running) -> None:
    for path, accept in (
        ("/v1/p/stacks", ""),
        ("/v1.0/p/stacks", ""),
        ("/p/stacks", "application/vnd.openstack.orchestration-v1"),
        ("/p/stacks", "application/vnd.openstack.orchestration-v1.0"),
    ):
        answer = httpx.get(f"{service.url}{path}", headers={"accept": accept} if accept else {})
        assert (answer.status_code, answer.json()) == (200, {"stacks": []}), (path, accept)
    assert httpx.get(f"{service.url}/p/stacks").status_code == 404
    for path in ("/v1", "/v1/"):
        assert httpx.get(f"{service.url}{path}").json()["version"]["id"] == "v1.0"


def test_health(service: Running) -> None:
    assert (httpx.get(f"{service.url}/healthcheck").text) == "OK"


def test_environment_files(http: httpx.Client) -> None:
    """Later files win over earlier ones; the environment beside them is not read."""
    body: dict[str, Any] = {
        "stack_name": "merged",
        "template": templates.HELLO,
        "environment": {"parameters": {"nonsense": 1}},
        "environment_files": ["one", "two"],
        "files": {
            "one": "parameters: {word: first, password: kept}",
            "two": json.dumps({"parameters": {"word": "second", "password": None}}),
        },
    }
    stack_id = http.post("stacks", json=body).json()["stack"]["id"]
    stack = settled(http, stack_id, status="CREATE_COMPLETE")
    assert stack["parameters"]["word"] == "second"
    joined = {**body, "stack_name": "joined", "parameters": {"word": "and "}}
    joined["files"] = {
        **body["files"],
        "two": "{parameters: {word: ' and'}, parameter_merge_strategies: {word: merge}}",
    }
    stack_id = http.post("stacks", json=joined).json()["stack"]["id"]
    assert settled(http, stack_id)["parameters"]["word"] == "first and", "a file beats what is given apart"
    strategies = {"one": "merge", "two": "deep_merge"}
    files = {name: f"parameter_merge_strategies: {{word: {each}}}" for name, each in strategies.items()}
    twice = {**body, "stack_name": "s", "files": files}
    assert_fault(http.post("stacks", json=twice), 400, "ConflictingMergeStrategyForParam", "'word' in file 'two'")


def test_stacks_of_others_are_not_there(http: httpx.Client, hello: str, service: Running) -> None:
    with httpx.Client(base_url=service.endpoint("others")) as other:
        asks: list[Callable[[], httpx.Response]] = [
            lambda: other.get(hello),
            lambda: other.get("stacks/hello"),
            lambda: other.delete(hello),
            lambda: other.get(f"{hello}/resources"),
            lambda: other.post(f"{hello}/actions", json={"cancel_update": None}),
        ]
        for ask in asks:
            assert_fault(ask(), 404, "EntityNotFound")
        assert other.get("stacks").json() == {"stacks": []}
