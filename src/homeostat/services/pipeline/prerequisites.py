"""Checks the requirements of a template in the project's cloud: services for its types, and the things it names."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cachetools import TTLCache

from homeostat.clouds.port import Cloud, Clouds
from homeostat.model.errors import Rejected, Terminal, Transient, invalid
from homeostat.resources.constraints import RULES
from homeostat.resources.custom_constraints import KINDS, Mention, Path
from homeostat.resources.families.zaqar import Queue
from homeostat.resources.nested import STACK
from homeostat.resources.registry import kind_of
from homeostat.resources.signals import Transport
from homeostat.services.pipeline.regions import Regions
from homeostat.services.pipeline.requirements import WITHOUT_LOGIN, Remote, Requirements, Thing

LOG = logging.getLogger(__name__)
CACHE_S = 60.0
"""Time for which an existing thing is assumed to exist."""
CACHE_MAX = 10_000
UNAVAILABLE = "99001"
"""Code of the error about a missing service, which users may choose to ignore."""


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

    def check(self, project: str, needs: Requirements, *, strict: bool, check_services: bool = True) -> None:
        """Check the requirements of a template in the project's cloud.

        Args:
            strict: Things that the template names must exist.
            check_services: The cloud must have the services of all types.

        Raises:
            Rejected: Names the place.
        """
        if check_services:
            self.check_types(project, needs.types)
        self.check_logins(project, needs)
        if strict:
            self.check_mentions(project, needs)
        else:
            self.check_forms(needs)

    def check_types(self, project: str, types: Mapping[str, Path]) -> None:
        """Raise Rejected (ResourceTypeUnavailable) naming the first type whose service the cloud lacks."""
        for type_name, path in types.items():
            if not self.has(project, type_name):
                raise self.unavailable(project, type_name).at(*path)

    def unavailable(self, project: str, type_name: str) -> Rejected:
        cloud, kind = self.cloud(project), kind_of(type_name)
        message = (
            f"HEAT-E{UNAVAILABLE} Service {service_of(type_name)} is not available for resource type {type_name}, "
            f"reason: the cloud {cloud.name} has no {kind.replace('_', ' ')}. Map the type to another one in the "
            "resource_registry of an environment, or leave it out."
        )
        return Rejected("ResourceTypeUnavailable", message)

    def check_logins(self, project: str, needs: Requirements) -> None:
        """Raise Rejected naming the first transport that needs users, or a queue, if the service has none."""
        for transport, path in needs.logins.items():
            lacks = "" if self._makes_users else "Keystone, to make users for servers"
            if transport == Transport.ZAQAR and not self.has(project, Queue.name):
                lacks = lacks or "Zaqar, to keep messages"
            if lacks:
                message = f"{transport} needs {lacks}: it is not supported here; {WITHOUT_LOGIN[str(path[-1])]}"
                raise invalid(message, *path, error="Property error")

    def check_forms(self, needs: Requirements) -> None:
        """Raise Rejected naming the first value that violates a constraint which needs no cloud."""
        for mention in needs.mentions.values():
            self._check_form(mention)

    def check_mentions(self, project: str, needs: Requirements) -> None:
        """Raise Rejected naming the first value that violates a named constraint.

        If the cloud does not answer or denies access, the request is accepted: the engine reports missing things later.
        """
        self.check_forms(needs)
        if self._clouds is None:
            return
        unknown: dict[str, list[str]] = {}
        for mention in needs.mentions.values():
            thing = _thing(mention)
            # Things that the template itself creates do not exist yet.
            if thing is not None and thing not in needs.created and not self._known(project, thing):
                unknown.setdefault(thing[0], []).append(thing[1])
        missing = {thing for kind, names in unknown.items() for thing in self._missing(project, kind, names)}
        for mention in needs.mentions.values():
            if _thing(mention) in missing:
                problem = KINDS[mention.constraint].missing(str(mention.value))
                raise mention.wrong(f"Error validating value {mention.value!r}: {problem}")

    def regions(self, project: str, remotes: Sequence[Remote]) -> Regions:
        """Return the regions of stacks that a template creates independently."""
        return Regions(None if self._clouds is None else self._clouds(project), remotes)

    def _check_form(self, mention: Mention) -> None:
        if mention.constraint in RULES:
            problem = RULES[mention.constraint](mention.value)
            if problem is None and mention.constraint == "expiration" and _seconds(mention.value) <= self._now():
                problem = f"Error validating value {mention.value!r}: the time is over"
            if problem is not None:
                raise mention.wrong(problem)
        elif mention.constraint not in KINDS and mention.parameter:
            raise mention.wrong(f'"{mention.value}" does not validate {mention.constraint} (constraint not found)')

    def _missing(self, project: str, kind: str, names: Iterable[str]) -> list[Thing]:
        """Look up things; return the missing ones and remember the existing ones."""
        unknown = list(dict.fromkeys(names))
        try:
            ids = self.cloud(project).resolve(kind, unknown)
        except (Transient, Terminal) as error:
            LOG.warning(
                "project %s: it is not known whether each of %d %s exists: %s", project, len(unknown), kind, error
            )
            return []
        missing = []
        for name, id in zip(unknown, ids, strict=True):
            if id is None:
                missing.append((kind, name))
            else:
                self._remember(project, (kind, name))
        return missing

    def _known(self, project: str, thing: Thing) -> bool:
        # Not even reading is safe without the lock: cachetools removes expired entries meanwhile.
        with self._lock:
            return (project, *thing) in self._cache

    def _remember(self, project: str, thing: Thing) -> None:
        with self._lock:
            self._cache[project, *thing] = True

    def cloud(self, project: str) -> Cloud:
        """Return the cloud as a project sees it. Raise LookupError if there is no cloud to look up in."""
        if self._clouds is None:
            raise LookupError("there is no cloud")
        return self._clouds(project)


def service_of(type_name: str) -> str:
    """Return the service of a type: `OS::Nova::Server` -> `nova`."""
    parts = type_name.split("::")
    return parts[1].lower() if len(parts) > 2 else type_name


def _thing(mention: Mention) -> Thing | None:
    return (KINDS[mention.constraint].kind, str(mention.value)) if mention.constraint in KINDS else None


def _seconds(value: Any) -> float:
    moment = datetime.fromisoformat(str(value))
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
