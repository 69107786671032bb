"""Problems inside nested stacks, however deep, by the last observations of the things in them."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.status import Status
from homeostat.planner.policies import reported
from homeostat.planner.policies.detection import LOST
from homeostat.resources.base import Thing
from homeostat.resources.registry import outside_types, type_of
from homeostat.store.database import Transaction
from homeostat.store.shards import health, observations
from homeostat.store.shards.health import Shard, WatchedMember
from homeostat.store.shards.observations import WatchedThing
from homeostat.store.stacks import nested_status

NAMED_MAX = 3
"""Things inside a stack that are named; further things are counted."""


def things_below(tx: Transaction, tops: Collection[str]) -> tuple[list[WatchedThing], dict[Shard, str]]:
    """Return the things in nested stacks, however deep, and the top stack of each of their shards.

    Suspended stacks are left out, since nothing is meant to run in them.
    """
    shards = nested_status.shards_below(tx, tops)
    return (observations.in_shards(tx, sorted(shards), outside_types()), shards) if shards else ([], shards)


def unwell(tx: Transaction, tops: Collection[str], now: float) -> dict[str, str]:
    """Return the missing, broken and marked things in nested stacks by top stack, without stacks that are well.

    Args:
        tx: A consistent read.
        tops: Ids of nested stacks.
        now: Seconds since the epoch.
    """
    things, shards = things_below(tx, tops)
    if not things:
        return {}
    # Things that are being created, changed or deleted are not judged.
    resting = {row.key: row for row in health.members_of(tx, sorted(shards)) if row.status != Status.IN_PROGRESS}
    troubles: dict[str, list[str]] = defaultdict(list)
    for thing in things:
        row = resting.get(thing.key)
        trouble = "" if row is None else _marked(row, now) or _trouble(thing, row)
        if trouble:
            troubles[shards[thing.stack_id, thing.shard]].append(f"{thing.name} inside: {trouble}")
    return {top: _listed(texts) for top, texts in troubles.items()}


def _marked(row: WatchedMember, now: float) -> str:
    """Return a user's report about a thing; findings of the thing's own health policy are left to that policy."""
    mark = reported.report_of(row.marks, now)
    return reported.report_text(mark) if mark is not None else ""


def _trouble(thing: WatchedThing, row: WatchedMember) -> str:
    """Return the problem of a thing; "" if there is none, or nothing is known."""
    if thing.presence is None:
        return ""
    kind, at = type_of(thing.type), thing.seen_at or 0.0
    seen = Observation(Presence(thing.presence), thing.handle, thing.seen or {}, at)
    kept = row.marks.kept if row.marks is not None else ""
    properties = kind.complete(thing.properties or {})
    judged = kind.judge(Thing(thing.key, thing.name, thing.name, properties, seen, thing.handle, kept=kept), at)
    if judged.condition is Condition.ABSENT:
        return LOST
    return judged.reason if judged.condition is Condition.BROKEN else ""


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED_MAX
    return "; ".join([*sorted(texts)[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])])
