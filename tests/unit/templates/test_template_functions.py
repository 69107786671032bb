"""Each intrinsic function: what it gives, what it refuses, and from which version on."""

import contextlib
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.templates.template_cases import LATEST, Built, compiled, resource, template, value_of

from homeostat.model.errors import Rejected
from homeostat.templates import evaluate
from homeostat.templates.functions import ordinary_functions
from homeostat.templates.functions.strings import json_text
from homeostat.templates.versions import HOT_KEY

IP = {"get_attr": ["other", "ip"]}
LIVE = {"get_attr": ["other", "none"]}

GIVES = [
    # get_param
    ({"get_param": "name"}, "web", LATEST, "a parameter"),
    ({"get_param": "count"}, 3, LATEST, "a number is a number"),
    ({"get_param": "OS::stack_name"}, "shop", LATEST, "a pseudo parameter"),
    ({"get_param": "OS::project_id"}, "project-a", LATEST, "the project"),
    ({"get_param": ["tree", "a", 1, "b"]}, "deep", LATEST, "a path of keys and indices"),
    ({"get_param": ["tree", "a", "1", "b"]}, "deep", LATEST, "an index as text"),
    ({"get_param": ["zones", -1]}, "c", LATEST, "an index from the end"),
    ({"get_param": ["tree", "x"]}, "", LATEST, "a missing key is an empty text"),
    ({"get_param": ["zones", 9]}, "", LATEST, "a missing index is an empty text"),
    ({"get_param": ["name", "x"]}, "", LATEST, "a path into text is an empty text"),
    ({"get_param": ["tree", "n", "x"]}, "", LATEST, "a path into null is an empty text"),
    ({"get_param": ["tree", {"get_param": ["zones", 0]}, 0]}, 1, LATEST, "a path from another function"),
    ({"get_param": ["zones", {"str_split": [".", IP, 1]}]}, "a", LATEST, "a path that another resource tells"),
    # get_file, get_resource, get_attr
    ({"get_file": "run.sh"}, "echo $name", LATEST, "a file"),
    ({"get_resource": "other"}, "other-id", LATEST, "a reference"),
    (IP, "10.0.0.5", LATEST, "an attribute"),
    ({"get_attr": ["other", "nets", "lan", 0]}, "10.0.0.5", LATEST, "a path in an attribute"),
    ({"get_attr": ["other", "nets", "wan", 0]}, None, LATEST, "a path that leads nowhere is null"),
    ({"get_attr": ["other", "nets", {"get_param": ["tree", "x"]}]}, None, LATEST, "a path of an empty text"),
    ({"get_attr": ["other", "nets", LIVE]}, None, LATEST, "a path that is not known yet"),
    ({"get_attr": ["other", {"get_param": "OS::stack_name"}]}, None, LATEST, "an attribute it does not have"),
    ({"get_attr": ["other", "nets", "lan", "0"]}, "10.0.0.5", "2013-05-23", "a path followed afterwards"),
    # list_join
    ({"list_join": ["-", ["a", None, "b"]]}, "a--b", "2013-05-23", "null is an empty text"),
    ({"list_join": [",", None]}, "", "2013-05-23", "a null list is empty"),
    ({"list_join": [",", {"get_param": "zones"}]}, "a,b,c", "2013-05-23", "a list from a parameter"),
    ({"list_join": [",", ["a"], ["b"], None]}, "a,b", "2015-10-15", "several lists"),
    ({"list_join": [",", [{"b": 1, "a": [2]}]]}, '{"a": [2], "b": 1}', "2015-10-15", "maps as JSON, keys sorted"),
    ({"list_join": [":", [IP, "80"]]}, "10.0.0.5:80", LATEST, "waits for another resource"),
    # str_replace
    ({"str_replace": {"template": "$a-$ab", "params": {"$a": "1", "$ab": "2"}}}, "1-2", LATEST, "longest key first"),
    ({"str_replace": {"template": "ab", "params": {"a": "b", "b": "a"}}}, "ba", LATEST, "no second look"),
    ({"str_replace": {"template": "xyx", "params": {"x": None, "y": True}}}, "True", LATEST, "null and booleans"),
    ({"str_replace": {"template": "x", "params": {"x": 1.5, "y": 2}}}, "1.5", LATEST, "an absent key does not matter"),
    ({"str_replace": {"template": "x", "params": {"x": {"b": [1], "a": 2}}}}, '{"a": 2, "b": [1]}', LATEST, "JSON"),
    ({"str_replace": {"template": "aaa", "params": {"aa": "b"}}}, "ba", LATEST, "leftmost first"),
    ({"str_replace": {"template": "to $ip", "params": {"$ip": IP}}}, "to 10.0.0.5", LATEST, "another resource"),
    ({"str_replace_strict": {"template": "x", "params": {"x": ""}}}, "", LATEST, "strict lets empty values pass"),
    ({"str_replace_vstrict": {"template": "x", "params": {"x": 0}}}, "0", LATEST, "zero is not empty"),
    # str_split
    ({"str_split": [",", "a,b"]}, ["a", "b"], LATEST, "a list"),
    ({"str_split": [",", "a,b", 1]}, "b", LATEST, "an item"),
    ({"str_split": [",", "a,b", "-1"]}, "b", LATEST, "from the end, as text"),
    ({"str_split": [",", None]}, None, LATEST, "null stays null"),
    ({"str_split": [",", LIVE, 0]}, None, LATEST, "null that was not known before"),
    # digest
    ({"digest": ["md5", "x"]}, hashlib.md5(b"x").hexdigest(), LATEST, "any algorithm"),
    ({"digest": ["sha512", "\u00e9"]}, hashlib.sha512(b"\xe9").hexdigest(), LATEST, "in Latin-1"),
    # repeat
    ({"repeat": {"template": "%v%!", "for_each": {"%v%": ["a", "b"]}}}, ["a!", "b!"], "2015-04-30", "in text"),
    (
        {"repeat": {"template": {"%v%": ["%v%", 5, {"k": "%v%"}]}, "for_each": {"%v%": ["a"]}}},
        [{"a": ["a", 5, {"k": "a"}]}],
        LATEST,
        "in keys and everywhere within",
    ),
    (
        {"repeat": {"template": "xy", "for_each": {"x": ["1", "2"], "y": ["a", "b"]}}},
        ["1a", "1b", "2a", "2b"],
        LATEST,
        "all combinations, the last variable fastest",
    ),
    ({"repeat": {"template": "x", "for_each": {"x": None}}}, [], LATEST, "a null list gives nothing"),
    ({"repeat": {"template": "xy", "for_each": {"x": ["1"], "y": []}}}, [], LATEST, "an empty list empties all"),
    ({"repeat": {"template": "x", "for_each": {"x": {"k": 1, "l": 2}}}}, ["k", "l"], "2016-10-14", "keys of a map"),
    (
        {"repeat": {"template": "xy", "for_each": {"x": ["1", "2"], "y": ["a", "b"]}, "permutations": False}},
        ["1a", "2b"],
        "2017-09-01",
        "side by side",
    ),
    (
        {"repeat": {"template": {"port": "x", "to": IP}, "for_each": {"x": ["80"]}}},
        [{"port": "80", "to": "10.0.0.5"}],
        LATEST,
        "functions within the template",
    ),
    (
        {"repeat": {"template": "x", "for_each": {"get_attr": ["other", "each"]}}},
        ["u"],
        LATEST,
        "variables from outside",
    ),
    # maps
    ({"map_merge": [{"a": 1, "b": {"x": 1}}, None, {"b": {"y": 2}}]}, {"a": 1, "b": {"y": 2}}, LATEST, "shallow"),
    ({"map_merge": []}, {}, LATEST, "of nothing"),
    ({"map_merge": [{"a": IP}, {"b": 1}]}, {"a": "10.0.0.5", "b": 1}, LATEST, "values not known yet"),
    ({"map_merge": [{"get_attr": ["other", "nets"]}, {"b": 1}]}, {"lan": ["10.0.0.5"], "b": 1}, LATEST, "maps neither"),
    (
        {"map_replace": [{"a": "x", "b": 1, "c": [1]}, {"keys": {"a": "A"}, "values": {"x": "X", "1": "one"}}]},
        {"A": "X", "b": "one", "c": [1]},
        LATEST,
        "keys and values; lists stay",
    ),
    ({"map_replace": [None, {"keys": {"a": "b"}}]}, {}, LATEST, "a null map is empty"),
    ({"map_replace": [{"a": 1}, {"keys": {"a": "a"}}]}, {"a": 1}, LATEST, "a key renamed to itself"),
    ({"map_replace": [{"a": 1}, {"get_attr": ["other", "names"]}]}, {"A": 1}, LATEST, "names from outside"),
    # lists
    ({"list_concat": [["a"], None, [1, "a"]]}, ["a", 1, "a"], LATEST, "in order"),
    ({"list_concat_unique": [["a", {"x": 1}], ["b", "a", {"x": 1}]]}, ["a", {"x": 1}, "b"], LATEST, "first of each"),
    ({"list_concat_unique": [[1, True], [1.0, "1"]]}, [1, "1"], LATEST, "what is equal is the same"),
    ({"filter": [[1, {"a": [1]}], [1, "1", {"a": [1]}, {"a": 1}]]}, ["1", {"a": 1}], LATEST, "equal values go"),
    ({"filter": [[None, "b"], ["a", None, "b", "c"]]}, ["a", "c"], LATEST, "without the values"),
    ({"filter": [None, ["a"]]}, ["a"], LATEST, "no values"),
    ({"filter": [["a"], None]}, None, LATEST, "no list"),
    ({"contains": ["a", ["b", "a"]]}, True, LATEST, "in a list"),
    ({"contains": ["ell", "hello"]}, True, LATEST, "in a text"),
    ({"contains": [1, ["1"]]}, False, LATEST, "types count"),
    # make_url
    (
        {"make_url": {"scheme": "http", "host": "example.com", "path": "/a b"}},
        "http://example.com/a%20b",
        LATEST,
        "path",
    ),
    ({"make_url": {"scheme": "http", "host": "::1", "port": 80}}, "http://[::1]:80", LATEST, "IPv6"),
    ({"make_url": {"scheme": "http", "host": "[::1]", "port": "80"}}, "http://[::1]:80", LATEST, "IPv6 in brackets"),
    (
        {"make_url": {"scheme": "x", "username": "u@", "password": "p:/", "host": "h", "fragment": "f#"}},
        "x://u%40:p%3A%2F@h#f%23",
        LATEST,
        "user, password, fragment",
    ),
    ({"make_url": {"host": "h", "query": {"a": "1&2", "p": "/x"}}}, "//h?a=1%262&p=/x", LATEST, "query"),
    ({"make_url": {"scheme": "http", "host": IP, "port": None}}, "http://10.0.0.5", LATEST, "from elsewhere"),
    # if, and what is no function
    ({"if": [True, "a", {"get_resource": "nowhere"}]}, "a", LATEST, "the other branch is not looked at"),
    ([1, {"if": [False, 2]}, 3], [1, 3], LATEST, "an item that is omitted"),
    ({"a": 1, "b": {"if": [False, 2]}}, {"a": 1}, LATEST, "an entry that is omitted"),
    ({"if": [False, 2]}, None, LATEST, "a whole that is omitted"),
    ({"if": [{"equals": [{"get_param": "name"}, "web"]}, IP, None]}, "10.0.0.5", LATEST, "a branch with a function"),
    ({"if": [True, {"if": [False, 1]}, 2]}, None, LATEST, "an omission from within"),
    ({"get_param": "name", "x": 1}, {"get_param": "name", "x": 1}, LATEST, "two keys are plain data"),
    ({"equals": [1, 1]}, {"equals": [1, 1]}, LATEST, "condition functions are plain data outside conditions"),
    ({"a": None, "b": [None]}, {"a": None, "b": [None]}, LATEST, "null stays"),
]


