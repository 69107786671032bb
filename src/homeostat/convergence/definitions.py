"""From a stored revision to the desired graph of one shard. Revisions never change, so the results are kept."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from homeostat.model.desired import Definition, Identity
from homeostat.model.errors import Rejected
from homeostat.resources import groups
from homeostat.resources.graph import Indexed
from homeostat.resources.nested import CONTENT, FILES, POLICY, is_template
from homeostat.resources.registry import kind_of, resource_type
from homeostat.store.stacks import Desired
from homeostat.templates import Compiled, DynamicMap, compile_template, parse_template

MEMBERS_PER_SHARD = 1000
KEPT_MAX = 20_000
"""Definitions kept in memory: what a worker needs follows its shards, not the stack."""

REMOTE = "remote_stack"
"""Kind of resources that are stacks of their own."""
Graph = Mapping[str, Definition]


class Definitions:
    """Desired graphs by (stack, revision, shard). Safe to share between threads.

    kept_max — definitions in memory at most, each graph counting as one more; the newest graph stays in any case.
    """

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._kept: OrderedDict[tuple[str, int, int], Graph] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, identity: Identity, revision: int, shard: int, load: Callable[[], Desired]) -> Graph:
        """The graph; `load` is called only when it is not in memory."""
        key = (identity.stack_id, revision, shard)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        graph = compile_graph(load(), identity, shard)
        with self._lock:
            if key not in self._kept:
                self._size += 1 + len(graph)
            self._kept[key] = graph
            while self._size > self._kept_max and len(self._kept) > 1:
                self._size -= 1 + len(self._kept.popitem(last=False)[1])
        return graph


def compile_graph(desired: Desired, identity: Identity, shard: int) -> Graph:
    """Definitions of one shard. Fails: Rejected where the stored template does not compile any more."""
    if desired.kind == "group":
        return group_members(desired.template, shard)
    if desired.kind == "empty" or shard > 0:
        return {}
    if desired.kind == "chain":
        return with_implied(with_content(chain_members(desired.template), desired.files))
    return graph_of(compile_desired(desired, identity), desired.files)


def graph_of(compiled: Compiled, files: Mapping[str, str]) -> Graph:
    """Definitions of a template's stack with everything that they imply."""
    return with_implied(with_policies(with_files(with_content(compiled.definitions, files), files)))


def with_files(definitions: Graph, files: Mapping[str, str]) -> Graph:
    """Give stacks in other regions the files that their templates name: nothing else of this stack is known there."""
    remote = {name: each for name, each in definitions.items() if files and kind_of(each.type) == REMOTE}
    if not remote:
        return definitions
    given = {name: _with(each.properties, FILES, _named(each.properties, files)) for name, each in remote.items()}
    return {**definitions, **{name: replace(each, properties=given[name]) for name, each in remote.items()}}


