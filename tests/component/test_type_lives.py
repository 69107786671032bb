"""The life of a resource of each type, on the simulated cloud: made, left alone, changed, replaced, removed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from docs import examples
from homeostat.builtin.server_agents import OWN
from homeostat.clouds.port import Answer, Change, Creation
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.status import Status
from homeostat.resources.comparison import equal
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.registry import types
from homeostat.resources.schema import ValueType
from tests.component.running import PROJECT, Service
from tests.unit.resources.resource_cases import thing
from tests.unit.resources.type_values import LIVING, OUTSIDE, changed, example, fixed, refixed

PATIENCE_S = 120.0


class Watched(SimulatedCloud):
    """Counts what changes it."""

    def __init__(self, now: Any) -> None:
        super().__init__(now, CloudBehaviour(build_s=2.0, delete_s=1.0))
        self.calls: list[str] = []

    def create(self, kind: str, intents: Sequence[Creation]) -> list[Answer]:
        self.calls += [f"create {kind}"] * len(intents)
        return super().create(kind, intents)

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        self.calls += [f"update {kind}"] * len(changes)
        return super().update(kind, changes)

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        self.calls += [f"delete {kind}"] * len(handles)
        return super().delete(kind, handles)


def signal_handle(service: Service, stack_id: str) -> None:
    if service.state(stack_id).startswith("DELETE"):
        return
    handle = service.row(stack_id, "other")
    if handle.type == "OS::Heat::WaitConditionHandle":
        service.signal(stack_id, "other")
        return
    data = {"Status": "SUCCESS", "UniqueId": str(service.clock.time), "Data": "", "Reason": ""}
    service.put(service.seen(stack_id, "other")["url"], data if handle.type.startswith("AWS") else {})


def signal_deployment(service: Service, stack_id: str) -> None:
    """Also those of a group, which are in a stack of their own."""
    for each in service.records_of("software_deployment"):
        if each.object["status"] == Status.IN_PROGRESS:
            service.signals.native(PROJECT, each.kind, each.id, {"deploy_status_code": 0})
    service.work()


SIGNALS: Mapping[str, Callable[[Service, str], None]] = {
    "wait_condition": signal_handle,
    "software_deployment": signal_deployment,
}
"""Kind that waits for signals -> what sends them."""


class Life:
    """A stack with one resource `it` of a type."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.service = Service(cloud=lambda clock: Watched(clock.now))
        self.id = self.service.create(self.template(example(name)), files=examples.FILES)
        self.rest()

    def template(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return examples.resources(types()[self.name], properties, "it")

    def rest(self) -> None:
        """Let time pass; whatever waits for signals is given them."""
        kind = types()[self.name]
        send = signal_deployment if isinstance(kind, SoftwareDeploymentGroup) else SIGNALS.get(kind.kind)
        while send is not None and self.state.endswith("IN_PROGRESS"):
            self.service.live(1.0)
            send(self.service, self.id)
        self.service.rest(PATIENCE_S)

    def update(self, properties: Mapping[str, Any]) -> list[str]:
        """Gives what the cloud was asked to do."""
        before = len(self.calls)
        self.service.update(self.id, self.template(properties), files=examples.FILES)
        self.rest()
        return self.calls[before:]

    @property
    def calls(self) -> list[str]:
        assert isinstance(self.service.cloud, Watched)
        return self.service.cloud.calls

    @property
    def state(self) -> str:
        return self.service.state(self.id)

    @property
    def handle(self) -> str:
        return str(self.service.row(self.id, "it").handle)

    @property
    def thing(self) -> dict[str, Any]:
        """What the cloud has."""
        return self.service.cloud.things(types()[self.name].kind)[self.handle]

    def check_live(self) -> str:
        """It is there, and as it should be. Gives its handle."""
        states = {each for each in self.service.states(self.id).values() if not each.endswith("_COMPLETE")}
        reasons = {row.name: row.reason for row in self.service.rows(self.id)}
        assert (self.state.rpartition("_")[2], states) == ("COMPLETE", set()), reasons
        if self.name in OUTSIDE:
            assert self.thing
        return self.handle


UNTYPED = {("OS::Octavia::Pool", "listeners"), ("OS::Neutron::LBaaS::Pool", "listeners")}
"""Attributes that are lists though their schema says text."""
SHAPES: Mapping[ValueType, type | tuple[type, ...]] = {
    ValueType.STRING: (str, int, float, bool),
    ValueType.INTEGER: int,
    ValueType.NUMBER: (int, float),
    ValueType.BOOLEAN: bool,
    ValueType.MAP: dict,
    ValueType.LIST: list,
    ValueType.ANY: object,
}


def misshapen(life: Life) -> dict[str, Any]:
    """Attributes whose values are not of the type that their schema says."""
    kind, there = types()[life.name], thing(life.name, seen=life.thing, handle=life.handle)
    return {
        name: found
        for name, found in kind.all_attributes(there).items()
        if (life.name, name) not in UNTYPED
        and not (found is None or isinstance(found, SHAPES[kind.attributes[name].kind]))
    }


def unlike(life: Life, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the thing that are not as these properties ask for; a cloud may add to a map."""
    kind, there = types()[life.name], life.thing
    wanted = kind.spec(kind.complete(kind.check(properties)), there.get("name", ""))
    return {
        name: there.get(name)
        for name, each in wanted.items()
        if name not in OWN and not (name in there and equal(each, there[name]))
    }


@pytest.mark.heavy
@pytest.mark.parametrize("name", LIVING)
def test_it_is_made_and_left_alone_and_changed_and_removed(name: str) -> None:
    life = Life(name)
    kind = types()[name]
    handle = life.check_live()
    if name in OUTSIDE:
        assert misshapen(life) == {}
    assert life.update(example(name)) == []
    assert (life.check_live() == handle) is not kind.renewed
    handle, wanted = life.handle, changed(name)
    calls = life.update(wanted)
    assert (life.check_live() == handle) is not kind.renewed
    if name in OUTSIDE:
        assert calls == ([f"update {kind.kind}"] if wanted != example(name) else [])
        assert unlike(life, wanted) == {}
    life.service.delete(life.id)
    life.rest()
    assert life.state == "DELETE_COMPLETE"
    assert life.service.rows(life.id) == []
    assert life.service.cloud.things() == {}


@pytest.mark.heavy
@pytest.mark.parametrize("name", [name for name in LIVING if fixed(name)])
def test_a_change_of_what_is_fixed_replaces_it(name: str) -> None:
    life = Life(name)
    before = life.check_live()
    life.update(refixed(name))
    assert life.check_live() != before
    assert len([row for row in life.service.rows(life.id) if row.name == "it"]) == 1
    if name in OUTSIDE:
        assert before not in life.service.cloud.things()
        assert len(life.service.cloud.things(types()[name].kind)) == 1
