"""The laws of the watcher, at moments that a world would have to be played for long to reach."""

from contextlib import closing
from unittest.mock import patch

import pytest

from homeostat.model.status import Action
from homeostat.planner.actions import snapshot_state
from tests.simulation.templates import DesiredStack
from tests.simulation.world import SimulatedWorld


def given_another_policy(world: SimulatedWorld, *, sender_dies: bool) -> None:
    """A user gives a volume the policy Snapshot when its deletion is intended, and the request not yet with the cloud.

    sender_dies — it never comes there: another worker goes on with the deletion.
    """
    users = world.apis[0].stack_service
    volume = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}
    stack_id = users.create("p", None, "web", DesiredStack({"disk": volume}).request())
    world.settle()
    users.delete(stack_id)
    while world.rows()[0].action != Action.DELETE:
        assert world.step()
    users.update(stack_id, DesiredStack({"disk": {**volume, "deletion_policy": "Snapshot"}}).request())
    if sender_dies:
        world.workers[0].kill()
        world.replace_dead()
    world.settle()


def test_a_deletion_that_is_on_its_way_is_judged_by_the_policy_it_was_intended_with() -> None:
    with closing(SimulatedWorld(0)) as world:
        given_another_policy(world, sender_dies=False)
        assert (world.things(), world.copies(), world.watcher.deletions) == ({}, [], 1)


def test_a_deletion_that_is_intended_again_is_judged_by_the_newer_policy() -> None:
    with closing(SimulatedWorld(0)) as world:
        given_another_policy(world, sender_dies=True)
        assert (len(world.copies()), world.watcher.snapshots) == (1, 1)


def test_a_deletion_that_forgets_the_newer_policy_is_found() -> None:
    never = patch.object(snapshot_state, "needed", return_value=False)
    with never, closing(SimulatedWorld(0)) as world, pytest.raises(AssertionError, match="without a snapshot"):
        given_another_policy(world, sender_dies=True)
