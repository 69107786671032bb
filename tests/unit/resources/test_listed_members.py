"""A group as a template of its own stack lists its members."""

from dataclasses import replace
from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.model.group import GroupDefinition
from homeostat.resources import groups
from homeostat.resources.listed_members import as_listed, kept_own, own_as_earlier, plain, unredacted
from homeostat.resources.nested import CONTENT


def one(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "T", "properties": {"v": value}, **more}


def group(value: Any = "a", count: int = 3, **more: Any) -> GroupDefinition:
    plain_group = {"resource_def": one(value), "index_var": "%i%", "count": count, "skip": []}
    return GroupDefinition.decoded({**plain_group, **more})


def own(value: Any, *numbers: list[int]) -> dict[str, Any]:
    return {"resource_def": one(value), "numbers": list(numbers)}


def values(made: GroupDefinition) -> dict[str, Any]:
    """What the members have in the end."""
    names = groups.member_names(made.count, set(made.skip))
    return {name: groups.final_definition_of(made, name)["properties"]["v"] for name in names}


A, B = one("a"), one("b")
LISTS: list[tuple[GroupDefinition, dict[str, Any], dict[str, Any], str]] = [
    (group(), {"0": A, "1": A, "2": A}, {"count": 3, "skip": []}, "as it was"),
    (group(), {"0": A, "1": B, "2": A}, {"count": 3, "skip": [], "own": [own("b", [1, 2])]}, "one is another"),
    (
        group(),
        {"0": B, "1": B, "2": B},
        {"count": 3, "skip": [], "own": [own("b", [0, 3])]},
        "all are alike: one entry",
    ),
    (group(), {"0": B, "1": A, "2": B}, {"count": 3, "skip": [], "own": [own("b", [0, 1], [2, 3])]}, "two ranges"),
    (group(), {"0": A, "2": A}, {"count": 2, "skip": ["1"]}, "one leaves from the middle"),
    (group(), {"0": A, "1": A}, {"count": 2, "skip": ["2"]}, "the last one leaves: its name stays out, too"),
    (group(), {"1": A, "2": A}, {"count": 2, "skip": ["<1"]}, "the first one leaves"),
    (group(), {}, {"count": 0, "skip": ["<3"]}, "all leave"),
    (group(), {"0": A, "1": A, "2": A, "3": B}, {"count": 4, "skip": [], "own": [own("b", [3, 4])]}, "one comes"),
    (group(), {"0": A, "1": A, "2": A, "3": A}, {"count": 4, "skip": []}, "one comes that is like all"),
    (group(skip=["1"]), {"0": A, "1": A, "2": A, "3": A}, {"count": 4, "skip": []}, "one comes back"),
    (group(skip=["<7"]), {"7": A, "8": A, "9": A}, {"count": 3, "skip": ["<7"]}, "names long gone stay out"),
    (
        group(own=[own("b", [1, 2])]),
        {"0": A, "1": B, "2": A},
        {"count": 3, "skip": [], "own": [own("b", [1, 2])]},
        "kept",
    ),
    (group(own=[own("b", [1, 2])]), {"0": A, "1": A, "2": A}, {"count": 3, "skip": []}, "taken back"),
    (
        group("%i%", count=2),
        {"0": one("0"), "1": one("x")},
        {"count": 2, "skip": [], "own": [own("x", [1, 2])]},
        "a number is shown in place of the variable",
    ),
    (
        group("new", earlier=[own("a", [0, 2])]),
        {"0": A, "1": B, "2": one("new")},
        {"count": 3, "skip": [], "own": [own("b", [1, 2])]},
        "whom a batch has not reached yet, and the user leaves as it is, goes on to the new definition",
    ),
]


@pytest.mark.parametrize(("before", "listed", "made", "reason"), LISTS, ids=[each[3] for each in LISTS])
def test_lists(before: GroupDefinition, listed: dict[str, Any], made: dict[str, Any], reason: str) -> None:
    wanted = as_listed(before, listed)
    assert wanted.encoded() == {"resource_def": before.resource_def, "index_var": "%i%", **made}, reason
    assert groups.member_names(wanted.count, set(wanted.skip)) == sorted(listed, key=int)


