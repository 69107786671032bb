"""The revisions of stacks nested in template resources, derived from the revision of the parent."""

from typing import Any

from homeostat.desired.compiling import compile_desired, registry_of, template_of
from homeostat.model.desired import Identity
from homeostat.model.world import Resource
from homeostat.resources.nested import FACADE, FromTemplate, parameters_of
from homeostat.resources.registry import type_of
from homeostat.store.stacks import revisions
from homeostat.templates import declared_in, environments


def from_template(row: Resource, parent: revisions.Desired, environment: dict[str, Any]) -> revisions.Desired:
    """Return the revision of the stack of a template resource.

    Args:
        parent: Revision of the parent stack.
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
    desired = revisions.Desired("template", template, parameters, environment, parent.files)
    # Compiled only as a check: an error fails this resource before the nested stack exists.
    compile_desired(desired, Identity("", row.name, ""))
    return desired


def environment_inside(parent: revisions.Desired, name: str, called: str) -> dict[str, Any]:
    """Return the environment of the nested stack of a resource.

    Args:
        parent: Revision of the parent stack.
        called: The resource's type as the template calls it.
    """
    return environments.nested_environment(parent.environment, registry_of(parent.environment), name, called)
