"""Templates and environments of stored revisions, as the wire shows them."""

from typing import Any

from homeostat.api.graphs import Graph
from homeostat.model.desired import Definition
from homeostat.resources import groups
from homeostat.resources.nested import as_given
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
    desired = graph.desired
    if desired.kind == "group":
        group = desired.template
        members: Wire = {
            name: groups.member_definition(one, name, group["index_var"])
            for name, one in groups.definitions_between(group, 0, groups.names_end(group["count"], group["skip"]))
        }
    elif desired.kind == "chain":
        members = {name: _member(each) for name, each in graph.definitions.items()}
    else:
        return dict(desired.template)
    return {"heat_template_version": "2015-04-30", "resources": members}


def _member(definition: Definition) -> Wire:
    shown: Wire = {"type": definition.called or definition.type, "properties": as_given(definition.properties)}
    return {**shown, "depends_on": list(definition.requires)} if definition.requires else shown


def environment_of(graph: Graph) -> Wire:
    """All sections; hidden values hidden."""
    if graph.compiled is None:
        return EMPTY_ENVIRONMENT
    return dict(validate_shape(graph.compiled)["Environment"])
