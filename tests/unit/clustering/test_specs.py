"""Specs: checks, messages, and how types are described on the wire."""

from typing import Any

import pytest

from homeostat.clustering.decisions.specs import Catalogue, Operation, SpecType, check_operation, resolved, value_of
from homeostat.model.errors import Rejected
from homeostat.resources.schema import (
    anything,
    between,
    boolean,
    integer,
    listing,
    mapping,
    number,
    one_of,
    text,
)

KIND = SpecType(
    "test.kind",
    schema={
        "size": integer("How many.", required=True, update=True, constraints=(between(0, 9),)),
        "mode": text("Which.", default="A", constraints=(one_of("A", "B"),)),
        "word": text(any_case=True, constraints=(one_of("SOFT", "HARD"),)),
        "share": number(),
        "on": boolean(default=True),
        "free": mapping("Anything."),
        "inner": mapping(fields={"x": integer(default=3), "y": text(required=True)}),
        "filled": mapping(default={}, fields={"x": integer(default=3)}),
        "items": listing("Some.", items=mapping("One.", fields={"n": integer(required=True)})),
        "any": anything(),
        "old": text(hidden=True),
    },
    support={
        "1.0": [{"status": "EXPERIMENTAL", "since": "2016.04"}, {"status": "SUPPORTED", "since": "2016.10"}],
        "1.1": [{"status": "SUPPORTED", "since": "2018.01"}],
    },
    versions=("1.0", "1.1"),
    operations={"go": Operation("Go.", {"type": text("How.", default="SOFT", constraints=(one_of("SOFT", "HARD"),))})},
)
REFUSED = SpecType("test.refused", schema={}, support={"1.0": []}, refused="it is no more")
TYPES = Catalogue("policy_type", (KIND, REFUSED), {"description": text(default="")})


def spec(**properties: Any) -> dict[str, Any]:
    return {"type": "test.kind", "version": "1.0", "properties": {"size": 1, **properties}}


def fault(found: pytest.ExceptionInfo[Rejected]) -> tuple[str, int, str]:
    return found.value.fault, found.value.code, str(found.value)


