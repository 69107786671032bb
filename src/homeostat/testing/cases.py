"""The cases of the conformance tests: the requirements on every resource type."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from homeostat.model.errors import Rejected
from homeostat.plugins.cloud import PluginClouds
from homeostat.plugins.resource import Resource
from homeostat.plugins.types import plugin_type
from homeostat.resources import registry
from homeostat.resources.base import ResourceType
from homeostat.resources.discovery import Offer
from homeostat.resources.schema import Property, ValueType, coerce_value
from homeostat.testing.workbench import Bench, Making, Setting

NAME = "it"
ORIGIN = "homeostat.testing"
STRUCK_MAX = 60
"""Maximum number of points in a lifecycle tried with a fault; an ordinary lifecycle has about twenty."""


@dataclass(frozen=True, slots=True)
class Example:
    """Values to test a type with.

    Attributes:
        properties: The properties, as in a template.
        change: New values of properties that change in place.
        replace: New values of properties whose change needs a replacement.
        others: Further resources of the template, for references in the properties, by name.
    """

    properties: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    replace: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    def resources(self, type_name: str, **more: Any) -> dict[str, Any]:
        return {**self.others, NAME: {"type": type_name, "properties": {**self.properties, **more}}}


def plugin(type_name: str, plugin_class: type[Resource]) -> tuple[type[ResourceType], Making]:
    """Return the type of a class with handlers, and a factory of a cloud that runs the handlers sequentially."""

    def make(setting: Setting) -> Any:
        return PluginClouds(setting.db, {type_name: plugin_class}).of(setting.project)

    return plugin_type(type_name, plugin_class), make


def cases() -> list[str]:
    """Return the names of all cases, for `pytest.mark.parametrize`."""
    return list(CASES)


def check_conforms(kind: type[ResourceType], example: Example, *, cloud: Making, case: str = "") -> None:
    """Test a type with a case, or with all cases.

    Args:
        cloud: Creates the cloud, once per case.
        case: The name of the case; "" for all.

    Raises:
        AssertionError: The case fails; the message has the expected and the actual behaviour.
    """
    with known(kind):
        for name in [case] if case else CASES:
            CASES[name](registry.resource_type(kind.name), example, cloud)


@contextmanager
def known(kind: type[ResourceType]) -> Iterator[None]:
    """Register a type during the block, unless it is registered already."""
    if kind.name in registry.types():
        yield
        return
    registry.add([Offer(ORIGIN, [kind])])
    try:
        yield
    finally:
        registry.take_away([ORIGIN])


# -- schemas -----------------------------------------------------------------------------------------------------------


def check_schema(kind: ResourceType, example: Example, cloud: Making) -> None:
    """Check that defaults fit their schemas, and that schemas are consistent and serializable."""
    assert re.fullmatch(r"[^\s\W][\w.:-]*", kind.name), f"{kind.name!r} is no name of a type"
    for name, property_ in kind.properties.items():
        _check_property(name, property_)
    for old, name in kind.deprecated_properties.items():
        assert {old, name} <= kind.properties.keys(), f"{old} and {name} must both be properties"
    strange = kind.renamed.keys() - kind.properties.keys()
    assert not strange, f"renamed are no properties: {sorted(strange)}"
    _plain({name: property_.wire() for name, property_ in kind.properties.items()}, "the schema of properties")
    _plain({name: attribute.wire() for name, attribute in kind.attributes.items()}, "the schema of attributes")
    unknown = {*example.properties, *example.change, *example.replace} - kind.properties.keys()
    assert kind.open_schema or not unknown, f"the example has properties that the schema lacks: {sorted(unknown)}"


def _check_property(name: str, property_: Property) -> None:
    assert not (property_.update and property_.immutable), f"{name} cannot both change in place and be immutable"
    assert not (property_.required and property_.default is not None), f"{name} is required and has a default"
    assert property_.fields is None or property_.kind is ValueType.MAP, f"{name} has fields and is no map"
    assert property_.items is None or property_.kind is ValueType.LIST, f"{name} has items and is no list"
    if property_.default is not None:
        try:
            coerce_value(property_, property_.default, (name,))
        except Rejected as error:
            raise AssertionError(f"the default of {name} does not fit its own schema: {error}") from error
    for inner, field_ in (property_.fields or {}).items():
        _check_property(f"{name}.{inner}", field_)
    if property_.items is not None:
        _check_property(f"{name}[]", property_.items)


# -- pure functions ----------------------------------------------------------------------------------------------------


def check_pure(kind: ResourceType, example: Example, cloud: Making) -> None:
    """Check that the functions of a type are pure: deterministic, and without changes of arguments."""
    properties = _known(example.properties)
    values = _same(lambda: kind.check(properties, ("properties",)), properties, "check")
    completed = _same(lambda: kind.complete(values), values, "complete")
    assert kind.complete(completed) == completed, "complete changes what is complete already"
    spec = _same(lambda: kind.spec(completed, "a-name"), completed, "spec")
    _plain(spec, "the spec")
    for change, wanted in ((example.change, False), (example.replace, True)):
        for name, value in _known(change).items():
            after = kind.complete(kind.check({**properties, name: value}, ("properties",)))
            changed = frozenset(key for key in after if after[key] != completed.get(key))
            assert changed, f"{name}: the example changes nothing"
            why = partial(kind.replacement_reason, completed, after, changed)
            reason = _same(why, after, "replacement_reason")
            returned = f"replacement_reason returns {reason!r} for a change of {name}"
            assert wanted or not reason, f"{returned}, and the example has it changed in place"


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that do not depend on resources."""
    return {name: value for name, value in values.items() if "get_" not in json.dumps(value, default=str)}


