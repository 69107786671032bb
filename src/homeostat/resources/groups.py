"""Members of a group of identical resources: their names, their definitions, and retired names.

The class of a group is `model.group.GroupDefinition`. Members are named by numbers, a companion resource of member 3 is
named `3-<name>`. Every function works on ranges of numbers: a group may have very many members.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count as counting
from itertools import islice, pairwise
from typing import Any

from homeostat.model.group import Companion, GroupDefinition, Range, RangedDefinition, Staged
from homeostat.model.member_names import companion_name, member_of_name

Run = tuple[int, int, Mapping[str, Any]]
"""A range of numbers (start, end without it), and the definition of its members."""


FURTHER_SECTIONS = ("metadata", "deletion_policy", "update_policy", "description")
"""Sections of a definition that members copy unchanged."""
BELOW = "<"
"""Prefix of an entry in a skip list that covers all lower numbers: `<3` skips 0, 1 and 2."""


def skipped_below(skip: Iterable[str]) -> int:
    """Return the number below which a skip list covers everything."""
    return max((int(name.removeprefix(BELOW)) for name in skip if name.startswith(BELOW)), default=0)


def is_skipped(name: str, skip: Collection[str]) -> bool:
    """Return whether no member may have this name."""
    return name in skip or (name.isdigit() and int(name) < skipped_below(skip))


def _single(skip: Iterable[str], low: int) -> list[int]:
    """Return the single numbers of a skip list, at least `low`."""
    return sorted({int(name) for name in skip if name.isdigit() and int(name) >= low})


def _folded(skip: Sequence[str]) -> list[str]:
    """Return an equal skip list, with one entry for the gapless numbers from 0 on."""
    low = skipped_below(skip)
    for number in _single(skip, low):
        if number != low:
            break
        low += 1
    rest = [name for name in skip if not name.startswith(BELOW) and not (name.isdigit() and int(name) < low)]
    return [f"{BELOW}{low}", *rest] if low else rest


def member_names(count: int, skip: Collection[str]) -> list[str]:
    """Return the `count` lowest numbers from 0, as texts, that are not in `skip`."""
    free = (name for name in map(str, counting(skipped_below(skip))) if name not in skip)
    return list(islice(free, count))


def names_end(count: int, skip: Collection[str]) -> int:
    """Return one more than the highest number among the names of `count` members, without listing them."""
    if not count:
        return 0
    low = skipped_below(skip)
    end = low + count
    for number in _single(skip, low):
        if number >= end:
            break
        end += 1
    return end


def names_between(count: int, skip: Collection[str], low: int, high: int) -> list[str]:
    """Return the names of `member_names(count, skip)` whose number is at least `low` and below `high`."""
    numbers = range(max(low, skipped_below(skip)), min(high, names_end(count, skip)))
    return [name for name in map(str, numbers) if name not in skip]


def numbers_below(skip: Collection[str], end: int) -> int:
    """Return how many numbers below `end` a skip list names."""
    low = skipped_below(skip)
    return min(low, end) + sum(number < end for number in _single(skip, low))


def is_member(name: str, group: GroupDefinition | None) -> bool:
    """Return whether this is the name of a member of the group; None is a group without members."""
    return group is not None and is_name(name, group.count, group.skip)


def is_name(name: str, count: int, skip: Collection[str]) -> bool:
    """Return whether this is the name of one of `count` members."""
    return name.isdigit() and not is_skipped(name, skip) and int(name) < names_end(count, skip)


def is_defined(name: str, defined: Mapping[str, Any] | Collection[str]) -> bool:
    """Return whether a stack has a resource of this name: `defined` are its names, or `{count, skip}` of a group."""
    return is_name(name, defined["count"], defined["skip"]) if isinstance(defined, Mapping) else name in defined


def companions_of(group: GroupDefinition, member: str) -> Iterator[tuple[str, Companion]]:
    """Yield the companion resources of a member with their names."""
    number = int(member)
    for companion in group.companions:
        if any(low <= number < high for low, high in companion.numbers):
            yield companion_name(member, companion.name), companion


def companion_named(group: GroupDefinition, name: str) -> Companion | None:
    """Return the companion resource of this name; None if there is none."""
    member = member_of_name(name)
    if member == name or not is_member(member, group):
        return None
    return next((companion for own_name, companion in companions_of(group, member) if own_name == name), None)


def count_companions(group: GroupDefinition, count: int) -> int:
    """Return how many companion resources the first `count` members have."""
    end = names_end(count, group.skip)
    return sum(count_in(companion.numbers, group.skip, end) for companion in group.companions)


def member_definition(resource_def: Mapping[str, Any], name: str, index_var: str | None) -> dict[str, Any]:
    """Return the definition of a member: {type, properties[, metadata, deletion_policy, update_policy, description]}.

    In values of properties, `index_var` (if not None) is replaced with the name. Keys and all further sections stay
    unchanged; null properties are left out.
    """
    properties = resource_def.get("properties") or {}
    definition = {
        "type": resource_def["type"],
        "properties": {
            key: value if index_var is None else replaced(value, name, index_var)
            for key, value in properties.items()
            if value is not None
        },
    }
    return definition | {name: resource_def[name] for name in FURTHER_SECTIONS if resource_def.get(name)}


def is_numbered(definition: Mapping[str, Any], index_var: str | None) -> bool:
    """Return whether the number of a member occurs anywhere in its properties."""
    return index_var is not None and _holds(definition.get("properties"), index_var)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        return any(_holds(item, text) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds(item, text) for item in value)


def replaced(value: Any, name: str, index_var: str) -> Any:
    """Return the value with `index_var` replaced by `name` in all texts, at any depth."""
    if isinstance(value, str):
        return value.replace(index_var, name)
    if isinstance(value, Mapping):
        return {key: replaced(item, name, index_var) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(item, name, index_var) for item in value]
    return value


def skip_list(
    previous: Iterable[str],
    removal_policies: Sequence[Mapping[str, Any]],
    mode: str,
    references: Mapping[str, str],
    left: Collection[str] = (),
    former: Mapping[str, str] = {},
) -> list[str]:
    """Return the names that no member may have, oldest first.

    Args:
        previous: Names skipped before.
        removal_policies: `[{resource_list: [member name, number or reference id]}]`; entries that match neither a
            member nor a name skipped before are ignored.
        mode: `append` keeps the names skipped before, `update` drops them.
        references: Reference id of each member by its name.
        left: Names skipped before that are kept in any case.
        former: Names of former members by reference id.
    """
    known = list(previous)
    names = {**former, **{reference: name for name, reference in references.items()}}
    listed = [str(entry) for policy in removal_policies for entry in policy.get("resource_list") or []]
    names_listed = [entry if entry in references or entry in known else names.get(entry) for entry in listed]
    previous = [name for name in known if mode == "append" or name in left]
    return list(dict.fromkeys([*previous, *(name for name in names_listed if name is not None)]))


def leaving_first(before: GroupDefinition | None, count: int, skip: Sequence[str], first: Collection[str]) -> list[str]:
    """Return the names to retire when a group shrinks, so that the preferred members leave first.

    By default the members with the highest numbers leave.

    Args:
        before: The group so far; None for a new group.
        count: New number of members.
        skip: Names that no member may have any more.
        first: Names of the preferred members; among these, the highest numbers leave first.
    """
    if before is None or not first:
        return []
    present = member_names(min(before.count, size_of(before)), set(before.skip))
    members = [name for name in present if not is_skipped(name, skip)]
    leaving = sorted(members, key=lambda name: (name not in first, -int(name)))[: max(len(members) - count, 0)]
    last = max((int(name) for name in {*members} - {*leaving}), default=-1)
    return sorted((name for name in leaving if int(name) < last), key=int)


def resized(
    before: GroupDefinition | None, resource_def: Mapping[str, Any], count: int, first: Collection[str]
) -> GroupDefinition:
    """Return a group resized to `count` members; the names of removed members are never used again.

    The members of `first` are removed first, then the oldest ones.

    Args:
        before: The group so far; None for a new group.
        resource_def: Definition of the members.
        count: New number of members.
        first: Names of the members that are FAILED or marked.
    """
    skip = before.skip if before is not None else ()
    members = member_names(before.count, set(skip)) if before is not None else []
    leaving = sorted(members, key=lambda name: (name not in first, int(name)))[: max(len(members) - count, 0)]
    return GroupDefinition(resource_def, None, count, tuple(_folded([*skip, *leaving])))


def numbered(names: Collection[str]) -> dict[str, str]:
    """Map the names that another service gave to members onto member names, which are numbers.

    Names that are all numbers stay; otherwise members get the lowest numbers in the order of their names.
    """
    if all(name.isdecimal() for name in names):
        return {name: str(int(name)) for name in names}
    return {name: str(number) for number, name in enumerate(sorted(names))}


def of_members(group: GroupDefinition, names: Collection[str], bounds: tuple[int, int] | None) -> GroupDefinition:
    """Return the group with adopted members of these names (numbers); the unused numbers between them are skipped.

    Adopted members count at once, up to the final size of the group, even if the group grows in batches: the batches
    are for members not yet created.

    Args:
        group: The group according to its definition.
        names: Names of the adopted members.
        bounds: Least and greatest size of a scaling group, which keeps its current size between these bounds, whatever
            its definition says; None for other groups.
    """
    end = max((int(name) + 1 for name in names), default=0)
    unused = [str(number) for number in range(end) if str(number) not in names]
    size = max(group.count, min(len(names), size_of(group)))
    if bounds is not None and names:
        size = clamped(len(names), *bounds)
    return replace(group, skip=tuple(dict.fromkeys([*group.skip, *unused])), count=size)


def clamped(size: int, low: int, high: int) -> int:
    """Return the size between two bounds that is nearest to `size`."""
    return max(low, min(size, high))


def size_of(group: GroupDefinition) -> int:
    """Return the number of members after the last batch."""
    return group.count if group.series is None else group.series.target


def end_of(group: GroupDefinition) -> int:
    """Return one more than the highest number of a member."""
    return names_end(group.count, group.skip)


def earlier_runs(group: GroupDefinition | Staged) -> list[Run]:
    """Return the members that do not have the group's current definition yet, in the order of their numbers."""
    return _runs(group.earlier)


