"""Nested templates are expanded once for all that are given the same, and count against the quota of the whole tree."""

from collections.abc import Mapping
from typing import Any

import pytest

from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline import checking, fetching
from homeostat.services.pipeline.checking import check
from homeostat.services.pipeline.expansion import Expansion, ExpansionLimits
from homeostat.services.pipeline.fetching import with_fetched
from homeostat.services.pipeline.requirements import Requirements
from homeostat.store.stacks.contents import Content

LEAF = "OS::Heat::RandomString"
ME = Identity("None", "stack", "project")


def alike(kind: str, width: int, **properties: Any) -> dict[str, Any]:
    """A template of resources that are all given the same."""
    one = {"type": kind, "properties": properties} if properties else {"type": kind}
    return {"heat_template_version": "2018-08-31", "resources": {f"r{number}": one for number in range(width)}}


def wide(width: int, depth: int) -> Content:
    """Each resource of a template is the next template, `depth` times."""
    kinds = [f"{level}.yaml" for level in range(1, depth)] + [LEAF]
    files = {f"{level}.yaml": str(alike(kinds[level], width)) for level in range(1, depth)}
    return Content("template", alike(kinds[0], width), files=files)


def checked(
    desired: Content, bounds: ExpansionLimits = ExpansionLimits(resources_max=1_000_000)
) -> tuple[Requirements, Expansion]:
    expansion, needs = Expansion(bounds), Requirements()
    check(compile_desired(desired, ME, allowance=expansion.allowance), desired, needs=needs, expansion=expansion)
    return needs, expansion


