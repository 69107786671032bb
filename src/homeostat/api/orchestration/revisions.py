"""Routes for the stored revisions of a stack, to which an update can return."""

from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, StackId, StackName
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models.stacks import Revision, Revisions, ShownRevision
from homeostat.api.orchestration.revision_text import AS_YAML, environment_of, shown_template, text_or_json
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import at
from homeostat.revision_diff import text_of
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions
from homeostat.store.stacks.revisions import RevisionSummary

ROUTER = router("revisions")
NUMBER_MAX = 2**31 - 2
Number = Annotated[int, Path(description="Number of the revision; the first is 1.", ge=1, le=NUMBER_MAX)]
LISTED_MAX = 1000


@ROUTER.get(
    f"{STACK}/revisions",
    dependencies=[may("stacks:list_revisions")],
    summary="List the revisions of a stack",
    responses=answers(Revisions),
)
def list_revisions(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    limit: Annotated[int, Query(description="Maximum number of revisions.", ge=1, le=LISTED_MAX)] = 100,
    marker: Annotated[int | None, Query(description="Only revisions before this.", ge=1, le=NUMBER_MAX)] = None,
) -> Response:
    """List the revisions, newest first. `homeostat purge` removes old ones."""
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        listed = [_summary(context, stack, row) for row in revisions.page(tx, stack_id, limit, marker)]
    return Json({"revisions": listed})


@ROUTER.get(
    f"{STACK}/revisions/{{number}}",
    dependencies=[may("stacks:show_revision")],
    summary="Show a revision of a stack",
    responses=answers(ShownRevision, more=AS_YAML),
)
def show_revision(
    context: Context, stack_name: StackName, stack_id: StackId, number: Number, request: Request
) -> Response:
    """Show the template, environment and files of a revision. Values of hidden parameters are not shown.

    In YAML, the response is the text that `homeostat history` shows.
    """
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        row = revisions.get(tx, stack_id, number)
        graph = context.service.graphs.of_revision(tx, stack, number)
    view = {
        "template": shown_template(graph),
        "environment": environment_of(graph),
        "files": dict(graph.content.files),
    }
    return text_or_json(request, {"revision": _summary(context, stack, row) | view}, lambda: text_of(view))


def _summary(context: RequestContext, stack: StackRow, row: RevisionSummary) -> Revision:
    return {
        "number": row.number,
        "action": row.action,
        "creation_time": at(row.created_at),
        "requested_by": row.requested_by or None,
        "request_id": row.request_id or None,
        "empty": row.kind == "empty",
        "newest": row.number == stack.revision,
        "complete": row.number == stack.complete_revision,
    }
