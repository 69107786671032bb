"""CFN templates: the same graph from other words."""

import json
from typing import Any

import pytest
import yaml
from tests.unit.templates.template_cases import IDENTITY, Built, compiled

from homeostat.model.errors import Rejected
from homeostat.templates import compile_template, declared_in, evaluate, validate_shape

AWS = {"AWSTemplateFormatVersion": "2010-09-09"}
HEAT = {"HeatTemplateFormatVersion": "2012-12-12"}
TYPE = "OS::Heat::TestResource"
ARN = f"arn:openstack:heat::{IDENTITY.project}:stacks/{IDENTITY.stack_name}/{IDENTITY.stack_id}"

WHOLE = {
    **AWS,
    "Description": "A shop",
    "Parameters": {
        "Size": {"Type": "Number", "Default": "2", "MinValue": "1", "MaxValue": 5, "Label": "How many"},
        "Zone": {"Type": "String", "AllowedValues": ["a", "b"], "ConstraintDescription": "only a or b"},
        "Secret": {"Type": "String", "NoEcho": "true", "Default": "x", "AllowedPattern": "[a-z]*", "MinLength": 1},
        "Zones": {"Type": "CommaDelimitedList", "Default": "a,b"},
        "Tree": {"Type": "Json", "Default": "{}"},
        "Large": {"Type": "Boolean", "Default": "yes"},
    },
    "Mappings": {"Image": {"a": {"id": "img-a"}, "b": {"id": "img-b"}}},
    "Conditions": {
        "IsLarge": {"Fn::Equals": [{"Ref": "Large"}, True]},
        "IsOther": {"Fn::Not": ["IsLarge"]},
        "InA": {"Fn::And": ["IsLarge", {"Fn::Equals": [{"Fn::FindInMap": ["Image", {"Ref": "Zone"}, "id"]}, "img-a"]}]},
    },
    "Resources": {
        "first": {
            "Type": TYPE,
            "Properties": {"value": {"Fn::FindInMap": ["Image", {"Ref": "Zone"}, "id"]}},
            "Metadata": {"of": {"Ref": "AWS::StackName"}},
            "DeletionPolicy": "Retain",
            "Description": "The first",
            "Comment": "nobody minds",
        },
        "second": {"Type": TYPE, "Properties": {"value": {"Ref": "first"}}, "Condition": "InA"},
        "third": {"Type": TYPE, "DependsOn": ["second", "first"], "Condition": "IsOther"},
        "fourth": {"Type": TYPE, "DependsOn": "second"},
    },
    "Outputs": {
        "Value": {"Value": {"Fn::GetAtt": ["first", "output"]}, "Description": "of the first"},
        "None": {"Value": {"Ref": "third"}, "Condition": "IsOther"},
    },
}


def test_a_whole_template() -> None:
    found = compiled(WHOLE, parameters={"Zone": "a"})
    assert found.version.full_name == "AWSTemplateFormatVersion.2010-09-09"
    assert found.description == "A shop"
    assert found.conditions == {"IsLarge": True, "IsOther": False, "InA": True}
    assert list(found.definitions) == ["first", "second", "fourth"]
    first = found.definitions["first"]
    assert first.properties == {"value": "img-a"}
    assert first.metadata == {"of": "shop"}
    assert (first.deletion_policy, first.description) == ("Retain", "The first")
    assert found.definitions["second"].requires == ("first",)
    assert found.definitions["fourth"].requires == ("second",)
    assert found.outputs["Value"].description == "of the first"
    assert evaluate(found.outputs["Value"].value, Built({"output": "told"})) == "told"
    assert not found.outputs["None"].active
    assert found.raw == WHOLE


def test_json_and_yaml_are_the_same() -> None:
    of_json = compiled(json.dumps(WHOLE), parameters={"Zone": "b"})
    of_yaml = compiled(yaml.safe_dump(WHOLE), parameters={"Zone": "b"})
    assert of_json.definitions == of_yaml.definitions == compiled(WHOLE, parameters={"Zone": "b"}).definitions


def test_parameters_as_the_api_shows_them() -> None:
    shown = validate_shape(compiled(WHOLE, strict=False))["Parameters"]
    assert shown["Size"] == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "false",
        "Label": "How many",
        "Default": "2",
        "MinValue": 1,
        "MaxValue": 5,
    }
    assert shown["Zone"]["ConstraintDescription"] == "only a or b"
    assert shown["Secret"]["NoEcho"] == "true"
    assert {"MinLength": 1, "AllowedPattern": "[a-z]*"}.items() <= shown["Secret"].items()
    assert [shown[name]["Type"] for name in ("Zones", "Tree", "Large")] == ["CommaDelimitedList", "Json", "Boolean"]


