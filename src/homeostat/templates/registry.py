"""Resource registry: the section of an environment that maps types and configures single resources. Pure.

Entries of the user precede shared ones (the operator's, and the aliases below). Within both groups, entries for
single resources precede entries for all resources of a type; then alphabetical order decides. The first entry that
leads to an existing type wins.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected

Entries = Mapping[str, Any]
Place = tuple[str, ...]
"""Path of keys to an entry of the registry."""

ENDINGS = (".yaml", ".template")
"""Suffixes of a type name that stands for a template."""
RESOURCES = "resources"
PRE_CREATE, PRE_UPDATE, PRE_DELETE = "pre-create", "pre-update", "pre-delete"
POST_CREATE, POST_UPDATE, POST_DELETE = "post-create", "post-update", "post-delete"
HOOKS = (PRE_CREATE, PRE_UPDATE, PRE_DELETE, POST_CREATE, POST_UPDATE, POST_DELETE)
RESTRICTIONS = ("update", "replace")
ALIASES: Mapping[str, str] = {
    "OS::Quantum*": "OS::Neutron*",
    "OS::Metering::Alarm": "OS::Aodh::Alarm",
    "OS::Heat::ScaledResource": "AWS::EC2::Instance",
    "OS::Ceilometer::Alarm": "OS::Aodh::Alarm",
    "OS::Ceilometer::CombinationAlarm": "OS::Aodh::CombinationAlarm",
    "OS::Ceilometer::GnocchiResourcesAlarm": "OS::Aodh::GnocchiResourcesAlarm",
    "OS::Ceilometer::GnocchiAggregationByMetricsAlarm": "OS::Aodh::GnocchiAggregationByMetricsAlarm",
    "OS::Ceilometer::GnocchiAggregationByResourcesAlarm": "OS::Aodh::GnocchiAggregationByResourcesAlarm",
}
"""Former names of types -> their present names."""
_SETTINGS = {"hooks": (HOOKS, "InvalidBreakPointHook"), "restricted_actions": (RESTRICTIONS, "InvalidRestrictedAction")}
"""Key of an entry for a single resource -> its allowed values, and the fault for a wrong value."""


def is_template(type_name: str) -> bool:
    """Return whether a type name stands for a template."""
    return type_name.endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Result of the lookup of a type.

    Attributes:
        type: Name of a resource type or of a template.
        place: Place of the entry that names the template; () if no entry does.
    """

    type: str
    place: Place = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """The resource registry of one environment.

    Attributes:
        user: The user's section `resource_registry`.
        shared: Entries for all stacks.
        known: Returns whether a resource type of this name exists; not called for templates.
    """

    user: Entries = field(default_factory=dict)
    shared: Entries = field(default_factory=dict)
    known: Callable[[str], bool] = field(default=lambda name: True)
    _found: dict[tuple[str, str], Resolved] = field(default_factory=dict, init=False, compare=False)

    _single: bool = field(init=False, compare=False)
    """Whether there are entries for single resources."""
    _patterns: tuple[Entries, Entries] = field(init=False, compare=False)
    """The entries of `user` and of `shared` whose keys end with `*`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_single", bool(self.user.get(RESOURCES) or self.shared.get(RESOURCES)))
        object.__setattr__(self, "_patterns", (_patterns(self.user), _patterns(self.shared)))

    def resolve(self, type_name: str, name: str) -> Resolved:
        """Return the implementation of a resource of this type and name; the type itself if no entry is usable.

        Results are cached by type; also by name if there are entries for single resources.
        """
        key = (type_name, name if self._single else "")
        if key not in self._found:
            self._found[key] = self._resolve(type_name, name, frozenset()) or Resolved(type_name)
        return self._found[key]

    def applied(self, definition: Definition) -> Definition:
        """Return the definition with the implementing type, and with the resource's hooks and restrictions."""
        name, type_name = definition.name, definition.shown_type
        implementation = self.resolve(type_name, name).type
        if implementation == type_name and not self._single:
            return definition
        hooks, restricted = self.setting(name, "hooks"), self.setting(name, "restricted_actions")
        template_type = type_name if implementation != type_name else ""
        return replace(definition, type=implementation, template_type=template_type, hooks=hooks, restricted=restricted)

    def setting(self, name: str, key: str) -> tuple[str, ...]:
        """Return all values of `hooks` or `restricted_actions` for a resource of this name, sorted."""
        values: set[str] = set()
        for entries in (self.user, self.shared):
            for _, content in _about(entries, name):
                value = content.get(key)
                values.update([value] if isinstance(value, str) else value or ())
        return tuple(sorted(values))

    def _resolve(self, type_name: str, name: str, before: frozenset[str]) -> Resolved | None:
        if type_name in before:
            return None  # a loop in the registry
        for place, value in self._candidates(type_name, name):
            if is_template(value):
                return Resolved(value, place)
            # An entry may lead to another name with further entries; a chain that ends nowhere is skipped.
            resolved = Resolved(value) if place == () else self._resolve(value, name, before | {type_name})
            if resolved is not None:
                return resolved
        return None

    def _candidates(self, type_name: str, name: str) -> Iterator[tuple[Place, str]]:
        """Yield the matching entries, best first; an empty place stands for the unchanged type."""
        if is_template(type_name):
            yield (), type_name
        for entries, patterns, own in (
            (self.user, self._patterns[0], False),
            (self.shared, self._patterns[1], True),
        ):
            matching = dict(_matching(entries, patterns, type_name, name))
            # A known type competes as if it had a shared entry that leads to itself.
            if own and (type_name,) not in matching and (is_template(type_name) or self.known(type_name)):
                matching[(type_name,)] = ""
            for place in sorted(matching, key=lambda place: (-len(place), place)):
                yield (place, matching[place]) if matching[place] else ((), type_name)


