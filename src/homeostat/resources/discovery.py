"""Plug-ins: discovery by entry points, and registration of their resource types.

A plug-in that fails to load, or whose type name is taken, is left out, logged, and listed as a `PluginProblem`; the
service runs without it.
"""

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, cast

from homeostat.resources.base import ResourceType

LOG = logging.getLogger(__name__)
BUILT_IN = "built in"


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """A plug-in that is left out, wholly or in part.

    Attributes:
        origin: Display name of the plug-in.
        reason: Reason, for the operator.
    """

    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Resource types from one source.

    Attributes:
        origin: Display name of the source.
        types: Subclasses of `ResourceType`; not checked yet.
    """

    origin: str
    types: Sequence[type[ResourceType]]


@dataclass(slots=True)
class Found:
    """Objects found by entry points or in files.

    Attributes:
        things: (origin, object), in the order in which their types claim names.
        problems: Plug-ins that could not be loaded.
    """

    things: list[tuple[str, Any]] = field(default_factory=list)
    problems: list[PluginProblem] = field(default_factory=list)


@dataclass(slots=True)
class TypeRegister:
    """All resource types by name, with their origins.

    Attributes:
        types: Type name -> the only instance of its class.
        origins: Type name -> display name of its source.
        problems: Plug-ins that were left out.
    """

    types: dict[str, ResourceType] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)

    def take(self, offer: Offer) -> None:
        """Add the types of an offer.

        A name belongs to the first offer that has it, so installing a package never changes the meaning of a type.
        """
        try:
            offered = list(offer.types)
        except TypeError:
            self._leave_out(offer.origin, f"it gives {offer.types!r}, not a list of resource types")
            return
        for type_class in offered:
            self._take_one(offer.origin, type_class)

    def _take_one(self, origin: str, type_class: Any) -> None:
        if not (
            isinstance(type_class, type)
            and issubclass(type_class, ResourceType)
            and isinstance(_name_of(type_class), str)
        ):
            self._leave_out(origin, f"{type_class!r} is no subclass of ResourceType with a name")
            return
        if type_class.name in self.types:
            self._leave_out(origin, f"{type_class.name} is taken: {self.origins[type_class.name]} has it already")
            return
        try:
            instance = type_class()
        except Exception as error:
            LOG.exception("the resource type %s of %s cannot be made", type_class.name, origin)
            self.problems.append(PluginProblem(origin, f"{type_class.name} cannot be made: {error!r}"))
            return
        self.types[type_class.name] = instance
        self.origins[type_class.name] = origin

    def _leave_out(self, origin: str, reason: str) -> None:
        LOG.error("left out of %s: %s", origin, reason)
        self.problems.append(PluginProblem(origin, reason))


def _name_of(type_class: type[ResourceType]) -> Any:
    return getattr(type_class, "name", None)


def loaded(group: str) -> Found:
    """Load the entry points of a group, in the order of package and entry point names."""
    result = Found()
    for point in sorted(_entry_points(tuple(sys.path)).select(group=group), key=_order):
        try:
            result.things.append((origin_of(point), point.load()))
        # A plug-in must not stop the service, also not by calling sys.exit() while it is imported.
        except (Exception, SystemExit) as error:
            LOG.exception("the plug-in %s cannot be loaded", origin_of(point))
            result.problems.append(PluginProblem(origin_of(point), f"{point.value} cannot be loaded: {error!r}"))
    return result


@lru_cache(maxsize=1)
def _entry_points(_path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of all packages in the path. Cached, as a process looks up several groups."""
    return cast(EntryPoints, entry_points())  # a dict-like type until Python 3.12, with the same `select`


def _order(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name if point.dist is not None else "", point.name)


def origin_of(point: EntryPoint) -> str:
    """Return the origin of an entry point: `package version (name of the entry point)`."""
    return f"{point.dist.name} {point.dist.version} ({point.name})" if point.dist is not None else point.name


def registered(offers: Iterable[Offer], problems: Iterable[PluginProblem] = ()) -> TypeRegister:
    """Register these offers in order; of two types with one name the first wins."""
    register = TypeRegister(problems=list(problems))
    for offer in offers:
        register.take(offer)
    return register
