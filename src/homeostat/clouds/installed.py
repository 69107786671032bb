"""Clouds of installed packages: adapters for kinds that the service itself does not know.

A package names a function under the entry point group `homeostat.clouds`. The function is called once for each project
with the project's id, and returns an adapter (`clouds.port.Cloud`) for the kinds of the package's resource types. Kinds
that a cloud of the service has stay with this cloud. Change notices (`watch`) of installed clouds are not used: their
objects are observed periodically.
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
        """Return the clouds of all packages; leave out clouds that fail to start, and retry at the next call."""
        with self._lock:
            clouds = [self._cloud(origin, make, project) for origin, make in self._makers]
        return [cloud for cloud in clouds if cloud is not None]

    def _cloud(self, origin: str, make: Make, project: str) -> Cloud | None:
        known = self._made.get((origin, project))
        if known is not None:
            return known
        try:
            cloud = make(project)
            # A wrong adapter must fail here, where it can be left out, and not later in a pass.
            _ = cloud.name, frozenset(cloud.kinds), float(cloud.listing_lag_s)
        except Exception:
            LOG.exception("the cloud of %s for project %s cannot be made", origin, project)
            return None
        self._made[origin, project] = cloud
        return cloud

    def close(self) -> None:
        for (origin, project), cloud in self._made.items():
            try:
                cloud.close()
            except Exception:
                LOG.exception("the cloud of %s for project %s cannot be closed", origin, project)


def installed_clouds() -> InstalledClouds:
    """Return the clouds of the installed packages."""
    plugins = loaded(GROUP)
    makers = [(origin, thing) for origin, thing in plugins.things if callable(thing)]
    others = [
        PluginProblem(origin, f"{thing!r} is no function of a project")
        for origin, thing in plugins.things
        if not callable(thing)
    ]
    return InstalledClouds(makers, [*plugins.problems, *others])