def _patterns(entries: Entries) -> Entries:
    return {key: value for key, value in entries.items() if key.endswith("*")}


def _matching(entries: Entries, patterns: Entries, type_name: str, name: str) -> Iterator[tuple[Place, str]]:
    """Yield the place and the target of each entry that matches a type and a resource name.

    `patterns` are the entries whose keys end with `*`, stored separately to avoid a search through hundreds of entries.
    """
    for key, content in _about(entries, name):
        if isinstance(content.get(type_name), str):
            yield (RESOURCES, key, type_name), content[type_name]
    same = entries.get(type_name) if type_name != RESOURCES else None
    if isinstance(same, str) and same:
        yield (type_name,), same
    for key, value in patterns.items():
        if key != type_name and isinstance(value, str) and value and type_name.startswith(key[:-1]):
            target = _carried(key, value, type_name)
            if target:
                yield (key,), target


def _carried(key: str, value: str, type_name: str) -> str:
    """Return the target of a type that matches `key`, which ends with `*`; "" if the type already is a target."""
    if not value.endswith("*"):
        return "" if type_name == value else value
    return "" if type_name.startswith(value[:-1]) else value[:-1] + type_name[len(key) - 1 :]


def _about(entries: Entries, name: str) -> list[tuple[str, Entries]]:
    """Return the entries for a resource of this name: entries of patterns first, then the entry of the name itself."""
    single = entries.get(RESOURCES) or {}
    matches = [
        (key, content) for key, content in single.items() if isinstance(content, Mapping) and fnmatchcase(name, key)
    ]
    return sorted(matches, key=lambda match: match[0] == name)


def without_nulls(section: Entries) -> dict[str, Any]:
    """Return the section without nulls, and without `base_url`.

    A null removes an earlier entry with the same key, or, for a key such as `Foo*`, all earlier entries with the
    prefix.
    """
    entries: dict[str, Any] = {}
    for key, value in section.items():
        if value is not None:
            entries[key] = value
            continue
        removed = [earlier for earlier in entries if earlier != RESOURCES and (earlier == key or _begins(earlier, key))]
        for earlier in removed:
            del entries[earlier]
    entries.pop("base_url", None)
    return entries


def _begins(key: str, pattern: str) -> bool:
    return pattern.endswith("*") and key.startswith(pattern[:-1])


def child_entries(section: Entries, name: str, place: Place) -> dict[str, Any]:
    """Derive the section of a nested stack from the section of its parent.

    The entry that led to the template of the nested stack is not inherited, so that the stack cannot contain itself.
    Entries for single resources are taken from below the name of the implemented resource.

    Args:
        section: The parent's section.
        name: Name of the resource that the nested stack implements.
        place: Place of the entry that led to the template, see `Resolved`.
    """
    inside: dict[str, Any] = {}
    for _, content in _about(section, name):
        inside.update({key: value for key, value in content.items() if isinstance(value, Mapping)})
    entries = dict(section)
    entries.pop(RESOURCES, None)
    if len(place) == 1:
        entries.pop(place[0], None)
    return {**entries, RESOURCES: inside} if inside else entries


def check_registry(section: Entries) -> None:
    """Check the form of a section.

    Raises:
        Rejected: An entry is wrong; the error has its path.
    """
    path = ("resource_registry",)
    for key, value in section.items():
        if key == RESOURCES:
            _check_resources(value, (*path, RESOURCES))
        elif not isinstance(value, str | None):
            raise Rejected(
                "HTTPBadRequest", "the name of a type or of a template is needed, or null", path=(*path, key)
            )


def _check_resources(content: Any, path: Place) -> None:
    if content is None:
        return
    if not isinstance(content, Mapping):
        raise Rejected("HTTPBadRequest", "a map of resources is needed", path=path)
    for key, value in content.items():
        if key in _SETTINGS:
            _check_setting(key, value, (*path, key))
        elif isinstance(value, Mapping):
            _check_resources(value, (*path, key))
        elif not isinstance(value, str | None):
            raise Rejected("HTTPBadRequest", "a map, or the name of a type or template, is needed", path=(*path, key))


def _check_setting(key: str, value: Any, path: Place) -> None:
    known, fault = _SETTINGS[key]
    for item in [value] if isinstance(value, str) else value if isinstance(value, list) else [None]:
        if item not in known:
            message = f'Invalid value "{value}": one of {", ".join(known)} is needed, or a list of them'
            raise Rejected(fault, message, path=path)
