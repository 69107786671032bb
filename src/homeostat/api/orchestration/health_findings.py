"""Routes that show the findings of health policies, and approve recoveries (ADR 0072); Heat has none."""

from typing import Annotated, cast
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, ResourceName, StackId, StackName
from homeostat.api.http.faults import documented
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.models import health as models
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import link
from homeostat.clustering.decisions.policies import stored_health_policy
from homeostat.model.errors import Rejected
from homeostat.model.hosts import to_lift
from homeostat.model.node_health import Finding
from homeostat.model.status import joined
from homeostat.planner.policies.reported import with_report
from homeostat.planner.report.health import described, timestamp
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import member_health

ROUTER = router("health")
PAGE, PAGE_MAX = 100, 1000
KEY = r"^[0-9a-zA-Z_-]{0,255}$"
"""A marker: the key of a resource."""


class HealthQuery(BaseModel):
    finding: Finding | None = Field(None, description="Only resources with this finding.")
    limit: int = Field(PAGE, ge=1, le=PAGE_MAX, description="Length of a page.")
    marker: str = Field("", pattern=KEY, description="As in the link `next` of the page before.")


@ROUTER.get(
    f"{STACK}/health",
    dependencies=[may("health:index")],
    summary="List the findings of health policies",
    responses=answers(models.StackHealth),
)
def list_health(
    context: Context, stack_name: StackName, stack_id: StackId, query: Annotated[HealthQuery, Query()]
) -> Response:
    """List the resources of the stack and of its groups to which a health policy applies, with all evidence.

    The response also summarizes the policies that apply now, and lists the hosts that were declared down to cut off a
    member, with the evidence. A host is listed until a look finds that it is no longer declared down.

    Long lists have pages: follow the link `next` until there is none.
    """
    with context.db.read() as tx:
        top = context.stack(tx, stack_name, stack_id)
        members = member_health.listed(tx, top, query.finding, query.marker, query.limit)
        now = tx.now()
        holding = [_policy(policy, top) for policy in member_health.policies(tx, top)]
        declared = [_host(host, top) for host in member_health.declared_hosts(tx, top)]
    items = [
        cast(
            models.MemberHealth,
            {
                "stack_name": member.stack_name,
                "stack_id": member.stack_id,
                "resource_name": member.name,
                "path": _path(member, top),
                "physical_resource_id": member.handle,
                "resource_status": joined(member.action, member.status),
                **described(node, member.marks),
            },
        )
        for member in members
        for node in [with_report(member.health, member.marks, now)]
        if query.finding in (None, node.finding)
    ]
    links = [link("self", f"{context.stack_url(top)}/health")]
    if len(members) == query.limit:
        params = {"limit": query.limit, "marker": members[-1].key}
        if query.finding is not None:
            params["finding"] = query.finding.value
        links.append(link("next", f"{context.stack_url(top)}/health?{urlencode(params)}"))
    view: models.StackHealth = {"health": items, "policies": holding, "hosts": declared, "links": links}
    return Json(view)


def _path(
    row: member_health.JudgedMember | member_health.DeclaredHost | member_health.StoredPolicy, top: StackRow
) -> list[str]:
    return [row.name] if row.stack_id == top.id else [row.parent_name or "", row.name]


def _host(row: member_health.DeclaredHost, top: StackRow) -> models.DeclaredHost:
    return {
        "host": row.host,
        "since": timestamp(row.at),
        "path": _path(row, top),
        "reason": row.reason,
        "released_by": to_lift(row.host),
    }


def _policy(row: member_health.StoredPolicy, top: StackRow) -> models.HoldingPolicy:
    policy = stored_health_policy(row.spec)
    return {
        "path": [] if row.stack_id == top.parent_id else _path(row, top),
        "members": row.members,
        "mode": policy.mode,
        "interval": policy.interval_s,
        "detection": [detection.type for detection in policy.detections],
        "actions": [action.name for action in policy.actions],
        "fencing": list(policy.fencing),
        "max_unhealthy": policy.max_unhealthy or None,
        "max_per_hour": policy.per_hour or None,
    }


@ROUTER.post(
    f"{STACK}/resources/{{resource_name}}/recovery",
    dependencies=[may("health:approve")],
    summary="Approve the recovery of a resource",
    status_code=202,
    responses=documented(409),
)
def approve_recovery(
    context: Context, stack_name: StackName, stack_id: StackId, resource_name: ResourceName
) -> Response:
    """Start the recovery of an unhealthy resource that its policy only proposes, or that is held back.

    The rule `health:approve` authorizes this request. The response is 409 if the resource is not unhealthy.
    """
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        finding = member_health.finding_of(tx, stack.id, resource_name, tx.now())
    if finding != Finding.UNHEALTHY:
        problem = f"it is {finding}" if finding is not None else "no health policy holds for it"
        raise Rejected("Conflict", f"{resource_name}: there is nothing to recover: {problem}")
    context.service.actions.converge(stack.id, resource_name)
    return Response(status_code=202)