@pytest.mark.parametrize(("snippet", "expected", "version", "reason"), GIVES, ids=[f"{c[0]}: {c[3]}" for c in GIVES])
def test_gives(snippet: Any, expected: Any, version: str, reason: str) -> None:
    attributes = {"ip": "10.0.0.5", "nets": {"lan": ["10.0.0.5"]}, "none": None}
    scope = Built({**attributes, "each": {"x": ["u"]}, "names": {"keys": {"a": "A"}}})
    assert value_of(snippet, version, scope) == expected


def test_all_attributes() -> None:
    assert value_of({"get_attr": ["other"]}, scope=Built({"a": 1, "b": 2})) == {"a": 1, "b": 2}


def test_the_oldest_version_does_not_give_the_resource_the_path() -> None:
    old, new = Built({"nets": {"lan": 1}}), Built({"nets": {"lan": 1}})
    snippet = {"get_attr": ["other", "nets", "lan"]}
    assert value_of(snippet, "2013-05-23", old) == value_of(snippet, "2014-10-16", new) == 1
    assert (old.asked, new.asked) == ([("other", "nets", [])], [("other", "nets", ["lan"])])


def test_resource_facade() -> None:
    facade = {"metadata": {"k": 1}, "deletion_policy": "Retain"}
    assert value_of({"resource_facade": "metadata"}, facade=facade) == {"k": 1}
    assert value_of({"resource_facade": "update_policy"}, facade=facade) is None


