"""Steering rollouts of metadata: what is refused, in which state, and who is named."""

import time
from typing import Any

import pytest
from sqlalchemy import select

from homeostat.model.errors import Rejected
from homeostat.model.rollout import RolloutState, Steering
from homeostat.model.status import Action
from homeostat.store import schema
from homeostat.store.stacks import rollouts
from tests.component.test_metadata_rollouts import Group, resources

FAILING = {"bad": {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": True, "wait_secs": 5}}}


class Steered(Group):
    """A group whose rollout is steered."""

    @property
    def key(self) -> str:
        return str(self.group_row.key)

    def steer(self, steering: Steering, *more: Any) -> Any:
        return getattr(self.rollouts, steering)(self.key, *more)

    def refusal(self, steering: Steering, *more: Any) -> Rejected:
        with pytest.raises(Rejected) as refused:
            self.steer(steering, *more)
        return refused.value

    def state_of_rollout(self) -> str:
        with self.db.read() as tx:
            found = rollouts.of_group(tx, self.key)
        return "" if found is None else found.state

    def left_paused(self) -> None:
        """Pause a rollout in a stack that fails at another resource, so that nothing is in progress."""
        self.update(self.id, {**resources("2", **self.more), **FAILING})
        self.live(1)
        self.steer(Steering.PAUSE)
        self.rest()
        assert (self.state(self.id), self.values()) == ("UPDATE_FAILED", "2111")


def test_what_a_state_does_not_allow_is_a_conflict_and_no_rollout_is_not_found() -> None:
    service = Steered()
    for steering in Steering:
        refused = service.refusal(steering)
        assert (refused.code, refused.fault, str(refused)) == (404, "NotFound", "The group has no rollout in progress.")
    service.change("2")
    refused = service.refusal(Steering.RESUME)
    assert (refused.code, refused.fault) == (409, "Conflict")
    assert str(refused) == "The rollout of group is running: to resume it, it has to be paused or held."
    assert service.refusal(Steering.APPROVE).code == 409, "it asks for no approval"
    service.steer(Steering.PAUSE)
    assert service.refusal(Steering.PAUSE).code == 409
    assert service.values() == "2111"


def test_only_the_step_that_is_meant_is_approved() -> None:
    service = Steered(2, approval=True)
    service.change("2")
    service.report(0)
    refused = service.refusal(Steering.APPROVE, "ann", 2)
    assert (refused.code, "is at step 1, not 2" in str(refused)) == (409, True)
    service.live(10)
    assert service.values() == "21"
    assert service.steer(Steering.APPROVE, "ann", 1).approved == 1
    service.live(1)
    assert service.values() == "22"
    with service.db.read() as tx:
        reasons = set(tx.execute(select(schema.event.c.reason)).scalars())
    assert "Rollout: step 1 is approved by ann" in reasons


@pytest.mark.parametrize("steering", [each for each in Steering if each is not Steering.APPROVE])
def test_a_locked_stack_refuses_all_of_it_in_the_words_of_the_lock(steering: Steering) -> None:
    service = Steered()
    service.left_paused()
    lock = {"level": "all", "owner": "ann", "owner_id": None, "reason": "disks", "at": time.time(), "expires_at": None}
    service.actions.lock(service.id, lock, lambda _: True)
    service.rest()
    refused = service.refusal(steering)
    assert (refused.code, refused.fault) == (409, "StackLocked")
    assert "is locked by ann (disks): unlock it first" in str(refused)
    assert (service.state_of_rollout(), service.values()) == (RolloutState.PAUSED, "2111")


@pytest.mark.parametrize("steering", [Steering.RESUME, Steering.PROMOTE])
def test_no_member_of_a_suspended_stack_gets_new_metadata(steering: Steering) -> None:
    service = Steered()
    service.left_paused()
    service.actions.begin(service.id, Action.SUSPEND)
    service.rest()
    refused = service.refusal(steering)
    assert (refused.code, refused.fault) == (400, "NotSupported")
    assert "resume the stack web first" in str(refused)
    assert service.values() == "2111"


@pytest.mark.parametrize(("steering", "values"), [(Steering.ROLL_BACK, "1111"), (Steering.ABORT, "2111")])
def test_a_rollout_of_a_suspended_stack_can_be_ended(steering: Steering, values: str) -> None:
    service = Steered()
    service.left_paused()
    service.actions.begin(service.id, Action.SUSPEND)
    service.rest()
    service.steer(steering)
    service.rest()
    assert service.values() == values
    service.actions.begin(service.id, Action.RESUME)
    service.rest()
    assert (service.values(), service.state_of_rollout()) == (values, "")
