"""Why something is not at rest, and what would move it: every reason, by asking the planner."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.planner.worlds import (
    LONG_AGO,
    NOW,
    SERVER,
    TEST,
    VOLUME,
    absent,
    row,
    seen,
    unanswered,
    unknown,
    wanted,
    world,
)

from homeostat.clustering.decisions.health_policy import health_policy
from homeostat.clustering.decisions.policies import check_policy
from homeostat.model.budget import Limit
from homeostat.model.desired import Definition
from homeostat.model.health_policy import HealthPolicy, Mode
from homeostat.model.hooks import HookProgress
from homeostat.model.intent import OperationIntent
from homeostat.model.marks import LetGoMark, Marks, RecoveryMark, UnhealthyMark
from homeostat.model.node_health import Detected, Finding, NodeHealth, ShardHealth
from homeostat.model.rollout import Rollout, RolloutSettings, WaitGate
from homeostat.model.waiting import REASONS, Why
from homeostat.model.world import Brake, World
from homeostat.planner.lifecycle.recovery_state import REPORTER
from homeostat.planner.policies.healing import ALL_GONE, CONSENT
from homeostat.planner.report.explain import Explanation, ShardStatus, explain, explain_stack, with_pause

BEGUN = NOW - 60.0
DUE = ShardStatus(BEGUN, wake_at=NOW - 2.0, observe_at=NOW + 1.0)
REVISED: dict[str, Any] = {"revision": 2, "action": "UPDATE", "settled_revision": 1}
ASKED = row("a", state="CREATE_IN_PROGRESS", token="t", handle="", acted_at=None, updated_at=NOW - 7)
BUILDING = row("a", state="CREATE_IN_PROGRESS", updated_at=NOW - 7)
TRYING = unanswered("a", due_at=NOW + 3, reason="503 try later", retries=2, updated_at=NOW - 1)
LOST = row("a", updated_at=NOW - 1, judged_observation=1, attempts=3)
OLD = row("a", state="DELETE_IN_PROGRESS", reason="broken", revision=2, updated_at=NOW - 9)
NEW = row("a", state="INIT_COMPLETE", key="a2", handle="", replaces="a1", revision=2, born=2, updated_at=NOW - 9)
HOLDING = row("a", SERVER, properties={"networks": [{"port": "p1"}]}, replaced_by="a2",
              marks=Marks(let_go=LetGoMark(("port p1",), failure="409 busy", tries=1, due_at=NOW + 2)))  # fmt: skip
SUCCESSOR = row(
    "a", SERVER, "INIT_COMPLETE", key="a2", handle="", replaces="a1", revision=2, born=2, updated_at=NOW - 9
)
KEPT = row("a", VOLUME, "DELETE_IN_PROGRESS", deletion_policy="Snapshot", changed=1, updated_at=NOW - 9,
           intent=OperationIntent("snapshot", token="t"))  # fmt: skip
GOING = row("a", "OS::Octavia::LoadBalancer", "DELETE_IN_PROGRESS", revision=2, updated_at=NOW - 9)
PART = row("b", "OS::Octavia::Listener", requires=["a1"])
FAILED = row("a", state="CREATE_FAILED", reason="quota", updated_at=NOW - 30)
MARK = UnhealthyMark("it smells", NOW - 30, expires_at=NOW + 30)
MARKED = row("a", state="CHECK_FAILED", reason="it smells", marks=Marks(MARK))
AT_HOOK = HookProgress(1, "pre-create", NOW - 7)
GROUP = "OS::Heat::ResourceGroup"
GROUPED = Definition("a", GROUP, {"count": 3}, static=True)
ROLLING_OUT = row("a", GROUP, "UPDATE_IN_PROGRESS", properties={"count": 3}, new_metadata={"v": 2})
GATE = Definition("c", "OS::Heat::WaitCondition", {"handle": "h", "timeout": 60}, requires=("a",), static=True)
GATED = RolloutSettings("immediate", gates=(WaitGate("c", "h", 60.0),))
ROLLOUT = Rollout("a1", "s1", 0, "a", "h-a1", "running", GATED, 2, 60, 4, 4, step_at=NOW - 40,
                  reason="step 2: 1 of 3 members have reported")  # fmt: skip
LOCKED: dict[str, Any] = {
    "action": "LOCK", "status": "COMPLETE", "settled_revision": 1,
    "lock": {"level": "all", "owner": "ann", "reason": "disks", "expires_at": NOW + 60},
}  # fmt: skip
SUSPENDED: dict[str, Any] = {"action": "SUSPEND", "status": "COMPLETE", "settled_revision": 1, "suspended": True}
LEFT: dict[str, Any] = {"converge": False, "status": "COMPLETE", "settled_revision": 1}


AT_REST: dict[str, Any] = {"status": "COMPLETE", "settled_revision": 1, "complete_revision": 1}
ILL = Marks(UnhealthyMark("it is stopped", NOW - 30, reporter=REPORTER))
TOO_MANY = "it is stopped; 3 of 10 members are unhealthy, more than max_unhealthy (20%): none is recovered"


def policy_of(**more: Any) -> HealthPolicy:
    """That polls the status of members, and makes others in the place of unhealthy ones."""
    spec = {
        "type": "senlin.policy.health",
        "version": "1.2",
        "properties": {
            "detection": {"detection_modes": [{"type": "NODE_STATUS_POLLING"}]},
            "recovery": {"actions": [{"name": "RECREATE"}]},
        },
    }
    return replace(health_policy(check_policy(spec)), **more)


def ill(policy: HealthPolicy, *, size: int = 1, unhealthy: int = 1, well: int = 0, **more: Any) -> World:
    """A server that a policy has found unhealthy and marked; the newest looks, as many as `well`, found it healthy."""
    detected = Detected("NODE_STATUS_POLLING", Finding.UNHEALTHY, NOW - 30, successes=well)
    node = NodeHealth(Finding.UNHEALTHY, NOW - 30, "it is stopped", detected=(detected,))
    of_row = {"state": "CHECK_FAILED", "updated_at": NOW - 30, "reason": "it is stopped", "marks": ILL, **more}
    health = ShardHealth({"": policy}, {"a1": node}, NOW - 1, size, unhealthy)
    there = {"a1": seen("stopped")}
    return world([wanted("a", SERVER)], [row("a", SERVER, **of_row)], there, health=health, **AT_REST)


def two() -> list[Any]:
    return [wanted("a"), wanted("b", SERVER, "a")]


def described(each: Explanation) -> tuple[Any, ...]:
    """Why, on which, reason, and when: waiting for so long, released in so long, next attempt in so long."""
    since = None if each.since is None else NOW - each.since
    due = None if each.due_at is None else each.due_at - NOW
    following = None if each.next_at is None else each.next_at - NOW
    return each.why, each.on, each.reason, since, due, each.next, following


ASKING: dict[str, Any] = {**AT_REST, "brake": Brake(policy="ask")}
CHANGING: dict[str, Any] = {**REVISED, "brake": Brake(1.0, limit=Limit(1))}
CHANGED = row("b", state="UPDATE_IN_PROGRESS", revision=2)
ENDS = "it has left its load balancers, and ends what it has begun"
AWAY = "1 of 2 members is away: b is being changed; it goes on with at least 1 in service"
BRAKED = "of its stack are being healed, and no more are at a time"
CASES: dict[str, tuple[World, ShardStatus, tuple[Any, ...]]] = {
    "it requires what is not done": (
        world(two(), [BUILDING], {"a1": seen("building")}),
        DUE,
        ("b", Why.REQUIRES, ("a",), "", 60.0, None, "create", None),
    ),
    "its thing is being built": (
        world([wanted("a")], [BUILDING], {"a1": seen("building")}),
        DUE,
        ("a", Why.BUILDING, (), "its status is building", 7.0, None, "look", 1.0),
    ),
    "at rest, and it changes by itself or cannot be reached": (
        world([wanted("a")], [row("a")], {"a1": seen("unreachable", fault="its host is silent")}, **AT_REST),
        DUE,
        ("a", Why.BUILDING, (), "its status is unreachable: its host is silent", 0.0, None, "look", 1.0),
    ),
    "time alone makes it ready": (
        world(
            [wanted("a", TEST, wait_secs=5)],
            [row("a", TEST, "CREATE_IN_PROGRESS", acted_at=NOW - 2, properties={"value": "v", "wait_secs": 5})],
        ),
        DUE,
        ("a", Why.BUILDING, (), "it takes 5 s, as its properties say", NOW - LONG_AGO, 3.0, "record", 3.0),
    ),
    "a user has marked it unhealthy": (
        world([wanted("a")], [MARKED], **LEFT),
        DUE,
        ("a", Why.UNHEALTHY, (), "it smells", 30.0, 30.0, "", None),
    ),
    "so many of its stack are healed already": (
        world([wanted("a")], [row("a")], {"a1": absent()}, brake=Brake(elsewhere=1), **AT_REST),
        DUE,
        ("a", Why.BRAKE, (), f"it is gone; 1 {BRAKED}", NOW - LONG_AGO, None, "", None),
    ),
    "others of its group are away": (
        world([wanted("a"), wanted("b")], [MARKED, CHANGED], {"b1": seen("resize")}, **CHANGING),
        DUE,
        ("a", Why.BUDGET, (), f"it smells; {AWAY}", NOW - LONG_AGO, None, "", None),
    ),
    "everything of its kind is gone at once": (
        world([wanted("a")], [row("a")], {"a1": absent()}, brake=Brake(blind=frozenset({"server"})), **AT_REST),
        DUE,
        ("a", Why.BLIND, (), f"it is gone; {ALL_GONE}", NOW - LONG_AGO, None, "look", 1.0),
    ),
    "a user has to agree": (
        world([wanted("a")], [row("a", state="CHECK_FAILED", reason=CONSENT)], {"a1": absent()}, **ASKING),
        DUE,
        ("a", Why.NEEDS_CONSENT, (), CONSENT, NOW - LONG_AGO, None, "", None),
    ),
    "the cloud asked for patience": (
        world([wanted("a")], [TRYING]),
        DUE,
        ("a", Why.BACKOFF, (), "503 try later", 1.0, 3.0, "find", 3.0),
    ),
    "it was lost again and again": (
        world([wanted("a")], [LOST], {"a1": absent()}, status="COMPLETE", settled_revision=1),
        DUE,
        ("a", Why.BACKOFF, (), "it is gone", 1.0, 1.0, "observe", 1.0),
    ),
    "nobody knows what became of it": (
        world([wanted("a")], [BUILDING], {"a1": unknown()}),
        DUE,
        ("a", Why.UNSEEN, (), "the cloud does not answer", 7.0, None, "look", 1.0),
    ),
    "the cloud does not answer": (
        world([wanted("a")], [BUILDING], {"a1": seen("building")}, looked_at=NOW - 40, blind="connection refused"),
        ShardStatus(BEGUN, observe_at=NOW + 1),
        ("a", Why.UNSEEN, (), "connection refused", 40.0, None, "look", 1.0),
    ),
    "another one failed": (
        world([wanted("a"), wanted("b")], [FAILED], status="FAILED", reason="a failed"),
        DUE,
        ("b", Why.STACK_FAILED, (), "a failed", 30.0, None, "", None),
    ),
    "it failed": (
        world([wanted("a")], [FAILED], status="FAILED"),
        DUE,
        ("a", Why.FAILED, (), "quota", 30.0, None, "", None),
    ),
    "others still use it": (
        world([wanted("b")], [row("a"), row("b", state="UPDATE_IN_PROGRESS", requires=["a1"], revision=2)],
              {"b1": seen("building")}, **REVISED),
        DUE,
        ("/a1", Why.IN_USE, ("b",), "", 60.0, None, "delete", None),
    ),
    "it goes with what it is part of": (
        world([], [GOING, PART], {"a1": seen("deleting")}, **{**REVISED, "action": "DELETE"}),
        DUE,
        ("/b1", Why.PART, ("a",), "", 60.0, None, "delete", None),
    ),
    "what it replaces goes first": (
        world([wanted("a")], [OLD, NEW], {"a1": seen("deleting")}, **REVISED),
        DUE,
        ("a", Why.LEAVING, ("a",), "broken", 9.0, None, "create", None),
    ),
    "its snapshot is being made": (
        world([], [KEPT], {"a1": seen("available", snapshots=[{"id": "s", "token": "t", "status": "creating"}])}),
        DUE,
        ("/a1", Why.SNAPSHOT, (), "its snapshot s is being made", 9.0, None, "look", 1.0),
    ),
    "nothing holds it": (
        world([wanted("a")]),
        DUE,
        ("a", Why.TURN, (), "its shard is due", 2.0, None, "create", -2.0),
    ),
    "a worker is at it": (
        world([wanted("a")]),
        ShardStatus(BEGUN, wake_at=NOW - 2, owned=True),
        ("a", Why.TURN, (), "a worker has its shard now", 2.0, None, "create", -2.0),
    ),
    "the cloud has not answered": (
        world([wanted("a")], [ASKED]),
        ShardStatus(BEGUN, wake_at=NOW - 2, owned=True),
        (
            "a",
            Why.ANSWER,
            (),
            "a worker has sent the request (create) to the cloud (server), and there is no answer yet",
            7.0,
            None,
            "find",
            -2.0,
        ),
    ),
    "its shard sleeps": (
        world([wanted("a")]),
        ShardStatus(BEGUN, wake_at=NOW + 4),
        ("a", Why.TURN, (), "its shard is not due yet", None, 4.0, "create", 4.0),
    ),
    "nobody works": (
        world([wanted("a")]),
        ShardStatus(BEGUN, wake_at=NOW - 50, has_workers=False),
        ("a", Why.NO_WORKER, (), "no worker is alive", 50.0, None, "create", -50.0),
    ),
    "nobody works, for a moment": (
        world([wanted("a")]),
        ShardStatus(BEGUN, wake_at=NOW - 1, has_workers=False),
        ("a", Why.TURN, (), "its shard is due", 1.0, None, "create", -1.0),
    ),
    "our own mistake": (
        world([wanted("a")]),
        ShardStatus(BEGUN, wake_at=NOW + 20, set_aside_for="KeyError('x')"),
        ("a", Why.SET_ASIDE, (), "KeyError('x')", 60.0, 20.0, "create", 20.0),
    ),
    "it stops before its creation": (
        world([replace(wanted("a"), hooks=("pre-create",))], [row("a", state="INIT_COMPLETE", hooks=AT_HOOK)]),
        DUE,
        ("a", Why.HOOK, (), "CREATE paused until Hook pre-create is cleared", 7.0, None, "create", None),
    ),
    "it drifted, and nobody wants it mended": (
        world([wanted("a")], [row("a", judged_observation=2)], {"a1": absent()}, **LEFT),
        DUE,
        ("a", Why.LEFT_ALONE, (), "it is gone; convergence is switched off", 0.0, None, "", None),
    ),
    "it drifted, and the stack is locked": (
        world([wanted("a")], [row("a", judged_observation=2)], {"a1": absent()}, **LOCKED),
        DUE,
        ("a", Why.LOCKED, (), "it is gone; the stack is locked by ann: disks", 0.0, 60.0, "", None),
    ),
    "it was never made, and the stack is locked": (
        world([wanted("a"), wanted("b")], [row("b")], **LOCKED),
        DUE,
        ("a", Why.LOCKED, (), "the stack is locked by ann: disks", None, 60.0, "", None),
    ),
    "it is a leftover of a locked stack": (
        world([wanted("b")], [row("a"), row("b")], **LOCKED),
        DUE,
        ("/a1", Why.LOCKED, (), "the stack is locked by ann: disks", 1000.0, 60.0, "", None),
    ),
    "it is gone, and a stack around its own is being deleted": (
        world([wanted("a")], [row("a", judged_observation=2)], {"a1": absent()}, to_be_deleted=True, **AT_REST),
        DUE,
        ("a", Why.TO_BE_DELETED, (), "it is gone; nothing is made for what will be deleted", 1000.0, None, "", None),
    ),
    "it drifted, and the stack is suspended": (
        world([wanted("a")], [row("a", judged_observation=2)], {"a1": absent()}, **SUSPENDED),
        DUE,
        ("a", Why.SUSPENDED, (), "it is gone; the stack is suspended", 0.0, None, "", None),
    ),
    "it leaves its group": (
        world([wanted("b")], [row("a", drains_until=NOW + 30), row("b")], drain_s=60.0),
        DUE,
        ("/a1", Why.DRAINING, (), ENDS, 30.0, 30.0, "delete", 30.0),
    ),
    "a health policy only observes": (
        ill(policy_of(mode=Mode.OBSERVE)),
        DUE,
        ("a", Why.OBSERVED, (), "it is stopped; would be tried: RECREATE", 30.0, None, "", None),
    ),
    "a health policy proposes": (
        ill(policy_of(mode=Mode.PROPOSE)),
        DUE,
        ("a", Why.PROPOSED, (), "it is stopped; would be tried: RECREATE", 30.0, None, "", None),
    ),
    "too many are unhealthy": (
        ill(policy_of(max_unhealthy="20%"), size=10, unhealthy=3),
        DUE,
        ("a", Why.POSTPONED, (), TOO_MANY, 30.0, 5.0, "", None),
    ),
    "a reboot has yet to help": (
        ill(policy_of(), marks=replace(ILL, recovery=RecoveryMark(NOW - 20, acted_at=NOW - 20))),
        DUE,
        ("a", Why.VERIFYING, (), "RECREATE is done; it is stopped", 30.0, 90.0, "", None),
    ),
    "a reboot seems to help, though its time is over": (
        ill(policy_of(verify_s=5), well=1, marks=replace(ILL, recovery=RecoveryMark(NOW - 20, acted_at=NOW - 20))),
        DUE,
        ("a", Why.VERIFYING, (), "RECREATE is done; it is stopped", 30.0, 1.0, "", None),
    ),
    "it is not confirmed that a server is cut off": (
        ill(policy_of(), marks=replace(ILL, recovery=RecoveryMark(NOW - 20)), state="UPDATE_IN_PROGRESS",
            intent=OperationIntent("fence", arguments={"what": ["COMPUTE"]}), acted_at=None, due_at=NOW + 4),
        DUE,
        ("a", Why.FENCING, (), "not confirmed: COMPUTE", 30.0, 4.0, "", None),
    ),
    "what it replaces is still to let go of a port": (
        world([wanted("a", SERVER)], [HOLDING, SUCCESSOR], {"a1": seen("active")}, **REVISED),
        DUE,
        ("a", Why.HANDOVER, ("a",), "the one before lets go of port p1: 409 busy", 9.0, 2.0, "create", None),
    ),
    "its members get new metadata": (
        world([GROUPED, GATE], [ROLLING_OUT], {"a1": seen("complete")}, rollouts={"a1": ROLLOUT}),
        DUE,
        ("a", Why.ROLLOUT, (), f"{ROLLOUT.reason}; 4 of 60 members have the new metadata", 40.0, 20.0, "", None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_reason(case: str) -> None:
    of, standing, (node, *expected) = CASES[case]
    found = {each.node: each for each in explain(deepcopy(of), standing, NOW)}
    assert described(found[node]) == tuple(expected)


@pytest.mark.parametrize(
    ("facts", "busy", "expected"),
    [
        ({"status": "COMPLETE"}, False, None),
        ({}, True, None),
        ({}, False, (Why.TURN, None)),
        ({"step_at": NOW + 5}, False, (Why.PAUSE, NOW + 5)),
        ({"step_at": NOW + 5}, True, (Why.PAUSE, NOW + 5)),
        ({"step_at": NOW + 5, "status": "FAILED"}, False, None),
    ],
)
def test_what_a_stack_itself_waits_for(facts: dict[str, Any], busy: bool, expected: Any) -> None:
    found = explain_stack(world(**facts).stack, busy)
    assert (None if found is None else (found.why, found.due_at)) == expected


def test_a_stack_waits_for_members_that_are_away_when_its_pause_is_over() -> None:
    found = explain_stack(world(step_at=NOW - 5).stack, True, "2 of 3 members are away")
    assert found is not None
    assert (found.why, found.due_at) == (Why.BUDGET, None)
    assert explain_stack(world(status="FAILED").stack, True, "2 of 3 members are away") is None


def test_every_reason_can_be_met_and_has_a_release() -> None:
    """Those of resources above; the pause of a group's stack, and its wait for reports, pass on to the group."""
    [group] = explain(world([wanted("a")], [deepcopy(BUILDING)], {"a1": seen("building")}), DUE, NOW)
    pausing = with_pause(group, world(step_at=NOW + 5).stack)
    assert (pausing.next, pausing.next_at) == ("update", NOW + 5)
    assert with_pause(group, world().stack) == group
    asking = with_pause(group, world(step_at=NOW + 5).stack, asks=True)
    assert (asking.why, asking.due_at, asking.next_at) == (Why.REPORTS, NOW + 5, NOW + 5)
    assert with_pause(group, world().stack, asks=True) == group
    away = with_pause(group, world().stack, "2 of 3 members are away")
    assert (away.why, away.reason, away.due_at) == (Why.BUDGET, "2 of 3 members are away", None)
    assert {expected[1] for _, _, expected in CASES.values()} | {pausing.why, asking.why} == set(Why)
    assert set(REASONS) == set(Why)


