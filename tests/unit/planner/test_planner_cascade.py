"""Load balancers that are deleted together with their parts, and those that are deleted after them (ADR 0070)."""

from typing import Any

import pytest
from tests.unit.planner.worlds import LONG_AGO, NOW, TEST, described, keys, row, seen, world

from homeostat.model.desired import Definition
from homeostat.model.errors import HomeostatError, Rejected, Terminal, Transient
from homeostat.model.hooks import HookProgress
from homeostat.model.intent import PARTS_FIRST, OperationIntent
from homeostat.model.marks import Marks
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Create, DeleteWithParts, Observe, Record, Step, StepOutcome
from homeostat.model.stack_actions import LOCKED
from homeostat.model.waiting import Why
from homeostat.model.world import Resource, World
from homeostat.planner import Frontier, outcome
from homeostat.templates.registry import PRE_DELETE

BALANCER, LISTENER = "OS::Octavia::LoadBalancer", "OS::Octavia::Listener"
POOL, MEMBER, MONITOR = "OS::Octavia::Pool", "OS::Octavia::PoolMember", "OS::Octavia::HealthMonitor"
POLICY, RULE = "OS::Octavia::L7Policy", "OS::Octavia::L7Rule"
DELETED: dict[str, Any] = {"revision": 2, "action": "DELETE", "settled_revision": 1}
ALL = {
    "listener": ["h-listener1"],
    "pool": ["h-pool1"],
    "pool_member": ["h-m1", "h-n1"],
    "health_monitor": ["h-monitor1"],
    "l7_policy": ["h-policy1"],
    "l7_rule": ["h-rule1"],
}


def balanced(**changed: dict[str, Any]) -> list[Resource]:
    """A load balancer with a part of each kind; `changed` — name of a row -> what is different of it."""
    rows = [
        ("lb", BALANCER, []),
        ("listener", LISTENER, ["lb1"]),
        ("pool", POOL, ["listener1"]),
        ("m", MEMBER, ["pool1"]),
        ("n", MEMBER, ["pool1"]),
        ("monitor", MONITOR, ["pool1"]),
        ("policy", POLICY, ["listener1"]),
        ("rule", RULE, ["policy1"]),
    ]
    return [row(name, type, **{"requires": requires, **changed.get(name, {})}) for name, type, requires in rows]


def together(step: Step) -> DeleteWithParts:
    assert isinstance(step.act, DeleteWithParts)
    return step.act


class Player:
    """Carries out all that can be done; `refusals` are answers to the first acts on resources of these names."""

    def __init__(
        self, of: World, refusals: dict[str, HomeostatError] | None = None, here: tuple[str, ...] = ()
    ) -> None:
        self.world, self.frontier = of, Frontier(of, keys())
        self.story: list[str] = []
        self.steps: list[Step] = []
        self._refusals, self._here = dict(refusals or {}), here

    def play(self) -> list[str]:
        while steps := self.frontier.steps(NOW, 1):
            (step,) = steps
            self.steps.append(step)
            self.story.append(f"{described(step)} {step.row.name}")
            self.frontier.apply(step, self._record(step))
        return self.story

    def _record(self, step: Step) -> StepOutcome:
        if isinstance(step.act, Record):
            return StepOutcome(step.row, removed=step.removed)
        refusal = self._refusals.pop(step.row.name, None)
        if refusal is not None:
            return outcome.conclude(self.world, step, refusal, NOW)
        there = isinstance(step.act, Observe) and step.row.name in self._here
        presence = Presence.PRESENT if there else Presence.ABSENT
        return outcome.conclude(self.world, step, Observation(presence, step.row.handle, seen_at=NOW), NOW)


def played(rows: list[Resource], *definitions: Any, **more: Any) -> Player:
    facts = {**DELETED, **more.pop("facts", {})}
    player = Player(world(definitions, rows, more.pop("looks", None), **facts), **more)
    player.play()
    return player


TOGETHER = "operate delete_with_parts lb"


def test_a_balancer_is_deleted_together_with_its_parts_which_are_then_found_gone() -> None:
    player = played(balanced())
    assert player.story[0] == TOGETHER
    assert together(player.steps[0]).parts == ALL
    assert not [each for each in player.story if each.startswith("delete")]
    looked = {each.removeprefix("observe ") for each in player.story if each.startswith("observe")}
    assert looked == {"listener", "pool", "m", "n", "monitor", "policy", "rule"}
    assert not player.world.rows
    assert player.frontier.at_rest


def test_what_is_still_there_after_its_balancer_is_deleted_by_itself() -> None:
    player = played(balanced(), here=("m",))
    assert player.story.count("delete m") == 1
    assert not player.world.rows


