"""Groups and chains: their revisions, the definitions of their members, and the members' shards."""

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
from homeostat.store.database import Database
from homeostat.store.shards.shards import ShardChange
from homeostat.store.stacks.contents import Content, encode_template
from homeostat.store.stacks.revisions import Copied, NewRevision
from homeostat.templates import DynamicMap, declared_in
from homeostat.templates.functions.references import GetResource
from homeostat.templates.registry import Registry, is_template
from homeostat.templates.tree import Context
from homeostat.templates.weights import VALUE_WEIGHT

MEMBERS_PER_SHARD = 1000
"""Members of a group in one shard: a range of so many numbers."""


def shard_of(name: str, shards: int) -> int:
    """Return the number of the shard in which a resource of this name is, for a stack of `shards` shards."""
    member = member_of_name(name)
    return int(member) // MEMBERS_PER_SHARD if shards > 1 and member.isdecimal() else 0


def numbers_of(shard: int) -> tuple[int, int]:
    """Return the range of members in one shard of a group: from the first number on, below the second."""
    return shard * MEMBERS_PER_SHARD, (shard + 1) * MEMBERS_PER_SHARD


def shards_between(low: int, high: int) -> range:
    """Return the shards of the members numbered from `low` up to below `high`."""
    return range(low // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD))


def shard_count(group: GroupDefinition | None) -> int:
    """Return the number of shards of a stack: more than one only for large groups."""
    return 1 if group is None else max(-(-groups.end_of(group) // MEMBERS_PER_SHARD), 1)


def group_content(
    group: GroupDefinition, environment: Mapping[str, Any] = {}, files: Mapping[str, str] = {}
) -> Content:
    """Return the content of a group's stack: one definition and a count, never N copies of the text (CV15)."""
    return Content("group", group.encoded(), environment=environment, files=files)


def regrouped(db: Database, group: GroupDefinition, number: int, intent: str, size: int | None = None) -> NewRevision:
    """Return the next revision of a group's stack, with environment and files of its revision `number`."""
    template = encode_template(db.engine.dialect, group.encoded())
    return NewRevision("group", Copied(number, template), intent=intent, shards=shard_count(group), size=size)


def group_members(group: GroupDefinition, shard: int, registry: Registry, files: Mapping[str, str]) -> Definitions:
    """Return the definitions of the members in one shard; no other members are built."""
    low = shard * MEMBERS_PER_SHARD
    definitions = {}
    numbered: dict[int, bool] = {}
    for name, shared in groups.definitions_between(group, low, low + MEMBERS_PER_SHARD):
        if id(shared) not in numbered:
            numbered[id(shared)] = groups.is_numbered(shared, group.index_var)
        member = member_of(group, shared, name, numbered=numbered[id(shared)])
        further = {section: member[section] for section in groups.FURTHER_SECTIONS if section in member}
        definition = Definition(name, member["type"], member.get("properties") or {}, static=True, **further)
        definitions[name] = with_policy(_member(registry.applied(definition), files))
        if member["type"] == BalancedServer.name:
            definitions[name] = _balanced(definitions[name], registry, files)
        for place, companion in groups.companions_of(group, name):
            definitions[place] = _companion(place, name, companion)
    return definitions


def group_weight(group: GroupDefinition, shard: int, most: int, *, written: bool) -> int:
    """Return the weight of the properties of one shard's members, without building the members.

    Args:
        most: Counting stops beyond this weight.
        written: Count shared texts for each member, as in written output; otherwise count only each member's own
            texts.
    """
    low = shard * MEMBERS_PER_SHARD
    total, index_var = 0, group.index_var
    weights: dict[int, int] = {}
    for _, shared in groups.definitions_between(group, low, low + MEMBERS_PER_SHARD):
        if id(shared) not in weights:
            weights[id(shared)] = _weight(shared.get("properties"), index_var, written=written)
        total += weights[id(shared)]
        if total > most:
            break
    return total


def _weight(value: Any, index_var: str | None, *, written: bool) -> int:
    """Weigh each part of a value, and its texts if `written` or if they contain the member's number."""
    if isinstance(value, str):
        return VALUE_WEIGHT + (len(value) if written or (index_var is not None and index_var in value) else 0)
    if isinstance(value, Mapping):
        return VALUE_WEIGHT + sum(VALUE_WEIGHT + _weight(item, index_var, written=written) for item in value.values())
    if isinstance(value, list | tuple):
        return VALUE_WEIGHT + sum(_weight(item, index_var, written=written) for item in value)
    return VALUE_WEIGHT


def _companion(name: str, member: str, companion: Companion) -> Definition:
    """Return the definition of a companion resource: created after its member, and deleted before it."""
    definition, path = companion.resource_def, ("resources", name, "properties", companion.member)
    of_member = {companion.member: GetResource("get_resource", member, path, Context())}
    return Definition(
        name, definition["type"], DynamicMap({**definition["properties"], **of_member}), requires=(member,)
    )


def member_of(group: GroupDefinition, shared: Mapping[str, Any], name: str, *, numbered: bool = True) -> dict[str, Any]:
    """Return the definition of one member of a group, with name, id and index if the member is a node.

    A definition that is not `numbered` does not contain the member's number: its values are shared by all members.
    """
    member = groups.member_definition(shared, name, group.index_var if numbered else None)
    nodes = group.nodes
    if nodes is None:
        return member
    properties = member["properties"]
    for word, value in replacements(nodes.format, nodes.seed, int(name) + 1).items():
        properties = groups.replaced(properties, value, word)
    return {**member, "properties": properties}


def _balanced(definition: Definition, registry: Registry, files: Mapping[str, str]) -> Definition:
    """Return the definition of a server behind load balancers; its server is adapted like a plain member."""
    server = registry.applied(Definition(SERVER, SCALED, definition.properties[SERVER], static=True))
    return replace(definition, properties={**definition.properties, SERVER: _without_zone(server, files).properties})


def _member(definition: Definition, files: Mapping[str, str]) -> Definition:
    """Return the definition of a member, without the properties meant for nested stacks if it is none."""
    if is_template(definition.type):
        definition = _without_zone(definition, files)
        return with_facade(definition) if needs_facade(definition.type, files) else definition
    if CONTENT not in definition.properties:
        return definition
    return _without(definition, CONTENT)


def _without_zone(definition: Definition, files: Mapping[str, str]) -> Definition:
    """Drop the availability zone of a member of a scaling group whose template has no parameter for it."""
    if definition.template_type != SCALED or ZONE not in definition.properties or definition.type not in files:
        return definition
    if ZONE in declared_in(parsed_template(files[definition.type]), "parameters"):
        return definition
    return _without(definition, ZONE)


def _without(definition: Definition, name: str) -> Definition:
    properties = {key: value for key, value in definition.properties.items() if key != name}
    return replace(definition, properties=properties)


def named_content(kind: SoftwareDeploymentGroup, values: Mapping[str, Any], *, new: bool) -> Content:
    """Return the content of the stack of a group of deployments.

    Args:
        values: Properties of the group, with defaults.
        new: Whether the stack does not exist yet.
    """
    return Content("template", kind.child_template(values, new=new))


def chain_content(values: Mapping[str, Any]) -> Content:
    """Return the content of a chain's stack; `values` are the properties of the chain, with defaults."""
    return Content("chain", {name: values[name] for name in ("resources", "concurrent", "resource_properties")})


def chain_members(template: Mapping[str, Any], registry: Registry) -> Definitions:
    """Return the definitions of the members of a chain, named by their places.

    Each member requires its predecessor, unless the chain is concurrent.
    """
    members = {}
    properties = {name: value for name, value in (template["resource_properties"] or {}).items() if value is not None}
    for place, type_name in enumerate(template["resources"]):
        requires = (str(place - 1),) if place and not template["concurrent"] else ()
        definition = Definition(str(place), type_name, properties, requires=requires, static=True)
        members[str(place)] = registry.applied(definition)
    return members


def leaves_alone(group: GroupDefinition | None) -> bool:
    """Return whether a rolling update suspends healing of the members."""
    return group is not None and group.series is not None and HEALING in group.series.suspended


def batch_shards(group: GroupDefinition, asked: Reports) -> set[int]:
    """Return the shards with members that have to report; all shards if the group is being created."""
    ranges = batch_of(group) if asked.count is None else ((0, groups.end_of(group)),)
    return {shard for low, high in ranges for shard in shards_between(low, high)}


def touched_shards(before: Content, after: Content) -> dict[int, ShardChange] | None:
    """Return the shards of a group that differ between two revisions, by number.

    None if any shard may differ: more than the members has changed, or healing of members was suspended and is not any
    more.
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
    left, right = sorted(groups.skipped_below(group.skip) for group in (old, new))
    if left < right:
        changed |= dict.fromkeys(range(left // MEMBERS_PER_SHARD, -(-right // MEMBERS_PER_SHARD)), 0)
    end = groups.end_of(old)
    for low, high in groups.differences(old, new):
        for number in range(max(low, left) // MEMBERS_PER_SHARD, -(-high // MEMBERS_PER_SHARD)):
            existing = _members_of(old, number, low, min(high, end))
            changed[number] = changed.get(number, 0) + existing
    return {number: ShardChange(_members_of(old, number, 0, end), count) for number, count in changed.items()}


def reached_shards(group: GroupDefinition) -> set[int]:
    """Return the shards with members that have the newest definition."""
    reached, low = set[int](), 0
    end = groups.end_of(group)
    for first, last, _ in [*groups.earlier_runs(group), (end, end, {})]:
        if low < first:
            reached.update(shards_between(low, first))
        low = last
    return reached


def _members_of(group: GroupDefinition, shard: int, low: int, high: int) -> int:
    """Count the members of one shard with numbers from `low` on, below `high`."""
    first, end = numbers_of(shard)
    return groups.count_in([(max(low, first), min(high, end))], group.skip)
