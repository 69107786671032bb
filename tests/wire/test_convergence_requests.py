"""Looking, converging and the switches of convergence, over HTTP: additions of this service (CV8, CV9)."""

import itertools
from typing import Any, cast

import httpx
import pytest

from tests.waiting import until
from tests.wire.running import Running, settled

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small", "metadata": {"k": "v"}}}
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"srv": SERVER}}
_NUMBERS = itertools.count()


class Stack:
    """One stack with one server that is well."""

    def __init__(self, service: Running, http: httpx.Client, url: str) -> None:
        self.service, self.http, self.url = service, http, url

    def resource(self) -> dict[str, Any]:
        return dict(self.http.get(f"{self.url}/resources/srv").json()["resource"])

    def switch(self, **given: Any) -> httpx.Response:
        return self.http.patch(f"{self.url}/convergence", json={"convergence": given})

    def observe(self, resource: str | None = None) -> str:
        """Asks for a look, and waits for it. Gives when it was asked for."""
        below = f"/resources/{resource}" if resource else ""
        asked_at: str = self.act("observe", below).json()["observe"]["asked_at"]
        until(lambda: (self.looked_at(resource) or "") >= asked_at, "a look")
        return asked_at

    def looked_at(self, resource: str | None = None) -> str | None:
        shown = self.http.get(f"{self.url}/convergence", params={"resource": resource} if resource else {})
        return cast(str | None, shown.json()["convergence"]["looked_at"])

    def act(self, action: str, below: str = "") -> httpx.Response:
        return self.http.post(f"{self.url}{below}/actions", json={action: None})


@pytest.fixture
def stack(service: Running, http: httpx.Client) -> Stack:
    created = http.post("stacks", json={"stack_name": f"asked{next(_NUMBERS)}", "template": TEMPLATE})
    assert created.status_code == 201, created.text
    settled(http, created.json()["stack"]["id"], status="CREATE_COMPLETE")
    return Stack(service, http, created.headers["location"])


def test_drift_is_shown_property_by_property_while_it_is_left_alone(stack: Stack) -> None:
    assert stack.switch(enabled=False).json()["convergence"]["enabled"] is False
    handle = stack.resource()["physical_resource_id"]
    stack.service.cloud.change(handle, metadata={"k": "other"})
    stack.act("observe")
    shown = until(lambda: (o := stack.resource()["observed"])["drift"] and o.get("left_alone") and o, "the drift")
    (drift,) = shown["drift"]
    assert (drift["property"], drift["desired"], drift["observed"]) == ("metadata", {"k": "v"}, {"k": "other"})
    assert drift["since"] <= shown["looked_at"]
    assert shown["left_alone"] == "metadata changed outside"
    assert stack.act("converge", "/resources/srv").status_code == 200
    until(lambda: not stack.resource()["observed"]["drift"], "the drift to be mended")
    assert stack.resource()["physical_resource_id"] == handle


def test_values_of_template_last_applied_and_live_are_distinguished(stack: Stack) -> None:
    def differences() -> list[dict[str, Any]]:
        asked = stack.http.get(f"{stack.url}/resources", params={"with_differences": True, "name": "srv"})
        return list(asked.json()["resources"][0]["differences"])

    assert differences() == []
    stack.switch(enabled=False)
    handle = stack.resource()["physical_resource_id"]
    condition = {"handle": {"get_resource": "handle"}, "timeout": 900}
    properties = {"image": "i", "flavor": "small", "metadata": {"k": "new"}, "name": {"get_param": "secret"}}
    changed = {
        "heat_template_version": "2018-08-31",
        "parameters": {"secret": {"type": "string", "hidden": True, "default": "swordfish"}},
        "resources": {
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {"type": "OS::Heat::WaitCondition", "properties": condition},
            "srv": {"type": "OS::Nova::Server", "properties": properties, "depends_on": "wait"},
        },
    }
    assert stack.http.put(stack.url, json={"template": changed}).status_code == 202
    until(lambda: len(differences()) == 2, "the template to be ahead")
    stack.service.cloud.change(handle, metadata={"k": "other"})
    stack.act("observe")
    found = until(lambda: (d := {e["property"]: e for e in differences()})["metadata"]["since"] and d, "the drift")
    shown = {name: (each["template"], each["applied"], each["observed"]) for name, each in found.items()}
    assert shown == {"metadata": ({"k": "new"}, {"k": "v"}, {"k": "other"}), "name": ("******", None, None)}
    assert found["name"]["since"] is None
    assert stack.http.delete(stack.url).status_code == 204


