"""Routes that explain why stacks and resources are not at rest, their progress, and the time left. Stores nothing."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.inputs import COUNT_MAX
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.inventory import Inventory
from homeostat.api.orchestration.models import explanations as models
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import at, is_deleted, link, stack_identity
from homeostat.model.errors import Rejected
from homeostat.model.status import joined
from homeostat.model.waiting import Waiting
from homeostat.planner.report.estimate import Chain
from homeostat.planner.report.explain import LAST
from homeostat.resources.registry import shown_id
from homeostat.services.explainer import FIRST_RANK, Cause, ExplainedResource, Explainer, Page, Place, StackProgress
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks.progress import Unseen

ROUTER = router("explanations")
PAGE, PAGE_MAX = 100, 1000
BLOCKS_MAX = 20
RANKS = [str(rank) for rank in range(FIRST_RANK, LAST + 1)]

Depth = Annotated[int, Query(ge=0, le=COUNT_MAX, description="Levels of nested stacks to explain, too.")]


class ExplainQuery(BaseModel):
    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks to explain and count, too.")
    limit: int = Field(PAGE, ge=1, le=PAGE_MAX, description="Length of a page; it may be shorter, even empty.")
    marker: str | None = Field(None, description="As in the link `next` of the page before.")


@ROUTER.get(
    f"{STACK}/explain",
    dependencies=[may("stacks:explain")],
    summary="Explain why a stack is not at rest",
    responses=answers(models.ExplainedStack),
)
def explain_stack(
    context: Context, stack_name: StackName, stack_id: StackId, query: Annotated[ExplainQuery, Query()]
) -> Response:
    """Explain why resources are not at rest, causes first. Report the stack's progress and estimate the time left.

    Large stacks are explained in pages: follow the link `next` until there is none.
    """
    after = _place(query.marker)
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        action = _explaining(context, tx)
        page = Page((), None) if is_deleted(stack) else action.page(stack, query.limit, after, query.nested_depth)
        progress = action.progress_of(
            stack, len(context.service.graphs.wanted(tx, stack).definitions), query.nested_depth
        )
    return Json({"explanation": _stack(context, stack, query, page, progress)})


@ROUTER.get(
    f"{STACK}/resources/{{resource_name}}/explain",
    dependencies=[may("resource:explain")],
    summary="Explain why a resource is not at rest",
    responses=answers(models.ExplainedResource),
)
def explain_resource(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, nested_depth: Depth = 0
) -> Response:
    """Explain a resource and its leftovers; with a depth, also the resources of its nested stack that it waits for."""
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        inventory = Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [resource_name])
        view = inventory.wire(context, inventory.entry(resource_name))
        explained = _explaining(context, tx).of_resource(stack, resource_name, nested_depth)
    reasons = [_reason(context, item) for item in explained]
    return Json({"explanation": {"at_rest": not reasons, "resource": view, "reasons": reasons}})


def _explaining(context: RequestContext, tx: Transaction) -> Explainer:
    quotas = context.service.stack_service.quotas
    return Explainer(tx, context.service.definitions, tx.now(), quotas.heal_share, quotas.timeout_s)


def _stack(
    context: RequestContext, stack: StackRow, query: ExplainQuery, page: Page, progress: StackProgress
) -> models.Explanation:
    view = stack_identity(context, stack)
    if page.after is not None:
        params = {"nested_depth": query.nested_depth, "limit": query.limit, "marker": _marker(page.after)}
        view["links"].append(link("next", f"{context.stack_url(stack)}/explain?{urlencode(params)}"))
    return {
        **view,
        "stack_name": stack.name,
        "stack_status": joined(stack.action, stack.status),
        "stack_status_reason": stack.reason,
        "begun_at": at(stack.updated_at or stack.created_at),
        "deadline": at(stack.deadline),
        "waiting": _waiting(page.waiting),
        "unseen": _unseen(progress.unseen),
        "progress": {"planned": progress.planned, "done": progress.done, "stacks": progress.stacks},
        "critical_path": _path(progress.chain),
        "estimate": _estimate(progress),
        "resources": [_reason(context, item) for item in page.explanations],
    }


def _waiting(waiting: Waiting | None) -> models.StackWaiting | None:
    if waiting is None:
        return None
    return {
        "why": waiting.why,
        "reason": waiting.reason,
        "due_at": at(waiting.due_at),
        "released_by": waiting.released_by,
    }


def _unseen(unseen: Unseen | None) -> models.Unseen | None:
    return None if unseen is None else {"reason": unseen.reason, "since": at(unseen.looked_at)}


def _path(chain: Chain) -> models.CriticalPath | None:
    if not chain.links:
        return None
    return {
        "seconds": chain.seconds,
        "unknown": [{"resource_type": kind, "action": action} for kind, action in chain.unknown],
        "resources": [
            {
                "resource_name": step.explanation.name,
                "resource_type": step.explanation.shown_type,
                "action": step.action,
                "seconds": step.seconds,
            }
            for step in chain.links
        ],
    }


def _estimate(progress: StackProgress) -> models.Estimate | None:
    estimate = progress.estimate
    return None if estimate is None else {"seconds": estimate.seconds, "by": estimate.by, "rate": progress.rate}


def _reason(context: RequestContext, explained: ExplainedResource) -> models.Reason:
    explanation, stack = explained.explanation, explained.stack
    links = [
        link("self", context.url(stack.project, "stacks", stack.name, stack.id, "resources", explanation.name)),
        link("stack", context.stack_url(stack)),
    ]
    if explained.nested is not None:
        links.append(link("nested", context.stack_url(explained.nested)))
    return {
        "resource_name": explanation.name,
        "path": list(explained.path),
        "resource_type": explanation.shown_type,
        "physical_resource_id": shown_id(explanation.type, explanation.handle),
        "resource_status": joined(explanation.action, explanation.status),
        "leftover": explanation.leftover,
        "why": explanation.why,
        "reason": explanation.reason,
        "waits_for": list(explanation.on),
        "since": at(explanation.since),
        "released_by": explanation.released_by,
        "due_at": at(explanation.due_at),
        "next": explanation.next,
        "next_at": at(explanation.next_at),
        "fails_at": at(explanation.fails_at),
        "blocks": list(explanation.blocks[:BLOCKS_MAX]),
        "blocks_count": len(explanation.blocks),
        "cause": _cause(explained.cause),
        "links": links,
    }


def _cause(cause: Cause | None) -> models.Cause | None:
    if cause is None:
        return None
    explanation = cause.explanation
    path: Sequence[str] = cause.path
    return {
        "path": list(path),
        "why": explanation.why,
        "reason": explanation.reason,
        "released_by": explanation.released_by,
    }


def _marker(place: Place) -> str:
    return ":".join(str(part) for part in place)


def _place(marker: str | None) -> Place | None:
    """Parse the marker of a page. Raise Rejected for an invalid one."""
    if marker is None:
        return None
    shard, _, rest = marker.partition(":")
    rank, _, node = rest.partition(":")
    if not shard.isdecimal() or int(shard) > COUNT_MAX or rank not in RANKS:
        raise Rejected("HTTPBadRequest", f"Invalid marker {marker!r}: give that of the link `next` of a page")
    return int(shard), int(rank), node
