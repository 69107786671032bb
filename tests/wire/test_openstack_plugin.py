"""The plug-in of the `openstack` command: the genuine command, with python-heatclient's plug-in beside it."""

import json
import threading
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from homeostat.osc.v1.arguments import lasting
from tests.wire.commands import OpenStack
from tests.wire.running import Running, settled, until

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
    """Otherwise the environment is older than the project: run `make` or `scripts/environment dev`."""
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

    def told() -> dict[str, Any]:
        found = still.shown("stack", "explain", "-n", "1", "still")
        return {each["Resource"]: (each["Why"], each["Reason"]) for each in found}

    until(lambda: told().get("srv") == ("unhealthy", "rack 7"), "the mark to be explained")
    assert server(still)["resource_status_reason"] == "rack 7"
    back = still.shown("stack", "mark", "unhealthy", "still", "--reset", "srv", "grp/1")
    assert {each["Status"] for each in back} == {"CHECK_COMPLETE"}
    until(lambda: told() == {}, "nothing to be explained")


def test_what_is_wrong_is_said_in_the_words_of_the_service(still: OpenStack) -> None:
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


# -- locks: what is sent, and how the answer is told -------------------------------------------------------------------


class Answers(BaseHTTPRequestHandler):
    """An API that locks at once. posted — bodies of actions."""

    posted: ClassVar[list[Any]] = []
    place = "/v1/p/stacks/web/1"

    def do_GET(self) -> None:
        if self.path.startswith(self.place):
            stack = {"id": "1", "stack_name": "web", "stack_status": "LOCK_COMPLETE", "stack_status_reason": "r"}
            self._answer(200, {"stack": stack})
        elif self.path == "/v1/p/stacks/web":
            self._answer(302, {}, {"Location": f"http://{self.headers['Host']}{self.place}"})
        else:
            self._answer(404, {"error": {"message": "The Stack (no) could not be found."}})

    def do_POST(self) -> None:
        self.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(200, None)

    def _answer(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": len(content),
            **(headers or {}),
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def locking(tmp_path: Path) -> Iterator[OpenStack]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        Answers.posted.clear()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}/v1/p") as http:
            yield OpenStack(tmp_path, http, "1")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("lock",), {"lock": {"level": "all"}}),
        (("lock", "--level", "stacks"), {"lock": {"level": "stacks"}}),
        (
            ("lock", "--reason", "audit", "--expires-in", "2h"),
            {"lock": {"level": "all", "reason": "audit", "expires_in": 7200.0}},
        ),
        (("unlock",), {"unlock": None}),
    ],
)
def test_a_stack_is_locked_and_unlocked(locking: OpenStack, words: tuple[str, ...], sent: dict[str, Any]) -> None:
    (shown,) = locking.shown("stack", *words, "--wait", "web")
    assert (shown["Stack Name"], shown["Stack Status"]) == ("web", "LOCK_COMPLETE")
    assert Answers.posted == [sent]


def test_none_is_locked_where_one_is_not_there(locking: OpenStack) -> None:
    assert "The Stack (no) could not be found." in locking("stack", "lock", "web", "no", code=1)
    assert Answers.posted == []