NOT_TOGETHER: dict[str, dict[str, dict[str, Any]]] = {
    "a part is retained": {"pool": {"deletion_policy": "Retain"}},
    "a part is not managed here": {"listener": {"external_id": "h-listener1"}},
    "the balancer is retained": {"lb": {"deletion_policy": "Retain"}},
    "a part is locked": {"m": {"marks": Marks(maintained={LOCKED: NOW})}},
    "a user wants to be asked before a part goes": {"rule": {"hooks": HookProgress(of_deletion=(PRE_DELETE,))}},
    "a user wants to be asked before the balancer goes": {"lb": {"hooks": HookProgress(of_deletion=(PRE_DELETE,))}},
}


@pytest.mark.parametrize("why", NOT_TOGETHER)
def test_parts_are_deleted_one_by_one_where(why: str) -> None:
    player = played(balanced(**NOT_TOGETHER[why]))
    assert TOGETHER not in player.story
    assert "delete n" in player.story


def test_parts_are_deleted_one_by_one_if_the_stack_keeps_the_balancer() -> None:
    rows = balanced()
    rows[0].properties = {"vip_subnet": "s"}
    kept = wanted_balancer()
    player = played(rows, kept, facts={"action": "UPDATE"})
    assert TOGETHER not in player.story
    assert {"delete m", "delete pool", "delete listener"} <= set(player.story)
    assert "lb1" in player.world.rows


def wanted_balancer(**properties: Any) -> Any:
    return Definition("lb", BALANCER, {"vip_subnet": "s", **properties}, static=True)


REFUSALS = (Terminal("load balancer h-lb1 has others"), Rejected("NotSupported", "there is no such operation"))


@pytest.mark.parametrize("refusal", REFUSALS, ids=["others", "unsupported"])
def test_after_a_refusal_the_parts_are_deleted_before_the_balancer(refusal: HomeostatError) -> None:
    player = played(balanced(), refusals={"lb": refusal})
    story = player.story
    assert story[0] == TOGETHER
    assert TOGETHER not in story[1:]
    order = ["delete m", "delete pool", "delete listener", "delete lb"]
    assert sorted(order, key=story.index) == order
    assert story[-1] == "delete lb"
    assert not player.world.rows


def test_a_refusal_is_remembered_by_the_next_worker_and_explained() -> None:
    of = world([], balanced(), **DELETED)
    frontier = Frontier(of, keys())
    (step,) = frontier.steps(NOW, 1)
    record = outcome.conclude(of, step, Terminal("it has listener x"), NOW)
    assert record.whole, "the intent is stored"
    assert record.row.intent == OperationIntent(PARTS_FIRST)
    assert record.row.reason == "its parts are deleted first, one by one: it has listener x"
    player = Player(of)
    assert TOGETHER not in player.play()
    assert not of.rows


def test_a_newer_revision_tries_it_together_again() -> None:
    refused = {"lb": {"intent": OperationIntent(PARTS_FIRST), "revision": 2, "acted_at": None}}
    rows = balanced(**refused)
    rows[0].action, rows[0].status = "DELETE", "IN_PROGRESS"
    assert played(rows, facts={"revision": 3}).story[0] == TOGETHER


def test_a_request_without_an_answer_is_repeated() -> None:
    """A worker has died after the request, and its row says so: the balancer is gone by now, or it is not."""
    rows = balanced()
    rows[0].action, rows[0].status, rows[0].acted_at, rows[0].revision = "DELETE", "IN_PROGRESS", None, 2
    player = played(rows)
    assert player.story.count(TOGETHER) == 1
    assert not [each for each in player.story if each.startswith("delete")]
    assert not player.world.rows


def test_parts_wait_while_their_balancer_is_being_deleted() -> None:
    rows = balanced()
    rows[0].action, rows[0].status, rows[0].revision = "DELETE", "IN_PROGRESS", 2
    player = played(rows, looks={"lb1": seen("deleting", 2)})
    assert player.story == []
    assert player.frontier.waiting["/lb1"].why is Why.BUILDING
    assert set(player.frontier.unmet()) == {f"/{each.key}" for each in rows[1:]}


def test_it_is_explained_that_parts_wait_for_their_balancer() -> None:
    rows = balanced()
    rows[0].action, rows[0].status, rows[0].revision = "DELETE", "IN_PROGRESS", 2
    player = Player(world([], rows, {"lb1": seen("deleting", 2)}, **DELETED))
    player.play()
    assert player.frontier.is_deleted_with_whole("/pool1")
    assert not player.frontier.is_deleted_with_whole("/lb1")


