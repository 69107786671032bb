"""CFN templates from end to end, with python-heatclient."""

from typing import Any

import heatclient.exc
import httpx
import pytest
from heatclient.v1.client import Client as HeatClient

from tests.wire.running import settled

TEMPLATE: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "One thing, and what it says",
    "Parameters": {
        "Word": {"Type": "String", "Default": "hello", "AllowedValues": ["hello", "bye"]},
        "Secret": {"Type": "String", "Default": "swordfish", "NoEcho": "true"},
    },
    "Mappings": {"Loud": {"hello": {"text": "HELLO"}, "bye": {"text": "BYE"}}},
    "Conditions": {"Polite": {"Fn::Equals": [{"Ref": "Word"}, "hello"]}},
    "Resources": {
        "speaker": {
            "Type": "OS::Heat::TestResource",
            "Properties": {"value": {"Fn::FindInMap": ["Loud", {"Ref": "Word"}, "text"]}},
        },
        "echo": {
            "Type": "OS::Heat::TestResource",
            "Condition": "Polite",
            "Properties": {"value": {"Fn::Join": ["-", [{"Fn::GetAtt": ["speaker", "output"]}, "again"]]}},
        },
    },
    "Outputs": {
        "Said": {"Description": "What it says", "Value": {"Fn::GetAtt": ["speaker", "output"]}},
        "Echo": {"Value": {"Fn::If": ["Polite", {"Fn::GetAtt": ["echo", "output"]}, "nothing"]}},
        "Where": {"Value": {"Fn::Select": ["0", {"Fn::GetAZs": {"Ref": "AWS::Region"}}]}},
    },
}


def outputs(stack: dict[str, Any]) -> dict[str, Any]:
    return {each["output_key"]: each["output_value"] for each in stack["outputs"]}


def test_a_life_of_a_stack(heat: HeatClient, http: httpx.Client) -> None:
    stack_id = heat.stacks.create(stack_name="cfn", template=TEMPLATE)["stack"]["id"]
    stack = settled(http, stack_id, status="CREATE_COMPLETE")
    assert outputs(stack) == {"Said": "HELLO", "Echo": "HELLO-again", "Where": "nova"}
    assert stack["template_description"] == "One thing, and what it says"
    assert stack["parameters"]["AWS::StackName"] == "cfn"
    assert stack["parameters"]["AWS::StackId"].endswith(f":stacks/cfn/{stack_id}")
    assert stack["parameters"]["Secret"] == "******"
    assert heat.stacks.template(stack_id) == TEMPLATE
    assert sorted(each.resource_name for each in heat.resources.list(stack_id)) == ["echo", "speaker"]
    assert heat.resources.get(stack_id, "echo").required_by == []
    assert heat.stacks.output_show(stack_id, "Said")["output"]["description"] == "What it says"

    heat.stacks.update(stack_id, existing=True, parameters={"Word": "bye"})
    stack = settled(http, stack_id, status="UPDATE_COMPLETE")
    assert outputs(stack) == {"Said": "BYE", "Echo": "nothing", "Where": "nova"}
    assert [each.resource_name for each in heat.resources.list(stack_id)] == ["speaker"]
    heat.stacks.update(stack_id, existing=True, parameters={})
    assert outputs(settled(http, stack_id, status="UPDATE_COMPLETE"))["Said"] == "BYE"


def test_validated(heat: HeatClient) -> None:
    found = heat.stacks.validate(template=TEMPLATE)
    assert found["Description"] == "One thing, and what it says"
    assert found["Parameters"]["Word"]["AllowedValues"] == ["hello", "bye"]
    assert found["Parameters"]["Secret"]["NoEcho"] == "true"


def test_mistakes_are_reported_in_the_words_of_the_template(heat: HeatClient) -> None:
    bad = {"Type": "OS::Heat::TestResource", "Properties": {"colour": "red"}}
    with pytest.raises(heatclient.exc.HTTPBadRequest, match=r"Resources\.x\.Properties: : Unknown Property colour"):
        heat.stacks.create(stack_name="bad", template={**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "x": bad}})


def test_a_template_made_from_a_type_makes_a_stack(heat: HeatClient, http: httpx.Client) -> None:
    template = heat.resource_types.generate_template("OS::Heat::RandomString", template_type="cfn")
    assert template["HeatTemplateFormatVersion"] == "2012-12-12"
    stack_id = heat.stacks.create(stack_name="typed", template=template, parameters={"length": "7"})["stack"]["id"]
    assert len(outputs(settled(http, stack_id, status="CREATE_COMPLETE"))["value"]) == 7


def test_versions_and_functions(heat: HeatClient) -> None:
    found = {each.version: each.type for each in heat.template_versions.list()}
    assert found["AWSTemplateFormatVersion.2010-09-09"] == found["HeatTemplateFormatVersion.2012-12-12"] == "cfn"
    functions = {each.functions for each in heat.template_versions.get("AWSTemplateFormatVersion.2010-09-09")}
    assert {"Ref", "Fn::GetAtt", "Fn::If"} <= functions
