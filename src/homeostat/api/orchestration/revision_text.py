"""Templates and environments of stored revisions, as the API shows them."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from homeostat.api.http.answer_budget import ANSWER_BYTES_MAX, too_large
from homeostat.api.http.responses import Json
from homeostat.desired.members import group_weight, shard_count
from homeostat.desired.texts import template_text
from homeostat.json_pieces import is_light
from homeostat.model.group import GroupDefinition
from homeostat.services.graphs import Graph
from homeostat.templates import environments, validate_shape

Wire = dict[str, Any]
YAML = "application/yaml"
"""Media type (RFC 9512)."""
YAML_BYTES_MAX = 8 * 1024 * 1024
"""Memory of a value to be written as YAML, which takes much longer than JSON."""
AS_YAML: dict[str, Any] = {"content": {YAML: {"schema": {"type": "string"}}}}
"""Documentation of a route that can also respond in YAML."""
EMPTY_ENVIRONMENT: Wire = {
    "parameters": {},
    "parameter_defaults": {},
    "resource_registry": {"resources": {}},
    "event_sinks": [],
    "encrypted_param_names": [],
}


def template_of(graph: Graph) -> Wire:
    """Return the template as the user gave it; for a group or chain, a generated one with all its members.

    Raises:
        Rejected: RequestLimitExceeded: the members of a group are too large to be listed.
    """
    group = graph.content.group
    if group is not None and _weight(group) > ANSWER_BYTES_MAX:
        raise too_large("ask for the template of the stack that the group is in")
    return template_text(graph.content, graph.definitions)


def _weight(group: GroupDefinition) -> int:
    weight = 0
    for number in range(shard_count(group)):
        weight += group_weight(group, number, ANSWER_BYTES_MAX, written=True)
        if weight > ANSWER_BYTES_MAX:
            break
    return weight


def shown_template(graph: Graph) -> Wire:
    """Return the template with hidden values of enclosing stacks redacted: a group's template contains such values."""
    hidden = environments.inherited(graph.content.environment)
    return dict(hidden.plain(template_of(graph))) if hidden.texts else template_of(graph)


def environment_of(graph: Graph) -> Wire:
    """Return all sections of the environment; hidden values are redacted."""
    if graph.compiled is None:
        return EMPTY_ENVIRONMENT
    view: Wire = validate_shape(graph.compiled)["Environment"]
    return {**view, "encrypted_param_names": graph.compiled.environment.get("encrypted_param_names", [])}


def text_or_json(request: Request, view: Wire, text: Callable[[], str]) -> Response:
    """Return the text to clients that accept YAML, else JSON."""
    if YAML in request.headers.get("accept", ""):
        if not is_light(view, YAML_BYTES_MAX):
            raise too_large("ask for it as JSON")
        return Response(text(), media_type=YAML, headers={"Vary": "Accept"})
    return Json(view, headers={"Vary": "Accept"})
