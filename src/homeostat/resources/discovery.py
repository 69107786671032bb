"""What others add to the service: found by entry point, and what of it is broken or takes a name that is taken.

A plug-in that cannot be loaded is left out, logged, and listed as a `PluginProblem`; everything else goes on
without it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from homeostat.resources.base import ResourceType

LOG = logging.getLogger(__name__)
BUILT_IN = "built in"


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """origin — the plug-in that is left out, wholly or in part; reason — for whoever installed it."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Types from one place. origin — where they come from, for people."""

    origin: str
    types: Sequence[type[ResourceType]]


@dataclass(slots=True)
class Found:
    """What entry points or files gave: (origin, object), in the order in which names are given away."""

    things: list[tuple[str, Any]] = field(default_factory=list)
    problems: list[PluginProblem] = field(default_factory=list)


@dataclass(slots=True)
class TypeRegister:
    """All types by name, and where each comes from."""

    types: dict[str, ResourceType] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[PluginProblem] = field(default_factory=list)

    def take(self, offer: Offer) -> None:
        """A name belongs to the first who offers it: no installation of a package changes what a type means."""
        try:
            offered = list(offer.types)
        except TypeError:
            self._leave_out(offer.origin, f"it gives {offer.types!r}, not a list of resource types")
            return
        for each in offered:
            self._take_one(offer.origin, each)

    def _take_one(self, origin: str, each: Any) -> None:
        if not (isinstance(each, type) and issubclass(each, ResourceType) and isinstance(_name_of(each), str)):
            self._leave_out(origin, f"{each!r} is no subclass of ResourceType with a name")
            return
        if each.name in self.types:
            self._leave_out(origin, f"{each.name} is taken: {self.origins[each.name]} has it already")
            return
        try:
            made = each()
        except Exception as error:
            LOG.exception("the resource type %s of %s cannot be made", each.name, origin)
            self.problems.append(PluginProblem(origin, f"{each.name} cannot be made: {error!r}"))
            return
        self.types[each.name] = made
        self.origins[each.name] = origin

    def _leave_out(self, origin: str, reason: str) -> None:
        LOG.error("left out of %s: %s", origin, reason)
        self.problems.append(PluginProblem(origin, reason))


def _name_of(each: type[ResourceType]) -> Any:
    return getattr(each, "name", None)


def loaded(group: str) -> Found:
    """What the entry points of a group name, in the order of packages and names."""
    found = Found()
    for point in sorted(entry_points(group=group), key=_order):
        try:
            found.things.append((origin_of(point), point.load()))
        except (Exception, SystemExit) as error:
            LOG.exception("the plug-in %s cannot be loaded", origin_of(point))
            found.problems.append(PluginProblem(origin_of(point), f"{point.value} cannot be loaded: {error!r}"))
    return found


def _order(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name if point.dist is not None else "", point.name)


def origin_of(point: EntryPoint) -> str:
    """`package version (name of the entry point)`."""
    return f"{point.dist.name} {point.dist.version} ({point.name})" if point.dist is not None else point.name


def registered(offers: Iterable[Offer], problems: Iterable[PluginProblem] = ()) -> TypeRegister:
    """The register of these offers; of two for one name the first counts."""
    register = TypeRegister(problems=list(problems))
    for offer in offers:
        register.take(offer)
    return register
