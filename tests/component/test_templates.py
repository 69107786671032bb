"""Nested templates: resources whose type is a template among the files of the stack (CV15)."""

from typing import Any

import pytest

from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.preview import all_of
from homeostat.templates import validate_shape
from tests.component.running import Service, double, server, template

INNER = """
heat_template_version: rocky
parameters:
  size: {type: string}
  colour: {type: string, default: red}
resources:
  disk: {type: OS::Cinder::Volume, properties: {size: {get_param: size}, description: {get_param: colour}}}
outputs:
  told: {value: {list_join: ["-", [{get_param: colour}, {get_attr: [disk, size]}]]}}
"""


def inner(**properties: Any) -> dict[str, Any]:
    return {"type": "inner.yaml", "properties": {"size": "2", **properties}}


def reader() -> dict[str, Any]:
    return double(value={"get_attr": ["inner", "told"]})


def created(resources: dict[str, Any], text: str = INNER) -> tuple[Service, str]:
    service = Service()
    stack_id = service.create(resources, files={"inner.yaml": text})
    service.rest()
    return service, stack_id


def test_outputs_of_a_nested_template_are_attributes() -> None:
    service, stack_id = created({"inner": inner(), "reader": reader()})
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "reader").properties["value"] == "red-2"
    assert len(service.cloud.things("volume")) == 1


def test_an_edited_file_updates_what_is_made_from_it() -> None:
    service, stack_id = created({"inner": inner(), "reader": reader()})
    before = list(service.cloud.things("volume"))
    edited = INNER.replace("default: red", "default: blue")
    service.update(stack_id, {"inner": inner(), "reader": reader()}, files={"inner.yaml": edited})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.row(stack_id, "reader").properties["value"] == "blue-2"
    assert list(service.cloud.things("volume")) == before
    assert [each["description"] for each in service.cloud.things("volume").values()] == ["blue"]


def test_a_changed_property_reaches_the_nested_stack() -> None:
    service, stack_id = created({"inner": inner()})
    service.update(stack_id, {"inner": inner(colour="green")}, files={"inner.yaml": INNER})
    service.rest()
    assert [each["description"] for each in service.cloud.things("volume").values()] == ["green"]


def test_a_failure_inside_is_reported_with_its_path() -> None:
    text = INNER.replace("outputs:", "  bad: {type: OS::Heat::TestResource, properties: {fail: true}}\noutputs:")
    service, stack_id = created({"inner": inner()}, text)
    assert service.state(stack_id) == "CREATE_FAILED"
    reason = service.stack(stack_id).reason
    assert reason == "Resource CREATE failed: ResourceInError: resources.inner.resources.bad: Test Resource failed bad"


def test_a_group_of_nested_templates() -> None:
    member = {"type": "inner.yaml", "properties": {"size": "1", "colour": "c%index%"}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": member}}
    resources = {"grp": group, "reader": double(value={"list_join": [",", {"get_attr": ["grp", "told"]}]})}
    service, stack_id = created(resources)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "reader").properties["value"] == "c0-1,c1-1"
    edited = INNER.replace('"-"', '"+"')
    service.update(stack_id, resources, files={"inner.yaml": edited})
    service.rest()
    assert service.row(stack_id, "reader").properties["value"] == "c0+1,c1+1"
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things() == {}
    assert service.state(stack_id) == "DELETE_COMPLETE"


def test_what_is_made_inside_heals() -> None:
    service, _ = created({"inner": inner(), "srv": server()})
    [handle] = service.cloud.things("volume")
    service.cloud.vanish(handle)
    service.live(120)
    [again] = service.cloud.things("volume")
    assert again != handle


@pytest.mark.parametrize(
    ("resource", "text", "place"),
    [
        pytest.param(inner(), None, 'resources.inner: The template "inner.yaml" is not among', id="no such file"),
        pytest.param(inner(), "", 'resources.inner: The file "inner.yaml" is not a template', id="an empty file"),
        pytest.param(inner(), "{a", 'resources.inner: The file "inner.yaml" is not a template', id="half a file"),
        pytest.param(inner(shape="x"), INNER, "resources.inner", id="no such parameter"),
        pytest.param({"type": "inner.yaml"}, INNER, "resources.inner.properties: Property size not", id="not given"),
        pytest.param(
            inner(size="big"), INNER, "resources.inner.resources.disk.properties.size: Value 'big'", id="wrong inside"
        ),
        pytest.param(
            inner(),
            INNER.replace("OS::Cinder::Volume", "inner.yaml").replace(", description: {get_param: colour}", ""),
            "Recursion depth exceeds 5",
            id="a template that nests itself",
        ),
    ],
)
def test_a_nested_template_that_is_wrong(resource: dict[str, Any], text: str | None, place: str) -> None:
    """It is refused as a whole, with the place, and nothing is made."""
    service = Service()
    with pytest.raises(Rejected) as caught:
        service.create({"inner": resource}, files={"inner.yaml": text} if text is not None else {})
    assert place in str(caught.value)
    assert service.stacks() == []


