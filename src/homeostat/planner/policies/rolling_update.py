"""Batches of a group's members: which take the new definition next, and the series that the batches make. Pure.

A rolling update, or a creation in batches, is a series of revisions of the group's stack. Each revision says which
members there are, and which of them still have an earlier definition. When the stack is at rest at one, `next_revision`
gives the next. Nothing but the newest revision is needed to go on, so a crash or a change of mind may come at any
moment (ADR 0014).

Members that are away already, whatever for, count in the limit of the group: a batch takes them first, and of the
others only as many as the limit leaves (ADR 0067).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from homeostat.model.budget import NO_LIMIT, Absence, Limit
from homeostat.planner.policies.budget import limit_of, waits_for
from homeostat.resources import groups
from homeostat.resources.groups import Group, Run

Policy = Mapping[str, Any]
"""`{max_batch_size, pause_time[, min_in_service, max_unavailable, reports, suspended]}`; the pause is in seconds.

- `reports`: `{timeout, percent}`, where members have to report (see `policies.member_reports`)
- `suspended`: names of what stands still meanwhile, see `resources.instance_signals`
"""
NOBODY: Mapping[str, Absence] = {}
_DEAD = frozenset(Absence) - {Absence.CHANGED, Absence.AWAITED}
"""Members that are away for these reasons take a new definition at once."""


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
    before: Group,
    wanted: Group,
    policy: Mapping[str, Any],
    failed: Collection[str],
    new: bool,
    away: Mapping[str, Absence] = NOBODY,
    *,
    pending: bool = False,
    now: float = 0.0,
) -> Group:
    """Return the first revision on the way from the last definition of a group's stack to the desired one.

    Args:
        before: The group as last requested of its stack; `{}` for a new one.
        wanted: The desired group: `{resource_def, index_var, count, skip}`.
        policy: Section `update_policy` of the group; as `creation`, `{count, timeout, percent}` of the reports of its
            members when it is made.
        failed: Names of its FAILED members. They take the new definition at once, since they are out of service anyway.
        new: Whether the group was never complete.
        away: Its members that are away. Those that are dead take the new definition at once, too; those that are being
            changed, or have to report, are the first of the first batch.
        pending: Whether its stack is still on the way to `before`: then members of its batch may have to report.
        now: The time.
    """
    dead = {name for name, why in away.items() if why in _DEAD}
    runs = _earlier_runs(before, wanted, {*failed, *dead})
    asked = _asked(before) if pending else None
    creation = policy.get("creation") if not before or (asked is not None and asked["count"] is not None) else None
    unreported = _unreported(before, wanted, policy, asked)
    chosen = _rolling(policy, wanted["count"]) if runs or unreported else None
    if chosen is None:
        runs = []
        chosen = policy.get("batch_create") if new else None
    if creation is not None:
        chosen = {**(chosen or _at_once(wanted)), "creation": creation}
    if chosen is None:
        return dict(wanted)
    chosen = {**chosen, "max_unavailable": policy.get("max_unavailable") or ""}
    out = {*failed, *away, *_returning(before, wanted)}
    first = _first(before, wanted, chosen, _Found(failed, out, runs, unreported))
    first = _tracked(before, first, chosen, asked if unreported else None, now, [*map(int, _digits(failed))])
    return _with_unheard(first, _silent(before, {name for name, why in away.items() if why is Absence.AWAITED}))


def _rolling(policy: Mapping[str, Any], members: int) -> Policy | None:
    """Return how members change in batches; a limit alone makes batches of as many as it lets be away."""
    rolling: Policy | None = policy.get("rolling_update")
    limit = limit_of(policy)
    if rolling is not None or not limit.binds:
        return rolling
    return {"max_batch_size": limit.unavailable_max(members), "min_in_service": 0, "pause_time": 0}


class _Found(NamedTuple):
    """What was found out about the members of a group when a series begins.

    Attributes:
        failed: Names of those that are FAILED.
        away: Names of those that are away, the FAILED ones and those that have yet to be made again too.
        runs: Those that have an earlier definition.
        unreported: Those of a batch under way that have to report still.
    """

    failed: Collection[str]
    away: Collection[str]
    runs: list[Run]
    unreported: list[Run]


def resized(before: Group, wanted: Group) -> Group:
    """Return a group of another size whose members keep the definitions that they have; `wanted` is without batches."""
    return groups.with_earlier(wanted, groups.earlier_runs(before))


def _first(before: Group, wanted: Group, chosen: Policy, found: _Found) -> Group:
    """Return the first revision of a series."""
    present = _present(before, wanted)
    failed_numbers = [int(name) for name in found.failed if _is_kept(name, before, wanted)]
    rollout = {
        "target": wanted["count"],
        "max_batch_size": chosen["max_batch_size"],
        "min_in_service": chosen.get("min_in_service", 0),
        "pause_time": chosen["pause_time"],
        **({"max_unavailable": chosen["max_unavailable"]} if chosen["max_unavailable"] else {}),
        **({"suspended": list(chosen["suspended"])} if chosen.get("suspended") else {}),
    }
    # Failed members are repaired in a revision of their own before the first batch, in which no other member changes.
    # Likewise members that have the new definition already come to rest before others are added, and those of a batch
    # under way report before another one begins.
    repairs = bool(present) and (bool(failed_numbers) or not found.runs or bool(found.unreported))
    count = _present_during_repair(wanted, present, failed_numbers) if repairs else present
    first = groups.with_earlier({**wanted, "count": count, "rollout": rollout}, found.runs)
    if repairs:
        return first
    nothing = dict(wanted) if is_over(first) and "creation" not in chosen else first
    return next_revision(first, found.away) or nothing


def _at_once(wanted: Group) -> Policy:
    """Return the policy that makes all members in one batch."""
    return {"max_batch_size": max(wanted["count"], 1), "pause_time": 0.0}


def _asked(before: Group) -> Mapping[str, Any] | None:
    """Return what is asked of the members of the batch under way."""
    found: Mapping[str, Any] | None = (before.get("rollout") or {}).get("reports")
    return found


def _unreported(
    before: Group, wanted: Group, policy: Mapping[str, Policy | None], asked: Mapping[str, Any] | None
) -> list[Run]:
    """Return the batch under way whose members have to report still, as they do where their definition stays."""
    waits = (policy.get("rolling_update") or {}).get("reports")
    if asked is None or asked["count"] is not None or not waits or before["resource_def"] != wanted["resource_def"]:
        return []
    end = _end_of(wanted)
    runs = [(low, min(high, end), wanted["resource_def"]) for low, high in before["rollout"]["batch"] if low < end]
    return runs if groups.members_in(runs, wanted["skip"]) else []


def _end_of(group: Group) -> int:
    """Return one more than the highest number of a member."""
    return groups.names_end(group["count"], group["skip"])


def _tracked(
    before: Group,
    first: Group,
    chosen: Policy,
    under_way: Mapping[str, Any] | None,
    now: float,
    failed: Sequence[int],
) -> Group:
    """Return the first revision with what its batch is, and what is asked of its members.

    Args:
        before: The group before it.
        first: The revision.
        chosen: How it is changed.
        under_way: What is asked of the members of a batch that this one continues.
        now: The time.
        failed: Numbers of FAILED members, which are repaired.
    """
    waits, rollout = chosen.get("reports"), first.get("rollout")
    creation = chosen.get("creation")
    if rollout is None or not (waits or creation or rollout.get("suspended")):
        return first
    batch = moved(before, first, failed)
    if under_way is not None:
        batch = _united([*batch, *((low, min(high, _end_of(first))) for low, high in before["rollout"]["batch"])])
    tracked = {**rollout, "batch": [list(each) for each in batch]}
    if creation:
        first_at = (_asked(before) or {}).get("since") if before else None
        same = bool(before) and before["resource_def"] == first["resource_def"]
        since = first_at if same and first_at is not None else now
        asked = {**creation, "total": creation["count"], "succeeded": 0, "lost": 0, "number": 1, "since": since}
        return {**first, "rollout": {**tracked, "reports": asked}}
    if not waits:
        return {**first, "rollout": tracked}
    done = {name: under_way[name] for name in ("succeeded", "lost", "number", "since")} if under_way else {}
    asked = {"succeeded": 0, "lost": 0, "number": 1, "since": now, **done, **waits, "count": None}
    here = groups.members_in([(low, high, {}) for low, high in batch], first["skip"])
    asked["total"] = asked["succeeded"] + asked["lost"] + here + _asked_later(first)
    return {**first, "rollout": {**tracked, "reports": asked}}


def _asked_later(group: Group) -> int:
    """Return how many members the later batches change and make, the extra ones of a larger group included."""
    rollout = group["rollout"]
    target, current = rollout["target"], group["count"]
    updated = min(current, target) - changed_later(group)
    size, in_service = rollout["max_batch_size"], rollout["min_in_service"]
    return sum(batch for _, batch in batches(target, current, updated, size, in_service))


def moved(before: Group, after: Group, failed: Collection[int] = ()) -> list[tuple[int, int]]:
    """Return the ranges of numbers of the members that a revision makes or changes.

    Args:
        before: The group before it; `{}` for none.
        after: The revision.
        failed: Numbers of members that it repairs.
    """
    end = _end_of(after)
    if not before:
        return [(0, end)] if end else []
    found = [(low, min(high, end)) for low, high in groups.differences(before, after) if low < end]
    back = [int(name) for name in _digits(before["skip"]) if groups.is_member(name, after)]
    repaired = [number for number in failed if groups.is_member(str(number), after)]
    return _united([*found, *((number, number + 1) for number in (*back, *repaired))])


def _united(ranges: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same ranges in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(each for each in ranges if each[0] < each[1]):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _digits(names: Collection[str]) -> list[str]:
    return [name for name in names if name.isdigit()]


def limit(group: Group) -> Limit:
    """Return how many members may be away during a series."""
    rollout = group.get("rollout") or {}
    return Limit(int(rollout.get("min_in_service") or 0), rollout.get("max_unavailable") or "")


def is_over(group: Group) -> bool:
    """Return whether a revision is the last of its series, or of none."""
    rollout = group.get("rollout")
    return rollout is None or (_updated(group) >= rollout["target"] and group["count"] == rollout["target"])


def _updated(group: Group) -> int:
    """Return how many members of the target have the new definition."""
    target = group["rollout"]["target"]
    left = groups.members_in(groups.earlier_runs(group), group["skip"], groups.names_end(target, group["skip"]))
    return int(min(group["count"], target) - left)


def next_revision(group: Group, away: Collection[str] = (), now: float = 0.0) -> Group | None:
    """Return the next revision of a series; None at its end (`is_over`), or if the limit leaves nothing to do.

    Args:
        group: The revision at which all members have come to rest that are not away.
        away: Names of the members that are away.
        now: The time at which it begins.
    """
    if is_over(group):
        return None
    rollout, current = group["rollout"], group["count"]
    sizes = (rollout["target"], current, _updated(group), rollout["max_batch_size"], rollout["min_in_service"])
    total, batch = next_batch(*sizes)
    # Members that are new in this batch are made with the new definition and leave no run of an earlier one.
    changed = batch - max(total - current, 0)
    gone = sorted(int(name) for name in away if groups.is_member(name, group))
    step = _within_limit(group, gone, total, changed)
    if not step.chosen and not step.others and step.total == current:
        return None
    following = groups.with_earlier({**group, "count": step.total}, _without(group, step, frozenset(gone)))
    return _continued(group, following, away, now)


def _continued(group: Group, following: Group, away: Collection[str], now: float) -> Group:
    """Return the next revision of a series with its batch, where that is kept track of."""
    rollout = group["rollout"]
    if "batch" not in rollout:
        return following
    rollout = {**rollout, "batch": [list(each) for each in moved(group, following)]}
    asked = rollout.get("reports")
    if asked is not None and asked["count"] is None:
        rollout["reports"] = {**asked, "number": asked["number"] + 1, "since": now}
    # Those that have reported meanwhile are not among them any more: what they said is forgotten with this batch.
    silent = [each for each in unheard(group) if str(each[0]) in away]
    return _with_unheard({**following, "rollout": rollout}, silent)


def unheard(group: Group) -> list[tuple[int, int, float]]:
    """Return the members that had not reported when an update began, and that none of its batches has changed yet.

    Returns:
        Ranges of their numbers, with the time since when their reports count.
    """
    return [(low, high, since) for low, high, since in (group.get("rollout") or {}).get("unheard", ())]


def _silent(before: Group, away: Collection[str]) -> list[tuple[int, int, float]]:
    """Return those of the members that had to report to a revision, or before it, that are away: as `unheard`."""
    rollout = before.get("rollout") or {}
    asked = rollout.get("reports")
    ranges = unheard(before)
    if asked and asked["count"] is None:
        ranges += [(low, high, asked["since"]) for low, high in rollout["batch"]]
    return [(each, each + 1, since) for low, high, since in ranges for each in range(low, high) if str(each) in away]


def _with_unheard(group: Group, silent: Collection[tuple[int, int, float]]) -> Group:
    """Return a revision of a group that waits for reports, and those that are silent which it leaves as they are."""
    rollout = group.get("rollout") or {}
    if "reports" not in rollout or not (silent or "unheard" in rollout):
        return group
    # Those that have the newest definition are not changed any more, and this update does not wait for them.
    earlier = [(low, high) for low, high, _ in groups.earlier_runs(group)]
    left = [list(each) for each in silent if any(low <= each[0] < high for low, high in earlier)]
    plain = {name: value for name, value in rollout.items() if name != "unheard"}
    return {**group, "rollout": {**plain, "unheard": left} if left else plain}


def waits(group: Group, away: Mapping[str, Absence]) -> str:
    """Return for which members that are away a series waits, for users; "" if for nobody."""
    members = {name: why for name, why in away.items() if groups.is_member(name, group)}
    if is_over(group) or not members:
        return ""
    # Where the limit leaves room the series merely waits until its members have come to rest.
    return waits_for(members, group["count"], limit(group) if next_revision(group, members) is None else NO_LIMIT)


class _Step(NamedTuple):
    """A batch within the limit of its group.

    Attributes:
        total: Number of members during it.
        chosen: Numbers of the members that it changes although they are away.
        others: How many more it changes.
    """

    total: int
    chosen: list[int]
    others: int


def _within_limit(group: Group, gone: list[int], total: int, moved: int) -> _Step:
    """Return what the limit leaves of a batch.

    Args:
        group: The revision before it.
        gone: Numbers of the members that are away, the lowest first.
        total: Number of members during the batch as it would be with nobody away.
        moved: Number of members that it would change.
    """
    skip, current, target = group["skip"], group["count"], group["rollout"]["target"]
    bound = limit(group)
    kept = min(bound.min_in_service, target, current)
    ranks = [number - groups.numbers_below(skip, number) for number in gone]
    # Members that are wanted no more stay until enough others are in service. One more member that stays is at most
    # one more in service, so this ends after as many rounds as members are away.
    while total < current and (missing := kept - (total - _below(ranks, total))) > 0:
        total = min(total + missing, current)
    end = groups.names_end(min(total, target), skip)
    earlier = [run for run in groups.earlier_runs(group) if run[0] < end]
    chosen = [each for each in reversed(gone) if each < end and any(low <= each < high for low, high, _ in earlier)]
    chosen = chosen[:moved]
    there = min(total, current)
    left = min(there - kept, bound.unavailable_max(target)) - _below(ranks, there)
    return _Step(total, chosen, max(0, min(moved - len(chosen), left)))


def _below(ranks: list[int], end: int) -> int:
    return sum(rank < end for rank in ranks)


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
    # Members that are made again are new; failed ones take the new definition at once.
    alone = _returning(before, wanted) | {name for name in failed if name.isdigit()}
    runs = groups.changed_runs(before, wanted)
    for number in sorted(int(name) for name in alone if name.isdigit()):
        runs = [part for run in runs for part in groups.without(run, number)]
    return runs if groups.members_in(runs, wanted["skip"]) else []


def _returning(before: Group, wanted: Group) -> set[str]:
    """Return the names of members that are made again, since the skip list names them no more."""
    return {name for name in before.get("skip", ()) if not groups.is_skipped(name, wanted["skip"])}


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


def _without(group: Group, step: _Step, gone: Collection[int]) -> list[Run]:
    """Return the runs of earlier definitions without the members that a batch changes.

    Besides those that were chosen these are the highest of the target that are not away.
    """
    skip, start = frozenset(group["skip"]), groups.skipped_below(group["skip"])
    end = groups.names_end(group["rollout"]["target"], group["skip"])
    before = groups.earlier_runs(group)
    for number in step.chosen:
        before = [part for run in before for part in groups.without(run, number)]
    runs: list[Run] = []
    moved = step.others
    for low, high, definition in reversed(before):
        number = min(high, end)
        stays = []
        while moved and number > low:
            number -= 1
            if number in gone:
                stays.append((number, number + 1, definition))
            else:
                moved -= number >= start and str(number) not in skip
        for part in (*stays, (max(low, end), high, definition), (low, min(number, high), definition)):
            if part[0] < part[1]:
                runs.append(part)
    return runs