def _same(call: Callable[[], Any], argument: Any, function: str) -> Any:
    before = copy.deepcopy(argument)
    first, second = call(), call()
    assert first == second, f"{function} returns something else when it is called again"
    assert argument == before, f"{function} changes its argument"
    return first


def _plain(tree: Any, what: str) -> None:
    try:
        json.dumps(tree)
    except TypeError as error:
        raise AssertionError(f"{what} is no plain data: {error}") from error


# -- a life ------------------------------------------------------------------------------------------------------------


def check_life(kind: ResourceType, example: Example, cloud: Making) -> None:
    """Create a thing, wait, change, replace and delete it; then nothing may be left."""
    bench = Bench(cloud)
    stack_id = bench.create(example.resources(kind.name))
    _rests(bench, stack_id, "CREATE_COMPLETE")
    thing = bench.things(stack_id)[NAME]
    if kind.kind:
        assert thing.handle, "a thing of a cloud has a handle once it is complete"
        assert (kind.kind, thing.handle) in bench.cloud.present(), "find and observe show what was made"
    assert kind.reference(thing) is not None, "get_resource gives a value once it is complete"
    for name in (*kind.attributes, "show"):
        _plain(kind.resolve(thing, name), f"attribute {name}")

    bench.cloud.begin()
    bench.update(stack_id, example.resources(kind.name))
    _rests(bench, stack_id, "UPDATE_COMPLETE")
    bench.live(300)
    assert bench.cloud.called == [], f"an update that changes nothing, and time, call {bench.cloud.called}"

    more: dict[str, Any] = {}
    for name, value in example.change.items():
        more[name] = value
        bench.update(stack_id, example.resources(kind.name, **more))
        _rests(bench, stack_id, "UPDATE_COMPLETE")
        assert bench.things(stack_id)[NAME].key == thing.key, f"{name} is to change in place, and made a new thing"
    for name, value in example.replace.items():
        more[name] = value
        bench.update(stack_id, example.resources(kind.name, **more))
        _rests(bench, stack_id, "UPDATE_COMPLETE")
        after = bench.things(stack_id)[NAME]
        assert after.key != thing.key, f"{name} is to need a new thing, and was changed in place"
        thing = after
    _deleted(bench, stack_id)


def check_crashes(kind: ResourceType, example: Example, cloud: Making) -> None:
    """Kill the worker before or after each call: in the end a single thing exists, and none after deletion."""
    for verb in ("create", "change", "delete"):
        for point in range(STRUCK_MAX):
            if not _struck(kind, example, cloud, verb, crash_at=point):
                break


def check_lost_answers(kind: ResourceType, example: Example, cloud: Making) -> None:
    """Lose the answer of each executed call: the thing must be found, and nothing created twice."""
    for verb in ("create", "change", "delete"):
        for act in range(STRUCK_MAX):
            if not _struck(kind, example, cloud, verb, lose_at=act):
                break


def _struck(
    kind: ResourceType, example: Example, cloud: Making, verb: str, crash_at: int = -1, lose_at: int = -1
) -> bool:
    """Run a lifecycle with a single fault during the creation, change or deletion of the thing.

    Returns:
        False if the lifecycle ended before the fault, so there are no further points to try.
    """
    bench = Bench(cloud)
    stack_id = bench.create(example.resources(kind.name))
    expected = "CREATE_COMPLETE"
    where = f"(struck in {verb}, {'point' if lose_at < 0 else 'answer'} {max(crash_at, lose_at)})"
    if verb == "create":
        bench.cloud.begin(crash_at, lose_at)
    _rests(bench, stack_id, expected, where)
    if verb == "change":
        bench.cloud.begin(crash_at, lose_at)
        bench.update(stack_id, example.resources(kind.name, **example.change))
        _rests(bench, stack_id, "UPDATE_COMPLETE", where)
    struck = max(crash_at, lose_at) < (bench.cloud.points if lose_at < 0 else bench.cloud.acts)
    present = [thing for thing in bench.cloud.present() if thing[0] == kind.kind]
    handles = {(kind.kind, thing.handle) for thing in bench.things(stack_id).values()}
    assert not kind.kind or set(present) <= handles, f"more was made than is known {where}: {present}"
    bench.cloud.begin(*((crash_at, lose_at) if verb == "delete" else ()))
    _deleted(bench, stack_id, where)
    if verb == "delete":
        struck = max(crash_at, lose_at) < (bench.cloud.points if lose_at < 0 else bench.cloud.acts)
    return struck


def _rests(bench: Bench, stack_id: str, expected: str, where: str = "") -> None:
    bench.rest()
    state = bench.state(stack_id)
    assert state == expected, f"the stack is {state}, not {expected} {where}: {'; '.join(bench.reasons())}"


def _deleted(bench: Bench, stack_id: str, where: str = "") -> None:
    bench.delete(stack_id)
    _rests(bench, stack_id, "DELETE_COMPLETE", where)
    bench.live(900)
    bench.cloud.begin()
    left = bench.cloud.present()
    assert left == [], f"left after the deletion {where}: {left}"


CASES: Mapping[str, Callable[[ResourceType, Example, Making], None]] = {
    "schema": check_schema,
    "pure": check_pure,
    "life": check_life,
    "crashes": check_crashes,
    "lost_answers": check_lost_answers,
}
"""The cases by name."""
