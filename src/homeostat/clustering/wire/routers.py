"""The routes of the Clustering API."""

from homeostat.clustering.wire import (
    about,
    actions,
    bindings,
    cluster_actions,
    clusters,
    events,
    metadata,
    nodes,
    operations,
    receivers,
    specs,
    types,
)

ROUTERS = (
    types.ROUTER,
    specs.PROFILES,
    specs.POLICIES,
    clusters.ROUTER,
    cluster_actions.ROUTER,
    metadata.ROUTER,
    bindings.ROUTER,
    nodes.ROUTER,
    operations.ROUTER,
    receivers.ROUTER,
    actions.ROUTER,
    events.ROUTER,
    about.ROUTER,
)
"""In matching order."""
