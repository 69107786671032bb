"""Routes for actions on stacks and on single resources."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import may_act
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import Body
from homeostat.api.http.responses import Json
from homeostat.api.orchestration import locks
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import precisely
from homeostat.model.errors import Rejected
from homeostat.model.stack_actions import REQUESTED, STACK_ACTIONS, Effect
from homeostat.model.status import Action

ROUTER = router("actions")


def _cancel(context: RequestContext, stack_id: str) -> None:
    context.service.stack_service.cancel(stack_id, roll_back=True)


def _cancel_and_stay(context: RequestContext, stack_id: str) -> None:
    context.service.stack_service.cancel(stack_id, roll_back=False)


def _beginning(action: Action) -> Callable[[RequestContext, str], None]:
    """Return the handler of an action that leaves the desired state as it is."""

    def begin(context: RequestContext, stack_id: str) -> None:
        if STACK_ACTIONS[action].effect is Effect.READ:
            context.service.actions.begin(stack_id, action)
            return
        with context.entrusted(stack_id) as accept:
            context.service.actions.begin(stack_id, action, accept)

    return begin


def _converge(context: RequestContext, stack_id: str, resource: str | None = None) -> None:
    context.service.actions.converge(stack_id, resource)


def _observe(context: RequestContext, stack_id: str, resource: str | None = None) -> dict[str, Any]:
    return {"observe": {"asked_at": precisely(context.service.actions.observe(stack_id, resource))}}


ON_STACKS: Mapping[str, tuple[Callable[..., Any], str]] = {
    "cancel_update": (_cancel, "stop the update and roll back"),
    "cancel_without_rollback": (_cancel_and_stay, "stop the action in progress, without a rollback"),
    "converge": (_converge, "observe everything and bring it to its desired state, even if convergence is off"),
    "lock": (
        locks.lock,
        "change nothing of the stack until it is unlocked; the value may have `level` (`all` or `stacks`), `reason`, "
        "and `expires_in` (seconds) or `expires_at`",
    ),
    "observe": (_observe, "observe everything now; the response has the time from which on observations are new"),
    "unlock": (locks.unlock, STACK_ACTIONS[Action.UNLOCK].summary),
    **{action.lower(): (_beginning(action), STACK_ACTIONS[action].summary) for action in REQUESTED},
}
"""Action -> its handler, and a description for users."""
ON_RESOURCES: Mapping[str, Callable[[RequestContext, str, str], Any]] = {"converge": _converge, "observe": _observe}
DESCRIPTION = "\n".join(
    (
        "Start an action on the stack.\n\nThe body has one key, the action:\n",
        *(f"- `{name}`: {summary}" for name, (_, summary) in sorted(ON_STACKS.items())),
    )
)


def _described(example: str) -> dict[str, Any]:
    """Document the body: one key names the action; its value is read only for a lock."""
    schema = {"type": "object", "minProperties": 1, "maxProperties": 1}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}}


@ROUTER.post(
    f"{STACK}/actions",
    dependencies=[may_act("actions")],
    summary="Act on a stack",
    description=DESCRIPTION,
    responses=answers(Any, "Accepted.") | documented(409),
    openapi_extra=_described('{"check": null}'),
)
def act(context: Context, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """Start an action on the stack."""
    action = _action(body, ON_STACKS)
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        if action.upper() in STACK_ACTIONS and STACK_ACTIONS[action.upper()].checks_types:
            context.check_types_of(tx, stack)
    arguments = (body[action],) if action == "lock" else ()
    begin, _ = ON_STACKS[action]
    return Json(begin(context, stack_id, *arguments))


@ROUTER.post(
    f"{STACK}/resources/{{resource_name}}/actions",
    dependencies=[may_act("resource_actions")],
    summary="Act on a resource",
    responses=answers(Any, "Accepted."),
    openapi_extra=_described('{"observe": null}'),
)
def act_on_resource(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: Body
) -> Response:
    """Start an action on a resource. The body has one key, the action: `converge` or `observe`, as for stacks.

    Heat has no such route.
    """
    action = _action(body, ON_RESOURCES)
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        wanted = context.service.graphs.wanted(tx, stack).definitions
    return Json(ON_RESOURCES[action](context, stack_id, known(resource_name, wanted, stack_name)))


def known(resource_name: str, wanted: Mapping[str, Any], stack_name: str) -> str:
    """Return the name. Raise Rejected (EntityNotFound) if no such resource should exist."""
    if resource_name not in wanted:
        raise Rejected("EntityNotFound", f"The Resource ({resource_name}) could not be found in Stack {stack_name}.")
    return resource_name


def _action(body: Body, actions: Mapping[str, Any]) -> str:
    if not body:
        raise Rejected("HTTPBadRequest", "No action specified")
    if len(body) > 1:
        raise Rejected("HTTPBadRequest", "Multiple actions specified")
    action = next(iter(body))
    if action not in actions:
        raise Rejected("HTTPBadRequest", f"Invalid action {action} specified; it may be {', '.join(sorted(actions))}")
    return action
