"""Checks that the project's cloud has what a template needs: the services of its types, and the things it names."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from cachetools import TTLCache

from homeostat.api.services.remote_stacks import Remote, check_remotes
from homeostat.clouds.port import Cloud, Clouds
from homeostat.identity.stack_users import TRANSPORTS
from homeostat.model.errors import Rejected, Transient, invalid
from homeostat.resources.base import ResourceType
from homeostat.resources.constraints import RULES
from homeostat.resources.custom_constraints import KINDS, Mention, Path, mentions, of_parameter
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.templates import Compiled, Parameter

LOG = logging.getLogger(__name__)
CACHE_S = 60.0
"""Time for which an existing thing is assumed to exist."""
CACHE_MAX = 10_000
WITHOUT_LOGIN = {
    "signal_transport": "use CFN_SIGNAL or TEMP_URL_SIGNAL",
    "software_config_transport": "use POLL_SERVER_CFN or POLL_TEMP_URL",
}
"""Properties that select how a server talks to the service, and the values that work without users for servers."""
UNAVAILABLE = "99001"
"""Code of the error that a cloud lacks a service, which users may choose to ignore."""
Thing = tuple[str, str]
"""Kind, and name or id."""


@dataclass(slots=True)
class Requirements:
    """What a template and all its nested templates need from outside, collected while they are checked.

    Of equal mentions, types and logins only the first place is kept, so that repetition in a template costs nothing.

    Attributes:
        mentions: Values that name a thing of the cloud.
        types: Type -> first place where it is used.
        made: Things that the template itself creates under names it gives.
        nested: Nested stacks by the names of their resources, as far as known.
        logins: Transports with which a server logs in -> place.
        remotes: Stacks that it creates independently, here or in other regions.
        resources: Resources of the whole tree, as far as known.
        stacks: Nested stacks of the whole tree.
        secret: A template of the tree holds a secret.
    """

    mentions: dict[Hashable, Mention] = field(default_factory=dict)
    types: dict[str, Path] = field(default_factory=dict)
    made: set[Thing] = field(default_factory=set)
    nested: "dict[str, Nested]" = field(default_factory=dict)
    logins: dict[str, Path] = field(default_factory=dict)
    remotes: dict[Hashable, Remote] = field(default_factory=dict)
    resources: int = 0
    stacks: int = 0
    secret: bool = False

    def of_parameters(self, parameters: Mapping[str, Parameter]) -> None:
        """Add what the constraints of parameters name."""
        for name, each in parameters.items():
            for constraint in each.schema.constraints:
                if constraint.custom:
                    self._mention(of_parameter(name, constraint.custom, each.value, constraint.description))

    def _mention(self, found: Iterable[Mention]) -> None:
        for each in found:
            self.mentions.setdefault((each.constraint, repr(each.value), each.parameter, each.instead), each)

    def add(self, nested: "Requirements", path: Path) -> None:
        """Add what a nested template needs.

        Args:
            path: Of the resource that is the nested stack.
        """
        for key, each in nested.mentions.items():
            if key not in self.mentions:
                self.mentions[key] = replace(each, path=(*path, *each.path))
        for type_name, place in nested.types.items():
            self.types.setdefault(type_name, (*path, *place))
        self.made |= nested.made
        for transport, place in nested.logins.items():
            self.logins.setdefault(transport, (*path, *place))
        for key, remote in nested.remotes.items():
            if key not in self.remotes:
                self.remotes[key] = replace(remote, path=(*path, *remote.path))
        self.resources += nested.resources
        self.stacks += 1 + nested.stacks

    def of_remote(self, found: Remote) -> None:
        """Add a stack that the template creates independently."""
        self.remotes.setdefault((found.region, found.template, repr(found.parameters)), found)

    def of_resource(self, kind: ResourceType, values: Mapping[str, Any], path: Path) -> None:
        """Add what a resource needs.

        Args:
            values: Coerced properties.
            path: Of the resource.
        """
        self.types.setdefault(kind.name, path)
        self._mention(mentions(kind.properties, values, (*path, "properties")))
        for each in WITHOUT_LOGIN:
            if values.get(each) in TRANSPORTS:
                self.logins.setdefault(values[each], (*path, "properties", each))
        name = values.get("name")
        if isinstance(name, str) and name:
            self.made.add((kind.kind, name))


@dataclass(frozen=True, slots=True)
class Nested:
    """A nested stack of a template.

    Attributes:
        type: As the template names it.
        compiled: None for a group or chain, which has no template of its own.
        needs: What its contents need from outside.
    """

    type: str
    compiled: Compiled | None
    needs: Requirements


class Prerequisites:
    """Lookups in the users' clouds. Safe to share between threads.

    An existing thing is assumed to exist for `CACHE_S`. A missing one is looked up again each time, since users create
    it and retry.

    Args:
        clouds: None: nothing is looked up.
        now: Clock, in seconds since the epoch.
        monotonic: Clock, in seconds.
        makes_users: The service creates users for servers that log in.
    """

    def __init__(
        self,
        clouds: Clouds | None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        makes_users: bool = False,
    ) -> None:
        self._makes_users = makes_users
        self._clouds = clouds
        self._now = now
        self._cache: TTLCache[tuple[str, str, str], bool] = TTLCache(CACHE_MAX, CACHE_S, monotonic)
        self._lock = threading.Lock()

    def has(self, project: str, type_name: str) -> bool:
        """Return whether the project's cloud offers resources of this type."""
        kind = kind_of(type_name)
        return self._clouds is None or kind in ("", STACK) or kind in self._clouds(project).kinds

    def check_types(self, project: str, types: Mapping[str, Path]) -> None:
        """Raise Rejected (ResourceTypeUnavailable) naming the first type whose service the cloud lacks."""
        for type_name, path in types.items():
            if not self.has(project, type_name):
                raise self.unavailable(project, type_name).at(*path)

    def unavailable(self, project: str, type_name: str) -> Rejected:
        cloud, kind = self._cloud(project), kind_of(type_name)
        message = (
            f"HEAT-E{UNAVAILABLE} Service {service_of(type_name)} is not available for resource type {type_name}, "
            f"reason: the cloud {cloud.name} has no {kind.replace('_', ' ')}. Map the type to another one in the "
            "resource_registry of an environment, or leave it out."
        )
        return Rejected("ResourceTypeUnavailable", message)

    def check_logins(self, needs: Requirements) -> None:
        """Raise Rejected naming the first transport that needs users, where the service creates none."""
        if needs.logins and not self._makes_users:
            transport, path = next(iter(needs.logins.items()))
            remedy = WITHOUT_LOGIN[str(path[-1])]
            message = f"{transport} needs Keystone, to make users for servers: it is not supported here; {remedy}"
            raise invalid(message, *path, error="Property error")

    def check_forms(self, needs: Requirements) -> None:
        """Raise Rejected naming the first value that violates a constraint that can be checked without the cloud."""
        for each in needs.mentions.values():
            self._check_form(each)

    def check_mentions(self, project: str, needs: Requirements) -> None:
        """Raise Rejected naming the first value that violates a named constraint.

        A cloud that does not answer does not block the request: the engine finds what is missing when it needs it.
        """
        self.check_forms(needs)
        if self._clouds is None:
            return
        sought: dict[str, list[str]] = {}
        for each in needs.mentions.values():
            thing = _thing(each)
            # What the template itself creates does not exist yet.
            if thing is not None and thing not in needs.made and not self._known(project, thing):
                sought.setdefault(thing[0], []).append(thing[1])
        missing = {thing for kind, names in sought.items() for thing in self._missing(project, kind, names)}
        for each in needs.mentions.values():
            if _thing(each) in missing:
                problem = KINDS[each.constraint].missing(str(each.value))
                raise each.wrong(f"Error validating value {each.value!r}: {problem}")

    def check_remotes(self, project: str, needs: Requirements, here: Callable[[Remote], None], *, asks: bool) -> None:
        """Raise Rejected naming the first stack that cannot be created in its region (see `remote_stacks`)."""
        if needs.remotes:
            cloud = None if self._clouds is None else self._clouds(project)
            check_remotes(cloud, list(needs.remotes.values()), here, asks=asks)

    def _check_form(self, each: Mention) -> None:
        """Check rules that need no cloud."""
        if each.constraint in RULES:
            problem = RULES[each.constraint](each.value)
            if problem is None and each.constraint == "expiration" and _seconds(each.value) <= self._now():
                problem = f"Error validating value {each.value!r}: the time is over"
            if problem is not None:
                raise each.wrong(problem)
        elif each.constraint not in KINDS and each.parameter:
            raise each.wrong(f'"{each.value}" does not validate {each.constraint} (constraint not found)')

    def _missing(self, project: str, kind: str, names: Iterable[str]) -> list[Thing]:
        """Look up things; return those that do not exist and remember the others."""
        unknown = list(dict.fromkeys(names))
        try:
            found = self._cloud(project).resolve(kind, unknown)
        except Transient as error:
            LOG.warning(
                "project %s: it is not known whether each of %d %s exists: %s", project, len(unknown), kind, error
            )
            return []
        missing = []
        for name, id in zip(unknown, found, strict=True):
            if id is None:
                missing.append((kind, name))
            else:
                self._remember(project, (kind, name))
        return missing

    def _known(self, project: str, thing: Thing) -> bool:
        with self._lock:
            return (project, *thing) in self._cache

    def _remember(self, project: str, thing: Thing) -> None:
        with self._lock:
            self._cache[project, *thing] = True

    def _cloud(self, project: str) -> Cloud:
        if self._clouds is None:
            raise LookupError("there is no cloud")
        return self._clouds(project)


def service_of(type_name: str) -> str:
    """Return the service of a type: `OS::Nova::Server` -> `nova`."""
    parts = type_name.split("::")
    return parts[1].lower() if len(parts) > 2 else type_name


def _thing(each: Mention) -> Thing | None:
    return (KINDS[each.constraint].kind, str(each.value)) if each.constraint in KINDS else None


def _seconds(value: Any) -> float:
    found = datetime.fromisoformat(str(value))
    return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
