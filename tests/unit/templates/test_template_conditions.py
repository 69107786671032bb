"""Conditions: what they may say, and what depends on them."""

from typing import Any

import pytest
from tests.unit.templates.template_cases import LATEST, compiled, resource, template

from homeostat.model.errors import Rejected
from homeostat.templates import UNKNOWN

PARAMETERS = {
    "env": {"type": "string", "default": "prod"},
    "on": {"type": "boolean", "default": True},
    "zones": {"type": "comma_delimited_list", "default": "a,b"},
}


def conditions(definitions: Any, version: str = LATEST) -> dict[str, bool]:
    return dict(compiled(template(version, parameters=PARAMETERS, conditions=definitions)).conditions)


HOLDS = [
    (True, True, "a boolean"),
    ({"get_param": "on"}, True, "a boolean parameter"),
    ({"equals": [{"get_param": "env"}, "prod"]}, True, "a comparison"),
    ({"equals": [{"get_param": "zones"}, ["a", "b"]]}, True, "a comparison of lists"),
    ({"equals": [{"get_param": ["zones", 0]}, "b"]}, False, "a comparison with a path"),
    ({"not": "yes"}, False, "a name"),
    ({"not": {"equals": [1, 1]}}, False, "a function"),
    ({"and": ["yes", True, {"not": "no"}]}, True, "all"),
    ({"and": ["yes", "no"]}, False, "not all"),
    ({"or": ["no", {"and": [True, "yes"]}]}, True, "one"),
    ({"or": ["no", False]}, False, "none"),
    ({"contains": ["a", {"get_param": "zones"}]}, True, "in a list"),
]


@pytest.mark.parametrize(("definition", "expected", "reason"), HOLDS, ids=[case[2] for case in HOLDS])
def test_holds(definition: Any, expected: bool, reason: str) -> None:
    found = conditions({"it": definition, "yes": {"equals": [1, 1]}, "no": False})
    assert found == {"it": expected, "yes": True, "no": False}


INVALID_DEFINITION = 'The definition of condition "it" is invalid'
REFUSED = [
    ("yes", INVALID_DEFINITION, "a bare name is no definition"),
    (None, INVALID_DEFINITION, "null"),
    ([True], INVALID_DEFINITION, "a list"),
    ({"a": 1, "b": 2}, INVALID_DEFINITION, "a map"),
    ({"not": [True]}, 'Arguments to "not"', "a list for not"),
    ({"and": [True]}, 'minimum number of condition arguments to "and" is 2', "one item"),
    ({"or": "yes"}, 'minimum number of condition arguments to "or" is 2', "a name"),
    ({"and": [True, "nobody"]}, 'Invalid condition "nobody"', "an unknown name"),
    ({"and": [True, 1]}, 'Invalid condition "1"', "a number"),
    ({"equals": [1]}, "[value_1, value_2]", "one value"),
    ({"equals": [{"get_attr": ["a", "b"]}, 1]}, 'The function "get_attr" is invalid in this context', "an attribute"),
    ({"if": [True, True, False]}, 'The function "if" is invalid in this context', "a choice"),
    ({"not": "it"}, 'Circular definition for condition "it"', "itself"),
    ({"or": [False, {"not": {"and": ["it", "yes"]}}]}, 'Circular definition for condition "it"', "itself, deep"),
]


