"""Routes for nodes."""

from typing import Any

from fastapi import Request
from sqlalchemy import Connection, Row
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.clustering import views
from homeostat.api.clustering.context import ClusteringContext, Context, since
from homeostat.api.clustering.lists import ListRules, flag_of, read_query
from homeostat.api.clustering.routes import answers, router
from homeostat.clustering.attrs import attribute_path
from homeostat.clustering.states import NodeStatus
from homeostat.model.errors import Rejected
from homeostat.store import schema
from homeostat.store.clusters import listing, living
from homeostat.store.clusters.listing import Order, Page

ROUTER = router("nodes")
ONE = answers(dict[str, Any])
WITH_TAINT = (1, 13)
LIST = ListRules(
    filters={"cluster_id": None, "name": None, "status": tuple(NodeStatus)},
    single=("cluster_id",),
    sortable={
        "index": "number",
        "name": "name",
        "status": "init_at",
        "init_at": "init_at",
        "created_at": "init_at",
        "updated_at": "updated_at",
    },
    default=("init_at", "number"),
)


def shown(context: ClusteringContext, tx: Connection, rows: list[Row[Any]]) -> list[dict[str, Any]]:
    """Return nodes as users see them."""
    names = context.clusters.profile_names(tx, {row.profile_id for row in rows})
    return views.nodes(tx, rows, names, tainted=context.version >= WITH_TAINT)


@ROUTER.get("/nodes", dependencies=[may("nodes:index")], summary="List nodes", responses=ONE)
def list_nodes(request: Request, context: Context) -> Response:
    wanted = read_query(context, request, LIST)
    only = dict(wanted.only)
    statuses, names = only.pop("status", None), only.pop("cluster_id", None)
    with context.db.read() as tx:
        if names:
            cluster = listing.find(tx, schema.cluster, context.asking.reach, names[0], living.is_living_cluster())
            if cluster is None:
                raise Rejected("BadRequest", f"Cannot find the given cluster: '{names[0]}'.")
            only["cluster_id"] = [cluster.id]
        page = Page(wanted.project, only, wanted.order, wanted.marker, None if statuses else wanted.limit)
        found = shown(context, tx, listing.page(tx, schema.node, page, living.is_living_node()))
    if statuses:
        # A status follows from resources: no column has it.
        found = [each for each in found if each["status"] in statuses][: wanted.limit]
    return context.json({"nodes": found})


@ROUTER.get("/nodes/{node_id}", dependencies=[may("nodes:get")], summary="Show a node", responses=ONE)
def show_node(request: Request, context: Context, node_id: str) -> Response:
    """Show a node; with `show_details=true` also what was last seen of its server or stack."""
    details = flag_of(request.query_params.get("show_details"), "show_details")
    with context.db.read() as tx:
        row = listing.find(tx, schema.node, context.asking.reach, node_id, living.is_living_node())
        if row is None:
            raise Rejected("ResourceNotFound", f"The node '{node_id}' could not be found.")
        (found,) = shown(context, tx, [row])
        if details:
            found["details"] = views.details(tx, row)
    return context.json({"node": found})


@ROUTER.get(
    "/clusters/{cluster_id}/attrs/{path:path}",
    dependencies=[may("clusters:collect"), since(1, 2)],
    summary="Collect an attribute of all nodes of a cluster",
    responses=ONE,
)
def collect_attributes(context: Context, cluster_id: str, path: str) -> Response:
    """Collect what a JSON path leads to in each node, such as `$.details.addresses`; nodes without it are left out."""
    wanted = attribute_path(path)
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.asking, cluster_id)
        mine = Page(None, {"cluster_id": [cluster.id]}, (Order("number"),))
        rows = listing.page(tx, schema.node, mine, living.is_living_node())
        found = shown(context, tx, rows)
        if wanted.needs_details:
            for row, each in zip(rows, found, strict=True):
                each["details"] = views.details(tx, row)
    values = ((each["id"], wanted.first(each)) for each in found)
    collected = [{"id": identity, "value": value} for identity, (there, value) in values if there]
    return context.json({"cluster_attributes": collected})
