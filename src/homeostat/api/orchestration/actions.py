"""Actions on stacks. Those that the engine cannot carry out yet are refused with a clear text."""

from typing import Any

from starlette.responses import Response

from homeostat.api.answers import Json
from homeostat.api.asking import Ask, Body, StackId, StackName
from homeostat.api.orchestration.routing import STACK, answers, router
from homeostat.model.errors import Rejected

ROUTER = router("actions")
LATER = ("check", "suspend", "resume")
CANCEL = "cancel_update"
CANCEL_AND_STAY = "cancel_without_rollback"
EXTRA = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "minProperties": 1, "maxProperties": 1},
                "example": {CANCEL: None},
            }
        },
    }
}


@ROUTER.post(f"{STACK}/actions", summary="Act on a stack", responses=answers(Any, "Accepted."), openapi_extra=EXTRA)
def act(ask: Ask, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """The body has one key: `cancel_update` (and go back), or `cancel_without_rollback` (and stay)."""
    action = _action(body)
    with ask.db.read() as tx:
        ask.live_stack(tx, stack_name, stack_id)
    ask.service.intake.cancel(stack_id, roll_back=action == CANCEL)
    return Json(None)


def _action(body: Body) -> str:
    if not body:
        raise Rejected("HTTPBadRequest", "No action specified")
    if len(body) > 1:
        raise Rejected("HTTPBadRequest", "Multiple actions specified")
    action = next(iter(body))
    if action in LATER:
        raise Rejected("NotSupported", f"The stack action {action} is not supported yet.")
    if action not in (CANCEL, CANCEL_AND_STAY):
        raise Rejected("HTTPBadRequest", f"Invalid action {action} specified")
    return action