def _runs(parts: Iterable[RangedDefinition]) -> list[Run]:
    runs = ((low, high, part.resource_def) for part in parts for low, high in part.numbers)
    return sorted(runs, key=lambda run: run[0])


def ranged(runs: Iterable[Run]) -> tuple[RangedDefinition, ...]:
    """Return the definitions by ranges, without duplicates, in the order of their first numbers."""
    parts: list[tuple[Mapping[str, Any], list[Range]]] = []
    for low, high, definition in sorted(runs, key=lambda run: run[0]):
        numbers = next((numbers for known, numbers in parts if known == definition), None)
        if numbers is None:
            parts.append((definition, numbers := []))
        numbers.append((low, high))
    return tuple(RangedDefinition(definition, tuple(numbers)) for definition, numbers in parts)


def with_earlier(group: GroupDefinition, runs: Iterable[Run]) -> GroupDefinition:
    """Return the group with `runs` as its earlier definitions; numbers without members are left out."""
    end = end_of(group)
    return replace(
        group, earlier=ranged((low, min(high, end), definition) for low, high, definition in runs if low < end)
    )


def all_runs(group: GroupDefinition) -> list[Run]:
    """Return the definitions of all numbers of the group, in order and without gaps."""
    runs: list[Run] = []
    at, end = 0, end_of(group)
    for low, high, definition in earlier_runs(group):
        if at < low:
            runs.append((at, low, group.resource_def))
        runs.append((low, high, definition))
        at = high
    return [*runs, (at, end, group.resource_def)] if at < end else runs


