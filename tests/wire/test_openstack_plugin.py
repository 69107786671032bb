"""The plug-in of the `openstack` command: the genuine command, with python-heatclient's plug-in beside it."""

import json
import tomllib
from argparse import ArgumentTypeError
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from homeostat.osc.v1.arguments import lasting
from homeostat.switch_flags import share
from tests.waiting import until
from tests.wire.commands import OpenStack
from tests.wire.running import Running, settled

GROUP = "openstack.convergence.v1"
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
SERVER = {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small", "metadata": {"k": "v"}}}
MEMBERS = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": SERVER}}
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"srv": SERVER, "grp": MEMBERS}}


def commands() -> dict[str, str]:
    """Words of each command -> where it is."""
    declared: dict[str, str] = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][GROUP]
    return {name.replace("_", " "): place for name, place in declared.items()}


@pytest.fixture
def still(openstack: OpenStack) -> OpenStack:
    """With a stack `still` that is complete and is left alone; a server and a group."""
    made = openstack.http.post("stacks", json={"stack_name": "still", "template": TEMPLATE})
    settled(openstack.http, made.json()["stack"]["id"], status="CREATE_COMPLETE")
    openstack.http.patch(f"{made.headers['location']}/convergence", json={"convergence": {"enabled": False}})
    return openstack


def server(openstack: OpenStack) -> dict[str, Any]:
    return dict(openstack.shown("stack", "resource", "show", "still", "srv"))


def test_it_is_installed() -> None:
    """Otherwise the environment is older than the project: run `make` or `scripts/environment`."""
    assert {each.name.replace("_", " ") for each in entry_points(group=GROUP)} == set(commands())
    there = {each.value for each in entry_points(group="openstack.cli.extension")}
    assert {"homeostat.osc.plugin", "heatclient.osc.plugin"} <= there


@pytest.mark.parametrize("words", sorted(commands()))
def test_a_command_says_what_it_is_for_and_gives_examples(openstack: OpenStack, words: str) -> None:
    said = openstack("help", *words.split())
    assert f" {words} [-h]" in said
    assert f"examples:\n  openstack {words}" in said


def test_a_stack_is_converged(still: OpenStack, service: Running) -> None:
    old = server(still)["physical_resource_id"]
    service.cloud.vanish(old)
    shown = still.shown("stack", "converge", "--wait", "still")
    assert shown["stack_status"] == "UPDATE_COMPLETE"
    assert server(still)["physical_resource_id"] != old


def test_a_resource_is_observed_explained_and_converged(still: OpenStack, service: Running) -> None:
    handle = server(still)["physical_resource_id"]
    service.cloud.change(handle, metadata={"k": "other"})
    (seen,) = still.shown("stack", "resource", "observe", "still", "srv")
    assert (seen["Resource"], seen["Presence"], seen["Differs In"]) == ("srv", "present", "metadata")
    (reason,) = still.shown("stack", "resource", "explain", "still", "srv")
    assert (reason["Resource"], reason["Why"]) == ("srv", "left_alone")
    assert "convergence being switched on" in reason["Released By"]
    shown = still.shown("stack", "resource", "converge", "--wait", "still", "srv")
    assert (shown["resource_name"], shown["physical_resource_id"]) == ("srv", handle)
    assert still.shown("stack", "resource", "explain", "still", "srv") == []


def test_a_stack_is_observed(still: OpenStack) -> None:
    seen = {each["Resource"]: each for each in still.shown("stack", "observe", "still")}
    assert (seen["srv"]["Presence"], seen["srv"]["Differs In"]) == ("present", "")
    assert seen["grp"]["Status"] == "CREATE_COMPLETE"


def test_several_are_marked_and_explained_and_taken_back(still: OpenStack) -> None:
    marked = still.shown(
        *("stack", "mark", "unhealthy", "still", "srv", "grp/1", "--reason", "rack 7"),
        *("--reporter", "prober", "--expires-in", "1h"),
    )
    assert marked == [
        {"Resource": "srv", "Status": "CHECK_FAILED", "Changed": True},
        {"Resource": "grp/1", "Status": "CHECK_FAILED", "Changed": True},
    ]

    def explained(*options: str) -> dict[str, Any]:
        found = still.shown("stack", "explain", *options, "still")
        return {each["Resource"]: (each["Why"], each["Reason"]) for each in found}

    marks = {"srv": ("unhealthy", "rack 7"), "grp/1": ("unhealthy", "rack 7")}
    until(lambda: marks.items() <= explained().items(), "the marks to be explained, in nested stacks, too")
    assert "grp/1" not in explained("-n", "0")
    assert server(still)["resource_status_reason"] == "rack 7"
    back = still.shown("stack", "mark", "unhealthy", "still", "--reset", "srv", "grp/1")
    assert {each["Status"] for each in back} == {"CHECK_COMPLETE"}
    until(lambda: explained() == {}, "nothing to be explained")


