"""Routes for the switches of continuous convergence, per stack and per resource (CV8); Heat has none."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import Connection
from starlette.responses import Response

from homeostat.api.access.policy import may
from homeostat.api.context import Context, RequestContext, StackId, StackName
from homeostat.api.http.inputs import Body, described_body, flag
from homeostat.api.http.responses import Json
from homeostat.api.orchestration.actions import known
from homeostat.api.orchestration.models.convergence import ShownConvergence
from homeostat.api.orchestration.routes import STACK, answers, router
from homeostat.api.orchestration.views import Wire, precisely
from homeostat.model.errors import Rejected
from homeostat.model.world import HealingPolicy
from homeostat.services.actions import ConvergenceSettings
from homeostat.store.schema.rows import StackRow

ROUTER = router("convergence")
INTERVAL_MIN_S, INTERVAL_MAX_S = 1.0, 86_400.0 * 30
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
    return Json({"convergence": view})


@ROUTER.patch(
    PATH,
    dependencies=[may("stacks:switch_convergence")],
    summary="Switch continuous convergence",
    responses=answers(ShownConvergence),
    openapi_extra=described_body(ShownConvergence),
)
def switch_convergence(context: Context, stack_name: StackName, stack_id: StackId, body: Body) -> Response:
    """Change the switches of the stack and its nested stacks, and of single resources.

    Switches that the body omits keep their values. The response shows all switches.
    """
    settings = body.get("convergence")
    if not isinstance(settings, Mapping) or len(body) != 1:
        raise Rejected("HTTPBadRequest", 'The body must be {"convergence": {…}}')
    with context.db.read() as tx:
        stack = context.live_stack(tx, stack_name, stack_id)
        wanted = context.service.graphs.wanted(tx, stack).definitions
    exceptions = _resources(settings)
    for name, exception in exceptions.items():
        if exception:
            known(name, wanted, stack_name)
    here = {key: value for key, value in settings.items() if key not in ("resources", "healing_share")}
    whole = _switches(here, "convergence")
    healing = {"policy": whole.pop("healing")} if "healing" in whole else {}
    if "healing_share" in settings:
        healing["share"] = _share(settings["healing_share"])
    changed = context.service.actions.switch(stack_id, ConvergenceSettings(whole, exceptions, healing))
    with context.db.read() as tx:
        view = _shown(context, tx, changed)
    return Json({"convergence": view})


def _resources(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    resources = settings.get("resources") or {}
    if not isinstance(resources, Mapping):
        raise Rejected("HTTPBadRequest", "convergence.resources: it must be a map of names")
    return {name: _switches(switches or {}, f"convergence.resources.{name}") for name, switches in resources.items()}


def _switches(settings: Any, place: str) -> dict[str, Any]:
    """Translate the API's names into columns. Raise Rejected naming the place."""
    if not isinstance(settings, Mapping):
        raise Rejected("HTTPBadRequest", f"{place}: it must be a map, or null for what the stack has")
    columns: dict[str, Any] = {}
    for key, value in settings.items():
        if key == "enabled":
            columns["converge"] = _enabled(value, place)
        elif key == "observe_interval":
            columns["observe_s"] = _interval(value, place)
        elif key == "healing":
            columns["healing"] = _policy(value, place)
        else:
            message = f"{place}.{key}: there is no such switch; there are enabled, observe_interval and healing"
            raise Rejected("HTTPBadRequest", message)
    return columns


def _enabled(value: Any, place: str) -> bool:
    try:
        return flag(value)
    except ValueError as error:
        raise Rejected("HTTPBadRequest", f"{place}.enabled: {error}") from error


def _policy(value: Any, place: str) -> str | None:
    if value not in (*HealingPolicy, None):
        raise Rejected("HTTPBadRequest", f"{place}.healing: it must be {', '.join(HealingPolicy)} or null")
    return None if value is None else str(value)


def _share(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value <= 1):
        message = "it must be more than 0 and at most 1, or null (the service's own)"
        raise Rejected("HTTPBadRequest", f"convergence.healing_share: {message}")
    return None if value is None else float(value)


def _interval(value: Any, place: str) -> float | None:
    """Parse an interval in seconds; 0 means never, None the service's default."""
    if value is None or (value == 0 and not isinstance(value, bool)):
        return None if value is None else 0.0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not INTERVAL_MIN_S <= value <= INTERVAL_MAX_S:
        message = f"it must be 0 (never), null (the service's own), or {INTERVAL_MIN_S:g} to {INTERVAL_MAX_S:g} seconds"
        raise Rejected("HTTPBadRequest", f"{place}.observe_interval: {message}")
    return float(value)


def _shown(context: RequestContext, tx: Connection, stack: StackRow, resource: str | None = None) -> Wire:
    looked_at, blind = context.service.actions.looked_at(tx, stack, resource)
    return {
        "enabled": stack.converge,
        "observe_interval": stack.observe_s,
        "healing": (stack.healing or {}).get("policy"),
        "healing_share": (stack.healing or {}).get("share"),
        "resources": {name: _words(exception) for name, exception in sorted((stack.exceptions or {}).items())},
        "looked_at": None if looked_at is None else precisely(looked_at),
        "blind": blind or None,
    }


def _words(exception: Mapping[str, Any]) -> Wire:
    words = {"converge": "enabled", "observe_s": "observe_interval", "healing": "healing"}
    return {words[key]: value for key, value in exception.items()}
