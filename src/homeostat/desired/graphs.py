"""Compiling a stored revision to the desired graph of one shard. Revisions never change, so the results are cached."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from homeostat.desired.cache import Cache
from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected
from homeostat.resources import groups
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.families.scaling import SCALED, ZONE
from homeostat.resources.graph import Indexed
from homeostat.resources.nested import CONTENT, FACADE, FILES, POLICY, FromTemplate, NestedStack, public_properties
from homeostat.resources.registry import kind_of, type_of, types
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks.revisions import Desired
from homeostat.templates import (
    Compiled,
    DynamicMap,
    Parameter,
    compile_template,
    declared_in,
    environments,
    is_dynamic,
    parse_template,
)
from homeostat.templates.environments import effective, nested_environment, shared_of
from homeostat.templates.hidden_parameters import HiddenValues
from homeostat.templates.registry import ALIASES, Registry, is_template
from homeostat.templates.tree import Allowance

MEMBERS_PER_SHARD = 1000
"""Members of a group in one shard: those whose numbers are in one range of so many."""


def shard_of(name: str, shards: int) -> int:
    """Return the number of the shard in which a resource of this name is, for a stack of `shards` shards."""
    return int(name) // MEMBERS_PER_SHARD if shards > 1 and name.isdecimal() else 0


def numbers_of(shard: int) -> tuple[int, int]:
    """Return the range of members that one shard of a group has: from the first number on, below the second."""
    return shard * MEMBERS_PER_SHARD, (shard + 1) * MEMBERS_PER_SHARD


CACHE_MAX = 20_000
"""Definitions kept in memory. A worker needs those of its shards, not of whole stacks."""

PARSED_MAX = 4_000_000
"""Characters of the template files whose parsed content is kept in memory."""
_PARSED: Cache[str, tuple[int, dict[str, Any]]] = Cache(PARSED_MAX, lambda parsed: parsed[0])

REMOTE = "remote_stack"
"""Kind of resources that are stacks in other regions or clouds."""
Graph = Mapping[str, Definition]
"""Name of a resource -> its definition."""


class DesiredGraphs:
    """Cache of desired graphs by (stack, revision, shard). Safe to share between threads."""

    def __init__(self, cache_max: int = CACHE_MAX) -> None:
        """Begin empty; `cache_max` is the number of definitions kept at most, where each graph counts as one more."""
        self._cache: Cache[tuple[str, int, int], Graph] = Cache(cache_max, lambda graph: 1 + len(graph))

    def get(self, identity: Identity, revision: int, shard: int, load: Callable[[], Desired]) -> Graph:
        """Return the graph of a shard; `load` reads the revision, and is called only when the graph is not cached."""
        key = (identity.stack_id, revision, shard)
        return self._cache.get(key, lambda: compile_graph(load(), identity, shard))


def compile_graph(desired: Desired, identity: Identity, shard: int) -> Graph:
    """Return the definitions of one shard.

    Raises:
        Rejected: The stored template does not compile any more.
    """
    if desired.kind == "group":
        return group_members(desired.template, shard, registry_of(desired.environment), desired.files)
    if desired.kind == "empty" or shard > 0:
        return {}
    if desired.kind == "chain":
        members = chain_members(desired.template, registry_of(desired.environment))
        return with_implied(with_content(members, desired))
    return graph_of(compile_desired(desired, identity), desired)


def graph_of(compiled: Compiled, desired: Desired) -> Graph:
    """Return the definitions of a compiled template with everything they imply; `desired` is what it was compiled from.

    Fingerprints, files and policies become properties, so that a change of one is a change of the resource.
    """
    definitions = with_facades(with_content(compiled.definitions, desired), desired.files)
    return with_implied(with_policies(with_files(definitions, desired.files)))


def registry_of(environment: Mapping[str, Any]) -> Registry:
    """Return the resource registry of a stored environment."""
    shared = {**ALIASES, **shared_of(environment, "resource_registry")}
    return Registry(environment.get("resource_registry") or {}, shared, types().__contains__)


def with_files(definitions: Graph, files: Mapping[str, str]) -> Graph:
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


def with_policies(definitions: Graph) -> Graph:
    """Add the update policies of groups to their properties, so that a change of one is a change of the group."""
    policies = {name: each for name, each in definitions.items() if each.update_policy}
    if not policies:
        return definitions
    added = {
        name: replace(each, properties=_with(each.properties, POLICY, each.update_policy))
        for name, each in policies.items()
        if type_of(each.type).update_policy
    }
    return {**definitions, **added}


def compile_desired(
    desired: Desired, identity: Identity, *, strict: bool = True, allowance: Allowance | None = None
) -> Compiled:
    """Compile the template of a revision, with the types that its environment names.

    Args:
        desired: The revision, of kind `template`.
        identity: Stack for which it is compiled; its names feed the pseudo parameters.
        strict: As in `compile_template`.
        allowance: As in `compile_template`.

    Raises:
        Rejected: The template or a parameter is wrong; the error names the place.
    """
    compiled = compile_template(
        desired.template,
        identity=identity,
        parameters=desired.parameters,
        environment=effective(desired.environment),
        files=desired.files,
        facade=desired.environment.get(environments.FACADE),
        strict=strict,
        allowance=allowance,
    )
    registry = registry_of(desired.environment)
    definitions = {name: registry.applied(each) for name, each in compiled.definitions.items()}
    parameters = _with_inherited(compiled.parameters, environments.inherited(desired.environment))
    environment = environments.user_sections(desired.environment)
    return replace(compiled, parameters=parameters, definitions=definitions, environment=environment)


def _with_inherited(parameters: Mapping[str, Parameter], hidden: HiddenValues) -> Mapping[str, Parameter]:
    """Hide parameters that hold a hidden value of a stack above this one, whatever the template says about them."""
    if not hidden.texts:
        return parameters
    return {
        name: replace(each, schema=replace(each.schema, hidden=True)) if hidden.among([each.value]).texts else each
        for name, each in parameters.items()
    }


def template_of(type_name: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the parsed template that a resource type names.

    Raises:
        Rejected: It is not among the files of the stack, or is no template; the error names the file.
    """
    if type_name not in files:
        message = f'The template "{type_name}" is not among the files of the stack: send its text in "files"'
        raise Rejected("StackValidationFailed", message)
    try:
        return _parsed(files[type_name])
    except Rejected as error:
        message = f'The file "{type_name}" is not a template: {error.detail} Send its text in "files".'
        raise Rejected(error.fault, message, path=error.path) from error


