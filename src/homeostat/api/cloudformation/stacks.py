"""Actions on stacks and templates."""

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from homeostat.api.cloudformation.context import Action, ActionContext, arn_of
from homeostat.api.cloudformation.errors import Refused
from homeostat.api.cloudformation.paging import page_of
from homeostat.api.cloudformation.responses import without_colons
from homeostat.api.http.bodies import read
from homeostat.api.orchestration import outputs
from homeostat.api.orchestration.bodies import UpdateRequest, check_name, read_request
from homeostat.api.orchestration.revision_text import shown_template, template_of
from homeostat.api.orchestration.views import is_deleted, stack_detail, stack_summary
from homeostat.model.desired import Identity
from homeostat.model.errors import Rejected
from homeostat.services.pipeline.request import StackRequest
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import views
from homeostat.templates import declared_in, parse_template, validate_shape

ROLLS_BACK = {"DO_NOTHING": False, "ROLLBACK": True, "DELETE": True}
"""Value of OnFailure -> whether a failed stack is rolled back."""
PREVIOUS = "UsePreviousTemplate"
COST_URL = "http://en.wikipedia.org/wiki/Gratis"
UNSUPPORTED = (
    "NotificationARNs",
    "ResourceTypes",
    "RoleARN",
    "RollbackConfiguration",
    "StackPolicyBody",
    "StackPolicyURL",
    "StackPolicyDuringUpdateBody",
    "StackPolicyDuringUpdateURL",
    "Tags",
    "EnableTerminationProtection",
    "RetainResources",
)
"""Unsupported parameters of AWS that would change the effect of a request; they are refused."""
NO_STACK = "None"


def list_stacks(action: ActionContext) -> Any:
    """List live stacks that are neither nested nor hidden, newest first."""

    def show(_: Transaction, row: StackRow) -> dict[str, Any]:
        summary = stack_summary(action.context, row)
        return {
            "StackId": arn_of(row),
            "StackName": row.name,
            "StackStatus": summary["stack_status"],
            "StackStatusReason": summary["stack_status_reason"],
            "CreationTime": summary["creation_time"],
            "LastUpdatedTime": summary["updated_time"],
            "DeletionTime": summary["deletion_time"],
        }

    items, following = page_of(action, partial(_page, action), show, attrgetter("id"))
    return {"StackSummaries": items, **following}


def _page(action: ActionContext, tx: Transaction, marker: str | None, limit: int) -> list[StackRow]:
    return views.stacks_page(tx, _listing(action, marker, limit))


def _listing(action: ActionContext, marker: str | None, limit: int) -> views.Listing:
    hidden = action.context.service.hidden_tags
    return views.Listing(action.context.project, hidden_tags=hidden, marker=marker, limit=limit)


def describe_stacks(action: ActionContext) -> Any:
    """Describe one stack (a deleted stack by its id or ARN), or all live stacks."""
    if action.parameters.get("StackName") is not None:
        with action.context.db.read() as tx:
            return {"Stacks": [_described(action, tx, action.stack(tx))]}
    items, following = page_of(action, partial(_page, action), partial(_described, action), attrgetter("id"))
    return {"Stacks": items, **following}


def _described(action: ActionContext, tx: Any, row: Any) -> dict[str, Any]:
    graph = action.context.service.graphs.described(tx, row)
    detail = stack_detail(action.context, tx, row, graph)
    fields = {
        "StackId": arn_of(row),
        "StackName": row.name,
        "Description": detail["description"],
        "Capabilities": [],
        "NotificationARNs": [],
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in detail["parameters"].items()],
        "CreationTime": detail["creation_time"],
        "LastUpdatedTime": detail["updated_time"],
        "DeletionTime": detail["deletion_time"],
        "StackStatus": detail["stack_status"],
        "StackStatusReason": detail["stack_status_reason"],
        "DisableRollback": detail["disable_rollback"],
        "TimeoutInMinutes": detail["timeout_mins"],
    }
    resolved = [] if is_deleted(row) else outputs.resolved(tx, row, graph)
    fields["Outputs"] = [_output(output) for output in resolved]
    return fields


def _output(output: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "OutputKey": output["output_key"],
        "Description": output["description"],
        "OutputValue": without_colons(output["output_value"]),
    }


def create_stack(action: ActionContext) -> Any:
    name = check_name(action.parameters.needed("StackName"))
    request = _request(action)
    service = action.context.service
    stack_id = service.stack_service.create(
        action.context.project, action.context.caller.user, name, request, by=action.context.caller
    )
    with action.context.db.read() as tx:
        return {"StackId": arn_of(action.stack(tx, stack_id))}


def update_stack(action: ActionContext) -> Any:
    """Replace template and parameters, except those with UsePreviousTemplate or UsePreviousValue."""
    with action.context.db.read() as tx:
        row = action.live_stack(tx)
        action.context.check_types_of(tx, row)
        declared = declared_in(template_of(action.context.service.graphs.described(tx, row)), "parameters")
    previous = {
        entry.get("ParameterKey", "")
        for entry in action.parameters.members("Parameters")
        if entry.get("UsePreviousValue", "").lower() == "true"
    }
    # As in AWS, omitted parameters take their defaults. A patch would keep their values, so they are cleared.
    patch = bool(previous) or action.parameters.flag(PREVIOUS) is True
    request = _request(
        action, without_template=action.parameters.flag(PREVIOUS) is True, cleared=declared.keys() - previous
    )
    action.context.service.stack_service.update(row.id, request, patch=patch, by=action.context.caller)
    return {"StackId": arn_of(row)}


