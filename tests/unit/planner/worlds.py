"""Small worlds made by hand: definitions, rows, what was seen of them; and decisions told in a few words."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Decision, DeleteWithParts, Operate, Record, Settled, Step, StepOutcome
from homeostat.model.status import joined
from homeostat.model.waiting import Waiting
from homeostat.model.world import Resource, Seen, StackFacts, World
from homeostat.planner import Frontier
from homeostat.planner.decide import Decider

NOW = 1_000_000.0
LONG_AGO = NOW - 1000.0
TEST, SERVER, VOLUME = "OS::Heat::TestResource", "OS::Nova::Server", "OS::Cinder::Volume"
USUAL: dict[str, dict[str, Any]] = {
    TEST: {"value": "v"},
    SERVER: {"image": "i", "flavor": "small"},
    VOLUME: {"size": 1},
}
"""Properties of a resource of which a test says nothing."""


def keys() -> Iterator[str]:
    return (f"new{number}" for number in count(1))


def wanted(name: str, type: str = SERVER, *requires: str, policy: str = "Delete", **properties: Any) -> Definition:
    values = {**USUAL[type], **properties}
    return Definition(name, type, values, requires=requires, deletion_policy=policy, static=True)


def row(name: str, type: str = SERVER, state: str = "CREATE_COMPLETE", **more: Any) -> Resource:
    """A row of revision 1 whose thing was made long ago, unless told otherwise. Its key is its name with a 1."""
    action, _, status = state.partition("_")
    key = more.pop("key", f"{name}1")
    fields: dict[str, Any] = {
        "handle": f"h-{key}",
        "token": f"{key}-1",
        "properties": dict(USUAL.get(type, {})),
        "acted_at": LONG_AGO,
        "updated_at": LONG_AGO,
        "revision": 1,
        "judged_observation": 1,
        "version": 1,
        "attempts": 1,
    }
    return Resource(key, "s1", 0, name, type, action=action, status=status, **{**fields, **more})


def unanswered(name: str, type: str = SERVER, **more: Any) -> Resource:
    """A creation that was intended, and perhaps sent."""
    fields: dict[str, Any] = {"handle": "", "acted_at": None, "updated_at": NOW, "judged_observation": 0}
    return row(name, type, "CREATE_IN_PROGRESS", **{**fields, **more})


def seen(status: str | None = "active", number: int = 1, **properties: Any) -> Seen:
    fields = properties if status is None else {"status": status, **properties}
    return Seen(Observation(Presence.PRESENT, "h", fields, NOW), number)


def absent(number: int = 2) -> Seen:
    return Seen(Observation(Presence.ABSENT, "h", seen_at=NOW, reason="it is gone"), number)


def unknown(number: int = 2) -> Seen:
    return Seen(Observation(Presence.UNKNOWN, "h", seen_at=NOW, reason="the cloud does not answer"), number)


OF_WORLD = (
    "settled_revision",
    "listing_lag_s",
    "looked_at",
    "blind",
    "second_look_s",
    "looked",
    "brake",
    "health",
    "drain_s",
    "rollouts",
    "to_be_deleted",
)
READY_WORD = {SERVER: "active", VOLUME: "available"}


def world(
    definitions: Iterable[Definition] = (),
    rows: Iterable[Resource] = (),
    looks: dict[str, Seen] | None = None,
    **more: Any,
) -> World:
    """One shard. What no look is told of is as it should be. more — fields of the world and of its stack's facts."""
    mine = {each.key: each for each in rows}
    usual = {
        each.key: seen(READY_WORD.get(each.type), max(each.judged_observation, 1))
        for each in mine.values()
        if each.handle
    }
    of_world = {name: more.pop(name) for name in OF_WORLD if name in more}
    facts: dict[str, Any] = {"revision": 1, "action": "CREATE", "status": "IN_PROGRESS", **more}
    stack = StackFacts("s1", "web", "p", **facts)
    made = World(stack, 0, {each.name: each for each in definitions}, mine, {**usual, **(looks or {})}, **of_world)
    made.stamp = max((max(each.born, each.changed, each.resolved) for each in mine.values()), default=0)
    return made


def decide(of: World, definition: Definition) -> Decision:
    """The decision about one resource; its newest row is current."""
    mine = {each.name: each for each in sorted(of.rows.values(), key=lambda each: each.born) if not each.deleting}
    return Decider(of, mine, keys()).decide(definition, NOW)


def decide_leftover(of: World, leftover: Resource) -> Decision:
    return Decider(of, {}, keys()).decide_leftover(leftover, NOW)


def described(decision: Decision) -> str:
    """`create`, `create in a new row`, `record CREATE_FAILED`, `removed`, `waits: backoff +5`, `settled`, …"""
    if isinstance(decision, Settled):
        return "settled" if decision.step is None else "settled, noted"
    if isinstance(decision, Waiting):
        due = "" if decision.due_at is None else f" +{decision.due_at - NOW:g}"
        return f"waits: {decision.why}{due}"
    return _described_step(decision)


def _described_step(step: Step) -> str:
    if step.removed:
        return "removed"
    what = str(step.act.verb)
    if isinstance(step.act, Record):
        what += f" {joined(step.row.action, step.row.status)}"
    if isinstance(step.act, Operate):
        what += f" {step.act.operation}"
    if isinstance(step.act, DeleteWithParts):
        what += " delete_with_parts"
    return f"{what} in a new row" if step.inserted else what


def events(decision: Decision) -> list[str]:
    step = decision.step if isinstance(decision, Settled) else decision
    assert isinstance(step, Step)
    return [f"{event.name} {joined(event.action, event.status)}" for event in step.events]


def first_steps(of: World) -> dict[str, str]:
    """What may be done at once: row key -> told."""
    return {step.row.key: described(step) for step in Frontier(of, keys()).steps(NOW, 1000)}


def until_an_act(of: World) -> list[str]:
    """What is decided one after the other, up to the first thing that a cloud hears of."""
    frontier, found = Frontier(of, keys()), []
    while steps := frontier.steps(NOW, 1):
        found.append(f"{steps[0].row.key}: {described(steps[0])}")
        if not isinstance(steps[0].act, Record):
            break
        frontier.apply(steps[0], StepOutcome(steps[0].row, removed=steps[0].removed))
    return found
