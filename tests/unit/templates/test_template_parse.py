"""Text -> plain data: what is read, what is refused, and that nothing else can happen."""

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.model.errors import Rejected
from homeostat.templates import parse_environment, parse_template

READ = [
    ('{"a": 1, "a": 2}', {"a": 2}, "JSON; the last of two equal keys wins"),
    ("a: 1\na: 2", {"a": 2}, "YAML; the last of two equal keys wins"),
    ("v: 2018-08-31", {"v": "2018-08-31"}, "a date stays text"),
    ("v: 2001-12-14 21:59:43.10 -5", {"v": "2001-12-14 21:59:43.10 -5"}, "a time stays text"),
    ("v: [yes, Off, true, ~, null, '']", {"v": [True, False, True, None, None, ""]}, "booleans and nulls of YAML 1.1"),
    ("v: [010, 0x10, 1_000, 1:30, 1.5]", {"v": [8, 16, 1000, 90, 1.5]}, "numbers of YAML 1.1"),
    ("yes: 1\n80: 2\n~: 3\n1.50: 4", {"yes": 1, "80": 2, "~": 3, "1.50": 4}, "keys are text as written"),
    ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}, "an alias stands for what it names"),
    ("a: &x {k: 1, l: 1}\nb: {<<: *x, k: 2}", {"a": {"k": 1, "l": 1}, "b": {"k": 2, "l": 1}}, "own keys beat merged"),
    ("x: &x {k: 1}\ny: &y {k: 2, m: 3}\nb: {<<: [*x, *y]}", {"k": 1, "m": 3}, "the first of two merged maps wins"),
    ('b: {"<<": 1}', {"b": {"<<": 1}}, "a quoted << is a key like any other"),
    ("a: &k key\n*k : 1", {"a": "key", "key": 1}, "an alias may be a key"),
    ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}, "an anchor may be used again"),
    ("a: |\n  line\n  two\n", {"a": "line\ntwo\n"}, "block text"),
    ("a: !!str 5\nb: ! 5\nc: !!int '7'", {"a": "5", "b": 5, "c": 7}, "explicit tags of JSON types"),
    ("a: '\u00e9\U0001f600'", {"a": "\u00e9\U0001f600"}, "any character"),
    ("\ufeffa: 1".encode(), {"a": 1}, "a byte order mark is no content"),
]


@pytest.mark.parametrize(("text", "expected", "reason"), READ, ids=[case[2] for case in READ])
def test_reads(text: str, expected: Any, reason: str) -> None:
    document = parse_template(text)
    assert (document["b"] if reason.startswith("the first of two merged") else document) == expected


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
REFUSED = [
    ("a: [1,", "line 2, column 1", "broken YAML names the place"),
    ("a: 1\nb: *nowhere", "alias nowhere is not defined (line 2, column 4)", "an unknown alias"),
    ("a: &x [*x]", "stands for what contains it (line 1, column 8)", "an alias of itself"),
    ("a: 1\n---\nb: 2", "single document (line 2", "two documents"),
    ("a: {<<: 3}", "<< takes a map", "merging a number"),
    ("{a: 1}: 2", "cannot be a key", "a map as key"),
    ("a: !!binary aGk=", "cannot be read as", "a tag beyond JSON"),
    ("a: !!python/object:os.system x", "cannot be read as", "a tag of the library's own"),
    ("a: !!set {x}", "is not supported", "a collection tag beyond JSON"),
    ("a: !!int x", "is not a number", "a number that is none"),
    ("a: " + "9" * 5000, "is not a number", "a number of thousands of digits"),
    ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit", "the same in JSON"),
    ("a: \x00", "control characters", "a control character"),
    (b"a: \xff", "can't decode byte 0xff", "bytes that are not UTF-8"),
    ('{"a": "\\ud800"}', "surrogates not allowed", "half a character"),
    ("", "but empty", "nothing"),
    ("- a", "but of type list", "a list"),
    ("[1]", "but of type list", "a JSON list"),
    ("[" * 200_000, "not in valid format", "brackets without end"),
    ("- " * 200_000, "more than 100 levels", "dashes without end"),
    ('{"a":' * 50_000, "not in valid format", "braces without end"),
    ("a: " + "[" * 100 + "]" * 100, "more than 100 levels", "just too deep"),
    ('{"a": ' + "[" * 101 + "]" * 101 + "}", "more than 100 levels", "just too deep in JSON"),
    (BOMB, "more than 1000000 values", "aliases that multiply"),
]


@pytest.mark.parametrize(("text", "message", "reason"), REFUSED, ids=[case[2] for case in REFUSED])
def test_refuses(text: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        parse_template(text)
    assert caught.value.fault == "HTTPBadRequest"
    assert message in str(caught.value)


def test_size_is_limited() -> None:
    with pytest.raises(Rejected) as caught:
        parse_template("a: " + "x" * 100, size_max=50)
    assert caught.value.fault == "RequestLimitExceeded"
    assert "Template size (103 characters) exceeds maximum allowed size (50 characters)" in str(caught.value)


def test_a_mapping_is_read_as_it_is_but_not_without_bounds() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    assert parse_template({"a": [1]}) == {"a": [1]}
    with pytest.raises(Rejected, match="nested more than 100 levels"):
        parse_template({"a": deep})


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab:#-\n\t '\"\u00e9\U0001f600\x07", max_size=8),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text("abc~1y", max_size=3), each, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text("abc", max_size=3), PLAIN, max_size=4), st.sampled_from([True, False, None]))
def test_what_was_written_is_read(document: dict[str, Any], flow: bool | None) -> None:
    assert parse_template(json.dumps(document)) == document
    assert parse_template(yaml.safe_dump(document, default_flow_style=flow, allow_unicode=True)) == document


YAMLISH = st.text("ab:-[]{}&*!<>|'\"#%~ \n\t0,?", max_size=60)


@given(st.binary(max_size=200) | YAMLISH | st.text(max_size=60))
@settings(max_examples=500)
def test_any_input_is_a_map_or_rejected(source: str | bytes) -> None:
    with contextlib.suppress(Rejected):
        assert isinstance(parse_template(source), dict)


ENVIRONMENTS = [
    (None, {}, "none given"),
    ("", {}, "empty text"),
    ("parameters: {a: 1}", {"parameters": {"a": 1}}, "YAML"),
    ('{"parameter_defaults": {}}', {"parameter_defaults": {}}, "JSON"),
    ({"resource_registry": {"A": "B"}}, {"resource_registry": {"A": "B"}}, "a map"),
]


@pytest.mark.parametrize(("source", "expected", "reason"), ENVIRONMENTS, ids=[case[2] for case in ENVIRONMENTS])
def test_environment(source: Any, expected: Any, reason: str) -> None:
    assert parse_environment(source) == expected


WRONG_ENVIRONMENTS = [
    ("params: {}", 'environment has wrong section "params"', "an unknown section"),
    ("parameters:", 'environment has empty section "parameters"', "a null section"),
    ("parameters: [a]", 'environment section "parameters" must be a map', "a list for a map"),
    ("event_sinks: {}", 'environment section "event_sinks" must be a list', "a map for a list"),
    ("[1]", "not a JSON object or YAML mapping", "no map"),
    ("a: [", "line 2, column 1", "broken"),
]


@pytest.mark.parametrize(
    ("source", "message", "reason"), WRONG_ENVIRONMENTS, ids=[case[2] for case in WRONG_ENVIRONMENTS]
)
def test_wrong_environment(source: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected, match="Environment not in valid format") as caught:
        parse_environment(source)
    assert message in str(caught.value)
    assert caught.value.code == 400