def test_a_value_that_does_not_fit_the_template_fails_at_once() -> None:
    """It is known only when another resource has told it; nobody waits for a time-out."""
    text = INNER.replace("size: {type: string}", "size: {type: number}")
    resources = {"told": double(value="big"), "inner": inner(size={"get_attr": ["told", "output"]})}
    service, stack_id = created({**resources, "other": inner(size=1)}, text)
    assert service.state(stack_id) == "CREATE_FAILED"
    assert "Parameter 'size' is invalid" in service.stack(stack_id).reason
    assert service.row(stack_id, "inner").status == "FAILED"
    assert service.row(stack_id, "other").status != "FAILED"


CFN = """
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  size: {Type: Number}
  colour: {Type: String, Default: red}
Resources:
  disk:
    Type: OS::Cinder::Volume
    Properties:
      size: {Ref: size}
      description: {"Fn::Join": ["-", [{Ref: colour}, {"Fn::Select": [role, {"Fn::ResourceFacade": Metadata}]}]]}
Outputs:
  told: {Value: {"Fn::Join": ["-", [{Ref: colour}, {"Fn::GetAtt": [disk, display_description]}]]}}
"""


def test_a_nested_template_may_be_cfn() -> None:
    service, stack_id = created({"inner": {**inner(), "metadata": {"role": "store"}}, "reader": reader()}, CFN)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    (disk,) = service.cloud.things("volume").values()
    assert disk["description"] == "red-store"
    assert service.row(stack_id, "reader").properties["value"] == "red-red-store"


def test_a_mistake_in_a_nested_cfn_template_is_reported_in_its_words() -> None:
    with pytest.raises(Rejected, match=r"resources\.inner.*Resources\.disk\.Properties.*Unknown Property sice"):
        created({"inner": inner()}, CFN.replace("      size:", "      sice:"))


def at_url(**parameters: Any) -> dict[str, Any]:
    properties = {"TemplateURL": "https://example.org/inner.template", "Parameters": {"size": "2", **parameters}}
    return {"type": "AWS::CloudFormation::Stack", "properties": properties}


def test_a_stack_from_a_template_at_a_url() -> None:
    files = {"https://example.org/inner.template": INNER}
    service = Service()
    resources = {"inner": at_url(), "reader": double(value={"get_attr": ["inner", "Outputs.told"]})}
    stack_id = service.create(resources, files=files)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "reader").properties["value"] == "red-2"
    service.update(stack_id, {**resources, "inner": at_url(colour="green")}, files=files)
    service.rest()
    assert service.row(stack_id, "reader").properties["value"] == "green-2"
    assert len(service.cloud.things("volume")) == 1
    service.delete(stack_id)
    service.rest()
    assert service.cloud.things("volume") == {}


def test_what_a_template_at_a_url_does_not_declare_is_refused() -> None:
    with pytest.raises(Rejected, match="Unknown Property shape"):
        Service().begin({"inner": at_url(shape="round")}, files={"https://example.org/inner.template": INNER})


# -- values of which something is not known yet ------------------------------------------------------------------------

PARTLY = """
heat_template_version: rocky
parameters:
  nets: {type: json, default: []}
  zones: {type: comma_delimited_list, default: ""}
conditions:
  without: {equals: [{get_param: nets}, []]}
resources:
  none:
    type: OS::Heat::RandomString
    condition: without
    properties: {length: 0}
  port:
    type: OS::Neutron::Port
    properties: {network: {get_param: [nets, 0, network]}, name: {get_param: [nets, 0, name]}}
  text: {type: OS::Heat::Value, properties: {value: {get_param: [zones, 1]}}}
  sized: {type: OS::Heat::RandomString, properties: {length: {get_param: [nets, 0, length]}}}
outputs:
  zone: {value: {get_attr: [text, value]}}
"""


def partly(length: int = 5) -> dict[str, Any]:
    nets = [{"network": {"get_resource": "net"}, "name": "first", "length": length}]
    properties = {"nets": nets, "zones": [{"get_resource": "net"}, "b"]}
    return {"net": {"type": "OS::Neutron::Net"}, "inner": {"type": "partly.yaml", "properties": properties}}


FILES = {"partly.yaml": PARTLY}


