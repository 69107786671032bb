"""What a small template could do to the service, and how it is told instead. Without its bound each of these would
take gigabytes or hours; so a test that ends has seen the bound."""

import json
from typing import Any

import pytest
from tests.unit.templates.template_cases import LATEST, Built, compiled, template, value_of

from homeostat.model.errors import Rejected
from homeostat.templates import evaluate, parse_environment, parse_template, tree
from homeostat.templates.functions.strings import ITEMS_MAX, TEXT_MAX

BIG = {"get_param": "big"}
CHARACTERS = [f"%{number:05}" for number in range(20_000)]


def made(snippet: Any, big: Any = "a," * 50_000, version: str = LATEST) -> Any:
    """Value of an output; `big` is a parameter."""
    parameters = {"big": {"type": "string" if isinstance(big, str) else "json", "default": big}}
    found = compiled(template(version, parameters=parameters, outputs={"it": {"value": snippet}}))
    return found.outputs["it"].value


def repeat(body: Any, **lists: Any) -> dict[str, Any]:
    return {"repeat": {"template": body, "for_each": lists}}


TEN = [str(digit) for digit in range(10)]
NESTED = repeat([repeat([repeat([repeat("abc", c=TEN * 20)], b=TEN * 20)], a=TEN * 20)], x=TEN * 20)
TOO_MUCH = [
    (repeat([[]] * 1000, x=TEN * 1000), "characters, more than", "a list of empty lists, often"),
    (repeat({str(n): None for n in range(1000)}, x=TEN * 1000), "characters, more than", "a map of nulls, often"),
    (NESTED, "characters, more than", "repetitions in repetitions"),
    (repeat("xy", x=TEN * 100, y=TEN * 100, z=TEN), "more than 100000 items", "combinations"),
    (
        {"str_replace": {"template": "a" * 100_000, "params": {"a": "b", **dict.fromkeys(CHARACTERS, "c")}}},
        "would take too long",
        "many pieces, each searched for many params",
    ),
    (
        {"str_replace": {"template": {"list_join": ["", [BIG] * 100]}, "params": dict.fromkeys(CHARACTERS, "c")}},
        "would take too long",
        "a long text searched for many params",
    ),
    ({"str_split": [",", {"list_join": ["", [BIG] * 3]}]}, "more than 100000 items", "a long text in pieces"),
    ({"list_concat": [{"str_split": [",", BIG]}] * 3}, "more than 100000 items", "long lists"),
    ({"list_concat_unique": [{"str_split": [",", BIG]}] * 3}, "more than 100000 items", "long lists that are equal"),
    ({"list_join": ["", [BIG] * 200]}, "characters, more than", "a long text, often"),
    (
        {"str_replace": {"template": "x" * 200, "params": {"x": BIG}}},
        "characters, more than",
        "a long text in many places",
    ),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("snippet", "message", "reason"), TOO_MUCH, ids=[case[2] for case in TOO_MUCH])
