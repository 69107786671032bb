"""Resource types and the simulated cloud keep to the definitions of kinds."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.kind_checks import misfits, undefined

from docs import examples
from homeostat.builtin.server_agents import OWN
from homeostat.clouds.port import Creation
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.clouds.simulated.objects import BUILDING_STATUS, READY_STATUS
from homeostat.kinds.registry import KINDS
from homeostat.model.observed import Observation
from homeostat.resources.families.retired import RetiredType
from homeostat.resources.kind_fields import fields_of
from homeostat.resources.registry import types

DEFINED = sorted(name for name, kind in types().items() if kind.kind in KINDS and not isinstance(kind, RetiredType))
IN_CLOUDS = [name for name in DEFINED if types()[name].kind in SimulatedCloud.kinds]


def spec(name: str) -> Mapping[str, Any]:
    """The object that a type asks for, with the values of the reference documentation."""
    kind = types()[name]
    wanted = kind.spec(kind.complete(kind.check(examples.properties(kind))), "stack-it-abc")
    free = {value for prop in ("value_specs",) for value in examples.properties(kind).get(prop) or ()}
    return {field: value for field, value in wanted.items() if field not in free and field not in OWN}


@pytest.mark.parametrize("name", DEFINED)
def test_a_type_asks_for_defined_fields_only(name: str) -> None:
    assert undefined(types()[name].kind, spec(name)) == []
    assert misfits(types()[name].kind, spec(name)) == []


@pytest.mark.parametrize("name", IN_CLOUDS)
def test_a_simulated_thing_fits_the_definition_of_its_kind(name: str) -> None:
    kind = types()[name].kind
    (made,) = SimulatedCloud(lambda: 0.0).create(kind, [Creation("t-1", spec(name))])
    assert isinstance(made, Observation)
    assert misfits(kind, made.properties) == []


@pytest.mark.parametrize("name", DEFINED)
def test_a_type_uses_defined_operations_only(name: str) -> None:
    kind, defined = types()[name], KINDS[types()[name].kind]
    methods = kind.maintenance_methods.values()
    assert {each.operation for each in methods if each.operation} <= defined.operations.keys()
    assert {field for each in methods for field in each.fields} <= fields_of(defined.name).mutable.keys()


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_definition_is_sound(name: str) -> None:
    kind = KINDS[name]
    fields = fields_of(name)
    groups = (fields.fixed, fields.mutable, fields.reported)
    assert sum(map(len, groups)) + 1 - (kind.id_field == "id") == len(fields.all), "a field is in two groups"
    assert set(kind.creation_only) <= kind.reported.keys()
    assert set(kind.statuses.operations.values()) <= kind.operations.keys(), "it is repaired by what it knows"
    assert kind.id_field == "" or kind.id_field in {**fields.fixed, **fields.mutable}
    assert kind.snapshot_field == "" or kind.snapshot_field in {**fields.fixed, **fields.mutable}
    assert {READY_STATUS.get(name)} - {None} <= kind.statuses.ready
    assert {BUILDING_STATUS.get(name)} - {None} <= kind.statuses.busy
