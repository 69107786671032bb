"""Routes for actions on clusters and nodes."""

from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body
from homeostat.clustering.decisions.states import ACTION_NAMES, ActionStatus
from homeostat.clustering.store import listing
from homeostat.clustering.wire import bodies, views
from homeostat.clustering.wire.bodies import Field
from homeostat.clustering.wire.context import Context, since
from homeostat.clustering.wire.lists import ListRules, ListSource, flag_of, listed, read_query
from homeostat.clustering.wire.routes import answers, router, takes
from homeostat.store.schema.rows import ActionRow, ClusterRow

ROUTER = router("actions")
ONE = answers(dict[str, Any])
WITH_CLUSTER = (1, 14)
LIST = ListRules(
    filters={
        "name": None,
        "target": None,
        "action": sorted(ACTION_NAMES),
        "status": tuple(ActionStatus),
        "cluster_id": None,
    },
    sortable={
        "name": "name",
        "target": "target",
        "action": "action",
        "created_at": "created_at",
        "status": "status",
    },
)
CHANGED = {"status": Field(bodies.text, required=True)}


@ROUTER.get("/actions", dependencies=[may("actions:index")], summary="List actions", responses=ONE)
def list_actions(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    only = dict(page.only)
    statuses = only.pop("status", None)
    names = only.pop("cluster_id", None)
    with context.db.read() as tx:
        if names is not None and context.version >= WITH_CLUSTER:
            only["cluster_id"] = listing.ids(tx, ClusterRow, page.project, names)
        source = ListSource(
            partial(listing.page, tx, ActionRow),
            lambda rows: [views.action(tx, row, cluster=context.version >= WITH_CLUSTER) for row in rows],
            # The stored status of an action that has just ended may still be RUNNING.
            lambda action: not statuses or action["status"] in statuses,
        )
        return listed(context, request, "actions", replace(page, only=only), source)


@ROUTER.get("/actions/{action_id}", dependencies=[may("actions:get")], summary="Show an action", responses=ONE)
def show_action(context: Context, action_id: str) -> Response:
    with context.db.read() as tx:
        row = listing.get(tx, ActionRow, context.scope.reach, action_id)
        action = views.action(tx, row, cluster=context.version >= WITH_CLUSTER)
    return context.json({"action": action})


@ROUTER.patch(
    "/actions/{action_id}",
    dependencies=[may("actions:update"), since(1, 12)],
    summary="Cancel an action",
    openapi_extra=takes(CHANGED, "action"),
    status_code=202,
    responses=answers(None, "Accepted.", 202),
)
def update_action(request: Request, context: Context, action_id: str, body: Body) -> Response:
    """Cancel an action in progress: the only allowed status is CANCELLED.

    Finished parts stay. With `force=true` the action is CANCELLED at once, otherwise when its stack has stopped.
    """
    fields = bodies.read(bodies.unwrapped(body, "action", changing=True), CHANGED)
    if fields["status"] != ActionStatus.CANCELLED:
        raise bodies.wrong(f"Unknown status {fields['status']} for action {action_id}.", "there is CANCELLED")
    force = flag_of(request.query_params.get("force"), "force")
    context.clusters.actions.cancel(context.scope, action_id, force=force)
    return Response(status_code=202)
