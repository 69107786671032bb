"""A deletion does not wait for what it is about to end, nor one stack of a project for another, and none ends early."""

import pytest

from homeostat.convergence.jobs.conductor import run_pass
from homeostat.desired import members
from homeostat.services.pipeline.request import StackRequest
from tests.component.maintained import lock, made, unlock
from tests.component.running import Service, group, server, template, volume

MEMBER = {"type": "OS::Heat::RandomString"}


def begun(count: int) -> tuple[Service, str]:
    """A group whose stack is there; of its members none is."""
    service = Service()
    stack_id = service.begin({"grp": group(count, MEMBER)})
    run_pass(service.reconciler, service.claim())
    assert service.child().shards == -(-count // 1000)
    service.clock.time += 1.0
    return service, stack_id


@pytest.mark.shows("CV15")
def test_a_deletion_overtakes_the_creation_of_its_nested_stacks() -> None:
    service, stack_id = begun(20_000)
    service.stack_service.delete(stack_id)
    assert service.claim().stack_id == stack_id


def test_what_was_never_begun_is_not_visited_to_be_deleted() -> None:
    service, stack_id = begun(20_000)
    run_pass(service.reconciler, service.claim())
    service.stack_service.delete(stack_id)
    service.work(passes_max=6)
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert all(each.deleted_at is not None for each in service.stacks())


@pytest.mark.shows("CV17")
def test_a_small_stack_does_not_wait_for_the_large_one_of_its_project() -> None:
    service, _ = begun(20_000)
    small = service.begin({"v": volume()}, name="small")
    claimed = [service.claim().stack_id for _ in range(2)]
    assert small in claimed


def test_a_group_whose_update_was_cancelled_is_brought_about_by_the_update_after_its_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by the simulation (seed 41041012): the next update left alone what it did not touch, and was COMPLETE."""
    monkeypatch.setattr(members, "MEMBERS_PER_SHARD", 2)
    service, stack_id = made({"grp": group(4)})
    service.stack_service.update(stack_id, StackRequest(template({"grp": group(4, server(flavor="large"))})))
    run_pass(service.reconciler, service.claim())
    service.stack_service.cancel(stack_id, roll_back=False)
    lock(service, stack_id, "stacks")
    service.live(60.0)
    child = service.child()
    assert (service.state(stack_id), child.revision, child.complete_revision) == ("LOCK_COMPLETE", 3, 1)
    assert [each.settled_revision for each in service.shards(child.id)] == [3, 3], "by its lock"
    unlock(service, stack_id)
    service.rest()
    service.update(stack_id, {"grp": group(5, server(flavor="large"))})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert {each["flavor"] for each in service.cloud.things("server").values()} == {"large"}
