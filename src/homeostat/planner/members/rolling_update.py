"""Rolling updates, and creation in batches: the members of the next batch, and the series of batches. Pure.

A series is a sequence of revisions of the group's stack. Each revision lists the members, and which of them still have
an earlier definition. Once the stack is at rest at a revision, `next_revision` returns the next. The newest revision is
all the state of a series, so a crash or a change of mind may come at any moment (ADR 0014).

Unavailable members, for whatever reason, count in the limit of the group: a batch takes them first, and only as many
available members as the limit leaves (ADR 0067).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from homeostat.model.budget import NO_LIMIT, Absence, Limit
from homeostat.model.group import GroupDefinition, Range, Reports, Series, batch_of, reports_of
from homeostat.planner.policies.budget import limit_of, waits_for
from homeostat.resources import groups
from homeostat.resources.groups import Run

Policy = Mapping[str, Any]
"""`{max_batch_size, pause_time[, min_in_service, max_unavailable, reports, suspended]}`; the pause is in seconds.

- `reports`: `{timeout, percent}`, if members have to report (see `members.member_reports`)
- `suspended`: names of the processes that stand still meanwhile, see `resources.instance_signals`
"""
NOBODY: Mapping[str, Absence] = {}
_DEAD = frozenset(Absence) - {Absence.CHANGED, Absence.AWAITED}
"""Members that are away for these reasons take a new definition at once."""


def next_batch(target: int, current: int, updated: int, size: int, in_service: int) -> tuple[int, int]:
    """Return the number of members during the next batch, and the number of members that the batch creates or changes.

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
    before: GroupDefinition | None,
    wanted: GroupDefinition,
    policy: Mapping[str, Any],
    failed: Collection[str],
    new: bool,
    away: Mapping[str, Absence] = NOBODY,
    *,
    pending: bool = False,
    now: float = 0.0,
) -> GroupDefinition:
    """Return the first revision on the way from the current definition of a group to the desired definition.

    Args:
        before: The group of the newest revision; None for a new group.
        wanted: The desired group, without batches.
        policy: Section `update_policy` of the group; `creation` has `{count, timeout, percent}` of the reports that a
            new group waits for.
        failed: Names of FAILED members. They take the new definition at once, since they are out of service anyway.
        new: Whether the group was never complete.
        away: Unavailable members. Dead members take the new definition at once, too; members that are being changed, or
            have to report, are the first of the first batch.
        pending: Whether the stack is still on the way to `before`: then members of its batch may have to report.
    """
    dead = {name for name, why in away.items() if why in _DEAD}
    runs = _earlier_runs(before, wanted, {*failed, *dead})
    asked = reports_of(before) if pending else None
    creates = before is None or (asked is not None and asked.count is not None)
    creation = policy.get("creation") if creates else None
    unreported = _unreported(before, wanted, policy, asked)
    chosen = _rolling(policy, wanted.count) if runs or unreported else None
    if chosen is None:
        runs = []
        chosen = policy.get("batch_create") if new else None
    if creation is not None:
        chosen = {**(chosen or _at_once(wanted)), "creation": creation}
    if chosen is None:
        return wanted
    chosen = {**chosen, "max_unavailable": policy.get("max_unavailable") or ""}
    out = {*failed, *away, *_returning(before, wanted)}
    first = _first(before, wanted, chosen, _Members(failed, out, runs, unreported))
    first = _tracked(before, first, chosen, asked if unreported else None, now, [*map(int, _digits(failed))])
    return _with_unheard(first, _silent(before, {name for name, why in away.items() if why is Absence.AWAITED}))


def _rolling(policy: Mapping[str, Any], members: int) -> Policy | None:
    """Return the policy of the batches; a limit alone makes batches of as many members as may be unavailable."""
    rolling: Policy | None = policy.get("rolling_update")
    limit = limit_of(policy)
    if rolling is not None or not limit.binds:
        return rolling
    return {"max_batch_size": limit.unavailable_max(members), "min_in_service": 0, "pause_time": 0}


class _Members(NamedTuple):
    """The state of a group's members when a series begins.

    Attributes:
        failed: Names of FAILED members.
        away: Names of unavailable members, including FAILED members and members to be made again.
        runs: Members with an earlier definition.
        unreported: Members of the batch under way whose report is still missing.
    """

    failed: Collection[str]
    away: Collection[str]
    runs: list[Run]
    unreported: list[Run]


def resized(before: GroupDefinition, wanted: GroupDefinition) -> GroupDefinition:
    """Return a group of another size whose members keep their definitions; `wanted` is without batches."""
    return groups.with_earlier(wanted, groups.earlier_runs(before))


