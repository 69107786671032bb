"""Implications of the definitions of a template: further properties and requirements.

Fingerprints, files, policies and facades become properties, so that their change is a change of the resource.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from homeostat.desired.compiling import Definitions, registry_of
from homeostat.model.desired import Definition
from homeostat.model.errors import Rejected
from homeostat.resources.families.balanced import NAMES, balancer_names
from homeostat.resources.families.lbaas_v1 import POOLS
from homeostat.resources.families.scaling import InstanceGroup
from homeostat.resources.graph import Indexed
from homeostat.resources.nested import BALANCERS, CONTENT, CREATION, FACADE, FILES, POLICY, FromTemplate, NestedStack
from homeostat.resources.registry import kind_of, type_of
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    Compiled,
    DynamicMap,
    environments,
    is_dynamic,
)
from homeostat.templates.environments import nested_environment
from homeostat.templates.functions.references import GetAttr
from homeostat.templates.registry import Registry, is_template
from homeostat.templates.tree import Context

REMOTE = "remote_stack"
"""Kind of resources that are stacks in other regions or clouds."""


def graph_of(compiled: Compiled, content: Content) -> Definitions:
    """Return the definitions of a compiled template with all their implications; `content` is its source."""
    definitions = with_facades(with_content(compiled.definitions, content), content.files)
    return with_implied(with_balancers(with_policies(with_files(definitions, content.files))))


def with_files(definitions: Definitions, files: Mapping[str, str]) -> Definitions:
    """Add to stacks in other regions the files named by their templates: the remote service has no other files."""
    if not files:
        return definitions
    completed = {}
    for name, definition in definitions.items():
        if kind_of(definition.type) == REMOTE:
            properties = _with(definition.properties, FILES, files_named(definition.properties, files))
            completed[name] = replace(definition, properties=properties)
    return {**definitions, **completed} if completed else definitions


def files_named(properties: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that a remote stack needs.

    These are the files whose names occur in its template, or in files already included; all files if the template is
    not known yet.
    """
    template = properties.get("template")
    if not isinstance(template, str):
        return dict(files)
    needed: dict[str, str] = {}
    todo = [template]
    while todo:
        text = todo.pop()
        more = {name: content for name, content in files.items() if name not in needed and name in text}
        needed |= more
        todo += more.values()
    return needed


def with_policies(definitions: Definitions) -> Definitions:
    """Add the policies of groups to their properties, so that a change of a policy is a change of the group."""
    policies = {
        name: with_policy(definition)
        for name, definition in definitions.items()
        if definition.update_policy or definition.creation_policy
    }
    return {**definitions, **policies} if policies else definitions


def with_policy(definition: Definition) -> Definition:
    """Return the definition of a group with its policies as properties, of any other resource unchanged."""
    kind, properties = type_of(definition.type), definition.properties
    if definition.update_policy and kind.update_policy:
        properties = _with(properties, POLICY, definition.update_policy)
    if definition.creation_policy and isinstance(kind, InstanceGroup):
        properties = _with(properties, CREATION, definition.creation_policy)
    return definition if properties is definition.properties else replace(definition, properties=properties)


def with_balancers(definitions: Definitions) -> Definitions:
    """Add the pools of load balancers to the properties of the groups behind them, which so follow the pools' changes.

    Raises:
        Rejected: CircularDependencyException: a load balancer requires a group behind it.
    """
    balanced_groups = {}
    for name, group in definitions.items():
        if not group.properties.get(NAMES) or not isinstance(type_of(group.type), InstanceGroup):
            continue
        # Names that are not known yet, or that templates must not use, are left to the checks.
        given_names = balancer_names(group.properties[NAMES])
        names = [balancer for balancer in given_names if isinstance(balancer, str) and balancer in definitions]
        path = ("resources", name, "properties", NAMES)
        for balancer in names:
            if _reaches(definitions, {}, balancer, name):
                message = f"Circular Dependency Found: {name} is behind {balancer}, which requires it"
                raise Rejected("CircularDependencyException", message, path=path)
        pools = {balancer: GetAttr("get_attr", [balancer, POOLS], path, Context()) for balancer in names}
        balanced = {NAMES: names, BALANCERS: DynamicMap(pools)} if pools else {NAMES: names}
        properties = DynamicMap({**group.properties, **balanced})
        balanced_groups[name] = replace(_with_requires(group, set(names)), properties=properties, static=False)
    return {**definitions, **balanced_groups} if balanced_groups else definitions


def with_content(definitions: Definitions, content: Content) -> Definitions:
    """Add a fingerprint of files and environment to resources with a nested stack.

    So an edit of a file, or of the environment, is a change of the resource, and reaches the nested stack.
    """
    nested = {
        name for name in {definition.type for definition in definitions.values()} if kind_of(name) == NestedStack.kind
    }
    registry = registry_of(content.environment)
    files = ""
    marked = {}
    for name, definition in definitions.items():
        if definition.type not in nested:
            continue
        inside = _inside(content.environment, registry, definition)
        files = files or _fingerprint_of_files(tuple(sorted(content.files.items())))
        of_templates = isinstance(type_of(definition.type), FromTemplate) or _of_templates(
            definition, registry_of(inside)
        )
        mark = _fingerprint([files, inside]) if _matters(inside) else files
        if of_templates or _matters(inside):
            marked[name] = _with_fingerprint(definition, mark, in_members=of_templates)
    return {**definitions, **marked} if marked else definitions


