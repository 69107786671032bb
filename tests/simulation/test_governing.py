"""The invariants of healing that is held back, where a world would have to be played for long to reach them."""

from contextlib import closing
from typing import Any

import pytest

from homeostat.model.status import Action, Status
from homeostat.model.world import Resource
from homeostat.planner.policies.healing import CONSENT
from homeostat.store.shards import shard_state
from tests.simulation.governing import Governors, HealingInvariants
from tests.simulation.rows import Committed, Row, Shard, Stack
from tests.simulation.templates import DesiredStack
from tests.simulation.trouble import troubled

MARKED, HEALING = '{"unhealthy":{}}', '{"healing":{}}'


def row(key: str, action: Action, status: Status, marks: str | None, replaces: str | None = None) -> Row:
    kind = "OS::Nova::Server"
    return Row(key, "s", 0, "a", kind, action, status, "", 0, 1, "Delete", 0, replaces, None, marks, None)


def stack(status: Status) -> Stack:
    healing = '{"policy":"ask"}'
    return Stack("s", "web", "p", Action.UPDATE, status, "", 1, None, 2, None, "s", None, healing, None, None)


def wrong_when(*, marked_before: bool, claimed_after: bool) -> list[str]:
    """What the invariant says of a replacement that is stored after the update has failed in another shard: of what
    carried its mark before that or not, by a pass that began before that or after."""
    wrong: list[str] = []
    invariants = HealingInvariants(lambda holds, text: None if holds else wrong.append(text), lambda stack, shard: {})
    old = row("1", Action.CREATE, Status.COMPLETE, None)
    marked = row("1", Action.CHECK, Status.FAILED, MARKED)
    busy, failed = stack(Status.IN_PROGRESS), stack(Status.FAILED)
    now = Committed({"1": marked if marked_before else old}, {"s": failed}, {"s/0": Shard("s", 0, 1, 1, 0, "")})
    invariants.ended(busy, failed, now)
    now.rows["1"] = marked
    if claimed_after:
        now.shards["s/0"] = Shard("s", 0, 2, 1, 0, "")
    new = now.rows["2"] = row("2", Action.CREATE, Status.IN_PROGRESS, HEALING, "1")
    invariants.judge([(None, new)], now)
    return wrong


def test_an_update_that_fails_elsewhere_meanwhile_still_is_consent() -> None:
    """A pass had read that the update went on, and stored what it had decided just after another shard failed it."""
    assert wrong_when(marked_before=True, claimed_after=False) == []


@pytest.mark.parametrize(("marked_before", "claimed_after"), [(True, True), (False, False), (False, True)])
def test_an_update_that_has_failed_before_is_no_consent(marked_before: bool, claimed_after: bool) -> None:
    (wrong,) = wrong_when(marked_before=marked_before, claimed_after=claimed_after)
    assert "without consent" in wrong


def wrong_again(status: Status, carrier: str, replaces: str | None = "1") -> list[str]:
    """What the invariant says where row 2, whose creation has failed, is used once more, while the update of its stack
    has this status. carrier — key of the row that carries the mark; replaces — key of the one that row 2 replaces."""
    wrong: list[str] = []
    invariants = HealingInvariants(lambda holds, text: None if holds else wrong.append(text), lambda stack, shard: {})
    old, failed = (
        row(key, Action.CHECK, Status.FAILED, MARKED if key == carrier else None, replaced)
        for key, replaced in (("1", None), ("2", replaces))
    )
    again = row("2", Action.CREATE, Status.IN_PROGRESS, HEALING, replaces)
    rows = {"1": old, "2": again}
    invariants.judge([(failed, again)], Committed(rows, {"s": stack(status)}, {"s/0": Shard("s", 0, 1, 2, 0, "")}))
    return wrong


@pytest.mark.parametrize("carrier", ["1", "2"])
def test_an_update_makes_what_was_marked_before_it_was_ever_there(carrier: str) -> None:
    assert wrong_again(Status.IN_PROGRESS, carrier) == []


@pytest.mark.parametrize(
    ("status", "carrier", "replaces"),
    [
        (Status.COMPLETE, "2", "1"),
        (Status.COMPLETE, "2", None),
        (Status.FAILED, "1", "1"),
        (Status.IN_PROGRESS, "", "1"),
    ],
)
def test_without_an_update_or_a_mark_it_needs_consent(status: Status, carrier: str, replaces: str | None) -> None:
    (wrong,) = wrong_again(status, carrier, replaces)
    assert "without consent" in wrong


@pytest.mark.parametrize(("name", "waits"), [("a", False), ("b", True)], ids=["rolled back", "stands for its name"])
def test_what_was_rolled_back_waits_for_no_consent(name: str, waits: bool) -> None:
    """A failed rollback leaves what was made for the update, which may have vanished as well, until the next one."""
    with closing(troubled(0)) as world:
        users = world.apis[0].stack_service
        stack_id = users.create("p", None, "web", DesiredStack({"a": {"type": "OS::Neutron::Net"}}).request())
        world.settle()
        state: dict[str, Any] = {"action": Action.CHECK, "status": Status.FAILED, "reason": f"it is gone. {CONSENT}: …"}
        kind = "OS::Neutron::Net"
        gone = Resource("gone", stack_id, 0, name, kind, handle="network-9", revision=0, born=9, **state)
        with world.db.write() as tx:
            shard_state.encode_new(world.db, [gone]).store(tx)
        governors = world.part(Governors)
        if waits:
            with pytest.raises(AssertionError, match="consent could not be given"):
                governors.rested()
        else:
            governors.rested()