def test_parameters_that_are_always_there() -> None:
    found = compiled({**HEAT})
    assert {name: each.value for name, each in found.parameters.items()} == {
        "AWS::StackId": ARN,
        "AWS::StackName": "shop",
        "AWS::Region": "ap-southeast-1",
    }


def test_parameters_declared() -> None:
    assert set(declared_in(WHOLE, "parameters")) == {"Size", "Zone", "Secret", "Zones", "Tree", "Large"}
    assert declared_in({**HEAT, "Parameters": None}, "parameters") == {}


def value(snippet: Any, key: Any = AWS, **options: Any) -> Any:
    document = {
        **key,
        "Parameters": {
            "Zones": {"Type": "CommaDelimitedList", "Default": "a,b"},
            "Key": {"Type": "String", "Default": "k"},
        },
        "Mappings": {"M": {"k": {"v": [1]}, "1": {"v": 2}}},
        "Resources": {"other": {"Type": TYPE}},
        "Outputs": {"it": {"Value": snippet}},
    }
    output = compiled(document, **options).outputs["it"]
    return evaluate(output.value, Built({"ip": "10.0.0.5", "list": ["x", "y"], "none": None}))


IP = {"Fn::GetAtt": ["other", "ip"]}
GIVES = [
    ({"Ref": "other"}, "other-id", "a resource"),
    ({"Ref": "Key"}, "k", "a parameter"),
    ({"Ref": "Zones"}, ["a", "b"], "a parameter that is a list"),
    ({"Ref": "AWS::Region"}, "ap-southeast-1", "a pseudo parameter"),
    (IP, "10.0.0.5", "an attribute"),
    ({"Fn::GetAtt": ["other", "absent"]}, None, "an attribute that is not known is null"),
    ({"Fn::FindInMap": ["M", {"Ref": "Key"}, "v"]}, [1], "the value of a mapping"),
    ({"Fn::FindInMap": ["M", 1, "v"]}, 2, "a key that was a number"),
    ({"Fn::GetAZs": ""}, ["nova"], "zones"),
    ({"Fn::GetAZs": {"Ref": "AWS::Region"}}, ["nova"], "zones of a region"),
    ({"Fn::Select": ["0", {"Fn::GetAZs": ""}]}, "nova", "an item by an index as text"),
    ({"Fn::Select": [-1, ["a", "b"]]}, "b", "an item from the end"),
    ({"Fn::Select": [2, ["a", "b"]]}, "", "an item that is not there is an empty text"),
    ({"Fn::Select": ["b", {"a": 1, "b": 2}]}, 2, "a value of a map"),
    ({"Fn::Select": ["c", {"a": 1, "b": 2}]}, "", "a key that is not there is an empty text"),
    ({"Fn::Select": [1, '["a", "b"]']}, "b", "an item of JSON text"),
    ({"Fn::Select": ["a", '{"a": 1}']}, 1, "a value of JSON text"),
    ({"Fn::Select": [0, None]}, "", "null is an empty text"),
    ({"Fn::Select": [0, ""]}, "", "an empty text stays empty"),
    ({"Fn::Select": [0, {"Fn::GetAtt": ["other", "none"]}]}, "", "what is not known yet is an empty text"),
    ({"Fn::Select": [1, {"Fn::GetAtt": ["other", "list"]}]}, "y", "an item of an attribute"),
    ({"Fn::Join": ["-", ["a", None, IP]]}, "a--10.0.0.5", "null is an empty text"),
    ({"Fn::Join": [",", {"Ref": "Zones"}]}, "a,b", "joins a parameter"),
    ({"Fn::Split": [".", IP]}, ["10", "0", "0", "5"], "splits an attribute"),
    ({"Fn::Replace": [{"$ab": "2", "$a": 1}, "$a $ab"]}, "1 2", "longest key first"),
    ({"Fn::Replace": [{"$": None}, "a$"]}, "a", "null is an empty text"),
    ({"Fn::Base64": "text"}, "text", "the text itself"),
    ({"Fn::Base64": {"Fn::Join": ["", ["a", IP]]}}, "a10.0.0.5", "the text itself, once it is known"),
    (
        {"Fn::MemberListToMap": ["N", "V", [".member.1.N=b", ".member.1.V=x=y", ".member.0.V=c", ".member.0.N=a"]]},
        {"a": "c", "b": "x=y"},
        "pairs by their numbers",
    ),
    ({"Fn::MemberListToMap": ["N", "V", [".member.0.N=a", "other"]]}, {}, "half a pair does not count"),
    ({"Fn::If": [True, "yes", "no"]}, "yes", "a choice"),
    ({"Fn::Join": ["", []], "b": 1}, {"Fn::Join": ["", []], "b": 1}, "a map of two keys is no call"),
    ({"get_param": "Key"}, {"get_param": "Key"}, "functions of HOT are data here"),
]


