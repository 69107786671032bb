"""Compiling the template of a revision, with the types of its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeostat.desired.cache import Cache
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected
from homeostat.resources.registry import types
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    Compiled,
    Parameter,
    compile_template,
    declared_in,
    environments,
    parse_template,
)
from homeostat.templates.environments import effective, shared_of
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.registry import ALIASES, Registry
from homeostat.templates.tree import Allowance

Definitions = Mapping[str, Definition]
"""Name of a resource -> its definition."""


PARSED_MAX = 4_000_000
"""Characters of the template files whose parsed content is kept in memory."""


_PARSED: Cache[str, tuple[int, dict[str, Any]]] = Cache(PARSED_MAX, lambda parsed: parsed[0])


def compile_desired(
    content: Content, identity: Identity, *, strict: bool = True, allowance: Allowance | None = None
) -> Compiled:
    """Compile the template of a revision, with the types of its environment.

    Args:
        content: The revision, of kind `template`.
        identity: Stack for which it is compiled; its names feed the pseudo parameters.
        strict: As in `compile_template`.
        allowance: As in `compile_template`.

    Raises:
        Rejected: The template or a parameter is invalid; the error names the place.
    """
    compiled = compile_template(
        content.template,
        identity=identity,
        parameters=content.parameters,
        environment=effective(content.environment),
        files=content.files,
        facade=content.environment.get(environments.FACADE),
        strict=strict,
        allowance=allowance,
    )
    registry = registry_of(content.environment)
    definitions = {name: registry.applied(definition) for name, definition in compiled.definitions.items()}
    parameters = _with_inherited(compiled.parameters, environments.inherited(content.environment))
    environment = environments.user_sections(content.environment)
    return replace(compiled, parameters=parameters, definitions=definitions, environment=environment)


def _with_inherited(parameters: Mapping[str, Parameter], hidden: HiddenValues) -> Mapping[str, Parameter]:
    """Hide parameters that hold a hidden value of an enclosing stack, whatever the template says about them."""
    if not hidden.texts:
        return parameters
    return {
        name: replace(parameter, schema=replace(parameter.schema, hidden=True))
        if hidden.among([parameter.value]).texts
        else parameter
        for name, parameter in parameters.items()
    }


def registry_of(environment: Mapping[str, Any]) -> Registry:
    """Return the resource registry of a stored environment."""
    shared = {**ALIASES, **shared_of(environment, "resource_registry")}
    return Registry(environment.get("resource_registry") or {}, shared, types().__contains__)


def template_of(type_name: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the parsed template that a resource type names.

    Raises:
        Rejected: The file is missing in the stack, or is not a template; the error names the file.
    """
    if type_name not in files:
        message = f'The template "{type_name}" is not among the files of the stack: send its text in "files"'
        raise Rejected("StackValidationFailed", message)
    try:
        return parsed_template(files[type_name])
    except Rejected as error:
        message = f'The file "{type_name}" is not a template: {error.detail} Send its text in "files".'
        raise Rejected(error.fault, message, path=error.path) from error


def parsed_template(text: str) -> dict[str, Any]:
    """Parse a template, or return it from the cache; the result is shared and must not be changed."""
    return _PARSED.get(text, lambda: (len(text), parse_template(text)))[1]


def attributes_of(type_name: str, files: Mapping[str, str]) -> "Attributes":
    """Return the names of the attributes of a stack made from a template.

    Raises:
        Rejected: There is no such template.
    """
    template = template_of(type_name, files)
    return Attributes(frozenset(declared_in(template, "outputs")), frozenset(declared_in(template, "resources")))


@dataclass(frozen=True, slots=True)
class Attributes:
    """Names of the attributes of a nested stack: its outputs, and `resource.NAME` for its resources.

    Attributes:
        outputs: Names of the outputs in the template.
        resources: Names of the resources in the template.
    """

    outputs: frozenset[str]
    resources: frozenset[str]

    def __contains__(self, name: str) -> bool:
        if name.startswith("resource."):
            return name.split(".")[1] in self.resources
        return name == "show" or name in self.outputs