INVALID = "StackValidationFailed"
REFUSES = [
    (
        {"get_param": "nobody"},
        "UserParameterMissing",
        "The Parameter (nobody) was not provided. (the template does not declare it: do so",
        "unknown",
    ),
    ({"get_param": {"a": 1, "b": 2}}, INVALID, "must be a parameter name", "shape"),
    ({"get_param": ["name", None]}, INVALID, "Path components", "a null in the path"),
    ({"get_param": [5]}, INVALID, "parameter name", "a number as name"),
    ({"get_file": "x"}, INVALID, 'No content found in the "files" section for get_file path: x', "no such file"),
    ({"get_file": ["x"]}, INVALID, "must be a string", "shape"),
    ({"get_resource": "nobody"}, "InvalidTemplateReference", '"nobody" (in outputs.it.value)', "unknown"),
    ({"get_resource": ["other"]}, INVALID, "must be a resource name", "shape"),
    ({"get_resource": IP}, INVALID, "must be a resource name", "a name that is not known yet"),
    ({"get_attr": ["nobody", "a"]}, "InvalidTemplateReference", '"nobody" (in outputs.it.value)', "unknown"),
    ({"get_attr": "other"}, INVALID, "must be of the form [resource_name, (attribute)", "shape"),
    ({"get_attr": []}, INVALID, "must be of the form", "empty"),
    ({"get_attr": [IP, "a"]}, INVALID, "The resource name in", "a name that is not known yet"),
    ({"get_attr": ["other", None]}, INVALID, "Path components", "null"),
    ({"get_attr": ["other", {"get_attr": ["other", "nets"]}]}, INVALID, "Path components", "a map found out late"),
    ({"list_join": ",a"}, INVALID, "[delimiter, list, ...]", "shape"),
    ({"list_join": [1, ["a"]]}, INVALID, "delimiter", "a number as delimiter"),
    ({"list_join": [",", "abc"]}, INVALID, "joins lists", "text is no list"),
    ({"list_join": [",", [1]]}, INVALID, "not 1", "numbers are not joined"),
    ({"list_join": [",", [True]]}, INVALID, "not true", "booleans are not joined"),
    ({"list_join": [",", {"get_attr": ["other", "ip"]}]}, INVALID, "joins lists", "text found out late"),
    ({"str_replace": {"template": "x"}}, INVALID, '"template" and "params"', "shape"),
    ({"str_replace": {"template": None, "params": {}}}, INVALID, "must be a string", "null template"),
    ({"str_replace": {"template": "x", "params": ["x"]}}, INVALID, "must be a map", "params that are a list"),
    ({"str_replace": {"template": "x", "params": {"": "y"}}}, INVALID, "empty text", "an empty key"),
    ({"str_replace_strict": {"template": "x", "params": {"y": "1"}}}, INVALID, 'param "y"', "an absent key"),
    ({"str_replace_vstrict": {"template": "x", "params": {"x": []}}}, INVALID, "is empty", "an empty value"),
    ({"str_replace_vstrict": {"template": "x", "params": {"x": None}}}, INVALID, "is empty", "a null value"),
    ({"str_split": ["", "a"]}, INVALID, "delimiter", "an empty delimiter"),
    ({"str_split": [",", 5]}, INVALID, "splits a string", "a number"),
    ({"str_split": [",", "a", 3]}, INVALID, "no item 3 in 1", "out of range"),
    ({"str_split": [",", "a", "x"]}, INVALID, "not an integer", "a bad index"),
    ({"str_split": ["a"]}, INVALID, "[delimiter, string]", "shape"),
    ({"digest": ["nope", "a"]}, INVALID, "must be one of", "an unknown algorithm"),
    ({"digest": ["md5", 5]}, INVALID, "takes a string", "a number"),
    ({"digest": ["md5", "\u20ac"]}, INVALID, "Latin-1 only", "a character Latin-1 does not have"),
    ({"repeat": {"template": "x"}}, INVALID, '"template" and "for_each"', "shape"),
    ({"repeat": {"template": "x", "for_each": ["x"]}}, INVALID, "must be a map of variables", "no variables"),
    ({"repeat": {"template": "x", "for_each": {"x": "abc"}}}, INVALID, "must be a list", "text is no list"),
    ({"repeat": {"template": "x", "for_each": {"x": [{"a": 1}]}}}, INVALID, "must be strings", "items that are maps"),
    (
        {"repeat": {"template": "x", "for_each": {"x": ["a"], "y": []}, "permutations": False}},
        INVALID,
        "same length",
        "side by side, of different lengths",
    ),
    (
        {"repeat": {"template": "x", "for_each": {"x": {"a": 1}}, "permutations": False}},
        INVALID,
        "lists, not maps",
        "side by side, of maps",
    ),
    (
        {"repeat": {"template": "x", "for_each": {"x": []}, "permutations": "no"}},
        INVALID,
        "boolean",
        "a text for a flag",
    ),
    ({"map_merge": {"a": 1}}, INVALID, "must be a list of maps", "shape"),
    ({"map_merge": [{"a": 1}, [2]]}, INVALID, "merges maps, not [2]", "a list"),
    ({"map_replace": [{"a": 1}]}, INVALID, "[map, {keys: map, values: map}]", "shape"),
    ({"map_replace": [{"a": 1}, {"names": {}}]}, INVALID, "[map, {keys", "an unknown part"),
    ({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "b"}}]}, INVALID, '"b" would be there twice', "collision"),
    ({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "c", "b": "c"}}]}, INVALID, "twice", "two to the same"),
    ({"list_concat": [["a"], "b"]}, INVALID, 'takes lists, not "b"', "text"),
    ({"list_concat": "b"}, INVALID, "must be a list of lists", "shape"),
    ({"filter": [["a"]]}, INVALID, "[values, list]", "shape"),
    ({"filter": ["a", ["a"]]}, INVALID, "two lists", "text"),
    ({"contains": ["a"]}, INVALID, "[value, sequence]", "shape"),
    ({"contains": ["a", 5]}, INVALID, "searches a list or a string", "a number"),
    ({"contains": [5, "5"]}, INVALID, "not for 5", "a number in a text"),
    ({"make_url": "x"}, INVALID, "must be a map of", "shape"),
    ({"make_url": {"hostname": "x"}}, INVALID, 'does not know "hostname"', "an unknown part"),
    ({"make_url": {"scheme": "http:", "host": "h"}}, INVALID, "must not contain", "a colon in the scheme"),
    ({"make_url": {"host": "h", "port": 70000}}, INVALID, "1 to 65535", "port out of range"),
    ({"make_url": {"host": "h", "port": "x"}}, INVALID, "1 to 65535", "port that is no number"),
    ({"make_url": {"host": "h", "query": "a=1"}}, INVALID, "must be a map", "query as text"),
    ({"make_url": {"host": ["h"]}}, INVALID, "The host of", "a list as host"),
    ({"resource_facade": "metadata"}, INVALID, "needs a parent template", "no parent"),
    ({"resource_facade": "type"}, INVALID, "must be one of", "an unknown section"),
    ({"if": [True]}, INVALID, "[condition_name, value_if_true", "shape"),
    ({"if": ["nobody", 1, 2]}, INVALID, 'Invalid condition "nobody"', "an unknown condition"),
    ({"if": [5, 1, 2]}, INVALID, 'Invalid condition "5"', "a number as condition"),
    (
        {"if": [IP, 1, 2]},
        INVALID,
        'The function "get_attr" is invalid in this context',
        "conditions see parameters only",
    ),
    ({"digest": ["shake_128", "x"]}, "StackValidationFailed", "no fixed length", "a digest of any length"),
    ({"yaql": {"expression": "$"}}, "StackValidationFailed", 'keys "expression" and "data"', "a query without data"),
    ({"yaql": ["$", {}]}, "StackValidationFailed", 'keys "expression" and "data"', "a query in a list"),
]


