"""Groups as a template that lists every member: conversion in both directions. Pure.

The stack of a group is shown as a template that lists every member. A user who sends the template back with changes
means exactly this list (ADR 0096): members missing from the list leave, and members listed with another definition
than the group's get definitions of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeostat.model.errors import Rejected, invalid
from homeostat.model.group import GroupDefinition, Range, RangedDefinition
from homeostat.resources import groups
from homeostat.resources.groups import FURTHER_SECTIONS, Run
from homeostat.resources.nested import INTERNAL, public_properties

Listed = Mapping[str, Mapping[str, Any]]
"""Names of members -> their definitions: `{type, properties}` with the sections of `FURTHER_SECTIONS`."""
DELETED = "Delete"
"""The deletion policy of a member without this section."""


def plain(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition in a canonical form: only public properties, without nulls and default sections."""
    properties = public_properties(definition.get("properties") or {})
    required = {
        "type": definition["type"],
        "properties": {name: value for name, value in properties.items() if value is not None},
    }
    further = {name: definition[name] for name in FURTHER_SECTIONS if definition.get(name)}
    if str(further.get("deletion_policy", DELETED)).capitalize() == DELETED:
        further.pop("deletion_policy", None)
    return required | further


def as_listed(before: GroupDefinition, listed: Listed) -> GroupDefinition:
    """Return the group with exactly these members, as it will be after the last batch.

    Args:
        before: The group according to its newest revision.
        listed: All its members.

    Raises:
        Rejected: A member cannot have its name; the error has its place.
    """
    if before.nodes is not None or before.companions:
        raise Rejected(
            "NotSupported", "The stack of a cluster has no template of its own to change: update the cluster"
        )
    numbers = sorted(_number(name) for name in listed)
    _check_new(before, numbers)
    own = _own(before, {number: listed[str(number)] for number in numbers})
    skip = tuple(groups.skip_of(before, numbers))
    return GroupDefinition(before.resource_def, before.index_var, len(numbers), skip, own=own, left=before.left)


def _number(name: str) -> int:
    if not name.isdecimal() or str(int(name)) != name:
        raise invalid("Members of a group are named by numbers", "resources", name)
    return int(name)


def _check_new(before: GroupDefinition, numbers: Sequence[int]) -> None:
    """Check that new members have numbers that the group itself could assign, or numbers of former members."""
    new = [number for number in numbers if not groups.is_member(str(number), before)]
    low, end = groups.skipped_below(before.skip), groups.names_end(before.count + len(new), before.skip)
    for number in new:
        if not low <= number < end:
            message = f"The next members of this group are named by numbers from {low} on, below {end}"
            raise invalid(message, "resources", str(number))


def _own(before: GroupDefinition, listed: Mapping[int, Mapping[str, Any]]) -> tuple[RangedDefinition, ...]:
    """Return the definitions of the members that differ from the group's, in the order of their numbers."""
    parts: list[tuple[Mapping[str, Any], list[int]]] = []
    for number, entry in listed.items():
        definition = _definition(before, str(number), entry)
        if definition == before.resource_def:
            continue
        numbers = next((numbers for known, numbers in parts if known == definition), None)
        if numbers is None:
            parts.append((definition, numbers := []))
        numbers.append(number)
    return tuple(RangedDefinition(definition, _ranges(numbers)) for definition, numbers in parts)


def _ranges(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Return the ranges of numbers, which come in order."""
    ranges: list[Range] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)


def _definition(before: GroupDefinition, name: str, listed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the final definition of a listed member.

    A member listed with its present definition keeps its final definition, even if batches have not reached it yet.
    """
    alike = before.resource_def
    if not groups.is_member(name, before):
        return alike if listed == _shown(before, alike, name) else _with_internal(listed, alike)
    present, final = groups.definition_of(before, name), groups.final_definition_of(before, name)
    if listed == _shown(before, present, name):
        return final
    return alike if listed == _shown(before, alike, name) else _with_internal(listed, present)


def _shown(group: GroupDefinition, definition: Mapping[str, Any], name: str) -> dict[str, Any]:
    return plain(groups.member_definition(definition, name, group.index_var))


def _with_internal(listed: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """Return the listed definition with the internal properties of the present one, if the type is the same."""
    if present["type"] != listed["type"]:
        return dict(listed)
    internal = {name: value for name, value in (present.get("properties") or {}).items() if name in INTERNAL}
    return {**listed, "properties": {**listed["properties"], **internal}}


def unredacted(value: Any, redacted: Any, known: Any) -> Any:
    """Return the value with every part that equals the redacted text replaced by the known one.

    Hidden values are shown as asterisks: a user who sends back the rest of a template does not mean the asterisks.

    Args:
        value: The value sent by the user.
        redacted: The value as it was shown, without hidden values.
        known: The value with hidden values.
    """
    if value == redacted:
        return known
    if isinstance(value, Mapping) and isinstance(redacted, Mapping) and isinstance(known, Mapping):
        return {
            name: unredacted(item, redacted[name], known[name]) if name in redacted and name in known else item
            for name, item in value.items()
        }
    lists = isinstance(value, list) and isinstance(redacted, list) and isinstance(known, list)
    if lists and len(value) == len(redacted) == len(known):
        return [unredacted(*items) for items in zip(value, redacted, known, strict=True)]
    return value


def kept_own(before: GroupDefinition | None, wanted: GroupDefinition) -> GroupDefinition:
    """Return the group with the definitions of single members, provided that the common definition stays.

    Args:
        before: The group according to its newest revision.
        wanted: The new group according to its common definition.
    """
    if before is None or before.resource_def != wanted.resource_def or before.nodes is not None:
        return wanted
    kept = ((part.resource_def, _kept(before, wanted, part.numbers)) for part in before.own)
    own = tuple(RangedDefinition(definition, numbers) for definition, numbers in kept if numbers)
    return replace(wanted, own=own) if own else wanted


def _kept(before: GroupDefinition, wanted: GroupDefinition, ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges without numbers of leaving members, so that later members do not inherit their definitions."""
    numbers = (number for low, high in ranges for number in range(low, high))
    names = ((str(number), number) for number in numbers)
    return _ranges(n for name, n in names if groups.is_member(name, before) and groups.is_member(name, wanted))


def own_as_earlier(group: GroupDefinition) -> GroupDefinition:
    """Return the group with the definitions of single members turned into earlier definitions."""
    if group.nodes is not None:
        return group
    runs: list[Run] = [run for run in groups.runs_with_own(group) if run[2] != group.resource_def]
    return groups.with_earlier(replace(group, own=()), runs)
