"""The table of stack actions: complete, and of one mind with itself."""

import pytest

from homeostat.model.stack_actions import REQUESTED, STACK_ACTIONS, Effect
from homeostat.model.status import Action


def test_every_action_of_a_stack_is_in_the_table() -> None:
    assert STACK_ACTIONS.keys() == frozenset(Action) - {Action.INIT}


def test_each_mark_is_left_by_one_action_and_cleared_by_another() -> None:
    left = [each.mark for each in STACK_ACTIONS.values() if each.mark]
    cleared = [each.clears for each in STACK_ACTIONS.values() if each.clears]
    assert sorted(left) == sorted(cleared)
    assert len(set(left)) == len(left)


@pytest.mark.parametrize("action", sorted(STACK_ACTIONS))
def test_only_what_changes_things_creates_them_and_is_rolled_back(action: str) -> None:
    rules = STACK_ACTIONS[action]
    if rules.effect is not Effect.CHANGE:
        assert (rules.creates, rules.rolls_back, rules.cancellable) == (False, False, False)
    if rules.effect is Effect.MAINTAIN:
        assert rules.looks_first
        assert bool(rules.mark) != bool(rules.clears)
    else:
        assert rules.suspends is None


def test_what_is_requested_by_its_name_overtakes_only_what_changes_nothing() -> None:
    for action in REQUESTED:
        overtaken = STACK_ACTIONS[action].overtakes or frozenset()
        assert all(STACK_ACTIONS[each].effect is Effect.MAINTAIN for each in overtaken)