@pytest.mark.parametrize(("snippet", "fault", "message", "reason"), REFUSES, ids=[f"{c[0]}: {c[3]}" for c in REFUSES])
def test_refuses(snippet: Any, fault: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        value_of(snippet)
    assert caught.value.fault == fault
    assert message in str(caught.value)
    assert "outputs.it.value" in str(caught.value)


BIG = {"get_param": "big"}
MULTIPLIERS = [
    ({"str_replace": {"template": "a" * 10_000, "params": {"a": BIG}}}, "a replacement for each of many keys"),
    ({"list_join": [BIG, ["", ""] * 1000]}, "a large delimiter"),
    ({"repeat": {"template": "x", "for_each": {f"v{n}": ["1"] * 10 for n in range(9)}}}, "combinations"),
    ({"repeat": {"template": "x" * 1000, "for_each": {"x": [BIG]}}}, "a large item for each of many variables"),
    ({"repeat": {"template": [BIG], "for_each": {"x": ["1"] * 1000}}}, "a large template"),
    ({"list_concat": [{"str_split": ["a", BIG]}] * 10}, "large lists"),
]


@pytest.mark.parametrize(("snippet", "reason"), MULTIPLIERS, ids=[case[1] for case in MULTIPLIERS])
def test_results_are_bounded(snippet: Any, reason: str) -> None:
    document: dict[str, Any] = {
        "parameters": {"big": {"type": "string", "default": "a" * 50_000}},
        "outputs": {"it": {"value": snippet}},
    }
    with pytest.raises(Rejected, match="would give"):
        compiled(template(**document))


TEXTS = st.text("ab$x", max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | TEXTS
ANY = st.recursive(
    SCALARS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(["a", "keys", "template"]), each),
    max_leaves=6,
)
NAMES = sorted(name for name, kind in ordinary_functions(HOT_KEY, LATEST).items() if isinstance(kind, type))
CALLS = st.builds(lambda name, arguments: {name: arguments}, st.sampled_from(NAMES), ANY)


@given(CALLS | st.builds(lambda name, call: {name: [call, call]}, st.sampled_from(NAMES), CALLS), ANY)
def test_any_arguments_give_a_value_or_are_rejected(snippet: Any, attribute: Any) -> None:
    with contextlib.suppress(Rejected):
        value_of(snippet, scope=Built({"a": attribute}))


WELL_TYPED: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        TEXTS
        | st.builds(lambda a, b: {"list_join": ["-", [a, b]]}, WELL_TYPED, WELL_TYPED)
        | st.builds(lambda t, a: {"str_replace": {"template": t, "params": {"$": a, "x": "y"}}}, WELL_TYPED, WELL_TYPED)
        | st.builds(lambda a, b, c: {"if": [c, a, b]}, WELL_TYPED, WELL_TYPED, st.booleans())
        | st.builds(lambda a: {"digest": ["sha256", a]}, WELL_TYPED)
        | st.builds(lambda a: {"str_split": ["b", a, 0]}, WELL_TYPED)
        | st.sampled_from([IP, {"get_param": "name"}, {"get_resource": "other"}])
    )
)


