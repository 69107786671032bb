"""`homeostat rollout` against a real service."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Home
from tests.waiting import until

TEMPLATE = """
heat_template_version: wallaby
parameters:
  release: {type: string, default: "1"}
resources:
  fleet:
    type: OS::Heat::ResourceGroup
    properties:
      count: 3
      metadata_update_pattern: rolling
      resource_def: {type: OS::Nova::Server, properties: {image: local, flavor: m1.tiny}}
    metadata: {release: {get_param: release}}
    update_policy:
      rollout: {approval: APPROVAL, on_failure: hold}
  handle: {type: OS::Heat::WaitConditionHandle}
  wait:
    type: OS::Heat::WaitCondition
    depends_on: fleet
    properties: {handle: {get_resource: handle}, timeout: 900}
"""
TIERS = """
heat_template_version: wallaby
parameters:
  release: {type: string, default: "1"}
resources:
  a: {type: tier.yaml, properties: {release: {get_param: release}}}
  b: {type: tier.yaml, properties: {release: {get_param: release}}}
"""


class Rolling:
    """A stack on which a rollout is begun."""

    def __init__(self, service: Home, directory: Path, name: str, *, approval: bool = False) -> None:
        self.service, self.name, self.file = service, name, directory / f"{name}.yaml"
        self.file.write_text(TEMPLATE.replace("APPROVAL", str(approval).lower()))
        self.up()
        until(lambda: self.resource("wait")["resource_status"] == "CREATE_IN_PROGRESS", "the group to be made")
        self.signal({"id": "first"})
        self.rest()

    def up(self, *more: str) -> None:
        made = self.service.run("up", str(self.file), self.name, "--no-wait", *more)
        assert made.code == 0, made.err

    def begin(self) -> None:
        self.up("-P", "release=2")
        self.until(lambda found: found["waits_for"] == "reports", "the first step")

    def rollout(self, *words: str) -> Any:
        return self.service.run("rollout", words[0], self.name, *words[1:])

    def until(self, holds: Any, what: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            known = self.rollout("status", "--json").json()["rollouts"]
            return known[0] if known and holds(known[0]) else None

        return until(found, what)

    def resources(self) -> list[dict[str, Any]]:
        return list(self.service.run("show", self.name, "--json").json()["resources"])

    def resource(self, name: str) -> dict[str, Any]:
        return next(each for each in self.resources() if each["resource_name"] == name)

    def rest(self) -> str:
        def at_rest() -> str:
            status = str(self.service.run("show", self.name, "--json").json()["stack"]["stack_status"])
            return "" if status.endswith("IN_PROGRESS") else status

        return until(at_rest, "the stack to come to rest")

    def signal(self, body: Any) -> None:
        url = next(link["href"] for link in self.resource("handle")["links"] if link["rel"] == "self")
        assert httpx.post(f"{url}/signal", json=body).status_code == 200

    def report(self, number: int, status: str = "SUCCESS", reason: str = "") -> None:
        member = next(each for each in self.resources() if each["resource_name"] == str(number))
        self.signal({"status": status, "reason": reason, "data": member["physical_resource_id"]})


@pytest.mark.heavy
def test_a_rollout_is_seen_and_approved_and_followed_to_its_end(service: Home, tmp_path: Path) -> None:
    stack = Rolling(service, tmp_path, "fleet", approval=True)
    assert stack.rollout("status").out.strip() == "no rollout is in progress in fleet"
    refused = stack.rollout("pause")
    assert (refused.code, "no rollout is in progress in fleet" in refused.err) == (1, True)
    stack.begin()
    shown = stack.rollout("status")
    assert shown.code == 0
    for part in ("fleet fleet", "running", "1/3 members", "left", "0 succeeded, 0 failed, 1 waiting"):
        assert part in shown.out
    assert "homeostat rollout approve|pause|promote|abort|roll-back fleet fleet" in shown.out
    stack.report(0)
    stack.until(lambda found: found["waits_for"] == "approval", "the first step")
    assert "your approval of the step" in stack.rollout("status", "fleet").out
    refused = stack.rollout("approve", "--step", "2")
    assert (refused.code, "is at step 1, not 2" in refused.err) == (1, True)
    assert stack.rollout("approve", "--json").json()["rollout"]["approved_step"] == 1
    stack.until(lambda found: found["step"] == 2, "the second step")
    paused = stack.rollout("pause", "fleet")
    assert (paused.code, "paused" in paused.out, "your decision" in paused.out) == (0, True, True)
    assert stack.rollout("resume", "--json").json()["rollout"]["state"] == "running"
    explained = service.run("explain", "fleet", "fleet").out
    assert "its members get the new metadata, or definition, step by step" in explained
    assert "2 of 3 members have the new metadata" in explained
    watched = stack.rollout("promote", "--watch")
    assert watched.code == 0, watched.err
    assert "fleet is UPDATE_COMPLETE" in watched.out


@pytest.mark.heavy
def test_a_gate_that_says_no_is_watched_and_the_rollout_goes_back(service: Home, tmp_path: Path) -> None:
    stack = Rolling(service, tmp_path, "held")
    stack.begin()
    stack.report(0, "FAILURE", "[red]it does not start[/red]")
    stack.until(lambda found: found["state"] == "held", "the gate to say no")
    shown = stack.rollout("status").out
    assert "0: [red]it does not start[/red]" in shown, "what a member says is no markup"
    assert "homeostat rollout resume|promote|abort|roll-back held fleet" in shown
    back = stack.rollout("roll-back", "-w", "--json")
    assert back.code == 0, "as the user wanted"
    lines = [json.loads(line) for line in back.out.splitlines()]
    assert lines[0]["rollout"]["state"] == "rolled_back"
    assert lines[-1]["resource"]["resource_status"] == "UPDATE_FAILED"
    assert stack.rest() == "UPDATE_FAILED"
    watched = stack.rollout("status", "-w")
    assert (watched.code, "held is UPDATE_FAILED" in watched.out) == (1, True)
    stack.begin()
    stack.rollout("abort")
    assert stack.rest() == "UPDATE_FAILED"


def test_of_several_rollouts_one_is_named_by_its_path(service: Home, tmp_path: Path) -> None:
    (tmp_path / "tier.yaml").write_text(TEMPLATE.replace("APPROVAL", "false"))
    tiers = tmp_path / "tiers.yaml"
    tiers.write_text(TIERS)
    assert service.run("up", str(tiers), "--no-wait").code == 0

    def resources(name: str) -> list[dict[str, Any]]:
        found = service.run("show", "tiers", "--json").json()["resources"]
        return [each for each in found if each["resource_name"] == name]

    until(lambda: [each["resource_status"] for each in resources("wait")] == ["CREATE_IN_PROGRESS"] * 2)
    for each in resources("handle"):
        url = next(link["href"] for link in each["links"] if link["rel"] == "self")
        assert httpx.post(f"{url}/signal", json={"id": "first"}).status_code == 200
    until(lambda: service.run("show", "tiers", "--json").json()["stack"]["stack_status"] == "CREATE_COMPLETE")
    assert service.run("up", str(tiers), "-P", "release=2", "--no-wait").code == 0
    until(lambda: len(service.run("rollout", "status", "tiers", "--json").json()["rollouts"]) == 2, "both rollouts")
    table = service.run("rollout", "status", "tiers").out
    assert ("a/fleet" in table, "b/fleet" in table) == (True, True)
    for words in ((), ("fleet",)):
        refused = service.run("rollout", "pause", "tiers", *words)
        assert (refused.code, "add RESOURCE, one of a/fleet, b/fleet" in refused.err) == (2, True)
    paused = service.run("rollout", "pause", "tiers", "b/fleet", "--json").json()["rollout"]
    assert (paused["state"], paused["path"]) == ("paused", ["b", "fleet"])
    states = {each["path"][0]: each["state"] for each in
              service.run("rollout", "status", "tiers", "--json").json()["rollouts"]}  # fmt: skip
    assert states == {"a": "running", "b": "paused"}
    assert service.run("rollout", "pause", "tiers", "c/fleet").code == 1
    assert service.run("down", "tiers", "-y", "--no-wait").code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("rollout", "status", "nothing"), 1, "could not be found"),
        (("rollout", "pause", "web", "--step", "1"), 2, "--step is for approve, not for pause"),
        (("rollout", "dance", "web"), 2, "invalid choice: 'dance'"),
        (("rollout", "status", "web", "--url", "http://127.0.0.1:9"), 3, "no service answers"),
    ],
)
def test_what_is_wrong_has_its_exit_code(service: Home, words: tuple[str, ...], code: int, said: str) -> None:
    ended = service.run(*words)
    assert (ended.code, said in ended.err) == (code, True), ended.err


def test_the_help_teaches_all_acts(service: Home) -> None:
    said = service.run("rollout", "--help").out
    for act in ("status", "pause", "resume", "approve", "promote", "abort", "roll-back"):
        assert f"\n  {act} " in said
