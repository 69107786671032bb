"""Rollouts of a new definition: the members that have it, the next step, and the way back. Pure.

During such a rollout the newest revision of the group's stack is *staged* (`model.group.Staged`): `resource_def` is the
new definition, `earlier` lists the members without the new one, and `staged` has the former definitions of all members.
So every step, the way back and a correction follow from this revision alone (ADR 0068).
"""

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import Any

from homeostat.model.group import GroupDefinition, Staged
from homeostat.model.rollout import MemberOrder, RolloutSettings
from homeostat.resources import groups, listed_members
from homeostat.resources.groups import Run


def begin(before: GroupDefinition, wanted: GroupDefinition, since: int) -> GroupDefinition:
    """Return the staged revision on the way to a new definition, in which no further member has this definition.

    The size changes at once; new members have the old definition. If all members had the wanted definition before, or
    have it already, nothing is staged: so a change of mind brings all members back at once.

    Args:
        before: The newest revision of the group. If it is staged, too, each member keeps its definition.
        wanted: The desired group, without batches.
        since: Number of the revision.
    """
    if before.staged is not None and before.resource_def == wanted.resource_def:
        return resized(before, before.staged, wanted)
    if before.own and before.resource_def != wanted.resource_def:  # given to members by a user
        before = listed_members.own_as_earlier(before)
    # Members go back to the definitions before the first revision that is staged.
    old = before if before.staged is None else before.staged
    if not before.count or (old.resource_def == wanted.resource_def and not old.earlier):
        return wanted
    group = _with_present(before, wanted, old.resource_def)
    return replace(group, staged=Staged(since, old.resource_def, old.earlier)) if group.earlier else wanted


def resized(before: GroupDefinition, staged: Staged, wanted: GroupDefinition) -> GroupDefinition:
    """Return a staged group in another size; new members have the old definition."""
    return replace(_with_present(before, wanted, staged.resource_def), staged=staged)


def _with_present(before: GroupDefinition, wanted: GroupDefinition, new: Mapping[str, Any]) -> GroupDefinition:
    """Return the wanted group in which each present member keeps its definition, and new members have `new`."""
    end, after = groups.end_of(before), groups.end_of(wanted)
    runs = [*groups.all_runs(before), *([(end, after, new)] if end < after else [])]
    skipped = {*wanted.skip}
    returned = sorted(int(name) for name in before.skip if name.isdigit() and not groups.is_skipped(name, skipped))
    runs = [*_minus(runs, returned), *((number, number + 1, new) for number in returned)]
    return groups.with_earlier(wanted, [run for run in runs if run[2] != wanted.resource_def])


def is_about(group: GroupDefinition | None, subject: int | None) -> bool:
    """Return whether a group is staged by the revision `subject`."""
    return group is not None and group.staged is not None and group.staged.since == subject


# -- members -----------------------------------------------------------------------------------------------------------


def given(group: GroupDefinition) -> int:
    """Return how many members have the new definition."""
    return group.count - groups.members_in(groups.earlier_runs(group), group.skip)


class Unreached(Container[str]):
    """The members of a group without its newest definition."""

    def __init__(self, group: GroupDefinition) -> None:
        self._group = group
        self._runs = groups.earlier_runs(group)
        self._lows = [low for low, _, _ in self._runs]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not name.isdigit():
            return False
        place = bisect_right(self._lows, int(name)) - 1
        return place >= 0 and int(name) < self._runs[place][1] and groups.is_member(name, self._group)

    def __iter__(self) -> Iterator[str]:
        """Yield their names in the order of their numbers."""
        yield from self._names(self._runs)

    def wrong(self) -> Iterator[str]:
        """Yield the names of members with neither the new nor their old definition: these need to be repaired."""
        for run in self._runs:
            yield from self._names(part for part in self._parts(run) if part[2] != run[2])

    def _names(self, runs: Iterable[Run]) -> Iterator[str]:
        skip = set(self._group.skip)
        for low, high, _ in runs:
            yield from groups.names_between(self._group.count, skip, low, high)

    def _parts(self, run: Run) -> Iterator[Run]:
        """Yield the parts of a run, each with the definition that its members go back to."""
        low, high, _ = run
        staged = _staged(self._group)
        for first, last, definition in groups.earlier_runs(staged):
            if first < high and low < last:
                if low < first:
                    yield low, first, staged.resource_def
                yield max(low, first), min(last, high), definition
                low = min(last, high)
        if low < high:
            yield low, high, staged.resource_def


def chosen(
    group: GroupDefinition, settings: RolloutSettings, wanted: int, failed: Collection[str], ordered: Iterable[str] = ()
) -> list[str]:
    """Return the names of the members that get the new definition next.

    Args:
        group: The staged group.
        settings: How the rollout proceeds.
        wanted: How many members.
        failed: Names of FAILED members, which are out of service: all of them are chosen, even if they are more than
            `wanted`. Otherwise they would fail again in every step, and stop the rollout.
        ordered: Names in the order of the rollout, unless the order follows from the names.
    """
    unreached = Unreached(group)
    members = dict.fromkeys(name for name in sorted(failed) if name in unreached)
    names: Iterable[str] = unreached
    if settings.order == MemberOrder.RANDOM:
        names = sorted(unreached, key=lambda name: blake2b(f"{settings.seed}/{name}".encode(), digest_size=8).digest())
    for name in chain(unreached.wrong(), ordered, names):
        if len(members) >= wanted:
            break
        if name in unreached:
            members.setdefault(name)
    return list(members)


# -- the next revision -------------------------------------------------------------------------------------------------


def with_given(group: GroupDefinition, names: Collection[str]) -> GroupDefinition:
    """Return the group in which these members have the new definition, too."""
    return groups.with_earlier(group, _minus(groups.earlier_runs(group), sorted(int(name) for name in names)))


def finished(group: GroupDefinition) -> GroupDefinition:
    """Return the group in which all members have the new definition."""
    return replace(group, earlier=(), staged=None)


def taken_back(group: GroupDefinition) -> GroupDefinition:
    """Return the group in which all members have their old definition again."""
    old = _staged(group)
    return groups.with_earlier(replace(finished(group), resource_def=old.resource_def), groups.earlier_runs(old))


def stopped(group: GroupDefinition) -> GroupDefinition:
    """Return the group with the present definitions of its members, without a way back."""
    return replace(group, staged=None)


def _staged(group: GroupDefinition) -> Staged:
    assert group.staged is not None, "the group is not staged"
    return group.staged


def _minus(runs: Iterable[Run], numbers: list[int]) -> list[Run]:
    """Return the runs without the members of some numbers, which are sorted."""
    rest: list[Run] = []
    place = 0
    for low, high, definition in sorted(runs, key=lambda run: run[0]):
        while place < len(numbers) and numbers[place] < low:
            place += 1
        while place < len(numbers) and numbers[place] < high:
            if low < numbers[place]:
                rest.append((low, numbers[place], definition))
            low = numbers[place] + 1
            place += 1
        if low < high:
            rest.append((low, high, definition))
    return rest
