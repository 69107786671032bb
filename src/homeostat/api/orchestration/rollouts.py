"""Routes that show and steer rollouts to the members of groups (RU8); Heat has none."""

from collections.abc import Callable, Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.bodies import Read
from homeostat.api.http.faults import documented
from homeostat.api.http.inputs import COUNT_MAX, Body, quoted
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.inventory import Inventory
from homeostat.api.orchestration.models import rollouts as models
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import at, link
from homeostat.convergence.members.rollouts import NO_ROLLOUT, USER, RolloutEngine
from homeostat.model.errors import Rejected
from homeostat.model.rollout import Rollout, RolloutSettings, Steering, StepReport
from homeostat.planner.report.rollouts import outlook
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import rollout_reports, rollouts, stacks

ROUTER = router("rollouts")
PATH = f"{STACK}/resources/{{resource_name}}/rollout"
PAGE, PAGE_MAX = 20, 100
KEY = r"^[0-9a-zA-Z_-]{0,255}$"
"""A marker: the key of a group."""
SHOWN_MAX = 40
"""Letters of an unknown word that a refusal repeats."""
TARGETS_MAX = 20
"""Maximum number of future steps shown: a rollout in steps of one member has as many as members."""

STEER: Mapping[str, Callable[[RolloutEngine, str, str], Rollout]] = {
    Steering.PAUSE: RolloutEngine.pause,
    Steering.RESUME: RolloutEngine.resume,
    Steering.PROMOTE: RolloutEngine.promote,
    Steering.ABORT: RolloutEngine.abort,
    Steering.ROLL_BACK: RolloutEngine.roll_back,
}
"""Key of a request's body -> method of the engine. Approval has a separate route and rule."""
EXAMPLE = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "minProperties": 1, "maxProperties": 1},
                "example": {"pause": None},
            }
        },
    }
}


class RolloutsQuery(BaseModel):
    nested_depth: int = Field(0, ge=0, le=COUNT_MAX, description="Levels of nested stacks to look into, too.")
    limit: int = Field(PAGE, ge=1, le=PAGE_MAX, description="Length of a page.")
    marker: str = Field("", pattern=KEY, description="As in the link `next` of the page before.")


@ROUTER.get(
    f"{STACK}/rollouts",
    dependencies=[may("rollouts:index")],
    summary="List the rollouts of a stack",
    responses=answers(models.Rollouts),
)
def list_rollouts(
    context: Context, stack_name: StackName, stack_id: StackId, query: Annotated[RolloutsQuery, Query()]
) -> Response:
    """List the rollouts in progress. Long lists have pages: follow the link `next` until there is none."""
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        page = rollouts.in_progress(tx, top, query.nested_depth, query.marker, query.limit)
        known = {top.id: top}
        items = [
            _shown(context, tx, _stack(tx, known, rollout.stack_id), rollout, top=top, known=known) for rollout in page
        ]
    links = [link("self", f"{context.stack_url(top)}/rollouts")]
    if len(page) == query.limit:
        params = {"nested_depth": query.nested_depth, "limit": query.limit, "marker": page[-1].key}
        links.append(link("next", f"{context.stack_url(top)}/rollouts?{urlencode(params)}"))
    view: models.Rollouts = {"rollouts": items, "links": links}
    return Json(view)


@ROUTER.get(PATH, dependencies=[may("rollouts:show")], summary="Show a rollout", responses=answers(models.ShownRollout))
def show_rollout(context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName) -> Response:
    """Show the rollout of a group: its progress, the reason for waiting, and possible actions; 404 without rollout."""
    with context.db.read() as tx:
        stack = context.stack(tx, stack_name, stack_id)
        view = _shown(context, tx, stack, _rollout(context, tx, stack, resource_name))
    return Json({"rollout": view})


@ROUTER.post(
    PATH,
    dependencies=[may("rollouts:steer")],
    summary="Steer a rollout",
    responses=answers(models.ShownRollout) | documented(409),
    openapi_extra=EXAMPLE,
)
def steer_rollout(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: Body
) -> Response:
    """Steer the rollout of a group.

    The body has one key, without a value:

    - `pause`: stop the rollout where it is
    - `resume`: continue a paused or held rollout; failures so far are accepted
    - `promote`: give the new metadata or definition to all members now, regardless of gates
    - `abort`: end the rollout where it is; the stack fails
    - `roll_back`: give the old metadata or definition to all members again; the stack fails

    The response is 409 if the rollout's state does not allow the action, and for a locked stack.
    """
    steer = STEER[_verb(body)]
    return _steered(context, stack_name, stack_id, resource_name, steer)


@ROUTER.post(
    f"{PATH}/approval",
    dependencies=[may("rollouts:approve")],
    summary="Approve a step of a rollout",
    responses=answers(models.ShownRollout) | documented(409),
)
def approve_rollout(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: Read[models.Approval]
) -> Response:
    """Approve the current step of a rollout, so that the next step begins once the step's members have reported.

    The rule `rollouts:approve` authorizes this request. Send `step` to not approve a later step by mistake. The
    response is 409 if the rollout is not running or needs no approval, and for a locked stack.
    """

    def approve(driver: RolloutEngine, key: str, by: str) -> Rollout:
        return driver.approve(key, by, body.step)

    return _steered(context, stack_name, stack_id, resource_name, approve)


def _steered(
    context: RequestContext,
    stack_name: str,
    stack_id: str,
    resource_name: str,
    steer: Callable[[RolloutEngine, str, str], Rollout],
) -> Response:
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        key = _rollout(context, tx, stack, resource_name).key
    steered = steer(context.service.rollouts, key, context.caller.user or USER)
    with context.db.read() as tx:
        view = _shown(context, tx, stack, steered)
    return Json({"rollout": view})


