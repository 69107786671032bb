"""The text and the size of a revision."""

from collections.abc import Iterator
from typing import Any

from homeostat.desired.compiling import Definitions
from homeostat.desired.members import member_of
from homeostat.model.desired import Definition
from homeostat.model.group import Companion, GroupDefinition
from homeostat.resources import groups
from homeostat.resources.nested import public_properties
from homeostat.store.stacks.contents import Content
from homeostat.templates import (
    declared_in,
)

GENERATED = {"heat_template_version": "2015-04-30"}
"""Further sections of a template that lists the members of a group or chain."""


def size_of(content: Content) -> int:
    """Return the number of resources that a revision declares.

    Resources with a false condition count, resources of nested stacks do not.
    """
    group = content.group
    if group is not None:
        count = groups.size_of(group)
        return count + groups.count_companions(group, count)
    if content.kind == "chain":
        return len(content.template["resources"])
    return len(declared_in(content.template, "resources")) if content.kind == "template" else 0


def template_text(content: Content, definitions: Definitions) -> dict[str, Any]:
    """Return the user's template of a revision, or for a group or chain a template that lists all its members.

    Args:
        definitions: The revision's definitions, of all shards.
    """
    group = content.group
    if group is not None:
        return {**GENERATED, "resources": dict(group_text(group))}
    if content.kind == "chain":
        return {**GENERATED, "resources": {name: _member_text(definition) for name, definition in definitions.items()}}
    return dict(content.template)


def group_text(group: GroupDefinition) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the members of a group, and their companion resources, as a template lists them."""
    for name, definition in groups.definitions_between(group, 0, groups.end_of(group)):
        member = member_of(group, definition, name)
        yield name, {**member, "properties": public_properties(member.get("properties") or {})}
        for place, companion in groups.companions_of(group, name):
            yield place, _companion_text(name, companion)


def _companion_text(member: str, companion: Companion) -> dict[str, Any]:
    definition = companion.resource_def
    return {
        "type": definition["type"],
        "properties": {**definition["properties"], companion.member: {"get_resource": member}},
    }


def _member_text(definition: Definition) -> dict[str, Any]:
    text: dict[str, Any] = {"type": definition.shown_type}
    text["properties"] = public_properties(definition.properties)
    return {**text, "depends_on": list(definition.requires)} if definition.requires else text