def test_a_deletion_that_ends_in_error_is_requested_again() -> None:
    rows = balanced()
    rows[0].action, rows[0].status, rows[0].revision, rows[0].acted_at = "DELETE", "IN_PROGRESS", 2, NOW
    failed = {"lb1": seen("error", 2, fault="no host")}
    player = played(rows, looks=failed)
    assert player.story == []
    waiting = player.frontier.waiting["/lb1"]
    assert waiting.why is Why.BACKOFF
    assert "no host" in waiting.reason
    assert waiting.due_at is not None
    rows[0].acted_at = NOW - (waiting.due_at - NOW)
    again = played(rows, looks=failed)
    assert again.story[0] == TOGETHER
    assert rows[0].attempts == 2


def test_when_the_balancer_is_gone_the_next_worker_looks_for_its_parts_first() -> None:
    player = played(balanced()[1:])
    assert "observe m" in player.story
    assert not [each for each in player.story if each.startswith("delete")]


def test_a_balancer_waits_for_what_uses_its_parts() -> None:
    user = row("u", TEST, requires=["pool1"])
    story = played([*balanced(), user]).story
    assert story.index("delete u") < story.index(TOGETHER)


def test_nothing_is_turned_around_where_that_were_a_circle() -> None:
    """The server knows the address of the balancer, and the member that of the server."""
    server = row("u", requires=["lb1"])
    player = played([*balanced(m={"requires": ["pool1", "u1"]}), server])
    assert TOGETHER not in player.story
    assert not player.world.rows


def test_what_a_creation_has_made_is_found_before_the_balancer_goes() -> None:
    unknown = {"status": "IN_PROGRESS", "handle": "", "acted_at": None, "updated_at": LONG_AGO}
    rows = balanced()
    for name, value in unknown.items():
        setattr(rows[3], name, value)
    story = played(rows).story
    assert story[:2] == ["find m", TOGETHER] or story.index("find m") < story.index(TOGETHER)


def test_a_part_whose_deletion_waits_goes_with_its_balancer_as_well() -> None:
    """Such is a stack of an older version: each part waits while the balancer is in ERROR."""
    rows = balanced()
    for each in rows[3:]:
        each.action, each.status, each.acted_at, each.due_at, each.revision = "DELETE", "IN_PROGRESS", None, NOW + 9, 2
    player = played(rows)
    assert player.story[0] == TOGETHER
    assert together(player.steps[0]).parts == ALL


def test_a_refusal_for_now_is_repeated_together() -> None:
    player = played(balanced(), refusals={"lb": Transient("it is being changed", 4)})
    assert player.story == [TOGETHER]
    waiting = player.frontier.waiting["/lb1"]
    assert (waiting.why, waiting.due_at) == (Why.BACKOFF, NOW + 4)


def test_a_replaced_balancer_goes_with_its_old_parts() -> None:
    rows = [row("lb", BALANCER, properties={"vip_subnet": "s"})]
    old = {"protocol": "TCP", "protocol_port": 80, "loadbalancer": "h-lb1"}
    rows.append(row("listener", LISTENER, requires=["lb1"], properties=old))
    new = [
        Definition("lb", BALANCER, {"vip_subnet": "t"}, static=True),
        Definition("listener", LISTENER, {**old, "loadbalancer": "h-new1"}, requires=("lb",), static=True),
    ]
    player = Replacing(world(new, rows, **{**DELETED, "action": "UPDATE"}))
    story = player.play()
    assert story[-3:] == [TOGETHER, "observe listener", "removed listener"]
    assert together(player.steps[-3]).parts == {"listener": ["h-listener1"]}
    assert {each.handle for each in player.world.rows.values()} == {"h-new1", "h-new2"}


class Replacing(Player):
    """Creations succeed."""

    def _record(self, step: Step) -> StepOutcome:
        if isinstance(step.act, Create):
            made = Observation(Presence.PRESENT, f"h-{step.row.key}", {"status": "active"}, NOW)
            return outcome.conclude(self.world, step, made, NOW)
        return super()._record(step)


def test_a_lost_part_is_not_deleted_with_its_balancer() -> None:
    story = played(balanced(m={"marks": Marks(lost_at=LONG_AGO)})).story
    assert story.index("delete m") < story.index(TOGETHER)


GROUP = "OS::Heat::ResourceGroup"
IN_ERROR = {"lb1": seen("error", 2, fault="no host"), "g1": seen("in_progress", 2)}