def runs_with_own(group: GroupDefinition) -> list[Run]:
    """Return the definitions of all numbers of the group like `all_runs`, including the definitions of single members.

    The definition of a member from before a series of batches takes precedence over its own one, which follows later.
    """
    end = end_of(group)
    own = [(low, min(high, end), definition) for low, high, definition in _runs(group.own)]
    alike = [(0, end, group.resource_def)] if end else []
    return _covered(_covered(alike, own), earlier_runs(group))


def _covered(below: Iterable[Run], above: Iterable[Run]) -> list[Run]:
    """Return the runs `below`, in order, overlaid with the definitions of the runs `above`."""
    runs: list[Run] = []
    left = iter(sorted((run for run in above if run[0] < run[1]), key=lambda run: run[0]))
    range_left = next(left, None)
    for low, high, definition in below:
        at = low
        while range_left is not None and range_left[0] < high:
            if at < range_left[0]:
                runs.append((at, range_left[0], definition))
            first, last = max(at, range_left[0]), min(high, range_left[1])
            if first < last:
                runs.append((first, last, range_left[2]))
            at = max(at, last)
            if range_left[1] > high:
                break
            range_left = next(left, None)
        if at < high:
            runs.append((at, high, definition))
    return runs


def without(run: Run, number: int) -> list[Run]:
    """Return the zero to two runs that remain of a run without one number."""
    low, high, definition = run
    if not low <= number < high:
        return [run]
    parts = [(low, number, definition), (number + 1, high, definition)]
    return [part for part in parts if part[0] < part[1]]


