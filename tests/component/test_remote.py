"""Stacks in regions as resources, on the simulated cloud: what is asked for, and what becomes of it."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.desired.compiling import compile_desired
from homeostat.desired.implied import graph_of
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.resources.nested import FILES
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.stacks.contents import Content
from tests.component.running import PROJECT, Service, double, template

TEXT = "heat_template_version: wallaby\nresources: {}"


def remote(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Stack", "properties": {"template": TEXT, **properties}}


def remote_stack(service: Service) -> dict[str, Any]:
    (found,) = service.cloud.things("remote_stack").values()
    return found


def created(resource: dict[str, Any], behaviour: CloudBehaviour | None = None) -> tuple[Service, str]:
    service = Service(behaviour)
    stack_id = service.create({"r": resource})
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    return service, stack_id


def test_a_stack_is_made_changed_and_removed() -> None:
    text = "heat_template_version: wallaby\nparameters: {a: {type: number}}"
    first = remote(template=text, parameters={"a": 1}, timeout=7)
    service, stack_id = created(first, CloudBehaviour(build_s=5.0, delete_s=5.0))
    row = service.row(stack_id, "r")
    made = remote_stack(service)
    assert (made["name"], made["region"], made["parameters"]) == (f"web-r-{row.key}", "", {"a": 1})
    assert (made["timeout_mins"], made["files"]) == (7, {})
    service.update(stack_id, {"r": remote(template=text, parameters={"a": 2})})
    service.rest()
    assert remote_stack(service)["parameters"] == {"a": 2}
    assert service.row(stack_id, "r").handle == row.handle, "in place"
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}


def test_another_region_is_another_stack() -> None:
    service, stack_id = created(remote(context={"region_name": "east"}))
    service.update(stack_id, {"r": remote(context={"region_name": "west"})})
    service.rest()
    assert remote_stack(service)["region"] == "west"
    assert "r DELETE_COMPLETE" in service.story(stack_id, "r")


def test_what_others_read() -> None:
    service, stack_id = created(remote())
    handle = service.row(stack_id, "r").handle
    service.cloud.change(handle, outputs={"url": "http://there"})
    service.live(65)
    readers = {
        "url": double(value={"get_attr": ["r", "outputs", "url"]}),
        "name": double(value={"get_attr": ["r", "stack_name"]}),
        "id": double(value={"get_resource": "r"}),
    }
    service.update(stack_id, {"r": remote(), **readers})
    service.rest()
    read = {name: service.row(stack_id, name).properties["value"] for name in readers}
    assert read == {"url": "http://there", "name": remote_stack(service)["name"], "id": handle}


def test_what_vanished_is_made_anew() -> None:
    service, stack_id = created(remote())
    service.cloud.vanish(service.row(stack_id, "r").handle)
    service.live(65)
    assert remote_stack(service)["status"] == "complete"


def test_a_stack_that_failed_there_fails_here_with_its_reason_and_is_updated_again() -> None:
    service = Service(CloudBehaviour(faults=Faults(error=1.0)))
    stack_id = service.begin({"r": remote()})
    service.rest()
    assert service.state(stack_id) == "CREATE_FAILED"
    handle = service.row(stack_id, "r").handle
    service.cloud.behaviour.faults.error = 0.0
    service.cloud.change(handle, status="complete")
    service.update(stack_id, {"r": remote()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.row(stack_id, "r").handle == handle, "the stack there was updated, not made anew"


def test_a_lost_answer_makes_no_second_stack() -> None:
    service = Service(CloudBehaviour(faults=Faults(lost=1.0)))
    stack_id = service.begin({"r": remote()})
    service.work()
    service.cloud.behaviour.faults.lost = 0.0
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert remote_stack(service)
    assert service.cloud.doubled == []


def test_a_template_takes_the_files_that_it_names_along() -> None:
    text = "heat_template_version: wallaby\nresources: {a: {type: part.yaml}}"
    files = {"part.yaml": "… {get_file: script.sh}", "script.sh": "true", "other.sh": "false"}
    desired = Content("template", template({"r": remote(template=text)}), files=files)
    graph = graph_of(compile_desired(desired, Identity("i", "n", "p")), desired)
    assert graph["r"].properties[FILES] == {name: files[name] for name in ("part.yaml", "script.sh")}


def test_an_edited_file_is_a_change_of_the_stack_that_takes_it_along() -> None:
    text = "heat_template_version: wallaby\nresources: {a: {type: part.yaml}}"
    one, two = TEXT, f"{TEXT} # two"
    service = Service()
    stack_id = service.create({"r": remote(template=text)}, files={"part.yaml": one, "other": "x"})
    service.rest()
    service.update(stack_id, {"r": remote(template=text)}, files={"part.yaml": one, "other": "y"})
    assert "r UPDATE_COMPLETE" not in service.story(stack_id, "r")
    service.update(stack_id, {"r": remote(template=text)}, files={"part.yaml": two})
    service.rest()
    assert remote_stack(service)["files"] == {"part.yaml": two}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"template": "a: [1"}, "resources.r.properties.template: "),
    ({"template": "text"}, "resources.r.properties.template: Template not in valid format: The template is not"),
    ({"context": {"insecure": True}}, "resources.r.properties.context.insecure: not supported: certificates are"),
    ({"context": {"ca_cert": "PEM"}}, "resources.r.properties.context.ca_cert: not supported"),
    ({"context": {"credential_secret_id": "x"}}, "context.credential_secret_id: not supported: the service speaks"),
    ({"context": {"region": "x"}}, "resources.r.properties.context: Unknown Property region"),
    ({"files": {}}, "resources.r.properties: Unknown Property files"),
]


@pytest.mark.parametrize(("properties", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_cannot_be_had_is_refused_naming_the_place(properties: dict[str, Any], message: str) -> None:
    service = Service()
    with pytest.raises(Rejected) as refused:
        service.stack_service.create(PROJECT, None, "web", StackRequest(template({"r": remote(**properties)})))
    assert message in str(refused.value)
