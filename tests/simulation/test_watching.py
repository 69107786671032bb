"""The invariants of the watcher, at moments that a world would have to be played for long to reach."""

from contextlib import closing
from unittest.mock import patch

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.status import Action, Status
from homeostat.planner.states import snapshot_state
from homeostat.services.marks import MarkRequest
from tests.simulation.templates import DesiredStack
from tests.simulation.world import World

DISK = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}


def given_another_policy(world: World, *, sender_dies: bool) -> None:
    """A user gives a volume the policy Snapshot when its deletion is intended, and the request not yet with the cloud.

    sender_dies — it never comes there: another worker goes on with the deletion.
    """
    users = world.apis[0].stack_service
    stack_id = users.create("p", None, "web", DesiredStack({"disk": DISK}).request())
    world.settle()
    users.delete(stack_id)
    while world.rows()[0].action != Action.DELETE:
        assert world.step()
    users.update(stack_id, DesiredStack({"disk": {**DISK, "deletion_policy": "Snapshot"}}).request())
    if sender_dies:
        world.workers[0].kill()
        world.replace_dead()
    world.settle()


def test_a_deletion_that_is_on_its_way_is_judged_by_the_policy_it_was_intended_with() -> None:
    with closing(World(0)) as world:
        given_another_policy(world, sender_dies=False)
        assert (world.things(), world.copies(), world.watcher.deletions) == ({}, [], 1)


def test_a_deletion_that_is_intended_again_is_judged_by_the_newer_policy() -> None:
    with closing(World(0)) as world:
        given_another_policy(world, sender_dies=True)
        assert (len(world.copies()), world.watcher.snapshots) == (1, 1)


def test_a_deletion_that_forgets_the_newer_policy_is_found() -> None:
    never = patch.object(snapshot_state, "needed", return_value=False)
    with never, closing(World(0)) as world, pytest.raises(AssertionError, match="without a snapshot"):
        given_another_policy(world, sender_dies=True)


def test_what_failed_its_check_fails_it_as_before_when_its_mark_ends() -> None:
    with closing(World(0, CloudBehaviour(quota=0))) as world:
        api = world.apis[0]
        stack_id = api.stack_service.create("p", None, "web", DesiredStack({"disk": DISK}).request())
        world.settle()
        api.actions.begin(stack_id, Action.CHECK)
        world.settle()
        api.marks.mark(stack_id, MarkRequest(True, lasts_s=5.0), {"": "disk"})
        world.settle()
        (row,) = world.rows()
        assert (row.action, row.status, row.marks) == (Action.CHECK, Status.FAILED, None)


def test_an_action_that_failed_for_a_check_stays_so_when_that_is_well_again() -> None:
    """What a volume holds that is attached is left to users: its failure is one of the action in progress."""
    attached = {"attachments": [{"server_id": "server-999"}]}
    with closing(World(0)) as world:
        users = world.apis[0].stack_service
        stack_id = users.create("p", None, "web", DesiredStack({"disk": DISK}).request())
        world.settle()
        slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 60}}
        users.update(stack_id, DesiredStack({"disk": DISK, "slow": slow}).request())
        (handle,) = world.things()
        world.clouds["p"].change(handle, status="error", fault="by hand", **attached)
        while world.all_stacks()[0].status != Status.FAILED:
            world.clock.time += 0.0 if world.step() else 1.0
        world.clouds["p"].change(handle, status="available", fault="")
        world.settle()
        assert [row.status for row in world.rows()] == [Status.COMPLETE] * 2
        assert world.all_stacks()[0].reason.startswith("Resource CHECK failed: ")
