"""Stacks for tests that mark resources unhealthy."""

from typing import Any

import pytest

from homeostat.model.errors import Rejected
from homeostat.services.actions import ConvergenceSettings
from homeostat.services.marks import MarkOutcome, MarkRequest, Marks
from tests.component.running import Service, double, server

UNHEALTHY = MarkRequest(True)
WELL = MarkRequest(False)
OFF = ConvergenceSettings({"converge": False})
PAIR = {"srv": server(), "user": double(value={"get_resource": "srv"})}


def started(resources: dict[str, Any] = PAIR, *, converge: bool = False) -> tuple[Service, str]:
    """A stack that is complete; left alone between updates, unless told otherwise."""
    service = Service()
    stack_id = service.create(resources)
    service.rest()
    if not converge:
        service.actions.switch(stack_id, OFF)
        service.live(1.0)
    return service, stack_id


def send_marks(service: Service, stack_id: str, request: MarkRequest, *targets: str) -> list[MarkOutcome]:
    return Marks(service.db).mark(
        stack_id, request, {f"resources[{place}]": each for place, each in enumerate(targets)}
    )


def mark(service: Service, stack_id: str, target: str, request: MarkRequest = UNHEALTHY) -> None:
    Marks(service.db).mark(stack_id, request, {"": target})
    service.work()


def refused(service: Service, stack_id: str, *targets: str, request: MarkRequest = UNHEALTHY) -> Rejected:
    with pytest.raises(Rejected) as caught:
        send_marks(service, stack_id, request, *targets)
    return caught.value
