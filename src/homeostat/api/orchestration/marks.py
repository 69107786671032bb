"""Routes that mark resources unhealthy (MU): a single one as in Heat, or many at once, which Heat cannot."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import Body, described_body
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.resources import Mark, Marked, Marking
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import Wire
from homeostat.model.errors import Rejected
from homeostat.services.marks import MarkOutcome, MarkRequest, Marks

ROUTER = router("resources")
GUARD = [may("resource:mark_unhealthy")]
FLAG, REASON = "mark_unhealthy", "resource_status_reason"
RESOURCES, REPORTER, LASTS = "resources", "reporter", "expires_in"
TARGETS_MAX = 1000
TEXT_MAX = 1000
"""Characters of a text that is written to many resources."""
LASTS_MAX_S = 86_400.0 * 365


@ROUTER.patch(
    f"{STACK}/resources/{{resource_name}}",
    summary="Mark a resource unhealthy",
    responses=answers(Any, "Marked, or as it was.") | documented(409),
    dependencies=GUARD,
    openapi_extra=described_body(Mark),
)
def mark(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: Body
) -> Response:
    """Mark a resource unhealthy or healthy, by its name or physical id.

    `true` makes the resource CHECK_FAILED. It is replaced at once if its convergence is on, otherwise by the next
    update. `false` turns CHECK_FAILED into CHECK_COMPLETE. The response is 409 while an action on the resource is in
    progress.
    """
    _only(body, FLAG, REASON)
    request = MarkRequest(_flag(body), _text(body, REASON), _by(context))
    _mark(context, stack_name, stack_id, request, {"": resource_name})
    return Json(None)


@ROUTER.patch(
    f"{STACK}/resources",
    summary="Mark several resources unhealthy",
    responses=answers(Marked) | documented(409),
    dependencies=GUARD,
    openapi_extra=described_body(Marking),
)
def mark_several(context: Context, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """Mark all of these resources unhealthy or healthy. If one is invalid, none is marked; errors name its place.

    Name a resource of a nested stack by a path such as `group/0/server`. Heat has no such route, nor reporter and
    expiry.
    """
    _only(body, FLAG, REASON, RESOURCES, REPORTER, LASTS)
    unhealthy = _flag(body)
    for name in (REPORTER, LASTS):
        if name in body and not unhealthy:
            raise Rejected("HTTPBadRequest", f"{name}: it has no meaning when a mark is removed; leave it out")
    request = MarkRequest(unhealthy, _brief(body, REASON), _by(context), _brief(body, REPORTER) or None, _lasts_s(body))
    targets = {f"{RESOURCES}[{number}]": target for number, target in enumerate(_targets(body))}
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


def _shown(outcome: MarkOutcome) -> Wire:
    return {
        "resource": outcome.target,
        "path": list(outcome.path),
        "resource_status": outcome.state,
        "changed": outcome.changed,
    }


# -- bodies ------------------------------------------------------------------------------------------------------------


def _only(body: Body, *names: str) -> None:
    unknown = sorted(body.keys() - set(names))
    if unknown:
        message = f"Unexpected parameter(s) {', '.join(unknown)}; there may be {', '.join(names)}"
        raise Rejected("HTTPBadRequest", message)


def _flag(body: Body) -> bool:
    if FLAG not in body:
        raise Rejected("HTTPBadRequest", f"The body lacks {FLAG}: true or false")
    if not isinstance(body[FLAG], bool):
        raise Rejected("HTTPBadRequest", f"{FLAG}: it must be true or false, got {body[FLAG]!r}")
    return bool(body[FLAG])


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Rejected("HTTPBadRequest", f"{name}: it must be a text")
    return value or ""


def _brief(body: Body, name: str) -> str:
    value = _text(body, name)
    if len(value) > TEXT_MAX:
        raise Rejected("HTTPBadRequest", f"{name}: it has {len(value)} characters; at most {TEXT_MAX} are kept")
    return value


def _lasts_s(body: Body) -> float | None:
    value = body.get(LASTS)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= LASTS_MAX_S:
        raise Rejected("HTTPBadRequest", f"{LASTS}: it must be a number of seconds, at most {LASTS_MAX_S:.0f}")
    return float(value)


def _targets(body: Body) -> list[str]:
    value = body.get(RESOURCES)
    if not isinstance(value, list) or not value:
        raise Rejected("HTTPBadRequest", f"{RESOURCES}: it must be a list of names, physical ids or paths")
    if len(value) > TARGETS_MAX:
        raise Rejected("RequestLimitExceeded", f"Request limit exceeded: {RESOURCES} has more than {TARGETS_MAX} items")
    for number, target in enumerate(value):
        if not isinstance(target, str) or not target:
            raise Rejected("HTTPBadRequest", f"{RESOURCES}[{number}]: it must be a name, a physical id or a path")
    return value
