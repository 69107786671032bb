"""Parameters: schemas, values, precedence, constraints, and their forms in the API."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.templates.template_cases import LATEST, compiled, template

from homeostat.model.errors import Rejected
from homeostat.templates import UNKNOWN, Parameter, check_immutable, validate_shape


def parameter(entry: Any, value: Any = None, version: str = LATEST, **options: Any) -> Parameter:
    options.setdefault("parameters", {} if value is None else {"p": value})
    return compiled(template(version, parameters={"p": entry}), **options).parameters["p"]


VALUES = [
    ("string", "x", "x", "x", "text"),
    ("string", 5, "5", "5", "a number becomes text"),
    ("string", True, "True", "True", "a boolean becomes text"),
    ("string", "", "", "", "empty"),
    ("number", 5, 5, "5", "an integer"),
    ("number", "5", 5, "5", "an integer as text"),
    ("number", "5.5", 5.5, "5.5", "a fraction as text"),
    ("number", 1e3, 1000.0, "1000.0", "a float stays one"),
    ("number", "-0", 0, "0", "zero"),
    ("comma_delimited_list", "a,b", ["a", "b"], "a,b", "text"),
    ("comma_delimited_list", "a, b", ["a", " b"], "a, b", "spaces stay"),
    ("comma_delimited_list", "", [], "", "empty text is an empty list"),
    ("comma_delimited_list", [1, "b"], ["1", "b"], "1,b", "a list of anything becomes texts"),
    ("json", {"a": [1]}, {"a": [1]}, '{"a": [1]}', "a map"),
    ("json", '{"a": [1]}', {"a": [1]}, '{"a": [1]}', "JSON text"),
    ("json", "", {}, "{}", "empty text is an empty map"),
    ("json", [1], [1], "[1]", "a list"),
    ("json", 5, 5, "5", "a number"),
    ("boolean", "YES", True, "True", "a word"),
    ("boolean", 0, False, "False", "a number"),
    ("boolean", False, False, "False", "a boolean"),
    ("boolean", "t", True, "True", "a letter"),
]


@pytest.mark.parametrize(("kind", "given_value", "value", "text", "reason"), VALUES)
def test_values(kind: str, given_value: Any, value: Any, text: str, reason: str) -> None:
    found = parameter({"type": kind}, given_value)
    assert (found.value, type(found.value)) == (value, type(value))
    assert (found.text, found.shown) == (text, text)


WRONG_VALUES = [
    ("string", ["x"], "Value must be a string"),
    ("number", "five", "Value 'five' is not a number"),
    ("number", "inf", "is not a finite number"),
    ("number", [1], "is not a number"),
    ("comma_delimited_list", 5, "comma-delimited list"),
    ("json", "{", "Value must be valid JSON"),
    ("json", "[" * 500 + "]" * 500, "Value must be valid JSON"),
    ("boolean", "maybe", "Unrecognized value 'maybe'"),
]


@pytest.mark.parametrize(("kind", "value", "message"), WRONG_VALUES)
def test_wrong_values(kind: str, value: Any, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        parameter({"type": kind}, value)
    assert caught.value.fault == "StackValidationFailed"
    assert str(caught.value).startswith("Parameter 'p' is invalid: ")
    assert message in str(caught.value)


CONSTRAINTS = [
    ("string", {"length": {"min": 2, "max": 3}}, ["ab", "abc"], "a", "length (1) is out of range (min: 2, max: 3)"),
    (
        "comma_delimited_list",
        {"length": {"max": 1}},
        ["", "a"],
        "a,b",
        "length (2) is out of range (min: None, max: 1)",
    ),
    ("json", {"length": {"min": 1}}, ['{"a": 1}', "[1]"], "{}", "length (0)"),
    ("json", {"length": {"min": 1}}, ["[1]"], "5", "5 has no length"),
    ("number", {"range": {"min": 1, "max": "2"}}, [1, 2, "1.5"], 3, "3 is out of range (min: 1, max: 2)"),
    ("number", {"modulo": {"step": 2, "offset": 1}}, [1, 3, -1], 2, "2 is not a multiple of 2 with an offset of 1"),
    ("string", {"allowed_values": ["a", 5]}, ["a", "5", 5], "b", '"b" is not an allowed value [a, 5]'),
    ("number", {"allowed_values": ["1", 2]}, [1, "2"], 3, '"3" is not an allowed value [1, 2]'),
    ("comma_delimited_list", {"allowed_values": ["a", "b"]}, ["a", "b,a", ""], "a,c", '"c" is not an allowed value'),
    ("boolean", {"allowed_values": ["yes"]}, ["true"], "no", '"False" is not an allowed value'),
    ("string", {"allowed_pattern": "a+"}, ["aa"], "aab", '"aab" does not match pattern "a+"'),
    ("string", {"allowed_pattern": "a", "description": "only a"}, ["a"], "b", "invalid: only a"),
    ("number", {"range": {"min": 5}, "allowed_values": [1]}, [5], 1, "1 is out of range (min: 5, max: None)"),
]


@pytest.mark.parametrize(("kind", "constraint", "right", "wrong", "message"), CONSTRAINTS)
def test_constraints(kind: str, constraint: Any, right: list[Any], wrong: Any, message: str) -> None:
    entry = {"type": kind, "constraints": [constraint]}
    for value in right:
        assert parameter(entry, value).provided == value
    with pytest.raises(Rejected, match="Parameter 'p' is invalid: ") as caught:
        parameter(entry, wrong)
    assert message in str(caught.value)


def test_every_constraint_counts() -> None:
    entry = {"type": "string", "constraints": [{"length": {"min": 1}}, {"allowed_pattern": "[a-z]*"}]}
    with pytest.raises(Rejected, match="does not match"):
        parameter(entry, "A")


def test_custom_constraints_are_named_for_the_layer_above() -> None:
    found = parameter({"type": "string", "constraints": [{"custom_constraint": "nova.flavor"}]}, "m1")
    assert [each.custom for each in found.schema.constraints] == ["nova.flavor"]


SCHEMAS = [
    ("x", LATEST, "a map is expected", "no map"),
    ({}, LATEST, "Missing parameter type", "no type"),
    ({"type": "strin"}, LATEST, "Invalid type (strin)", "an unknown type"),
    ({"type": ["string"]}, LATEST, "Invalid type", "a list as type"),
    ({"type": "string", "Default": 1}, LATEST, "Invalid key 'Default'", "an unknown key"),
    ({"type": "string", "tags": ["a"]}, "2017-09-01", "Invalid key 'tags'", "tags came later"),
    ({"type": "string", "tags": "a"}, LATEST, "tags must be a list of strings", "tags that are text"),
    ({"type": "string", "hidden": "perhaps"}, LATEST, "hidden must be a boolean", "a flag that is none"),
    ({"type": "number", "default": "x"}, LATEST, "Invalid default 'x' (Value 'x' is not a number)", "a wrong default"),
    (
        {"type": "number", "default": 5, "constraints": [{"range": {"max": 4}}]},
        LATEST,
        "Invalid default 5",
        "too large",
    ),
    ({"type": "string", "constraints": {"length": {"min": 1}}}, LATEST, "expected a list", "constraints as a map"),
    ({"type": "string", "constraints": ["x"]}, LATEST, "expected a mapping", "a constraint as text"),
    ({"type": "string", "constraints": [{"description": "x"}]}, LATEST, "No constraint expressed", "no constraint"),
    ({"type": "string", "constraints": [{"size": 1}]}, LATEST, "Invalid key 'size' in a constraint", "an unknown one"),
    ({"type": "string", "constraints": [{"range": {"min": 1}}]}, LATEST, "Range constraint invalid for string", "type"),
    (
        {"type": "json", "constraints": [{"allowed_values": []}]},
        LATEST,
        "AllowedValues constraint invalid for json",
        "t",
    ),
    ({"type": "number", "constraints": [{"length": {"min": 1}}]}, LATEST, "Length constraint invalid", "type"),
    ({"type": "string", "constraints": [{"length": {}}]}, LATEST, "min and/or max", "no bounds"),
    ({"type": "string", "constraints": [{"length": {"min": None}}]}, LATEST, "must have a min value", "null bounds"),
    ({"type": "string", "constraints": [{"length": {"min": 1.5}}]}, LATEST, "must be an integer", "half a character"),
    ({"type": "string", "constraints": [{"length": {"min": "x"}}]}, LATEST, "must be a number", "text as bound"),
    ({"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 0}}]}, "2016-10-14", "'modulo'", "came later"),
    ({"type": "number", "constraints": [{"modulo": {"step": 2}}]}, LATEST, "step and offset", "no offset"),
    ({"type": "number", "constraints": [{"modulo": {"step": 0, "offset": 0}}]}, LATEST, "must not be 0", "no step"),
    ({"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 2}}]}, LATEST, "smaller than step", "offset"),
    ({"type": "number", "constraints": [{"modulo": {"step": 2, "offset": -1}}]}, LATEST, "the same sign", "signs"),
    ({"type": "number", "constraints": [{"modulo": {"step": 1.5, "offset": 1}}]}, LATEST, "integers", "a fraction"),
    ({"type": "string", "constraints": [{"allowed_values": "a"}]}, LATEST, "must be a list", "values as text"),
    ({"type": "number", "constraints": [{"allowed_values": ["x"]}]}, LATEST, "Invalid allowed value 'x'", "no number"),
    ({"type": "string", "constraints": [{"allowed_pattern": "("}]}, LATEST, "not a regular expression", "a pattern"),
    ({"type": "string", "constraints": [{"allowed_pattern": 5}]}, LATEST, "must be a string", "a number as pattern"),
    ({"type": "string", "constraints": [{"custom_constraint": 5}]}, LATEST, "must be a string", "a number as name"),
]


@pytest.mark.parametrize(("entry", "version", "message", "reason"), SCHEMAS)
def test_wrong_schemas(entry: Any, version: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        parameter(entry, version=version)
    assert caught.value.fault == "InvalidSchemaError"
    assert str(caught.value).startswith("parameters.p: ")
    assert message in str(caught.value)


ENVIRONMENT = {"parameter_defaults": {"p": "common"}, "parameters": {"p": "env"}}
PRECEDENCE = [
    ({}, {}, "own", "the template's default"),
    ({}, {"parameter_defaults": {"p": "common", "other": 1}}, "common", "defaults of the environment come before it"),
    ({}, ENVIRONMENT, "env", "values of the environment come before those"),
    ({"p": "request"}, ENVIRONMENT, "request", "values of the request come first"),
    ({"p": None}, {"parameter_defaults": {"p": "common"}}, "common", "null is as good as nothing"),
]


@pytest.mark.parametrize(("values", "environment", "expected", "reason"), PRECEDENCE)
def test_precedence(values: Any, environment: Any, expected: str, reason: str) -> None:
    found = parameter({"type": "string", "default": "own"}, parameters=values, environment=environment)
    assert found.value == expected


def test_missing_and_undeclared() -> None:
    with pytest.raises(Rejected, match=r"The Parameter \(p\) was not provided") as missing:
        parameter({"type": "string"})
    assert missing.value.fault == "UserParameterMissing"
    with pytest.raises(Rejected, match=r"The Parameter \(q\) was not defined in template") as undeclared:
        parameter({"type": "string"}, parameters={"q": 1})
    assert undeclared.value.fault == "UnknownUserParameter"
    assert str(undeclared.value).endswith(
        " Leave it out of the parameters and the environment, or declare it in the template, which declares p."
    )


@pytest.mark.parametrize(
    ("names", "reported"),
    [
        ([], "which declares none."),
        (["size", "word"], "which declares size, word."),
        ([f"p{n}" for n in range(22)], "p18, p19 and 2 more."),
    ],
)
def test_the_error_of_an_undeclared_one_lists_those_that_exist(names: list[str], reported: str) -> None:
    declared = {name: {"type": "string", "default": ""} for name in names}
    with pytest.raises(Rejected, match=r"The Parameter \(wurd\) was not defined in template\. ") as caught:
        compiled(template(parameters=declared), parameters={"wurd": "x"})
    assert str(caught.value).endswith(reported)


def test_a_missing_value_is_unknown_where_it_need_not_be_there() -> None:
    found = parameter({"type": "number"}, strict=False)
    assert (found.value, found.text) == (UNKNOWN, "")


def test_pseudo_parameters() -> None:
    found = compiled(template()).parameters
    assert {name: each.text for name, each in found.items()} == {
        "OS::project_id": "project-a",
        "OS::stack_id": "5b9e8a0c-0000-4000-8000-000000000001",
        "OS::stack_name": "shop",
    }
    with pytest.raises(Rejected, match="reserved"):
        compiled(template(parameters={"OS::stack_id": {"type": "string"}}), strict=False)


def test_validate_form() -> None:
    entry = {
        "type": "number",
        "label": "How many",
        "description": "Servers",
        "default": 4,
        "tags": ["size"],
        "constraints": [
            {"range": {"min": 1, "max": 9}, "description": "1 to 9"},
            {"modulo": {"step": 2, "offset": 0}, "description": "even"},
        ],
    }
    assert parameter(entry, "6").wire() == {
        "Type": "Number",
        "Description": "Servers",
        "NoEcho": "false",
        "Label": "How many",
        "Default": 4,
        "Value": "6",
        "MinValue": 1,
        "MaxValue": 9,
        "Step": 2,
        "Offset": 0,
        "ConstraintDescription": "1 to 9 even",
        "Tags": ["size"],
    }
    text = {"type": "string", "constraints": [{"length": {"max": 5}}, {"allowed_pattern": ".*"}]}
    assert parameter(text, strict=False).wire() == {
        "Type": "String",
        "Description": "",
        "NoEcho": "false",
        "Label": "p",
        "MaxLength": 5,
        "AllowedPattern": ".*",
    }


def test_hidden_values_are_not_shown() -> None:
    entry = {"type": "string", "hidden": True, "default": "in the template"}
    given_value = compiled(template(parameters={"p": entry}), parameters={"p": "s3cret"})
    by_environment = compiled(template(parameters={"p": entry}), environment={"parameter_defaults": {"p": "s3cret"}})
    for each in (given_value, by_environment):
        assert each.parameters["p"].shown == "******"
        assert "s3cret" not in json.dumps(validate_shape(each))
    assert given_value.parameters["p"].wire()["NoEcho"] == "true"


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        pytest.param(
            {"type": "string", "constraints": [{"length": {"min": 20}}]}, "s3cret", "breaks the rule length", id="rule"
        ),
        pytest.param(
            {"type": "string", "constraints": [{"allowed_values": ["a"], "description": "Ask us."}]},
            "s3cret",
            "Ask us.",
            id="a rule with a description",
        ),
        pytest.param({"type": "number"}, "s3cret", "is not of type number", id="type"),
    ],
)
def test_what_is_wrong_with_a_hidden_value_is_reported_without_it(entry: Any, value: str, words: str) -> None:
    with pytest.raises(Rejected, match=words) as caught:
        parameter({**entry, "hidden": True}, value)
    assert "s3cret" not in str(caught.value)


def test_immutable_parameters() -> None:
    section = {"a": {"type": "string", "immutable": True, "default": "1"}, "b": {"type": "string", "default": "1"}}
    before = compiled(template(parameters=section)).parameters
    check_immutable(before, compiled(template(parameters=section), parameters={"a": 1, "b": 2}).parameters)
    check_immutable({}, compiled(template(parameters=section), parameters={"a": 2}).parameters)
    with pytest.raises(Rejected, match="immutable and may not be updated: a") as caught:
        check_immutable(before, compiled(template(parameters=section), parameters={"a": 2}).parameters)
    assert caught.value.fault == "ImmutableParameterModified"


@given(
    st.sampled_from(["string", "number", "comma_delimited_list", "json", "boolean"]),
    st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=2)),
)
def test_the_text_of_a_value_gives_the_value_again(kind: str, value: Any) -> None:
    try:
        found = parameter({"type": kind}, value)
    except Rejected:
        return
    if kind == "comma_delimited_list" and isinstance(value, list) and not value:
        assert found.text == ""
    else:
        assert parameter({"type": kind}, found.text).value == found.value or found.value != found.value
