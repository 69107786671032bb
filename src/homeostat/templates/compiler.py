"""Compilation of a template, with its parameters, environment and files, into the desired graph."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeostat.model.desired import Definition, Identity, Output
from homeostat.model.errors import Rejected, invalid
from homeostat.templates.alike import with_alike_shared
from homeostat.templates.definitions import (
    check_resources,
    check_types,
    compile_definitions,
    compile_output,
    enabled,
    graph_order,
)
from homeostat.templates.environments import shown_sinks
from homeostat.templates.functions import condition_functions, ordinary_functions, output_functions
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.parameters import HIDDEN, Parameter, ProvidedParameters, resolve
from homeostat.templates.parser import parse_environment, parse_template
from homeostat.templates.registry import RESOURCES, is_template
from homeostat.templates.snippets import Conditions, OutputReader, Reader
from homeostat.templates.tree import UNKNOWN, Allowance, Context
from homeostat.templates.versions import Version, version_of


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled template; its resource types and their properties are not checked yet.

    Attributes:
        version: Version of the template language.
        parameters: Pseudo parameters first, then the declared ones.
        parameter_groups: As written.
        conditions: Name -> whether the condition holds.
        definitions: Resources whose condition holds, in template order.
        resource_order: Names of the resources, in the order of their requirements.
        outputs: All outputs, in template order.
        raw: The parsed template.
        provided: Values of parameters given by the caller, not redacted.
    """

    version: Version
    description: str
    parameters: Mapping[str, Parameter]
    parameter_groups: tuple[Mapping[str, Any], ...]
    conditions: Mapping[str, bool]
    definitions: Mapping[str, Definition]
    resource_order: tuple[str, ...]
    outputs: Mapping[str, Output]
    raw: Mapping[str, Any]
    environment: Mapping[str, Any]
    provided: Mapping[str, Any]


def compile_template(
    template: str | bytes | Mapping[str, Any],
    *,
    identity: Identity,
    parameters: Mapping[str, Any] | None = None,
    environment: str | bytes | Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    facade: Mapping[str, Any] | None = None,
    strict: bool = True,
    allowance: Allowance | None = None,
) -> Compiled:
    """Compile a template into the desired graph.

    The cost is O(text): 10,000 small resources take less than 0.5 s.

    Args:
        template: JSON or YAML text, or the parsed template.
        identity: Identity of the stack, for the pseudo parameters.
        parameters: Values that override the values in `environment`.
        environment: JSON or YAML text, or the parsed environment.
        files: Texts by name.
        facade: `metadata`, `deletion_policy` and `update_policy` of the resource that this template implements; None
            for a root stack.
        strict: Whether a parameter without a value is an error; else its value is `tree.UNKNOWN`.
        allowance: Budget shared by several templates, which stays open; None for a new budget.

    Raises:
        Rejected: The template is wrong. The checks run in the same order as in Heat, so clients see the same error.
    """
    document = with_alike_shared(parse_template(template))
    environment = parse_environment(environment)
    version = version_of(document)
    values = {**environment.get("parameters", {}), **(parameters or {})}
    provided = ProvidedParameters(
        parse_environment({"parameters": values})["parameters"],
        environment.get("parameter_defaults", {}),
    )
    budget = Allowance() if allowance is None else allowance
    unknown = None if strict else UNKNOWN
    context = Context(files={} if files is None else files, facade=facade, unknown=unknown, allowance=budget)
    try:
        return _compiled(version, document, environment, provided, identity, context)
    except Rejected as error:
        raise version.dialect.worded(error) from error
    finally:
        if allowance is None:
            budget.close()


def _compiled(
    version: Version,
    document: Mapping[str, Any],
    environment: Mapping[str, Any],
    provided: ProvidedParameters,
    identity: Identity,
    context: Context,
) -> Compiled:
    """Compile, as `compile_template`.

    Raises:
        Rejected: With its path in canonical words (those of HOT).
    """
    dialect = version.dialect
    sections = dialect.read(document)
    check_types(sections["resources"], dialect)
    known = resolve(sections["parameters"], provided, identity, version=version, strict=context.unknown is None)
    # From here on, errors may quote values of parameters.
    with HiddenValues.of(known).refusals():
        return _linked(version, document, sections, environment, provided, known, context)


