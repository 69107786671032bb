"""Routes that mark resources unhealthy (MU): a single one as in Heat, or many at once, which Heat cannot."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.bodies import Read
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.resources import Mark, Marked, MarkedResource, Marking
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.services.marks import MarkOutcome, MarkRequest, Marks

ROUTER = router("resources")
GUARD = [may("resource:mark_unhealthy")]


@ROUTER.patch(
    f"{STACK}/resources/{{resource_name}}",
    summary="Mark a resource unhealthy",
    responses=answers(Any, "Marked, or as it was.") | documented(409),
    dependencies=GUARD,
)
def mark(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: Read[Mark]
) -> Response:
    """Mark a resource unhealthy or healthy, by its name or physical id.

    `true` makes the resource CHECK_FAILED. It is replaced at once if its convergence is on, otherwise by the next
    update. `false` turns CHECK_FAILED into CHECK_COMPLETE. The response is 409 while an action on the resource is in
    progress.
    """
    request = MarkRequest(body.mark_unhealthy, body.resource_status_reason or "", _by(context))
    _mark(context, stack_name, stack_id, request, {"": resource_name})
    return Json(None)


@ROUTER.patch(
    f"{STACK}/resources",
    summary="Mark several resources unhealthy",
    responses=answers(Marked) | documented(409),
    dependencies=GUARD,
)
def mark_several(context: Context, stack_name: StackName, stack_id: StackId, body: Read[Marking]) -> Response:
    """Mark all of these resources unhealthy or healthy. If one is invalid, none is marked; errors name its place.

    Name a resource of a nested stack by a path such as `group/0/server`. Heat has no such route, nor reporter and
    expiry.
    """
    request = MarkRequest(
        body.mark_unhealthy, body.resource_status_reason or "", _by(context), body.reporter or None, body.expires_in
    )
    targets = {f"resources[{number}]": target for number, target in enumerate(body.resources)}
    outcomes = _mark(context, stack_name, stack_id, request, targets)
    return Json({"resources": [_shown(outcome) for outcome in outcomes]})


def _mark(
    context: RequestContext, stack_name: str, stack_id: str, request: MarkRequest, targets: Mapping[str, str]
) -> list[MarkOutcome]:
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    return Marks(context.db).mark(stack_id, request, targets)


def _by(context: RequestContext) -> str | None:
    return context.caller.user_id or context.caller.user


def _shown(outcome: MarkOutcome) -> MarkedResource:
    return {
        "resource": outcome.target,
        "path": list(outcome.path),
        "resource_status": outcome.state,
        "changed": outcome.changed,
    }
