"""Routes that export and abandon stacks, for another service to adopt."""

from functools import partial

from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, StackId, StackName
from homeostat.api.http.responses import Json, json_stream
from homeostat.api.orchestration.models.stacks import Exported
from homeostat.api.orchestration.routes import STACK, answers, router

ROUTER = router("stacks")
EXPORT_FIRST = "export it, which has no limit, and delete it by a template whose resources have the policy Retain"
"""Remedy for a stack that is too large to be abandoned."""


@ROUTER.get(
    f"{STACK}/export",
    summary="Export a stack as a document",
    responses=answers(Exported),
    dependencies=[may("stacks:export")],
)
def export_stack(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """Return all data that another service needs to adopt the stack, secrets included. Nothing changes.

    Each part of the document is sent as soon as it is read. A document without an end was cut off.
    """
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    return json_stream(context.service.transfer.export(stack_id))


@ROUTER.delete(
    f"{STACK}/abandon",
    summary="Abandon a stack",
    responses=answers(Exported, "The document; the stack is being abandoned."),
    dependencies=[may("stacks:abandon")],
)
def abandon_stack(context: Context, stack_name: StackName, stack_id: StackId) -> Response:
    """Stop managing the stack and leave all its things in place. The response is the only copy of the document."""
    with context.db.read() as tx:
        context.live_stack(tx, stack_name, stack_id)
    answer: Response = context.service.transfer.abandon(stack_id, partial(Json, remedy=EXPORT_FIRST))
    return answer
