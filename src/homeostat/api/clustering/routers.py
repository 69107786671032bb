"""The routes of the Clustering API."""

from homeostat.api.clustering import (
    about,
    actions,
    bindings,
    cluster_actions,
    clusters,
    nodes,
    policies,
    profiles,
    types,
)

ROUTERS = (
    types.ROUTER,
    profiles.ROUTER,
    policies.ROUTER,
    clusters.ROUTER,
    cluster_actions.ROUTER,
    bindings.ROUTER,
    nodes.ROUTER,
    actions.ROUTER,
    about.ROUTER,
)
"""In matching order."""
