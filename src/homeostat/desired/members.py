"""Groups and chains: their revisions, and the definitions of their members. Members of a group are in shards."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeostat.clustering.decisions.names import replacements
from homeostat.desired.compiling import Definitions, parsed_template
from homeostat.desired.implied import needs_facade, with_facade, with_policy
from homeostat.model.desired import Definition
from homeostat.model.group import Companion, GroupDefinition, Reports, batch_of
from homeostat.model.member_names import member_of_name
from homeostat.resources import groups
from homeostat.resources.families.balanced import SCALED, SERVER, BalancedServer
from homeostat.resources.families.deployment_groups import SoftwareDeploymentGroup
from homeostat.resources.families.scaling import ZONE
from homeostat.resources.instance_signals import HEALING
from homeostat.resources.nested import CONTENT
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks.revisions import Desired
from homeostat.templates import DynamicMap, declared_in
from homeostat.templates.functions.references import GetResource
from homeostat.templates.registry import Registry, is_template
from homeostat.templates.tree import Context
from homeostat.templates.weights import VALUE_WEIGHT

MEMBERS_PER_SHARD = 1000
"""Members of a group in one shard: those whose numbers are in one range of so many."""


def shard_of(name: str, shards: int) -> int:
    """Return the number of the shard in which a resource of this name is, for a stack of `shards` shards."""
    member = member_of_name(name)
    return int(member) // MEMBERS_PER_SHARD if shards > 1 and member.isdecimal() else 0


def numbers_of(shard: int) -> tuple[int, int]:
    """Return the range of members that one shard of a group has: from the first number on, below the second."""
    return shard * MEMBERS_PER_SHARD, (shard + 1) * MEMBERS_PER_SHARD


def shards_between(low: int, high: int) -> range:
    """Return the shards of the members numbered from `low` up to below `high`."""
    return range(low // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD))


def group_desired(group: GroupDefinition) -> Desired:
    """Return the revision of a group's stack: one definition and a count, never N copies of text (CV15)."""
    shards = -(-groups.end_of(group) // MEMBERS_PER_SHARD)
    return Desired("group", group.encoded(), shards=max(shards, 1))


def group_members(group: GroupDefinition, shard: int, registry: Registry, files: Mapping[str, str]) -> Definitions:
    """Return the definitions of the members in one shard; only these are built."""
    low = shard * MEMBERS_PER_SHARD
    found = {}
    numbered: dict[int, bool] = {}
    for name, one in groups.definitions_between(group, low, low + MEMBERS_PER_SHARD):
        if id(one) not in numbered:
            numbered[id(one)] = groups.is_numbered(one, group.index_var)
        member = member_of(group, one, name, numbered=numbered[id(one)])
        further = {section: member[section] for section in groups.FURTHER_SECTIONS if section in member}
        definition = Definition(name, member["type"], member.get("properties") or {}, static=True, **further)
        found[name] = with_policy(_member(registry.applied(definition), files))
        if member["type"] == BalancedServer.name:
            found[name] = _balanced(found[name], registry, files)
        for place, companion in groups.companions_of(group, name):
            found[place] = _companion(place, name, companion)
    return found


def group_weight(group: GroupDefinition, shard: int, most: int, *, written: bool) -> int:
    """Return what the properties of the members of one shard weigh, without building them.

    Args:
        group: The group.
        shard: Number of the shard.
        most: Beyond this, it is not counted to its end.
        written: Count the texts that members share each time, as they are written out; otherwise only what each has of
            its own.
    """
    low = shard * MEMBERS_PER_SHARD
    total, index_var = 0, group.index_var
    weights: dict[int, int] = {}
    for _, one in groups.definitions_between(group, low, low + MEMBERS_PER_SHARD):
        if id(one) not in weights:
            weights[id(one)] = _weight(one.get("properties"), index_var, written=written)
        total += weights[id(one)]
        if total > most:
            break
    return total


def _weight(value: Any, index_var: str | None, *, written: bool) -> int:
    """Weigh each part of a value, and its texts where they are written or a number stands in them."""
    if isinstance(value, str):
        return VALUE_WEIGHT + (len(value) if written or (index_var is not None and index_var in value) else 0)
    if isinstance(value, Mapping):
        return VALUE_WEIGHT + sum(VALUE_WEIGHT + _weight(item, index_var, written=written) for item in value.values())
    if isinstance(value, list | tuple):
        return VALUE_WEIGHT + sum(_weight(item, index_var, written=written) for item in value)
    return VALUE_WEIGHT


def _companion(name: str, member: str, companion: Companion) -> Definition:
    """Return the definition of a companion resource: it comes after its member, and goes before it."""
    one, path = companion.resource_def, ("resources", name, "properties", companion.member)
    of_member = {companion.member: GetResource("get_resource", member, path, Context())}
    return Definition(name, one["type"], DynamicMap({**one["properties"], **of_member}), requires=(member,))


def member_of(group: GroupDefinition, one: Mapping[str, Any], name: str, *, numbered: bool = True) -> dict[str, Any]:
    """Return the definition of one member of a group: of a node, with its name, its id and its index in it.

    Where it is not numbered, its number stands nowhere in it: it shares the values of all alike.
    """
    member = groups.member_definition(one, name, group.index_var if numbered else None)
    nodes = group.nodes
    if nodes is None:
        return member
    properties = member["properties"]
    for word, value in replacements(nodes.format, nodes.seed, int(name) + 1).items():
        properties = groups.replaced(properties, value, word)
    return {**member, "properties": properties}


def _balanced(each: Definition, registry: Registry, files: Mapping[str, str]) -> Definition:
    """Return the definition of a server behind load balancers; its server is changed as one without them is."""
    server = registry.applied(Definition(SERVER, SCALED, each.properties[SERVER], static=True))
    return replace(each, properties={**each.properties, SERVER: _without_zone(server, files).properties})


def _member(each: Definition, files: Mapping[str, str]) -> Definition:
    """Return the definition of a member, with the properties that only nested stacks need for those alone."""
    if is_template(each.type):
        each = _without_zone(each, files)
        return with_facade(each) if needs_facade(each.type, files) else each
    if CONTENT not in each.properties:
        return each
    return replace(each, properties={name: value for name, value in each.properties.items() if name != CONTENT})


def _without_zone(each: Definition, files: Mapping[str, str]) -> Definition:
    """Drop the availability zone of a member of a scaling group whose template has no parameter for it."""
    if each.template_type != SCALED or ZONE not in each.properties or each.type not in files:
        return each
    if ZONE in declared_in(parsed_template(files[each.type]), "parameters"):
        return each
    return replace(each, properties={name: value for name, value in each.properties.items() if name != ZONE})


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


def chain_members(template: Mapping[str, Any], registry: Registry) -> Definitions:
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


def leaves_alone(group: GroupDefinition | None) -> bool:
    """Return whether a rolling update keeps members from being healed."""
    return group is not None and group.series is not None and HEALING in group.series.suspended


def batch_shards(group: GroupDefinition, asked: Reports) -> set[int]:
    """Return the shards with members that have to report; of a group that is being made, all of them."""
    ranges = batch_of(group) if asked.count is None else ((0, groups.end_of(group)),)
    return {shard for low, high in ranges for shard in shards_between(low, high)}


def touched_shards(before: Desired, after: Desired) -> dict[int, ShardChange] | None:
    """Return the shards of a group that differ between two revisions, by number.

    None where any shard may differ: when more has changed than the members, or members were left alone that are to be
    healed now.
    """
    old, new = before.group, after.group
    if old is None or new is None or before.environment != after.environment:
        return None
    return touched_by(old, new)


def touched_by(old: GroupDefinition, new: GroupDefinition) -> dict[int, ShardChange] | None:
    """Return the shards that differ between two groups with the same environment, as `touched_shards` does."""
    if leaves_alone(old) and not leaves_alone(new):
        return None
    if old.index_var != new.index_var or old.companions != new.companions:
        return None
    skipped = set(old.skip) ^ set(new.skip)
    changed = {int(name) // MEMBERS_PER_SHARD: 0 for name in skipped if name.isdigit()}
    left, right = sorted(groups.skipped_below(each.skip) for each in (old, new))
    if left < right:
        changed |= dict.fromkeys(range(left // MEMBERS_PER_SHARD, -(-right // MEMBERS_PER_SHARD)), 0)
    end = groups.end_of(old)
    for low, high in groups.differences(old, new):
        for number in range(max(low, left) // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD)):
            there = _members_of(old, number, low, min(high, end))
            changed[number] = changed.get(number, 0) + there
    return {number: ShardChange(_members_of(old, number, 0, end), count) for number, count in changed.items()}


def reached_shards(group: GroupDefinition) -> set[int]:
    """Return the shards with members that have the newest definition."""
    found, low = set[int](), 0
    end = groups.end_of(group)
    for first, last, _ in [*groups.earlier_runs(group), (end, end, {})]:
        if low < first:
            found.update(shards_between(low, first))
        low = last
    return found


def _members_of(group: GroupDefinition, shard: int, low: int, high: int) -> int:
    """Count the members of one shard with numbers from `low` on, below `high`."""
    first, end = numbers_of(shard)
    return groups.count_in([(max(low, first), min(high, end))], group.skip)
