"""The states of resource rows: one writer, which refuses what the table of transitions does not have."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.planner.worlds import row

import homeostat
from homeostat.model.errors import Bug
from homeostat.planner import outcome

PACKAGES = ("model", "planner", "convergence", "store", "transfer", "api")


def test_a_row_enters_a_state_that_may_follow_or_stays_for_another_reason() -> None:
    mine = row("a", state="CREATE_IN_PROGRESS")
    mine.enter("CREATE", "COMPLETE", "it is there")
    mine.enter("CREATE", "COMPLETE", "as it was")
    assert (mine.action, mine.status, mine.reason) == ("CREATE", "COMPLETE", "as it was")


def test_a_row_refuses_any_other_state_and_stays_as_it_is() -> None:
    mine = row("a", state="CREATE_COMPLETE", reason="made")
    with pytest.raises(Bug, match=r"resource a1 \(a\) cannot change from CREATE_COMPLETE to UPDATE_COMPLETE"):
        mine.enter("UPDATE", "COMPLETE", "updated")
    assert (mine.action, mine.status, mine.reason) == ("CREATE", "COMPLETE", "made")


def test_an_action_that_goes_on_is_no_second_event() -> None:
    mine = row("a")
    assert [(each.action, each.status) for each in outcome.begin(mine, "UPDATE")] == [("UPDATE", "IN_PROGRESS")]
    assert outcome.begin(mine, "UPDATE", "again") == []
    assert mine.reason == "again"


def _writes(source: str) -> Iterator[str]:
    """Yield each place that sets an attribute `action` or `status`, as `function:attribute`."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
                    continue
                if node.attr in ("action", "status"):
                    yield f"{function.name}:{node.attr}"


def test_nothing_else_writes_the_action_or_the_status_of_a_row() -> None:
    root = Path(homeostat.__file__).parent
    files = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    assert len(files) > 100
    found = {f"{path.relative_to(root)}:{each}" for path in files for each in _writes(path.read_text("utf-8"))}
    assert found == {"model/world.py:enter:action", "model/world.py:enter:status"}
