"""A group as a template of its own stack lists its members: what each of them is, and who is not among them. Pure.

The stack of a group is shown as a template that lists every member. A user who sends it back changed means exactly that
list (ADR 0096): members that are not in it leave, and those that it defines otherwise than the group does have
definitions of their own.
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
"""The deletion policy of a member that says none."""


def plain(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with all that users can say of it, and nothing that means the same as if it were left out."""
    found: dict[str, Any] = {"type": one["type"]}
    properties = public_properties(one.get("properties") or {})
    found["properties"] = {name: value for name, value in properties.items() if value is not None}
    further = {name: one[name] for name in FURTHER_SECTIONS if one.get(name)}
    if str(further.get("deletion_policy", DELETED)).capitalize() == DELETED:
        further.pop("deletion_policy", None)
    return found | further


def as_listed(before: GroupDefinition, listed: Listed) -> GroupDefinition:
    """Return the group that has these members and no others, once all batches are done.

    Args:
        before: The group as its newest revision says.
        listed: All its members.

    Raises:
        Rejected: A member cannot have its name; the error names its place.
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
    """Check that new members have the numbers that the group itself could give them, or some that have left."""
    new = [number for number in numbers if not groups.is_member(str(number), before)]
    low, end = groups.skipped_below(before.skip), groups.names_end(before.count + len(new), before.skip)
    for number in new:
        if not low <= number < end:
            message = f"The next members of this group are named by numbers from {low} on, below {end}"
            raise invalid(message, "resources", str(number))


def _own(before: GroupDefinition, listed: Mapping[int, Mapping[str, Any]]) -> tuple[RangedDefinition, ...]:
    """Return the definitions of the members that have another one than the group, in the order of their numbers."""
    parts: list[tuple[Mapping[str, Any], list[int]]] = []
    for number, one in listed.items():
        made = _definition(before, str(number), one)
        if made == before.resource_def:
            continue
        numbers = next((numbers for each, numbers in parts if each == made), None)
        if numbers is None:
            parts.append((made, numbers := []))
        numbers.append(number)
    return tuple(RangedDefinition(made, _ranges(numbers)) for made, numbers in parts)


def _ranges(numbers: Iterable[int]) -> tuple[Range, ...]:
    """Return the ranges of numbers, which come in order."""
    found: list[Range] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return tuple(found)


def _definition(before: GroupDefinition, name: str, listed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the definition that a member is to have in the end.

    One that is listed as it is goes on to what it is to have anyway, where batches have not reached it yet.
    """
    alike = before.resource_def
    if not groups.is_member(name, before):
        return alike if listed == _shown(before, alike, name) else _with_internal(listed, alike)
    present, final = groups.definition_of(before, name), groups.final_definition_of(before, name)
    if listed == _shown(before, present, name):
        return final
    return alike if listed == _shown(before, alike, name) else _with_internal(listed, present)


def _shown(group: GroupDefinition, one: Mapping[str, Any], name: str) -> dict[str, Any]:
    return plain(groups.member_definition(one, name, group.index_var))


def _with_internal(listed: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with what no template can say of it, as that of a member of the same type has it."""
    if present["type"] != listed["type"]:
        return dict(listed)
    internal = {name: value for name, value in (present.get("properties") or {}).items() if name in INTERNAL}
    return {**listed, "properties": {**listed["properties"], **internal}}


def unredacted(value: Any, shown: Any, known: Any) -> Any:
    """Return a value in which everything that is as it was shown is as it is known.

    Hidden values are shown as asterisks: who sends the rest of a template back does not mean these.

    Args:
        value: What was sent.
        shown: What stood there, without hidden values.
        known: The same with them.
    """
    if value == shown:
        return known
    if isinstance(value, Mapping) and isinstance(shown, Mapping) and isinstance(known, Mapping):
        return {
            name: unredacted(item, shown[name], known[name]) if name in shown and name in known else item
            for name, item in value.items()
        }
    lists = isinstance(value, list) and isinstance(shown, list) and isinstance(known, list)
    if lists and len(value) == len(shown) == len(known):
        return [unredacted(*each) for each in zip(value, shown, known, strict=True)]
    return value


def kept_own(before: GroupDefinition | None, wanted: GroupDefinition) -> GroupDefinition:
    """Return the group with the definitions that single members have of their own, as long as that of all stays.

    Args:
        before: The group as its newest revision says.
        wanted: What it is to be by the definition of all its members.
    """
    if before is None or before.resource_def != wanted.resource_def or before.nodes is not None:
        return wanted
    kept = ((each.resource_def, _kept(before, wanted, each.numbers)) for each in before.own)
    own = tuple(RangedDefinition(one, numbers) for one, numbers in kept if numbers)
    return replace(wanted, own=own) if own else wanted


def _kept(before: GroupDefinition, wanted: GroupDefinition, ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return these ranges of numbers without those of members that leave, so that no later one inherits from them."""
    numbers = (number for low, high in ranges for number in range(low, high))
    names = ((str(number), number) for number in numbers)
    return _ranges(n for name, n in names if groups.is_member(name, before) and groups.is_member(name, wanted))


def own_as_earlier(group: GroupDefinition) -> GroupDefinition:
    """Return the same group in which what single members have of their own is a definition that they had before."""
    if group.nodes is not None:
        return group
    runs: list[Run] = [run for run in groups.runs_with_own(group) if run[2] != group.resource_def]
    return groups.with_earlier(replace(group, own=()), runs)
