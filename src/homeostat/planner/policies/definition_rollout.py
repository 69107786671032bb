"""A new definition that members of a group get step by step: which of them have it, and how all go back. Pure.

As long as such a rollout goes on, the newest revision of the group's stack is *staged*: `resource_def` is the new
definition, `earlier` says which members do not have it yet, and `staged` what all had before, in the same form:
`{since, resource_def[, earlier]}`. So every step, the way back and a correction follow from that revision alone
(ADR 0068). `since` is the number of the revision that brought the new definition.
"""

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from typing import Any

from homeostat.model.rollout import MemberOrder, RolloutSettings
from homeostat.resources import groups, listed_members
from homeostat.resources.groups import Group, Run

STAGED = "staged"


def begin(before: Group, wanted: Group, since: int) -> dict[str, Any]:
    """Return the revision that is staged on the way to a new definition: no member has it because of that revision.

    The size changes at once; members that are new have the old definition. Where all had the wanted definition before,
    or have it already, nothing is staged: so a change of mind brings all of them back at once.

    Args:
        before: The newest revision of the group, which may be staged itself: then members keep what each has.
        wanted: The desired group: `{resource_def, index_var, count, skip}`.
        since: Number of the revision.
    """
    if STAGED in before and before["resource_def"] == wanted["resource_def"]:
        return resized(before, wanted)
    if before.get("own") and before["resource_def"] != wanted["resource_def"]:  # given to members by a user
        before = listed_members.own_as_earlier(before)
    back = _back(before)
    same = back["resource_def"] == wanted["resource_def"] and not back.get("earlier")
    if same or not before["count"]:
        return dict(wanted)
    group = _with_present(before, wanted, back["resource_def"])
    return {**group, STAGED: {"since": since, **back}} if group.get("earlier") else dict(wanted)


def resized(before: Group, wanted: Group) -> dict[str, Any]:
    """Return a staged group in another size; members that are new have the old definition."""
    old = before[STAGED]
    return {**_with_present(before, wanted, old["resource_def"]), STAGED: old}


def _back(before: Group) -> Mapping[str, Any]:
    """Return what all members go back to: what they had before the first revision that is staged."""
    found = before.get(STAGED, before)
    return {name: found[name] for name in ("resource_def", "earlier") if found.get(name)}


def _with_present(before: Group, wanted: Group, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wanted group in which each member has the definition that it has, and those that come have `new`."""
    end = groups.names_end(before["count"], before["skip"])
    after = groups.names_end(wanted["count"], wanted["skip"])
    runs = [*groups.all_runs(before), *([(end, after, new)] if end < after else [])]
    skipped = {*wanted["skip"]}
    returned = sorted(int(name) for name in before["skip"] if name.isdigit() and not groups.is_skipped(name, skipped))
    runs = [*_minus(runs, returned), *((number, number + 1, new) for number in returned)]
    return groups.with_earlier(wanted, [run for run in runs if run[2] != wanted["resource_def"]])


def is_about(group: Group | None, subject: int | None) -> bool:
    """Return whether a group is staged by the revision `subject`."""
    return group is not None and STAGED in group and group[STAGED]["since"] == subject


# -- members -----------------------------------------------------------------------------------------------------------


def given(group: Group) -> int:
    """Return how many members have the new definition."""
    return int(group["count"]) - groups.members_in(groups.earlier_runs(group), group["skip"])


class Unreached(Container[str]):
    """The members of a group that do not have its newest definition."""

    def __init__(self, group: Group) -> None:
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
        """Yield the names of those that have another definition than all had before: one that is to be mended."""
        for run in self._runs:
            yield from self._names(part for part in self._parts(run) if part[2] != run[2])

    def _names(self, runs: Iterable[Run]) -> Iterator[str]:
        skip = set(self._group["skip"])
        for low, high, _ in runs:
            yield from groups.names_between(self._group["count"], skip, low, high)

    def _parts(self, run: Run) -> Iterator[Run]:
        """Yield the parts of a run, each with the definition that its members go back to."""
        low, high, _ = run
        staged = self._group[STAGED]
        for first, last, definition in groups.earlier_runs(staged):
            if first < high and low < last:
                if low < first:
                    yield low, first, staged["resource_def"]
                yield max(low, first), min(last, high), definition
                low = min(last, high)
        if low < high:
            yield low, high, staged["resource_def"]


def chosen(
    group: Group, settings: RolloutSettings, wanted: int, failed: Collection[str], ordered: Iterable[str] = ()
) -> list[str]:
    """Return the names of the members that get the new definition next.

    Args:
        group: The group, which is staged.
        settings: How the rollout proceeds.
        wanted: How many.
        failed: Names of FAILED members, which are out of service: all of them come, even if they are more than
            `wanted`. Otherwise they would fail again with every step, and stop it.
        ordered: Names in the order of the rollout, where that does not follow from names.
    """
    unreached = Unreached(group)
    found = dict.fromkeys(name for name in sorted(failed) if name in unreached)
    names: Iterable[str] = unreached
    if settings.order == MemberOrder.RANDOM:
        names = sorted(unreached, key=lambda name: blake2b(f"{settings.seed}/{name}".encode(), digest_size=8).digest())
    for name in chain(unreached.wrong(), ordered, names):
        if len(found) >= wanted:
            break
        if name in unreached:
            found.setdefault(name)
    return list(found)


# -- what follows ------------------------------------------------------------------------------------------------------


def with_given(group: Group, names: Collection[str]) -> dict[str, Any]:
    """Return the group in which these members have the new definition, too."""
    return groups.with_earlier(group, _minus(groups.earlier_runs(group), sorted(int(name) for name in names)))


def finished(group: Group) -> dict[str, Any]:
    """Return the group in which all members have the new definition."""
    return {name: value for name, value in group.items() if name not in ("earlier", STAGED)}


def taken_back(group: Group) -> dict[str, Any]:
    """Return the group in which all members have the definition that they had before."""
    old = group[STAGED]
    return groups.with_earlier({**finished(group), "resource_def": old["resource_def"]}, groups.earlier_runs(old))


def stopped(group: Group) -> dict[str, Any]:
    """Return the group as it is, without a way back."""
    return {name: value for name, value in group.items() if name != STAGED}


def _minus(runs: Iterable[Run], numbers: list[int]) -> list[Run]:
    """Return the runs without some numbers, which are sorted."""
    found: list[Run] = []
    place = 0
    for low, high, definition in sorted(runs, key=lambda run: run[0]):
        while place < len(numbers) and numbers[place] < low:
            place += 1
        while place < len(numbers) and numbers[place] < high:
            if low < numbers[place]:
                found.append((low, numbers[place], definition))
            low = numbers[place] + 1
            place += 1
        if low < high:
            found.append((low, high, definition))
    return found