def test_one_function_is_bounded(snippet: Any, message: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        made(snippet)
    assert str(caught.value).startswith("outputs.it.value.")
    assert message in str(caught.value)


def test_splitting_of_cfn_is_bounded() -> None:
    with pytest.raises(Rejected, match="more than 100000 items"):
        made({"Fn::Split": [",", {"Fn::Join": ["", [BIG] * 3]}]}, version="2013-05-23")


@pytest.mark.parametrize(
    "snippet",
    [
        {"list_join": ["", [BIG] * 10]},
        {"str_replace": {"template": "x" * 10, "params": {"x": BIG}}},
        {"str_split": [",", BIG]},
        {"list_concat": [{"get_param": "items"}] * 9},
        {"map_merge": [{"get_param": "map"}] * 2},
        {"map_replace": [{"get_param": "map"}, {"keys": {"a": "b"}}]},
        repeat("x", x=TEN * 100),
    ],
    ids=lambda snippet: next(iter(snippet)),
)
def test_all_functions_together_are_bounded(snippet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone is small enough."""
    parameters = {
        "big": {"type": "string", "default": "a," * 5_000},
        "items": {"type": "json", "default": TEN * 10},
        "map": {"type": "json", "default": {str(number): 1 for number in range(900)}},
    }

    def of(count: int) -> Any:
        document = template(parameters=parameters, outputs={"it": {"value": [snippet] * count}})
        return compiled(document).outputs["it"].value

    monkeypatch.setattr(tree, "MADE_MAX", 400_000)
    assert len(of(1)) == 1
    with pytest.raises(Rejected, match="the functions of the template make more than 400000"):
        of(250)


def test_at_run_time_each_function_is_bounded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack lives long, and its functions are evaluated again and again."""
    monkeypatch.setattr(tree, "MADE_MAX", 1000)
    found = compiled(
        template(
            resources={"other": {"type": "OS::Heat::TestResource"}},
            outputs={"it": {"value": {"list_join": ["", [{"get_attr": ["other", "ip"]}] * 20]}}},
        )
    )
    for _ in range(20):
        assert tree.evaluate(found.outputs["it"].value, Built({"ip": "10.0.0.5"})) == "10.0.0.5" * 20


def test_the_largest_results_are_still_given() -> None:
    assert len(made({"list_join": ["", ["a" * 100_000] * 100]})) == 10_000_000 < TEXT_MAX
    assert len(made({"str_split": [",", "," * (ITEMS_MAX - 1)]})) == ITEMS_MAX


def test_many_values_are_filtered_from_many_items() -> None:
    items, values = [str(n) for n in range(100_000)], [str(n) for n in range(1, 100_000)]
    document = template(
        parameters={name: {"type": "json", "default": {}} for name in ("items", "values")},
        outputs={"it": {"value": {"filter": [{"get_param": "values"}, {"get_param": "items"}]}}},
    )
    assert compiled(document, parameters={"items": items, "values": values}).outputs["it"].value == ["0"]


def test_many_items_are_compared_with_many_allowed_values() -> None:
    allowed = [f"v{number}" for number in range(60_000)]
    rule = {"allowed_values": allowed}
    document = template(parameters={"p": {"type": "comma_delimited_list", "constraints": [rule]}})
    assert compiled(document, parameters={"p": allowed[::-1]}).parameters["p"].value[0] == "v59999"
    with pytest.raises(Rejected, match="not an allowed value"):
        compiled(document, parameters={"p": [*allowed, "other"]})


def test_functions_as_deep_as_a_template_may_be() -> None:
    snippet: Any = "text"
    for _ in range(45):
        snippet = {"digest": ["sha256", snippet]}
    assert len(made(snippet)) == 64
    deep: Any = []
    for _ in range(30):
        deep = {"list_concat": [[deep]]}
    assert json.dumps(made(deep)) == "[" * 31 + "]" * 31
    for _ in range(40):
        deep = {"list_concat": [[deep]]}
    with pytest.raises(Rejected, match="nested more than 100 levels deep"):
        made(deep)


def test_conditions_and_resources_in_long_chains() -> None:
    count = 20_000
    conditions = {"c0": True, **{f"c{n}": {"and": [f"c{n - 1}", True]} for n in range(1, count)}}
    resources = {f"r{n}": {"type": "OS::Heat::TestResource", "condition": f"c{n}"} for n in range(0, count, 1000)}
    assert len(compiled(template(conditions=conditions, resources=resources)).definitions) == 20


HOSTILE_TEXTS = [
    ("a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *{'a' if not n else f'b{n - 1}'}]\n"
                                for n in range(40)), "more than 1000000 values", "aliases of aliases"),
    ("[" * 200_000, "nested too deeply", "brackets"),
    ("- " * 200_000, "levels deep", "dashes"),
    ("{a: " * 5_000, "levels deep", "maps in maps"),
    ("a: " + "9" * 100_000, "not a number", "a long number"),
    ("? [a]\n: b", "cannot be a key", "a list as key"),
    ("a: !!python/object/apply:os.system [ls]", "is not supported", "a tag that runs programs"),
    ("<<: [" + "{a: 1}, " * 10 + "5]", "<< takes a map", "a merge of a number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "reason"), HOSTILE_TEXTS, ids=[case[2] for case in HOSTILE_TEXTS])
@pytest.mark.parametrize("parse", [parse_template, parse_environment])
def test_hostile_texts(parse: Any, text: str, message: str, reason: str) -> None:
    with pytest.raises(Rejected, match=message) as caught:
        parse(text)
    assert caught.value.code == 400


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a": ' * 5_000, "9" * 5_000 + "x", '"\\ud800"'])
def test_hostile_json_parameters(value: str) -> None:
    with pytest.raises(Rejected, match="Value must be valid JSON"):
        compiled(template(parameters={"p": {"type": "json"}}), parameters={"p": value})


@pytest.mark.parametrize("value", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", [float("inf")]])
def test_numbers_that_json_does_not_have(value: Any) -> None:
    """They could not be stored: what reads them would find null."""
    with pytest.raises(Rejected, match=r"is not a JSON value|not finite"):
        value_of({"get_param": "tree"}, parameters={"tree": value})


@pytest.mark.parametrize(
    "text", ['{"a": [1e999]}', "a: .inf", "a: [-.Inf, 1]", "a: .nan", "a: 1.0e+999", {"a": float("nan")}]
)
def test_numbers_of_templates_are_finite(text: Any) -> None:
    with pytest.raises(Rejected, match=r"not finite|not a finite number"):
        parse_template(text)


@pytest.mark.parametrize(
    "snippet",
    [
        {"list_join": [",", {"list_join": ["", [BIG] * 10]}]},
        {"list_concat": [{"list_join": ["", [BIG] * 10]}]},
        {"digest": ["md5", {"str_split": [",", BIG]}]},
        {"contains": [{"str_split": [",", BIG]}, "x"]},
    ],
    ids=lambda snippet: next(iter(snippet)),
)
def test_errors_do_not_repeat_all_of_a_large_value(snippet: Any) -> None:
    with pytest.raises(Rejected) as caught:
        evaluate(made(snippet), Built())
    assert "a," in str(caught.value) or '"a"' in str(caught.value)
    assert len(str(caught.value)) < 500