def _first(
    before: GroupDefinition | None, wanted: GroupDefinition, chosen: Policy, members: _Members
) -> GroupDefinition:
    """Return the first revision of a series."""
    present = _present(before, wanted)
    failed_numbers = [int(name) for name in members.failed if _is_kept(name, before, wanted)]
    series = Series(
        wanted.count,
        chosen["max_batch_size"],
        chosen.get("min_in_service", 0),
        chosen["pause_time"],
        chosen["max_unavailable"],
        tuple(chosen.get("suspended") or ()),
    )
    # Failed members are repaired by a separate revision before the first batch, in which no healthy member changes.
    # Likewise members with the new definition are at rest before the group grows, and the batch under way has reported
    # before the next batch begins.
    repairs = bool(present) and (bool(failed_numbers) or not members.runs or bool(members.unreported))
    count = _present_during_repair(wanted, present, failed_numbers) if repairs else present
    first = groups.with_earlier(replace(wanted, count=count, series=series), members.runs)
    if repairs:
        return first
    nothing = wanted if is_over(first) and "creation" not in chosen else first
    return next_revision(first, members.away) or nothing


def _at_once(wanted: GroupDefinition) -> Policy:
    """Return the policy that makes all members in one batch."""
    return {"max_batch_size": max(wanted.count, 1), "pause_time": 0.0}


def _unreported(
    before: GroupDefinition | None,
    wanted: GroupDefinition,
    policy: Mapping[str, Policy | None],
    asked: Reports | None,
) -> list[Run]:
    """Return the batch under way if its members still have to report: they do if their definition stays."""
    waits = (policy.get("rolling_update") or {}).get("reports")
    is_asked = asked is not None and asked.count is None and bool(waits)
    if before is None or not is_asked or before.resource_def != wanted.resource_def:
        return []
    end = groups.end_of(wanted)
    runs = [(low, min(high, end), wanted.resource_def) for low, high in batch_of(before) if low < end]
    return runs if groups.members_in(runs, wanted.skip) else []


def _tracked(
    before: GroupDefinition | None,
    first: GroupDefinition,
    chosen: Policy,
    under_way: Reports | None,
    now: float,
    failed: Sequence[int],
) -> GroupDefinition:
    """Return the first revision with its batch, and the reports that its members have to send.

    Args:
        before: The group before the revision.
        first: The revision.
        chosen: The policy of the series.
        under_way: Reports that the members of a batch under way have to send, if this revision continues the batch.
        failed: Numbers of FAILED members, which are repaired.
    """
    waits, series = chosen.get("reports"), first.series
    creation = chosen.get("creation")
    if series is None or not (waits or creation or series.suspended):
        return first
    batch = moved(before, first, failed)
    if under_way is not None:
        end = groups.end_of(first)
        batch = _united([*batch, *((low, min(high, end)) for low, high in batch_of(before))])
    tracked = replace(series, batch=tuple(batch))
    if creation:
        earlier = reports_of(before)
        same = before is not None and before.resource_def == first.resource_def
        since = earlier.since if same and earlier is not None else now
        asked = Reports(creation["timeout"], creation["percent"], creation["count"], creation["count"], since=since)
        return first.with_series(replace(tracked, reports=asked))
    if not waits:
        return first.with_series(tracked)
    asked = Reports(waits["timeout"], waits["percent"], None, 0, since=now)
    if under_way is not None:
        asked = replace(under_way, timeout=waits["timeout"], percent=waits["percent"])
    here = groups.count_in(batch, first.skip)
    asked = replace(asked, count=None, total=asked.succeeded + asked.lost + here + _asked_later(first, series))
    return first.with_series(replace(tracked, reports=asked))


def _asked_later(group: GroupDefinition, series: Series) -> int:
    """Return how many members the later batches change and make, including surplus members beyond the target."""
    updated = min(group.count, series.target) - changed_later(group)
    sizes = (series.target, group.count, updated, series.max_batch_size, series.min_in_service)
    return sum(batch for _, batch in batches(*sizes))


def moved(before: GroupDefinition | None, after: GroupDefinition, failed: Collection[int] = ()) -> list[Range]:
    """Return the ranges of numbers of the members that a revision makes or changes.

    Args:
        before: The group before the revision; None for a new group.
        after: The revision.
        failed: Numbers of the members that the revision repairs.
    """
    end = groups.end_of(after)
    if before is None:
        return [(0, end)] if end else []
    changed = [(low, min(high, end)) for low, high in groups.differences(before, after) if low < end]
    back = [int(name) for name in _digits(before.skip) if groups.is_member(name, after)]
    repaired = [number for number in failed if groups.is_member(str(number), after)]
    return _united([*changed, *((number, number + 1) for number in (*back, *repaired))])