@pytest.mark.parametrize(("snippet", "expected", "reason"), GIVES, ids=[case[2] for case in GIVES])
def test_functions_give(snippet: Any, expected: Any, reason: str) -> None:
    assert value(snippet) == expected


@pytest.mark.parametrize("snippet", [{"Ref": "other"}, {"Fn::Join": ["", [{"Ref": "Key"}]]}, IP])
def test_both_keys_have_the_same_functions(snippet: Any) -> None:
    assert value(snippet, HEAT) == value(snippet, AWS)


FORM = "must be of the form"
REFUSES = [
    ({"Ref": "nobody"}, "InvalidTemplateReference", '"nobody" (in Outputs.it.Value)', "an unknown name"),
    ({"Ref": ["other"]}, "StackValidationFailed", "the name of a resource or parameter", "not a name"),
    ({"Fn::GetAtt": "other.ip"}, "StackValidationFailed", FORM, "an attribute as one text"),
    ({"Fn::GetAtt": ["other", "a", "b"]}, "StackValidationFailed", FORM, "a path in an attribute"),
    ({"Fn::GetAtt": ["nobody", "a"]}, "InvalidTemplateReference", "nobody", "an unknown resource"),
    ({"Fn::FindInMap": ["M", "k"]}, "StackValidationFailed", FORM, "two keys"),
    ({"Fn::FindInMap": ["X", "k", "v"]}, "StackValidationFailed", 'no mapping "X"', "an unknown mapping"),
    ({"Fn::FindInMap": ["M", "x", "v"]}, "StackValidationFailed", 'no key "x"', "an unknown key"),
    ({"Fn::FindInMap": ["M", "k", "x"]}, "StackValidationFailed", 'no name "x"', "an unknown name in a mapping"),
    ({"Fn::FindInMap": ["M", "k", ["v"]]}, "StackValidationFailed", 'no name ["v"]', "a name that is none"),
    ({"Fn::Select": ["x", ["a"]]}, "StackValidationFailed", "must be an integer", "an index that is no number"),
    ({"Fn::Select": [0, {"a": 1}]}, "StackValidationFailed", "must be a string", "a key that is no text"),
    ({"Fn::Select": [0, "{"]}, "StackValidationFailed", "is not JSON", "broken JSON"),
    ({"Fn::Select": [0, 5]}, "StackValidationFailed", "takes a list, a map", "a number"),
    ({"Fn::Join": ["-", ["a", 5]]}, "StackValidationFailed", "must be strings", "a number among texts"),
    ({"Fn::Split": [",", None]}, "StackValidationFailed", "splits a string", "null to split"),
    ({"Fn::Split": ["", "a"]}, "StackValidationFailed", "not empty", "an empty delimiter"),
    ({"Fn::Replace": ["a", "b"]}, "StackValidationFailed", "must be a map", "texts instead of a map"),
    ({"Fn::Replace": {"a": "b"}}, "StackValidationFailed", FORM, "a map alone"),
    ({"Fn::Base64": 5}, "StackValidationFailed", "takes a string", "a number to encode"),
    ({"Fn::MemberListToMap": ["N", "V", [1]]}, "StackValidationFailed", "list of strings", "a number as member"),
    ({"Fn::ResourceFacade": "metadata"}, "StackValidationFailed", "one of: Metadata", "the word of HOT"),
    ({"Fn::ResourceFacade": "Metadata"}, "StackValidationFailed", "needs a parent template", "no parent"),
    ({"Fn::If": [True, "yes"]}, "StackValidationFailed", FORM, "a choice without else"),
    ({"Fn::If": ["nobody", 1, 2]}, "StackValidationFailed", 'Invalid condition "nobody"', "an unknown condition"),
]


