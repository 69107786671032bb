"""The clouds, the regions, and the rules for outbound requests."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.cli.errors import Usage
from homeostat.cli.service import url_of
from homeostat.cli.settings import ServiceSettings, with_own_region
from homeostat.cli.state_directory import State
from homeostat.composition.access import identity, stack_users, trusts
from homeostat.composition.clustering import clustering

if TYPE_CHECKING:
    from homeostat.clouds.credentials import Credentials
    from homeostat.clouds.heat_api import Regions
    from homeostat.clouds.local import LocalCloud
    from homeostat.clouds.openstack import OpenStack, OpenStackConfig
    from homeostat.clouds.openstack.connections import Connections
    from homeostat.clouds.openstack.notifications import NotificationConfig
    from homeostat.clouds.outbound import Rules
    from homeostat.clouds.port import Cloud, Clouds
    from homeostat.clouds.simulated import SimulatedCloud
    from homeostat.model.rates import Rate
    from homeostat.store.database import Database
    from homeostat.templates.shared_environments import SharedEnvironment


@contextlib.contextmanager
def clouds(settings: ServiceSettings, db: "Database") -> "Iterator[tuple[Cloud, Clouds]]":
    """Open the clouds.

    Yields:
        The cloud shared by all projects, and a function that returns the cloud of a project: the shared cloud, joined
        with other regions, the service's own records, plug-ins and installed clouds.
    """
    from homeostat.builtin.cloud import Records
    from homeostat.builtin.server_agents import ServerAgents
    from homeostat.clock import Entropy
    from homeostat.clouds.combined import JoinedCloud
    from homeostat.clouds.installed import installed_clouds
    from homeostat.clustering.resources.cloud import ClusteringResourceClouds
    from homeostat.plugins.cloud import PluginClouds
    from homeostat.plugins.loading import classes

    with (
        contextlib.closing(cloud(settings, db)) as shared_cloud,
        contextlib.closing(regions(settings, trusts(settings, db))) as others,
        contextlib.closing(installed_clouds()) as installed,
        contextlib.closing(PluginClouds(db, classes(), monotonic=time.monotonic)) as plugin_clouds,
    ):
        url = settings.public_url or url_of(settings.host, settings.port)
        own = Records(db, Entropy(), url, stack_users(settings, db), settings.health_interval_min)

        def of_project(project: str) -> JoinedCloud:
            joined: list[Cloud] = [
                others.of(project),
                own.of(project),
                clustering_clouds.of(project),
                plugin_clouds.of(project),
                *installed.of(project),
            ]
            return JoinedCloud(ServerAgents(shared_cloud.of(project), own, db, project), *joined)

        rules, shared = outbound_rules(settings), shared_environment(settings)
        clustering_clouds = ClusteringResourceClouds(
            db, Entropy(), clustering(settings, db, of_project, url, rules, shared)
        )
        plugin_clouds.clouds = of_project  # handlers use the joined cloud, which includes the plug-ins themselves
        yield shared_cloud, of_project


def cloud(settings: ServiceSettings, db: "Database") -> "LocalCloud | OpenStack | SimulatedCloud":
    """Return the cloud in the settings."""
    from homeostat.clouds.heat_api import KIND
    from homeostat.clouds.local import LocalCloud
    from homeostat.clouds.simulated import SimulatedCloud
    from homeostat.store.operation import cloud_identities

    adapters: Mapping[str, Callable[[], LocalCloud | OpenStack | SimulatedCloud]] = {
        "local": lambda: LocalCloud(
            State(settings.state).cloud, cloud_identities.CloudLedger(db, "local"), private_paths(settings)
        ),
        "openstack": lambda: openstack(settings, db),
        # Stacks in regions are real.
        "simulated": lambda: SimulatedCloud(time.time, kinds=SimulatedCloud.kinds - {KIND}),
    }
    return adapters[settings.cloud]()


def openstack(settings: ServiceSettings, db: "Database") -> "OpenStack":
    """Return the OpenStack cloud of the service.

    Raises:
        Usage: A setting is wrong; the error names it.
    """
    from homeostat.clouds.openstack import OpenStack
    from homeostat.clouds.openstack.budget import Budget
    from homeostat.clouds.openstack.notifications import Notifications
    from homeostat.store.operation.changed_servers import ChangedServers
    from homeostat.store.operation.request_turns import RequestTurns

    budget = Budget(request_limits(settings), RequestTurns(db))
    notifications = Notifications(notification_config(settings))
    connections = openstack_connections(settings, db)
    changed = ChangedServers(db)
    return OpenStack(openstack_config(settings), connections, trusts(settings, db), budget, notifications, changed)


def openstack_config(settings: ServiceSettings) -> "OpenStackConfig":
    """Return the configuration of the connections to OpenStack."""
    from homeostat.clouds.openstack import OpenStackConfig

    keystone = identity(settings)
    region = settings.os_region or (keystone.config.region if keystone is not None else "")
    return OpenStackConfig(
        settings.os_cloud, region, settings.os_interface, settings.os_timeout, settings.os_connections
    )


def openstack_connections(settings: ServiceSettings, db: "Database") -> "Connections":
    """Return connections to OpenStack.

    Raises:
        Usage: `clouds.yaml` has no such entry.
    """
    from openstack.exceptions import ConfigException

    from homeostat.clouds.openstack.connections import Connections

    keystone = identity(settings)
    auth_url, tls = (keystone.config.login_url, keystone.config.connection) if keystone is not None else ("", None)
    try:
        return Connections(openstack_config(settings), trusts(settings, db), auth_url, tls)
    except ConfigException as error:
        raise Usage(f"--os-cloud {settings.os_cloud}: {error}") from error


def notification_config(settings: ServiceSettings) -> "NotificationConfig":
    """Return the source of notifications of OpenStack's services."""
    from homeostat.clouds.openstack.notifications import TOPICS, NotificationConfig

    return NotificationConfig(
        settings.os_notifications, settings.os_notification_topics or TOPICS, settings.os_notification_pool
    )


