"""Adapters that give more or fewer answers than they were asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from homeostat.clouds.port import Answer, Change, Creation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.observed import Observation
from tests.component.running import Service, server, volume


class Miscounting(SimulatedCloud):
    """more — answers too many of the operation `wrong`, too few if negative; done — operations of wrong counts."""

    wrong = ""
    more = -1

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.done: list[str] = []

    def _counted(self, operation: str, answers: list[Any]) -> list[Any]:
        if operation != self.wrong:
            return answers
        self.done.append(operation)
        return answers[: self.more] if self.more < 0 else [*answers, *answers[: self.more]]

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        return self._counted("create", super().create(kind, intents))

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._counted("update", super().update(kind, changes))

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return self._counted("delete", super().delete(kind, handles))

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return self._counted("find", super().find(kind, tokens))

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        return self._counted("observe", super().observe(kind, handles))


Make = Callable[..., dict[str, Any]]


def configured(**properties: Any) -> dict[str, Any]:
    return server(user_data_format="SOFTWARE_CONFIG", **properties)


def miscounting() -> tuple[Service, Miscounting]:
    service = Service(cloud=lambda clock: Miscounting(clock.now, CloudBehaviour(idempotent=False)))
    assert isinstance(service.cloud, Miscounting)
    return service, service.cloud


@pytest.mark.parametrize("make", [volume, server, configured])
@pytest.mark.parametrize(("more", "given", "answered"), [(-1, 2, {"r0", "r1"}), (-3, 0, set()), (1, 4, set())])
def test_what_got_no_answer_is_looked_for(
    caplog: pytest.LogCaptureFixture, make: Make, more: int, given: int, answered: set[str]
) -> None:
    service, cloud = miscounting()
    cloud.wrong, cloud.more = "create", more
    stack_id = service.create({f"r{number}": make() for number in range(3)})
    kind = "volume" if make is volume else "server"
    reason = f"gave {given} answers to create of 3 things ({kind})"
    found = {each.name for each in service.rows(stack_id) if reason not in each.reason}
    assert found == answered
    assert [reason in each.message for each in caplog.records if each.levelname == "ERROR"] == [True]
    cloud.wrong = ""
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    assert len(cloud.things(kind)) == 3
    assert not cloud.doubled


@pytest.mark.parametrize("make", [volume, server, configured])
@pytest.mark.parametrize("more", [-1, 1])
def test_no_operation_fails_for_a_wrong_count(make: Make, more: int) -> None:
    service, cloud = miscounting()
    cloud.wrong, cloud.more = "create", more
    stack_id = service.create({f"r{number}": make() for number in range(2)})
    cloud.wrong = "find"
    service.clock.time += 60
    service.work()
    cloud.wrong = ""
    service.rest()
    assert service.state(stack_id) == "CREATE_COMPLETE"
    cloud.wrong = "update"
    service.update(stack_id, {f"r{number}": make(metadata={"k": "v"}) for number in range(2)})
    cloud.wrong = ""
    service.rest()
    assert service.state(stack_id) == "UPDATE_COMPLETE"
    cloud.wrong = "delete"
    service.delete(stack_id)
    cloud.wrong = ""
    service.rest()
    assert service.state(stack_id) == "DELETE_COMPLETE"
    assert set(cloud.done) == {"create", "find", "update", "delete"}
    assert not {**cloud.things("volume"), **cloud.things("server")}


@pytest.mark.parametrize("operation", ["observe", "find"])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_second_look_without_an_answer_replaces_nothing(operation: str, more: int) -> None:
    """The observer has missed the thing; the owner looks by handle, and then by token."""
    service, cloud = miscounting()
    stack_id = service.create({"a": server()})
    service.rest()
    (handle,) = service.servers()
    cloud.vanish(handle)
    service.clock.time += 120
    service.observer.round()
    cloud.wrong, cloud.more = operation, more
    for _ in range(10):
        service.clock.time += 1
        service.work()
    assert set(cloud.done) == {operation}
    assert service.servers() == []
    cloud.wrong = ""
    service.live(120)
    assert len(service.servers()) == 1
    assert service.state(stack_id) == "CREATE_COMPLETE"
