"""Templates and environments of stored revisions, as the wire shows them."""

from typing import Any

from homeostat.api.graphs import Graph
from homeostat.convergence.definitions import template_text
from homeostat.templates import validate_shape

Wire = dict[str, Any]
EMPTY_ENVIRONMENT: Wire = {
    "parameters": {},
    "parameter_defaults": {},
    "resource_registry": {},
    "event_sinks": [],
    "encrypted_param_names": [],
}


def template_of(graph: Graph) -> Wire:
    """As the user gave it; the stack of a group or chain has no text of its own, and shows one with all its members."""
    return template_text(graph.desired, graph.definitions)


def environment_of(graph: Graph) -> Wire:
    """All sections; hidden values hidden."""
    if graph.compiled is None:
        return EMPTY_ENVIRONMENT
    return dict(validate_shape(graph.compiled)["Environment"])
