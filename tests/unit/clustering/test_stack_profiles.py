"""Profiles of stacks: what is refused, and the resources that they become."""

import json
from typing import Any

import pytest
from tests.unit.clustering.profile_cases import TEMPLATE, TERMS, properties_of, refused, stack

from homeostat.clustering.decisions.profiles import Terms, check_profile, define
from homeostat.model.errors import Rejected
from homeostat.resources.registry import type_of


def test_a_stack_profile_becomes_a_nested_stack() -> None:
    environment = {
        "parameters": {"size": 2, "other": 1},
        "parameter_defaults": {"d": 1},
        "resource_registry": {"My::Type": "my.yaml"},
    }
    spec = stack(
        template=TEMPLATE, parameters={"size": 3}, files={"my.yaml": "text"}, environment=environment, timeout="5"
    )
    definition = define(check_profile(spec), TERMS)
    properties = definition.resource["properties"]
    source = properties["TemplateURL"]
    assert definition.resource["type"] == "AWS::CloudFormation::Stack"
    assert properties == {"TemplateURL": source, "Parameters": {"size": 3, "other": 1}, "TimeoutInMinutes": 5}
    assert json.loads(definition.files[source]) == TEMPLATE
    assert definition.files["my.yaml"] == "text"
    assert definition.environment == {name: environment[name] for name in ("parameter_defaults", "resource_registry")}
    assert type_of(definition.resource["type"]).check(properties_of(definition))


def test_a_template_may_be_at_a_url() -> None:
    definition = define(check_profile(stack(template_url="http://example.com/t")), TERMS)
    assert definition.resource["properties"] == {"TemplateURL": "http://example.com/t", "Parameters": {}}


def test_a_stack_in_another_region() -> None:
    spec = stack(
        template={**TEMPLATE, "parameters": {"size": {"type": "number"}, "x": {"type": "number"}}},
        parameters={"size": 3},
        environment={"parameters": {"x": 1}, "parameter_defaults": {}},
        files={"f": "text"},
        timeout=5,
        context={"region_name": "north"},
    )
    definition = define(check_profile(spec), TERMS)
    properties = dict(definition.resource["properties"])
    assert json.loads(properties.pop("template"))["resources"] == TEMPLATE["resources"]
    assert properties == {"context": {"region_name": "north"}, "parameters": {"x": 1, "size": 3}, "timeout": 5}
    assert (definition.resource["type"], definition.files) == ("OS::Heat::Stack", {"f": "text"})
    assert type_of("OS::Heat::Stack").check(properties_of(definition))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "InvalidSpec: Both template and template_url are not specified for profile (at properties)"),
        ({"template": {"resources": {}}}, "InvalidSpec: "),
        (
            {"template": TEMPLATE, "files": {"a": {"b": 1}}},
            "InvalidSpec: The content of a file must be a text (at prop",
        ),
        ({"template": TEMPLATE, "timeout": 0}, "ESchema: 0 is out of range"),
        ({"template": TEMPLATE, "environment": {"colour": {}}}, "InvalidSpec: "),
        (
            {"template": {**TEMPLATE, "parameters": {"x": {"type": "number"}}}},
            "InvalidSpec: The Parameter (x) was not ",
        ),
        (
            {"template": TEMPLATE, "environment": {"parameters": [1]}},
            "InvalidSpec: Environment not in valid format: environment section ",
        ),
        ({"template": TEMPLATE, "parameters": {"get_file": "x"}}, "InvalidSpec: 'get_file' alone in a map would be a "),
        (
            {"template_url": "http://x", "context": {"region_name": "n"}},
            "InvalidSpec: A stack in another region needs ",
        ),
        (
            {"template": TEMPLATE, "context": {"region_name": "n"}, "environment": {"parameter_defaults": {"a": 1}}},
            "InvalidSpec: parameter_defaults has no way into another region; put it into the template (at ",
        ),
    ],
)
def test_a_wrong_stack_profile_is_refused(properties: dict[str, Any], message: str) -> None:
    assert refused(stack(**properties)).startswith(message)


def test_a_region_of_a_policy_may_not_fit_a_stack() -> None:
    profile = check_profile(stack(template_url="http://x"))
    with pytest.raises(Rejected, match="A stack in another region needs its template"):
        define(profile, Terms("n", region="north"))