@pytest.mark.parametrize(
    ("before", "names", "says"),
    [
        (group(), ["web"], "named by numbers"),
        (group(), ["-1"], "named by numbers"),
        (group(), ["01"], "named by numbers"),
        (group(), ["٣"], "named by numbers"),
        (group(), ["0", "1", "2", "99999999"], "from 0 on, below 4"),
        (group(skip=["<7"]), ["6"], "from 7 on"),
        (group(nodes={"seed": "s", "format": "f"}), ["0"], "cluster"),
    ],
)
def test_what_a_group_cannot_be(before: GroupDefinition, names: list[str], says: str) -> None:
    with pytest.raises(Rejected, match=says):
        as_listed(before, dict.fromkeys(names, A))


def test_what_no_template_says_is_taken_over() -> None:
    """The fingerprint of the files that members are made from: the parent's next definition has it, too."""
    before = replace(group(), resource_def={"type": "a.yaml", "properties": {"v": "a", CONTENT: "f"}})
    made = as_listed(before, {"0": {"type": "a.yaml", "properties": {"v": "b"}}})
    assert made.own[0].resource_def == {"type": "a.yaml", "properties": {"v": "b", CONTENT: "f"}}
    other = as_listed(before, {"0": {"type": "b.yaml", "properties": {"v": "b"}}})
    assert other.own[0].resource_def == {"type": "b.yaml", "properties": {"v": "b"}}


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"type": "T", "properties": None}, {"type": "T", "properties": {}}),
        (one(None, metadata={}, description=""), {"type": "T", "properties": {}}),
        (one(0, deletion_policy="delete"), one(0)),
        (one(0, deletion_policy="Retain"), one(0, deletion_policy="Retain")),
        (one(0, metadata={"m": 1}), one(0, metadata={"m": 1})),
    ],
)
def test_plain(definition: dict[str, Any], said: dict[str, Any]) -> None:
    assert plain(definition) == said


@pytest.mark.parametrize(
    ("wanted", "kept", "reason"),
    [
        (group(), [[0, 2]], "as long as the definition of all stays"),
        (group("c"), None, "a new one is for all"),
        (group(count=1), [[0, 1]], "who leaves leaves nothing to those that take the name"),
        (group(skip=["0"]), [[1, 2]], "likewise by name"),
        (group(count=0), None, "nobody stays"),
    ],
)
def test_own_definitions_that_stay(wanted: GroupDefinition, kept: list[list[int]] | None, reason: str) -> None:
    found = kept_own(group(own=[own("b", [0, 2])]), wanted)
    assert found.encoded() == wanted.encoded() | ({"own": [own("b", *kept)]} if kept else {}), reason


def test_own_definitions_are_earlier_ones_for_a_rollout() -> None:
    found = own_as_earlier(group(own=[own("b", [1, 2])], earlier=[own("z", [0, 1])]))
    assert not found.own
    assert groups.runs_with_own(found) == [(0, 1, one("z")), (1, 2, B), (2, 3, A)]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"p": "***", "q": 1}, {"p": "secret", "q": 1}),
        ({"p": "***", "q": 2}, {"p": "secret", "q": 2}),
        ({"p": "new", "q": 1}, {"p": "new", "q": 1}),
        ({"q": 1}, {"q": 1}),
        ({"p": "***", "q": 1, "r": "***"}, {"p": "secret", "q": 1, "r": "***"}),
    ],
)
def test_hidden_values_are_not_sent_back(sent: Any, meant: Any) -> None:
    shown, known = {"p": "***", "q": 1}, {"p": "secret", "q": 1}
    assert unredacted(sent, shown, known) == meant
    assert unredacted({"l": [sent]}, {"l": [shown]}, {"l": [known]}) == {"l": [meant]}
