"""A deletion does not wait for what it is about to end, and one stack of a project does not wait for another."""

import pytest

from homeostat.convergence.jobs.conductor import run_pass
from tests.component.running import Service, group, volume

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
