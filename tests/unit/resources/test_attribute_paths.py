"""JSON paths into nodes."""

from time import process_time
from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.resources.attribute_paths import attribute_path

NODE: dict[str, Any] = {
    "name": "node-1",
    "status": "ACTIVE",
    "physical_id": None,
    "metadata": {"a b": 1, "role": {"name": "db"}},
    "details": {
        "addresses": {"private": [{"addr": "10.0.0.5", "version": 4}, {"addr": "fd00::5", "version": 6}]},
        "OS-EXT-STS:vm_state": "active",
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("status", "ACTIVE"),
        ("$.status", "ACTIVE"),
        ("physical_id", None),
        ("details.addresses.private[0].addr", "10.0.0.5"),
        ("details.addresses.private[-1].addr", "fd00::5"),
        ("details.addresses.private[1:].addr", "fd00::5"),
        ("details.addresses.*[*].addr", "10.0.0.5"),
        ("$..addr", "10.0.0.5"),
        ("$..name", "node-1"),
        ("details..addr", "10.0.0.5"),
        ("details.'OS-EXT-STS:vm_state'", "active"),
        ("metadata.'a b'", 1),
        ("metadata.role", {"name": "db"}),
        ("metadata.(role.name)", "db"),
    ],
)
def test_the_first_match_counts(path: str, value: Any) -> None:
    assert attribute_path(path).first(NODE) == (True, value)


@pytest.mark.parametrize(
    "path", ["nothing", "x" * 512, "status.more", "details.addresses.public[0]", "name[9]", "$..nothing"]
)
def test_a_node_without_a_match_is_left_out(path: str) -> None:
    assert attribute_path(path).first(NODE) == (False, None)


@pytest.mark.parametrize(
    ("path", "needed"), [("details.image", True), ("status", False), ("$..details", True), ("metadata.*", False)]
)
def test_details_are_needed_where_they_are_named(path: str, needed: bool) -> None:
    assert attribute_path(path).needs_details is needed


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Required path attribute is missing."),
        ("  ", "Required path attribute is missing."),
        ("None", "Required path attribute is missing."),
        ("x[", "Invalid attribute path - "),
        ("a.?", "Invalid attribute path - "),
        ("a b", "Invalid attribute path - "),
        ("x" * 513, "Invalid attribute path - it is longer than 512 characters"),
        (".".join("a" * 33), "Invalid attribute path - it has more than 32 steps"),
        ("$..a..b", "Invalid attribute path - it has more than one .."),
        ("a.(b..c)..d", "Invalid attribute path - it has more than one .."),
        ("a,b", "Invalid attribute path - a,b is more than one step; only the first match counts"),
        ("a[0,0]", "Invalid attribute path - [0,0] is more than one step"),
        ("*.$.*", "Invalid attribute path - $ stands at the beginning only"),
        ("a.($.b)", "Invalid attribute path - $ stands at the beginning only"),
        ("*.`parent`.*", "Invalid attribute path - Parent is not supported; there are names, "),
        ("$..* where $..*", "Invalid attribute path - Where is not supported; "),
        ("(" * 400 + "a", "Invalid attribute path - "),
        ("[" * 500, "Invalid attribute path - "),
    ],
)
def test_what_could_cost_too_much_is_refused(path: str, message: str) -> None:
    with pytest.raises(Rejected) as found:
        attribute_path(path)
    assert found.value.fault == "BadRequest"
    assert str(found.value).startswith(message)


@pytest.mark.parametrize("path", ["$..*" + ".*" * 30, "$..*", "*" + ".*" * 31, "[*]" * 32, "$..a" + ".a" * 30])
def test_the_cost_is_bounded_in_deep_and_in_wide_nodes(path: str) -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep, "b": [0, 1]}
    wide = {str(number): {"a": [number] * 10} for number in range(1000)}
    started = process_time()
    for node in (deep, wide):
        attribute_path(path).first(node)
    assert process_time() - started < 5
