"""The contents of stacks nested in template resources, derived from the content of the parent."""

from typing import Any

from homeostat.desired.compiling import compile_desired, registry_of, template_of
from homeostat.model.desired import Identity
from homeostat.model.world import Resource
from homeostat.resources.nested import FACADE, FromTemplate, parameters_of
from homeostat.resources.registry import type_of
from homeostat.store.stacks.contents import Content
from homeostat.templates import declared_in, environments


def from_template(row: Resource, parent: Content, environment: dict[str, Any]) -> Content:
    """Return the content of the stack of a template resource.

    Args:
        parent: Content of the parent stack.
        environment: See `environment_inside`.

    Raises:
        Rejected: The files and properties give no valid stack.
    """
    kind = type_of(row.type)
    assert isinstance(kind, FromTemplate)
    template = template_of(kind.source(row.properties), parent.files)
    parameters = parameters_of(kind.stack_parameters(row.properties), declared_in(template, "parameters"))
    if FACADE in row.properties:
        environment = {**environment, environments.FACADE: row.properties[FACADE]}
    content = Content("template", template, parameters, environment, parent.files)
    # Compiled only as a check: an error fails this resource before the nested stack exists.
    compile_desired(content, Identity("", row.name, ""))
    return content


def environment_inside(parent: Content, name: str, called: str) -> dict[str, Any]:
    """Return the environment of the nested stack of a resource.

    Args:
        parent: Content of the parent stack.
        called: The resource's type as the template calls it.
    """
    return environments.nested_environment(parent.environment, registry_of(parent.environment), name, called)
