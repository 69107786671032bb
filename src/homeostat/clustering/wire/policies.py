"""Routes for policies."""

from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body, HarmlessBody
from homeostat.api.http.responses import nothing
from homeostat.clustering.decisions.policies import stored_policy
from homeostat.clustering.wire import bodies, views
from homeostat.clustering.wire.bodies import Field
from homeostat.clustering.wire.context import Context, since
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import answers, router, takes

ROUTER = router("policies")
ONE = answers(dict[str, Any])
LIST = ListRules(
    filters={"name": None, "type": None},
    sortable={"type": "type", "name": "name", "created_at": "created_at", "updated_at": "updated_at"},
)
NEW = {
    "name": Field(bodies.name, required=True),
    "spec": Field(bodies.mapping, required=True),
}
CHANGED = {"name": Field(bodies.name, required=True)}
VALIDATED = {"spec": Field(bodies.mapping, required=True)}


@ROUTER.get("/policies", dependencies=[may("policies:index")], summary="List policies", responses=ONE)
def list_policies(request: Request, context: Context) -> Response:
    wanted = read_query(context, request, LIST)
    with context.db.read() as tx:
        source = ListSource(partial(context.clusters.policies.page, tx), lambda rows: list(map(views.policy, rows)))
        return listed(context, request, "policies", wanted, source)


@ROUTER.post(
    "/policies",
    dependencies=[may("policies:create")],
    summary="Make a policy",
    openapi_extra=takes(NEW, "policy"),
    status_code=201,
    responses=answers(dict[str, Any], code=201),
)
def create_policy(context: Context, body: Body) -> Response:
    """Make a policy. The answer has `warnings` where something was understood that should be written differently."""
    given = bodies.read(bodies.unwrapped(body, "policy"), NEW)
    row = context.clusters.policies.create(context.scope, given["name"], given["spec"])
    return context.json({"policy": {**views.policy(row), **views.warnings(stored_policy(row.spec))}}, 201)


@ROUTER.post(
    "/policies/validate",
    dependencies=[may("policies:validate"), since(1, 2)],
    summary="Check the spec of a policy",
    openapi_extra=takes(VALIDATED, "policy"),
    responses=ONE,
)
def validate_policy(context: Context, body: HarmlessBody) -> Response:
    given = bodies.read(bodies.unwrapped(body, "policy"), VALIDATED)
    checked = context.clusters.check_policy("validated_policy", given["spec"], context.project)
    shown = views.validated(checked, "validated_policy", context.scope.owner, data={})
    return context.json({"policy": {**shown, **views.warnings(checked)}})


@ROUTER.get("/policies/{policy_id}", dependencies=[may("policies:get")], summary="Show a policy", responses=ONE)
def show_policy(context: Context, policy_id: str) -> Response:
    with context.db.read() as tx:
        row = context.clusters.policies.get(tx, context.scope, policy_id)
    return context.json({"policy": views.policy(row)})


@ROUTER.patch(
    "/policies/{policy_id}",
    dependencies=[may("policies:update")],
    summary="Change the name of a policy",
    openapi_extra=takes(CHANGED, "policy"),
    responses=ONE,
)
def update_policy(context: Context, policy_id: str, body: Body) -> Response:
    given = bodies.read(bodies.unwrapped(body, "policy", changing=True), CHANGED)
    row = context.clusters.policies.update(context.scope, policy_id, given)
    return context.json({"policy": views.policy(row)})


@ROUTER.delete(
    "/policies/{policy_id}",
    dependencies=[may("policies:delete")],
    summary="Delete a policy",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_policy(context: Context, policy_id: str) -> Response:
    context.clusters.policies.delete(context.scope, policy_id)
    return nothing()
