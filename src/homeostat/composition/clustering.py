"""The clustering services of workers, for `OS::Senlin::*` resources and lifecycle hooks."""

from collections.abc import Callable
from functools import cache
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
) -> "Callable[[], ClusteringResources]":
    """Return a function that returns the operations of the Clustering API for resources of templates.

    Its first call loads the API, which takes a third of a start: most workers never need it.

    Args:
        clouds: Returns the cloud of a project.
        url: URL of the service for servers and alarms.
        fetching: The rules for URLs that the service may call.
        shared: The operator's environment for all stacks.

    Raises:
        Usage: The policy file is wrong.
    """
    rules = None if settings.access == "none" else policy(settings)

    @cache
    def resources() -> "ClusteringResources":
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
        return ClusteringResources(db, stacks, url, rules)

    return resources


def lifecycle_hooks(
    settings: ServiceSettings, db: "Database", sinks: "Sinks", shared: "SharedEnvironment"
) -> Callable[[], int]:
    """Return the background task for lifecycle hooks of nodes, to be called about once a second.

    Args:
        sinks: Send the messages.
        shared: The operator's environment for all stacks.
    """
    from homeostat.clock import Entropy
    from homeostat.clustering.service.services import Clustering
    from homeostat.services.stacks import StackService

    services = Clustering(db, StackService(db, Entropy(), quotas(settings), sinks=sinks, shared=shared))
    return services.hook_waits.tidier(sinks).tidy