def test_what_is_wrong_is_reported_in_the_words_of_the_service(still: OpenStack) -> None:
    said = still("stack", "mark", "unhealthy", "still", "srv", "no", code=1)
    assert "resources[1]: The Resource (no) could not be found in Stack still." in said
    assert "The Stack (nothing) could not be found." in still("stack", "converge", "nothing", code=1)
    assert "could not be found" in still("stack", "resource", "explain", "still", "no", code=1)


def test_an_explanation_of_several_pages(still: OpenStack) -> None:
    made = still.http.post(
        "stacks",
        json={
            "stack_name": "slow",
            "template": {
                "heat_template_version": "2018-08-31",
                "resources": {
                    f"t{number}": {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 600}}
                    for number in range(5)
                },
            },
        },
    )
    until(lambda: len(still.shown("stack", "explain", "slow")) == 5, "all of them to be begun")
    assert len(still.shown("stack", "explain", "--limit", "2", "slow")) == 2
    still.http.delete(made.headers["location"])


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("1d", 86_400.0)])
def test_times(text: str, seconds: float) -> None:
    assert lasting(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "5w", "inf", "nan", "1e400"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="a time such as 90, 90s, 15m, 2h or 1d"):
        lasting(text)


# -- locks -------------------------------------------------------------------------------------------------------------


def test_stacks_are_locked_and_unlocked(still: OpenStack) -> None:
    """LK6: several at once; a refusal has its reason."""
    locked = still.shown(
        *("stack", "lock", "--wait", "--level", "stacks", "--reason", "audit", "--expires-in", "2h", "still", "hello")
    )
    assert [(each["Stack Name"], each["Stack Status"]) for each in locked] == [
        ("still", "LOCK_COMPLETE"),
        ("hello", "LOCK_COMPLETE"),
    ]
    lock = still.http.get("stacks/still", follow_redirects=True).json()["stack"]["lock"]
    assert (lock["level"], lock["reason"]) == ("stacks", "audit")
    assert lock["expires_at"] > lock["locked_at"]
    for refused in (("mark", "unhealthy", "still", "srv"), ("converge", "still")):
        said = still("stack", *refused, code=1)
        assert "The stack still is locked" in said
        assert "audit" in said
    unlocked = still.shown("stack", "unlock", "--wait", "still", "hello")
    assert {each["Stack Status"] for each in unlocked} == {"UNLOCK_COMPLETE"}
    assert "is not locked" in still("stack", "unlock", "still", code=1)


def test_a_lock_protects_servers_by_default(still: OpenStack, service: Running) -> None:
    handle = server(still)["physical_resource_id"]
    still("stack", "lock", "--wait", "still")
    assert service.cloud.things("server")[handle]["locked"] is True
    still("stack", "unlock", "--wait", "still")
    assert service.cloud.things("server")[handle]["locked"] is False


def test_none_is_locked_where_one_is_not_there(still: OpenStack) -> None:
    assert "The Stack (no) could not be found." in still("stack", "lock", "still", "no", code=1)
    assert still.shown("stack", "show", "still")["stack_status"] == "CREATE_COMPLETE"


def test_convergence_is_switched_and_shown(still: OpenStack) -> None:
    shown = still.shown("stack", "convergence", "set", "still", "--on", "--healing", "ask", "--healing-share", "0.25")
    assert (shown["enabled"], shown["healing"], shown["healing_share"]) == (True, "ask", 0.25)
    shown = still.shown(
        *("stack", "convergence", "set", "still", "srv", "--off", "--healing", "replace", "--look-every", "never")
    )
    assert shown["resources"] == {"srv": {"enabled": False, "healing": "replace", "observe_interval": 0.0}}
    still("stack", "convergence", "set", "still", "srv", "--same")
    still("stack", "convergence", "set", "still", "--healing", "default", "--healing-share", "default")
    shown = still.shown("stack", "convergence", "show", "still")
    assert (shown["resources"], shown["healing"], shown["healing_share"]) == ({}, None, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("srv", "--healing-share", "0.5"), "--healing-share is for a whole stack"),
        (("no", "--healing", "ask"), "The Resource (no) could not be found"),
        (("--same",), "--same is for a resource"),
        (("--look-every", "0.5s"), "convergence.observe_interval: it must be 0 (never)"),
        ((), "nothing to change"),
    ],
)
def test_what_is_no_switch_is_refused(still: OpenStack, words: tuple[str, ...], message: str) -> None:
    assert message in still("stack", "convergence", "set", "still", *words, code=1)


@pytest.mark.parametrize("text", ["nan", "0", "1.5", "-1", "much", ""])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="over 0 and up to 1"):
        share(text)