def _united(ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges in order, with adjacent and overlapping ranges joined."""
    united: list[Range] = []
    for low, high in sorted((low, high) for low, high in ranges if low < high):
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return united


def _digits(names: Collection[str]) -> list[str]:
    return [name for name in names if name.isdigit()]


def limit(group: GroupDefinition) -> Limit:
    """Return how many members may be unavailable during a series."""
    series = group.series
    return Limit(0, "") if series is None else Limit(int(series.min_in_service or 0), series.max_unavailable)


def is_over(group: GroupDefinition) -> bool:
    """Return whether a revision is the last of its series, or belongs to no series."""
    series = group.series
    return series is None or (_updated(group, series.target) >= series.target and group.count == series.target)


def _updated(group: GroupDefinition, target: int) -> int:
    """Return how many members of the target have the new definition."""
    left = groups.members_in(groups.earlier_runs(group), group.skip, groups.names_end(target, group.skip))
    return min(group.count, target) - left


def next_revision(group: GroupDefinition, away: Collection[str] = (), now: float = 0.0) -> GroupDefinition | None:
    """Return the next revision of a series; None at its end (`is_over`), or if the limit leaves nothing to do.

    Args:
        group: The revision at which all available members are at rest.
        away: Names of the unavailable members.
        now: The time at which the next batch begins.
    """
    series, current = group.series, group.count
    if series is None or is_over(group):
        return None
    updated = _updated(group, series.target)
    total, batch = next_batch(series.target, current, updated, series.max_batch_size, series.min_in_service)
    # Members that are new in this batch are made with the new definition: no earlier definition is left of them.
    changed = batch - max(total - current, 0)
    absent = sorted(int(name) for name in away if groups.is_member(name, group))
    step = _within_limit(group, series.target, absent, total, changed)
    if not step.chosen and not step.available and step.total == current:
        return None
    following = groups.with_earlier(
        replace(group, count=step.total), _without(group, series.target, step, frozenset(absent))
    )
    return _continued(group, series, following, away, now)


def _continued(
    group: GroupDefinition, series: Series, following: GroupDefinition, away: Collection[str], now: float
) -> GroupDefinition:
    """Return the next revision of a series with its batch, if the series records batches."""
    if series.batch is None:
        return following
    series = replace(series, batch=tuple(moved(group, following)))
    asked = series.reports
    if asked is not None and asked.count is None:
        series = replace(series, reports=replace(asked, number=asked.number + 1, since=now))
    # Members that have reported meanwhile are available: their reports are forgotten with this batch.
    silent = [member for member in unheard(group) if str(member[0]) in away]
    return _with_unheard(following.with_series(series), silent)


def unheard(group: GroupDefinition | None) -> tuple[tuple[int, int, float], ...]:
    """Return the members that had not reported when an update began, and that no batch has changed since.

    Returns:
        Ranges of their numbers, with the time since when their reports count.
    """
    return () if group is None or group.series is None else group.series.unheard


def _silent(before: GroupDefinition | None, away: Collection[str]) -> list[tuple[int, int, float]]:
    """Return the unavailable members that still have to report to this or an earlier revision, as `unheard` does."""
    asked, ranges = reports_of(before), [*unheard(before)]
    if asked is not None and asked.count is None:
        ranges += [(low, high, asked.since) for low, high in batch_of(before)]
    members = ((number, since) for low, high, since in ranges for number in range(low, high))
    return [(number, number + 1, since) for number, since in members if str(number) in away]


def _with_unheard(group: GroupDefinition, silent: Collection[tuple[int, int, float]]) -> GroupDefinition:
    """Return a revision with its silent members, if it waits for reports and leaves these members as they are."""
    series = group.series
    if series is None or series.reports is None or not (silent or series.unheard):
        return group
    # A member with the newest definition is not changed again, and this update does not wait for its report.
    earlier = [(low, high) for low, high, _ in groups.earlier_runs(group)]
    unchanged = tuple(member for member in silent if any(low <= member[0] < high for low, high in earlier))
    return group.with_series(replace(series, unheard=unchanged))


def waits(group: GroupDefinition, away: Mapping[str, Absence]) -> str:
    """Return, for users, which unavailable members a series waits for; "" if it waits for none."""
    members = {name: why for name, why in away.items() if groups.is_member(name, group)}
    if is_over(group) or not members:
        return ""
    # If the limit leaves room, the series merely waits until its members are at rest.
    return waits_for(members, group.count, limit(group) if next_revision(group, members) is None else NO_LIMIT)


class _Step(NamedTuple):
    """A batch within the limit of its group.

    Attributes:
        total: Number of members during the batch.
        chosen: Numbers of the unavailable members that it changes.
        available: How many available members it changes.
    """

    total: int
    chosen: list[int]
    available: int


def _within_limit(group: GroupDefinition, target: int, absent: list[int], total: int, changed: int) -> _Step:
    """Reduce a batch to the limit of its group.

    Args:
        group: The revision before the batch.
        target: Number of members after the last batch.
        absent: Numbers of the unavailable members, the lowest first.
        total: Number of members during the batch if all were available.
        changed: Number of members that the batch would change then.
    """
    skip, current = group.skip, group.count
    bound = limit(group)
    kept = min(bound.min_in_service, target, current)
    ranks = [number - groups.numbers_below(skip, number) for number in absent]
    # Surplus members stay until enough wanted members are in service. Keeping a member adds at most one to those in
    # service, so the loop ends after as many rounds as members are unavailable.
    while total < current and (missing := kept - (total - _below(ranks, total))) > 0:
        total = min(total + missing, current)
    end = groups.names_end(min(total, target), skip)
    earlier = [run for run in groups.earlier_runs(group) if run[0] < end]
    chosen = [
        number for number in reversed(absent) if number < end and any(low <= number < high for low, high, _ in earlier)
    ][:changed]
    present = min(total, current)
    room = min(present - kept, bound.unavailable_max(target)) - _below(ranks, present)
    return _Step(total, chosen, max(0, min(changed - len(chosen), room)))


def _below(ranks: list[int], end: int) -> int:
    return sum(rank < end for rank in ranks)


def remaining(group: GroupDefinition) -> tuple[int, int]:
    """Return how many members the batches after this revision change, and how many they create."""
    if group.series is None:
        return 0, 0
    return changed_later(group), max(group.series.target - group.count, 0)


def changed_later(group: GroupDefinition, low: int = 0, high: int | None = None) -> int:
    """Return how many members the batches after this revision change, of those numbered from `low` and below `high`."""
    skip = group.skip
    end = groups.names_end(groups.size_of(group), skip)
    runs = [(max(low, first), last, definition) for first, last, definition in groups.earlier_runs(group)]
    return groups.members_in(runs, skip, end if high is None else min(end, high))


def pauses_s(group: GroupDefinition) -> Iterator[float]:
    """Yield the pauses in seconds between this revision of a series and its end."""
    series = group.series
    while series is not None and (after := next_revision(group)) is not None:
        yield float(series.pause_time)
        group = after


def _earlier_runs(before: GroupDefinition | None, wanted: GroupDefinition, failed: Collection[str]) -> list[Run]:
    """Return the runs of members that stay and have another definition than the desired one."""
    if before is None:
        return []
    # Members that are made again are new; failed members take the new definition at once.
    alone = _returning(before, wanted) | {name for name in failed if name.isdigit()}
    runs = groups.changed_runs(before, wanted)
    for number in sorted(int(name) for name in alone if name.isdigit()):
        runs = [part for run in runs for part in groups.without(run, number)]
    return runs if groups.members_in(runs, wanted.skip) else []


def _returning(before: GroupDefinition | None, wanted: GroupDefinition) -> set[str]:
    """Return the names of members that are made again: the skip list has dropped their names."""
    skip = () if before is None else before.skip
    return {name for name in skip if not groups.is_skipped(name, wanted.skip)}


def _is_kept(name: str, before: GroupDefinition | None, wanted: GroupDefinition) -> bool:
    """Return whether a member of this name exists and may stay."""
    return groups.is_member(name, before) and not groups.is_skipped(name, wanted.skip)


def _present(before: GroupDefinition | None, wanted: GroupDefinition) -> int:
    """Return how many present members may stay."""
    if before is None:
        return 0
    end = groups.end_of(before)
    return end - groups.numbers_below({*before.skip, *wanted.skip}, end)


def _present_during_repair(wanted: GroupDefinition, present: int, failed_numbers: Collection[int]) -> int:
    """Return how many members stay while failed members are repaired; surplus members are not repaired."""
    skip, end = wanted.skip, groups.end_of(wanted)
    unwanted = [number - groups.numbers_below(skip, number) for number in failed_numbers if number >= end]
    return min([present, *unwanted])


def _without(group: GroupDefinition, target: int, step: _Step, absent: Collection[int]) -> list[Run]:
    """Return the runs of earlier definitions without the members that a batch changes.

    These are the chosen members, and the available members with the highest numbers within the target.
    """
    skip, start = frozenset(group.skip), groups.skipped_below(group.skip)
    end = groups.names_end(target, group.skip)
    before = groups.earlier_runs(group)
    for number in step.chosen:
        before = [part for run in before for part in groups.without(run, number)]
    runs: list[Run] = []
    missing = step.available
    for low, high, definition in reversed(before):
        number = min(high, end)
        stays = []
        while missing and number > low:
            number -= 1
            if number in absent:
                stays.append((number, number + 1, definition))
            else:
                missing -= number >= start and str(number) not in skip
        for part in (*stays, (max(low, end), high, definition), (low, min(number, high), definition)):
            if part[0] < part[1]:
                runs.append(part)
    return runs