def _inside(environment: Mapping[str, Any], registry: Registry, definition: Definition) -> dict[str, Any]:
    return nested_environment(environment, registry, definition.name, definition.shown_type)


def _matters(environment: Mapping[str, Any]) -> bool:
    """Return whether an environment affects the contents of stacks; event sinks do not."""
    return any(content for name, content in environment.items() if name != environments.SINKS)


@lru_cache(maxsize=16)
def _fingerprint_of_files(files: tuple[tuple[str, str], ...]) -> str:
    """Return the fingerprint of a stack's files; cached, since all stacks of a tree have the same files."""
    return _fingerprint(list(files))


def _fingerprint(content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _of_templates(definition: Definition, registry: Registry) -> bool:
    """Return whether a resource is a group or a chain with nested stacks among its members."""
    member, types = _alike(definition), definition.properties.get("resources")
    named = [member.get("type")] if isinstance(member, Mapping) else types if isinstance(types, list) else []
    return any(isinstance(name, str) and is_template(registry.resolve(name, "0").type) for name in named)


def _with_fingerprint(definition: Definition, fingerprint: str, *, in_members: bool) -> Definition:
    """Return a definition with a fingerprint as a property.

    In a group of nested stacks the fingerprint goes to the definition of the members, which need the update.
    """
    member, place = _alike(definition), member_property(definition)
    if is_template(definition.type) or not isinstance(member, Mapping) or not in_members:
        return replace(definition, properties=_with(definition.properties, CONTENT, fingerprint))
    inner = _with(member.get("properties") or {}, CONTENT, fingerprint)
    return replace(definition, properties=_with(definition.properties, place, _with(member, "properties", inner)))


def _alike(definition: Definition) -> Any:
    """Return the definition of each member of a group, as far as known; None for other resources."""
    return definition.properties.get(member_property(definition))


def member_property(definition: Definition) -> str:
    """Return the name of the property with the definition of each member of a group; "" if there is none."""
    kind = type_of(definition.type)
    return kind.member_property if isinstance(kind, NestedStack) else ""


def with_facades(definitions: Definitions, files: Mapping[str, str]) -> Definitions:
    """Add to nested stacks the sections of their own definition that their templates read by `resource_facade`.

    The sections become a property, so that their change is a change of the resource.
    """
    if not files:
        return definitions
    readers = {
        name: with_facade(definition)
        for name, definition in definitions.items()
        if needs_facade(definition.type, files)
    }
    return {**definitions, **readers} if readers else definitions


def needs_facade(type_name: str, files: Mapping[str, str]) -> bool:
    text = files.get(type_name, "") if is_template(type_name) else ""
    return "resource_facade" in text or "ResourceFacade" in text


def with_facade(definition: Definition) -> Definition:
    sections = {
        "metadata": definition.metadata or {},
        "deletion_policy": definition.deletion_policy,
        "update_policy": dict(definition.update_policy),
    }
    facade = DynamicMap(sections) if is_dynamic(sections["metadata"]) else sections
    properties = _with(definition.properties, FACADE, facade)
    return replace(definition, properties=properties, static=definition.static and not is_dynamic(facade))


def _with(tree: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """Return a copy of a map with another entry, dynamic if the map or the entry was."""
    kind = DynamicMap if isinstance(tree, DynamicMap) or isinstance(value, DynamicMap) else dict
    return kind({**tree, key: value})


def with_implied(definitions: Definitions) -> Definitions:
    """Add requirements that follow from the types (a port requires the subnets of its network, …).

    A requirement that would close a circle is left out, since the template's own requirements take precedence.
    """
    kinds = {type_name: type_of(type_name) for type_name in {definition.type for definition in definitions.values()}}
    implying = {type_name: kind for type_name, kind in kinds.items() if kind.has_own("implied_requires")}
    if not implying:
        return definitions
    graph = Indexed({name: (definition.type, definition.properties) for name, definition in definitions.items()})
    completed: dict[str, Definition] = dict(definitions)
    for name, definition in definitions.items():
        if definition.type not in implying:
            continue
        kind = implying[definition.type]
        implied = kind.implied_requires(definition.properties, graph) - {name, *definition.requires}
        added = {
            other for other in implied if other in definitions and not _reaches(definitions, completed, other, name)
        }
        if added:
            completed[name] = _with_requires(definition, added)
    return completed


def _reaches(definitions: Definitions, completed: Definitions, start: str, goal: str) -> bool:
    """Return whether `start` requires `goal`, even indirectly; `completed` has the definitions extended so far."""
    todo, done = [start], set()
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in done:
            done.add(name)
            todo.extend(completed.get(name, definitions[name]).requires)
    return False


def _with_requires(definition: Definition, more: set[str]) -> Definition:
    return replace(definition, requires=tuple(sorted({*definition.requires, *more})))
