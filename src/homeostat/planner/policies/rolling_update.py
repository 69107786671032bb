"""Batches of a group's members: which take the new definition next, and the series that the batches make. Pure.

A rolling update, or a creation in batches, is a series of revisions of the group's stack. Each revision says which
members there are, and which of them still have an earlier definition. When the stack is at rest at one, `next_revision`
gives the next. Nothing but the newest revision is needed to go on, so a crash or a change of mind may come at any
moment (ADR 0014).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeostat.resources import groups
from homeostat.resources.groups import Group, Run

Policy = Mapping[str, Any]
"""`{max_batch_size, pause_time[, min_in_service]}`; the pause is in seconds."""


def next_batch(target: int, current: int, updated: int, size: int, in_service: int) -> tuple[int, int]:
    """Return for the next batch the number of members during it, and the number of those that are created or changed.

    Args:
        target: Number of members in the end.
        current: Number of members now.
        updated: Number of members of the target that have the new definition.
        size: Largest number of members in a batch.
        in_service: Number of members to leave alone in each batch, as far as there are so many.
    """
    batch = min(size, max(target - updated, 0))
    # Besides the batch, as many members as the target has room for stay; where that leaves fewer than must be in
    # service, more stay, and the group is larger than its target for a while.
    beside_batch = max(min(current, target - batch), min(in_service, target, current))
    return batch + beside_batch, batch


def batches(target: int, current: int, updated: int, size: int, in_service: int) -> Iterator[tuple[int, int]]:
    """Yield all batches up to the end, each as from `next_batch`.

    Members beyond the target count as created, not as updated.
    """
    while updated < target or current != target:
        total, batch = next_batch(target, current, updated, size, in_service)
        yield total, batch
        updated += batch - max(total - max(current, target), 0)
        current = total


def begin(
    before: Group, wanted: Group, policy: Mapping[str, Policy | None], failed: Collection[str], new: bool
) -> Group:
    """Return the first revision on the way from the last definition of a group's stack to the desired one.

    Args:
        before: The group as last requested of its stack; `{}` for a new one.
        wanted: The desired group: `{resource_def, index_var, count, skip}`.
        policy: Section `update_policy` of the group.
        failed: Names of its FAILED members. They take the new definition at once, since they are out of service anyway.
        new: Whether the group was never complete.
    """
    runs = _earlier_runs(before, wanted, failed)
    chosen = policy.get("rolling_update") if runs else None
    if chosen is None:
        runs = []
        chosen = policy.get("batch_create") if new else None
    if chosen is None:
        return dict(wanted)
    present = _present(before, wanted)
    failed_numbers = [int(name) for name in failed if _is_kept(name, before, wanted)]
    rollout = {
        "target": wanted["count"],
        "max_batch_size": chosen["max_batch_size"],
        "min_in_service": chosen.get("min_in_service", 0),
        "pause_time": chosen["pause_time"],
    }
    # Failed members are repaired in a revision of their own before the first batch, in which no other member changes.
    # Likewise members that have the new definition already come to rest before others are added.
    repairs = bool(present) and (bool(failed_numbers) or not runs)
    count = _present_during_repair(wanted, present, failed_numbers) if repairs else present
    first = groups.with_earlier({**wanted, "count": count, "rollout": rollout}, runs)
    return first if repairs else next_revision(first) or dict(wanted)


def next_revision(group: Group) -> Group | None:
    """Return the next revision of a series; None at its end."""
    rollout = group.get("rollout")
    if rollout is None:
        return None
    target, current = rollout["target"], group["count"]
    left = groups.members_in(groups.earlier_runs(group), group["skip"], groups.names_end(target, group["skip"]))
    updated = min(current, target) - left
    if updated >= target and current == target:
        return None
    total, batch = next_batch(target, current, updated, rollout["max_batch_size"], rollout["min_in_service"])
    # Members that are new in this batch are made with the new definition and leave no run of an earlier one.
    moved = batch - max(total - current, 0)
    runs = _without_highest(group, moved)
    return groups.with_earlier({**group, "count": total}, runs)


def remaining(group: Group) -> tuple[int, int]:
    """Return how many members the batches after this revision change, and how many they create."""
    rollout = group.get("rollout")
    if rollout is None:
        return 0, 0
    return changed_later(group), max(rollout["target"] - group["count"], 0)


def changed_later(group: Group, low: int = 0, high: int | None = None) -> int:
    """Return how many members the batches after this revision change, of those numbered from `low` and below `high`."""
    skip = group["skip"]
    end = groups.names_end(group["rollout"]["target"], skip)
    runs = [(max(low, first), last, definition) for first, last, definition in groups.earlier_runs(group)]
    return groups.members_in(runs, skip, end if high is None else min(end, high))


def pauses_s(group: Group) -> Iterator[float]:
    """Yield the pauses in seconds between this revision of a series and its end."""
    rollout = group.get("rollout")
    while rollout and (after := next_revision(group)) is not None:
        yield float(rollout["pause_time"])
        group = after


def _earlier_runs(before: Group, wanted: Group, failed: Collection[str]) -> list[Run]:
    """Return the runs of members that stay and do not have the desired definition."""
    if not before:
        return []
    # Numbers that come back from the skip list are new members; failed ones take the new definition at once.
    back = {name for name in before["skip"] if not groups.is_skipped(name, wanted["skip"])}
    alone = back | {name for name in failed if name.isdigit()}
    runs = [run for run in groups.all_runs(before) if run[2] != wanted["resource_def"]]
    for number in sorted(int(name) for name in alone if name.isdigit()):
        runs = [part for run in runs for part in groups.without(run, number)]
    return runs if groups.members_in(runs, wanted["skip"]) else []


def _is_kept(name: str, before: Group, wanted: Group) -> bool:
    """Return whether this is a member that may stay."""
    return groups.is_member(name, before) and not groups.is_skipped(name, wanted["skip"])


def _present(before: Group, wanted: Group) -> int:
    """Return how many present members may stay."""
    if not before:
        return 0
    end = groups.names_end(before["count"], before["skip"])
    return end - groups.numbers_below({*before["skip"], *wanted["skip"]}, end)


def _present_during_repair(wanted: Group, present: int, failed_numbers: Collection[int]) -> int:
    """Return how many members stay while failed ones are repaired; one that is not wanted any more is not repaired."""
    skip, end = wanted["skip"], groups.names_end(wanted["count"], wanted["skip"])
    unwanted = [number - groups.numbers_below(skip, number) for number in failed_numbers if number >= end]
    return min([present, *unwanted])


def _without_highest(group: Group, moved: int) -> list[Run]:
    """Return the runs of earlier definitions without the `moved` highest members of the target."""
    skip, start = frozenset(group["skip"]), groups.skipped_below(group["skip"])
    end = groups.names_end(group["rollout"]["target"], group["skip"])
    runs: list[Run] = []
    for low, high, definition in reversed(groups.earlier_runs(group)):
        number = min(high, end)
        while moved and number > low:
            number -= 1
            moved -= number >= start and str(number) not in skip
        for part in ((max(low, end), high, definition), (low, min(number, high), definition)):
            if part[0] < part[1]:
                runs.append(part)
    return runs
