"""Machines with wrong clocks: time that matters is the database's."""

import pytest

from homeostat.model.status import Status, joined
from tests.simulation.actors import Api
from tests.simulation.templates import DesiredStack
from tests.simulation.world import World

FIVE_SECONDS = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 5}}


@pytest.mark.parametrize("skew_s", [-3600.0, -10.0, 10.0, 3600.0])
def test_a_wrong_clock_neither_times_a_stack_out_nor_hurries_it(skew_s: float) -> None:
    """The worker's clock is an hour ahead; the stack has a minute, and takes five seconds."""
    world = World(1)
    for process in world.processes:
        process.clock.skew_s = skew_s

    def create(api: Api) -> None:
        api.stack_service.create("p", None, "s", DesiredStack({"a": FIVE_SECONDS}).request(timeout_mins=1))

    world.apis[0].requests.append(create)
    begun_at = world.clock.time
    world.settle()
    (stack,) = world.all_stacks()
    assert joined(stack.action, stack.status) == "CREATE_COMPLETE"
    (row,) = world.rows()
    assert row.status == Status.COMPLETE
    assert 5.0 <= row.updated_at - begun_at < 10.0


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
@pytest.mark.parametrize("dies", [False, True])
def test_what_is_in_progress_goes_on_where_the_clock_is_set(step_s: float, dies: bool) -> None:
    """The clock of the database itself: the stack has a minute, and takes five seconds; a worker may start anew."""
    world = World(1)
    created: list[str] = []

    def create(api: Api) -> None:
        wanted = DesiredStack({"a": FIVE_SECONDS}).request(timeout_mins=1)
        created.append(api.stack_service.create("p", None, "s", wanted))

    world.apis[0].requests.append(create)
    begun_at = world.clock.time
    while not any(row.status == Status.IN_PROGRESS for row in world.rows()):
        world.step()
    world.workers[0].beat()
    world.clock.step_s = step_s
    world.workers[0].beat()
    if dies:
        world.workers[0].kill()
        world.replace_dead()
    world.settle()
    (stack,) = world.all_stacks()
    assert joined(stack.action, stack.status) == "CREATE_COMPLETE"
    (row,) = world.rows()
    assert 5.0 <= row.updated_at - begun_at < 40.0
    for _ in range(2):
        world.apis[0].requests.append(lambda api: api.stack_service.delete(created[0]))
    world.settle()
    assert [each for each in world.all_stacks() if each.deleted_at is None] == []
    assert world.clock.time - begun_at < 300.0