def test_history_is_read_compared_and_wanted_again(openstack: OpenStack) -> None:
    template = openstack.text(
        "note.json", json.dumps({"heat_template_version": "2018-08-31", "parameters": {"t": {"type": "string"}}})
    )
    for verb, text in (("create", "first"), ("update", "second")):
        openstack("stack", verb, "--wait", "-t", template, "--parameter", f"t={text}", "note")
    listed = openstack.shown("stack", "history", "list", "note")
    assert [(each["Revision"], each["Newest"]) for each in listed] == [(2, True), (1, False)]
    assert "t: first" in openstack("stack", "history", "show", "note", "1")
    lines = openstack("stack", "history", "diff", "note", "1", "2").splitlines()
    assert lines[0] == "--- revision 1"
    assert {"-    t: first", "+    t: second"} <= set(lines)
    assert openstack.shown("stack", "back", "--dry-run", "note", "1")["updated"] == ""
    assert openstack.shown("stack", "back", "--wait", "note", "1")["stack_status"] == "UPDATE_COMPLETE"
    assert "no difference" in openstack("stack", "history", "diff", "note", "1", "3")
    assert "The Revision (9) of stack" in openstack("stack", "back", "note", "9", code=1)


# -- rollouts ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def rolling(openstack: OpenStack) -> OpenStack:
    """With a stack `roll` whose group of two gets new metadata step by step, each with approval."""

    def template(value: str) -> dict[str, Any]:
        group = {
            "type": "OS::Heat::ResourceGroup",
            "properties": {**MEMBERS["properties"], "metadata_update_pattern": "rolling"},  # type: ignore[dict-item]
            "update_policy": {"rollout": {"approval": True, "on_failure": "hold"}},
            "metadata": {"v": value},
        }
        wait = {
            "type": "OS::Heat::WaitCondition",
            "depends_on": "fleet",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 900},
        }
        resources = {"fleet": group, "handle": {"type": "OS::Heat::WaitConditionHandle"}, "wait": wait}
        return {"heat_template_version": "2018-08-31", "resources": resources}

    made = openstack.http.post("stacks", json={"stack_name": "roll", "template": template("1")})
    url = made.headers["location"]

    def begun() -> bool:
        found = openstack.http.get(f"{url}/resources/wait").json()["resource"]
        return str(found["resource_status"]) == "CREATE_IN_PROGRESS"

    until(begun, "the group to be made")
    openstack("stack", "resource", "signal", "roll", "handle")
    settled(openstack.http, made.json()["stack"]["id"], status="CREATE_COMPLETE")
    openstack.http.put(url, json={"template": template("2")})
    until(lambda: openstack.shown("stack", "rollout", "list", "roll") != [], "the rollout to begin")
    until(lambda: rollout(openstack)["waits_for"] == "reports", "the first step")
    return openstack


def rollout(openstack: OpenStack) -> dict[str, Any]:
    return dict(openstack.shown("stack", "rollout", "show", "roll", "fleet"))


def test_a_rollout_is_shown_paused_resumed_and_approved(rolling: OpenStack) -> None:
    (listed,) = rolling.shown("stack", "rollout", "list", "roll")
    assert (listed["Resource"], listed["State"], listed["Updated"], listed["Total"]) == ("fleet", "running", 1, 2)
    shown = rollout(rolling)
    assert (shown["step"], shown["step_waiting"], shown["pattern"]) == (1, 1, "rolling")
    assert shown["actions"] == "approve, pause, promote, abort, roll_back"
    assert rolling.shown("stack", "rollout", "pause", "roll", "fleet")["state"] == "paused"
    assert "to pause it, it has to be running" in rolling("stack", "rollout", "pause", "roll", "fleet", code=1)
    assert rolling.shown("stack", "rollout", "resume", "roll", "fleet")["state"] == "running"
    assert "not 2" in rolling("stack", "rollout", "approve", "--step", "2", "roll", "fleet", code=1)
    approved = rolling.shown("stack", "rollout", "approve", "--step", "1", "roll", "fleet")
    assert "approve" not in approved["actions"]
    promoted = rolling.shown("stack", "rollout", "promote", "--wait", "roll", "fleet")
    assert (promoted["state"], rolling.status("roll")) == ("succeeded", "UPDATE_COMPLETE")
    assert "The group has no rollout in progress" in rolling("stack", "rollout", "show", "roll", "fleet", code=1)
    assert rolling.shown("stack", "rollout", "list", "roll") == []


@pytest.mark.parametrize(("verb", "state"), [("abort", "aborted"), ("rollback", "rolled_back")])
def test_a_rollout_is_ended(rolling: OpenStack, verb: str, state: str) -> None:
    assert rolling.shown("stack", "rollout", verb, "--wait", "roll", "fleet")["state"] == state
    assert rolling.status("roll") == "UPDATE_FAILED"
