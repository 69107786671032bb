"""The kit for writers of types: good types pass, and each sort of mistake is named."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.unit.plugins.lamps import SHOP, TYPE, Lamp

from homeostat.clouds.port import Answer
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.model.observed import Observation, Presence
from homeostat.resources.base import Props, ResourceType
from homeostat.resources.families.cinder import Volume
from homeostat.resources.schema import between, integer, mapping, text
from homeostat.testing import Example, Setting, cases, check_conforms, plugin

VOLUME = Example({"size": 1, "name": "data"}, change={"description": "new"}, replace={"availability_zone": "other"})
LAMP = Example({"watts": 40}, change={"watts": 25, "colour": "red"}, replace={"place": "hall"})


def simulated(setting: Setting) -> SimulatedCloud:
    return SimulatedCloud(setting.now, CloudBehaviour(build_s=3.0, delete_s=2.0))


@pytest.mark.heavy
@pytest.mark.parametrize("case", cases())
def test_a_built_in_type_conforms(case: str) -> None:
    check_conforms(Volume, VOLUME, cloud=simulated, case=case)


@pytest.mark.heavy
@pytest.mark.parametrize("case", cases())
def test_a_type_with_handlers_conforms(case: str) -> None:
    SHOP.__init__()  # type: ignore[misc]
    SHOP.warm_up = 1
    kind, cloud = plugin(TYPE, Lamp)
    check_conforms(kind, LAMP, cloud=cloud, case=case)
    assert SHOP.lamps == {}


# -- mistakes ----------------------------------------------------------------------------------------------------------


class Plain(ResourceType):
    name = "Example::Plain"
    kind = "volume"
    properties = {"name": text(update=True), "size": integer(update=True), "zone": text()}
    statuses = Volume.statuses


class Contradictory(Plain):
    name = "Example::Contradictory"
    properties = {**Plain.properties, "size": integer(default=9, constraints=(between(1, 5),))}


class Forgetful(Plain):
    name = "Example::Forgetful"
    asked: ClassVar[list[int]] = []

    def spec(self, values: Props, physical_name: str) -> dict[str, Any]:
        self.asked.append(1)
        return {**super().spec(values, physical_name), "number": len(self.asked)}


class Meddling(Plain):
    name = "Example::Meddling"
    properties = {**Plain.properties, "tags": mapping()}

    def complete(self, values: Props) -> dict[str, Any]:
        values["zone"] = "here"  # type: ignore[index]
        return super().complete(values)


class Leaking(SimulatedCloud):
    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return [Observation(Presence.ABSENT, handle) for handle in handles]


class Blind(SimulatedCloud):
    """It cannot find what it has made."""

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        return [Observation(Presence.ABSENT) for _ in tokens]


class Shrinking(SimulatedCloud):
    """What it tells is never what was asked for."""

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        looks = super().observe(kind, handles)
        return [replace(look, properties={**look.properties, "size": 0}) if look.present else look for look in looks]


def of(cloud: type[SimulatedCloud]) -> Callable[[Setting], SimulatedCloud]:
    return lambda setting: cloud(setting.now, CloudBehaviour(idempotent=False))


@pytest.mark.parametrize(
    ("kind", "example", "cloud", "case", "message"),
    [
        (Contradictory, {}, SimulatedCloud, "schema", "the default of size does not fit"),
        (Plain, {"colour": "red"}, SimulatedCloud, "schema", "the schema lacks"),
        (Forgetful, {}, SimulatedCloud, "pure", "spec returns something else"),
        (Meddling, {}, SimulatedCloud, "pure", "complete changes its argument"),
        (Plain, {"size": 1}, Shrinking, "life", "an update that changes nothing, and time, call"),
        (Plain, {}, Leaking, "life", "left after the deletion"),
        (Plain, {}, Blind, "lost_answers", "left after the deletion|more was made"),
    ],
)
def test_a_mistake_is_named(
    kind: type[ResourceType], example: dict[str, Any], cloud: type[SimulatedCloud], case: str, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_conforms(kind, Example({"name": "n", **example}), cloud=of(cloud), case=case)


def test_a_property_that_should_change_in_place_and_does_not_is_named() -> None:
    with pytest.raises(AssertionError, match="the example has it changed in place"):
        check_conforms(Plain, Example({"zone": "a"}, change={"zone": "b"}), cloud=simulated, case="pure")
    with pytest.raises(AssertionError, match="was changed in place"):
        check_conforms(Plain, Example({"size": 1}, replace={"size": 2}), cloud=simulated, case="life")
