"""Inputs of software configs: their types and defaults."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources.families.configs import normal_inputs


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("Number", "5"),
        ("Number", 2.5),
        ("Number", ""),
        ("Number", None),
        ("Json", "{}"),
        ("Json", [{"a": 1}]),
        ("Boolean", "yes"),
        ("CommaDelimitedList", "a,b"),
        ("CommaDelimitedList", ["a"]),
        ("String", 5),
        ("String", {"a": 1}),
    ],
)
def test_a_default_of_its_type_is_kept_as_it_is(type_: str, default: Any) -> None:
    kept = {} if default is None else {"default": default}
    assert normal_inputs([{"name": "a", "type": type_, "default": default}]) == [{"name": "a", "type": type_, **kept}]


@pytest.mark.parametrize(
    ("type_", "default", "message"),
    [
        ("Number", "abc", "'abc' is not a number"),
        ("Json", "{", "must be valid JSON"),
        ("Boolean", "maybe", "Unrecognized value 'maybe'"),
        ("CommaDelimitedList", {"a": 1}, "comma-delimited"),
    ],
)
def test_a_default_of_another_type_is_refused_with_its_place(type_: str, default: Any, message: str) -> None:
    with pytest.raises(Rejected, match=message) as refused:
        normal_inputs([{"name": "fine"}, {"name": "a", "type": type_, "default": default}])
    assert "inputs[1].default" in str(refused.value)
