"""What the definitions of a template imply: further properties and requirements.

Fingerprints, files, policies and facades become properties, so that a change of one is a change of the resource.
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
from homeostat.store.stacks.revisions import Desired
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


def graph_of(compiled: Compiled, desired: Desired) -> Definitions:
    """Return the definitions of a compiled template with everything they imply; `desired` is what it was compiled from.

    Fingerprints, files and policies become properties, so that a change of one is a change of the resource.
    """
    definitions = with_facades(with_content(compiled.definitions, desired), desired.files)
    return with_implied(with_balancers(with_policies(with_files(definitions, desired.files))))


def with_files(definitions: Definitions, files: Mapping[str, str]) -> Definitions:
    """Add to stacks in other regions the files that their templates name: nothing else of this stack is known there."""
    remote = {name: each for name, each in definitions.items() if files and kind_of(each.type) == REMOTE}
    if not remote:
        return definitions
    added = {name: _with(each.properties, FILES, files_named(each.properties, files)) for name, each in remote.items()}
    return {**definitions, **{name: replace(each, properties=added[name]) for name, each in remote.items()}}


def files_named(properties: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that a remote stack needs.

    These are the files whose names occur in its template, and in turn in those files; all of them where the template is
    not known yet.
    """
    template = properties.get("template")
    if not isinstance(template, str):
        return dict(files)
    found: dict[str, str] = {}
    todo = [template]
    while todo:
        text = todo.pop()
        more = {name: content for name, content in files.items() if name not in found and name in text}
        found |= more
        todo += more.values()
    return found


def with_policies(definitions: Definitions) -> Definitions:
    """Add the policies of groups to their properties, so that a change of one is a change of the group."""
    policies = {
        name: with_policy(each) for name, each in definitions.items() if each.update_policy or each.creation_policy
    }
    return {**definitions, **policies} if policies else definitions


def with_policy(each: Definition) -> Definition:
    """Return the definition of a group with its policies as properties, that of another resource as it is."""
    kind, properties = type_of(each.type), each.properties
    if each.update_policy and kind.update_policy:
        properties = _with(properties, POLICY, each.update_policy)
    if each.creation_policy and isinstance(kind, InstanceGroup):
        properties = _with(properties, CREATION, each.creation_policy)
    return each if properties is each.properties else replace(each, properties=properties)


def with_balancers(definitions: Definitions) -> Definitions:
    """Add the pools of load balancers to the properties of the groups behind them, which so follow their changes.

    Raises:
        Rejected: CircularDependencyException: a load balancer requires a group that is behind it.
    """
    found = {}
    for name, each in definitions.items():
        if not each.properties.get(NAMES) or not isinstance(type_of(each.type), InstanceGroup):
            continue
        # Names that are not known yet, or that no template may have, are left to the checks.
        names = [one for one in balancer_names(each.properties[NAMES]) if isinstance(one, str) and one in definitions]
        path = ("resources", name, "properties", NAMES)
        for balancer in names:
            if _reaches(definitions, {}, balancer, name):
                message = f"Circular Dependency Found: {name} is behind {balancer}, which requires it"
                raise Rejected("CircularDependencyException", message, path=path)
        pools = {balancer: GetAttr("get_attr", [balancer, POOLS], path, Context()) for balancer in names}
        balanced = {NAMES: names, BALANCERS: DynamicMap(pools)} if pools else {NAMES: names}
        properties = DynamicMap({**each.properties, **balanced})
        found[name] = replace(_with_requires(each, set(names)), properties=properties, static=False)
    return {**definitions, **found} if found else definitions


def with_content(definitions: Definitions, desired: Desired) -> Definitions:
    """Add a fingerprint to resources whose thing is a stack: of what that is made from besides their properties.

    So an edit of a file, or of the environment, is a change of the resource, and reaches the nested stack.
    """
    registry = registry_of(desired.environment)
    files = ""
    found = {}
    for name, each in definitions.items():
        if kind_of(each.type) != NestedStack.kind:
            continue
        inside = _inside(desired.environment, registry, each)
        files = files or _fingerprint_of_files(tuple(sorted(desired.files.items())))
        of_templates = isinstance(type_of(each.type), FromTemplate) or _of_templates(each, registry_of(inside))
        mark = _fingerprint([files, inside]) if _matters(inside) else files
        if of_templates or _matters(inside):
            found[name] = _with_fingerprint(each, mark, in_members=of_templates)
    return {**definitions, **found} if found else definitions


