"""Routes for the switches of continuous convergence, per stack and per resource (CV8); Heat has none."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from fastapi import Query
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, StackId, StackName
from homeostat.api.http.bodies import Read
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.actions import known
from homeostat.api.orchestration.models.convergence import (
    COLUMNS,
    Convergence,
    ShownConvergence,
    ShownSwitches,
    SwitchedConvergence,
)
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import precisely
from homeostat.services.actions import ConvergenceSettings
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow

ROUTER = router("convergence")
PATH = f"{STACK}/convergence"


@ROUTER.get(
    PATH,
    dependencies=[may("stacks:show_convergence")],
    summary="Show the settings of continuous convergence",
    responses=answers(ShownConvergence),
)
def show_convergence(
    context: Context,
    stack_name: StackName,
    stack_id: StackId,
    resource: Annotated[str | None, Query(description="Give `looked_at` and `blind` for this resource alone.")] = None,
) -> Response:
    with context.db.read() as tx:
        view = _shown(context, tx, context.live_stack(tx, stack_name, stack_id), resource)
    return Json(view)


@ROUTER.patch(
    PATH,
    dependencies=[may("stacks:switch_convergence")],
    summary="Switch continuous convergence",
    responses=answers(ShownConvergence),
)
def switch_convergence(
    context: Context, stack_name: StackName, stack_id: StackId, body: Read[SwitchedConvergence]
) -> Response:
    """Change the switches of the stack and its nested stacks, and of single resources.

    Switches that the body omits keep their values. The response shows all switches.
    """
    settings = body.convergence
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        wanted = context.service.graphs.wanted(tx, stack).definitions
    exceptions = {
        name: switches.columns() if switches is not None else {}
        for name, switches in (settings.resources or {}).items()
    }
    for name, exception in exceptions.items():
        if exception:
            known(name, wanted, stack_name)
    whole = settings.columns()
    healing = {"policy": whole.pop("healing")} if "healing" in whole else {}
    if "healing_share" in settings.model_fields_set:
        healing["share"] = settings.healing_share
    changed = context.service.actions.switch(stack_id, ConvergenceSettings(whole, exceptions, healing))
    with context.db.read() as tx:
        view = _shown(context, tx, changed)
    return Json(view)


def _shown(context: RequestContext, tx: Transaction, stack: StackRow, resource: str | None = None) -> ShownConvergence:
    looked_at, blind = context.service.actions.looked_at(tx, stack, resource)
    view: Convergence = {
        "enabled": stack.converge,
        "observe_interval": stack.observe_s,
        "healing": (stack.healing or {}).get("policy"),
        "healing_share": (stack.healing or {}).get("share"),
        "resources": {name: _words(exception) for name, exception in sorted((stack.exceptions or {}).items())},
        "looked_at": None if looked_at is None else precisely(looked_at),
        "blind": blind or None,
    }
    return {"convergence": view}


def _words(exception: Mapping[str, Any]) -> ShownSwitches:
    return cast(ShownSwitches, {name: exception[column] for name, column in COLUMNS.items() if column in exception})
