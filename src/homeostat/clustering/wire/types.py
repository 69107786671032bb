"""Routes for types of profiles and of policies."""

from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.clustering.decisions.policies import POLICY_TYPES
from homeostat.clustering.decisions.profiles import PROFILE_TYPES
from homeostat.clustering.wire.context import Context, since
from homeostat.clustering.wire.routes import answers, router

ROUTER = router("types")
ANY = answers(dict[str, Any])


@ROUTER.get(
    "/profile-types", dependencies=[may("profile_types:index")], summary="List the types of profiles", responses=ANY
)
def list_profile_types(context: Context) -> Response:
    return context.json({"profile_types": PROFILE_TYPES.listed(context.version)})


@ROUTER.get(
    "/profile-types/{type_name}",
    dependencies=[may("profile_types:get")],
    summary="Show a type of profiles",
    responses=ANY,
)
def show_profile_type(context: Context, type_name: str) -> Response:
    return context.json({"profile_type": PROFILE_TYPES.shown(type_name, context.version)})


@ROUTER.get(
    "/profile-types/{type_name}/ops",
    dependencies=[may("profile_types:ops"), since(1, 4)],
    summary="List the operations on nodes of a profile type",
    responses=ANY,
)
def list_operations(context: Context, type_name: str) -> Response:
    return context.json({"operations": PROFILE_TYPES.operations(type_name)})


@ROUTER.get(
    "/policy-types", dependencies=[may("policy_types:index")], summary="List the types of policies", responses=ANY
)
def list_policy_types(context: Context) -> Response:
    return context.json({"policy_types": POLICY_TYPES.listed(context.version)})


@ROUTER.get(
    "/policy-types/{type_name}",
    dependencies=[may("policy_types:get")],
    summary="Show a type of policies",
    responses=ANY,
)
def show_policy_type(context: Context, type_name: str) -> Response:
    return context.json({"policy_type": POLICY_TYPES.shown(type_name, context.version)})