def _linked(
    version: Version,
    document: Mapping[str, Any],
    sections: Mapping[str, Any],
    environment: Mapping[str, Any],
    provided: ProvidedParameters,
    known: Mapping[str, Parameter],
    context: Context,
) -> Compiled:
    """Compile everything that depends on the values of the parameters.

    Raises:
        Rejected: The template is wrong; the message may quote hidden values.
    """
    groups = _parameter_groups(sections.get("parameter_groups"), sections["parameters"])
    values = {name: parameter.value for name, parameter in known.items()}
    context = replace(context, parameters=values, mappings=sections["mappings"])
    usable = condition_functions(version.key, version.date)
    conditions = Conditions(usable, sections["conditions"], context, version.dialect.place("conditions"))
    definitions, reader = _definitions(sections["resources"], version, context, conditions)
    outputs = OutputReader(output_functions(version.key, version.date), reader.context, reader.condition)
    _check_names(sections["resources"], known)
    return Compiled(
        version=version,
        description=str(sections.get("description") or "No description"),
        parameters=known,
        parameter_groups=groups,
        conditions={name: bool(value) for name, value in conditions.values.items()},
        definitions=definitions,
        resource_order=graph_order(definitions),
        outputs={
            name: compile_output(name, entry, outputs, conditions, version.dialect)
            for name, entry in sections["outputs"].items()
        },
        raw=document,
        environment=environment,
        provided=provided.values,
    )


def _definitions(
    resources: Mapping[str, Any], version: Version, context: Context, conditions: Conditions
) -> tuple[dict[str, Definition], Reader]:
    """Compile the resources whose condition holds.

    Returns:
        Their definitions, and the reader, whose context knows which resources exist.
    """
    check_resources(resources, version.dialect)
    exists = {
        name: enabled(entry, conditions, ("resources", name), version.dialect) for name, entry in resources.items()
    }
    usable = ordinary_functions(version.key, version.date)
    reader = Reader(usable, replace(context, resources=exists), conditions.holds)
    wanted = {name: entry for name, entry in resources.items() if exists[name]}
    return compile_definitions(wanted, reader, version.dialect), reader


def _check_names(resources: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> None:
    twice = sorted(resources.keys() & parameters.keys())
    if twice:
        raise invalid(f"Duplicate names {{{', '.join(map(repr, twice))}}}: a resource and a parameter")


def _parameter_groups(groups: Any, parameters: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Check the parameter groups, and return them as written.

    Raises:
        Rejected: `Parameter Groups error`.
    """
    if groups is None:
        return ()
    if not isinstance(groups, list):
        raise _wrong_group("The parameter_groups should be a list.")
    grouped: set[str] = set()
    for index, group in enumerate(groups):
        if not isinstance(group, dict):
            raise _wrong_group("A parameter group should be a map.", index)
        place = str(group.get("label") or group.get("name") or "") or index
        for name in _names_of_group(group, place):
            if not isinstance(name, str) or name not in parameters:
                raise _wrong_group(f"The grouped parameter {name} does not reference a valid parameter.", place)
            if name in grouped:
                raise _wrong_group(f"The {name} parameter must be assigned to one parameter group only.", place)
            grouped.add(name)
    return tuple(groups)


def _names_of_group(group: Mapping[str, Any], place: str | int) -> list[Any]:
    names = group.get("parameters")
    if names is None:
        raise _wrong_group("The parameters must be provided for each parameter group.", place)
    if not isinstance(names, list):
        raise _wrong_group("The parameters of parameter group should be a list.", place)
    return names


def _wrong_group(message: str, *path: str | int) -> Rejected:
    return invalid(message, "parameter_groups", *path, error="Parameter Groups error")


def validate_shape(compiled: Compiled) -> dict[str, Any]:
    """Return the response of the validate API for one template, without the additions of nested templates."""
    hidden = {name for name, parameter in compiled.parameters.items() if parameter.schema.hidden}

    def shown(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: HIDDEN if name in hidden else value for name, value in values.items()}

    environment = compiled.environment
    # Types that are files appear in the registry as if the environment had named them.
    types = (definition.type for definition in compiled.definitions.values() if not definition.template_type)
    implied = {name: name for name in types if is_template(name)}
    answer: dict[str, Any] = {
        "Description": compiled.description,
        "Parameters": {
            name: parameter.wire() for name, parameter in compiled.parameters.items() if not parameter.pseudo
        },
        "Environment": {
            "parameters": shown(compiled.provided),
            "parameter_defaults": shown(environment.get("parameter_defaults", {})),
            "resource_registry": {RESOURCES: {}, **implied, **environment.get("resource_registry", {})},
            "event_sinks": shown_sinks(environment),
        },
    }
    if compiled.parameter_groups:
        answer["ParameterGroups"] = list(compiled.parameter_groups)
    return answer
