"""Which states may follow which."""

from itertools import pairwise, product

import pytest

from homeostat.model.errors import Bug
from homeostat.model.stack_actions import STACK_TRANSITIONS, stack_may
from homeostat.model.status import RESOURCE_TRANSITIONS, STATES, State, check_transition, resource_may


def state(text: str) -> State:
    action, _, status = text.partition("_")
    return action, status


@pytest.mark.parametrize(
    "path",
    [
        ["INIT_COMPLETE", "CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"],
        ["INIT_COMPLETE", "CREATE_FAILED", "CREATE_IN_PROGRESS", "CREATE_FAILED", "DELETE_IN_PROGRESS"],
        ["CREATE_COMPLETE", "CHECK_FAILED", "UPDATE_IN_PROGRESS", "UPDATE_FAILED", "UPDATE_COMPLETE"],
        ["CREATE_COMPLETE", "CHECK_FAILED", "CHECK_COMPLETE", "CHECK_FAILED"],
        ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_FAILED", "DELETE_IN_PROGRESS"],
        ["CREATE_COMPLETE", "UPDATE_FAILED", "UPDATE_FAILED"],
        ["INIT_COMPLETE", "DELETE_COMPLETE"],
        ["INIT_COMPLETE", "ADOPT_FAILED", "CHECK_FAILED", "ADOPT_FAILED", "CREATE_IN_PROGRESS"],
        ["UPDATE_COMPLETE", "DELETE_COMPLETE"],
    ],
)
def test_legal_lives_of_a_resource(path: list[str]) -> None:
    for before, after in pairwise(path):
        assert resource_may(state(before), state(after)), f"{before} -> {after}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CREATE_COMPLETE", "CREATE_IN_PROGRESS"),
        ("CREATE_COMPLETE", "CREATE_FAILED"),
        ("UPDATE_COMPLETE", "CREATE_IN_PROGRESS"),
        ("UPDATE_COMPLETE", "INIT_COMPLETE"),
        ("INIT_COMPLETE", "CREATE_COMPLETE"),
        ("INIT_COMPLETE", "UPDATE_IN_PROGRESS"),
        ("CREATE_COMPLETE", "UPDATE_COMPLETE"),
        ("CREATE_COMPLETE", "DELETE_FAILED"),
        ("DELETE_IN_PROGRESS", "UPDATE_IN_PROGRESS"),
        ("DELETE_COMPLETE", "DELETE_IN_PROGRESS"),
        ("DELETE_COMPLETE", "DELETE_COMPLETE"),
        ("CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS"),
    ],
)
def test_what_a_resource_never_does(before: str, after: str) -> None:
    assert not resource_may(state(before), state(after))


@pytest.mark.parametrize(
    "path",
    [
        ["CREATE_IN_PROGRESS", "CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS"],
        ["UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", "CHECK_IN_PROGRESS", "CHECK_FAILED"],
        ["CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "UPDATE_IN_PROGRESS"],
        ["CREATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"],
        ["UPDATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_FAILED", "DELETE_COMPLETE"],
        ["SNAPSHOT_COMPLETE", "DELETE_IN_PROGRESS", "RESTORE_IN_PROGRESS", "RESTORE_FAILED", "ROLLBACK_IN_PROGRESS"],
    ],
)
def test_legal_lives_of_a_stack(path: list[str]) -> None:
    for before, after in pairwise(path):
        assert stack_may(state(before), state(after)), f"{before} -> {after}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "UPDATE_IN_PROGRESS"),
        (None, "CREATE_COMPLETE"),
        ("CREATE_COMPLETE", "CREATE_IN_PROGRESS"),
        ("CREATE_COMPLETE", "CREATE_FAILED"),
        ("CREATE_COMPLETE", "UPDATE_COMPLETE"),
        ("ROLLBACK_FAILED", "ROLLBACK_IN_PROGRESS"),
        ("DELETE_COMPLETE", "UPDATE_IN_PROGRESS"),
        ("UPDATE_FAILED", "UPDATE_COMPLETE"),
        ("DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"),
    ],
)
def test_what_a_stack_never_does(before: str | None, after: str) -> None:
    assert not stack_may(state(before) if before is not None else None, state(after))


def test_the_tables_say_what_the_rules_say() -> None:
    assert all(resource_may(*pair) == (pair in RESOURCE_TRANSITIONS) for pair in product(STATES, STATES))
    assert all(stack_may(*pair) == (pair in STACK_TRANSITIONS) for pair in product((None, *STATES), STATES))


def test_an_illegal_transition_is_an_internal_error_that_names_its_subject() -> None:
    web = ("stack", "1f3a", "web")
    check_transition(STACK_TRANSITIONS, web, None, ("CREATE", "IN_PROGRESS"))
    with pytest.raises(Bug, match=r"stack 1f3a \(web\) cannot change from CREATE_COMPLETE to UPDATE_COMPLETE"):
        check_transition(STACK_TRANSITIONS, web, ("CREATE", "COMPLETE"), ("UPDATE", "COMPLETE"))
