"""openstacksdk's orchestration proxy, as Ansible and scripts use it."""

from typing import Any

import openstack
import pytest
from openstack import exceptions

from tests.wire import templates


def test_a_stack_lives_and_dies(sdk: openstack.connection.Connection) -> None:
    api = sdk.orchestration
    stack = api.create_stack(name="hello", template=templates.HELLO, parameters={"word": "hi"})
    stack = api.wait_for_status(stack, status="CREATE_COMPLETE", failures=["CREATE_FAILED"], interval=0.1, wait=60)
    found = api.find_stack("hello", ignore_missing=False)
    assert found.id == stack.id
    outputs = {each["output_key"]: each["output_value"] for each in api.get_stack("hello").outputs}
    assert outputs["said"] == "hi"
    assert [each.name for each in api.resources(found)] == ["speaker", "name"]
    assert api.get_stack_template(found).parameters.keys() == {"word", "password"}
    assert api.get_stack_environment(found).parameters == {"word": "hi"}
    assert api.get_stack_files(found) == {}
    assert next(iter(api.stack_events(found))).resource_name == "hello"
    api.update_stack(found, template=templates.HELLO, parameters={"word": "bye"})
    api.wait_for_status(found, status="UPDATE_COMPLETE", failures=["UPDATE_FAILED"], interval=0.1, wait=60)
    assert api.get_stack("hello").parameters["word"] == "bye"
    api.delete_stack(found)
    api.wait_for_delete(found, interval=0.1, wait=60)
    assert api.find_stack("hello") is None


def test_the_cloud_layer(sdk: openstack.connection.Connection) -> None:
    """What Ansible calls."""
    sdk.orchestration.create_stack(name="hello", template=templates.HELLO)
    stack = sdk.get_stack("hello")
    assert stack is not None
    assert stack.name == "hello"
    assert [each.name for each in sdk.list_stacks()] == ["hello"]
    assert sdk.delete_stack("hello", wait=True)
    assert sdk.get_stack("hello") is None


def test_pages(sdk: openstack.connection.Connection) -> None:
    for number in range(5):
        sdk.orchestration.create_stack(name=f"hello-{number}", template=templates.HELLO, tags=["numbered"])
    names = [each.name for each in sdk.orchestration.stacks(limit=2)]
    assert names == [f"hello-{number}" for number in reversed(range(5))]
    assert len(list(sdk.orchestration.stacks(tags=["numbered"]))) == 5
    assert list(sdk.orchestration.stacks(tags=["other"])) == []


def test_errors(sdk: openstack.connection.Connection) -> None:
    with pytest.raises(exceptions.NotFoundException):
        sdk.orchestration.get_stack("nobody")
    with pytest.raises(exceptions.BadRequestException):
        sdk.orchestration.create_stack(name="bad", template="heat_template_version: 2018-08-31\nresources: []")
    with pytest.raises(exceptions.BadRequestException):
        sdk.orchestration.validate_template(template={"nonsense": 1})
    hello: Any = templates.HELLO  # it takes text, too, whatever its types say
    assert sdk.orchestration.validate_template(template=hello)["Description"].startswith("One thing")
