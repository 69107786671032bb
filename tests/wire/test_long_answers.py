"""Long answers are read some at a time and sent while they are made: they say the same, and a missing end shows."""

import threading
from typing import Any

import httpx
import pytest

from homeostat import json_pieces
from homeostat.api.http import answer_budget
from homeostat.api.orchestration import events, resource_parts, stacks
from homeostat.convergence.nested_stacks import attributes
from homeostat.convergence.nested_stacks.attributes import members_and_outputs
from homeostat.observability.memory import Memory
from homeostat.store.stacks import views
from homeostat.transfer import export
from tests.waiting import PATIENCE_S
from tests.wire.running import settled

MEMBERS = 25
WORDS = 10


def template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def made(http: httpx.Client, name: str = "many") -> str:
    """A stack with a group, and words beside it, the last of which follow from the first; its path."""
    one = {"type": "OS::Heat::Value", "properties": {"value": "number %index%"}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": MEMBERS, "resource_def": one}}
    resources: dict[str, Any] = {"group": group, "word": {"type": "OS::Heat::RandomString"}}
    resources |= {f"word{number}": {"type": "OS::Heat::RandomString"} for number in range(WORDS)}
    resources["same"] = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["word", "value"]}}}
    resources["all"] = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["group", "value"]}}}
    answer = http.post("stacks", json={"stack_name": name, "template": template(resources)})
    assert answer.status_code == 201, answer.text
    stack_id = answer.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/{name}/{stack_id}"


@pytest.fixture
def little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, most in (
        (resource_parts, "READ_MAX", 7),
        (resource_parts, "READ_FIRST", 2),
        (resource_parts, "SHOWN_MAX", 1),
        (export, "READ_MAX", 7),
        (events, "PAGE", 7),
        (stacks, "READ_MAX", 2),
        (json_pieces, "PIECE_BYTES", 1),
        (json_pieces, "LIGHT", 1000),
        (json_pieces, "TOGETHER", 2),
    ):
        monkeypatch.setattr(module, name, most)


@pytest.mark.parametrize(
    "query",
    [
        "resources?nested_depth=2",
        "resources?nested_depth=2&with_detail=true&with_differences=true",
        "resources?nested_depth=1&name=3&name=word",
        "resources?nested_depth=1&name=3&name=word&with_detail=true",
        "resources?nested_depth=1&limit=20&with_differences=true",
        "export",
        "events?nested_depth=2",
        "events?nested_depth=2&limit=16",
        "events?sort_keys=resource_type&nested_depth=2",
    ],
)
def test_what_is_read_some_at_a_time_is_the_same(
    http: httpx.Client, request: pytest.FixtureRequest, query: str
) -> None:
    path = made(http)
    whole = http.get(f"{path}/{query}")
    request.getfixturevalue("little_at_a_time")
    streamed = http.get(f"{path}/{query}")
    assert (whole.status_code, streamed.status_code) == (200, 200), streamed.text
    assert "content-length" not in streamed.headers
    assert streamed.json() == whole.json()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("query", ["nested_depth=2", "nested_depth=2&type=Value", "with_detail=true"])
def test_pages_of_resources_are_the_whole_list(
    http: httpx.Client, request: pytest.FixtureRequest, query: str, *, at_once: bool
) -> None:
    path = made(http)
    whole = http.get(f"{path}/resources?{query}").json()
    assert "links" not in whole
    if not at_once:
        request.getfixturevalue("little_at_a_time")
    found: list[Any] = []
    following: str | None = f"{path}/resources?{query}&limit=9"
    while following is not None:
        page = http.get(following).json()
        assert len(page["resources"]) == 9 or "links" not in page
        found += page["resources"]
        following = page["links"][0]["href"] if "links" in page else None
    assert found == whole["resources"]


@pytest.mark.parametrize("marker", ["gone", "gone/0"])
def test_a_page_after_what_is_gone_is_refused(http: httpx.Client, marker: str) -> None:
    refused = http.get(f"{made(http)}/resources", params={"limit": 2, "marker": marker})
    assert refused.status_code == 400
    assert "begin with the first page" in refused.json()["error"]["message"]


def test_a_nested_stack_is_read_once_for_all_whose_differences_follow_from_it(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(http)
    read: list[str] = []

    def counting(tx: Any, nested: Any, budget: Any) -> Any:
        read.append(nested.name)
        return members_and_outputs(tx, nested, budget)

    monkeypatch.setattr(attributes, "members_and_outputs", counting)
    listed = http.get(f"{path}/resources?with_differences=true").json()["resources"]
    assert read == [read[0]]
    assert [each["resource_name"] for each in listed if each["differences"]] == []


@pytest.mark.usefixtures("little_at_a_time")
def test_lists_of_stacks_are_whole_without_a_limit_and_have_links_with_one(http: httpx.Client) -> None:
    names = [f"s{number}" for number in range(5)]
    for name in names:
        assert http.post("stacks", json={"stack_name": name, "template": template({})}).status_code == 201
    listed = http.get("stacks?sort_keys=stack_name&sort_dir=asc&with_count=true").json()
    assert [each["stack_name"] for each in listed["stacks"]] == names
    assert listed["count"] == 5
    assert "links" not in listed
    assert len(http.get("stacks/detail").json()["stacks"]) == 5
    first = http.get("stacks?sort_keys=stack_name&sort_dir=asc&limit=3").json()
    assert [each["stack_name"] for each in first["stacks"]] == names[:3]
    assert [each["stack_name"] for each in http.get(first["links"][0]["href"]).json()["stacks"]] == names[3:]


@pytest.mark.usefixtures("little_at_a_time")
def test_an_answer_that_fails_in_the_middle_has_no_end(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(http)
    asked = 0
    read = views.resources

    def failing(*args: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise RuntimeError("the disk is gone")
        return read(*args, **more)

    monkeypatch.setattr(views, "resources", failing)
    with pytest.raises(httpx.RemoteProtocolError):
        http.get(f"{path}/resources?nested_depth=1")


def test_what_is_too_large_is_not_abandoned(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(http)
    monkeypatch.setattr(answer_budget, "ANSWER_BYTES_MAX", 2000)
    refused = http.delete(f"{path}/abandon")
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "RequestLimitExceeded"
    assert "export" in refused.json()["error"]["message"]
    assert http.get(f"{path}/export").status_code == 200
    monkeypatch.undo()
    assert http.get(path).json()["stack"]["stack_status"] == "CREATE_COMPLETE"


@pytest.mark.usefixtures("http")
def test_a_process_that_answers_gives_free_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    tidied = threading.Event()
    monkeypatch.setattr(Memory, "tidy", lambda _: tidied.set())
    assert tidied.wait(PATIENCE_S)
