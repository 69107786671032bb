"""The moving edge: what may be done at once, in which order, and why the rest waits."""

from typing import Any

import pytest
from tests.unit.planner.worlds import (
    LONG_AGO,
    NOW,
    SERVER,
    TEST,
    VOLUME,
    absent,
    described,
    first_steps,
    keys,
    row,
    seen,
    unanswered,
    wanted,
    world,
)

from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.intent import ChangeIntent
from homeostat.model.marks import Marks
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Delete, Find, Observe, Record, Release, Step, StepOutcome
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import World
from homeostat.planner import Frontier, outcome
from homeostat.resources.registry import resource_type

UPDATED: dict[str, Any] = {"revision": 2, "action": "UPDATE", "settled_revision": 1}
DELETING: dict[str, Any] = {"revision": 2, "action": "DELETE", "settled_revision": 1}
READY_WORD = {"server": "active", "volume": "available", "": None}


def perform(of: World, step: Step, answers: dict[str, HomeostatError]) -> StepOutcome:
    """What an obliging cloud does; `answers` — of resources for which it is not."""
    mine = step.row
    refused = answers.get(mine.name)
    if refused is not None:
        return outcome.conclude(of, step, refused, NOW)
    if isinstance(step.act, Delete | Find):
        return outcome.conclude(of, step, Observation(Presence.ABSENT, mine.handle, seen_at=NOW), NOW)
    if isinstance(step.act, Observe):
        return outcome.conclude(of, step, of.seen[mine.key].observation, NOW)
    status = READY_WORD[resource_type(mine.type).kind]
    made = Observation(Presence.PRESENT, f"h-{mine.key}", {"status": status} if status else {}, NOW)
    return outcome.conclude(of, step, made, NOW)


def play(of: World, answers: dict[str, HomeostatError] | None = None) -> tuple[Frontier, list[str]]:
    """Carry out all that can be done now; gives `verb key` of each act in order, and `gone key` of each removal."""
    frontier, story = Frontier(of, keys()), []
    while steps := frontier.steps(NOW, 1):
        step = steps[0]
        if isinstance(step.act, Record):
            record = StepOutcome(step.row, removed=step.removed)
        else:
            story.append(f"{step.act.verb} {step.row.key}")
            record = perform(of, step, answers or {})
        frontier.apply(step, record)
        if record.removed:
            story.append(f"gone {step.row.key}")
    return frontier, story


def waitings(frontier: Frontier) -> dict[str, tuple[Why, tuple[str, ...]]]:
    """Node -> why it waits, and for which nodes."""
    found = {node: (each.why, each.on) for node, each in frontier.waiting.items()}
    blocked = {node: tuple(sorted(nodes)) for node, nodes in frontier.unmet().items()}
    return found | {node: (Why.IN_USE if node[0] == "/" else Why.REQUIRES, nodes) for node, nodes in blocked.items()}


def chain(*names: str, type: str = SERVER) -> list[Any]:
    """Each requires the one before it."""
    return [wanted(name, type, *names[index - 1 : index] if index else ()) for index, name in enumerate(names)]


# -- order -----------------------------------------------------------------------------------------------------------


def test_what_requires_nothing_begins_at_once_and_together() -> None:
    steps = first_steps(world([wanted("a"), wanted("b"), wanted("c", SERVER, "a", "b")]))
    assert list(steps.values()) == ["create in a new row"] * 2


@pytest.mark.shows("CV4")
def test_a_chain_is_made_from_its_beginning() -> None:
    of = world(chain("c", "a", "b"))
    frontier, _ = play(of)
    made = sorted(of.rows.values(), key=lambda each: each.born)
    assert [each.name for each in made] == ["c", "a", "b"]
    assert frontier.at_rest
    assert frontier.exhausted


def test_a_resource_remembers_what_it_was_built_on() -> None:
    of = world(chain("a", "b"))
    play(of)
    key = {each.name: each.key for each in of.rows.values()}
    assert next(each for each in of.rows.values() if each.name == "b").requires == [key["a"]]


