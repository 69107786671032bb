"""`homeostat plan`: the picture alone, and the command against a real service."""

from pathlib import Path
from typing import Any

import pytest

from homeostat.cli.plan_tree import counted, drawn, to_do
from tests.cli.conftest import Home
from tests.cli.templates import QUICK

Entry = dict[str, Any]


def entry(name: str, *path: str, kind: str = "OS::Heat::Value", reason: str = "", **changes: tuple[Any, Any]) -> Entry:
    return {
        "resource_name": name,
        "resource_type": kind,
        "path": list(path),
        "change_reason": reason,
        "property_changes": [{"name": key, "before": old, "after": new} for key, (old, new) in changes.items()],
    }


def preview(more: list[Entry] | None = None, **changes: list[Entry]) -> dict[str, Any]:
    kinds = ("unchanged", "updated", "replaced", "added", "deleted")
    return {"resource_changes": {kind: changes.get(kind, []) for kind in kinds}, "more_members": more or []}


def picture(found: dict[str, Any], *, exists: bool = True) -> list[str]:
    return [line.plain for line in drawn("web", found, exists=exists)]


def test_nothing_to_do_is_one_line() -> None:
    assert picture(preview(unchanged=[entry("a")])) == ["web is as it should be: nothing to do, 1 unchanged"]
    assert not to_do(counted(preview(unchanged=[entry("a")])))


def test_a_plan_is_a_tree_with_what_differs() -> None:
    found = preview(
        unchanged=[entry("group", kind="OS::Heat::ResourceGroup"), entry("x")],
        updated=[entry("1", "group", value=("a", "b")), entry("text", value=("x" * 100, "(not known yet)"))],
        replaced=[entry("name", reason="length cannot change in place", length=(8, 9))],
        added=[entry("new")],
        deleted=[entry("old", reason="kept, as its deletion policy says")],
    )
    assert picture(found) == [
        "web would be updated:",
        "  group  Heat::ResourceGroup",
        "└ ~ 1  Heat::Value",
        '      value: "a" → "b"',
        "± name  Heat::Value  length cannot change in place",
        "    length: 8 → 9",
        "+ new  Heat::Value",
        "- old  Heat::Value  kept, as its deletion policy says",
        "~ text  Heat::Value",
        f'    value: "{"x" * 70}… → (not known yet)',
        "plan: 1 to create, 2 to update, 1 to replace, 1 to delete; 2 unchanged",
    ]


def test_within_maps_and_lists_only_what_differs_is_drawn() -> None:
    before = {
        "type": "T",
        "properties": {"image": "a", "networks": [{"network": "x"}, {"network": "y"}], "tags": ["1"]},
    }
    after = {"type": "T", "properties": {"image": "b", "networks": [{"network": "x"}, {"network": "z"}], "tags": []}}
    assert picture(preview(updated=[entry("g", resource_def=(before, after))]))[2:5] == [
        '    resource_def.properties.image: "a" → "b"',
        '    resource_def.properties.networks[1].network: "y" → "z"',
        '    resource_def.properties.tags: ["1"] → []',
    ]


def test_secrets_within_stay_hidden() -> None:
    lines = picture(preview(updated=[entry("g", value=("******", "******"))]))
    assert lines[2] == '    value: "******" → "******"'


def test_members_that_are_alike_are_folded() -> None:
    members = [entry(str(number), "group") for number in range(40)]
    more = [{"path": ["group"], "stack_name": "s", "change": "added", "count": 960}]
    lines = picture(preview(more, updated=[entry("group")], added=members), exists=False)
    assert lines[:2] == ["web would be created:", "~ group  Heat::Value"]
    assert lines[2] == "├ + 0  Heat::Value"
    assert lines[-2:] == ["└ + … and 993 more", "plan: 1000 to create, 1 to update; 0 unchanged"]
    assert len(lines) == 2 + 7 + 1 + 1


def test_a_few_members_are_all_drawn_in_the_order_of_their_numbers() -> None:
    lines = picture(preview(added=[entry(name, "group") for name in ("10", "9", "2")]))
    assert [line.split()[2] for line in lines[2:5]] == ["2", "9", "10"]


@pytest.mark.heavy
def test_the_command_reports_and_changes_nothing(service: Home, tmp_path: Path) -> None:
    path = tmp_path / "planned.yaml"
    path.write_text(QUICK)
    first = service.run("plan", str(path), "--detailed-exit-code")
    assert first.code == 4, first.err
    assert "+ server  Nova::Server" in first.out
    assert "planned" not in service.run("list").out
    assert service.run("up", str(path)).code == 0
    same = service.run("plan", str(path), "--detailed-exit-code")
    assert (same.code, same.out) == (0, "planned is as it should be: nothing to do, 2 unchanged\n")
    changed = service.run("plan", str(path), "-P", "word=second")
    assert changed.code == 0
    assert '    value: "first" → "second"' in changed.out
    printed = service.run("plan", str(path), "-P", "word=second", "--json").json()
    assert printed["summary"] == {"unchanged": 0, "updated": 2, "replaced": 0, "added": 0, "deleted": 0}
    assert printed["exists"] is True


def test_what_the_service_would_refuse_is_refused(service: Home, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(QUICK.replace("OS::Heat::Value", "OS::No::Such"))
    ended = service.run("plan", str(path))
    assert ended.code == 1
    assert "The Resource Type (OS::No::Such) could not be found" in ended.err