@pytest.mark.heavy
@given(WELL_TYPED)
def test_well_typed_snippets_have_a_value(snippet: Any) -> None:
    assert isinstance(value_of(snippet), str)


@given(ANY.filter(lambda value: not isinstance(value, dict)))
def test_json_text_is_stable(value: Any) -> None:
    assert value_of({"list_join": ["", [[value]]]}) == json_text([value])


PUT_OFF = [
    ({"str_split": [",", {"get_param": "tree"}]}, "str_split", "a wrong value"),
    ({"list_join": [",", {"get_param": "name"}]}, "list", "a text for a list"),
    ({"digest": [{"get_param": "name"}, "x"]}, "digest", "an algorithm that there is not"),
    ({"yaql": {"expression": "$.data.nothing()", "data": {"get_param": "tree"}}}, "Unknown method", "a query"),
    ({"get_param": "nobody"}, "The Parameter (nobody) was not provided", "a parameter that is not declared"),
    ({"a": [{"str_split": [",", {"get_param": ["nobody", 1]}]}]}, "(nobody) was not provided", "within others"),
    ({"list_join": ["x", 5]}, 'list_join: "list_join" joins lists, not 5', "a number in the template for a list"),
    ({"list_join": [",", [1]]}, "must be strings", "a number in the template for a text"),
    ({"str_replace": {"template": 5, "params": {}}}, "must be a string", "a number for a template"),
    ({"str_replace_strict": {"template": "x", "params": {"y": "1"}}}, 'param "y"', "a param that is not there"),
    ({"str_split": [",", "a", 3]}, "no item 3", "an index out of range"),
    ({"digest": ["nope", "a"]}, "must be one of", "the name of no algorithm"),
    ({"repeat": {"template": "x", "for_each": {"x": "abc"}}}, "must be a list", "a text to walk through"),
    ({"map_merge": [{"a": 1}, [2]]}, "merges maps", "a list to merge"),
    ({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "b"}}]}, "twice", "keys that collide"),
    ({"list_concat": [["a"], "b"]}, "takes lists", "a text among lists"),
    ({"filter": ["a", ["a"]]}, "two lists", "a text to leave out"),
    ({"contains": ["a", 5]}, "searches", "a number to search"),
    ({"make_url": {"host": "h", "port": 70000}}, "1 to 65535", "a port that there is not"),
    ({"get_file": "gone.txt"}, "gone.txt", "a file that did not come"),
    ({"resource_facade": "metadata"}, "needs a parent", "no parent"),
    ({"yaql": {"expression": "$.data.nothing()", "data": {}}}, "Unknown method", "a query of data in the template"),
    ({"list_join": ["", [{"list_join": ["x", 5]}]]}, "joins lists, not 5", "a wrong value within another call"),
]