def _rollout(context: RequestContext, tx: Transaction, stack: StackRow, name: str) -> Rollout:
    """Return the rollout of a group. Raise Rejected (EntityNotFound, NotFound)."""
    entry = Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [name]).entry(name)
    rollout = rollouts.of_group(tx, entry.row.key) if entry.row is not None else None
    if rollout is None:
        raise Rejected("NotFound", f"{name}: {NO_ROLLOUT}")
    return rollout


# -- responses ---------------------------------------------------------------------------------------------------------


def _shown(
    context: RequestContext,
    tx: Transaction,
    stack: StackRow,
    rollout: Rollout,
    *,
    top: StackRow | None = None,
    known: dict[str, StackRow] | None = None,
) -> models.Rollout:
    """Build a rollout.

    Args:
        stack: Stack of the group.
        top: The requested stack, if it may be an ancestor of `stack`.
        known: Rows of stacks that are already read, by id.
    """
    now, report = tx.now(), rollout_reports.report_of(tx, rollout)
    members = stacks.get(tx, rollout.members)
    status = outlook(rollout, now, frozen=stacks.facts(stack).frozen, reported=not report.waiting)
    url = context.stack_url(stack)
    links = [link("self", f"{url}/resources/{quoted(rollout.name)}/rollout"), link("stack", url)]
    if members is not None:
        links.append(link("nested", context.stack_url(members)))
    return {
        "stack_name": stack.name,
        "stack_id": stack.id,
        "resource_name": rollout.name,
        "path": [*_path(tx, stack, top, known or {}), rollout.name],
        "state": rollout.state,
        "pattern": rollout.settings.pattern,
        "gives": "metadata" if rollout.subject is None else rollout.settings.applies_to,
        "step": rollout.step,
        "approved_step": rollout.approved,
        "reason": rollout.reason,
        "waits_for": status.awaits,
        "released_by": status.released_by,
        "actions": list(status.steering),
        "members": _members(rollout, report, members),
        "failures": _failures(tx, rollout, report),
        "started_at": at(rollout.started_at),
        "step_at": at(rollout.step_at),
        "due_at": at(status.due_at),
        "seconds_left": None if status.due_at is None else max(0.0, round(status.due_at - now, 3)),
        "settings": _settings(tx, rollout.stack_id, rollout.settings),
        "links": links,
    }


def _path(tx: Transaction, stack: StackRow, top: StackRow | None, known: dict[str, StackRow]) -> list[str]:
    """Return the names of the resources from the stack `top` down to `stack`, nested in it."""
    names: list[str] = []
    while top is not None and stack.id != top.id and stack.parent_id is not None:
        names.insert(0, stack.parent_name or "")
        stack = _stack(tx, known, stack.parent_id)
    return names


def _stack(tx: Transaction, known: dict[str, StackRow], stack_id: str) -> StackRow:
    if stack_id not in known:
        row = stacks.get(tx, stack_id)
        assert row is not None, stack_id
        known[stack_id] = row
    return known[stack_id]


def _members(rollout: Rollout, report: StepReport, members: StackRow | None) -> models.Members:
    total = max(rollout.total if members is None else int(members.size), rollout.active)
    return {
        "total": total,
        "updated": rollout.active,
        "target": rollout.target,
        "targets_to_come": rollout.settings.targets(max(rollout.active, rollout.target), total, TARGETS_MAX),
        "step": {"succeeded": report.succeeded, "failed": report.failed, "waiting": report.waiting},
    }


def _failures(tx: Transaction, rollout: Rollout, report: StepReport) -> models.Failures:
    settings, reasons = rollout.settings, report.reasons or {}
    names = rollouts.names_of(tx, rollout.members, reasons)
    return {
        "count": report.failed_in_all,
        "accepted": rollout.forgiven,
        "max": settings.failures_max,
        "max_per_step": settings.failures_of_step_max,
        "members": [
            {"resource_name": names.get(member), "physical_resource_id": member, "reason": reason}
            for member, reason in reasons.items()
        ],
    }


def _settings(tx: Transaction, stack_id: str, settings: RolloutSettings) -> models.Settings:
    alarms = rollouts.names_of(tx, stack_id, settings.alarms)
    return {
        "applies_to": settings.applies_to,
        "steps": list(settings.steps),
        "bake_time": settings.bake_s,
        "progress_deadline": settings.time_s,
        "min_success_percent": round(settings.success_share * 100, 6),
        "on_failure": settings.on_failure,
        "approval": settings.approval,
        "order": settings.order,
        "wait_conditions": sorted(gate.condition for gate in settings.gates),
        "alarms": sorted(alarms.values()),
        "checks": len(settings.checks),
    }


# -- bodies ------------------------------------------------------------------------------------------------------------


def _verb(body: Body) -> str:
    offered = ", ".join(sorted(STEER))
    if len(body) != 1:
        raise Rejected("HTTPBadRequest", f'The body must have one key, such as {{"pause": null}}; it may be {offered}')
    verb, value = next(iter(body.items()))
    if verb == Steering.APPROVE:
        raise Rejected("HTTPBadRequest", "approve: to approve a step, send POST …/rollout/approval")
    if verb not in STEER:
        raise Rejected("HTTPBadRequest", f"{verb[:SHOWN_MAX]!r}: a rollout cannot be steered so; it may be {offered}")
    if value not in (None, {}, ""):
        raise Rejected("HTTPBadRequest", f"{verb}: it takes no value; send null")
    return verb
