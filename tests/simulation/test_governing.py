"""The laws of healing that is held back, where a world would have to be played for long to reach them."""

import pytest

from homeostat.model.status import Action, Status
from tests.simulation.governing import HealingLaws
from tests.simulation.rows import Committed, Row, Shard, Stack

MARKED, HEALING = '{"unhealthy":{}}', '{"healing":{}}'


def row(key: str, action: Action, status: Status, marks: str | None, replaces: str | None = None) -> Row:
    kind = "OS::Nova::Server"
    return Row(key, "s", 0, "a", kind, action, status, "", 0, 1, "Delete", 0, replaces, None, marks, None)


def stack(status: Status) -> Stack:
    healing = '{"policy":"ask"}'
    return Stack("s", "web", "p", Action.UPDATE, status, "", 1, None, 2, None, "s", None, healing, None, None)


def wrong_when(*, marked_before: bool, claimed_after: bool) -> list[str]:
    """What the law says of a replacement that is stored after the update has failed in another shard: of what carried
    its mark before that or not, by a pass that began before that or after."""
    wrong: list[str] = []
    laws = HealingLaws(lambda holds, text: None if holds else wrong.append(text), lambda stack, shard: {})
    old = row("1", Action.CREATE, Status.COMPLETE, None)
    marked = row("1", Action.CHECK, Status.FAILED, MARKED)
    busy, failed = stack(Status.IN_PROGRESS), stack(Status.FAILED)
    now = Committed({"1": marked if marked_before else old}, {"s": failed}, {"s/0": Shard("s", 0, 1, 1, 0, "")})
    laws.ended(busy, failed, now)
    now.rows["1"] = marked
    if claimed_after:
        now.shards["s/0"] = Shard("s", 0, 2, 1, 0, "")
    new = now.rows["2"] = row("2", Action.CREATE, Status.IN_PROGRESS, HEALING, "1")
    laws.judge([(None, new)], now)
    return wrong


def test_an_update_that_fails_elsewhere_meanwhile_still_is_consent() -> None:
    """A pass had read that the update went on, and stored what it had decided just after another shard failed it."""
    assert wrong_when(marked_before=True, claimed_after=False) == []


@pytest.mark.parametrize(("marked_before", "claimed_after"), [(True, True), (False, False), (False, True)])
def test_an_update_that_has_failed_before_is_no_consent(marked_before: bool, claimed_after: bool) -> None:
    (wrong,) = wrong_when(marked_before=marked_before, claimed_after=claimed_after)
    assert "without consent" in wrong
