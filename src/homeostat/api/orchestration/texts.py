"""Templates and environments of stored revisions, as the wire shows them."""

from typing import Any

from homeostat.api.graphs import Graph
from homeostat.resources import groups
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
    """As the user gave it; a group's stack has no text of its own, and shows one with all its members."""
    desired = graph.desired
    if desired.kind != "group":
        return dict(desired.template)
    one, index_var = desired.template["resource_def"], desired.template["index_var"]
    members = {name: groups.member_definition(one, name, index_var) for name in graph.definitions}
    return {"heat_template_version": "2015-04-30", "resources": members}


def environment_of(graph: Graph) -> Wire:
    """All sections; hidden values hidden."""
    if graph.compiled is None:
        return EMPTY_ENVIRONMENT
    return dict(validate_shape(graph.compiled)["Environment"])
