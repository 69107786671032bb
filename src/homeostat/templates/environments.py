"""Stored environments: the users' sections, and three internal ones. Pure."""

from collections.abc import Mapping
from typing import Any

from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.parameters import HIDDEN
from homeostat.templates.registry import Registry, child_entries

Environment = Mapping[str, Any]

SINKS = "event_sinks"
SHARED = "(shared)"
"""Internal section: the operator's `{resource_registry, parameter_defaults}` at the creation of the revision."""
FACADE = "(facade)"
"""Internal section, if the template reads it: `{metadata, deletion_policy, update_policy}` of the resource that the
stack implements."""
INHERITED = "(hidden)"
"""Internal section: list of the texts passed to a nested stack that come from hidden parameters of its parents."""
_OURS = (SHARED, FACADE, INHERITED)


def user_sections(environment: Environment) -> dict[str, Any]:
    """Return the sections given by users."""
    return {name: content for name, content in environment.items() if name not in _OURS}


def inherited(environment: Environment) -> HiddenValues:
    """Return the values that are hidden in a nested stack because they are hidden in its parents."""
    return HiddenValues(frozenset(environment.get(INHERITED) or ()))


def shown_sinks(environment: Environment) -> list[Mapping[str, Any]]:
    """Return the event sinks with their secrets redacted."""
    return [{**sink, "secret": HIDDEN} if "secret" in sink else sink for sink in environment.get(SINKS) or ()]


def effective(environment: Environment) -> dict[str, Any]:
    """Return the user's sections, with the operator's `parameter_defaults` added for missing parameters."""
    own = user_sections(environment)
    shared = shared_of(environment, "parameter_defaults")
    return {**own, "parameter_defaults": {**shared, **(own.get("parameter_defaults") or {})}} if shared else own


def shared_of(environment: Environment, section: str) -> Mapping[str, Any]:
    """Return one section of the shared environment; {} if there is none."""
    return (environment.get(SHARED) or {}).get(section) or {}


def nested_environment(environment: Environment, registry: Registry, name: str, type_name: str) -> dict[str, Any]:
    """Return the environment of the nested stack that implements a resource.

    Args:
        environment: Environment of the stack with the resource.
        registry: Registry of `environment`.
        type_name: Type of the resource in its template.
    """
    handed_on = ("parameter_defaults", SINKS)
    nested: dict[str, Any] = {key: environment[key] for key in handed_on if environment.get(key)}
    user, shared = environment.get("resource_registry") or {}, environment.get(SHARED) or {}
    if not user and not shared:
        return nested
    place = registry.resolve(type_name, name).place
    is_exact = len(place) == 1 and place[0] in user
    inner = child_entries(user, name, place)
    if inner:
        nested["resource_registry"] = inner
    if shared:
        entries = child_entries(shared.get("resource_registry") or {}, name, () if is_exact else place)
        nested[SHARED] = {**shared, "resource_registry": entries}
    return nested