@pytest.mark.parametrize(("snippet", "message", "reason"), PUT_OFF, ids=[case[2] for case in PUT_OFF])
def test_a_wrong_value_is_the_trouble_of_its_output_alone(snippet: Any, message: str, reason: str) -> None:
    parameters = {"name": {"type": "string", "default": "web"}, "tree": {"type": "json", "default": {"a": 1}}}
    outputs = {"wrong": {"value": snippet}, "right": {"value": {"get_param": "name"}}}
    found = compiled(template(parameters=parameters, outputs=outputs)).outputs
    assert found["right"].value == "web"
    with pytest.raises(Rejected) as caught:
        evaluate(found["wrong"].value, Built())
    assert message in str(caught.value)
    with pytest.raises(Rejected):
        compiled(template(parameters=parameters, resources={"r": resource({"value": snippet})}))


FORMS = [
    ({"list_join": ["x"]}, "[delimiter, list", "too few arguments"),
    ({"list_join": "x"}, "[delimiter, list", "a text for arguments"),
    ({"str_replace": {"template": "x"}}, '"template" and "params"', "a key that is not there"),
    ({"str_replace": {"template": "x", "params": ["x"]}}, "must be a map", "params that are no map"),
    ({"repeat": {"template": "x", "for_each": ["x"]}}, "map of variables", "variables that are no map"),
    ({"str_split": ["a"]}, "[delimiter, string]", "one argument"),
    ({"make_url": {"hostname": "x"}}, "does not know", "an unknown part"),
    ({"resource_facade": "type"}, "must be one of", "an unknown section"),
    ({"yaql": {"expression": "$.(", "data": {}}}, "yaql", "an expression that cannot be read"),
    ({"get_resource": "nobody"}, "is incorrect", "an unknown resource"),
]


@pytest.mark.parametrize(("snippet", "message", "reason"), FORMS, ids=[case[2] for case in FORMS])
def test_a_wrong_form_is_refused_in_outputs_too(snippet: Any, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        compiled(template(outputs={"wrong": {"value": snippet}}))
    assert message in str(caught.value)
