"""Environments of several files, merged (environment.md section 2)."""

from typing import Any

import pytest
import yaml

from homeostat.model.errors import Rejected
from homeostat.templates.environment_merge import merged_environment

TEMPLATE: dict[str, Any] = {
    "heat_template_version": "2018-08-31",
    "parameters": {
        "text": {"type": "string"},
        "count": {"type": "number"},
        "names": {"type": "comma_delimited_list"},
        "tree": {"type": "json"},
        "flag": {"type": "boolean"},
    },
}


def merge(*files: dict[str, Any], apart: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    texts = {f"e{place}": yaml.safe_dump(each) for place, each in enumerate(files)}
    return merged_environment(list(texts), {**texts, **more}, apart or {}, TEMPLATE)


def merged_value(name: str, strategy: str, before: Any, after: Any) -> Any:
    later = {"parameters": {name: after}, "parameter_merge_strategies": {name: strategy}}
    return merge({"parameters": {name: before}}, later)["parameters"][name]


@pytest.mark.parametrize(
    ("name", "strategy", "before", "after", "expected"),
    [
        ("text", "overwrite", "a", "b", "b"),
        ("text", "merge", "a", "b", "ab"),
        ("count", "merge", 1, "2", 3),
        ("names", "merge", "a,b", ["c"], "a,b,c"),
        ("names", "merge", ["a"], "b", ["a", "b"]),
        ("tree", "merge", {"a": {"x": 1}, "b": 1}, '{"a": {"y": 2}}', {"a": {"y": 2}, "b": 1}),
        (
            "tree",
            "deep_merge",
            {"a": {"x": [1], "t": "u"}},
            {"a": {"x": [2], "t": "v"}},
            {"a": {"x": [1, 2], "t": "uv"}},
        ),
    ],
)
def test_how_values_are_merged(name: str, strategy: str, before: Any, after: Any, expected: Any) -> None:
    assert merged_value(name, strategy, before, after) == expected


def test_later_files_win_and_nulls_change_nothing() -> None:
    found = merge({"parameters": {"text": "a", "count": 1}}, {"parameters": {"text": "b", "count": None}})
    assert found == {"parameters": {"text": "b", "count": 1}}


def test_what_no_template_knows_is_taken_from_the_first_alone() -> None:
    first = {"parameters": {"stray": 1}}
    assert merge(first, {"parameters": {"other": 2, "text": "a"}})["parameters"] == {"stray": 1, "text": "a"}
    nested = "{heat_template_version: '2018-08-31', parameters: {other: {type: string}}}"
    later = {"parameters": {"other": "2"}, "parameter_merge_strategies": {"default": "merge"}}
    assert merge({"parameters": {"other": "1"}}, later, part=nested)["parameters"] == {"other": "12"}


def test_a_file_beats_what_is_given_apart() -> None:
    assert merge({"parameters": {"text": "a"}}, apart={"text": "b", "count": 1}) == {
        "parameters": {"text": "a", "count": 1}
    }


def test_the_other_sections() -> None:
    found = merge(
        {"resource_registry": {"A": "B", "resources": {"x": {}}}, "encrypted_param_names": ["p"]},
        {"resource_registry": {"A": "C", "resources": {"y": {}}}, "encrypted_param_names": ["q"]},
    )
    assert found["resource_registry"] == {"A": "C", "resources": {"y": {}}}
    assert found["encrypted_param_names"] == ["p", "q"]


def test_a_strategy_holds_from_its_first_mention() -> None:
    first = {"parameters": {"text": "a"}, "parameter_merge_strategies": {"text": "merge"}}
    default = {"parameters": {"text": "b"}, "parameter_merge_strategies": {"default": "overwrite"}}
    assert merge(first, default)["parameters"] == {"text": "ab"}


@pytest.mark.parametrize(
    ("strategies", "fault", "message"),
    [
        ({"flag": "merge"}, "InvalidMergeStrategyForParam", "'merge' for parameter 'flag'"),
        ({"text": "blend"}, "HTTPBadRequest", "environment_files.e1.parameter_merge_strategies.text"),
        ({"count": "overwrite"}, "ConflictingMergeStrategyForParam", "'count' in file 'e1': it is 'merge' in 'e0'"),
        ({"tree": "merge"}, "HTTPBadRequest", "parameters.tree: it cannot be merged: a dict and a list"),
        ({"names": "merge"}, "HTTPBadRequest", "parameters.names: it cannot be merged"),
    ],
)
def test_what_cannot_be_merged_is_named(strategies: dict[str, str], fault: str, message: str) -> None:
    first = {
        "parameters": {"flag": True, "text": "a", "count": 1, "tree": {}, "names": "a"},
        "parameter_merge_strategies": {"count": "merge"},
    }
    second = {"parameters": {"flag": False, "tree": [1], "names": 7}, "parameter_merge_strategies": strategies}
    with pytest.raises(Rejected) as caught:
        merge(first, second)
    assert caught.value.fault == fault
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Rejected, match="environment_files: gone is not among the files"):
        merged_environment(["gone"], {}, {}, TEMPLATE)
