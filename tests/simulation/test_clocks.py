"""Machines with wrong clocks: time that matters is the database's."""

import pytest

from homeostat.api.services.stacks import StackService
from homeostat.model.status import Status, joined
from tests.simulation.templates import DesiredStack
from tests.simulation.world import SimulatedWorld

FIVE_SECONDS = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 5}}


@pytest.mark.parametrize("skew_s", [-3600.0, -10.0, 10.0, 3600.0])
def test_a_wrong_clock_neither_times_a_stack_out_nor_hurries_it(skew_s: float) -> None:
    """The worker's clock is an hour ahead; the stack has a minute, and takes five seconds."""
    world = SimulatedWorld(1)
    for process in world.processes:
        process.clock.skew_s = skew_s

    def create(stack_service: StackService) -> None:
        stack_service.create("p", None, "s", DesiredStack({"a": FIVE_SECONDS}).request(timeout_mins=1))

    world.apis[0].requests.append(create)
    begun_at = world.clock.time
    world.settle()
    (stack,) = world.all_stacks()
    assert joined(stack.action, stack.status) == "CREATE_COMPLETE"
    (row,) = world.rows()
    assert row.status == Status.COMPLETE
    assert 5.0 <= row.updated_at - begun_at < 10.0
