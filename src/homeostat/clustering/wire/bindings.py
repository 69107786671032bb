"""Routes for the policies of a cluster."""

from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.clustering.store import bindings, parts
from homeostat.clustering.wire import views
from homeostat.clustering.wire.context import Context
from homeostat.clustering.wire.lists import ListRules, flag_of, read_query
from homeostat.clustering.wire.routes import answers, router
from homeostat.model.errors import Rejected

ROUTER = router("policies of clusters")
ONE = answers(dict[str, Any])
LIST = ListRules(
    filters={
        "enabled": lambda value: flag_of(value, "enabled"),
        "policy_name": None,
        "policy_type": None,
    },
    single=("enabled", "policy_name", "policy_type"),
    sortable={"enabled": "enabled"},
    default=("id",),
    paged=False,
)


@ROUTER.get(
    "/clusters/{cluster_id}/policies",
    dependencies=[may("cluster_policies:index")],
    summary="List the policies of a cluster",
    responses=ONE,
)
def list_cluster_policies(request: Request, context: Context, cluster_id: str) -> Response:
    page = read_query(context, request, LIST)
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.scope, cluster_id)
        rows = bindings.of_cluster(tx, cluster.id)
        cluster_parts = parts.of_clusters(tx, [cluster.id]).get(cluster.id, parts.NONE)
    rows = [row for row in rows if all(getattr(row, name) in values for name, values in page.only.items())]
    for order in reversed(page.order):
        rows.sort(key=lambda row: getattr(row, order.column), reverse=order.descending)
    return context.json({"cluster_policies": [views.binding(row, cluster.name, cluster_parts) for row in rows]})


@ROUTER.get(
    "/clusters/{cluster_id}/policies/{policy_id}",
    dependencies=[may("cluster_policies:get")],
    summary="Show a policy of a cluster",
    responses=ONE,
)
def show_cluster_policy(context: Context, cluster_id: str, policy_id: str) -> Response:
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.scope, cluster_id)
        policy = context.clusters.policies.get(tx, context.scope, policy_id)
        row = next((binding for binding in bindings.of_cluster(tx, cluster.id) if binding.policy_id == policy.id), None)
        cluster_parts = parts.of_clusters(tx, [cluster.id]).get(cluster.id, parts.NONE)
    if row is None:
        message = f"The policy '{policy_id}' is not found attached to the specified cluster '{cluster_id}'."
        raise Rejected("PolicyBindingNotFound", message)
    return context.json({"cluster_policy": views.binding(row, cluster.name, cluster_parts)})