@pytest.mark.parametrize("settled", [0, 1])
def test_what_is_at_rest_is_not_explained(settled: int) -> None:
    assert explain(world([wanted("a")], [row("a")], settled_revision=settled), DUE, NOW) == []


# -- who waits for whom ----------------------------------------------------------------------------------------------


def chain(length: int) -> Iterable[Any]:
    return [wanted(f"r{number}", SERVER, *([f"r{number - 1}"] if number else [])) for number in range(length)]


def test_a_chain_waits_for_its_beginning() -> None:
    found = explain(world(chain(500), [row("r0", state="CREATE_FAILED", reason="quota")]), DUE, NOW)
    assert [each.why for each in found] == [Why.FAILED] + [Why.REQUIRES] * 499
    assert {each.cause for each in found} == {"r0"}
    assert found[0].blocks == ("r1",)
    last = next(each for each in found if each.node == "r499")
    assert (last.on, last.after) == (("r498",), ("r498",))


def test_of_several_causes_the_failed_one_is_named() -> None:
    rows = [row("a", state="CREATE_IN_PROGRESS"), row("b", state="CREATE_FAILED", reason="quota")]
    wants = [wanted("a"), wanted("b"), wanted("c", SERVER, "a", "b")]
    found = {each.node: each for each in explain(world(wants, rows, {"a1": seen("building")}), DUE, NOW)}
    assert found["c"].on == ("a", "b")
    assert found["c"].cause == "b"