def _inside(environment: Mapping[str, Any], registry: Registry, each: Definition) -> dict[str, Any]:
    return nested_environment(environment, registry, each.name, each.shown_type)


def _matters(environment: Mapping[str, Any]) -> bool:
    """Whether an environment says anything that stacks are made from; event sinks are not."""
    return any(content for name, content in environment.items() if name != environments.SINKS)


@lru_cache(maxsize=16)
def _fingerprint_of_files(files: tuple[tuple[str, str], ...]) -> str:
    """Return the fingerprint of a stack's files; cached, since all stacks of a tree have the same files."""
    return _fingerprint(list(files))


def _fingerprint(content: Any) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _of_templates(each: Definition, registry: Registry) -> bool:
    """Whether a resource is a group or a chain with nested stacks among its members."""
    one, types = _alike(each), each.properties.get("resources")
    named = [one.get("type")] if isinstance(one, Mapping) else types if isinstance(types, list) else []
    return any(isinstance(name, str) and is_template(registry.resolve(name, "0").type) for name in named)


def _with_fingerprint(each: Definition, fingerprint: str, *, in_members: bool) -> Definition:
    """Return a definition with a fingerprint as one of its properties.

    For a group of nested stacks it stands in the definition of the members, which are what has to be updated.
    """
    one, place = _alike(each), member_property(each)
    if is_template(each.type) or not isinstance(one, Mapping) or not in_members:
        return replace(each, properties=_with(each.properties, CONTENT, fingerprint))
    inner = _with(one.get("properties") or {}, CONTENT, fingerprint)
    return replace(each, properties=_with(each.properties, place, _with(one, "properties", inner)))


def _alike(each: Definition) -> Any:
    """Return the definition of each member of a group, as far as it is known; None for other resources."""
    return each.properties.get(member_property(each))


def member_property(each: Definition) -> str:
    """Return the name of the property with the definition of each member of a group; "" where there is none."""
    kind = type_of(each.type)
    return kind.member_property if isinstance(kind, NestedStack) else ""


def with_facades(definitions: Definitions, files: Mapping[str, str]) -> Definitions:
    """Add to nested stacks the sections of their own definition that their templates read by `resource_facade`.

    They become a property, so that a change of one is a change of the resource.
    """
    if not files:
        return definitions
    readers = {name: each for name, each in definitions.items() if needs_facade(each.type, files)}
    return {**definitions, **{name: with_facade(each) for name, each in readers.items()}} if readers else definitions


def needs_facade(type_name: str, files: Mapping[str, str]) -> bool:
    text = files.get(type_name, "") if is_template(type_name) else ""
    return "resource_facade" in text or "ResourceFacade" in text


def with_facade(each: Definition) -> Definition:
    sections = {
        "metadata": each.metadata or {},
        "deletion_policy": each.deletion_policy,
        "update_policy": dict(each.update_policy),
    }
    facade = DynamicMap(sections) if is_dynamic(sections["metadata"]) else sections
    properties = _with(each.properties, FACADE, facade)
    return replace(each, properties=properties, static=each.static and not is_dynamic(facade))


def _with(tree: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """Return a copy of a map with one more entry, dynamic if it or the entry was."""
    kind = DynamicMap if isinstance(tree, DynamicMap) or isinstance(value, DynamicMap) else dict
    return kind({**tree, key: value})


def with_implied(definitions: Definitions) -> Definitions:
    """Add requirements that follow from the types (a port requires the subnets of its network, …).

    One that would close a circle is left out: what the template says itself goes first.
    """
    graph = Indexed({name: (each.type, each.properties) for name, each in definitions.items()})
    by_type: dict[str, Any] = {}
    found: dict[str, Definition] = {}
    for name, each in definitions.items():
        kind = by_type.setdefault(each.type, type_of(each.type))
        implied = kind.implied_requires(each.properties, graph) - {name, *each.requires}
        added = {other for other in implied if other in definitions and not _reaches(definitions, found, other, name)}
        found[name] = _with_requires(each, added) if added else each
    return found


def _reaches(definitions: Definitions, found: Definitions, start: str, goal: str) -> bool:
    """Whether `start` requires `goal`, directly or through others; `found` has definitions completed so far."""
    todo, done = [start], set()
    while todo:
        name = todo.pop()
        if name == goal:
            return True
        if name not in done:
            done.add(name)
            todo.extend(found.get(name, definitions[name]).requires)
    return False


def _with_requires(each: Definition, more: set[str]) -> Definition:
    return replace(each, requires=tuple(sorted({*each.requires, *more})))