def expansions(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Parameters of each nested template that is compiled from now on."""
    seen: list[Mapping[str, Any]] = []

    def counting(desired: Content, *arguments: Any, **options: Any) -> Any:
        seen.append(desired.parameters)
        return compile_desired(desired, *arguments, **options)

    monkeypatch.setattr(checking, "compile_desired", counting)
    return seen


def test_equal_nested_templates_are_expanded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a million resources from 1.3 KB of templates: without this, more than half a minute."""
    seen = expansions(monkeypatch)
    needs, _ = checked(wide(12, 5))
    assert needs.resources == 12 + 12**2 + 12**3 + 12**4 + 12**5
    assert len(seen) == 4


def test_those_that_are_given_something_else_are_expanded_each(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = expansions(monkeypatch)
    inner = {"heat_template_version": "2018-08-31", "parameters": {"size": {"type": "number"}}, "resources": {}}
    given = [1, 2, 1, 2, 3]
    resources = {f"r{place}": {"type": "in.yaml", "properties": {"size": size}} for place, size in enumerate(given)}
    outer = {"heat_template_version": "2018-08-31", "resources": resources}
    needs, _ = checked(Content("template", outer, files={"in.yaml": str(inner)}))
    assert [each["size"] for each in seen] == [1, 2, 3]
    assert needs.resources == 5


def test_a_tree_counts_against_the_quota() -> None:
    with pytest.raises(Rejected, match=r"has \d{7} resources or more, at most 1000000 .* --resources-max") as caught:
        checked(wide(20, 5))
    assert caught.value.fault == "RequestLimitExceeded"
    assert caught.value.path == ("resources", "r5")


@pytest.mark.parametrize(
    ("group", "size"),
    [
        ({"type": "OS::Heat::ResourceGroup", "properties": {"count": 40, "resource_def": {"type": "1.yaml"}}}, 40),
        ({"type": "OS::Heat::ResourceChain", "properties": {"resources": [LEAF, "1.yaml", "1.yaml"]}}, 2),
        (
            {
                "type": "OS::Heat::AutoScalingGroup",
                "properties": {"min_size": 1, "max_size": 90, "desired_capacity": 7, "resource": {"type": "1.yaml"}},
            },
            7,
        ),
    ],
    ids=["group", "chain", "scaling group"],
)
def test_members_of_groups_count_with_what_is_in_them(group: dict[str, Any], size: int) -> None:
    outer = {"heat_template_version": "2018-08-31", "resources": {"group": group}}
    desired = Content("template", outer, files={"1.yaml": str(alike(LEAF, 9))})
    needs, _ = checked(desired)
    assert needs.resources == 1 + size * 10 + (1 if "Chain" in group["type"] else 0)
    with pytest.raises(Rejected, match=r"has .* resources or more, at most 20"):
        checked(desired, ExpansionLimits(resources_max=20))


def test_nested_templates_that_all_differ_are_bounded_too() -> None:
    """Each is given its own place, so that none is like another."""
    files = {}
    for level in range(4):
        resources: dict[str, Any] = {}
        for number in range(20):
            place = {"at": {"list_join": [".", [{"get_param": "at"}, str(number)]]}}
            resources[f"r{number}"] = (
                {"type": f"{level + 1}.yaml", "properties": place} if level < 3 else {"type": LEAF}
            )
        parameters = {"at": {"type": "string", "default": ""}}
        template = {"heat_template_version": "2018-08-31", "parameters": parameters, "resources": resources}
        files[f"{level}.yaml"] = str(template)
    with pytest.raises(Rejected, match=r"have more than 2000 resources together: .* --expanded-max"):
        checked(Content("template", alike("0.yaml", 1), files=files), ExpansionLimits(1_000_000, expanded_max=2000))


def test_functions_of_all_nested_templates_share_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.templates.tree.MADE_MAX", 10_000)
    inner = {
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string"}},
        "outputs": {"it": {"value": {"list_join": ["", [{"get_param": "word"}] * 300]}}},
    }
    resources = {f"r{n}": {"type": "in.yaml", "properties": {"word": f"{n:010}"}} for n in range(9)}
    outer = {"heat_template_version": "2018-08-31", "resources": resources}
    with pytest.raises(Rejected, match="make more than 10000 values and characters"):
        checked(Content("template", outer, files={"in.yaml": str(inner)}))


def test_work_stops_when_no_one_waits_for_it() -> None:
    class Gone(Exception):
        pass

    def gone() -> None:
        raise Gone

    desired = wide(2, 2)
    with pytest.raises(Gone):
        check(compile_desired(desired, ME), desired, expansion=Expansion(check_client=gone))


def test_a_registry_whose_templates_name_all_others_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each nested template has another rest of the registry: there are as many ways as there are subsets."""
    kinds = {f"T{number}": f"{number}.yaml" for number in range(20)}
    template = {"heat_template_version": "2018-08-31", "resources": {kind: {"type": kind} for kind in kinds}}
    files = {name: str(template) for name in kinds.values()}
    desired = Content("template", template, environment={"resource_registry": kinds}, files=files)
    monkeypatch.setattr(fetching, "PLACES_MAX", 1000)
    with pytest.raises(Rejected, match="names others in more than 1000 ways"):
        with_fetched(desired, lambda url: "")


LONG = "n" * 256


@pytest.mark.parametrize(
    ("section", "content"),
    [
        ("resources", {"type": LEAF}),
        ("parameters", {"type": "string", "default": ""}),
        ("outputs", {"value": 1}),
        ("conditions", {"equals": [1, 1]}),
    ],
)
def test_a_name_has_at_most_255_characters(section: str, content: Any) -> None:
    template = {"heat_template_version": "2018-08-31", section: {LONG[1:]: content}}
    checked(Content("template", template))
    template[section] = {LONG: content}
    with pytest.raises(
        Rejected, match=rf"{section}\.n+…: The name has 256 characters, at most 255 .*shorter"
    ) as refusal:
        checked(Content("template", template))
    assert LONG not in str(refusal.value)


def test_names_in_nested_templates_are_held_to_it() -> None:
    inner = str(alike(LEAF, 1) | {"outputs": {LONG: {"value": 1}}})
    nested = {"heat_template_version": "2018-08-31", "resources": {"nested": {"type": "inner.yaml"}}}
    with pytest.raises(Rejected, match=r"resources\.nested\.outputs\.n+…: The name has 256 characters"):
        checked(Content("template", nested, files={"inner.yaml": inner}))
