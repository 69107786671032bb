"""Routes for nodes."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.clustering.decisions.states import NodeStatus
from homeostat.clustering.service.requester import referring
from homeostat.clustering.store import listing, living, node_views
from homeostat.clustering.store.listing import Order, Page
from homeostat.clustering.wire import bodies
from homeostat.clustering.wire.bodies import Field
from homeostat.clustering.wire.context import HEAVY, ClusteringContext, Context, Force, since
from homeostat.clustering.wire.lists import ListRules, ListSource, flag_of, listed, read_query
from homeostat.clustering.wire.routes import accepted, answers, router, takes
from homeostat.json_pieces import Items
from homeostat.model.errors import Rejected
from homeostat.resources.attribute_paths import AttributePath, attribute_path
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow

ROUTER = router("nodes")
ONE = answers(dict[str, Any])
WITH_TAINT = (1, 13)
COLLECTED = 50
"""Nodes whose attributes are read together."""
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


NEW = {
    "name": Field(bodies.name, required=True),
    "profile_id": Field(bodies.reference, required=True),
    "cluster_id": Field(bodies.text),
    "role": Field(bodies.short),
    "metadata": Field(bodies.metadata),
}
CHANGED = {
    "name": Field(bodies.name),
    "profile_id": Field(bodies.reference),
    "role": Field(bodies.short),
    "metadata": Field(bodies.metadata),
    "tainted": Field(bodies.boolean),
}

PREVIEWED = {
    "identity": Field(bodies.reference, required=True),
    "type": Field(bodies.reference, required=True),
    "overrides": Field(bodies.mapping),
    "snapshot": Field(bodies.boolean),
}
ADOPTED = {
    **PREVIEWED,
    "name": Field(bodies.name),
    "role": Field(bodies.short),
    "metadata": Field(bodies.metadata),
    "profile_id": Field(bodies.reference),
}
"""`profile_id`, which Senlin lacks, is the profile of the existing server."""


def shown(context: ClusteringContext, tx: Transaction, rows: list[NodeRow]) -> list[dict[str, Any]]:
    """Return nodes in the format of the API."""
    names = context.clusters.profile_names(tx, {row.profile_id for row in rows})
    return node_views.nodes(tx, rows, names, tainted=context.version >= WITH_TAINT)


@ROUTER.get("/nodes", dependencies=[may("nodes:index")], summary="List nodes", responses=ONE)
def list_nodes(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    only = dict(page.only)
    statuses, names = only.pop("status", None), only.pop("cluster_id", None)
    with context.db.read() as tx:
        if names:
            cluster = listing.find(tx, ClusterRow, context.scope.reach, names[0], living.is_living_cluster())
            if cluster is None:
                raise Rejected("BadRequest", f"Cannot find the given cluster: {names[0]}.")
            only["cluster_id"] = [cluster.id]
        source = ListSource(
            lambda part: listing.page(tx, NodeRow, part, living.is_living_node()),
            partial(shown, context, tx),
            # The status is computed from resources, and not a column.
            lambda node: not statuses or node["status"] in statuses,
        )
        return listed(context, request, "nodes", replace(page, only=only), source)


@ROUTER.get("/nodes/{node_id}", dependencies=[may("nodes:get")], summary="Show a node", responses=ONE)
def show_node(request: Request, context: Context, node_id: str) -> Response:
    """Show a node; with `show_details=true` also the last observed properties of its server or stack."""
    details = flag_of(request.query_params.get("show_details"), "show_details")
    with context.db.read() as tx:
        row = context.clusters.nodes.get(tx, context.scope, node_id)
        (node,) = shown(context, tx, [row])
        if details:
            node["details"] = node_views.details(tx, [row]).get(row.id, {})
    return context.json({"node": node})


@ROUTER.post(
    "/nodes",
    dependencies=[may("nodes:create"), HEAVY],
    summary="Make a node",
    openapi_extra=takes(NEW, "node"),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def create_node(context: Context, body: Body) -> Response:
    """Make a node, in a cluster or without one. In a cluster its name follows from its index."""
    fields = bodies.read(bodies.unwrapped(body, "node"), NEW)
    profile = context.clusters.profile(context.scope, fields["profile_id"])
    cluster = None
    if fields.get("cluster_id"):
        with context.db.read() as tx, referring(f"The specified cluster '{fields['cluster_id']}'"):
            cluster = context.clusters.clusters.get(tx, context.scope, fields["cluster_id"])
    started = context.clusters.nodes.create(
        context.scope, fields["name"], profile, cluster, fields, context.check_types
    )
    return context.json({"node": _one(context, started.target)}, 202, started.action)


def _one(context: ClusteringContext, identity: str) -> dict[str, Any]:
    with context.db.read() as tx:
        (node,) = shown(context, tx, [context.clusters.nodes.get(tx, context.scope, identity)])
    return node


@ROUTER.post(
    "/nodes/adopt",
    dependencies=[may("nodes:adopt"), since(1, 7), HEAVY],
    summary="Adopt an existing server as a node",
    openapi_extra=takes(ADOPTED),
    responses=ONE,
)
def adopt_node(context: Context, body: Body) -> Response:
    """Adopt an existing server as a node without a cluster, with a profile made from the server, or with `profile_id`.

    Only the name and the metadata of the server change.
    """
    fields = bodies.read(body, ADOPTED)
    profile = context.clusters.profile(context.scope, fields["profile_id"]) if "profile_id" in fields else None
    if profile is not None and (profile.type != fields["type"] or fields.get("overrides")):
        raise Rejected("BadRequest", f"A profile_id goes without overrides, and is of the type {fields['type']}.")
    identity = context.clusters.adopter.adopt(context.scope, fields, context.check_types, profile)
    return context.json({"node": _one(context, identity)})


@ROUTER.post(
    "/nodes/adopt-preview",
    dependencies=[may("nodes:adopt_preview"), since(1, 7), HEAVY],
    summary="Preview the profile of a server that would become a node",
    openapi_extra=takes(PREVIEWED),
    responses=ONE,
)
def preview_node(context: Context, body: Body) -> Response:
    """Show the future profile of the node; nothing is stored, and the server is only observed."""
    fields = bodies.read(body, PREVIEWED)
    return context.json({"node_profile": {"node_preview": context.clusters.adopter.preview(context.scope, fields)}})


@ROUTER.patch(
    "/nodes/{node_id}",
    dependencies=[may("nodes:update"), HEAVY],
    summary="Change a node",
    openapi_extra=takes(CHANGED, "node"),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def update_node(context: Context, node_id: str, body: Body) -> Response:
    ignored = ["tainted"] if context.version < WITH_TAINT else []
    fields = bodies.read(bodies.unwrapped(body, "node", changing=True), CHANGED, ignored)
    before = _one(context, node_id)
    profile = context.clusters.profile(context.scope, fields["profile_id"]) if "profile_id" in fields else None
    started = context.clusters.nodes.update(context.scope, before["id"], fields, profile, context.check_types)
    return context.json({"node": before}, 202, started.action)


@ROUTER.delete(
    "/nodes/{node_id}",
    dependencies=[may("nodes:delete"), HEAVY],
    summary="Delete a node",
    status_code=202,
    responses=accepted(),
)
def delete_node(context: Context, node_id: str, force: Force) -> Response:
    """Delete a node; with `force` also if an action on it is in progress."""
    started = context.clusters.nodes.delete(context.scope, node_id, force=force, check_types=context.check_types)
    return context.json(None, 202, started.action)


@ROUTER.get(
    "/clusters/{cluster_id}/attrs/{path:path}",
    dependencies=[may("clusters:collect"), since(1, 2)],
    summary="Collect an attribute of all nodes of a cluster",
    responses=ONE,
)
def collect_attributes(context: Context, cluster_id: str, path: str) -> Response:
    """Collect the value of a JSON path, such as `$.details.addresses`, from each node that has one."""
    attribute = attribute_path(path)
    with context.db.read() as tx:
        cluster = context.clusters.clusters.get(tx, context.scope, cluster_id)
        return context.json({"cluster_attributes": Items(_collected(context, tx, cluster.id, attribute))})


def _collected(
    context: ClusteringContext, tx: Transaction, cluster_id: str, attribute: AttributePath
) -> Iterator[dict[str, Any]]:
    """Yield id and value of the nodes of a cluster that have the attribute, read in chunks of `COLLECTED`."""
    members_page: Page | None = Page(None, {"cluster_id": [cluster_id]}, (Order("number"),), limit=COLLECTED)
    while members_page is not None:
        rows = listing.page(tx, NodeRow, members_page, living.is_living_node())
        details = node_views.details(tx, rows) if attribute.needs_details else {}
        for node in shown(context, tx, rows):
            has_value, value = attribute.first({**node, "details": details.get(node["id"], {})} if details else node)
            if has_value:
                yield {"id": node["id"], "value": value}
        members_page = replace(members_page, marker=rows[-1].id) if len(rows) == COLLECTED else None
