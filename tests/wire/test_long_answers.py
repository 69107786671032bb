"""Long answers are read some at a time and sent while they are made: they say the same, and a missing end shows."""

from typing import Any

import httpx
import pytest

from homeostat import json_pieces
from homeostat.api.http import answer_budget
from homeostat.api.orchestration import events, inventory, stacks
from homeostat.store.stacks import views
from homeostat.transfer import export
from tests.wire.running import settled

MEMBERS = 25


def template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def made(http: httpx.Client, name: str = "many") -> str:
    """A stack with a group, and something beside it; its path."""
    one = {"type": "OS::Heat::Value", "properties": {"value": "number %index%"}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": MEMBERS, "resource_def": one}}
    resources = {"group": group, "word": {"type": "OS::Heat::RandomString"}}
    answer = http.post("stacks", json={"stack_name": name, "template": template(resources)})
    assert answer.status_code == 201, answer.text
    stack_id = answer.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/{name}/{stack_id}"


@pytest.fixture
def little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, most in (
        (inventory, "READ_MAX", 7),
        (export, "READ_MAX", 7),
        (events, "PAGE", 7),
        (stacks, "READ_MAX", 2),
        (json_pieces, "PIECE_BYTES", 1),
        (json_pieces, "LIGHT", 1000),
    ):
        monkeypatch.setattr(module, name, most)


@pytest.mark.parametrize(
    "query",
    [
        "resources?nested_depth=2",
        "resources?nested_depth=2&with_detail=true&with_differences=true",
        "resources?nested_depth=1&name=3&name=word",
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