@pytest.mark.parametrize(
    ("sent", "kind", "message"),
    [
        (None, "ESchema", "The provided spec is not a map."),
        ([], "ESchema", "The provided spec is not a map."),
        ({}, "ESchema", "The 'type' key is missing from the provided spec map."),
        ({"type": "test.kind"}, "ESchema", "The 'version' key is missing from the provided spec map."),
        ({"type": "test.kind", "version": "1.0"}, "ESchema", "Required spec item 'properties' not provided"),
        ({**spec(), "extra": 1}, "ESchema", "Unrecognizable spec item 'extra' (there is description, properties, "),
        ({**spec(), "version": "1.3"}, "ResourceNotFound", "The policy_type 'test.kind-1.3' could not be found."),
        ({**spec(), "version": 1.2}, "ResourceNotFound", "The policy_type 'test.kind-1.2' could not be found."),
        ({**spec(), "type": "x"}, "ResourceNotFound", "The policy_type 'x-1.0' could not be found."),
        ({**spec(), "type": ["x"]}, "ResourceNotFound", "The policy_type '['x']-1.0' could not be found."),
        ({**spec(), "properties": []}, "ESchema", "'[]' is not a Map (at properties)"),
        ({**spec(), "properties": {}}, "ESchema", "Required spec item 'size' not provided (at properties)"),
        (
            {"type": "test.refused", "version": "1.0", "properties": {}},
            "InvalidSpec",
            "The policy_type 'test.refused-1.0' is not supported: it is no more",
        ),
        (
            spec(siez=1),
            "ESchema",
            "Unrecognizable spec item 'siez' (at properties; there is any, filled, free, inner, ",
        ),
        (spec(size="abc"), "ESchema", "The value 'abc' is not a valid Integer (at properties.size)"),
        (spec(size=1.5), "ESchema", "The value '1.5' is not a valid Integer (at properties.size)"),
        (spec(size=True), "ESchema", "The value 'True' is not a valid Integer (at properties.size)"),
        (spec(size=10), "ESchema", "10 is out of range (min: 0, max: 9) (at properties.size)"),
        (spec(size=None), "ESchema", "Required spec item 'size' not provided (at properties)"),
        (spec(mode="C"), "ESchema", "'C' must be one of the allowed values: A, B (at properties.mode)"),
        (spec(mode="a"), "ESchema", "'a' must be one of the allowed values: A, B (at properties.mode)"),
        (spec(share="x"), "ESchema", "The value 'x' is not a valid number. (at properties.share)"),
        (spec(share="nan"), "ESchema", "The value 'nan' is not a valid number. (at properties.share)"),
        (spec(share=True), "ESchema", "The value 'True' is not a valid number. (at properties.share)"),
        (spec(share=[1]), "ESchema", "The value '[1]' is not a valid number. (at properties.share)"),
        (spec(on="maybe"), "ESchema", "The value 'maybe' is not a valid Boolean (at properties.on)"),
        (spec(mode={}), "ESchema", "The value '{}' is not a valid string. (at properties.mode)"),
        (spec(free="x"), "ESchema", "'x' is not a Map (at properties.free)"),
        (spec(items={}), "ESchema", "'{}' is not a List (at properties.items)"),
        (spec(items=[None]), "ESchema", "Required spec item not provided (at properties.items[0])"),
        (spec(items=[{"n": 1}, {}]), "ESchema", "Required spec item 'n' not provided (at properties.items[1])"),
        (
            spec(items=[{"n": 1, "m": 1}]),
            "ESchema",
            "Unrecognizable spec item 'm' (at properties.items[0]; there is n)",
        ),
        (spec(inner={}), "ESchema", "Required spec item 'y' not provided (at properties.inner)"),
        (spec(free="x" * 200), "ESchema", f"'{'x' * 200}' is not a Map (at properties.free)"),
        (spec(free="x" * 999), "ESchema", f"'{'x' * 200}…' is not a Map (at properties.free)"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(sent: Any, kind: str, message: str) -> None:
    with pytest.raises(Rejected) as found:
        TYPES.check(sent)
    got, code, text_of = fault(found)
    assert (got, code) == (kind, 404 if kind == "ResourceNotFound" else 400)
    assert text_of.startswith(message)


def test_a_checked_spec_has_all_properties_and_keeps_what_was_sent() -> None:
    sent = {**spec(size="3", word="soft", items=[{"n": "4"}], free='{"a": 1}', inner={"y": 5}), "description": None}
    checked = TYPES.check(sent)
    assert checked.sent == sent
    assert (checked.full_name, checked.description) == ("test.kind-1.0", "")
    assert checked.properties == {
        "size": 3,
        "mode": "A",
        "word": "SOFT",
        "share": None,
        "on": True,
        "free": {"a": 1},
        "inner": {"x": 3, "y": "5"},
        "filled": {"x": 3},
        "items": [{"n": 4}],
        "any": None,
        "old": None,
    }


def test_an_empty_text_is_an_empty_list() -> None:
    """As clients send it: gophercloud, for one, with the security groups of a server."""
    assert TYPES.check(spec(items="")).properties["items"] == []
    with pytest.raises(Rejected, match="'x' is not a List"):
        TYPES.check(spec(items="x"))


def test_a_description_is_kept() -> None:
    assert TYPES.check({**spec(), "description": "mine"}).description == "mine"


@pytest.mark.parametrize(("count", "end"), [(40, "x39)"), (42, "x39, and 2 others)")])
def test_a_message_names_what_there_is(count: int, end: str) -> None:
    schema = {f"x{number:02}": text() for number in range(count)}
    with pytest.raises(Rejected) as found:
        resolved(schema, {"y": 1})
    assert str(found.value).startswith("Unrecognizable spec item 'y' (there is x00, x01, ")
    assert str(found.value).endswith(end)


@pytest.mark.parametrize(
    ("word", "value"),
    [(True, True), ("yes", True), ("ON", True), (1, True), (" true ", True), ("F", False), (0, False)],
)
def test_words_for_yes_and_no(word: Any, value: bool) -> None:
    assert value_of(boolean(), word, ()) is value


def test_types_are_listed_by_microversion() -> None:
    assert TYPES.listed((1, 4)) == [{"name": "test.kind-1.0"}, {"name": "test.kind-1.1"}]
    assert TYPES.listed((1, 5)) == [
        {"name": "test.kind", "version": "1.0", "support_status": {"1.0": KIND.support["1.0"]}},
        {"name": "test.kind", "version": "1.1", "support_status": {"1.1": KIND.support["1.1"]}},
    ]


def test_a_type_is_described() -> None:
    shown = TYPES.shown("test.kind-1.1", (1, 5))
    assert shown["name"] == "test.kind-1.1"
    assert shown["support_status"] == KIND.support
    assert "support_status" not in TYPES.shown("test.kind-1.1", (1, 4))
    schema = shown["schema"]
    assert "old" not in schema
    assert schema["size"] == {
        "type": "Integer",
        "description": "How many.",
        "required": True,
        "updatable": True,
        "constraints": [{"type": "Range", "constraint": {"min": 0, "max": 9}}],
    }
    assert schema["mode"] == {
        "type": "String",
        "description": "Which.",
        "default": "A",
        "required": False,
        "updatable": False,
        "constraints": [{"type": "AllowedValues", "constraint": ["A", "B"]}],
    }
    assert schema["items"]["schema"] == {
        "*": {
            "type": "Map",
            "description": "One.",
            "required": False,
            "updatable": False,
            "schema": {"n": {"type": "Integer", "required": True, "updatable": False}},
        }
    }
    assert schema["free"] == {"type": "Map", "description": "Anything.", "required": False, "updatable": False}


@pytest.mark.parametrize("name", ["test.kind-1.3", "test.kind", "test.refused-1.0", "", "-"])
def test_an_unknown_type_is_not_found(name: str) -> None:
    with pytest.raises(Rejected) as found:
        TYPES.shown(name, (1, 14))
    assert fault(found) == ("ResourceNotFound", 404, f"The policy_type '{name}' could not be found.")
    with pytest.raises(Rejected) as found:
        TYPES.operations(name)
    assert fault(found) == ("BadRequest", 400, f"The policy_type '{name}' could not be found.")


def test_operations_are_described() -> None:
    parameters = {
        "type": "String",
        "description": "How.",
        "default": "SOFT",
        "required": False,
        "constraints": [{"type": "AllowedValues", "constraint": ["SOFT", "HARD"]}],
    }
    assert TYPES.operations("test.kind-1.0") == {"go": {"description": "Go.", "parameters": {"type": parameters}}}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "fly",
            {},
            "The requested operation 'fly' is not supported by the profile type 'test.kind-1.0'. (there is go)",
        ),
        ("go", [], "The parameters of the operation 'go' are not a map."),
        ("go", {"x": 1}, "Unrecognizable parameter 'x'. (there is type)"),
        ("go", {"type": "MAYBE"}, "'MAYBE' must be one of the allowed values: SOFT, HARD. (at type)"),
    ],
)
def test_a_wrong_operation_is_refused(name: str, given: Any, message: str) -> None:
    with pytest.raises(Rejected) as found:
        check_operation(KIND, "1.0", name, given)
    assert fault(found) == ("BadRequest", 400, message)


@pytest.mark.parametrize(("given", "parameters"), [(None, {"type": "SOFT"}), ({"type": "HARD"}, {"type": "HARD"})])
def test_parameters_of_an_operation_get_their_defaults(given: Any, parameters: dict[str, Any]) -> None:
    assert check_operation(KIND, "1.0", "go", given) == parameters
