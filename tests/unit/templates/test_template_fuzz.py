"""Whole templates made at random, in every version of the language: nothing but an error of ours comes of them.

`make fuzz` walks many more of them than the other targets do.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.templates.template_cases import IDENTITY, Built

from homeostat.model.errors import Rejected
from homeostat.services.pipeline.checking import check
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    UNKNOWN,
    Compiled,
    compile_template,
    evaluate,
    parse_environment,
    parse_template,
    requires,
    validate_shape,
)
from homeostat.templates.functions import TABLES
from homeostat.templates.versions import HOT_KEY, VERSIONS, Version

T = TypeVar("T")
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.text("ab,$.%/:1\u00e9\x00 ", max_size=5) | NAMES | st.sampled_from(["OS::stack_name", "AWS::StackName", "1"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 10**6) | st.floats(allow_nan=False, width=16) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3), max_leaves=5
)
EXPRESSIONS = st.sampled_from(["$.data", "$.data.a", "$.data.len()", "$.data.select($)", "dict($.data)", "1 +", "'a'"])
SHAPES: dict[str, Callable[[st.SearchStrategy[Any]], st.SearchStrategy[Any]]] = {
    "repeat": lambda each: st.fixed_dictionaries(
        {"template": each, "for_each": st.dictionaries(NAMES, each, max_size=2)}, optional={"permutations": each}
    ),
    "yaql": lambda each: st.fixed_dictionaries({"expression": EXPRESSIONS, "data": each}),
    "make_url": lambda each: st.dictionaries(st.sampled_from(["scheme", "host", "port", "path", "query"]), each),
    "map_replace": lambda each: st.tuples(each, st.fixed_dictionaries({}, optional={"keys": each, "values": each})).map(
        list
    ),
    **dict.fromkeys(
        ("str_replace", "str_replace_strict", "str_replace_vstrict"),
        lambda each: st.fixed_dictionaries({"template": each, "params": st.dictionaries(TEXTS, each, max_size=2)}),
    ),
}
"""What the arguments of some functions look like; of the others they are texts and lists."""


def snippets(version: Version) -> st.SearchStrategy[Any]:
    """Values with calls of all functions that any version of the key has, some of them shaped as they should be."""
    names = sorted({entry.name for entry in TABLES[version.key]})

    def calls(each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        def call(name: str) -> st.SearchStrategy[Any]:
            usual = SHAPES[name](each) if name in SHAPES else NAMES | st.lists(each, min_size=1, max_size=3)
            return (usual | each).map(lambda arguments: {name: arguments})

        return st.sampled_from(names).flatmap(call)

    return st.recursive(
        SCALARS,
        lambda each: calls(each) | st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=2),
        max_leaves=6,
    )


def rarely(wrong: st.SearchStrategy[Any], usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 15).flatmap(lambda number: wrong if number == 15 else usual)


CONSTRAINTS: list[Any] = [
    {"length": {"min": 0, "max": 5}},
    {"range": {"min": -1}},
    {"modulo": {"step": 2, "offset": 0}},
    {"allowed_values": ["a", "1", 1, True]},
    {"allowed_pattern": "[a-z1]*"},
    {"custom_constraint": "ip_addr", "description": "an address"},
]
DEFAULTS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "number": st.integers() | st.sampled_from(["1", "2.5"]),
    "comma_delimited_list": st.lists(TEXTS) | st.just("a,b"),
    "json": st.dictionaries(TEXTS, VALUES, max_size=2) | st.just("[1]"),
    "boolean": st.booleans() | st.just("yes"),
}
CFN_TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}


def parameters(version: Version) -> st.SearchStrategy[Any]:
    if version.key == HOT_KEY:
        more: dict[str, Any] = {
            "constraints": rarely(st.lists(st.sampled_from(CONSTRAINTS), max_size=2), st.just([])),
            "hidden": rarely(SCALARS, st.booleans()),
        }
        if version.date >= "2018":
            more["tags"] = rarely(VALUES, st.lists(TEXTS))
    else:
        more = {word: rarely(SCALARS, st.just(None)) for word in ("MinLength", "MaxValue", "AllowedPattern", "NoEcho")}
    type_word, default_word = ("type", "default") if version.key == HOT_KEY else ("Type", "Default")

    def of(kind: str) -> st.SearchStrategy[Any]:
        usual = {type_word: st.just(kind if version.key == HOT_KEY else CFN_TYPES[kind])}
        return st.fixed_dictionaries(usual | {default_word: rarely(VALUES, DEFAULTS[kind])}, optional=more)

    return st.sampled_from(sorted(DEFAULTS)).flatmap(of)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A template: most of it is as it should be, so that most checks are reached."""
    version = draw(st.sampled_from(VERSIONS))
    words = version.dialect
    snippet = snippets(version)
    types = st.sampled_from(["OS::Heat::TestResource", "OS::Heat::None", "OS::Heat::ResourceGroup", "inner.yaml"])
    optional: dict[str, st.SearchStrategy[Any]] = {
        words.word("resources", "properties"): st.dictionaries(NAMES | st.sampled_from(["value", "count"]), snippet)
        | snippet,
        words.word("resources", "metadata"): snippet,
        words.word("resources", "depends_on"): rarely(NAMES | st.lists(NAMES), st.just([])),
        words.word("resources", "deletion_policy"): rarely(snippet, st.sampled_from(["Delete", "Retain", "retain"])),
        words.word("resources", "condition"): rarely(NAMES | snippet, st.booleans()),
    }
    known = set(words.resource)
    resource = st.fixed_dictionaries(
        {words.word("resources", "type"): rarely(VALUES, types)},
        optional={key: value for key, value in optional.items() if key in known},
    )
    output = st.fixed_dictionaries({words.word("outputs", "value"): snippet})

    def section(entries: st.SearchStrategy[Any]) -> Any:
        return draw(rarely(VALUES, st.dictionaries(NAMES, entries, max_size=3)))

    document = {
        version.key: version.date,
        words.word("parameters"): section(parameters(version)),
        words.word("conditions"): section(rarely(NAMES | snippet, st.booleans())),
        words.word("mappings"): section(VALUES),
        words.word("resources"): section(rarely(VALUES, resource)),
        words.word("outputs"): section(rarely(VALUES, output)),
    }
    return {key: content for key, content in document.items() if key in words.sections}


