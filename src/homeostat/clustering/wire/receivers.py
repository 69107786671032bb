"""Routes for receivers, and the webhooks that trigger them."""

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Service, heavy_place
from homeostat.api.http.fair_places import sharers_of
from homeostat.api.http.heavy_requests import ClientWatch
from homeostat.api.http.inputs import Body, SignalBody
from homeostat.api.http.responses import nothing
from homeostat.clustering.decisions.states import ClusterAction, webhook_action_name
from homeostat.clustering.service.message_receivers import parse_message
from homeostat.clustering.store import listing
from homeostat.clustering.store.node_views import Wire
from homeostat.clustering.wire import bodies, views
from homeostat.clustering.wire.bodies import Field, wrong
from homeostat.clustering.wire.cluster_actions import ACTIONS, FIELDS
from homeostat.clustering.wire.context import HEAVY, ClusteringContext, Context, base_of, version_of
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import accepted, answers, router, takes
from homeostat.model.caller import Caller
from homeostat.model.errors import Rejected
from homeostat.store.schema.rows import ClusterRow, ReceiverRow

LOG = logging.getLogger(__name__)
ROUTER = router("receivers")
WEBHOOKS = router("receivers")
"""Routes that need no authentication: knowledge of the URL is the authorization."""
ONE = answers(dict[str, Any])
BEGUN = {
    ClusterAction.RESIZE: "resize",
    ClusterAction.SCALE_OUT: "scale_out",
    ClusterAction.SCALE_IN: "scale_in",
    ClusterAction.ADD_NODES: "add_nodes",
    ClusterAction.DEL_NODES: "del_nodes",
    ClusterAction.REPLACE_NODES: "replace_nodes",
    ClusterAction.CHECK: "check",
    ClusterAction.RECOVER: "recover",
    ClusterAction.ATTACH_POLICY: "policy_attach",
    ClusterAction.DETACH_POLICY: "policy_detach",
    ClusterAction.UPDATE_POLICY: "policy_update",
}
"""Action that a receiver may start -> its name in the route for actions of clusters."""
WITH_USER = (1, 4)
PLAIN: tuple[int, int] = (1, 10)
"""Microversion from which the body of a trigger is the inputs themselves, also at URLs with `V=1`."""
LIST = ListRules(
    filters={"name": None, "type": ("webhook", "message"), "cluster_id": None, "action": sorted(BEGUN), "user": None},
    sortable={
        "name": "name",
        "type": "type",
        "action": "action",
        "cluster_id": "cluster_id",
        "created_at": "created_at",
        "user": "user",
    },
    default=("name",),
)
NEW = {
    "name": Field(bodies.name, required=True),
    "type": Field(bodies.one_of("webhook", "message"), required=True),
    "cluster_id": Field(bodies.reference),
    "action": Field(bodies.one_of(ClusterAction.CREATE, *BEGUN)),
    "params": Field(bodies.mapping),
    "actor": Field(bodies.mapping),
}
CHANGED = {
    "name": Field(bodies.name),
    "action": Field(bodies.one_of(*BEGUN)),
    "params": Field(bodies.mapping),
}