@pytest.mark.parametrize(("snippet", "fault", "message", "reason"), REFUSES, ids=[case[3] for case in REFUSES])
def test_functions_refuse(snippet: Any, fault: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        value(snippet)
    assert caught.value.fault == fault
    assert message in str(caught.value)
    assert "Outputs.it" in str(caught.value)


def test_the_version_without_conditions_names_the_other() -> None:
    with pytest.raises(Rejected, match=r"Fn::If is not supported .* it needs AWSTemplateFormatVersion 2010-09-09"):
        value({"Fn::If": [True, 1, 2]}, HEAT)


def test_the_facade_of_the_parent() -> None:
    facade = {"metadata": {"a": 1}, "deletion_policy": "Retain"}
    assert value({"Fn::ResourceFacade": "Metadata"}, facade=facade) == {"a": 1}
    assert value({"Fn::ResourceFacade": "DeletionPolicy"}, facade=facade) == "Retain"


def test_values_that_are_not_known_yet() -> None:
    document = {
        **AWS,
        "Parameters": {"A": {"Type": "String"}},
        "Mappings": {"M": {"k": {"v": 1}}},
        "Resources": {"r": {"Type": TYPE, "Properties": {"value": {"Fn::FindInMap": ["M", {"Ref": "A"}, "v"]}}}},
    }
    properties = compiled(document, strict=False).definitions["r"].properties
    assert repr(properties) == "{'value': (not known yet)}"


def test_the_first_version_of_hot_has_them_too() -> None:
    document = {
        "heat_template_version": "2013-05-23",
        "parameters": {"p": {"type": "string", "default": "x"}},
        "resources": {"r": {"type": TYPE, "properties": {"value": {"Fn::Join": ["-", [{"Ref": "p"}, "y"]]}}}},
        "outputs": {"it": {"value": {"Ref": "r"}}},
    }
    found = compiled(document)
    assert found.definitions["r"].properties == {"value": "x-y"}
    assert evaluate(found.outputs["it"].value, Built()) == "r-id"


BROKEN = [
    ({"Metadata": {}}, "The template section is invalid: Metadata", "a section of others"),
    ({"resources": {}}, "The template section is invalid: resources", "a section of HOT"),
    ({"Resources": []}, '"Resources" must contain a map of Resource maps', "resources in a list"),
    ({"Resources": {"a": 1}}, '"Resources" must contain a map of Resource maps', "a resource that is a number"),
    ({"Resources": {"a": {"type": TYPE}}}, "Each Resource must contain a Type key.", "the word of HOT for the type"),
    ({"Outputs": {"a": {}}}, "Each Output must contain a Value key.", "an output without value"),
    ({"Resources": {"a": {"Type": TYPE, "DeletionPolicy": "retain"}}}, "Invalid deletion policy", "a policy of HOT"),
    ({"Parameters": {"a": {"type": "String"}}}, "Invalid key 'type'; known are: Type,", "a key of HOT"),
    ({"Parameters": {"a": {"Type": "string"}}}, "one of: String, Number,", "a type of HOT"),
    ({"Parameters": {"a": {"Type": "AWS::EC2::KeyPair::KeyName"}}}, "Invalid type", "a type of others"),
    ({"Parameters": {"a": {}}}, "Missing parameter type", "no type"),
    ({"Parameters": {"a": {"Type": "Number", "MinLength": 1}}}, "Length constraint invalid", "a rule of another type"),
    (
        {
            "Conditions": {"a": {"Fn::Equals": [{"Ref": "nobody"}, 1]}},
            "Resources": {"r": {"Type": TYPE, "Condition": "a"}},
        },
        'The specified reference "nobody" (in Conditions.a.Fn::Equals[0]) is incorrect',
        "a condition on nothing",
    ),
    (
        {"Resources": {"r": {"Type": TYPE, "Condition": {"Fn::Equals": [{"Ref": "nobody"}, 1]}}}},
        'The specified reference "nobody" (in r.Condition.Fn::Equals[0]) is incorrect',
        "a resource on nothing",
    ),
    (
        {"Outputs": {"o": {"Value": 1, "Condition": {"Fn::Equals": [{"Ref": "nobody"}, 1]}}}},
        'The specified reference "nobody" (in Outputs.o.Condition.Fn::Equals[0]) is incorrect',
        "an output on nothing",
    ),
    (
        {"Resources": {"r": {"Type": TYPE, "DependsOn": "nobody"}}},
        'The specified reference "nobody" (in r.DependsOn) is incorrect',
        "a resource after nothing",
    ),
    ({"Conditions": {"a": {"Fn::Not": ["b"]}, "b": {"Fn::Not": ["a"]}}}, "Circular definition", "a circle"),
    ({"Conditions": {"a": {"Fn::Not": True}}}, "must be of the form: [condition]", "a condition outside a list"),
    ({"Conditions": {"a": {"Fn::GetAtt": ["r", "b"]}}}, "is invalid in this context", "an attribute in a condition"),
    ({"Mappings": []}, '"Mappings" must contain a map of Mapping maps', "mappings in a list"),
]


@pytest.mark.parametrize(("sections", "message", "reason"), BROKEN, ids=[case[2] for case in BROKEN])
def test_broken_templates(sections: dict[str, Any], message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        compile_template(
            {**AWS, **sections}, identity=IDENTITY, parameters={"a": "x"} if "Parameters" in sections else {}
        )
    assert message in str(caught.value)


def test_a_condition_on_nothing_may_be_there_where_nothing_uses_it() -> None:
    conditions = {"a": {"Ref": "nobody"}, "b": {"Fn::Not": [{"Fn::Equals": [{"Ref": "nobody"}, 1]}]}}
    found = compiled({**AWS, "Conditions": conditions, "Resources": {"r": {"Type": TYPE}}})
    assert (list(found.definitions), found.conditions) == (["r"], {})


def test_places_are_in_the_words_of_the_template() -> None:
    bad = {"Type": TYPE, "Properties": {"value": {"Fn::Join": "x"}}}
    with pytest.raises(Rejected, match=r"^Resources\.r\.Properties\.value\.Fn::Join: "):
        compiled({**AWS, "Resources": {"r": bad}})


def test_conditions_are_of_the_other_key_alone() -> None:
    with pytest.raises(Rejected, match="The template section is invalid: Conditions"):
        compiled({**HEAT, "Conditions": {}})
    found = compiled({**HEAT, "Resources": {"r": {"Type": TYPE, "Condition": False}}})
    assert list(found.definitions) == ["r"]


def test_a_wrong_value_is_reported_in_the_words_of_the_author() -> None:
    with pytest.raises(Rejected, match="Parameter 'Zone' is invalid: only a or b"):
        compiled(WHOLE, parameters={"Zone": "c"})


CHOICES: dict[str, Any] = {
    **AWS,
    "Parameters": {"Zone": {"Type": "String", "Default": "a"}},
    "Conditions": {
        "Same": {"Condition": "InA"},
        "InA": {"Fn::Equals": [{"Ref": "Zone"}, "a"]},
        "Neither": {"Fn::And": [{"Condition": "InA"}, {"Fn::Not": [{"Condition": "Same"}]}]},
        "Either": {"Fn::Or": [{"Condition": "Neither"}, "Same"]},
    },
    "Resources": {
        "first": {
            "Type": TYPE,
            "Condition": "Either",
            "Properties": {"value": {"Fn::If": ["Neither", "x", {"Ref": "AWS::NoValue"}]}},
            "Metadata": {
                "list": ["a", {"Ref": "AWS::NoValue"}, "b"],
                "text": {"Fn::Join": ["-", ["a", {"Fn::If": ["InA", {"Ref": "AWS::NoValue"}, "x"]}, "b"]]},
                "Condition": {"Condition": "is a map like any other here"},
                "nothing": {"Ref": "AWS::NoValue"},
            },
        },
    },
}


def test_a_condition_is_named_inside_another_one_as_in_aws() -> None:
    found = compiled(CHOICES)
    assert found.conditions == {"Same": True, "InA": True, "Neither": False, "Either": True}
    assert compiled(CHOICES, parameters={"Zone": "b"}).definitions == {}


def test_no_value_leaves_the_property_or_item_out() -> None:
    first = compiled(CHOICES).definitions["first"]
    assert first.properties == {}
    inside = {"Condition": "is a map like any other here"}
    assert first.metadata == {"list": ["a", "b"], "text": "a-b", "Condition": inside}
    old = {**HEAT, "Resources": {"a": {"Type": TYPE, "Properties": {"value": {"Ref": "AWS::NoValue"}}}}}
    assert compiled(old).definitions["a"].properties == {}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"A": {"Condition": "B"}, "B": {"Condition": "A"}}, 'Circular definition for condition "[AB]"'),
        ({"A": {"Condition": "Other"}}, 'Invalid condition "Other"'),
        ({"A": {"Condition": ["B"]}, "B": {"Fn::Equals": [1, 1]}}, "must be the name of a condition"),
        ({"A": {"Ref": "AWS::NoValue"}}, "must be a boolean or a condition function"),
    ],
)
def test_wrong_names_of_conditions_are_refused(conditions: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected, match=message):
        compiled({**AWS, "Conditions": conditions, "Resources": {"a": {"Type": TYPE, "Condition": "A"}}})