def _parsed(text: str) -> dict[str, Any]:
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


def with_content(definitions: Graph, desired: Desired) -> Graph:
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
    return nested_environment(environment, registry, each.name, each.called or each.type)


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


def with_facades(definitions: Graph, files: Mapping[str, str]) -> Graph:
    """Add to nested stacks the sections of their own definition that their templates read by `resource_facade`.

    They become a property, so that a change of one is a change of the resource.
    """
    readers = {name: each for name, each in definitions.items() if _needs_facade(each.type, files)}
    return {**definitions, **{name: _with_facade(each) for name, each in readers.items()}} if readers else definitions


def _needs_facade(type_name: str, files: Mapping[str, str]) -> bool:
    text = files.get(type_name, "") if is_template(type_name) else ""
    return "resource_facade" in text or "ResourceFacade" in text


def _with_facade(each: Definition) -> Definition:
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


def with_implied(definitions: Graph) -> Graph:
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


def _reaches(definitions: Graph, found: Graph, start: str, goal: str) -> bool:
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


def group_desired(group: groups.Group) -> Desired:
    """Return the revision of a group's stack: one definition and a count, never N copies of text (CV15)."""
    shards = -(-groups.names_end(group["count"], group["skip"]) // MEMBERS_PER_SHARD)
    names = ("resource_def", "index_var", "count", "skip", "earlier", "rollout")
    return Desired("group", {name: group[name] for name in names if name in group}, shards=max(shards, 1))


def group_members(template: groups.Group, shard: int, registry: Registry, files: Mapping[str, str]) -> Graph:
    """Return the definitions of the members in one shard; only these are built."""
    low = shard * MEMBERS_PER_SHARD
    found = {}
    for name, one in groups.definitions_between(template, low, low + MEMBERS_PER_SHARD):
        member = groups.member_definition(one, name, template["index_var"])
        properties = member.get("properties") or {}
        definition = Definition(name, member["type"], properties, member.get("metadata"), static=True)
        found[name] = _member(registry.applied(definition), files)
    return found


def _member(each: Definition, files: Mapping[str, str]) -> Definition:
    """Return the definition of a member, with the properties that only nested stacks need for those alone."""
    if is_template(each.type):
        each = _without_zone(each, files)
        return _with_facade(each) if _needs_facade(each.type, files) else each
    if CONTENT not in each.properties:
        return each
    return replace(each, properties={name: value for name, value in each.properties.items() if name != CONTENT})


def _without_zone(each: Definition, files: Mapping[str, str]) -> Definition:
    """Drop the availability zone of a member of a scaling group whose template has no parameter for it."""
    if each.called != SCALED or ZONE not in each.properties or each.type not in files:
        return each
    if ZONE in declared_in(_parsed(files[each.type]), "parameters"):
        return each
    return replace(each, properties={name: value for name, value in each.properties.items() if name != ZONE})


def size_of(desired: Desired) -> int:
    """Return how many resources a revision declares.

    Those whose condition is false are counted, those of nested stacks are not.
    """
    if desired.kind == "group":
        return groups.size_of(desired.template)
    if desired.kind == "chain":
        return len(desired.template["resources"])
    return len(declared_in(desired.template, "resources")) if desired.kind == "template" else 0


def template_text(desired: Desired, definitions: Graph) -> dict[str, Any]:
    """Return the template of a revision as users gave it, or for a group or chain one that lists all its members.

    Args:
        desired: The revision.
        definitions: Its definitions, of all shards.
    """
    if desired.kind == "group":
        group = desired.template
        members: dict[str, Any] = {
            name: groups.member_definition(one, name, group["index_var"])
            for name, one in groups.definitions_between(group, 0, groups.names_end(group["count"], group["skip"]))
        }
    elif desired.kind == "chain":
        members = {name: _member_text(each) for name, each in definitions.items()}
    else:
        return dict(desired.template)
    return {"heat_template_version": "2015-04-30", "resources": members}


def _member_text(definition: Definition) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": definition.called or definition.type}
    shown["properties"] = public_properties(definition.properties)
    return {**shown, "depends_on": list(definition.requires)} if definition.requires else shown


def named_desired(kind: SoftwareDeploymentGroup, values: Mapping[str, Any], *, new: bool) -> Desired:
    """Return the revision of the stack of a group of deployments.

    Args:
        kind: Type of the group.
        values: Properties of the group, with defaults.
        new: Whether the stack is yet to be made.
    """
    return Desired("template", kind.child_template(values, new=new))


def chain_desired(values: Mapping[str, Any]) -> Desired:
    """Return the revision of a chain's stack; `values` are the properties of the chain, with defaults."""
    return Desired("chain", {name: values[name] for name in ("resources", "concurrent", "resource_properties")})


def chain_members(template: Mapping[str, Any], registry: Registry) -> Graph:
    """Return the definitions of the members of a chain, named by their places.

    Each requires the one before it, unless the chain is concurrent.
    """
    found = {}
    properties = {name: value for name, value in (template["resource_properties"] or {}).items() if value is not None}
    for place, type_name in enumerate(template["resources"]):
        requires = (str(place - 1),) if place and not template["concurrent"] else ()
        definition = Definition(str(place), type_name, properties, requires=requires, static=True)
        found[str(place)] = registry.applied(definition)
    return found


def touched_shards(before: Desired, after: Desired) -> dict[int, ShardChange] | None:
    """Return the shards of a group that differ between two revisions, by number.

    None where any shard may differ: when more has changed than the members.
    """
    if before.kind != "group" or after.kind != "group" or before.environment != after.environment:
        return None
    old, new = before.template, after.template
    if old["index_var"] != new["index_var"]:
        return None
    skipped = set(old["skip"]) ^ set(new["skip"])
    changed = {int(name) // MEMBERS_PER_SHARD: 0 for name in skipped if name.isdigit()}
    end = groups.names_end(old["count"], old["skip"])
    for low, high in groups.differences(old, new):
        for number in range(low // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD)):
            there = _members_of(old, number, low, min(high, end))
            changed[number] = changed.get(number, 0) + there
    return {number: ShardChange(_members_of(old, number, 0, end), count) for number, count in changed.items()}


def _members_of(group: groups.Group, shard: int, low: int, high: int) -> int:
    """Count the members of one shard with numbers from `low` on, below `high`."""
    first, end = numbers_of(shard)
    return groups.members_in([(max(low, first), min(high, end), {})], group["skip"])