@ROUTER.get("/receivers", dependencies=[may("receivers:index")], summary="List receivers", responses=ONE)
def list_receivers(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    only = dict(page.only)
    if context.version < WITH_USER:
        only.pop("user", None)
    with context.db.read() as tx:
        if "cluster_id" in only:
            only["cluster_id"] = listing.ids(tx, ClusterRow, page.project, only["cluster_id"])
        source = ListSource(
            partial(context.clusters.receivers.page, tx),
            lambda rows: [_shown(context, row) for row in rows],
        )
        return listed(context, request, "receivers", replace(page, only=only), source)


def _shown(context: ClusteringContext, row: ReceiverRow) -> Wire:
    acts = context.service.policy.allows("receivers:notify", context.caller, context.project)
    return views.receiver(row, context.base, acts=acts)


@ROUTER.post(
    "/receivers",
    dependencies=[may("receivers:create"), HEAVY],
    summary="Make a receiver",
    openapi_extra=takes(NEW, "receiver"),
    status_code=201,
    responses=answers(dict[str, Any], code=201),
)
def create_receiver(context: Context, body: Body) -> Response:
    """Make a receiver. Clients that know its URL may start its action without authentication."""
    fields = bodies.read(bodies.unwrapped(body, "receiver"), NEW)
    if fields["type"] == "message":
        columns = {name: fields.get(name, {}) for name in ("actor", "params")}
        messages = context.clusters.receivers.messages
        row = messages.create(context.scope, fields["name"], columns, context.base, context.check_types)
        return context.json({"receiver": _shown(context, row)}, 201)
    for name, noun in (("cluster_id", "Cluster identity"), ("action", "Action name")):
        if name not in fields:
            raise wrong(f"{noun} is required for creating webhook receiver.")
    if fields["action"] == ClusterAction.CREATE:
        raise wrong(f"Action name cannot be any of ['{ClusterAction.CREATE}'].")
    row = context.clusters.receivers.create(
        context.scope,
        fields["name"],
        fields["cluster_id"],
        fields["action"],
        fields.get("params", {}),
        fields.get("actor", {}),
    )
    return context.json({"receiver": _shown(context, row)}, 201)


@ROUTER.post(
    "/receivers/{receiver_id}/notify",
    dependencies=[may("receivers:notify"), HEAVY],
    summary="Start the action that a message requests",
    status_code=204,
    responses=answers(None, code=204),
)
def notify(context: Context, receiver_id: str, body: SignalBody) -> Response:
    """Start the action that a message requests: `{"cluster", "action", "params"}`. Zaqar calls this, as the owner.

    A message that cannot be carried out is logged and dropped.
    """
    with context.db.read() as tx:
        row = context.clusters.receivers.get(tx, context.scope, receiver_id)
    if row.type != "message":
        raise wrong("Notifying non-message receiver is not allowed.")
    is_owner = context.scope.owner["user"] == row.user
    if not (is_owner or context.caller.is_admin or context.caller.is_anybody):
        raise Rejected("Forbidden", "You are not authorized to complete this operation.")
    requested = parse_message(body)
    if requested is None or requested.action not in BEGUN:
        LOG.warning("receiver %s got a message that names no cluster and action: it is ignored", row.id)
        return nothing()
    action = BEGUN[ClusterAction(requested.action)]
    inputs = {key: value for key, value in {**row.params, **requested.params}.items() if key in FIELDS[action]}
    name = f"receiver_{row.id[:8]}_{requested.cluster[:8]}"
    try:
        ACTIONS[action](replace(context, action_name=name), requested.cluster, inputs)
    except Rejected as error:
        LOG.warning("receiver %s got a message that cannot be carried out: %s", row.id, error)
    return nothing()


@ROUTER.get("/receivers/{receiver_id}", dependencies=[may("receivers:get")], summary="Show a receiver", responses=ONE)
def show_receiver(context: Context, receiver_id: str) -> Response:
    with context.db.read() as tx:
        row = context.clusters.receivers.get(tx, context.scope, receiver_id)
    return context.json({"receiver": _shown(context, row)})


@ROUTER.patch(
    "/receivers/{receiver_id}",
    dependencies=[may("receivers:update")],
    summary="Change a receiver",
    openapi_extra=takes(CHANGED, "receiver"),
    responses=ONE,
)
def update_receiver(context: Context, receiver_id: str, body: Body) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "receiver", changing=True), CHANGED)
    row = context.clusters.receivers.update(context.scope, receiver_id, fields)
    return context.json({"receiver": _shown(context, row)})


@ROUTER.delete(
    "/receivers/{receiver_id}",
    dependencies=[may("receivers:delete")],
    summary="Delete a receiver",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_receiver(context: Context, receiver_id: str) -> Response:
    context.clusters.receivers.delete(context.scope, receiver_id)
    return nothing()


def _known(request: Request, receiver_id: str) -> ReceiverRow:
    service: Service = request.app.state.service
    return service.clustering.receivers.known(receiver_id)


Known = Annotated[ReceiverRow, Depends(_known)]


async def _placed(request: Request, receiver: Known) -> AsyncIterator[None]:
    """Hold a place for the project of a receiver, as `HEAVY` does for the project of a caller."""
    async with heavy_place(request, sharers_of(receiver.project, receiver.user), ClientWatch()):
        yield


@WEBHOOKS.post(
    "/webhooks/{receiver_id}/trigger",
    dependencies=[Depends(_placed, scope="function")],
    summary="Start the action of a receiver, by its URL",
    status_code=202,
    responses=accepted(dict[str, Any]),
)
def trigger(
    request: Request, receiver: Known, body: SignalBody, form: Annotated[str | None, Query(alias="V")] = None
) -> Response:
    """Start the action of a receiver on behalf of its owner.

    Inputs in the request override those of the receiver. Unknown inputs are ignored: alarms send many more fields.
    """
    if form not in ("1", "2"):
        raise wrong("The version of the address is missing: use the alarm_url of the receiver as it is (V=2).")
    if receiver.action is None or receiver.cluster_id is None:
        raise wrong("A receiver of type message has no such address: send its messages to its queue.")
    version = version_of(request)
    inputs: Any = (body or {}).get("params") or {} if form == "1" and version < PLAIN else body or {}
    if not isinstance(inputs, Mapping):
        raise wrong("The params have to be a map.")
    owner, project = receiver.user, receiver.project
    caller = Caller(user=owner, project=project, user_id=owner, domain=receiver.domain)
    service, name = request.app.state.service, webhook_action_name(receiver.id)
    context = ClusteringContext(service, caller, project, base_of(request), version, name)
    action = BEGUN[ClusterAction(receiver.action)]
    accepted_inputs = {key: value for key, value in {**receiver.params, **inputs}.items() if key in FIELDS[action]}
    started = ACTIONS[action](context, receiver.cluster_id, accepted_inputs)
    return context.json({"action": started.action}, 202, started.action)
