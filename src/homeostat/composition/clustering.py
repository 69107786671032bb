"""The Clustering API as workers use it: for the clusters, nodes, profiles, policies and receivers of templates."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from homeostat.cli.settings import ServiceSettings
from homeostat.composition.access import makes_users, policy

if TYPE_CHECKING:
    from homeostat.clouds.outbound import Rules
    from homeostat.clouds.port import Clouds
    from homeostat.clustering.resources.api import ClusteringResources
    from homeostat.notifications.sinks import Sinks
    from homeostat.services.quotas import Quotas
    from homeostat.store.database import Database
    from homeostat.templates.shared_environments import SharedEnvironment


def quotas(settings: ServiceSettings) -> "Quotas":
    """Return the limits of stacks."""
    from homeostat.services.quotas import Quotas

    return Quotas(
        stacks_max=settings.stacks_max,
        resources_max=settings.resources_max,
        expanded_max=settings.expanded_max,
        depth_max=settings.depth_max,
        previewed_max=settings.previewed_max,
        heal_share=settings.heal_share,
        snapshots_max=settings.snapshots_max,
        health_interval_min=settings.health_interval_min,
        adopt=not settings.no_adopt,
        abandon=not settings.no_abandon,
    )


def clustering(
    settings: ServiceSettings,
    db: "Database",
    clouds: "Clouds",
    url: str,
    fetching: "Rules",
    shared: "SharedEnvironment",
) -> "ClusteringResources":
    """Return what the Clustering API does for resources of templates.

    Args:
        settings: The settings.
        db: The database.
        clouds: What each project sees.
        url: Where servers and alarms reach the service.
        fetching: What may be fetched by URL.
        shared: The environment that the operator gives all stacks.

    Raises:
        Usage: The policy file is wrong.
    """
    from homeostat.clock import Entropy
    from homeostat.clouds.outbound import Outbound
    from homeostat.clustering.resources.api import ClusteringResources
    from homeostat.notifications.sinks import Sinks, installed_sinks
    from homeostat.services.pipeline.prerequisites import Prerequisites
    from homeostat.services.stacks import StackService

    outbound = Outbound(fetching)
    stacks = StackService(
        db,
        Entropy(),
        quotas(settings),
        outbound=outbound,
        prerequisites=Prerequisites(clouds, db.agreed_now, makes_users=makes_users(settings)),
        sinks=Sinks(clouds, outbound, installed_sinks().kinds),
        shared=shared,
    )
    return ClusteringResources(db, stacks, url, None if settings.access == "none" else policy(settings))


def lifecycle_hooks(
    settings: ServiceSettings, db: "Database", sinks: "Sinks", shared: "SharedEnvironment"
) -> Callable[[], int]:
    """Return what notifies others before nodes go, and lets them go then; to be called about once a second.

    Args:
        settings: The settings.
        db: The database.
        sinks: Send the messages.
        shared: The environment that the operator gives all stacks.
    """
    from homeostat.clock import Entropy
    from homeostat.clustering.service.services import Clustering
    from homeostat.services.stacks import StackService

    services = Clustering(db, StackService(db, Entropy(), quotas(settings), sinks=sinks, shared=shared))
    return services.hook_waits.tidier(sinks).tidy
