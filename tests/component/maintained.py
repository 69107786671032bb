"""Stacks that are suspended, resumed, locked and unlocked."""

from typing import Any

import pytest

from homeostat.clouds.simulated import CloudBehaviour
from homeostat.model.errors import Rejected
from homeostat.model.status import Action
from homeostat.store.stacks.locks import Lock
from tests.component.running import Service, server


def lock_of(level: str = "all", owner: str | None = "ann", **more: Any) -> Lock:
    return {"level": level, "owner": owner, "owner_id": None, "reason": None, "at": 0.0, "expires_at": None, **more}


def lock(service: Service, stack_id: str, level: str = "all", **more: Any) -> None:
    service.actions.lock(stack_id, lock_of(level, **more), lambda _: True)


def unlock(service: Service, stack_id: str) -> None:
    service.actions.unlock(stack_id, lambda _: True)


def made(resources: dict[str, Any], behaviour: CloudBehaviour | None = None) -> tuple[Service, str]:
    """A service with a stack of these resources that is well and was looked at."""
    service = Service(behaviour)
    stack_id = service.create(resources)
    service.rest()
    return service, stack_id


def rested(service: Service, stack_id: str) -> str:
    service.rest()
    return service.state(stack_id)


def statuses(service: Service) -> list[str]:
    return sorted(each["status"] for each in service.cloud.things("server").values())


def refusal(act: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(Rejected) as caught:
        act(*given, **named)
    return f"{caught.value.code} {caught.value.fault}"


def check_still_suspended(service: Service, stack_id: str) -> None:
    """Check that a stack of one server stays suspended, refuses updates, and can be resumed."""
    service.live(120.0)
    assert statuses(service) == ["suspended"]
    assert refusal(service.update, stack_id, {"srv": server()}) == "400 NotSupported"
    service.actions.begin(stack_id, Action.RESUME)
    assert rested(service, stack_id) == "RESUME_COMPLETE"
    assert statuses(service) == ["active"]
