"""The OpenStack clouds of all projects."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from homeostat.clouds.credentials import Credentials
from homeostat.clouds.openstack.budget import Budget
from homeostat.clouds.openstack.changed_servers import ChangedServers, OwnChangedServers
from homeostat.clouds.openstack.cloud import OpenStackCloud
from homeostat.clouds.openstack.config import OpenStackConfig
from homeostat.clouds.openstack.connections import Connections
from homeostat.clouds.openstack.notifications import NotificationConfig, Notifications
from homeostat.clouds.openstack.outages import Outages
from homeostat.clouds.openstack.registry import COLLECTIONS, NAMED_ONLY, VERSIONS
from homeostat.clouds.openstack.service import Service


class OpenStack(OpenStackCloud):
    """The OpenStack of this deployment, bound to no project. Safe to share between threads."""

    def __init__(
        self,
        config: OpenStackConfig,
        connections: Connections,
        credentials: Credentials | None = None,
        budget: Budget | None = None,
        notifications: Notifications | None = None,
        changed_servers: ChangedServers | None = None,
    ) -> None:
        """Take the parts.

        Args:
            connections: Connections to the services.
            credentials: Tokens of the stacks' owners; None if all projects use the same login.
            budget: Rate limits that all workers share; None for no limit.
            notifications: Change notices of all projects; None for none.
            changed_servers: Announced changes of all workers; None for a single worker.
        """
        self._connections = connections
        self._credentials = credentials
        self._budget = budget or Budget()
        self._outages = Outages(config.request_s)
        self._notifications = notifications or Notifications(NotificationConfig())
        self._threads = ThreadPoolExecutor(config.connections, thread_name_prefix="openstack")
        self._lock = threading.Lock()
        self._projects: dict[str, OpenStackCloud] = {}
        self._changed_servers = changed_servers or OwnChangedServers()
        super().__init__(COLLECTIONS, self._services(""), self._threads, self._notifications.watch, NAMED_ONLY)

    def of(self, project: str) -> OpenStackCloud:
        """Return the cloud of a project."""
        with self._lock:
            if project not in self._projects:
                self._projects[project] = self._cloud(project)
            return self._projects[project]

    def _cloud(self, project: str) -> OpenStackCloud:
        return OpenStackCloud(
            COLLECTIONS,
            self._services(project),
            self._threads,
            named_only=NAMED_ONLY,
            project=project,
            changed_servers=self._changed_servers,
        )

    def _services(self, project: str) -> Callable[[str], Service]:
        """Return a function from the type of a service to its client for a project."""
        services: dict[str, Service] = {}

        def service(type: str) -> Service:
            if type not in services:
                services[type] = Service(
                    type,
                    project,
                    self._connections.proxy(project, type),
                    self._credentials,
                    self._budget,
                    self._outages,
                    VERSIONS.get(type),
                )
            return services[type]

        return service

    def close(self) -> None:
        """Close the connections and end the threads; cloud objects remain."""
        self._notifications.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.close()