def request_limits(settings: ServiceSettings) -> "Mapping[str, Rate]":
    """Return the limits of requests to OpenStack's services.

    Raises:
        Usage: A syntax error, or an unknown service.
    """
    from os_service_types import ServiceTypes

    from homeostat.clouds.openstack.budget import read_limits

    known = ServiceTypes()
    try:
        limits = read_limits(settings.os_requests_per_second)
    except ValueError as error:
        raise Usage(f"--os-requests-per-second {settings.os_requests_per_second}: {error}") from error
    unknown = [service_type for service_type in limits if service_type and not known.is_official(service_type)]
    if unknown:
        raise Usage(
            f"--os-requests-per-second: OpenStack has no service type {', '.join(unknown)}; write compute, network, "
            "block-storage, load-balancer, …, as `openstack catalog list` shows them"
        )
    return limits


def private_paths(settings: ServiceSettings) -> "list[Path]":
    """Return the files that user data of servers on this machine must not reach (see ADR 0044)."""
    from sqlalchemy import make_url

    from homeostat.cli.settings import NO_KEYS

    named = (settings.htpasswd, settings.keystone_config, settings.region_logins)
    url = make_url(settings.database) if settings.database else None
    file = Path(url.database).absolute() if url and url.get_backend_name() == "sqlite" and url.database else None
    keys = Path(settings.encryption_keys).expanduser() if settings.encryption_keys not in ("", NO_KEYS) else None
    return [path for path in (settings.state, keys, file, *named) if path is not None]


def regions(settings: ServiceSettings, credentials: "Credentials | None") -> "Regions":
    """Return the regions in which `OS::Heat::Stack` may make stacks.

    Raises:
        Usage: A setting is wrong; the error names it.
    """
    from homeostat.clouds.heat_api import Regions
    from homeostat.clouds.regions import read_logins, read_regions

    try:
        logins = read_logins(settings.region_logins.read_text()) if settings.region_logins is not None else {}
    except (OSError, ValueError) as error:
        raise Usage(f"--region-logins {settings.region_logins}: {error}") from error
    keystone, own = identity(settings), url_of(settings.host, settings.port)
    try:
        known = read_regions(with_own_region(settings.regions, own), logins)
    except ValueError as error:
        raise Usage(f"--region {error}") from error
    return Regions(known, credentials=credentials, own=keystone.config.region if keystone is not None else "")


def outbound_rules(settings: ServiceSettings) -> "Rules":
    """Return the rules for URLs that the service may call.

    Raises:
        Usage: An entry is wrong; the error names it.
    """
    from homeostat.clouds.outbound import read_rules

    try:
        return read_rules(settings.fetch_from)
    except ValueError as error:
        raise Usage(f"--fetch-from {error}") from error


def shared_environment(settings: ServiceSettings) -> "SharedEnvironment":
    """Return the environment that the operator gives all stacks.

    Raises:
        Usage: A file is wrong; the error names it.
    """
    from homeostat.cli.shared_environments import read_shared

    try:
        return read_shared(settings.environment_files)
    except ValueError as error:
        raise Usage(f"--environment-file {error}") from error
