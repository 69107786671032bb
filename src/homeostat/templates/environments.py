"""Environments as they are stored: the sections that users gave, and three of ours. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.parameters import HIDDEN
from homeostat.templates.registry import Registry, child_entries

Environment = Mapping[str, Any]

SINKS = "event_sinks"
SHARED = "(shared)"
"""What the operator gives everybody: `{resource_registry, parameter_defaults}`, as it was when the revision was new."""
FACADE = "(facade)"
"""`{metadata, deletion_policy, update_policy}` of the resource whose reality the stack is, where its template asks."""
INHERITED = "(hidden)"
"""List of texts that a nested stack was given, and that come from hidden parameters of the stacks around it."""
_OURS = (SHARED, FACADE, INHERITED)


def as_said(environment: Environment) -> dict[str, Any]:
    """The sections that users gave."""
    return {name: content for name, content in environment.items() if name not in _OURS}


def inherited(environment: Environment) -> HiddenValues:
    """What is hidden in a stack since it is in those around it."""
    return HiddenValues(frozenset(environment.get(INHERITED) or ()))


def shown_sinks(environment: Environment) -> list[Mapping[str, Any]]:
    """Who is told of events, without what keeps these tellings safe."""
    return [{**each, "secret": HIDDEN} if "secret" in each else each for each in environment.get(SINKS) or ()]


def effective(environment: Environment) -> dict[str, Any]:
    """The same, with the defaults for everybody where users gave none."""
    said = as_said(environment)
    shared = shared_of(environment, "parameter_defaults")
    return {**said, "parameter_defaults": {**shared, **(said.get("parameter_defaults") or {})}} if shared else said


def shared_of(environment: Environment, section: str) -> Mapping[str, Any]:
    """One section of what is there for everybody."""
    return (environment.get(SHARED) or {}).get(section) or {}


def nested_environment(environment: Environment, registry: Registry, name: str, called: str) -> dict[str, Any]:
    """The environment of the stack that is the reality of a resource.

    registry — of `environment`; name — of the resource; called — its type, as its template says it.
    """
    handed_on = ("parameter_defaults", SINKS)
    nested: dict[str, Any] = {key: environment[key] for key in handed_on if environment.get(key)}
    user, shared = environment.get("resource_registry") or {}, environment.get(SHARED) or {}
    if not user and not shared:
        return nested
    place = registry.resolve(called, name).place
    mine = len(place) == 1 and place[0] in user
    inner = child_entries(user, name, place)
    if inner:
        nested["resource_registry"] = inner
    if shared:
        entries = child_entries(shared.get("resource_registry") or {}, name, () if mine else place)
        nested[SHARED] = {**shared, "resource_registry": entries}
    return nested
