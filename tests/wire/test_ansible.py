"""What Ansible's `openstack.cloud.stack` asks through openstacksdk; `tests/clients` has Ansible itself."""

from pathlib import Path
from typing import Any

import openstack
import pytest
from openstack.exceptions import SDKException

from tests.wire import templates


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
