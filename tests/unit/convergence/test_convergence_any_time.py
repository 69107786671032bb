"""New desired states at any moment (CV2), and the three stuck cases (CV14)."""

import pytest
from tests.unit.convergence.running import Service, double, server, volume

from homeostat.clouds.simulated import Weather

SLOW = Weather(build_s=3.0, delete_s=3.0)


@pytest.mark.parametrize("after_s", [0.0, 1.0, 2.5])
def test_an_update_while_a_delete_runs_wins(after_s: float) -> None:
    service = Service(SLOW)
    stack_id = service.create({"disk": volume(), "srv": {**server(), "depends_on": "disk"}})
    service.rest()
    service.intake.delete(stack_id)
    service.live(after_s)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.update(stack_id, {"disk": volume(), "more": volume()})
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id) == {"disk": "CREATE_COMPLETE", "more": "CREATE_COMPLETE"}
    assert len(service.cloud.things()) == 2


def test_a_delete_after_an_update_after_a_delete_wins() -> None:
    service = Service(SLOW)
    stack_id = service.create({"srv": server()})
    service.rest()
    service.delete(stack_id)
    service.update(stack_id, {"srv": server()})
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert service.cloud.things() == {}


def test_a_failed_delete_is_left_by_an_update() -> None:
    service = Service(Weather(delete_s=1e9))
    stack_id = service.create({"srv": server(), "t": double(value="1")}, timeout_mins=1)
    service.delete(stack_id)
    service.rest()
    assert service.state(stack_id) == "DELETE_FAILED"
    service.update(stack_id, {"t": double(value="2")})
    service.cloud.vanish(service.servers()[0])
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    assert service.states(stack_id) == {"t": "CREATE_COMPLETE"}


def test_a_hanging_delete_is_let_go_by_another_deletion_policy() -> None:
    """CV14: the undeletable thing stays, and the stack is at rest at once."""
    service = Service(Weather(delete_s=1e9))
    stack_id = service.create({"srv": server(), "t": double(value="1")})
    service.delete(stack_id)
    service.live(5.0)
    assert service.state(stack_id) == "DELETE_IN_PROGRESS"
    service.update(stack_id, {"t": double(value="1"), "srv": {**server(), "deletion_policy": "Retain"}})
    service.rest()
    service.delete(stack_id)
    service.rest(5.0)
    assert service.state(stack_id) == "DELETE_COMPLETE"