def test_what_is_leaving_blocks_its_successor() -> None:
    found = {
        each.node: each
        for each in explain(world([wanted("a")], deepcopy([OLD, NEW]), {"a1": seen("x")}, **REVISED), DUE, NOW)
    }
    assert found["/a1"].blocks == ("a",)
    assert found["a"].cause == "/a1"
    assert found["/a1"].leftover
    assert not found["a"].leftover


def test_what_would_be_made_instead_is_not_explained() -> None:
    """Asking what a replacement waits for must not invent the leftover that it would make."""
    found = explain(world([wanted("a", key_name="k")], [row("a")], **REVISED), DUE, NOW)
    assert [(each.node, each.why, each.next, each.status) for each in found] == [("a", Why.TURN, "create", "COMPLETE")]


def test_a_check_that_is_to_be_recorded_waits_for_its_turn() -> None:
    checked = world([wanted("a")], [row("a")], action="CHECK", revision=2, settled_revision=1)
    assert [(each.why, each.next) for each in explain(checked, DUE, NOW)] == [(Why.TURN, "record")]


def test_states_are_those_before_asking() -> None:
    found = explain(world([wanted("a")], [row("a")], {"a1": absent()}, settled_revision=1, status="COMPLETE"), DUE, NOW)
    assert [(each.action, each.status, each.next) for each in found] == [("CREATE", "COMPLETE", "observe")]