def members_in(runs: Iterable[Run], skip: Collection[str], end: int | None = None) -> int:
    """Return how many members have numbers in these runs, and below `end` if given."""
    return count_in(((low, high) for low, high, _ in runs), skip, end)


def count_in(numbers: Iterable[Range], skip: Collection[str], end: int | None = None) -> int:
    """Return how many members have numbers in these ranges, and below `end` if given."""
    count = 0
    for low, high in numbers:
        top = high if end is None else min(high, end)
        if low < top:
            count += top - low - numbers_below(skip, top) + numbers_below(skip, low)
    return count


def definitions_between(group: GroupDefinition, low: int, high: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and definition (before `member_definition`) of each member numbered from `low` up to below `high`."""
    runs = runs_with_own(group)
    at = 0
    for name in names_between(group.count, set(group.skip), low, high):
        while runs[at][1] <= int(name):
            at += 1
        yield name, runs[at][2]


def definition_of(group: GroupDefinition, name: str) -> Mapping[str, Any]:
    """Return the current definition of a member."""
    number = int(name)
    return next(definition for low, high, definition in runs_with_own(group) if low <= number < high)


def final_definition_of(group: GroupDefinition, name: str) -> Mapping[str, Any]:
    """Return the definition of a member after the last batch."""
    number = int(name)
    for part in group.own:
        if any(low <= number < high for low, high in part.numbers):
            return part.resource_def
    return group.resource_def


def skip_of(before: GroupDefinition, numbers: Sequence[int]) -> list[str]:
    """Return the skip list of a group with members of exactly these numbers; names of leaving members are retired.

    Args:
        before: The group so far.
        numbers: In order, all of them above the numbers that a `BELOW` entry covers.
    """
    staying, low, end = set(map(str, numbers)), skipped_below(before.skip), numbers[-1] + 1 if numbers else 0
    present = names_between(before.count, set(before.skip), low, end_of(before))
    skipped = [*before.skip, *map(str, range(low, end)), *present]
    return _folded(list(dict.fromkeys(name for name in skipped if name not in staying)))


def differences(before: GroupDefinition, after: GroupDefinition) -> list[tuple[int, int]]:
    """Return the ranges of numbers (end excluded) with different definitions in the two groups.

    Skipped names are not considered.
    """
    old, new = runs_with_own(before), runs_with_own(after)
    edges = sorted({edge for low, high, _ in (*old, *new) for edge in (low, high)})
    left, right = _Walk(old), _Walk(new)
    return [(low, high) for low, high in pairwise(edges) if left.at(low) != right.at(low)]


def changed_runs(before: GroupDefinition, after: GroupDefinition) -> list[Run]:
    """Return the members whose definition is to change, with their present definition, in their order.

    Members beyond the end of the new group are included while they exist: they are compared with `after.resource_def`.
    """
    old, new = runs_with_own(before), runs_with_own(after)
    edges = sorted({edge for low, high, _ in (*old, *new) for edge in (low, high)})
    left, right = _Walk(old), _Walk(new)
    runs: list[Run] = []
    for low, high in pairwise(edges):
        present, wanted = left.at(low), right.at(low)
        if present is None or present == (after.resource_def if wanted is None else wanted):
            continue
        if runs and runs[-1][1] == low and runs[-1][2] == present:
            runs[-1] = (runs[-1][0], high, present)
        else:
            runs.append((low, high, present))
    return runs


class _Walk:
    """Looks up definitions by numbers that only grow."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._place = 0

    def at(self, number: int) -> Mapping[str, Any] | None:
        while self._place < len(self._runs) and self._runs[self._place][1] <= number:
            self._place += 1
        if self._place == len(self._runs) or self._runs[self._place][0] > number:
            return None
        return self._runs[self._place][2]
