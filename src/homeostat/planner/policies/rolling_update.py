"""Batches of a group's members: how many take the new definition next, and the series that they make. Pure.

A rolling update, or a creation in batches, is a series of revisions of the group's stack. Each says which members there
are, and which of them still have an earlier definition; when the stack is at rest at one, `following` gives the next.
Nothing but the newest revision has to be known to go on, so a crash or a change of mind may come at any moment.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeostat.resources import groups
from homeostat.resources.groups import Group, Run

Policy = Mapping[str, Any]
"""`{max_batch_size, pause_time (seconds)[, min_in_service]}`."""


def next_batch(target: int, current: int, updated: int, size: int, in_service: int) -> tuple[int, int]:
    """Of the next batch: how many members there are during it, and how many of them are made or changed.

    target — members wanted in the end; current — members there are; updated — how many of those wanted are as they
    should be; size — of a batch; in_service — members that must be left alone meanwhile, where there are so many.
    """
    batch = min(size, max(target - updated, 0))
    kept = max(min(current, target - batch), min(in_service, target, current))
    return batch + kept, batch


def batches(target: int, current: int, updated: int, size: int, in_service: int) -> Iterator[tuple[int, int]]:
    """All batches up to the end, each as `next_batch` gives it. Extra members count as made, not as updated."""
    while updated < target or current != target:
        total, batch = next_batch(target, current, updated, size, in_service)
        yield total, batch
        updated += batch - max(total - max(current, target), 0)
        current = total


def begin(
    before: Group, wanted: Group, policy: Mapping[str, Policy | None], failed: Collection[str], new: bool
) -> Group:
    """The first revision on the way from what a group's stack was last told to be to what it should be.

    before — `{}` where there was nothing; wanted — `{resource_def, index_var, count, skip}`; policy — section
    `update_policy` of the group; failed — names of its FAILED members, which take the new definition at once: they are
    out of service anyway; new — the group was never complete.
    """
    runs = _kept_runs(before, wanted, failed)
    chosen = policy.get("rolling_update") if runs else None
    if chosen is None:
        runs = []
        chosen = policy.get("batch_create") if new else None
    if chosen is None:
        return dict(wanted)
    there = _there(before, wanted)
    troubled = [int(name) for name in failed if groups.is_member(name, before) and name not in wanted["skip"]]
    rollout = {
        "target": wanted["count"],
        "max_batch_size": chosen["max_batch_size"],
        "min_in_service": chosen.get("min_in_service", 0),
        "pause_time": chosen["pause_time"],
    }
    mending = bool(there) and (bool(troubled) or not runs)
    count = _worth_mending(wanted, there, troubled) if mending else there
    first = groups.with_earlier({**wanted, "count": count, "rollout": rollout}, runs)
    return first if mending else following(first) or dict(wanted)


def following(group: Group) -> Group | None:
    """The next revision of a series; None at its end."""
    rollout = group.get("rollout")
    if rollout is None:
        return None
    target, current = rollout["target"], group["count"]
    left = groups.members_in(groups.earlier_runs(group), group["skip"], groups.names_end(target, group["skip"]))
    updated = min(current, target) - left
    if updated >= target and current == target:
        return None
    total, batch = next_batch(target, current, updated, rollout["max_batch_size"], rollout["min_in_service"])
    moved = batch - max(total - current, 0)
    runs = _without_highest(group, moved)
    return groups.with_earlier({**group, "count": total}, runs)


def to_come(group: Group) -> tuple[int, int]:
    """What the batches after this revision do: how many members they change, and how many they make."""
    rollout = group.get("rollout")
    if rollout is None:
        return 0, 0
    return changed_later(group), max(rollout["target"] - group["count"], 0)


def changed_later(group: Group, low: int = 0, high: int | None = None) -> int:
    """How many members the batches after this revision of a series change, of those with numbers from `low` on, below
    `high`."""
    skip = group["skip"]
    end = groups.names_end(group["rollout"]["target"], skip)
    runs = [(max(low, first), last, definition) for first, last, definition in groups.earlier_runs(group)]
    return groups.members_in(runs, skip, end if high is None else min(end, high))


def pauses_s(group: Group) -> Iterator[float]:
    """The pauses between this revision of a series and its end, one by one."""
    rollout = group.get("rollout")
    while rollout and (after := following(group)) is not None:
        yield float(rollout["pause_time"])
        group = after


def _kept_runs(before: Group, wanted: Group, failed: Collection[str]) -> list[Run]:
    """Members that stay, and do not have the definition that is wanted."""
    if not before:
        return []
    alone = set(before["skip"]) - set(wanted["skip"]) | {name for name in failed if name.isdigit()}
    runs = [run for run in groups.all_runs(before) if run[2] != wanted["resource_def"]]
    for number in sorted(int(name) for name in alone if name.isdigit()):
        runs = [part for run in runs for part in groups.without(run, number)]
    return runs if groups.members_in(runs, wanted["skip"]) else []


def _there(before: Group, wanted: Group) -> int:
    """How many members there are that may stay."""
    if not before:
        return 0
    end = groups.names_end(before["count"], before["skip"])
    return end - groups.numbers_below({*before["skip"], *wanted["skip"]}, end)


def _worth_mending(wanted: Group, there: int, troubled: Collection[int]) -> int:
    """How many members to keep while failed ones are mended: one that is not wanted any more is not worth it."""
    skip, end = wanted["skip"], groups.names_end(wanted["count"], wanted["skip"])
    unwanted = [number - groups.numbers_below(skip, number) for number in troubled if number >= end]
    return min([there, *unwanted])


def _without_highest(group: Group, moved: int) -> list[Run]:
    """Runs of earlier definitions once the `moved` highest wanted members have left them."""
    skip = {int(name) for name in group["skip"] if name.isdigit()}
    end = groups.names_end(group["rollout"]["target"], group["skip"])
    kept: list[Run] = []
    for low, high, definition in reversed(groups.earlier_runs(group)):
        number = min(high, end)
        while moved and number > low:
            number -= 1
            moved -= number not in skip
        for part in ((max(low, end), high, definition), (low, min(number, high), definition)):
            if part[0] < part[1]:
                kept.append(part)
    return kept
