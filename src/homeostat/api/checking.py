"""Checks a template with all that is nested in it against its types, before anything exists."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from homeostat.api.existing import Needs, Nested
from homeostat.convergence.children import DEPTH_MAX, STACK
from homeostat.convergence.definitions import (
    attributes_of,
    compile_desired,
    graph_of,
    member_property,
    registry_of,
    template_of,
)
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected, invalid
from homeostat.resources import groups
from homeostat.resources.base import ResourceType
from homeostat.resources.families.grouping import Membership
from homeostat.resources.graph import Indexed
from homeostat.resources.nested import FromTemplate, TemplateResource, facade_problem, parameters_of
from homeostat.resources.registry import is_known, is_outside, resource_type
from homeostat.resources.schema import UNKNOWN, coerce
from homeostat.resources.secrets import holds_secrets, makes_secrets
from homeostat.store.stacks import Desired
from homeostat.templates import (
    Compiled,
    Function,
    Parameter,
    declared_in,
    environments,
    evaluate,
    requires,
)
from homeostat.templates.hiding import Hidden
from homeostat.templates.merging import parameter_types
from homeostat.templates.registry import is_template


class Unborn:
    """Scope in which no resource exists yet: everything about them is `UNKNOWN`, if it can be had at all.

    Takes: definitions — of the template; files — that nested stacks are made from.
    """

    unknown: Any = UNKNOWN

    def __init__(self, definitions: Mapping[str, Definition], files: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._files = files

    def reference(self, resource: str) -> Any:
        return UNKNOWN

    def attribute(self, resource: str, name: str, path: Any) -> Any:
        """Fails: Rejected (InvalidTemplateAttribute)."""
        definition = self._definitions.get(resource)
        if definition is not None and not self._tells(definition.type, name):
            message = f"The Referenced Attribute ({resource} {name}) is incorrect."
            raise Rejected("InvalidTemplateAttribute", message)
        return UNKNOWN

    def attributes(self, resource: str) -> Any:
        return UNKNOWN

    def _tells(self, type_name: str, name: str) -> bool:
        """Has a resource of this type such an attribute? What is wrong with the type itself is told elsewhere."""
        if is_template(type_name):
            return type_name not in self._files or name in attributes_of(type_name, self._files)
        kind = resource_type(type_name) if is_known(type_name) else None
        if kind is None or kind.open_schema or kind.open_attributes or kind.kind == STACK:
            return True
        return name in kind.attributes


def check(compiled: Compiled, desired: Desired, depth: int = 0, needs: Needs | None = None) -> Mapping[str, Definition]:
    """Check every resource against its type, and give the graph. Fails: Rejected naming the place.

    desired — what it was compiled from; depth — of the stack below the root; needs — to be filled with what is needed
    from outside.
    """
    try:
        with Hidden.of(compiled.parameters).refusals():
            _check_resources(compiled, Checker(desired, depth, Needs() if needs is None else needs))
    except Rejected as error:
        raise compiled.version.dialect.worded(error) from error
    return graph_of(compiled, desired)


def _check_resources(compiled: Compiled, checker: "Checker") -> None:
    """Each against its type. Fails: Rejected, its path in the words of HOT."""
    scope = Unborn(compiled.definitions, checker.desired.files)
    checker.needs.of_parameters(compiled.parameters)
    for name, definition in compiled.definitions.items():
        path = ("resources", name)
        if not name.isprintable():
            raise Rejected("StackValidationFailed", f"Resource name may not contain control characters: {name!r}")
        try:
            given = definition.properties if definition.static else evaluate(definition.properties, scope)
            metadata = evaluate(definition.metadata, scope)
        except Rejected as error:
            raise error if error.path else error.at(*path) from error
        resolved = definition if metadata is definition.metadata else replace(definition, metadata=metadata)
        kind = checker.resource(resolved, given, path)
        if definition.external_id is not None:
            _check_external(definition, kind, (*path, "external_id"))
        check_policy(kind, definition.update_policy, (*path, "update_policy"))
        if definition.deletion_policy == "Snapshot" and not kind.can_snapshot:
            message = '"Snapshot" deletion policy not supported'
            raise Rejected("StackValidationFailed", message, path=(*path, "deletion_policy"))
    _check_among(compiled.definitions)
    for name, output in compiled.outputs.items():
        try:
            evaluate(output.value, scope)
        except Rejected as error:
            raise error if error.path else error.at("outputs", name) from error


def _check_among(definitions: Mapping[str, Definition]) -> None:
    """Check what resources ask of one another. Fails: Rejected naming the place."""
    graph = Indexed({name: (each.type, each.properties) for name, each in definitions.items()})
    for name, each in definitions.items():
        resource_type(each.type).validate_among(each.properties, graph, ("resources", name, "properties"))


def _check_external(definition: Definition, kind: ResourceType, path: tuple[str | int, ...]) -> None:
    """Fails: Rejected for what no cloud knows by an id, and for what is none."""
    if not is_outside(definition.type):
        message = f"A resource of type {kind.name} is not there but in its stack: leave external_id out"
        raise Rejected("NotSupported", message, path=path)
    if not isinstance(definition.external_id, str | Function) and definition.external_id is not UNKNOWN:
        raise invalid("the id of the thing is needed, as a text", *path)


def check_policy(kind: ResourceType, policy: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    """Check the section `update_policy` of a resource. Fails: Rejected naming the place."""
    if not policy:
        return
    if requires(policy):
        raise invalid("it has to be known before any resource exists: use parameters, not other resources", *path)
    if not isinstance(kind, TemplateResource):  # it is for the template to read
        coerce(kind.update_policy, policy, path)


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks resources of one stack. desired — the revision, whose files nested stacks are made from; depth — of the
    stack below the root; needs — what they need from outside."""

    desired: Desired
    depth: int
    needs: Needs

    def resource(self, each: Definition, given: Mapping[str, Any], path: tuple[str | int, ...]) -> ResourceType:
        """Check properties, those of the members of a group, and nested templates. Fails: Rejected naming the place.

        given — the properties, with what is not known yet as `UNKNOWN`. Those of a thing of somebody else's are left
        alone: nobody reads them, and none is needed.
        """
        try:
            kind = resource_type(each.type)
        except Rejected as error:
            raise Rejected("StackValidationFailed", error.detail, path=(*path, "type")) from error
        if isinstance(kind, TemplateResource):
            self._nested(each, each.type, given, path)
            return kind
        if each.external_id is not None:
            return kind
        values = kind.check(given, (*path, "properties"))
        check_storable(values, *path, "properties")
        self.needs.of_resource(kind, values, path)
        if isinstance(kind, FromTemplate):
            source, parameters = kind.source(values), kind.given(values)
            if isinstance(source, str) and isinstance(parameters, Mapping):
                self._nested(each, source, parameters, path)
        elif kind.kind == STACK:
            self._members(each, kind, kind.complete(values), (*path, "properties"))
        return kind

    def _inside(self, each: Definition) -> dict[str, Any]:
        """Environment of the stack that is the reality of a resource."""
        environment = self.desired.environment
        called = each.called or each.type
        return environments.nested_environment(environment, registry_of(environment), each.name, called)

    def _members(
        self, each: Definition, kind: ResourceType, values: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> None:
        """Check what the members of a group or chain are made from, as far as it is known."""
        group = Desired("group", environment=self._inside(each), files=self.desired.files)
        inside = Checker(group, self.depth + 1, Needs())
        registry = registry_of(inside.desired.environment)
        one = kind.member(values, lambda _: None) if isinstance(kind, Membership) else None
        if isinstance(one, Mapping) and one.get("type") is not UNKNOWN and one.get("properties") is not UNKNOWN:
            made = groups.member_definition(one, "0", values.get("index_var"))
            member = registry.applied(Definition("0", made["type"], metadata=made.get("metadata")))
            inside.resource(member, made["properties"], (*path, member_property(each)))
        types, given = values.get("resources"), values.get("resource_properties") or {}
        if isinstance(types, list) and given is not UNKNOWN:
            for type_name in dict.fromkeys(each for each in types if each is not UNKNOWN):
                place = types.index(type_name)
                member = registry.applied(Definition(str(place), type_name))
                inside.resource(member, given, (*path, "resources", place))
        self._within(each, None, inside.needs, ())

    def _within(self, each: Definition, compiled: Compiled | None, needs: Needs, path: tuple[str | int, ...]) -> None:
        """Note a stack inside this one. path — which the places in its needs are below."""
        self.needs.add(needs, path)
        self.needs.nested[each.name] = Nested(each.called or each.type, compiled, needs)

    def _nested(self, each: Definition, source: str, given: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        """Check the nested template of that name with what is given as its parameters; what is not known yet is left
        open."""
        if self.depth >= DEPTH_MAX:
            raise Rejected("RequestLimitExceeded", f"Request limit exceeded: Recursion depth exceeds {DEPTH_MAX}.")
        known = {key: value for key, value in given.items() if not _open(value)}
        facade = {
            "metadata": each.metadata or {},
            "deletion_policy": each.deletion_policy,
            "update_policy": each.update_policy,
        }
        try:
            template = template_of(source, self.desired.files)
            declared = declared_in(template, "parameters")
            _check_facade(each, template, self.desired.environment.get("parameter_defaults") or {})
            unknown = [name for name in given if name not in declared]
            if unknown:
                raise invalid(f"Unknown Property {unknown[0]}", "properties", error="Property error")
            environment = {**self._inside(each), environments.FACADE: facade}
            parameters = parameters_of(known, declared)
            nested = Desired("template", template, parameters, environment, self.desired.files)
            compiled = compile_desired(nested, Identity("None", "nested", "None"), strict=False)
            missing = [each.name for each in compiled.parameters.values() if _missing(each, given)]
            if missing:
                raise invalid(f"Property {missing[0]} not assigned", "properties", error="Property error")
            needs = Needs()
            check(compiled, nested, self.depth + 1, needs)
            self._within(each, compiled, needs, path)
        except Rejected as error:
            raise error.at(*path) from error


def _check_facade(each: Definition, template: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """A template for a type that there is takes what that takes. Fails: Rejected (StackValidationFailed).

    defaults — section `parameter_defaults`.
    """
    if not each.called or is_template(each.called) or not is_known(each.called):
        return
    entries = declared_in(template, "parameters")
    maps = {name: entry for name, entry in entries.items() if isinstance(entry, Mapping)}
    without = [name for name, entry in maps.items() if entry.get("default", entry.get("Default")) is None]
    needed = [name for name in without if name not in defaults]
    problem = facade_problem(resource_type(each.called), parameter_types(template), needed)
    if problem:
        raise invalid(problem)


def _open(value: Any) -> bool:
    """Is it, or does it hold, what is not known yet?"""
    if isinstance(value, Mapping):
        return any(_open(item) for item in value.values())
    return any(_open(item) for item in value) if isinstance(value, list) else value is UNKNOWN


def _missing(parameter: Parameter, given: Mapping[str, Any]) -> bool:
    return parameter.value is UNKNOWN and given.get(parameter.name) is None


def check_storable(tree: Any, *path: str | int) -> None:
    """Fails: Rejected for numbers too large, and text that is no Unicode: neither the store nor clients take them."""
    try:
        orjson.dumps(tree, default=lambda _: None, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError as error:
        message = f"it holds a value that cannot be stored: {error}"
        raise Rejected("HTTPBadRequest", message, path=path) from error


def is_secret(compiled: Compiled, needs: Needs) -> bool:
    """Is there a secret anywhere in the tree of stacks that a template describes?"""
    return holds_secrets(compiled) or makes_secrets(needs.types) or any(map(_is_secret_inside, needs.nested.values()))


def _is_secret_inside(nested: Nested) -> bool:
    mine = nested.compiled is not None and holds_secrets(nested.compiled)
    return mine or any(map(_is_secret_inside, nested.needs.nested.values()))
