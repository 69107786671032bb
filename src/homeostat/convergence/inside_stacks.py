"""What is unwell inside nested stacks, by what was last seen of the things in them, however deep."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.status import Status
from homeostat.planner.policies import reported
from homeostat.planner.policies.detection import LOST
from homeostat.resources.base import Thing
from homeostat.resources.registry import outside_types, type_of
from homeostat.store.shards import health, observations
from homeostat.store.shards.health import Shard, WatchedMember
from homeostat.store.shards.observations import WatchedThing
from homeostat.store.stacks import below

NAMED_MAX = 3
"""Things inside a stack that are named; the others are counted."""


def things_below(tx: Connection, tops: Collection[str]) -> tuple[list[WatchedThing], dict[Shard, str]]:
    """Return the things in nested stacks, and in those below them; and the top stack of each of their shards.

    Suspended stacks are left out: that nothing runs in them is meant.
    """
    shards = below.shards(tx, tops)
    return (observations.in_shards(tx, sorted(shards), outside_types()), shards) if shards else ([], shards)


def unwell(tx: Connection, tops: Collection[str], now: float) -> dict[str, str]:
    """Return what is gone, broken or marked unhealthy in nested stacks, by the top stack; the others are well.

    Args:
        tx: A consistent read.
        tops: Ids of nested stacks.
        now: Seconds since the epoch.
    """
    things, shards = things_below(tx, tops)
    if not things:
        return {}
    # What is being made or changed is not judged, and neither is what goes.
    resting = {row.key: row for row in health.members_of(tx, sorted(shards)) if row.status != Status.IN_PROGRESS}
    found: dict[str, list[str]] = defaultdict(list)
    for each in things:
        row = resting.get(each.key)
        said = "" if row is None else _marked(row, now) or _trouble(each, row)
        if said:
            found[shards[each.stack_id, each.shard]].append(f"{each.name} inside: {said}")
    return {top: _listed(said) for top, said in found.items()}


def _marked(row: WatchedMember, now: float) -> str:
    """Return what a person says of a thing; what a policy of its own has found is the business of that."""
    mark = reported.report_of(row.marks, now)
    return reported.report_text(mark) if mark is not None else ""


def _trouble(thing: WatchedThing, row: WatchedMember) -> str:
    """Return what is wrong with a thing; "" where nothing is, or nothing is known."""
    if thing.presence is None:
        return ""
    kind, at = type_of(thing.type), thing.seen_at or 0.0
    seen = Observation(Presence(thing.presence), thing.handle, thing.seen or {}, at)
    kept = row.marks.kept if row.marks is not None else ""
    properties = kind.complete(thing.properties)
    judged = kind.judge(Thing(thing.key, thing.name, thing.name, properties, seen, thing.handle, kept=kept), at)
    if judged.condition is Condition.ABSENT:
        return LOST
    return judged.reason if judged.condition is Condition.BROKEN else ""


def _listed(said: Sequence[str]) -> str:
    more = len(said) - NAMED_MAX
    return "; ".join([*sorted(said)[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])])
