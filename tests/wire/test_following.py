"""Events as they happen: server-sent events, with resuming."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.api.access.auth import NoAccess
from tests.wire import templates
from tests.wire.running import database, serving, settled

STREAM = {"Accept": "text/event-stream"}
NESTED = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": {"type": "OS::Heat::TestResource"}},
        }
    },
}
Event = dict[str, Any]


@pytest.fixture
def address(http: httpx.Client) -> str:
    """Of a complete stack, below the project."""
    created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
    stack_id = created.json()["stack"]["id"]
    settled(http, stack_id, status="CREATE_COMPLETE")
    return f"stacks/hello/{stack_id}"


@contextlib.contextmanager
def following(http: httpx.Client, address: str, last: str = "", **params: Any) -> Iterator[Iterator[Event]]:
    headers = STREAM | ({"Last-Event-ID": last} if last else {})
    with http.stream("GET", f"{address}/events", headers=headers, params=params) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    """Events, the `id` of each checked against its content."""
    last = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            last = value
        if name == "data":
            event = json.loads(value)
            assert event["id"] == last
            yield event


def listed(http: httpx.Client, address: str, **params: Any) -> list[Event]:
    answer = http.get(f"{address}/events", params={"sort_dir": "asc", **params})
    return list(answer.json()["events"])


def test_past_events_come_first_and_then_new_ones(http: httpx.Client, address: str) -> None:
    before = listed(http, address)
    with following(http, address) as events:
        assert list(itertools.islice(events, len(before))) == before
        assert http.delete(address).status_code == 204
        rest = list(events)
    assert [*before, *rest] == listed(http, address)
    assert rest[-1]["resource_status"] == "DELETE_COMPLETE"


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(http: httpx.Client, address: str) -> None:
    with following(http, address) as events:
        first = next(events)
    http.delete(address)
    with following(http, address, last=first["id"]) as events:
        rest = list(events)
    assert [first, *rest] == listed(http, address)
    over = http.get(f"{address}/events", headers=STREAM | {"Last-Event-ID": rest[-1]["id"]})
    assert (over.status_code, over.content) == (204, b"")


def test_events_of_nested_stacks_are_listed_and_filtered(http: httpx.Client) -> None:
    created = http.post("stacks", json={"stack_name": "outer", "template": NESTED})
    address = f"stacks/outer/{created.json()['stack']['id']}"
    with following(http, address, nested_depth=2, resource_type="OS::Heat::TestResource") as events:
        followed = list(itertools.islice(events, 4))
        assert {event["resource_name"] for event in followed} == {"0", "1"}
        assert all(event["links"][-1]["rel"] == "root_stack" for event in followed)
        settled(http, address.rsplit("/", maxsplit=1)[-1], status="CREATE_COMPLETE")
        http.delete(address)
        rest = list(events)
    assert {event["resource_status"] for event in rest} >= {"DELETE_IN_PROGRESS", "DELETE_COMPLETE"}


@pytest.mark.parametrize(
    ("headers", "params", "message"),
    [
        ({"Last-Event-ID": "yesterday"}, {}, "Last-Event-ID has to be the id of an event"),
        ({}, {"sort_dir": "desc"}, "leave out limit, sort_keys and sort_dir"),
        ({}, {"nested_depth": "deep"}, "nested_depth"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    http: httpx.Client, address: str, headers: dict[str, str], params: dict[str, str], message: str
) -> None:
    answer = http.get(f"{address}/events", headers=STREAM | headers, params=params)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_stack_that_is_not_there_cannot_be_followed(http: httpx.Client) -> None:
    assert http.get("stacks/none/none/events", headers=STREAM).status_code == 404


def test_a_service_that_stops_ends_its_streams_whole(tmp_path: Path) -> None:
    with database(tmp_path) as db, contextlib.ExitStack() as service:
        url = service.enter_context(serving(db, NoAccess()))
        with httpx.Client(base_url=f"{url}/v1/mine") as http:
            created = http.post("stacks", json={"stack_name": "hello", "template": templates.HELLO})
            with following(http, f"stacks/hello/{created.json()['stack']['id']}") as events:
                assert next(events)["resource_status"] == "CREATE_IN_PROGRESS"
                service.close()
                assert list(events) == []  # cut off in the middle, it would be an error of the protocol
