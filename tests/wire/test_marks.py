"""Marking resources unhealthy over HTTP and with the genuine client's library (MU1 … MU6)."""

import itertools
from typing import Any

import httpx
import pytest
from heatclient.exc import HTTPConflict
from heatclient.v1.client import Client as HeatClient

from tests.waiting import until
from tests.wire.running import Running, settled

MEMBER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}
GROUP = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": MEMBER}}
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"srv": MEMBER, "grp": GROUP}}
_NUMBERS = itertools.count()


class Stack:
    """One stack with a server and a group, that waits for its next update with all that is marked."""

    def __init__(self, service: Running, http: httpx.Client, url: str) -> None:
        self.service, self.http, self.url = service, http, url
        self.id = url.rpartition("/")[2]

    def resource(self, name: str = "srv") -> dict[str, Any]:
        return dict(self.http.get(f"{self.url}/resources/{name}").json()["resource"])

    def mark(self, name: str = "srv", **body: Any) -> httpx.Response:
        return self.http.patch(f"{self.url}/resources/{name}", json=body)

    def mark_all(self, **body: Any) -> httpx.Response:
        return self.http.patch(f"{self.url}/resources", json=body)


@pytest.fixture
def stack(service: Running, http: httpx.Client) -> Stack:
    created = http.post("stacks", json={"stack_name": f"marked{next(_NUMBERS)}", "template": TEMPLATE})
    assert created.status_code == 201, created.text
    settled(http, created.json()["stack"]["id"], status="CREATE_COMPLETE")
    made = Stack(service, http, created.headers["location"])
    http.patch(f"{made.url}/convergence", json={"convergence": {"enabled": False}}).raise_for_status()
    return made


@pytest.mark.shows("MU1")
def test_marked_shown_and_taken_back(stack: Stack) -> None:
    marked = stack.mark(mark_unhealthy=True, resource_status_reason="it smells")
    assert (marked.status_code, marked.json()) == (200, None)
    shown = stack.resource()
    assert (shown["resource_status"], shown["resource_status_reason"]) == ("CHECK_FAILED", "it smells")
    assert shown["unhealthy"]["reason"] == "it smells"
    assert shown["unhealthy"]["expires_at"] is None
    (reason,) = stack.http.get(f"{stack.url}/resources/srv/explain").json()["explanation"]["reasons"]
    assert (reason["why"], reason["reason"]) == ("unhealthy", "it smells")
    events = stack.http.get(f"{stack.url}/resources/srv/events").json()["events"]
    assert (events[0]["resource_status"], events[0]["resource_status_reason"]) == ("CHECK_FAILED", "it smells")
    assert stack.mark(shown["physical_resource_id"], mark_unhealthy=False).json() is None
    assert stack.resource()["resource_status"] == "CHECK_COMPLETE"
    assert "unhealthy" not in stack.resource()


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ({}, "lacks mark_unhealthy"),
        ({"resource_status_reason": "r"}, "lacks mark_unhealthy"),
        ({"mark_unhealthy": "true"}, "true or false"),
        ({"mark_unhealthy": None}, "true or false"),
        ({"mark_unhealthy": 1}, "true or false"),
        ({"mark_unhealthy": True, "resource_status_reason": 5}, "resource_status_reason: it must be a text"),
        ({"mark_unhealthy": True, "other": 1}, "Unexpected parameter(s) other"),
        ({"mark_unhealthy": True, "expires_in": 5}, "Unexpected parameter(s) expires_in"),
    ],
)
@pytest.mark.shows("MU3")
def test_bodies_that_say_something_else_are_refused(stack: Stack, body: dict[str, Any], reported: str) -> None:
    """MU3: nothing is marked."""
    answer = stack.mark(**body)
    assert answer.status_code == 400
    assert reported in answer.json()["error"]["message"]
    assert stack.resource()["resource_status"] == "CREATE_COMPLETE"


def test_what_is_not_there(stack: Stack) -> None:
    answer = stack.mark("nothing", mark_unhealthy=True)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "EntityNotFound")
    elsewhere = stack.http.patch(f"{stack.url[:-1]}x/resources/srv", json={"mark_unhealthy": True})
    assert elsewhere.status_code == 404