def _request(action: ActionContext, *, without_template: bool = False, cleared: Any = ()) -> StackRequest:
    """Build the request as the Orchestration API reads it.

    Args:
        cleared: Parameters whose stored values are dropped.
    """
    parameters = action.parameters
    refused = [name for name in UNSUPPORTED if parameters.has(name)]
    if refused:
        raise Rejected("NotSupported", f"{refused[0]} is not supported: leave it out.")
    template, url = _source(action)
    has_template = template is not None or url is not None
    if without_template and has_template:
        raise Refused("InvalidParameterCombination", f"{PREVIOUS} goes without another template.")
    if not without_template and not has_template:
        raise Refused("MissingParameter", "TemplateBody or TemplateUrl is needed.")
    body = {
        "template": template,
        "template_url": url,
        "parameters": _values(action),
        "disable_rollback": _disable_rollback(action),
        "timeout_mins": parameters.get("TimeoutInMinutes"),
        "clear_parameters": sorted(cleared),
    }
    return read_request(read(UpdateRequest, body), action.context)


def _source(action: ActionContext) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return the template or its URL. Raise Rejected for text that is no template."""
    text = action.parameters.get("TemplateBody")
    url = action.parameters.get("TemplateUrl", "TemplateURL")
    if text and url:
        raise Refused("InvalidParameterCombination", "Give TemplateBody or TemplateUrl, not both.")
    return (parse_template(text) if text else None), url


def _values(action: ActionContext) -> dict[str, str]:
    """Return the values of the template's parameters. Raise Refused for incomplete items."""
    values: dict[str, str] = {}
    for entry in action.parameters.members("Parameters"):
        name = entry.get("ParameterKey")
        if not name:
            raise Refused("MissingParameter", "Each of Parameters needs a ParameterKey.")
        previous = entry.get("UsePreviousValue", "").lower() == "true"
        if previous == ("ParameterValue" in entry):
            raise Refused("InvalidParameterCombination", f"{name}: give ParameterValue or UsePreviousValue.")
        if not previous:
            values[name] = entry["ParameterValue"]
    return values


def _disable_rollback(action: ActionContext) -> bool | None:
    disabled = action.parameters.flag("DisableRollback")
    wanted = action.parameters.get("OnFailure")
    if wanted is None:
        return disabled
    if disabled is not None:
        raise Refused("InvalidParameterCombination", "Give DisableRollback or OnFailure, not both.")
    if wanted not in ROLLS_BACK:
        raise Refused("InvalidParameterValue", f"OnFailure is one of {', '.join(ROLLS_BACK)}, not {wanted!r}.")
    return not ROLLS_BACK[wanted]


def delete_stack(action: ActionContext) -> Any:
    if action.parameters.has("RetainResources"):
        raise Rejected("NotSupported", "RetainResources is not supported: give the resources a DeletionPolicy.")
    with action.context.db.read() as tx:
        row = action.live_stack(tx)
        action.context.check_types_of(tx, row)
    action.context.service.stack_service.delete(row.id, action.context.caller)
    return ""


def cancel_update(action: ActionContext) -> Any:
    """Cancel an update and roll back."""
    with action.context.db.read() as tx:
        row = action.live_stack(tx)
    action.context.service.stack_service.cancel(row.id, roll_back=True)
    return ""


def get_template(action: ActionContext) -> Any:
    with action.context.db.read() as tx:
        graph = action.context.service.graphs.described(tx, action.stack(tx))
    return {"TemplateBody": shown_template(graph)}


def validate_template(action: ActionContext) -> Any:
    """Validate a template. For an invalid template the result is the error message, as text."""
    request = _request(action)
    try:
        compiled, _ = action.context.service.stack_service.validate(
            Identity(NO_STACK, NO_STACK, action.context.project), request
        )
    except Rejected as error:
        return str(error)
    shape = validate_shape(compiled)
    return {
        "Description": shape["Description"],
        "Parameters": [_declared(name, schema) for name, schema in shape["Parameters"].items()],
    }


def _declared(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ParameterKey": name,
        "DefaultValue": schema.get("Default", ""),
        "Description": schema.get("Description", ""),
        "NoEcho": str(schema.get("NoEcho", "false")).lower(),
    }


def estimate_cost(action: ActionContext) -> Any:
    """Return a fixed URL: the service knows no prices."""
    return {"Url": COST_URL}


ACTIONS: Mapping[str, Action] = {
    "CancelUpdateStack": cancel_update,
    "CreateStack": create_stack,
    "DeleteStack": delete_stack,
    "DescribeStacks": describe_stacks,
    "EstimateTemplateCost": estimate_cost,
    "GetTemplate": get_template,
    "ListStacks": list_stacks,
    "UpdateStack": update_stack,
    "ValidateTemplate": validate_template,
}
