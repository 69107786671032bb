"""Routes for profiles."""

from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.http.inputs import Body, HarmlessBody
from homeostat.api.http.responses import nothing
from homeostat.clustering.wire import bodies, views
from homeostat.clustering.wire.bodies import Field
from homeostat.clustering.wire.context import HEAVY, Context, since
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import answers, router, takes

ROUTER = router("profiles")
ONE = answers(dict[str, Any])
LIST = ListRules(
    filters={"name": None, "type": None},
    sortable={"type": "type", "name": "name", "created_at": "created_at", "updated_at": "updated_at"},
)
NEW = {
    "name": Field(bodies.name, required=True),
    "spec": Field(bodies.mapping, required=True),
    "metadata": Field(bodies.mapping),
}
CHANGED = {"name": Field(bodies.name), "metadata": Field(bodies.mapping)}
VALIDATED = {"spec": Field(bodies.mapping, required=True)}


@ROUTER.get("/profiles", dependencies=[may("profiles:index")], summary="List profiles", responses=ONE)
def list_profiles(request: Request, context: Context) -> Response:
    wanted = read_query(context, request, LIST)
    with context.db.read() as tx:
        source = ListSource(partial(context.clusters.profiles.page, tx), lambda rows: list(map(views.profile, rows)))
        return listed(context, request, "profiles", wanted, source)


@ROUTER.post(
    "/profiles",
    dependencies=[may("profiles:create"), HEAVY],
    summary="Make a profile",
    openapi_extra=takes(NEW, "profile"),
    status_code=201,
    responses=answers(dict[str, Any], code=201),
)
def create_profile(context: Context, body: Body) -> Response:
    given = bodies.read(bodies.unwrapped(body, "profile"), NEW)
    metadata = given.get("metadata", {})
    row = context.clusters.profiles.create(context.scope, given["name"], given["spec"], metadata=metadata)
    return context.json({"profile": views.profile(row)}, 201)


@ROUTER.post(
    "/profiles/validate",
    dependencies=[may("profiles:validate"), HEAVY, since(1, 2)],
    summary="Check the spec of a profile",
    openapi_extra=takes(VALIDATED, "profile"),
    responses=ONE,
)
def validate_profile(context: Context, body: HarmlessBody) -> Response:
    given = bodies.read(bodies.unwrapped(body, "profile"), VALIDATED)
    checked = context.clusters.check_profile("", given["spec"], context.project)
    return context.json({"profile": views.validated(checked, "validated_profile", context.scope.owner, metadata={})})


@ROUTER.get("/profiles/{profile_id}", dependencies=[may("profiles:get")], summary="Show a profile", responses=ONE)
def show_profile(context: Context, profile_id: str) -> Response:
    with context.db.read() as tx:
        row = context.clusters.profiles.get(tx, context.scope, profile_id)
    return context.json({"profile": views.profile(row)})


@ROUTER.patch(
    "/profiles/{profile_id}",
    dependencies=[may("profiles:update")],
    summary="Change the name or the metadata of a profile",
    openapi_extra=takes(CHANGED, "profile"),
    responses=ONE,
)
def update_profile(context: Context, profile_id: str, body: Body) -> Response:
    given = bodies.read(bodies.unwrapped(body, "profile", changing=True), CHANGED)
    row = context.clusters.profiles.update(context.scope, profile_id, given)
    return context.json({"profile": views.profile(row)})


@ROUTER.delete(
    "/profiles/{profile_id}",
    dependencies=[may("profiles:delete")],
    summary="Delete a profile",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_profile(context: Context, profile_id: str) -> Response:
    context.clusters.profiles.delete(context.scope, profile_id)
    return nothing()