@pytest.mark.shows("CV4")
def test_deletion_runs_in_reverse() -> None:
    rows = [row("a"), row("b", requires=["a1"]), row("c", requires=["b1"])]
    _, story = play(world([], rows, **DELETING))
    assert story == ["delete c1", "gone c1", "delete b1", "gone b1", "delete a1", "gone a1"]


def test_what_was_looked_for_comes_next() -> None:
    """Only the pass that has looked knows of it, and it may end after any batch."""
    of = world([wanted("a"), wanted("b"), wanted("c")], [row("a")], {"a1": absent()}, **UPDATED)
    play(of)
    made = sorted((each for key, each in of.rows.items() if key != "a1"), key=lambda each: each.born)
    assert [each.name for each in made] == ["a", "b", "c"]


def test_a_batch_has_its_bound_and_the_rest_comes_next() -> None:
    frontier = Frontier(world([wanted(f"r{n}") for n in range(5)]), keys())
    assert [len(frontier.steps(NOW, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_long_chain_is_walked_without_a_reload() -> None:
    names = [f"r{number}" for number in range(1000)]
    frontier, story = play(world(chain(*names, type=TEST)))
    assert len(story) == 1000
    assert frontier.at_rest


@pytest.mark.shows("CV12")
def test_what_was_built_on_a_replaced_thing_goes_before_it_also_where_both_are_replaced_at_once() -> None:
    rows = [row("a", born=1), row("b", requires=["a1"], born=2), row("c", requires=["b1", "a1"], born=3)]
    new = [
        wanted("a", key_name="k"),
        wanted("b", SERVER, "a", key_name="k"),
        wanted("c", SERVER, "b", "a", key_name="k"),
    ]
    frontier, story = play(world(new, rows, **UPDATED))
    gone = [each for each in story if each.startswith("gone")]
    assert story[:3] == ["create new1", "create new2", "create new3"]
    assert gone == ["gone c1", "gone b1", "gone a1"]
    assert frontier.at_rest


def test_a_circle_of_old_and_new_requirements_does_not_lock_up() -> None:
    """b required a; now a requires b, and both are replaced."""
    rows = [row("a", born=1), row("b", requires=["a1"], born=2)]
    new = [wanted("b", key_name="k"), wanted("a", SERVER, "b", key_name="k")]
    frontier, story = play(world(new, rows, **UPDATED))
    assert story == ["create new1", "create new2", "delete b1", "gone b1", "delete a1", "gone a1"]
    assert frontier.at_rest


# -- replacement -----------------------------------------------------------------------------------------------------


def test_replacement_makes_the_new_one_then_moves_dependants_then_removes_the_old_one() -> None:
    rows = [row("a"), row("b", TEST, requires=["a1"], properties={"value": "v"})]
    new = [wanted("a", key_name="k"), wanted("b", TEST, "a", value="w")]
    of = world(new, rows, looks={"b1": seen(None)}, **UPDATED)
    frontier, story = play(of)
    assert story == ["create new1", "update b1", "delete a1", "gone a1"]
    assert of.rows["b1"].requires == ["new1"]
    assert frontier.at_rest


def test_the_old_one_stays_when_its_replacement_fails() -> None:
    of = world([wanted("a", key_name="k")], [row("a")], **UPDATED)
    frontier, story = play(of, {"a": Terminal("quota")})
    assert story == ["create new1"]
    assert [each.why for each in frontier.waiting.values()] == [Why.FAILED]
    assert frontier.unmet() == {"/a1": ["a"]}
    assert not frontier.at_rest


def test_the_old_one_stays_while_a_dependant_has_not_moved() -> None:
    rows = [row("a"), row("b", TEST, requires=["a1"])]
    new = [wanted("a", key_name="k"), wanted("b", TEST, "a", value="w")]
    of = world(new, rows, looks={"b1": seen(None)}, **UPDATED)
    frontier, story = play(of, {"b": Terminal("no")})
    assert story == ["create new1", "update b1"]
    assert waitings(frontier)["/a1"] == (Why.IN_USE, ("b",))


def test_a_leftover_waits_for_a_leftover_that_uses_it() -> None:
    rows = [row("a"), row("b", requires=["a1"])]
    assert first_steps(world([], rows, **UPDATED)) == {"b1": "delete"}


def test_leftovers_wait_for_what_an_update_makes() -> None:
    rows = [row("a"), row("b", requires=["a1"])]
    assert first_steps(world([wanted("c")], rows, **UPDATED)) == {"new1": "create in a new row"}


def test_a_broken_one_goes_before_the_new_one_is_made() -> None:
    of = world([wanted("a")], [row("a")], looks={"a1": seen("error", 2)}, status="COMPLETE", settled_revision=1)
    _, story = play(of)
    assert story == ["delete a1", "gone a1", "create new1"]


def test_a_vanished_one_is_made_anew_and_its_dependants_are_woken() -> None:
    of = world(
        [wanted("a"), wanted("b", TEST, "a")],
        [row("a"), row("b", TEST, requires=["a1"])],
        looks={"a1": absent(), "b1": seen(None)},
        status="COMPLETE",
        settled_revision=1,
    )
    frontier, story = play(of)
    assert story == ["observe a1", "create new1", "gone a1"]
    assert of.rows["b1"].requires == ["new1"]
    assert frontier.at_rest


def test_an_interrupted_replacement_is_undone_by_a_rollback() -> None:
    rows = [row("a", born=1, replaced_by="a2"), row("a", key="a2", born=2, revision=2, replaces="a1", version=1)]
    of = world([wanted("a")], rows, revision=3, action="ROLLBACK", rollback_to=1, settled_revision=1)
    frontier, story = play(of)
    assert story == ["delete a2", "gone a2"]
    assert of.rows["a1"].replaced_by is None
    assert frontier.at_rest


def test_what_a_policy_retains_is_let_go_of_without_an_act() -> None:
    of = world([], [row("a", deletion_policy="Retain")], **DELETING)
    frontier, story = play(of)
    assert story == ["gone a1"]
    assert frontier.at_rest


# -- failure ---------------------------------------------------------------------------------------------------------


def test_dependants_of_a_failed_one_wait_for_it() -> None:
    frontier, _ = play(world(chain("a", "b")), {"a": Terminal("quota")})
    assert waitings(frontier) == {"a": (Why.FAILED, ()), "b": (Why.REQUIRES, ("a",))}
    assert frontier.exhausted
    assert not frontier.at_rest


def test_a_failed_stack_begins_nothing_and_says_so() -> None:
    rows = [row("a"), row("gone")]
    of = world(
        [wanted("a", flavor="large"), wanted("b")], rows, **{**UPDATED, "status": "FAILED", "reason": "c failed"}
    )
    frontier, story = play(of)
    assert story == []
    assert waitings(frontier) == dict.fromkeys(("a", "b", "/gone1"), (Why.STACK_FAILED, ()))
    assert {each.reason for each in frontier.waiting.values()} == {"c failed"}


def test_a_deletion_goes_on_around_what_failed() -> None:
    rows = [row("a", state="DELETE_FAILED", revision=2), row("b", requires=["a1"]), row("c")]
    _, story = play(world([], rows, **{**DELETING, "status": "FAILED"}))
    assert story == ["delete b1", "gone b1", "delete c1", "gone c1"]


def test_time_out_fails_what_is_in_progress_and_nothing_else() -> None:
    rows = [row("a"), row("b", state="UPDATE_IN_PROGRESS"), row("c", state="DELETE_IN_PROGRESS")]
    frontier = Frontier(world([wanted("a"), wanted("b")], rows), keys())
    steps = frontier.time_out(NOW)
    assert [described(step) for step in steps] == ["record UPDATE_FAILED", "record DELETE_FAILED"]
    assert steps[0].events[0].reason == "ResourceInError: resources.b: UPDATE timed out"


def test_time_out_gives_up_the_token_of_a_creation_without_an_answer() -> None:
    """What it made after all is looked for, and removed."""
    mine = unanswered("a")
    steps = Frontier(world([wanted("a")], [mine]), keys()).time_out(NOW)
    assert steps[0].release == Release("a1-1")
    assert mine.token == ""


def test_a_second_update_after_a_failed_replacement_keeps_the_old_one_meanwhile() -> None:
    rows = [
        row("a", born=1, replaced_by="a2"),
        row("a", state="CREATE_FAILED", key="a2", born=2, revision=2, replaces="a1"),
    ]
    of = world([wanted("a", key_name="k")], rows, revision=3, action="UPDATE", settled_revision=1)
    _, story = play(of)
    assert story.index("create new1") < story.index("delete a1")


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_the_earliest_due_time_counts() -> None:
    rows = [unanswered("a", due_at=NOW + 9), unanswered("b", due_at=NOW + 4), row("c", state="CREATE_IN_PROGRESS")]
    of = world([wanted("a"), wanted("b"), wanted("c")], rows, looks={"c1": seen("building")})
    frontier, _ = play(of)
    assert frontier.due_at() == NOW + 4
    assert frontier.exhausted


def test_nothing_is_due_where_only_others_can_help() -> None:
    frontier, _ = play(world([wanted("a")]), {"a": Terminal("quota")})
    assert frontier.due_at() is None


def test_an_act_under_way_is_not_at_rest() -> None:
    frontier = Frontier(world([wanted("a")]), keys())
    frontier.steps(NOW, 10)
    assert not frontier.exhausted
    assert not frontier.at_rest


def test_what_waits_says_what_for_and_since_when() -> None:
    rows = [row("a", state="CREATE_IN_PROGRESS", updated_at=NOW - 7)]
    frontier, _ = play(world(chain("a", "b"), rows, looks={"a1": seen("building")}))
    assert frontier.waiting == {"a": Waiting("a", Why.BUILDING, (), "its status is building", NOW - 7, None, "a1")}
    assert frontier.unmet() == {"b": ["a"]}
    assert (frontier.size, frontier.unfinished) == (2, 2)


def test_the_predecessor_of_a_reserved_row_is_named() -> None:
    rows = [
        row("a", state="DELETE_IN_PROGRESS", reason="broken", revision=2),
        row("a", state="INIT_COMPLETE", key="a2", handle="", replaces="a1", revision=2, born=2),
    ]
    frontier, _ = play(world([wanted("a")], rows, looks={"a1": seen("deleting")}, **UPDATED))
    assert frontier.waiting["a"].why is Why.LEAVING
    assert frontier.waiting["a"].on == ("a1",)
    assert frontier.waiting["/a1"].why is Why.BUILDING


@pytest.mark.parametrize("type", [SERVER, TEST, VOLUME])
def test_a_world_at_rest_asks_for_nothing(type: str) -> None:
    looks = {"a1": seen(READY_WORD[resource_type(type).kind])}
    frontier, story = play(world([wanted("a", type)], [row("a", type)], looks, status="COMPLETE", settled_revision=1))
    assert story == []
    assert frontier.at_rest
    assert frontier.exhausted
    assert not frontier.waiting


def test_what_an_update_finds_resumed_loses_the_mark_of_its_suspension() -> None:
    """Found by the simulation (seed 38000248): complete with its update, it was not looked at again."""
    definition = wanted("a", metadata={"v": "2"})
    suspended = Marks(maintained={"suspended": LONG_AGO})
    mine = row(
        "a", state="UPDATE_IN_PROGRESS", acted_at=None, intent=ChangeIntent(("metadata",)), marks=suspended, revision=2
    )
    of = world([definition], [mine], {"a1": seen(metadata={"v": "1"})}, **UPDATED)
    frontier, story = play(of)
    assert story == ["update a1"]
    assert (frontier.at_rest, mine.marks) == (True, None)


@pytest.mark.parametrize("switched_off", [{"converge": False}, {"exceptions": {"a": {"converge": False}}}])
def test_what_was_suspended_with_its_stack_is_resumed_though_convergence_is_switched_off(switched_off: Any) -> None:
    """Found by the simulation (seed 6056 of health): an update overtook the resumption."""
    suspended = row("a", state="SUSPEND_COMPLETE", marks=Marks(maintained={"suspended": LONG_AGO}))
    at_rest = {"action": "UPDATE", "status": "COMPLETE", "settled_revision": 1, **switched_off}
    _, story = play(world([wanted("a")], [suspended], {"a1": seen("suspended")}, **at_rest))
    assert story == ["operate a1"]
    by_hand = row("a", state="CREATE_COMPLETE")
    _, story = play(world([wanted("a")], [by_hand], {"a1": seen("suspended")}, **at_rest))
    assert story == []
