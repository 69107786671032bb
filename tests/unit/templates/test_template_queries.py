"""The function `yaql`: what it gives, and that no expression takes long, much, or gives another value tomorrow."""

import concurrent.futures
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.templates.template_cases import LATEST, Built, compiled, template, value_of

from homeostat.model.errors import Rejected
from homeostat.templates import tree, yaql_engine

DATA = {"list": [3, 1, 2], "map": {"a": 1, "b": [1, 2]}, "text": "abc", "none": None, "empty": []}


def query(expression: Any, data: Any = DATA, **options: Any) -> Any:
    return value_of({"yaql": {"expression": expression, "data": data}}, **options)


GIVES = [
    ("$.data.list.max()", 3, "a number"),
    ("$.data.list.select($ + 1)", [4, 2, 3], "a list, not a generator"),
    ("$.data.map", {"a": 1, "b": [1, 2]}, "a map"),
    ("$.data.map.keys()", ["a", "b"], "keys"),
    ("$.data.map.items()", [["a", 1], ["b", [1, 2]]], "pairs are lists"),
    ("$.data.list.orderBy($)", [1, 2, 3], "in order"),
    ("$.data.list.toSet()", [1, 2, 3], "a set is a list, in order"),
    ("set(c, b, a).toList()", ["a", "b", "c"], "a set is walked through in order"),
    ("set(c, b).union(set(a))", ["a", "b", "c"], "also one made of others"),
    ("str(set(c, b, a))", "{'a', 'b', 'c'}", "also as text"),
    ("dict($.data.list.select([str($), $ * 2]))", {"3": 6, "1": 2, "2": 4}, "a map made of pairs"),
    ("{1 => 2, true => 3.5}", {"1": 3.5}, "keys are texts"),
    ("$.data.list.groupBy($ mod 2)", [[1, [3, 1]], [0, [2]]], "groups"),
    ("$.data.map.mergeWith({a => 2})", {"a": 2, "b": [1, 2]}, "maps merged"),
    ("coalesce($.data.none, 7)", 7, "something instead of null"),
    ("switch(1 > 2 => a, true => b)", "b", "a choice"),
    ("let(x => 5) -> $x + 1", 6, "a variable"),
    ("def(f, $ + 1) -> f(2)", 3, "a function"),
    ("$.data.list.where($ > 1).select({v => $})", [{"v": 3}, {"v": 2}], "some of them, in another form"),
    ("'a-b'.split('-')", ["a", "b"], "split"),
    ("'abc'.replace({a => x, b => y})", "xyc", "replaced by a map"),
    ("'aXa'.replace(a, b, 1)", "bXa", "replaced once"),
    ("pow(2, 10)", 1024, "a power"),
    ("[1, 2] * 2", [1, 2, 1, 2], "a list repeated"),
    ("regex('a(.)').replace('xab', '<\\\\1>')", "x<b>", "replaced by an expression"),
    ("'a1b2c'.split(regex('[0-9]'))", ["a", "b", "c"], "split by an expression"),
    ("regex('[a-z]').searchAll('a1b')", ["a", "b"], "all that match"),
    ("regex('B', ignoreCase => true).search('abc')", "b", "the first that matches"),
    ("'abc' =~ 'b.' and 'abc' !~ '^b' and 'abc'.matches(c)", True, "operators of expressions"),
    ("$.data.none", None, "null"),
    ("str(datetime('2020-01-01'))", "2020-01-01 00:00:00+00:00", "dates, as text"),
]


@pytest.mark.parametrize(("expression", "expected", "reason"), GIVES, ids=[case[2] for case in GIVES])
def test_gives(expression: str, expected: Any, reason: str) -> None:
    value = query(expression)
    assert value == expected
    assert type(value) is type(expected)


def test_data_from_other_functions() -> None:
    assert query("$.data.zones.select($ + '1')", {"zones": {"get_param": "zones"}}) == ["a1", "b1", "c1"]
    late = query("$.data.x.lan.first()", {"x": {"get_attr": ["other", "nets"]}})
    assert late == "10.0.0.5"


def test_in_a_condition() -> None:
    def enabled(version: str) -> list[str]:
        condition = {"yaql": {"expression": "$.data.len() > 2", "data": {"get_param": "zones"}}}
        parameters = {"zones": {"type": "comma_delimited_list", "default": "a,b,c"}}
        resources = {"r": {"type": "OS::Heat::TestResource", "condition": "c"}}
        document = template(version, parameters=parameters, conditions={"c": condition}, resources=resources)
        return list(compiled(document).definitions)

    assert enabled("2017-09-01") == ["r"]
    with pytest.raises(Rejected, match='"yaql" is invalid in this context'):
        enabled("2016-10-14")


