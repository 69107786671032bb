"""Clouds of installed packages: adapters for kinds that the service itself does not know.

A package names a function under the entry point group `homeostat.clouds`. It is called once for each project with the
project's id, and returns an adapter (`clouds.port.Cloud`) for the kinds of that package's resource types. Kinds that a
cloud of the service has stay with that cloud. Change notices (`watch`) of these clouds are not used: their things are
observed periodically.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from homeostat.clouds.port import Cloud
from homeostat.resources.discovery import PluginProblem, loaded

LOG = logging.getLogger(__name__)
GROUP = "homeostat.clouds"
Make = Callable[[str], Cloud]
"""Project -> the cloud as that project sees it."""


class InstalledClouds:
    """The clouds of installed packages, made for each project when they are first used.

    Safe to share between threads.
    """

    def __init__(self, makers: Sequence[tuple[str, Make]], problems: Sequence[PluginProblem] = ()) -> None:
        """Take the functions that make clouds.

        Args:
            makers: (origin, function).
            problems: Plug-ins that could not be loaded.
        """
        self._makers = makers
        self.problems = tuple(problems)
        self._made: dict[tuple[str, str], Cloud] = {}
        self._lock = threading.Lock()

    def of(self, project: str) -> list[Cloud]:
        """Return the clouds of all packages; one that cannot be made now is left out, and retried at the next call."""
        with self._lock:
            made = [self._cloud(origin, make, project) for origin, make in self._makers]
        return [each for each in made if each is not None]

    def _cloud(self, origin: str, make: Make, project: str) -> Cloud | None:
        known = self._made.get((origin, project))
        if known is not None:
            return known
        try:
            made = make(project)
            # A wrong adapter must fail here, where it can be left out, and not later in a pass.
            _ = made.name, frozenset(made.kinds), float(made.listing_lag_s)
        except Exception:
            LOG.exception("the cloud of %s for project %s cannot be made", origin, project)
            return None
        self._made[origin, project] = made
        return made

    def close(self) -> None:
        for (origin, project), each in self._made.items():
            try:
                each.close()
            except Exception:
                LOG.exception("the cloud of %s for project %s cannot be closed", origin, project)


def installed_clouds() -> InstalledClouds:
    """Return the clouds of the installed packages."""
    found = loaded(GROUP)
    callable_ones = [(origin, each) for origin, each in found.things if callable(each)]
    others = [
        PluginProblem(origin, f"{each!r} is no function of a project")
        for origin, each in found.things
        if not callable(each)
    ]
    return InstalledClouds(callable_ones, [*found.problems, *others])