USUAL: dict[str, Any] = {"healing": None, "healing_share": None}


def test_observe_says_from_when_looks_count(stack: Stack) -> None:
    def looked() -> dict[str, Any] | None:
        shown = stack.http.get(f"{stack.url}/convergence").json()["convergence"]
        return shown if (shown["looked_at"] or "") >= asked_at else None

    asked_at = stack.act("observe").json()["observe"]["asked_at"]
    shown = until(looked, "a look")
    shown.pop("looked_at")
    assert shown == {"enabled": True, "observe_interval": None, "resources": {}, "blind": None, **USUAL}


def test_a_look_at_one_resource_waits_for_nothing_else(service: Running, http: httpx.Client) -> None:
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": SERVER}}
    template = {**TEMPLATE, "resources": {"srv": SERVER, "grp": group}}
    url = http.post("stacks", json={"stack_name": f"looked{next(_NUMBERS)}", "template": template}).headers["location"]
    stack = Stack(service, http, url)
    settled(http, url.rpartition("/")[2], status="CREATE_COMPLETE")
    assert stack.switch(observe_interval=0).status_code == 200
    stack.observe()
    asked_at = stack.observe("srv")
    assert (stack.looked_at("grp") or "") < asked_at
    assert (stack.looked_at() or "") < asked_at
    stack.observe("grp")
    assert http.get(f"{url}/convergence?resource=none").status_code == 404


def test_switches_of_one_resource(stack: Stack) -> None:
    changed = stack.switch(observe_interval=30, resources={"srv": {"enabled": False, "observe_interval": 5}})
    assert changed.json()["convergence"]["observe_interval"] == 30
    assert changed.json()["convergence"]["resources"] == {"srv": {"enabled": False, "observe_interval": 5}}
    assert stack.switch(resources={"srv": None}).json()["convergence"]["resources"] == {}


def test_a_stack_converges(stack: Stack) -> None:
    stack.switch(enabled=False)
    handle = stack.resource()["physical_resource_id"]
    stack.service.cloud.vanish(handle)
    assert stack.act("converge").status_code == 200
    stack_id = stack.url.rpartition("/")[2]
    settled(stack.http, stack_id, status="UPDATE_COMPLETE")
    assert stack.resource()["physical_resource_id"] != handle


WRONG = {
    "no map": ({"convergence": 1}, 'The body must be {"convergence": {…}}'),
    "more than that": ({"convergence": {}, "x": 1}, 'The body must be {"convergence": {…}}'),
    "unknown switch": ({"convergence": {"speed": 1}}, "convergence.speed: there is no such switch"),
    "no boolean": ({"convergence": {"enabled": "maybe"}}, 'convergence.enabled: Unrecognized value "maybe"'),
    "no policy": ({"convergence": {"healing": "never"}}, "convergence.healing: it must be replace, ask or null"),
    "no share": ({"convergence": {"healing_share": 40}}, "convergence.healing_share: it must be more than 0"),
    "too often": ({"convergence": {"observe_interval": 0.1}}, "convergence.observe_interval: it must be 0 (never)"),
    "no number": ({"convergence": {"observe_interval": True}}, "convergence.observe_interval: it must be 0 (never)"),
    "no map of names": ({"convergence": {"resources": [1]}}, "convergence.resources: it must be a map of names"),
    "no map for one": ({"convergence": {"resources": {"srv": 1}}}, "convergence.resources.srv: it must be a map"),
}


@pytest.mark.parametrize(("body", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_switches_name_their_place(stack: Stack, body: Any, message: str) -> None:
    answer = stack.http.patch(f"{stack.url}/convergence", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(message)


def test_no_such_resource(stack: Stack) -> None:
    for answer in (stack.switch(resources={"nope": {"enabled": False}}), stack.act("observe", "/resources/nope")):
        assert answer.status_code == 404
        assert "The Resource (nope) could not be found in Stack" in answer.json()["error"]["message"]
    assert stack.act("explode", "/resources/srv").status_code == 400
