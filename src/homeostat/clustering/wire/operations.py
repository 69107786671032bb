"""Routes for operations, checks and recoveries of nodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.clustering.service.changes import StartedAction
from homeostat.clustering.store import node_views
from homeostat.clustering.wire.bodies import wrong
from homeostat.clustering.wire.context import ClusteringContext, Context, since
from homeostat.clustering.wire.routes import accepted, router, takes_one
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import NodeRow

ROUTER = router("nodes")
NodeBegin = Callable[[ClusteringContext, str, Mapping[str, Any]], StartedAction]


def _check(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    return context.clusters.operations.check_node(context.scope, identity, data)


def _recover(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    return context.clusters.operations.recover_node(context.scope, identity, data)


NODE_ACTIONS: Mapping[str, NodeBegin] = {"check": _check, "recover": _recover}


def statuses_of(tx: Transaction, rows: Sequence[NodeRow]) -> dict[str, str]:
    """Return the statuses of nodes, by their ids."""
    return {node["id"]: node["status"] for node in node_views.nodes(tx, rows, {}, tainted=False)}


def single(body: Mapping[str, Any], noun: str, end: str = "") -> tuple[str, Any]:
    """Return the only key of a body, and its value; error messages end with `end`.

    Raises:
        Rejected: BadRequest.
    """
    if len(body) != 1:
        raise wrong((f"Multiple {noun}s specified" if body else f"No {noun} specified") + end)
    ((name, data),) = body.items()
    return name, data


@ROUTER.post(
    "/nodes/{node_id}/actions",
    dependencies=[may("nodes:action")],
    summary="Check or recover a node",
    openapi_extra=takes_one({name: {"type": "object"} for name in NODE_ACTIONS}),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def act_on_node(context: Context, node_id: str, body: Body) -> Response:
    """Begin the action that is the only key of the body: `check` or `recover`.

    A recovery takes `operation` (REBOOT, REBUILD or RECREATE, which is the default), `operation_params`, `check` (do
    nothing if the node is well), `delete_timeout` and `force_recreate`.
    """
    name, data = single(body, "action", ".")
    start = NODE_ACTIONS.get(name)
    if start is None:
        raise wrong(f"Unrecognized action '{name}' specified", f"the actions are {', '.join(sorted(NODE_ACTIONS))}")
    if not isinstance(data, Mapping):
        raise wrong("The params provided is not a map.")
    started = start(context, node_id, data)
    return context.json({"action": started.action}, 202, started.action)


@ROUTER.post(
    "/nodes/{node_id}/ops",
    dependencies=[may("nodes:operation"), since(1, 4)],
    summary="Perform an operation on a node",
    openapi_extra=takes_one({}),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def operate_node(context: Context, node_id: str, body: Body) -> Response:
    """Begin the operation that the only key of the body names, as in `{"reboot": {"type": "HARD"}}`."""
    name, parameters = single(body, "operation", ".")
    started = context.clusters.operations.operate_node(context.scope, node_id, name, parameters)
    return context.json({"action": started.action}, 202, started.action)


@ROUTER.post(
    "/clusters/{cluster_id}/ops",
    dependencies=[may("clusters:operation"), since(1, 4)],
    summary="Perform an operation on the nodes of a cluster",
    openapi_extra=takes_one({}),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def operate_cluster(context: Context, cluster_id: str, body: Body) -> Response:
    """Begin the operation that the only key of the body names, with `params` and `filters` below it.

    The filters `name`, `profile_id`, `status` and `role` choose nodes.
    """
    name, data = single(body, "operation")
    if data is not None and not isinstance(data, Mapping):
        raise wrong("The data provided is not a map")
    started = context.clusters.operations.operate_cluster(context.scope, cluster_id, name, data or {}, statuses_of)
    return context.json({"action": started.action}, 202, started.action)
