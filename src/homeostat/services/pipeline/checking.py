"""Checks a template and all its nested templates against the resource types, before anything exists."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson

from homeostat.desired.compiling import attributes_of, compile_desired, registry_of, template_of
from homeostat.desired.implied import graph_of, member_property
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import InvalidTemplateAttribute, Rejected, invalid
from homeostat.model.rollout import WAITED_FOR_MAX
from homeostat.planner.policies import healing_policy
from homeostat.resources import groups
from homeostat.resources.base import ResourceType
from homeostat.resources.families.node_groups import NodeGroup
from homeostat.resources.families.remote import RemoteStack
from homeostat.resources.families.resource_groups import Membership, ResourceGroup
from homeostat.resources.families.scaling import InstanceGroup, ScalingGroup
from homeostat.resources.families.wait_conditions import CONDITION
from homeostat.resources.graph import Indexed
from homeostat.resources.nested import POLICY, STACK, FromTemplate, TemplateResource, facade_problem, parameters_of
from homeostat.resources.registry import is_known, kind_of, named_type, resource_type
from homeostat.resources.rollout_policy import asked_urls, check_alarms, check_waited_for
from homeostat.resources.schema import UNKNOWN, coerce
from homeostat.resources.secrets import holds_secrets
from homeostat.services.pipeline.clustering_specs import check_clustering
from homeostat.services.pipeline.expansion import Expansion
from homeostat.services.pipeline.requirements import Nested, Requirements, remote_of
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    Compiled,
    Function,
    Parameter,
    declared_in,
    environments,
    evaluate,
    requires,
)
from homeostat.templates.environment_merge import parameter_types
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.registry import Registry, is_template
from homeostat.templates.weights import Unacceptable


class ValidationScope:
    """Scope in which no resource exists yet: references and attributes are `UNKNOWN`, if the type has them at all.

    Args:
        definitions: Definitions of the template.
        files: Files with the templates of nested stacks.
    """

    unknown: Any = UNKNOWN

    def __init__(self, definitions: Mapping[str, Definition], files: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._files = files

    def reference(self, resource: str) -> Any:
        return UNKNOWN

    def attribute(self, resource: str, name: str, path: Any) -> Any:
        """Return `UNKNOWN`. Raise Rejected (InvalidTemplateAttribute) for an attribute that the type does not have."""
        definition = self._definitions.get(resource)
        if definition is not None and not self._has_attribute(definition.type, name):
            raise InvalidTemplateAttribute(resource, name)
        return UNKNOWN

    def attributes(self, resource: str) -> Any:
        return UNKNOWN

    def _has_attribute(self, type_name: str, name: str) -> bool:
        """Return whether a resource of this type has such an attribute. An invalid type is reported elsewhere."""
        if is_template(type_name):
            return type_name not in self._files or name in attributes_of(type_name, self._files)
        kind = resource_type(type_name) if is_known(type_name) else None
        if kind is None or kind.open_schema or kind.open_attributes or kind.kind == STACK:
            return True
        return name in kind.attributes


def check(
    compiled: Compiled,
    content: Content,
    depth: int = 0,
    needs: Requirements | None = None,
    expansion: Expansion | None = None,
) -> Mapping[str, Definition]:
    """Check every resource against its type and return the graph.

    Args:
        content: Source of `compiled`.
        depth: Depth of the stack below the root.
        needs: Collects the external requirements.
        expansion: Expansion of the whole request.

    Raises:
        Rejected: Names the place.
    """
    needs = Requirements() if needs is None else needs
    needs.resources += len(compiled.definitions)
    expansion = Expansion() if expansion is None else expansion
    expansion.check_size(needs.resources)
    try:
        with HiddenValues.of(compiled.parameters).refusals():
            _check_names(compiled)
            _check_resources(compiled, Checker(content, depth, needs, expansion))
    except Rejected as error:
        raise compiled.version.dialect.worded(error) from error
    needs.secret = holds_secrets(compiled) or any(parameter.needs.secret for parameter in needs.nested.values())
    return graph_of(compiled, content)


NAME_MAX = 255
"""Characters of any name that a template gives."""
SHOWN_MAX = 40
"""Characters of an overlong name that an error message shows."""


def _check_names(compiled: Compiled) -> None:
    """Raise Rejected naming the place if a name is too long; the message shows only its beginning."""
    declared = [name for name, parameter in compiled.parameters.items() if not parameter.pseudo]
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("parameters", declared),
        ("conditions", compiled.conditions),
        ("resources", compiled.definitions),
        ("outputs", compiled.outputs),
    )
    for section, names in sections:
        for name in names:
            if len(name) > NAME_MAX:
                message = f"The name has {len(name)} characters, at most {NAME_MAX} are allowed: give it a shorter one"
                raise invalid(message, section, f"{name[:SHOWN_MAX]}…")


def _check_resources(compiled: Compiled, checker: "Checker") -> None:
    """Check each resource against its type. Raise Rejected with a path in the terms of HOT."""
    scope = ValidationScope(compiled.definitions, checker.content.files)
    checker.needs.of_parameters(compiled.parameters)
    checked = set[tuple[Any, ...]]()
    for name, definition in compiled.definitions.items():
        path = ("resources", name)
        if not name.isprintable():
            raise Rejected("StackValidationFailed", f"Resource name may not contain control characters: {name!r}")
        # Alike definitions are one but for the name, see `templates.alike`.
        parts = (definition.properties, definition.metadata, definition.update_policy, definition.creation_policy)
        alike = (definition.type, definition.deletion_policy, *map(id, parts))
        if alike in checked:
            continue
        try:
            properties = definition.properties if definition.static else evaluate(definition.properties, scope)
            metadata = evaluate(definition.metadata, scope)
            healing_policy.check(metadata, (*path, "metadata"))
        except Rejected as error:
            raise error if error.path else error.at(*path) from error
        resolved = definition if metadata is definition.metadata else replace(definition, metadata=metadata)
        kind = checker.resource(resolved, properties, path)
        if definition.external_id is not None:
            _check_external(definition, kind, (*path, "external_id"))
        _check_policies(kind, definition, path)
        # Each nested stack is a requirement of its own; the properties of external resources are not checked.
        if definition.static and definition.external_id is None and kind.kind != STACK:
            checked.add(alike)
    _check_among(compiled.definitions)
    for name, output in compiled.outputs.items():
        try:
            evaluate(output.value, scope)
        except Rejected as error:
            # Any other problem concerns only this output, and is reported when the output is shown.
            if error.fault == "InvalidTemplateAttribute" or isinstance(error.__cause__, Unacceptable):
                raise error if error.path else error.at("outputs", name) from error


def _check_among(definitions: Mapping[str, Definition]) -> None:
    """Check requirements between resources. Raise Rejected naming the place."""
    types = {definition.type for definition in definitions.values()}
    kinds = {name: resource_type(name) for name in types}
    related = {name for name, kind in kinds.items() if kind.has_own("validate_among") or isinstance(kind, Membership)}
    entries = {name: (item.type, item.properties) for name, item in definitions.items()} if related else {}
    graph = Indexed(entries)
    for name in entries:
        definition = definitions[name]
        kind = kinds[definition.type]
        kind.validate_among(definition.properties, graph, ("resources", name, "properties"))
        if isinstance(kind, Membership):
            check_alarms(definition.update_policy, graph, ("resources", name, "update_policy"))
    conditions = {name for name in kinds if kind_of(name) == CONDITION}
    waited_for = Counter(
        name for definition in definitions.values() if definition.type in conditions for name in definition.requires
    )
    for name, count in waited_for.items():
        group = resource_type(definitions[name].type) if name in definitions else None
        if isinstance(group, Membership) and count > WAITED_FOR_MAX:
            check_waited_for(group.pattern, definitions[name].properties, count, ("resources", name, "properties"))


def _check_external(definition: Definition, kind: ResourceType, path: tuple[str | int, ...]) -> None:
    """Raise Rejected for the type of a nested stack, and for a value that is no id."""
    # A nested stack has exactly one owner.
    if kind.kind == STACK:
        message = f"A resource of type {kind.name} is a part of its stack: leave external_id out"
        raise Rejected("NotSupported", message, path=path)
    if not isinstance(definition.external_id, str | Function) and definition.external_id is not UNKNOWN:
        raise invalid("the id of the thing is needed, as a text", *path)


def _check_policies(kind: ResourceType, definition: Definition, path: tuple[str | int, ...]) -> None:
    """Check the update policy and the deletion policy of a resource. Raise Rejected naming the place."""
    check_policy(kind, definition.update_policy, (*path, "update_policy"))
    if definition.update_policy and isinstance(kind, Membership):
        kind.check_steps({**definition.properties, POLICY: definition.update_policy}, (*path, "update_policy"))
    if definition.creation_policy and isinstance(kind, InstanceGroup):
        _check_known(definition.creation_policy, (*path, "creation_policy"))
        kind.check_creation(definition.creation_policy, (*path, "creation_policy"))
    if definition.deletion_policy == "Snapshot" and not kind.can_snapshot:
        message = '"Snapshot" deletion policy not supported'
        raise Rejected("StackValidationFailed", message, path=(*path, "deletion_policy"))


def check_policy(kind: ResourceType, policy: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    """Check the section `update_policy` of a resource. Raise Rejected naming the place."""
    if not policy:
        return
    _check_known(policy, path)
    if isinstance(kind, Membership):
        kind.check_policy(policy, path)
    elif not isinstance(kind, TemplateResource):  # its template may define and read any keys
        coerce(kind.update_policy, policy, path)


def _check_known(policy: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    if requires(policy):
        raise invalid("it has to be known before any resource exists: use parameters, not other resources", *path)


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks resources of one stack.

    Attributes:
        content: The revision, whose files have the templates of nested stacks.
        depth: Depth of the stack below the root.
        needs: Collects the external requirements of the resources.
        expansion: Expansion of the whole request.
    """

    content: Content
    depth: int
    needs: Requirements
    expansion: Expansion

    def resource(
        self, definition: Definition, properties: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> ResourceType:
        """Check properties, including those of a group's members, and nested templates.

        The properties of an external resource (`external_id`) are neither read nor required, and not checked.

        Args:
            properties: Properties of the resource; values that are unknown yet are `UNKNOWN`.

        Raises:
            Rejected: Names the place.
        """
        try:
            own = self.depth == 0 and definition.type in self.expansion.internal_types
            kind = resource_type(definition.type) if own else named_type(definition.type)
        except Rejected as error:
            raise Rejected("StackValidationFailed", error.detail, path=(*path, "type")) from error
        if isinstance(kind, TemplateResource):
            self._nested(definition, definition.type, properties, path)
            return kind
        if definition.external_id is not None:
            return kind
        values = kind.check(properties, (*path, "properties"))
        check_storable(values, *path, "properties")
        self.needs.of_resource(kind, values, path)
        self.needs.urls |= dict(check_clustering(kind, values, path, self.expansion.limits.health_interval_min))
        if isinstance(kind, Membership):
            self.needs.urls |= asked_urls(definition.update_policy, (*path, "update_policy"))
        if isinstance(kind, RemoteStack):
            self.needs.of_remote(remote_of(values, self.content.files, path))
        if isinstance(kind, FromTemplate):
            source, parameters = kind.source(values), kind.stack_parameters(values)
            if isinstance(source, str) and isinstance(parameters, Mapping):
                self._nested(definition, source, parameters, path)
        elif kind.kind == STACK:
            self._members(definition, kind, kind.complete(values), (*path, "properties"))
        return kind

    def _inside(self, definition: Definition) -> dict[str, Any]:
        """Return the environment of the stack that realizes a resource."""
        environment = self.content.environment
        called = definition.shown_type
        return environments.nested_environment(environment, registry_of(environment), definition.name, called)

    def _members(
        self, definition: Definition, kind: ResourceType, values: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> None:
        """Check the definitions of a group's or chain's members, as far as they are known.

        A group of 0 members is not checked: templates disable resources that way.
        """
        if isinstance(kind, ResourceGroup) and values["count"] == 0:
            return self._within(definition, None, self._disabled(definition, kind, values, path), ())
        try:
            self.expansion.check_depth(self.depth + 1)
        except Rejected as error:
            raise error.at(*path[:-1]) from error
        group = Content("group", environment=self._inside(definition), files=self.content.files)
        inside = Checker(group, self.depth + 1, Requirements(), self.expansion)
        registry = registry_of(inside.content.environment)
        entry = kind.member(values, lambda _: None, "") if isinstance(kind, Membership) else None
        if isinstance(entry, Mapping) and entry.get("type") is not UNKNOWN and entry.get("properties") is not UNKNOWN:
            filled = groups.member_definition(entry, "0", values.get("index_var"))
            where = (*path, member_property(definition))
            further = {
                name: filled[name]
                for name in groups.FURTHER_SECTIONS
                if filled.get(name) is not UNKNOWN and name in filled
            }
            member = registry.applied(Definition("0", filled["type"], **further))
            healing_policy.check(member.metadata, (*where, "metadata"))
            _check_policies(inside.resource(member, filled["properties"], where), member, where)
        if isinstance(kind, NodeGroup):
            inside.nodes(kind, values, registry, path)
        inside.needs.resources = _count(kind, values) * (1 + inside.needs.resources)
        types, properties = values.get("resources"), values.get("resource_properties") or {}
        if isinstance(types, list) and properties is not UNKNOWN:
            for type_name in dict.fromkeys(type_name for type_name in types if type_name is not UNKNOWN):
                place = types.index(type_name)
                member = registry.applied(Definition(str(place), type_name))
                before = inside.needs.resources
                inside.resource(member, properties, (*path, "resources", place))
                inside.needs.resources = before + types.count(type_name) * (1 + inside.needs.resources - before)
        self._within(definition, None, inside.needs, ())
        try:
            self.expansion.check_size(self.needs.resources)
        except Rejected as error:
            raise error.at(*path[:-1]) from error

    def _disabled(
        self, definition: Definition, kind: ResourceGroup, values: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> Requirements:
        """Return the nested templates that a group of 0 members would have, if validation shows them."""
        needs = Requirements()
        if self.expansion.shows_disabled:
            checker = Checker(self.content, self.depth, Requirements(), self.expansion)
            # Faults of a member that is never created are no errors.
            with suppress(Rejected):
                checker._members(definition, kind, {**values, "count": 1}, path)
                within = checker.needs.nested[definition.name].needs
                needs.nested, needs.stacks = within.nested, within.stacks
        return needs

    def nodes(
        self, kind: NodeGroup, values: Mapping[str, Any], registry: Registry, path: tuple[str | int, ...]
    ) -> None:
        """Check the definitions of single nodes of a group, and of the companion resources of its nodes."""
        for node in kind.own(values):
            filled = groups.member_definition(node.resource_def, "0", values.get("index_var"))
            before = self.needs.resources
            self.resource(registry.applied(Definition("0", filled["type"])), filled["properties"], (*path, "own"))
            self.needs.resources = max(before, self.needs.resources - before)
        for place, companion in enumerate(kind.companions(values)):
            definition, where = companion.resource_def, (*path, "beside", place, "resource_def", "properties")
            companion_type = resource_type(definition["type"])
            properties = companion_type.check({**definition["properties"], companion.member: UNKNOWN}, where)
            self.needs.of_resource(companion_type, properties, where[:-1])
            self.needs.resources += 1

    def _within(
        self, definition: Definition, compiled: Compiled | None, needs: Requirements, path: tuple[str | int, ...]
    ) -> None:
        """Record a nested stack.

        Args:
            path: Prepended to the places in its needs.
        """
        self.needs.add(needs, path)
        self.needs.nested[definition.name] = Nested(definition.shown_type, compiled, needs)

    def _nested(
        self, definition: Definition, source: str, properties: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> None:
        """Check a nested template with the properties as its parameters."""
        try:
            self.expansion.check_depth(self.depth + 1)
            inside = self._inside(definition)
            facade = {
                "metadata": definition.metadata or {},
                "deletion_policy": definition.deletion_policy,
                "update_policy": definition.update_policy,
            }
            inputs = (self.depth, source, definition.template_type, properties, facade, inside)
            # `repr` may be large: only its digest is kept.
            key = hashlib.sha256(repr(inputs).encode("utf-8", "surrogatepass")).hexdigest()
            environment = {**inside, environments.FACADE: facade}
            compiled, needs = self.expansion.once(
                key, lambda: self._expanded(definition, source, properties, environment)
            )
            self._within(definition, compiled, needs, path)
            self.expansion.check_size(self.needs.resources)
        except Rejected as error:
            raise error.at(*path) from error

    def _expanded(
        self, definition: Definition, source: str, properties: Mapping[str, Any], environment: Mapping[str, Any]
    ) -> tuple[Compiled, Requirements]:
        """Compile and check a nested template. Return it with its requirements; raise Rejected naming the place."""
        template = template_of(source, self.content.files)
        declared = declared_in(template, "parameters")
        _check_facade(definition, template, self.content.environment.get("parameter_defaults") or {})
        unknown = [name for name in properties if name not in declared]
        if unknown:
            raise invalid(f"Unknown Property {unknown[0]}", "properties", error="Property error")
        parameters = parameters_of(properties, declared)
        nested = Content("template", template, parameters, environment, self.content.files)
        allowance = self.expansion.allowance
        compiled = compile_desired(nested, Identity("None", "nested", "None"), strict=False, allowance=allowance)
        self.expansion.expanding(compiled)
        lacking = [parameter.name for parameter in compiled.parameters.values() if missing(parameter, properties)]
        if lacking:
            raise invalid(f"Property {lacking[0]} not assigned", "properties", error="Property error")
        needs = Requirements()
        check(compiled, nested, self.depth + 1, needs, self.expansion)
        return compiled, needs


def _count(kind: ResourceType, values: Mapping[str, Any]) -> int:
    """Return the initial number of a group's members; 0 if unknown."""
    try:
        wanted = kind.wanted_size(values, None) if isinstance(kind, ScalingGroup) else values.get("count")
    except TypeError:  # it depends on unknown values
        return 0
    return wanted if isinstance(wanted, int) else 0


def _check_facade(definition: Definition, template: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Check that a template which implements a known type accepts that type's properties.

    Args:
        defaults: Section `parameter_defaults`.

    Raises:
        Rejected: StackValidationFailed.
    """
    if not definition.template_type or is_template(definition.template_type) or not is_known(definition.template_type):
        return
    entries = declared_in(template, "parameters")
    maps = {name: entry for name, entry in entries.items() if isinstance(entry, Mapping)}
    without = [name for name, entry in maps.items() if entry.get("default", entry.get("Default")) is None]
    needed = [name for name in without if name not in defaults]
    problem = facade_problem(resource_type(definition.template_type), parameter_types(template), needed)
    if problem:
        raise invalid(problem)


def missing(parameter: Parameter, values: Mapping[str, Any]) -> bool:
    return parameter.value is UNKNOWN and values.get(parameter.name) is None


def check_storable(tree: Any, *path: str | int) -> None:
    """Raise Rejected for too large numbers and invalid Unicode, which neither the database nor clients accept."""
    try:
        orjson.dumps(tree, default=lambda _: None, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError as error:
        message = f"it holds a value that cannot be stored: {error}"
        raise Rejected("HTTPBadRequest", message, path=path) from error