def grouped(state: str = "DELETE_IN_PROGRESS", **more: Any) -> list[Resource]:
    """A load balancer and a group that has members in its pool."""
    rows = [each for each in balanced() if each.name in ("lb", "listener", "pool")]
    return [*rows, row("g", GROUP, state, requires=["pool1"], revision=2, **more)]


def test_a_balancer_in_error_goes_before_a_group_that_is_being_deleted() -> None:
    player = played(grouped(), looks=IN_ERROR)
    assert player.story[0] == TOGETHER
    assert together(player.steps[0]).inside
    assert together(player.steps[0]).parts == {"listener": ["h-listener1"], "pool": ["h-pool1"]}
    assert not [each for each in player.story if each.startswith("delete")]


def test_a_balancer_in_error_waits_until_the_deletion_of_the_group_has_begun() -> None:
    of = world([], grouped("CREATE_COMPLETE"), IN_ERROR, **DELETED)
    frontier = Frontier(of, keys())
    (step,) = frontier.steps(NOW, 9)
    assert described(step) == "delete"
    there = Observation(Presence.PRESENT, "h-g1", {"status": "in_progress"}, NOW)
    frontier.apply(step, outcome.conclude(of, step, there, NOW))
    (step,) = frontier.steps(NOW, 9)
    assert (described(step), step.row.name, together(step).inside) == ("operate delete_with_parts", "lb", True)


def test_a_balancer_that_works_waits_until_the_group_is_gone() -> None:
    player = played(grouped(), looks={**IN_ERROR, "lb1": seen()})
    assert player.story == []


def test_a_balancer_in_error_waits_for_what_else_uses_it() -> None:
    player = Player(world([], [*grouped(), row("u", TEST, requires=["pool1"])], IN_ERROR, **DELETED))
    story = player.play()
    assert story.index("delete u") < story.index(TOGETHER)


def test_a_balancer_in_error_that_stays_is_not_taken_along() -> None:
    rows = grouped()
    rows[0].properties = {"vip_subnet": "s"}
    player = played(rows, wanted_balancer(), facts={"action": "UPDATE"}, looks=IN_ERROR)
    assert TOGETHER not in player.story


@pytest.mark.parametrize("why", ["pool", "lb"])
def test_a_balancer_in_error_stays_with_what_is_retained(why: str) -> None:
    rows = grouped()
    next(each for each in rows if each.name == why).deletion_policy = "Retain"
    assert TOGETHER not in played(rows, looks=IN_ERROR).story


def test_a_refusal_is_repeated_while_nested_stacks_come_to_their_parts() -> None:
    player = played(grouped(), looks=IN_ERROR, refusals={"lb": Terminal("it has member x")})
    assert player.story == [TOGETHER]
    balancer = player.world.rows["lb1"]
    assert balancer.intent is None
    assert balancer.reason == "it is to be deleted together with its parts: it has member x"
    assert player.frontier.waiting["/lb1"].why is Why.BACKOFF
    assert player.frontier.waiting["/lb1"].due_at == balancer.due_at
    balancer.due_at = NOW
    again = Player(player.world)
    assert again.play()[0] == TOGETHER
    assert together(again.steps[0]).inside, "although its deletion has begun by now"


def test_when_the_group_is_gone_a_refusal_leads_back_to_the_old_way() -> None:
    rows = grouped()[:-1]
    rows[0].action, rows[0].status, rows[0].acted_at, rows[0].revision = "DELETE", "IN_PROGRESS", None, 2
    player = played(rows, looks=IN_ERROR, refusals={"lb": Terminal("it has member x")})
    assert not together(player.steps[0]).inside
    assert player.story[0] == TOGETHER
    assert "delete pool" in player.story


@pytest.mark.parametrize("state", ["DELETE_FAILED", "DELETE_IN_PROGRESS"])
def test_a_deletion_that_is_requested_again_is_repeated_until_the_group_is_in_deletion_again(state: str) -> None:
    """The load balancer may have its turn before the group: a refusal then must not lead back to the old way."""
    rows = grouped(state, acted_at=None)
    rows[0].action, rows[0].status = state.split("_", 1)
    of = world([], rows, IN_ERROR, **{**DELETED, "revision": 3})
    frontier = Frontier(of, keys())
    (first,) = (step for step in frontier.steps(NOW, 9) if step.row.name == "lb")
    assert (described(first), together(first).inside) == (TOGETHER.removesuffix(" lb"), True)
    frontier.apply(first, outcome.conclude(of, first, Terminal("it has member x"), NOW))
    assert of.rows["lb1"].intent is None
    assert (of.rows["lb1"].busy, of.rows["lb1"].acted_at) == (True, None)