GIVEN = rarely(st.dictionaries(NAMES, VALUES, max_size=3), st.just({}))
FILES = {"a": "text", "inner.yaml": "heat_template_version: rocky\nparameters: {a: {type: string, default: x}}"}


def compiled(document: Any, given: Any, strict: bool) -> Compiled | None:
    """None where it is refused; any other error is the failure that is looked for."""
    environment = {"parameter_defaults": given}
    return refusable(compile_template, document, identity=IDENTITY, environment=environment, files=FILES, strict=strict)


def refusable(act: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
    """What it gives, None where it refuses with a text."""
    refused = None
    try:
        return act(*arguments, **named)
    except Rejected as error:
        refused = error
    assert str(refused)
    assert 400 <= refused.code < 500
    return None


@pytest.mark.heavy
@SLOW
@given(documents(), GIVEN, st.booleans(), VALUES)
def test_any_template_is_compiled_and_evaluated_or_refused(
    document: dict[str, Any], given: dict[str, Any], strict: bool, attribute: Any
) -> None:
    found = compiled(document, given, strict)
    if found is None:
        return
    json.dumps(validate_shape(found), default=hidden)
    assert set(found.resource_order) == set(found.definitions)
    for tree in [
        *(part for each in found.definitions.values() for part in (each.properties, each.metadata)),
        *(each.value for each in found.outputs.values()),
    ]:
        assert requires(tree) <= set(found.definitions)
        json.dumps(
            refusable(evaluate, tree, Built({"a": attribute, "b": [attribute, None], "c": None})), default=hidden
        )


def hidden(value: Any) -> str:
    """The one thing that is no plain data: a parameter that was not given, where that is allowed."""
    assert value is UNKNOWN
    return "unknown"


@pytest.mark.heavy
@SLOW
@given(documents(), GIVEN)
def test_a_template_that_is_right_is_right_without_values_too(document: dict[str, Any], given: dict[str, Any]) -> None:
    """And its resources are checked or refused."""
    found = compiled(document, given, True)
    if found is None:
        return
    assert compiled(document, {}, False) is not None
    graph = refusable(check, found, Content("template", document, files=FILES)) or {}
    assert all(set(each.requires) <= graph.keys() for each in graph.values())


@pytest.mark.heavy
@SLOW
@given(documents(), GIVEN)
def test_text_and_what_was_read_from_it_mean_the_same(document: dict[str, Any], given: dict[str, Any]) -> None:
    expected = compiled(document, given, True)
    for text in (json.dumps(document), yaml.safe_dump(document, allow_unicode=True)):
        again = compiled(text, given, True)
        assert (again is None) is (expected is None)
        if again is not None and expected is not None:
            assert again.definitions == expected.definitions
            assert again.outputs == expected.outputs
            assert again.raw == parse_template(json.dumps(again.raw))


SAMPLES = [
    "heat_template_version: 2018-08-31\nparameters: {a: {type: string, default: x}}\nresources:\n  r: {type: "
    "'OS::Heat::TestResource', properties: {value: {list_join: ['-', [{get_param: a}, &x b, *x]]}}}\n",
    '{"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"r": {"Type": "OS::Heat::TestResource", "Properties": '
    '{"value": {"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}]]}}}}}',
    "parameters: {a: b}\nparameter_defaults:\n  c: [1, 2]\nresource_registry:\n  'A::B': c.yaml\n",
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sample with some bytes changed, added, taken away or doubled."""
    text = bytearray(draw(st.sampled_from(SAMPLES)).encode())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(text) - 1, 0)))
        length = draw(st.integers(0, 8))
        text[place : place + length] = draw(st.binary(max_size=3) | st.just(bytes(text[place : place + length]) * 2))
    return bytes(text)


@SLOW
@given(damaged() | st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(source: bytes) -> None:
    for read in (parse_template, parse_environment):
        assert isinstance(refusable(read, source), dict | None)
    compiled(source, {}, False)