def test_what_is_known_of_a_map_reaches_the_check_of_a_nested_template() -> None:
    """With the parameter's default in its place, a text of no characters would be refused."""
    service = Service()
    intent = StackRequest(template(partly()), files=FILES)
    _, nested = service.stack_service.validate(Identity("None", "None", "p"), intent)
    compiled = nested["inner"].compiled
    assert compiled is not None
    assert list(compiled.definitions) == ["port", "text", "sized"]
    assert compiled.definitions["text"].properties["value"] == "b"
    assert validate_shape(compiled)["Parameters"]["zones"].get("Value") is None
    previewed = [(each.path, note.name) for each, note in all_of(service.stack_service.preview_new("p", "web", intent))]
    assert (("inner",), "sized") in previewed
    assert (("inner",), "none") not in previewed
    with pytest.raises(Rejected, match="length"):
        service.create(partly(length=0), files=FILES)
    stack_id = service.create({**partly(), "zone": double(value={"get_attr": ["inner", "zone"]})}, files=FILES)
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "zone").properties["value"] == "b"


OUTSIDE = """
heat_template_version: rocky
resources: {text: {type: OS::Heat::Value, properties: {value: a}}}
outputs:
  right: {value: {get_attr: [text, value]}}
  wrong: {value: {get_param: nobody}}
"""


def test_an_output_that_reads_an_unknown_parameter_refuses_no_nested_template() -> None:
    resources = {"inner": {"type": "inner.yaml"}, "right": double(value={"get_attr": ["inner", "right"]})}
    service, stack_id = created(resources, OUTSIDE)
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert service.row(stack_id, "right").properties["value"] == "a"


def test_an_output_with_an_error_is_an_error_to_all_that_read_it() -> None:
    """They have no null in its place, which would be taken for a value."""
    reader = double(value={"get_attr": ["inner", "wrong"]})
    service, stack_id = created({"inner": {"type": "inner.yaml"}, "reader": reader}, OUTSIDE)
    reason = "Error in inner output wrong: The Parameter (nobody) was not provided."
    assert service.state(stack_id) == "CREATE_FAILED"
    assert service.states(stack_id) == {"inner": "CREATE_COMPLETE", "reader": "CREATE_FAILED"}
    assert reason in service.row(stack_id, "reader").reason


DEPLOYED = """
heat_template_version: rocky
parameters:
  config: {type: string}
  server: {type: string}
  actions: {type: json}
  input_values: {type: json, default: {}}
  name: {type: string, default: ""}
  signal_transport: {type: string, default: ""}
outputs: {deploy_stdout: {value: {get_param: nobody}}, deploy_stderr: {value: nothing}}
"""


def test_an_output_with_an_error_of_a_template_for_deployments_is_an_error_to_what_reads_it() -> None:
    group = {"type": "OS::Heat::SoftwareDeploymentGroup", "properties": {"config": "c", "servers": {"one": "s"}}}
    resources = {
        "group": group,
        "out": {**double(value={"get_attr": ["group", "deploy_stdouts", "one"]}), "depends_on": "err"},
        "err": double(value={"get_attr": ["group", "deploy_stderrs", "one"]}),
    }
    environment = {"resource_registry": {"OS::Heat::SoftwareDeployment": "inner.yaml"}}
    service = Service()
    stack_id = service.create(resources, files={"inner.yaml": DEPLOYED}, environment=environment)
    service.rest()
    assert service.states(stack_id) == {"group": "CREATE_COMPLETE", "out": "CREATE_FAILED", "err": "CREATE_COMPLETE"}
    assert service.row(stack_id, "err").properties["value"] == "nothing"
    assert "Error in one output deploy_stdout: The Parameter (nobody)" in service.row(stack_id, "out").reason


GROUPED = {
    "of members": ["grp", "wrong"],
    "of one of them": ["grp", "resource.0.wrong"],
    "by their names": ["grp", "attributes", "wrong"],
}


@pytest.mark.parametrize("read", GROUPED.values(), ids=GROUPED)
def test_an_output_with_an_error_in_a_group_hides_no_other_one(read: list[str]) -> None:
    properties = {"count": 2, "resource_def": {"type": "inner.yaml"}}
    resources = {
        "grp": {"type": "OS::Heat::ResourceGroup", "properties": properties},
        "right": double(value={"get_attr": ["grp", "resource.1.right"]}),
        "wrong": double(value={"get_attr": read}),
    }
    service, stack_id = created(resources, OUTSIDE)
    assert service.states(stack_id) == {
        "grp": "CREATE_COMPLETE",
        "right": "CREATE_COMPLETE",
        "wrong": "CREATE_FAILED",
    }
    assert service.row(stack_id, "right").properties["value"] == "a"
    assert "Error in 0 output wrong: The Parameter (nobody)" in service.row(stack_id, "wrong").reason