REFUSES = [
    ("$.data.nothing", "there is no key 'nothing'", "a missing key"),
    ("$.data.list[9]", "there is no such item", "a missing item"),
    ("$.data.empty.first()", "there is no such item", "the first of nothing"),
    ("nothing()", 'Unknown function "nothing"', "an unknown function"),
    ("$.data.list.nothing()", 'Unknown method "nothing"', "an unknown method"),
    ("1 / 0", "by zero", "a division by zero"),
    ("1 + a", "No function", "what cannot be added"),
    ("1 +", "cannot be read", "half an expression"),
    ("$.data.^", "cannot be read", "a wrong letter"),
    ("", "cannot be read", "nothing"),
    ("datetime('2020-01-01')", "turn it into text", "a date"),
    ("float(inf)", "not finite", "a number without end"),
    ("{null => 2}", "a key that is no text", "a key that is null"),
    ({"a": 1}, 'The "expression" of "yaql" must be a string', "no text"),
    # What gives something else each time, or elsewhere.
    ("now()", "Unknown function", "the clock"),
    ("random()", "Unknown function", "chance"),
    ("call(now, [], {})", "Unknown function", "the clock by another way"),
    ("localtz()", "Unknown function", "the machine's place"),
    # What reaches for the program.
    ("$.__class__", "cannot be read", "the inside of objects"),
    ("$.data.text.format()", "No method", "formats"),
]
HOSTILE = [
    ("range(200).select(range(200).select(range(200).select(range(200))))", "more than 10000 steps", "loops in loops"),
    ("def(f, f() + f()) -> f()", "nested too deeply", "a function that calls itself"),
    ("def(f, switch($ < 2 => 1, true => f($ - 1) + f($ - 2))) -> f(30)", "more than 10000 steps", "twice itself"),
    ("range(40).aggregate([$1, $1], [1])", "parts and characters", "a list that doubles"),
    ("range(40).aggregate({a => $1, b => $1}, 1)", "parts and characters", "a map that doubles"),
    ("str(range(40).aggregate([$1, $1], [1]))", "parts and characters", "its text"),
    ("range(40).aggregate([$1, $1], [1]).distinct()", "parts and characters", "its hash"),
    ("range(150).aggregate([$1], 1)", "levels deep", "a list that deepens"),
    ("range(150).aggregate($1 * $1, 9)", "too much memory", "a number that squares"),
    ("range(150).aggregate($1 + $1, abc)", "too much memory", "a text that doubles"),
    ("pow(10, 1000000000)", "too much memory", "a power"),
    ("shiftBitsLeft(1, 1000000000000)", "too much memory", "a shift"),
    ("abc * 1000000", "too much memory", "a text repeated"),
    ("[1] * 1000000000", "too much memory", "a list repeated"),
    ("1000000000 * [1]", "too much memory", "repeated a list"),
    ("('a' * 5000).replace(a, 'b' * 5000)", "too much memory", "a replacement"),
    ("('a' * 90).replace({a => 'a' * 90, aa => 'a' * 90})", "too much memory", "replacements of replacements"),
    ("regex(a).replace('a' * 5000, 'b' * 5000)", "too much memory", "a replacement by an expression"),
    ("sequence().last()", "exceeds 200", "a list without end"),
    ("(1).repeat().toList()", "exceeds 200", "the same without end"),
    ("$.data.list.cycle().toList()", "exceeds 200", "round and round"),
    ("range(100000000).toList()", "exceeds 200", "a long list"),
    ("x.join(range(100000000))", "exceeds 200", "a long list joined"),
    ("generate(0, true, $ + 1).last()", "exceeds 200", "numbers without end"),
    ("regex('(a|aa)+$').matches('a' * 3000 + b)", "too complicated", "an expression that goes back and forth"),
    ("regex('((a{1000}){1000}){1000}')", "too complicated", "an expression too large"),
    ("1" + " + 1" * 3000, "longer than 10000", "a long expression"),
    ("(" * 4000 + "1" + ")" * 4000, "nested too deeply|cannot be read", "deep brackets"),
]


