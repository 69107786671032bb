"""The route for the actions of clusters, such as resizes, removals of nodes and checks."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.clustering.decisions.requests import CAPACITY, INPUTS
from homeostat.clustering.decisions.sizes import NODES_MAX, Adjustment, Direction
from homeostat.clustering.service import membership
from homeostat.clustering.service.changes import ClusterChange, StartedAction
from homeostat.clustering.service.sizing import parse_resize
from homeostat.clustering.wire import bodies
from homeostat.clustering.wire.bodies import Field, wrong
from homeostat.clustering.wire.context import HEAVY, ClusteringContext, Context
from homeostat.clustering.wire.operations import statuses_of
from homeostat.clustering.wire.routes import accepted, router, takes_one
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow

ROUTER = router("clusters")
POLICY = {"policy_id": Field(bodies.reference, required=True), "enabled": Field(bodies.boolean)}
DETACHED = {"policy_id": Field(bodies.reference, required=True)}
COMPLETED = {"lifecycle_action_token": Field(bodies.reference, required=True)}
Begin = Callable[[ClusteringContext, str, Mapping[str, Any]], StartedAction]
COUNT = {"count": Field(bodies.integer(0))}
RESIZE = {
    "adjustment_type": Field(bodies.one_of(*Adjustment)),
    "number": Field(bodies.number),
    "min_size": Field(bodies.integer(0, NODES_MAX)),
    "max_size": Field(bodies.integer(-1, NODES_MAX)),
    "min_step": Field(bodies.integer(0)),
    "strict": Field(bodies.boolean),
}
ADD_NODES = {"nodes": Field(bodies.references, required=True)}
REPLACE_NODES = {"nodes": Field(bodies.pairs, required=True)}
DEL_NODES = {"nodes": Field(bodies.references, required=True), "destroy_after_deletion": Field(bodies.boolean)}


def _resize(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, RESIZE)
    request = parse_resize(fields)
    sizing = context.clusters.sizing
    return _changed(context, identity, lambda tx, row: sizing.resize(tx, row, request))


def _scale_out(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, COUNT)
    return _scaled(context, identity, Direction.OUT, fields.get("count"))


def _scale_in(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, COUNT)
    return _scaled(context, identity, Direction.IN, fields.get("count"))


def _scaled(context: ClusteringContext, identity: str, direction: Direction, count: int | None) -> StartedAction:
    sizing = context.clusters.sizing
    return _changed(context, identity, lambda tx, row: sizing.scale(tx, row, direction, count))


def _del_nodes(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    ignored = ["destroy_after_deletion"] if context.version < (1, 4) else []
    fields = bodies.read({"nodes": [], **data}, DEL_NODES, ignored)
    sizing = context.clusters.sizing
    return _changed(
        context, identity, lambda tx, row: sizing.del_nodes(tx, row, context.scope, fields["nodes"], fields)
    )


def _add_nodes(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read({"nodes": [], **data}, ADD_NODES)
    return _changed(context, identity, lambda tx, row: membership.add_nodes(tx, row, context.scope, fields["nodes"]))


def _replace_nodes(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    context.needs((1, 3))
    fields = bodies.read({"nodes": {}, **data}, REPLACE_NODES)
    return _changed(
        context, identity, lambda tx, row: membership.replace_nodes(tx, row, context.scope, fields["nodes"])
    )


def _check(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    return context.clusters.clusters.check(context.scope, identity, data)


def _recover(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    return context.clusters.operations.recover_cluster(context.scope, identity, data, statuses_of)


def _attach(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, POLICY)
    enabled, check = fields.get("enabled", True), context.check_types
    return context.clusters.bindings.attach(context.scope, identity, fields["policy_id"], check, enabled=enabled)


def _detach(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, DETACHED)
    return context.clusters.bindings.detach(context.scope, identity, fields["policy_id"], context.check_types)


def _switch(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    fields = bodies.read(data, POLICY)
    enabled, check = fields.get("enabled"), context.check_types
    return context.clusters.bindings.switch(context.scope, identity, fields["policy_id"], check, enabled=enabled)


def _complete(context: ClusteringContext, identity: str, data: Mapping[str, Any]) -> StartedAction:
    context.needs((1, 9))
    fields = bodies.read({"lifecycle_action_token": None, **data}, COMPLETED)
    return context.clusters.hook_waits.complete(context.scope, identity, fields["lifecycle_action_token"])


def _changed(
    context: ClusteringContext, identity: str, build: Callable[[Transaction, ClusterRow], ClusterChange]
) -> StartedAction:
    return context.clusters.clusters.change(context.scope, identity, build, context.check_types)


ACTIONS: Mapping[str, Begin] = {
    "resize": _resize,
    "scale_out": _scale_out,
    "scale_in": _scale_in,
    "add_nodes": _add_nodes,
    "del_nodes": _del_nodes,
    "replace_nodes": _replace_nodes,
    "check": _check,
    "recover": _recover,
    "policy_attach": _attach,
    "policy_detach": _detach,
    "policy_update": _switch,
    "complete_lifecycle": _complete,
}


FIELDS: Mapping[str, Collection[str]] = {
    "resize": RESIZE,
    "scale_out": COUNT,
    "scale_in": COUNT,
    "add_nodes": ADD_NODES,
    "del_nodes": DEL_NODES,
    "replace_nodes": REPLACE_NODES,
    "check": (),
    "recover": (*sorted(INPUTS), CAPACITY),
    "policy_attach": POLICY,
    "policy_detach": DETACHED,
    "policy_update": POLICY,
    "complete_lifecycle": COMPLETED,
}
"""Action -> its fields."""


@ROUTER.post(
    "/clusters/{cluster_id}/actions",
    dependencies=[may("clusters:action"), HEAVY],
    summary="Perform a cluster action",
    openapi_extra=takes_one(
        {
            name: bodies.schema(fields) if isinstance(fields, Mapping) else {"type": "object"}
            for name, fields in FIELDS.items()
        }
    ),
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def act_on_cluster(context: Context, cluster_id: str, body: Body) -> Response:
    """Begin the action that is the only key of the body.

    The actions are `resize`, `scale_out`, `scale_in`, `add_nodes`, `del_nodes`, `replace_nodes`, `check`, `recover`,
    `policy_attach`, `policy_detach`, `policy_update` and `complete_lifecycle`.
    """
    if len(body) != 1:
        raise wrong("Multiple actions specified" if body else "No action specified")
    ((name, data),) = body.items()
    start = ACTIONS.get(name)
    if start is None:
        raise wrong(f"Unrecognized action '{name}' specified", f"the actions are {', '.join(sorted(ACTIONS))}")
    if not isinstance(data, Mapping):
        raise wrong("The data provided is not a map")
    started = start(context, cluster_id, data)
    return context.json({"action": started.action}, 202, started.action)
