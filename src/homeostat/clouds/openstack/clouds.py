"""The OpenStack of all projects."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from homeostat.clouds.credentials import Credentials
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.config import OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.registry import COLLECTIONS, VERSIONS
from homeostat.clouds.openstack.service import Budget, Service, Unlimited
from homeostat.clouds.port import ChangeNotice

Watch = Callable[[Callable[[], bool]], Iterator[ChangeNotice]]


class OpenStack(OpenStackCloud):
    """The OpenStack that the service stands beside, of no project itself. Safe to share between threads."""

    def __init__(
        self,
        config: OpenStackConfig,
        connections: Connections,
        credentials: Credentials | None = None,
        budget: Budget | None = None,
        watch: Watch = lambda stop: iter(()),
    ) -> None:
        """Take the parts.

        Args:
            config: Settings.
            connections: Connections to the services.
            credentials: Tokens of the owners of stacks; None where one login is used for all projects.
            budget: Limit of requests that all workers keep together; None for no limit.
            watch: Yields change notices of all projects.
        """
        self._connections = connections
        self._credentials = credentials
        self._budget = budget or Unlimited()
        self._threads = ThreadPoolExecutor(config.connections, thread_name_prefix="openstack")
        self._lock = threading.Lock()
        self._projects: dict[str, OpenStackCloud] = {}
        super().__init__(COLLECTIONS, self._services(""), self._threads, watch)

    def of(self, project: str) -> OpenStackCloud:
        """Return the cloud as one project sees it."""
        with self._lock:
            if project not in self._projects:
                self._projects[project] = self._cloud(project)
            return self._projects[project]

    def _cloud(self, project: str) -> OpenStackCloud:
        return OpenStackCloud(COLLECTIONS, self._services(project), self._threads)

    def _services(self, project: str) -> Callable[[str], Service]:
        """Return a function that returns the client of a service, by its type, for a project."""
        services: dict[str, Service] = {}

        def service(type: str) -> Service:
            if type not in services:
                services[type] = Service(
                    type,
                    project,
                    self._connections.proxy(project, type),
                    self._credentials,
                    self._budget,
                    VERSIONS.get(type),
                )
            return services[type]

        return service

    def close(self) -> None:
        """Close the connections and end the threads; things remain."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.close()
