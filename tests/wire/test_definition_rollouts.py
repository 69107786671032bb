"""Rollouts of a new definition with the genuine Heat client, and over REST (ADR 0068)."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from heatclient.exc import HTTPBadRequest
from heatclient.v1.client import Client as HeatClient

from tests.waiting import until
from tests.wire.running import settled


def template(image: str, **policy: Any) -> dict[str, Any]:
    """A group of three servers, and a wait condition that depends on it."""
    member = {"type": "OS::Nova::Server", "properties": {"image": image, "flavor": "small", "user_data": image}}
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "grp": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": 3, "resource_def": member, "metadata_update_pattern": "canary"},
                "update_policy": {"rollout": {"applies_to": "definition", "steps": ["1", "100%"], **policy}},
            },
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {
                "type": "OS::Heat::WaitCondition",
                "depends_on": "grp",
                "properties": {"handle": {"get_resource": "handle"}, "timeout": 900},
            },
        },
        "outputs": {"members": {"value": {"get_attr": ["grp", "refs"]}}},
    }


class Defining:
    """A stack of a Heat client whose members get a new definition."""

    def __init__(self, heat: HeatClient, http: httpx.Client, name: str, **policy: Any) -> None:
        self.heat, self.http, self.policy = heat, http, policy
        self.id = heat.stacks.create(stack_name=name, template=template("a", **policy))["stack"]["id"]
        self.path = f"stacks/{name}/{self.id}/resources/grp/rollout"
        until(lambda: heat.resources.get(self.id, "wait").resource_status == "CREATE_IN_PROGRESS", "the members")
        heat.resources.signal(self.id, "handle")
        settled(http, self.id, status="CREATE_COMPLETE")
        self.before = self.members()

    def members(self) -> list[str]:
        return list(self.heat.stacks.output_show(self.id, "members")["output"]["output_value"])

    def begin(self) -> dict[str, Any]:
        self.heat.stacks.update(self.id, template=template("b", **self.policy))
        return self.until(lambda found: found["waits_for"] == "reports")

    def report(self, member: str, status: str) -> None:
        self.heat.resources.signal(self.id, "handle", data={"data": member, "status": status, "reason": "said so"})

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            shown = self.http.get(self.path).json().get("rollout")
            return dict(shown) if shown is not None and holds(shown) else None

        return until(found, "the rollout")


def test_one_member_is_replaced_says_no_and_all_are_as_before(heat: HeatClient, http: httpx.Client) -> None:
    stack = Defining(heat, http, "defined-back")
    shown = stack.begin()
    assert (shown["gives"], shown["settings"]["applies_to"], shown["step"]) == ("definition", "definition", 1)
    assert (shown["members"]["updated"], shown["members"]["total"]) == (1, 3)
    canary = [each for each in stack.members() if each not in stack.before]
    assert len(canary) == 1
    stack.report(canary[0], "FAILURE")
    reason = settled(http, stack.id, status="UPDATE_FAILED")["stack_status_reason"]
    assert "said so; 1 member has the old definition again" in reason
    assert len(set(stack.members()) & set(stack.before)) == 2


def test_all_get_it_once_the_first_has_reported_or_a_user_promotes_it(heat: HeatClient, http: httpx.Client) -> None:
    stack = Defining(heat, http, "defined-on", on_failure="hold")
    stack.begin()
    (canary,) = [each for each in stack.members() if each not in stack.before]
    stack.report(canary, "SUCCESS")
    second = stack.until(lambda found: found["step"] == 2 and found["waits_for"] == "reports")
    assert second["members"]["updated"] == 3
    assert not set(stack.members()) & set(stack.before)
    assert http.post(stack.path, json={"promote": None}).json()["rollout"]["state"] == "succeeded"
    settled(http, stack.id, status="UPDATE_COMPLETE")


def test_what_contradicts_it_is_refused_with_the_place_and_the_way_out(heat: HeatClient) -> None:
    twice, at_once = template("a"), template("a")
    twice["resources"]["grp"]["update_policy"]["rolling_update"] = {"max_batch_size": 1}
    with pytest.raises(HTTPBadRequest, match="leave rolling_update out to have the steps and gates") as refused:
        heat.stacks.create(stack_name="refused", template=twice)
    assert "resources.grp.update_policy.rollout.applies_to" in str(refused.value)
    del at_once["resources"]["grp"]["properties"]["metadata_update_pattern"]
    with pytest.raises(HTTPBadRequest, match="set metadata_update_pattern to rolling or canary"):
        heat.stacks.create(stack_name="refused", template=at_once)
