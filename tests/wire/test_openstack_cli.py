"""The `openstack` command, as people use it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.wire import templates

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def openstack(endpoint: str, tmp_path: Path, openstack_program: Path) -> Command:
    """Runs the command in a directory of its own, with the endpoint in the environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    environment = {**inherited, "OS_AUTH_TYPE": "none", "OS_ENDPOINT": endpoint, "HOME": str(tmp_path)}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [openstack_program, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    return run


def shown(result: "subprocess.CompletedProcess[str]") -> Any:
    """What a command with `-f json` says."""
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_stack_lives_and_dies(openstack: Command, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note")
    noted = templates.HELLO.replace("{get_param: word}", "{get_file: note.txt}")
    (tmp_path / "hello.yaml").write_text(noted)
    (tmp_path / "env.yaml").write_text("parameters: {word: from the environment}")
    created = openstack(
        "stack", "create", "--wait", "-t", "hello.yaml", "-e", "env.yaml", "--tags", "one,two", "hello", "-f", "json"
    )
    assert created.returncode == 0, created.stderr
    assert '"stack_status": "CREATE_COMPLETE"' in created.stdout
    assert "Stack CREATE completed successfully" in created.stdout
    (listed,) = shown(openstack("stack", "list", "--tags", "two", "-f", "json"))
    assert (listed["Stack Name"], listed["Stack Status"]) == ("hello", "CREATE_COMPLETE")
    resources = shown(openstack("stack", "resource", "list", "-n", "2", "hello", "-f", "json"))
    assert {each["resource_name"]: each["stack_name"] for each in resources} == {"speaker": "hello", "name": "hello"}
    output = shown(openstack("stack", "output", "show", "hello", "said", "-f", "json"))
    assert output["output_value"] == "a note"
    environment = shown(openstack("stack", "environment", "show", "hello", "-f", "json"))
    assert environment["parameters"] == {"word": "from the environment"}

    updated = openstack("stack", "update", "--wait", "--existing", "--parameter", "word=new", "hello", "-f", "json")
    assert updated.returncode == 0, updated.stderr
    assert '"stack_status": "UPDATE_COMPLETE"' in updated.stdout
    stack = shown(openstack("stack", "show", "hello", "-f", "json"))
    assert stack["parameters"]["word"] == "new"
    assert stack["tags"] == ["one", "two"]
    events = openstack("stack", "event", "list", "hello")
    assert "[hello]: UPDATE_COMPLETE  Stack UPDATE completed successfully" in events.stdout

    deleted = openstack("stack", "delete", "--yes", "--wait", "hello")
    assert deleted.returncode == 0, deleted.stderr
    gone = openstack("stack", "show", "hello")
    assert gone.returncode == 1
    assert "Stack not found: hello" in gone.stderr


def test_failures_and_mistakes(openstack: Command, tmp_path: Path) -> None:
    (tmp_path / "failing.yaml").write_text(templates.FAILING)
    (tmp_path / "broken.yaml").write_text("heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::No::Such}\n")
    failed = openstack("stack", "create", "--wait", "-t", "failing.yaml", "failing")
    assert failed.returncode == 1
    assert "CREATE_FAILED" in failed.stdout + failed.stderr
    why = openstack("stack", "failures", "list", "failing")
    assert why.returncode == 0, why.stderr
    assert "Test Resource failed bad" in why.stdout
    wrong = openstack("orchestration", "template", "validate", "-t", "broken.yaml")
    assert wrong.returncode == 1
    assert "The Resource Type (OS::No::Such) could not be found" in wrong.stderr


def test_configs_and_deployments(openstack: Command, tmp_path: Path) -> None:
    (tmp_path / "greet.sh").write_text("#!/bin/sh\necho hi\n")
    made = openstack("software", "config", "create", "--config-file", "greet.sh", "--group", "script", "greet")
    assert made.returncode == 0, made.stderr
    (listed,) = shown(openstack("software", "config", "list", "-f", "json"))
    assert listed["name"] == "greet"
    config = shown(openstack("software", "config", "show", listed["id"], "-f", "json"))
    assert (config["config"], config["group"]) == ("#!/bin/sh\necho hi\n", "script")
    deployed = openstack(
        *("software", "deployment", "create", "--config", listed["id"], "--server", "srv", "--signal-transport"),
        *("NO_SIGNAL", "greeting", "-f", "json"),
    )
    deployment = shown(deployed)
    assert (deployment["server_id"], deployment["action"]) == ("srv", "UPDATE")
    reported = openstack("software", "deployment", "metadata", "show", "srv")
    assert reported.returncode == 0, reported.stderr
    metadata = yaml.safe_load(reported.stdout)
    assert [each["name"] for each in metadata] == ["greeting"]
    assert openstack("software", "deployment", "delete", deployment["id"]).returncode == 0
    assert shown(openstack("software", "deployment", "list", "-f", "json")) == []
    assert openstack("software", "config", "delete", listed["id"]).returncode == 0
