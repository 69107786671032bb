"""Trees: what is folded while compiling, what waits, and what evaluation gives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.templates.template_cases import Built, compiled, resource, template

from homeostat.model.errors import Rejected
from homeostat.templates import UNKNOWN, Function, evaluate, is_dynamic, nodes, requires, traverse


def tree(properties: Any, version: str = "2018-08-31") -> Any:
    resources = {"it": resource(properties), "a": resource(), "b": resource()}
    parameters = {"p": {"type": "string", "default": "v"}}
    document = template(version, resources=resources, parameters=parameters)
    return compiled(document).definitions["it"].properties


A_IP = {"get_attr": ["a", "ip"]}
B_ID = {"get_resource": "b"}


def test_what_is_known_is_folded() -> None:
    found = tree({"x": [{"get_param": "p"}], "y": {"str_replace": {"template": "$", "params": {"$": "w"}}}})
    assert found == {"x": ["v"], "y": "w"}
    assert not is_dynamic(found)
    assert evaluate(found, Built()) is found


def test_a_snippet_without_functions_is_not_copied() -> None:
    given_properties = {"x": [1, {"y": 2}], "z": B_ID}
    found = tree(given_properties)
    assert found["x"] is given_properties["x"]
    assert evaluate(found, Built())["x"] is given_properties["x"]


def test_what_waits_is_a_node() -> None:
    found = tree({"x": {"list_join": [",", [A_IP, B_ID]]}, "y": 1})
    node = found["x"]
    assert isinstance(node, Function)
    assert node.path == ("resources", "it", "properties", "x", "list_join")
    assert node.requires() == requires(found) == {"a", "b"}
    assert [each.name for each in nodes(found)] == ["list_join", "get_attr", "get_resource"]
    assert evaluate(found, Built({"ip": "10.1"})) == {"x": "10.1,b-id", "y": 1}


def test_nodes_compare_by_what_they_say() -> None:
    assert tree({"x": A_IP}) == tree({"x": A_IP})
    assert tree({"x": A_IP})["x"] == tree({"y": A_IP})["y"]
    assert tree({"x": A_IP}) != tree({"x": {"get_attr": ["b", "ip"]}})


def test_unknown_goes_through_functions() -> None:
    found = tree({"x": {"list_join": [",", [A_IP, "c"]]}, "y": {"digest": ["md5", B_ID]}, "z": [B_ID], "w": 1})
    assert evaluate(found, Built(unknown=UNKNOWN)) == {"x": UNKNOWN, "y": UNKNOWN, "z": [UNKNOWN], "w": 1}


def test_what_does_not_fit_names_the_place() -> None:
    with pytest.raises(Rejected) as caught:
        evaluate(tree({"x": [{"list_join": [",", [A_IP]]}]}), Built({"ip": 5}))
    assert str(caught.value).startswith("resources.it.properties.x[0].list_join: ")


def test_shapes_are_checked_before_anything_exists() -> None:
    with pytest.raises(Rejected, match="must be of the form"):
        tree({"x": {"digest": ["md5", A_IP, "more"]}})


TRAVERSALS = [
    ({"a": [1, {"b": 2}]}, ["a", 1, "b"], 2, "maps and lists"),
    ({"a": [1]}, ["a", "0"], 1, "an index as text"),
    ({"5": "x"}, [5], "x", "a number as key"),
    ({"a": 1}, [], {"a": 1}, "no path"),
    ({"a": None}, ["a"], None, "null"),
    ({"a": 1}, ["b"], "-", "a missing key"),
    ([1], [1], "-", "a missing index"),
    ([1], ["x"], "-", "a key in a list"),
    ("text", [0], "-", "into text"),
    (None, ["a"], "-", "into null"),
]


@pytest.mark.parametrize(("value", "path", "expected", "reason"), TRAVERSALS, ids=[case[3] for case in TRAVERSALS])
def test_traverse(value: Any, path: list[Any], expected: Any, reason: str) -> None:
    assert traverse(value, path, missing="-") == expected


LEAVES = st.none() | st.integers() | st.text("ab", max_size=3) | st.sampled_from([A_IP, B_ID, {"get_param": "p"}])
SNIPPETS = st.recursive(
    LEAVES,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(["k", "l", "m"]), each, max_size=3),
)


def resolved(snippet: Any) -> Any:
    """What a snippet means, said in the most direct way."""
    for known, value in ((A_IP, "10.1"), (B_ID, "b-id"), ({"get_param": "p"}, "v")):
        if snippet == known:
            return value
    if isinstance(snippet, dict):
        return {key: resolved(value) for key, value in snippet.items()}
    return [resolved(item) for item in snippet] if isinstance(snippet, list) else snippet


@given(st.dictionaries(st.sampled_from(["x", "y"]), SNIPPETS))
def test_evaluation_is_what_the_snippet_means(properties: dict[str, Any]) -> None:
    found = tree(properties)
    assert evaluate(found, Built({"ip": "10.1"})) == resolved(properties)
    text = repr(properties)
    assert requires(found) == {name for name, mark in (("a", "get_attr"), ("b", "get_resource")) if mark in text}
