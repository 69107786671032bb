"""Routes for profiles and policies."""

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
from homeostat.clustering.wire.context import HEAVY, Context, since
from homeostat.clustering.wire.lists import ListRules, ListSource, listed, read_query
from homeostat.clustering.wire.routes import answers, router, takes

PROFILES = router("profiles")
POLICIES = router("policies")
ONE = answers(dict[str, Any])
LIST = ListRules(
    filters={"name": None, "type": None},
    sortable={"type": "type", "name": "name", "created_at": "created_at", "updated_at": "updated_at"},
)
VALIDATED = {"spec": Field(bodies.mapping, required=True)}
NEW_POLICY = {"name": Field(bodies.name, required=True), **VALIDATED}
CHANGED_POLICY = {"name": Field(bodies.name, required=True)}
NEW_PROFILE = {**NEW_POLICY, "metadata": Field(bodies.mapping)}
CHANGED_PROFILE = {"name": Field(bodies.name), "metadata": Field(bodies.mapping)}


@PROFILES.get("/profiles", dependencies=[may("profiles:index")], summary="List profiles", responses=ONE)
def list_profiles(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    with context.db.read() as tx:
        source = ListSource(partial(context.clusters.profiles.page, tx), lambda rows: list(map(views.profile, rows)))
        return listed(context, request, "profiles", page, source)


@POLICIES.get("/policies", dependencies=[may("policies:index")], summary="List policies", responses=ONE)
def list_policies(request: Request, context: Context) -> Response:
    page = read_query(context, request, LIST)
    with context.db.read() as tx:
        source = ListSource(partial(context.clusters.policies.page, tx), lambda rows: list(map(views.policy, rows)))
        return listed(context, request, "policies", page, source)


@PROFILES.post(
    "/profiles",
    dependencies=[may("profiles:create"), HEAVY],
    summary="Make a profile",
    openapi_extra=takes(NEW_PROFILE, "profile"),
    status_code=201,
    responses=answers(dict[str, Any], code=201),
)
def create_profile(context: Context, body: Body) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "profile"), NEW_PROFILE)
    metadata = fields.get("metadata", {})
    row = context.clusters.profiles.create(context.scope, fields["name"], fields["spec"], metadata=metadata)
    return context.json({"profile": views.profile(row)}, 201)


@PROFILES.post(
    "/profiles/validate",
    dependencies=[may("profiles:validate"), HEAVY, since(1, 2)],
    summary="Check the spec of a profile",
    openapi_extra=takes(VALIDATED, "profile"),
    responses=ONE,
)
def validate_profile(context: Context, body: HarmlessBody) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "profile"), VALIDATED)
    checked = context.clusters.check_profile("", fields["spec"], context.project)
    return context.json({"profile": views.validated(checked, "validated_profile", context.scope.owner, metadata={})})


@PROFILES.get("/profiles/{profile_id}", dependencies=[may("profiles:get")], summary="Show a profile", responses=ONE)
def show_profile(context: Context, profile_id: str) -> Response:
    with context.db.read() as tx:
        row = context.clusters.profiles.get(tx, context.scope, profile_id)
    return context.json({"profile": views.profile(row)})


@PROFILES.patch(
    "/profiles/{profile_id}",
    dependencies=[may("profiles:update")],
    summary="Change the name or the metadata of a profile",
    openapi_extra=takes(CHANGED_PROFILE, "profile"),
    responses=ONE,
)
def update_profile(context: Context, profile_id: str, body: Body) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "profile", changing=True), CHANGED_PROFILE)
    row = context.clusters.profiles.update(context.scope, profile_id, fields)
    return context.json({"profile": views.profile(row)})


@PROFILES.delete(
    "/profiles/{profile_id}",
    dependencies=[may("profiles:delete")],
    summary="Delete a profile",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_profile(context: Context, profile_id: str) -> Response:
    context.clusters.profiles.delete(context.scope, profile_id)
    return nothing()


@POLICIES.post(
    "/policies",
    dependencies=[may("policies:create")],
    summary="Make a policy",
    openapi_extra=takes(NEW_POLICY, "policy"),
    status_code=201,
    responses=answers(dict[str, Any], code=201),
)
def create_policy(context: Context, body: Body) -> Response:
    """Make a policy. The answer has `warnings` about accepted parts that should be written differently."""
    fields = bodies.read(bodies.unwrapped(body, "policy"), NEW_POLICY)
    row = context.clusters.policies.create(context.scope, fields["name"], fields["spec"])
    return context.json({"policy": {**views.policy(row), **views.warnings(stored_policy(row.spec))}}, 201)


@POLICIES.post(
    "/policies/validate",
    dependencies=[may("policies:validate"), since(1, 2)],
    summary="Check the spec of a policy",
    openapi_extra=takes(VALIDATED, "policy"),
    responses=ONE,
)
def validate_policy(context: Context, body: HarmlessBody) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "policy"), VALIDATED)
    checked = context.clusters.check_policy("validated_policy", fields["spec"], context.project)
    view = views.validated(checked, "validated_policy", context.scope.owner, data={})
    return context.json({"policy": {**view, **views.warnings(checked)}})


@POLICIES.get("/policies/{policy_id}", dependencies=[may("policies:get")], summary="Show a policy", responses=ONE)
def show_policy(context: Context, policy_id: str) -> Response:
    with context.db.read() as tx:
        row = context.clusters.policies.get(tx, context.scope, policy_id)
    return context.json({"policy": views.policy(row)})


@POLICIES.patch(
    "/policies/{policy_id}",
    dependencies=[may("policies:update")],
    summary="Change the name of a policy",
    openapi_extra=takes(CHANGED_POLICY, "policy"),
    responses=ONE,
)
def update_policy(context: Context, policy_id: str, body: Body) -> Response:
    fields = bodies.read(bodies.unwrapped(body, "policy", changing=True), CHANGED_POLICY)
    row = context.clusters.policies.update(context.scope, policy_id, fields)
    return context.json({"policy": views.policy(row)})


@POLICIES.delete(
    "/policies/{policy_id}",
    dependencies=[may("policies:delete")],
    summary="Delete a policy",
    status_code=204,
    responses=answers(None, code=204),
)
def delete_policy(context: Context, policy_id: str) -> Response:
    context.clusters.policies.delete(context.scope, policy_id)
    return nothing()
