"""Rollouts of metadata over HTTP: shown, steered and approved (RU8)."""

import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from homeostat.store.stacks import rollouts
from tests.waiting import until
from tests.wire.running import Running, settled

SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small"}}
_NUMBERS = itertools.count()


def template(value: str, more: dict[str, Any] | None = None, **policy: Any) -> dict[str, Any]:
    """A group of three with metadata, and a wait condition that depends on it."""
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "grp": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": 3, "resource_def": SERVER, "metadata_update_pattern": "rolling"},
                "update_policy": {"rollout": policy},
                "metadata": {"v": value},
            },
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {
                "type": "OS::Heat::WaitCondition",
                "depends_on": "grp",
                "properties": {"handle": {"get_resource": "handle"}, "timeout": 900},
            },
            **(more or {}),
        },
    }


class Rolling:
    """A stack whose group gets new metadata; each way of steering it has one, or they would wait for each other."""

    def __init__(self, http: httpx.Client, more: dict[str, Any] | None = None, **policy: Any) -> None:
        self.http, self.more, self.policy = http, more, policy
        body = {"stack_name": f"rolling{next(_NUMBERS)}", "template": template("1", more, **policy)}
        created = http.post("stacks", json=body)
        assert created.status_code == 201, created.text
        self.url, self.id = created.headers["location"], created.json()["stack"]["id"]
        until(lambda: self.resource("wait")["resource_status"] == "CREATE_IN_PROGRESS", "the group to be made")
        self.signal("handle", None)
        settled(http, self.id, status="CREATE_COMPLETE")

    def begin(self, value: str = "2") -> dict[str, Any]:
        """Begin a rollout; the first step is there."""
        answer = self.http.put(self.url, json={"template": template(value, self.more, **self.policy)})
        assert answer.status_code == 202, answer.text
        return self.until(lambda found: found["waits_for"] == "reports", "the first step")

    def resource(self, name: str) -> dict[str, Any]:
        return dict(self.http.get(f"{self.url}/resources/{name}").json()["resource"])

    def members(self) -> list[str]:
        nested = next(link["href"] for link in self.resource("grp")["links"] if link["rel"] == "nested")
        found = self.http.get(f"{nested}/resources", follow_redirects=True).json()["resources"]
        return [each["physical_resource_id"] for each in sorted(found, key=lambda each: each["resource_name"])]

    def signal(self, name: str, body: Any) -> None:
        answer = self.http.post(f"{self.url}/resources/{name}/signal", json=body)
        assert answer.status_code == 200, answer.text

    def report(self, number: int, status: str = "SUCCESS", reason: str = "done") -> None:
        self.signal("handle", {"status": status, "reason": reason, "data": self.members()[number]})

    def get(self) -> httpx.Response:
        return self.http.get(f"{self.url}/resources/grp/rollout")

    def steer(self, body: Any, below: str = "") -> httpx.Response:
        return self.http.post(f"{self.url}/resources/grp/rollout{below}", json=body)

    def until(self, holds: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            answer = self.get()
            shown = answer.json().get("rollout")
            return shown if shown is not None and holds(shown) else None

        return until(found, what)

    def ended(self, status: str) -> str:
        """Its reason, once the stack is at rest and the rollout is over."""
        stack = settled(self.http, self.id, status=status)
        assert self.get().status_code == 404
        return str(stack["stack_status_reason"])


def fault(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["message"]


@pytest.mark.shows("RU8")
def test_a_rollout_is_shown_from_its_first_step_to_its_end(http: httpx.Client) -> None:
    stack = Rolling(http, max_failures=1, on_failure="hold")
    first = stack.begin()
    assert (first["state"], first["pattern"], first["step"], first["path"]) == ("running", "rolling", 1, ["grp"])
    assert first["members"] == {
        "total": 3, "updated": 1, "target": 1, "targets_to_come": [2, 3],
        "step": {"succeeded": 0, "failed": 0, "waiting": 1},
    }  # fmt: skip
    assert 0 < first["seconds_left"] <= 900
    assert first["started_at"] <= first["step_at"] < first["due_at"]
    assert first["actions"] == ["pause", "promote", "abort", "roll_back"]
    assert first["released_by"].startswith("the reports of the members of step 1, the end of their time, or a user")
    assert first["settings"] == {
        "steps": [], "bake_time": 0.0, "progress_deadline": 900.0, "min_success_percent": 100.0,
        "on_failure": "hold", "approval": False, "order": "number", "wait_conditions": ["wait"],
        "alarms": [], "checks": 0, "applies_to": "metadata",
    }  # fmt: skip
    stack.report(0, "FAILURE", "too old")
    second = stack.until(lambda found: found["step"] == 2 and found["members"]["updated"] == 2, "the second step")
    assert second["failures"] == {
        "count": 1, "accepted": 0, "max": 1, "max_per_step": 1,
        "members": [{"resource_name": "0", "physical_resource_id": stack.members()[0], "reason": "too old"}],
    }  # fmt: skip
    stack.report(1, "FAILURE", "as well")
    held = stack.until(lambda found: found["state"] == "held", "the gate to say no")
    assert (held["waits_for"], held["due_at"], held["seconds_left"]) == ("user", None, None)
    assert held["actions"] == ["resume", "promote", "abort", "roll_back"]
    assert "2 members failed, 1 in all may fail" in held["reason"]
    assert stack.steer({"resume": None}).json()["rollout"]["failures"]["accepted"] == 2
    stack.until(lambda found: found["step"] == 3, "the last step")
    stack.report(2)
    stack.ended("UPDATE_COMPLETE")


@pytest.mark.shows("RU8")
@pytest.mark.parametrize(
    ("verb", "state", "values", "status", "reason"),
    [
        ("promote", "succeeded", "222", "UPDATE_COMPLETE", "completed"),
        ("abort", "aborted", "211", "UPDATE_FAILED", "rollout aborted by a user; 1 member keeps the new metadata"),
        ("roll_back", "rolled_back", "111", "UPDATE_FAILED", "rollout rolled back by a user"),
    ],
)
def test_a_user_ends_a_rollout(
    service: Running, http: httpx.Client, verb: str, state: str, values: str, status: str, reason: str
) -> None:
    stack = Rolling(http)
    stack.begin()
    answer = stack.steer({verb: None})
    assert (answer.status_code, answer.json()["rollout"]["state"]) == (200, state)
    assert answer.json()["rollout"]["actions"] == []
    assert reason in stack.ended(status)
    assert [metadata(service, stack, member) for member in stack.members()] == list(values)


def metadata(service: Running, stack: Rolling, member: str) -> str:
    """What a member reads."""
    with service.db.read() as tx:
        row = rollouts.metadata_of(tx, stack.id, "grp", member)
    assert row is not None
    return str((row.metadata if row.instance_id is None else row.new_metadata)["v"])


@pytest.mark.shows("RU8")
def test_it_is_paused_and_explained_and_goes_on(http: httpx.Client) -> None:
    stack = Rolling(http)
    stack.begin()
    paused = stack.steer({"pause": None}).json()["rollout"]
    assert (paused["state"], paused["waits_for"], paused["actions"][0]) == ("paused", "user", "resume")
    explained = http.get(f"{stack.url}/resources/grp/explain").json()["explanation"]["reasons"][0]
    assert explained["why"] == "rollout"
    assert explained["reason"] == "paused by a user; 1 of 3 members have the new metadata"
    assert "homeostat rollout resume, promote, abort, roll-back" in explained["released_by"]
    stack.report(0)
    assert fault(stack.steer({"pause": None}))[:2] == (409, "Conflict")
    assert stack.steer({"resume": None}).status_code == 200
    running = stack.until(lambda found: found["waits_for"] == "reports" and found["step"] == 2, "the second step")
    explained = http.get(f"{stack.url}/resources/grp/explain").json()["explanation"]["reasons"][0]
    assert explained["due_at"] == running["due_at"], "it says when the time of the step is over"
    assert "the reports of the members of step 2" in explained["released_by"]
    stack.steer({"abort": None})
    stack.ended("UPDATE_FAILED")


@pytest.mark.shows("RU8")
def test_each_step_is_approved_by_its_number(http: httpx.Client) -> None:
    stack = Rolling(http, approval=True)
    stack.begin()
    stack.report(0)
    waiting = stack.until(lambda found: found["waits_for"] == "approval", "the step to be done")
    assert waiting["actions"][0] == "approve"
    assert fault(stack.steer({"step": 2}, "/approval"))[:2] == (409, "Conflict")
    assert fault(stack.steer({"approve": None}))[0] == 400
    assert stack.steer({"step": 1}, "/approval").json()["rollout"]["approved_step"] == 1
    stack.until(lambda found: found["step"] == 2, "the second step")
    assert stack.steer({}, "/approval").json()["rollout"]["approved_step"] == 2, "approved in advance"
    stack.report(1)
    stack.until(lambda found: found["step"] == 3, "the third step, which waits for no approval of the second any more")
    stack.report(2)
    stack.ended("UPDATE_COMPLETE")


@pytest.mark.parametrize(
    ("body", "below", "reason"),
    [
        ({}, "", "The body must have one key"),
        ({"pause": None, "abort": None}, "", "The body must have one key"),
        ({"dance": None}, "", "'dance': a rollout cannot be steered so; it may be abort, pause, promote, resume"),
        ({"x" * 10_000: None}, "", f"'{'x' * 40}': a rollout cannot"),
        ({"pause": True}, "", "pause: it takes no value; send null"),
        ({"pause": ["a"]}, "", "pause: it takes no value; send null"),
        ({"step": 0}, "/approval", "step: it must be the number of a step, 1 or more"),
        ({"step": True}, "/approval", "step: it must be the number"),
        ({"step": 2**70}, "/approval", "step: it must be the number"),
        ({"step": "1"}, "/approval", "step: it must be the number"),
        ({"stop": 1}, "/approval", "'stop': there is no such key"),
    ],
)
def test_what_is_no_such_request_is_refused_with_its_place(
    http: httpx.Client, body: Any, below: str, reason: str
) -> None:
    answer = http.post(f"stacks/web/{'0' * 8}/resources/grp/rollout{below}", json=body)
    code, kind, message = fault(answer)
    assert (code, kind) == (400, "HTTPBadRequest")
    assert message.startswith(reason)


def test_where_there_is_none(http: httpx.Client, service: Running) -> None:
    stack = Rolling(http)
    assert http.get(f"{stack.url}/rollouts").json()["rollouts"] == []
    for name in ("grp", "handle"):
        answer = http.get(f"{stack.url}/resources/{name}/rollout")
        assert fault(answer) == (404, "NotFound", f"{name}: The group has no rollout in progress.")
    assert fault(http.get(f"{stack.url}/resources/no/rollout"))[:2] == (404, "EntityNotFound")
    assert fault(stack.steer({"pause": None}))[:2] == (404, "NotFound")
    assert fault(stack.steer({}, "/approval"))[:2] == (404, "NotFound")
    with httpx.Client(base_url=service.endpoint("another")) as other:
        name = stack.http.get(stack.url).json()["stack"]["stack_name"]
        for path in ("rollouts", "resources/grp/rollout"):
            assert fault(other.get(f"stacks/{name}/{stack.id}/{path}"))[:2] == (404, "EntityNotFound")
        answer = other.post(f"stacks/{name}/{stack.id}/resources/grp/rollout", json={"abort": None})
        assert fault(answer)[:2] == (404, "EntityNotFound")


def test_all_rollouts_of_a_stack_and_of_those_in_it_are_listed_in_pages(http: httpx.Client) -> None:
    inner = template("1")

    def outer(value: str) -> dict[str, Any]:
        tier = {"type": "tier.yaml", "properties": {"v": value}}
        return {"heat_template_version": "2018-08-31", "resources": {"a": tier, "b": tier}}

    inner["parameters"] = {"v": {"type": "string"}}
    inner["resources"]["grp"]["metadata"] = {"v": {"get_param": "v"}}
    files = {"tier.yaml": httpx.Response(200, json=inner).text}
    name = f"tiers{next(_NUMBERS)}"
    created = http.post("stacks", json={"stack_name": name, "template": outer("1"), "files": files})
    assert created.status_code == 201, created.text
    url = created.headers["location"]

    def waiting() -> list[str]:
        found = http.get(f"{url}/resources", params={"nested_depth": 1}).json()["resources"]
        ready = [each for each in found if each["resource_name"] == "wait"]
        handles = [each for each in found if each["resource_name"] == "handle"]
        begun = len(ready) == 2 and all(each["resource_status"] == "CREATE_IN_PROGRESS" for each in ready)
        return [each["links"][0]["href"] for each in handles] if begun else []

    for handle in until(waiting, "the groups to be made"):
        assert http.post(f"{handle}/signal", json=None).status_code == 200
    settled(http, created.json()["stack"]["id"], status="CREATE_COMPLETE")
    http.put(url, json={"template": outer("2"), "files": files})

    def page(**params: Any) -> dict[str, Any]:
        return dict(http.get(f"{url}/rollouts", params=params).json())

    until(lambda: len(page(nested_depth=1)["rollouts"]) == 2, "both rollouts")
    assert page()["rollouts"] == []
    one = page(nested_depth=5, limit=1)
    following = next(link["href"] for link in one["links"] if link["rel"] == "next")
    two = http.get(following).json()
    paths = sorted(each["path"] for each in (*one["rollouts"], *two["rollouts"]))
    assert paths == [["a", "grp"], ["b", "grp"]]
    assert http.get(next(link["href"] for link in two["links"] if link["rel"] == "next")).json()["rollouts"] == []
    shown = one["rollouts"][0]
    assert http.get(shown["links"][0]["href"]).json()["rollout"]["state"] == "running"
    assert http.post(shown["links"][0]["href"], json={"promote": None}).status_code == 200
    assert http.get(f"stacks/{name}/rollouts").status_code == 302
    for wrong in ({"limit": 0}, {"limit": 101}, {"marker": "\0"}, {"marker": "é"}, {"nested_depth": -1}):
        assert http.get(f"{url}/rollouts", params=wrong).status_code == 400


def test_a_locked_stack_refuses_and_says_why(http: httpx.Client) -> None:
    # It fails once the rollout goes on: none begins in a stack that has failed.
    failing = {"bad": {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": False, "wait_secs": 5}}}
    stack = Rolling(http, failing)
    failing["bad"]["properties"]["fail"] = True  # type: ignore[index]
    stack.begin()
    stack.steer({"pause": None})
    settled(http, stack.id, status="UPDATE_FAILED")
    locked = http.post(f"{stack.url}/actions", json={"lock": {"level": "stacks", "reason": "audit"}})
    assert locked.status_code == 200, locked.text
    settled(http, stack.id, status="LOCK_COMPLETE")
    for verb in ("resume", "promote", "abort", "roll_back"):
        code, kind, message = fault(stack.steer({verb: None}))
        assert (code, kind) == (409, "StackLocked")
        assert "is locked (audit): unlock it first" in message
    assert fault(stack.steer({}, "/approval"))[:2] == (409, "StackLocked")
    assert stack.get().json()["rollout"]["state"] == "paused"
