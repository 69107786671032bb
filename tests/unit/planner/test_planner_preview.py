"""The preview of every type when one of its properties is not known yet: nothing fails, and the schema decides."""

from typing import Any

import pytest

from docs import examples
from homeostat.model.desired import Definition
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Action, Status
from homeostat.model.world import Resource, Seen, StackFacts, World
from homeostat.planner.report.preview import Fate, ShardPreviewer
from homeostat.resources.nested import NestedStack
from homeostat.resources.registry import types
from homeostat.templates import UNKNOWN

SHOWN = [name for name, kind in types().items() if not kind.support.hidden and kind.properties and not kind.open_schema]


def world(name: str, before: dict[str, Any], after: dict[str, Any]) -> World:
    stack = StackFacts("s", "web", "p", 2, Action.UPDATE, Status.IN_PROGRESS)
    row = Resource("a" * 12, "s", 0, "it", name, handle="h", revision=1, action=Action.CREATE, properties=before)
    row.acted_at, row.judged_observation = 1.0, 1
    seen = {row.key: Seen(Observation(Presence.PRESENT, "h", {"id": "h"}, 1.0), 1)}
    definition = Definition("it", name, after, static=True)
    return World(stack, 0, {"it": definition}, {row.key: row}, seen, 1)


def known(name: str) -> dict[str, Any]:
    """Properties as they are stored."""
    return types()[name].check(examples.properties(types()[name]), ())


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_changes_where_nothing_differs(name: str) -> None:
    properties = known(name)
    (note,) = ShardPreviewer(world(name, properties, properties)).preview(1000.0)
    expected = Fate.REPLACED if types()[name].renewed else Fate.UNCHANGED
    assert note.fate is expected, note.why


@pytest.mark.parametrize("name", SHOWN)
def test_a_property_that_is_not_known_yet_is_a_change(name: str) -> None:
    kind = types()[name]
    properties = known(name)
    for each in properties:
        if each in kind.deprecated_properties or isinstance(kind, NestedStack):
            continue
        (note,) = ShardPreviewer(world(name, properties, {**properties, each: UNKNOWN})).preview(1000.0)
        assert note.fate in (Fate.UPDATED, Fate.REPLACED), each
        assert each in note.changed
        assert not note.why.startswith("it would fail"), (each, note.why)
        if not kind.properties[each].update:
            assert note.fate is Fate.REPLACED, each
