"""Templates and environments of stored revisions, as the wire shows them."""

from typing import Any

from homeostat.api.services.graphs import Graph
from homeostat.desired.graphs import template_text
from homeostat.templates import environments, validate_shape

Wire = dict[str, Any]
EMPTY_ENVIRONMENT: Wire = {
    "parameters": {},
    "parameter_defaults": {},
    "resource_registry": {"resources": {}},
    "event_sinks": [],
    "encrypted_param_names": [],
}


def template_of(graph: Graph) -> Wire:
    """As the user gave it; the stack of a group or chain has no text of its own, and shows one with all its members."""
    return template_text(graph.desired, graph.definitions)


def shown_template(graph: Graph) -> Wire:
    """The same, without what is hidden in the stacks around it: that of a group has values in it."""
    hidden = environments.inherited(graph.desired.environment)
    return dict(hidden.plain(template_of(graph))) if hidden.texts else template_of(graph)


def environment_of(graph: Graph) -> Wire:
    """All sections; hidden values hidden."""
    if graph.compiled is None:
        return EMPTY_ENVIRONMENT
    shown: Wire = validate_shape(graph.compiled)["Environment"]
    return {**shown, "encrypted_param_names": graph.compiled.environment.get("encrypted_param_names", [])}
