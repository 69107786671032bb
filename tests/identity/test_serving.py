"""The whole program with Keystone: processes as an operator starts them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.cli.state_directory import State
from tests.identity.conftest import Person
from tests.keystone_server import KeystoneServer
from tests.waiting import until
from tests.wire.running import settled

INNER = "heat_template_version: wallaby\nresources: {a: {type: OS::Heat::RandomString}}\n"
TEMPLATE = {
    "heat_template_version": "wallaby",
    "resources": {
        "remote": {"type": "OS::Heat::Stack", "properties": {"template": INNER}},
        "handle": {"type": "OS::Heat::WaitConditionHandle", "properties": {"signal_transport": "HEAT_SIGNAL"}},
    },
    "outputs": {"signal": {"value": {"get_attr": ["handle", "signal"]}}},
}


def start(state: Path, *flags: str) -> subprocess.Popen[bytes]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HOMEOSTAT_")}
    command = [sys.executable, "-m", "homeostat", "serve", "--state-dir", str(state), "--port", "0"]
    with (state.parent / "log").open("ab") as log:
        return subprocess.Popen([*command, "--users-run-code-as-me", *flags], env=plain, stdout=log, stderr=log)


def ended(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    return process.wait(timeout=60)


@pytest.fixture
def url(registered: Path, tmp_path: Path) -> Iterator[str]:
    state = tmp_path / "state"
    process = start(state, "--access", "keystone", "--keystone-config", str(registered))

    def announced() -> Any:
        assert process.poll() is None, (tmp_path / "log").read_text()
        there = State(state).running()
        return there.url if there is not None and "api" in there.children else None

    yield until(announced, "the service to run")
    code = ended(process)
    log = (tmp_path / "log").read_text()
    print(log)  # shown when the test fails
    assert code == 0
    assert "Traceback" not in log


def test_a_service_serves_acts_and_makes_users(url: str, person: Person, keystone: KeystoneServer) -> None:
    headers = {"x-auth-token": person.token()}
    with httpx.Client(base_url=f"{url}/v1/{person.project_id}", headers=headers) as http:
        assert http.get("stacks", headers={"x-auth-token": "none"}).status_code == 401
        made = http.post("stacks", json={"stack_name": "s", "template": TEMPLATE})
        assert made.status_code == 201, made.text
        stack_id = made.json()["stack"]["id"]
        stack = settled(http, stack_id, status="CREATE_COMPLETE")
        assert stack["stack_owner"] == person.name
        login = json.loads(stack["outputs"][0]["output_value"])
        assert login["auth_url"] == keystone.url
        assert login["alarm_url"].startswith(f"{url}/v1/{login['project_id']}/stacks/s/{stack_id}/")
        assert len(http.get("stacks").json()["stacks"]) == 2
        assert http.delete(f"stacks/s/{stack_id}").status_code == 204
        until(lambda: http.get("stacks").json() == {"stacks": []}, "both stacks to be gone")


@pytest.mark.parametrize(
    ("text", "found"),
    [("[keystone_authtoken]\n", "has no login"), ("[DEFAULT]\n[keystone_authtoken\n", "keystone.ini")],
)
def test_a_wrong_file_is_refused_at_the_start(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "keystone.ini"
    path.write_text(text)
    process = start(tmp_path / "state", "--access", "keystone", "--keystone-config", str(path))
    assert process.wait(timeout=60) == 2
    assert found in (tmp_path / "log").read_text()
