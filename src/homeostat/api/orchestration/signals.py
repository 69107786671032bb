"""Route for signals to resources, from users of the project and from holders of a handle's token."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from homeostat.api.access.policy import UNSET_HOOK, may_signal
from homeostat.api.context import Context, RequestContext, ResourceName, StackId, StackName
from homeostat.api.http.inputs import SignalBody
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.inventory import Inventory
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.builtin.access_keys import KeyHolder
from homeostat.builtin.inbox import refused_during
from homeostat.builtin.member_reports import own_report, report_of, takes_reports
from homeostat.model.errors import Rejected
from homeostat.model.plan import event_of
from homeostat.model.status import Action
from homeostat.model.world import Resource
from homeostat.resources.families.deployments import DEPLOYMENT
from homeostat.resources.families.scaling_policies import POLICY_KIND
from homeostat.resources.families.wait_conditions import HANDLE
from homeostat.resources.registry import kind_of
from homeostat.store import events
from homeostat.store.stacks import rollout_reports

ROUTER = router("resources")
BODY: dict[str, Any] = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}


@ROUTER.post(
    f"{STACK}/resources/{{resource_name}}/signal",
    dependencies=[may_signal()],
    summary="Signal a resource",
    responses=answers(Any, "Taken."),
    openapi_extra=BODY,
)
def signal(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName, body: SignalBody
) -> Response:
    """Send a signal to a resource. Its type determines the content of the body.

    A group of instances that waits for its members takes `{"id": …, "status": "SUCCESS" | "FAILURE", "reason": …}`.

    Signals that decide about a rollout or scale a group need the rule `resource:signal_gate`.

    `{"unset_hook": hook}` clears a hook, at which any resource may wait; the rule is `resource:clear_hook`.
    """
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        holder = context.check_stack_user(tx, stack, resource_name)
        entry = Inventory(tx, stack, context.service.graphs.wanted(tx, stack), [resource_name]).entry(resource_name)
    if body is not None and UNSET_HOOK in body:
        context.service.actions.clear_hook(stack.id, resource_name, body[UNSET_HOOK])
        return Json(None)
    rows = [row for row in (entry.row, *entry.leftovers) if row is not None]
    if not rows:
        raise Rejected("ResourceNotAvailable", f"The Resource ({resource_name}) is not available.")
    row, kind = rows[0], kind_of(rows[0].type)
    during = Action.SUSPEND if stack.suspended else row.action
    if during in (Action.SUSPEND, Action.DELETE) and kind != DEPLOYMENT:
        with context.db.write() as tx:
            event = event_of(row, action=during, reason=refused_during(during))
            events.append(tx, stack.id, [event], tx.now())
        raise Rejected("NotSupported", f"Signal resource during {during} is not supported.")
    _check_gate(context, row, kind)
    if takes_reports(row.type):
        _report(context, stack.id, row, holder, body)
    else:
        context.service.signals.native(stack.project, kind, row.handle, body)
    return Json(None)


def _check_gate(context: RequestContext, row: Resource, kind: str) -> None:
    """Check that the caller may signal a resource that acts: a rollout's handle, a group of members, a scaling policy.

    Raises:
        Rejected: Forbidden.
    """
    acts = kind == POLICY_KIND or takes_reports(row.type)
    if kind == HANDLE:
        with context.db.read() as tx:
            _, gates = rollout_reports.addressed(tx, row.handle)
        acts = bool(gates)
    if acts:
        context.check("resource:signal_gate")


def _report(
    context: RequestContext, stack_id: str, row: Resource, holder: KeyHolder | None, body: Mapping[str, Any] | None
) -> None:
    """Take the report of a member to its group. Raise Rejected."""
    report = report_of(body)
    if holder is not None:
        with context.db.read() as tx:
            report = own_report(tx, holder, stack_id, row.name, report)
    context.service.reports.take(row.key, report)