@pytest.mark.parametrize(("definition", "message", "reason"), REFUSED, ids=[case[2] for case in REFUSED])
def test_refused(definition: Any, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        conditions({"it": definition, "yes": True})
    assert message in str(caught.value)
    assert "conditions.it" in str(caught.value) or str(caught.value).startswith("Condition validation error: ")


WHEN_USED = [
    ({"get_param": "env"}, INVALID_DEFINITION, "a parameter that is no boolean"),
    ({"equals": [{"get_param": "nobody"}, 1]}, "The Parameter (nobody) was not provided", "an unknown parameter"),
    ({"yaql": {"expression": "1 + 1", "data": {}}}, "must be a boolean", "a query that gives a number"),
    ({"not": "nobodys"}, "The Parameter (nobody) was not provided", "a condition that uses one"),
]


@pytest.mark.parametrize(("definition", "message", "reason"), WHEN_USED, ids=[case[2] for case in WHEN_USED])
def test_refused_where_it_is_used(definition: Any, message: str, reason: str) -> None:
    conditions = {"it": definition, "nobodys": {"equals": [{"get_param": "nobody"}, 1]}, "yes": True}
    unused = template(parameters=PARAMETERS, conditions=conditions, resources={"r": resource(condition="yes")})
    assert compiled(unused).conditions == {"yes": True}
    used = template(parameters=PARAMETERS, conditions=conditions, resources={"r": resource(condition="it")})
    with pytest.raises(Rejected) as caught:
        compiled(used)
    assert message in str(caught.value)


def test_contains_came_later() -> None:
    with pytest.raises(Rejected, match='"contains" is invalid in this context'):
        conditions({"it": {"contains": ["a", {"get_param": "zones"}]}}, "2017-02-24")


def test_a_long_chain_of_conditions() -> None:
    chain: dict[str, Any] = {f"c{n}": {"not": f"c{n + 1}"} for n in range(3000)}
    found = conditions({**chain, "c3000": True})
    assert (found["c0"], found["c1"]) == (True, False)


def test_what_depends_on_conditions() -> None:
    found = compiled(
        template(
            parameters=PARAMETERS,
            conditions={"prod": {"equals": [{"get_param": "env"}, "prod"]}},
            resources={
                "main": resource(depends_on="spare", condition="prod"),
                "spare": resource(condition={"not": "prod"}),
                "never": resource({"bad": {"get_param": "nobody"}}, condition=False),
                "user": resource({"b": {"get_attr": ["spare", "x"]}}),
            },
            outputs={"a": {"value": {"get_attr": ["spare", "x"]}, "condition": {"not": "prod"}}, "b": {"value": 1}},
        )
    )
    assert list(found.definitions) == ["main", "user"]
    assert found.definitions["main"].requires == ()
    assert found.definitions["user"].properties == {"b": None}
    assert found.definitions["user"].static
    assert (found.outputs["a"].active, found.outputs["a"].value) == (False, None)
    assert found.outputs["b"].active


@pytest.mark.parametrize("section", ["resources", "outputs"])
def test_unknown_condition(section: str) -> None:
    entry = resource(condition="nobody") if section == "resources" else {"value": 1, "condition": "nobody"}
    with pytest.raises(Rejected) as caught:
        compiled({**template(), section: {"x": entry}})
    assert str(caught.value) == f'{section}.x.condition: Invalid condition "nobody"'


def test_what_depends_on_a_missing_value_is_looked_at() -> None:
    document = template(
        parameters={"flag": {"type": "boolean"}, "env": {"type": "string"}},
        conditions={"c": {"get_param": "flag"}, "d": {"not": {"equals": [{"get_param": "env"}, "x"]}}},
        resources={"r": resource({"a": {"if": ["d", {"get_param": "env"}]}}, condition="c")},
    )
    found = compiled(document, strict=False)
    assert found.conditions == {"c": True, "d": True}
    assert found.definitions["r"].properties == {"a": UNKNOWN}


def test_no_conditions_in_older_versions() -> None:
    with pytest.raises(Rejected) as caught:
        conditions({"it": True}, "2016-04-08")
    assert caught.value.fault == "InvalidTemplateSection"
    for keys in ({"condition": True}, {"external_id": "x"}):
        with pytest.raises(Rejected, match="Invalid keyword"):
            compiled(template("2016-04-08", resources={"r": resource(**keys)}))


UNKNOWN_PARTS = [
    ({"equals": [{"get_param": "net"}, []]}, False, "an empty list is no list with something in it"),
    ({"equals": [{"get_param": "net"}, [{"id": "a", "on": False}]]}, False, "what is known of an item differs"),
    ({"equals": [{"get_param": "net"}, [{"id": "a", "on": True}]]}, UNKNOWN, "it may be the same"),
    ({"and": [{"equals": [{"get_param": ["net", 0, "id"]}, "a"]}, False]}, False, "one of two does not hold"),
    ({"or": [{"equals": [{"get_param": ["net", 0, "id"]}, "a"]}, True]}, True, "one of two holds"),
    ({"equals": [{"get_param": ["net", 0, "on"]}, True]}, True, "the rest of a map with an unknown item"),
]


@pytest.mark.parametrize(("definition", "expected", "reason"), UNKNOWN_PARTS, ids=[case[2] for case in UNKNOWN_PARTS])
def test_what_is_known_of_a_value_decides(definition: Any, expected: Any, reason: str) -> None:
    document = template(
        parameters={"net": {"type": "json", "default": []}},
        conditions={"it": definition},
        resources={"r": resource({"a": {"if": ["it", 1, 2]}})},
    )
    found = compiled(document, parameters={"net": [{"id": UNKNOWN, "on": True}]}, strict=False)
    assert found.definitions["r"].properties == {"a": 1 if expected is not False else 2}