@pytest.mark.parametrize(("expression", "message", "reason"), REFUSES, ids=[case[2] for case in REFUSES])
def test_refuses(expression: Any, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        query(expression)
    assert str(caught.value).startswith("outputs.it.value.yaql: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(("expression", "message", "reason"), HOSTILE, ids=[case[2] for case in HOSTILE])
def test_is_bounded(expression: str, message: str, reason: str) -> None:
    """Without the bound each of these takes all memory, or longer than a life."""
    with pytest.raises(Rejected, match=message):
        query(expression)


def test_an_error_does_not_repeat_all_of_the_data() -> None:
    with pytest.raises(Rejected, match='Unknown method "nothing"') as caught:
        query("$.data.nothing()", ["x" * 100] * 1000)
    assert len(str(caught.value)) < 1000


def test_many_queries_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"yaql": {"expression": "range(90).select($ + 1).len()", "data": {}}}
    assert value_of([call] * 9) == [90] * 9
    monkeypatch.setattr(tree, "QUERY_STEPS_MAX", 600)
    with pytest.raises(Rejected, match=r"outputs\.it\.value\[\d\]\.yaql: .* more than 600 steps together"):
        value_of([call] * 9)


SLOW = [
    ("range(199).select(range(199).select(range(199).select(1)))", "constants in loops in loops"),
    (
        "let(a => range(199).toList()) -> range(199).select($a.join($a, true, 1).len())",
        "pairs that are made by the million",
    ),
    ("let(a => range(199).toList()) -> range(199).select($a.join($a, false, 1).len())", "pairs that are all left out"),
    ("range(199).select(range(199).where(range(199).where(false).any()).any())", "items that are all left out"),
    ("range(199).select(($.data.one = $.data.two).len())", "values that are compared part by part"),
    ("range(199).select($.data.one.repeat(199).distinct().len())", "values that are hashed part by part"),
    (
        "range(199).select(range(199).where('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaac' =~ '(a|aa)+b'))",
        "matches",
    ),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("expression", "reason"), SLOW, ids=[case[1] for case in SLOW])
def test_no_expression_takes_long_with_few_steps(expression: str, reason: str) -> None:
    """A step is a tenth of a millisecond: these took up to a minute within as many steps."""
    heavy = [{"a": number, "b": [number] * 20} for number in range(199)]
    began = time.thread_time()
    with pytest.raises((Rejected, ValueError)):
        yaql_engine.evaluated(expression, {"one": heavy, "two": [dict(each) for each in heavy]})
    assert time.thread_time() - began < 8


def test_what_queries_take_once_resources_have_attributes_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all queries of the template together, and each counts once, however often it is evaluated."""
    call = {"yaql": {"expression": "range($.data).select($ + 1).len()", "data": {"get_attr": ["other", "size"]}}}
    resources = {"other": {"type": "OS::Heat::TestResource"}}
    built = compiled(template(LATEST, resources=resources, outputs={f"o{n}": {"value": call} for n in range(4)}))
    scope = Built({"size": 90})
    monkeypatch.setattr(tree, "QUERY_STEPS_MAX", 1000)
    for _ in range(3):
        assert [tree.evaluate(each.value, scope) for each in built.outputs.values()] == [90] * 4
    monkeypatch.setattr(tree, "QUERY_STEPS_MAX", 600)
    with pytest.raises(Rejected, match=r"outputs\.o0\.value\.yaql: .* more than 600 steps together"):
        tree.evaluate(built.outputs["o0"].value, scope)


def test_the_syntax_is_checked_before_the_data_is_known() -> None:
    snippet = {"yaql": {"expression": "$.data.(", "data": {"get_attr": ["other", "nets"]}}}
    resources = {"other": {"type": "OS::Heat::TestResource"}}
    with pytest.raises(Rejected, match=r"outputs\.it\.value\.yaql: the expression cannot be read"):
        compiled(template(LATEST, resources=resources, outputs={"it": {"value": snippet}}))


def test_many_threads_read_expressions_at_once() -> None:
    def work(number: int) -> Any:
        return yaql_engine.evaluated(f"$.data.select($ + {number}).sum() - {number}", [number, 1])[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(300))) == [2 * number + 1 for number in range(300)]


def test_sets_are_in_the_same_order_in_every_process() -> None:
    program = (
        "from homeostat.templates.yaql_engine import evaluated\n"
        "print(evaluated('$.data.toSet().select($ + x).toSet().toList()', [str(n) for n in range(50)]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_templates_without_queries_do_not_load_the_library() -> None:
    program = "import sys, homeostat.templates; assert 'yaql' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


WORDS = (
    "$ .data .list .map .a [0] .select( .where( ) ( + * 1 'a' range(3) .toList() .len() .sum() {a=>1} .keys() , => $x"
)
PIECES = st.sampled_from([*WORDS.split(), " and ", " not ", "let(x => 1) -> "])


@given(st.lists(PIECES, max_size=8).map("".join), st.sampled_from([DATA, Built, None, [], "x"]))
def test_any_expression_gives_plain_data_or_is_rejected(expression: str, data: Any) -> None:
    try:
        value = query(expression, None if data is Built else data)
    except Rejected:
        return
    assert_plain(value)


def assert_plain(value: Any) -> None:
    if isinstance(value, dict):
        assert type(value) is dict
        assert all(isinstance(key, str) for key in value)
        for item in value.values():
            assert_plain(item)
    elif isinstance(value, list):
        for item in value:
            assert_plain(item)
    else:
        assert value is None or type(value) in (str, int, float, bool)
