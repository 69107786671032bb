"""Routes for clusters."""

from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.clustering.decisions import sizes
from homeostat.clustering.decisions.states import ClusterStatus
from homeostat.clustering.store import bindings
from homeostat.clustering.wire import bodies, views
from homeostat.clustering.wire.bodies import Field
from homeostat.clustering.wire.context import HEAVY, ClusteringContext, Context, Force
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import accepted, answers, router, takes
from homeostat.model.errors import Rejected
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow

ROUTER = router("clusters")
ONE = answers(dict[str, Any])
LIST = ListRules(
    filters={"name": None, "status": tuple(ClusterStatus)},
    sortable={
        "name": "name",
        "status": "init_at",
        "init_at": "init_at",
        "created_at": "init_at",
        "updated_at": "updated_at",
    },
    default=("init_at",),
    quoted=True,
)
NEW = {
    "name": Field(bodies.name, required=True),
    "profile_id": Field(bodies.reference, required=True),
    "desired_capacity": Field(bodies.integer(0, sizes.NODES_MAX)),
    "min_size": Field(bodies.integer(0, sizes.NODES_MAX)),
    "max_size": Field(bodies.integer(-1, sizes.NODES_MAX)),
    "timeout": Field(bodies.integer(0)),
    "metadata": Field(bodies.metadata),
    "config": Field(bodies.mapping),
}
CHANGED = {
    "name": Field(bodies.name),
    "profile_id": Field(bodies.reference),
    "metadata": Field(bodies.metadata),
    "timeout": Field(bodies.integer(0)),
    "profile_only": Field(bodies.boolean),
    "config": Field(bodies.mapping),
}


def shown(context: ClusteringContext, tx: Transaction, rows: list[ClusterRow]) -> list[dict[str, Any]]:
    """Return clusters in the format of the API."""
    names = context.clusters.profile_names(tx, {row.profile_id for row in rows})
    return views.clusters(tx, rows, names, bindings.policy_ids(tx, [row.id for row in rows]))


@ROUTER.get("/clusters", dependencies=[may("clusters:index")], summary="List clusters", responses=ONE)
def list_clusters(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    only = dict(page.only)
    statuses = only.pop("status", None)
    with context.db.read() as tx:
        source = ListSource(
            partial(context.clusters.clusters.page, tx),
            partial(shown, context, tx),
            # The status is computed from stacks and nodes, and not a column.
            lambda cluster: not statuses or cluster["status"] in statuses,
        )
        return listed(context, request, "clusters", replace(page, only=only), source)


@ROUTER.post(
    "/clusters",
    dependencies=[may("clusters:create"), HEAVY],
    summary="Make a cluster",
    openapi_extra=takes(NEW, "cluster"),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def create_cluster(context: Context, body: Body) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "cluster"), NEW)
    profile = context.clusters.profile(context.scope, fields["profile_id"])
    size = sizes.new_sizes(fields.get("desired_capacity"), fields.get("min_size"), fields.get("max_size"))
    limits = {"min_size": size.min_size, "max_size": size.max_size, "desired_capacity": size.desired}
    started = context.clusters.clusters.create(
        context.scope,
        fields["name"],
        profile,
        limits,
        fields.get("timeout", 3600) or 3600,
        fields.get("metadata", {}),
        fields.get("config", {}),
        context.check_types,
    )
    return context.json({"cluster": _one(context, started.target)}, 202, started.action)


def _one(context: ClusteringContext, identity: str) -> dict[str, Any]:
    with context.db.read() as tx:
        (cluster,) = shown(context, tx, [context.clusters.clusters.get(tx, context.scope, identity)])
    return cluster


@ROUTER.get("/clusters/{cluster_id}", dependencies=[may("clusters:get")], summary="Show a cluster", responses=ONE)
def show_cluster(context: Context, cluster_id: str) -> Response:
    return context.json({"cluster": _one(context, cluster_id)})


@ROUTER.patch(
    "/clusters/{cluster_id}",
    dependencies=[may("clusters:update"), HEAVY],
    summary="Change a cluster",
    openapi_extra=takes(CHANGED, "cluster"),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def update_cluster(context: Context, cluster_id: str, body: Body) -> Response:
    ignored = [name for name, least in (("profile_only", (1, 6)), ("config", (1, 7))) if context.version < least]
    fields = bodies.read(bodies.unwrapped(body, "cluster", changing=True), CHANGED, ignored)
    service = context.clusters
    before = _one(context, cluster_id)
    if before["status"] == "ERROR":
        raise Rejected("FeatureNotSupported", "Updating a cluster in error state is not supported.")
    profile = service.profile(context.scope, fields["profile_id"]) if "profile_id" in fields else None
    started = service.clusters.change(
        context.scope,
        before["id"],
        lambda tx, row: service.sizing.batches(tx, row, service.clusters.update(tx, row, fields, profile)),
        context.check_types,
    )
    return context.json({"cluster": before}, 202, started.action)


@ROUTER.delete(
    "/clusters/{cluster_id}",
    dependencies=[may("clusters:delete")],
    summary="Delete a cluster with its nodes",
    status_code=202,
    responses=accepted(),
)
def delete_cluster(context: Context, cluster_id: str, force: Force) -> Response:
    """Delete a cluster; with `force`, in the query or in the body, also if an action on it is in progress."""
    started = context.clusters.clusters.delete(context.scope, cluster_id, force=force)
    return context.json(None, 202, started.action)
