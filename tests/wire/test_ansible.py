"""Ansible's `openstack.cloud.stack`: what it asks through openstacksdk, and the playbook of the documentation."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import openstack
import pytest
from openstack.exceptions import SDKException

from tests.docs.pages import DOCS, files
from tests.wire import templates

PAGE = DOCS / "howto" / "use-ansible.md"
ENDPOINT = "http://127.0.0.1:8004/v1/default"
"""As the page has it."""
PLAYBOOK = shutil.which("ansible-playbook")


@pytest.fixture
def template(tmp_path: Path) -> str:
    path = tmp_path / "hello.yaml"
    path.write_text(templates.HELLO)
    return str(path)


def test_what_the_module_asks(sdk: openstack.connection.Connection, template: str, tmp_path: Path) -> None:
    """Made, made again (which is an update), and gone; it waits each time, by the events."""
    environment = tmp_path / "env.yaml"
    environment.write_text("parameters: {word: from the environment}")
    assert sdk.get_stack("hello") is None
    usual: dict[str, Any] = {"template_file": template, "rollback": False, "wait": True, "timeout": 300}
    made = sdk.create_stack("hello", environment_files=[str(environment)], tags="one,two", **usual)  # type: ignore[arg-type]
    assert made is not None
    assert (made.status, made.tags) == ("CREATE_COMPLETE", ["one", "two"])
    assert {each["output_value"] for each in made.outputs if each["output_key"] == "said"} == {"from the environment"}
    changed = sdk.update_stack("hello", environment_files=None, word="other", **usual)
    assert changed is not None
    assert changed.status == "UPDATE_COMPLETE"
    assert changed.parameters["word"] == "other"
    assert sdk.delete_stack("hello", wait=True)
    assert sdk.get_stack("hello") is None


def test_failures_are_reported(sdk: openstack.connection.Connection, tmp_path: Path) -> None:
    failing = tmp_path / "failing.yaml"
    failing.write_text(templates.FAILING)
    made = sdk.create_stack("failing", template_file=str(failing), rollback=False, wait=True, timeout=300)
    assert made is not None
    assert made.status == "CREATE_FAILED"
    assert "bad" in made.status_reason
    with pytest.raises(SDKException, match="already exists"):
        sdk.create_stack("failing", template_file=str(failing))


@pytest.mark.ansible
@pytest.mark.skipif(PLAYBOOK is None, reason="ansible-playbook is not installed")
def test_the_playbook_of_the_documentation(endpoint: str, tmp_path: Path) -> None:
    assert PLAYBOOK is not None
    for name, content in files(PAGE).items():
        (tmp_path / name).write_text(content.replace(ENDPOINT, endpoint))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "ANSIBLE_", "PYTHON"))}
    environment = {**kept, "HOME": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "false", "LC_ALL": "C.UTF-8"}
    played = subprocess.run(
        [PLAYBOOK, "playbook.yaml"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "failed=0" in played.stdout
    assert "changed=3" in played.stdout