@pytest.mark.shows("MU6")
def test_the_library_marks_and_an_update_replaces(stack: Stack, heat: HeatClient) -> None:
    """The next update replaces it, though nothing of the template changes, and a member under its name (MU7, MU8)."""
    old = stack.resource()["physical_resource_id"]
    (nested,) = [link["href"] for link in stack.resource("grp")["links"] if link["rel"] == "nested"]
    member = stack.http.get(f"{nested}/resources/0").json()["resource"]["physical_resource_id"]
    heat.resources.mark_unhealthy(stack.id, "srv", True, "it smells")
    heat.resources.mark_unhealthy(nested.rpartition("/")[2], "0", True, "")
    assert heat.resources.get(stack.id, "srv").resource_status == "CHECK_FAILED"
    updated = stack.http.put(stack.url, json={"template": TEMPLATE})
    assert updated.status_code == 202, updated.text
    settled(stack.http, stack.id, status="UPDATE_COMPLETE")
    assert stack.resource()["physical_resource_id"] != old
    assert "unhealthy" not in stack.resource()
    now = stack.http.get(f"{nested}/resources/0").json()["resource"]
    assert now["physical_resource_id"] not in ("", member)
    until(lambda: not {old, member} & set(stack.service.cloud.things("server")), "the old servers to go")


@pytest.mark.shows("MU5")
def test_busy_is_a_conflict(http: httpx.Client, heat: HeatClient) -> None:
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 600}}
    template = {"heat_template_version": "2018-08-31", "resources": {"slow": slow}}
    created = http.post("stacks", json={"stack_name": f"busy{next(_NUMBERS)}", "template": template})
    stack_id = created.json()["stack"]["id"]
    until(lambda: heat.resources.list(stack_id)[0].resource_status == "CREATE_IN_PROGRESS", "it to be begun")
    with pytest.raises(HTTPConflict, match="already has an action"):
        heat.resources.mark_unhealthy(stack_id, "slow", True, "r")
    http.delete(created.headers["location"])


def test_many_at_once_with_a_reporter_and_an_end(stack: Stack) -> None:
    answer = stack.mark_all(
        mark_unhealthy=True, resources=["grp/1", "srv"], reporter="prober", expires_in=600, resource_status_reason="r"
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["resources"] == [
        {"resource": "grp/1", "path": ["grp", "1"], "resource_status": "CHECK_FAILED", "changed": True},
        {"resource": "srv", "path": ["srv"], "resource_status": "CHECK_FAILED", "changed": True},
    ]
    mark = stack.resource()["unhealthy"]
    assert (mark["reporter"], mark["reported_by"]) == ("prober", None)
    assert mark["expires_at"] > mark["since"]


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ({"mark_unhealthy": True}, "resources: it must be a list"),
        ({"mark_unhealthy": True, "resources": []}, "resources: it must be a list"),
        ({"mark_unhealthy": True, "resources": ["srv", 5]}, "resources[1]: it must be a name"),
        ({"mark_unhealthy": True, "resources": ["srv"], "expires_in": 0}, "expires_in: it must be a number"),
        ({"mark_unhealthy": True, "resources": ["srv"], "expires_in": True}, "expires_in: it must be a number"),
        ({"mark_unhealthy": True, "resources": ["srv"], "reporter": "x" * 1001}, "reporter: it has 1001 characters"),
        ({"mark_unhealthy": False, "resources": ["srv"], "reporter": "x"}, "reporter: it has no meaning"),
        ({"mark_unhealthy": True, "resources": ["x"] * 1001}, "resources has more than 1000 items"),
    ],
)
def test_a_wrong_mark_of_many_is_refused(stack: Stack, body: dict[str, Any], reported: str) -> None:
    answer = stack.mark_all(**body)
    assert answer.status_code == 400
    assert reported in answer.json()["error"]["message"]


def test_all_or_none(stack: Stack) -> None:
    answer = stack.mark_all(mark_unhealthy=True, resources=["srv", "no", "grp/9"])
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert "resources[1]: The Resource (no)" in message
    assert "resources[2]: The Resource (9)" in message
    assert stack.resource()["resource_status"] == "CREATE_COMPLETE"