def _named(properties: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    """Files whose names stand in the template, and those that stand in these; all where the template is not known."""
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
    """Put the update policies of groups among their properties: a change of one is a change of the group."""
    policies = {name: each for name, each in definitions.items() if each.update_policy}
    if not policies:
        return definitions
    given = {
        name: replace(each, properties=_with(each.properties, POLICY, each.update_policy))
        for name, each in policies.items()
        if resource_type(each.type).update_policy
    }
    return {**definitions, **given}


def compile_desired(desired: Desired, identity: Identity, *, strict: bool = True) -> Compiled:
    """The template of a revision, compiled. Fails: Rejected naming the place."""
    return compile_template(
        desired.template,
        identity=identity,
        parameters=desired.parameters,
        environment=desired.environment,
        files=desired.files,
        strict=strict,
    )


def template_of(type_name: str, files: Mapping[str, str]) -> dict[str, Any]:
    """The template that a resource type names. Fails: Rejected when it is not among the files of the stack."""
    if type_name not in files:
        message = f'The template "{type_name}" is not among the files of the stack: send its text in "files"'
        raise Rejected("StackValidationFailed", message)
    return _parsed(files[type_name])


@lru_cache(maxsize=8)
def _parsed(text: str) -> dict[str, Any]:
    """The members of a group of nested stacks are all made from one text. Nobody changes what is parsed."""
    return parse_template(text)


def with_content(definitions: Graph, files: Mapping[str, str]) -> Graph:
    """Give nested stacks, and groups and chains of them, a fingerprint of the files, so that an edit is a change."""
    of_files = {name: each for name, each in definitions.items() if is_template(each.type) or _of_templates(each)}
    if not of_files:
        return definitions
    fingerprint = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
    return {**definitions, **{name: _with_fingerprint(each, fingerprint) for name, each in of_files.items()}}


def _of_templates(each: Definition) -> bool:
    """Is it a group or a chain with nested stacks among its members?"""
    one, types = each.properties.get("resource_def"), each.properties.get("resources")
    if isinstance(one, Mapping):
        return is_template(str(one.get("type")))
    return isinstance(types, list) and any(isinstance(name, str) and is_template(name) for name in types)


def _with_fingerprint(each: Definition, fingerprint: str) -> Definition:
    """Among the properties of the resource itself; for a group, in the definition of its members."""
    one = each.properties.get("resource_def")
    if is_template(each.type) or not isinstance(one, Mapping):
        return replace(each, properties=_with(each.properties, CONTENT, fingerprint))
    inner = _with(one.get("properties") or {}, CONTENT, fingerprint)
    return replace(each, properties=_with(each.properties, "resource_def", _with(one, "properties", inner)))


def _with(tree: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """A copy of a map with one more entry, dynamic if it was."""
    kind = DynamicMap if isinstance(tree, DynamicMap) or isinstance(value, DynamicMap) else dict
    return kind({**tree, key: value})


def with_implied(definitions: Graph) -> Graph:
    """Add what types require without being told (a port its subnets, …), unless that would make a circle."""
    graph = Indexed({name: (each.type, each.properties) for name, each in definitions.items()})
    by_type: dict[str, Any] = {}
    found: dict[str, Definition] = {}
    for name, each in definitions.items():
        kind = by_type.setdefault(each.type, resource_type(each.type))
        implied = kind.implied_requires(each.properties, graph) - {name, *each.requires}
        kept = {other for other in implied if other in definitions and not _reaches(definitions, found, other, name)}
        found[name] = _with_requires(each, kept) if kept else each
    return found


def _reaches(definitions: Graph, found: Graph, start: str, goal: str) -> bool:
    """Does `start` require `goal`, directly or not?"""
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
    """The revision of a group's stack: one definition and a count, never N copies of text (CV15)."""
    shards = -(-groups.names_end(group["count"], group["skip"]) // MEMBERS_PER_SHARD)
    names = ("resource_def", "index_var", "count", "skip", "earlier", "rollout")
    return Desired("group", {name: group[name] for name in names if name in group}, shards=max(shards, 1))


def group_members(template: groups.Group, shard: int) -> Graph:
    """Definitions of the members whose numbers fall into one shard; what the others are costs nothing."""
    low = shard * MEMBERS_PER_SHARD
    found = {}
    for name, one in groups.definitions_between(template, low, low + MEMBERS_PER_SHARD):
        member = groups.member_definition(one, name, template["index_var"])
        properties = member.get("properties") or {}
        found[name] = Definition(name, member["type"], properties, member.get("metadata"), static=True)
    return found


def chain_desired(values: Mapping[str, Any]) -> Desired:
    """The revision of a chain's stack. values — properties of the chain, with defaults."""
    return Desired("chain", {name: values[name] for name in ("resources", "concurrent", "resource_properties")})


def chain_members(template: Mapping[str, Any]) -> Graph:
    """Definitions of the members of a chain: named by their places, each after the one before unless concurrent."""
    found = {}
    properties = {name: value for name, value in (template["resource_properties"] or {}).items() if value is not None}
    for place, type_name in enumerate(template["resources"]):
        requires = (str(place - 1),) if place and not template["concurrent"] else ()
        found[str(place)] = Definition(str(place), type_name, properties, requires=requires, static=True)
    return found


def touched_shards(before: Desired, after: Desired) -> set[int] | None:
    """Shards of a group that differ between two revisions; None when all may (anything but a change of members)."""
    if before.kind != "group" or after.kind != "group":
        return None
    old, new = before.template, after.template
    if old["index_var"] != new["index_var"]:
        return None
    touched = {int(name) // MEMBERS_PER_SHARD for name in set(old["skip"]) ^ set(new["skip"]) if name.isdigit()}
    for low, high in groups.differences(old, new):
        touched.update(range(low // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD)))
    return touched
