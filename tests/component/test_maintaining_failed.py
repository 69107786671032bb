"""Actions on stacks in which something has failed: the status is no better than what lies below it."""

from typing import Any

import pytest
from sqlalchemy import select

from homeostat.clouds.port import Answer, Creation, Operation
from homeostat.clouds.simulated import Faults, SimulatedCloud
from homeostat.model.errors import Terminal
from homeostat.model.status import Action
from homeostat.store import schema
from tests.component.maintained import lock, made, rested, unlock
from tests.component.marked import OFF, mark
from tests.component.running import Service, double, group, server


class Refusing(SimulatedCloud):
    """Refuses to create servers whose names have this text, and to change any."""

    name, changes = "m2", False

    def _create(self, kind: str, intent: Creation) -> Answer:
        refused = self.name and self.name in str(intent.spec.get("name"))
        return Terminal("no room") if refused else super()._create(kind, intent)

    def _operate(self, kind: str, operation: Operation) -> Answer:
        refused = self.changes and operation.verb == "lock"
        return Terminal("out of order") if refused else super()._operate(kind, operation)


def with_failed_group() -> tuple[Service, str]:
    """A stack of which one member of the group could not be made."""
    service = Service(cloud=lambda clock: Refusing(clock.now))
    stack_id = service.create({"grp": group(3), "srv": server()})
    assert rested(service, stack_id) == "CREATE_FAILED"
    return service, stack_id


def locked(service: Service) -> int:
    return sum(bool(each.get("locked")) for each in service.cloud.things("server").values())


def test_what_exists_in_a_failed_group_is_locked_and_unlocked_with_its_stack() -> None:
    service, stack_id = with_failed_group()
    reason = service.stack(stack_id).reason
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert locked(service) == 3
    inside = {"0": "LOCK_COMPLETE", "1": "LOCK_COMPLETE", "2": "CREATE_FAILED"}
    assert service.states(service.child().id) == inside
    unlock(service, stack_id)
    assert rested(service, stack_id) == "CREATE_FAILED"
    assert (service.stack(stack_id).reason, locked(service)) == (reason, 0)
    assert service.states(stack_id) == {"grp": "CHECK_FAILED", "srv": "UNLOCK_COMPLETE"}


def test_after_its_lock_a_failed_group_is_completed_by_an_update() -> None:
    service, stack_id = with_failed_group()
    lock(service, stack_id)
    service.rest()
    unlock(service, stack_id)
    service.rest()
    service.cloud.name = ""
    service.update(stack_id, {"grp": group(3), "srv": server()})
    assert rested(service, stack_id) == "UPDATE_COMPLETE"
    assert len(service.servers()) == 4


def test_a_failed_group_of_which_a_member_cannot_be_locked_fails_the_lock() -> None:
    service, stack_id = with_failed_group()
    service.cloud.vanish(service.row(service.child().id, "0").handle)
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    assert "resources.grp.resources[0]: there is no such server" in service.stack(stack_id).reason
    assert locked(service) == 2


def test_a_lock_of_stacks_alone_reaches_a_failed_group_too() -> None:
    service, stack_id = with_failed_group()
    lock(service, stack_id, "stacks")
    assert rested(service, stack_id) == "LOCK_COMPLETE"
    assert (service.child().action, service.child().status, locked(service)) == ("LOCK", "COMPLETE", 0)
    unlock(service, stack_id)
    assert rested(service, stack_id) == "CREATE_FAILED"


def with_failed_server(inside: bool) -> tuple[Service, str]:
    """A stack with a server that is there, and was marked unhealthy; in a group or by itself."""
    service = Service()
    resources = {"grp": group(2), "srv": server()}
    stack_id = service.create(resources)
    service.rest()
    parent, name = (service.child().id, "1") if inside else (stack_id, "srv")
    service.actions.switch(stack_id, OFF)
    mark(service, parent, name)
    assert rested(service, stack_id) == "CHECK_FAILED"
    return service, stack_id


@pytest.mark.parametrize("inside", [False, True], ids=["by itself", "in a group"])
def test_a_failed_server_that_is_there_is_named_by_the_lock_that_does_not_protect_it(inside: bool) -> None:
    service, stack_id = with_failed_server(inside)
    lock(service, stack_id)
    assert rested(service, stack_id) == "LOCK_FAILED"
    name = "grp.resources[1]" if inside else "srv"
    assert f"resources.{name}: State CHECK_FAILED invalid for lock" in service.stack(stack_id).reason
    assert locked(service) == 2
    unlock(service, stack_id)
    assert rested(service, stack_id) == "CHECK_FAILED"
    assert locked(service) == 0


@pytest.mark.parametrize("action", [Action.CHECK, Action.SUSPEND, Action.RESUME, Action.LOCK])
def test_no_action_reports_success_above_a_failed_group(action: Action) -> None:
    service, stack_id = with_failed_group()
    service.cloud.changes = True  # type: ignore[attr-defined]
    begin: Any = lock if action is Action.LOCK else lambda there, id: there.actions.begin(id, action)
    begin(service, stack_id)
    assert rested(service, stack_id) == f"{action}_FAILED"
    assert "grp" in service.stack(stack_id).reason
    service.live(200.0)
    assert service.state(stack_id) == f"{action}_FAILED"


def test_an_update_that_overtakes_the_deletion_of_a_locked_stack_leaves_nothing_locked() -> None:
    """Found by the simulation: the deletion took the lock from the root alone, and nobody can unlock nested stacks."""
    service, stack_id = made({"g": group(2, double()), "srv": server()})
    lock(service, stack_id)
    service.rest()
    service.cloud.behaviour.faults = Faults(unreachable=1.0)
    unlock(service, stack_id)
    service.live(8000.0)
    assert service.state(stack_id) == "UNLOCK_FAILED"
    service.stack_service.delete(stack_id)  # and no pass follows before the update
    service.update(stack_id, {"g": group(2, double()), "srv": server()})
    service.cloud.behaviour.faults = Faults()
    service.rest()
    with service.db.read() as tx:
        assert tx.execute(select(schema.stack.c.lock).where(schema.stack.c.lock.is_not(None))).all() == []
    (handle,) = service.servers()
    service.cloud.vanish(handle)
    service.live(300.0)
    assert len(service.servers()) == 1
