"""Observing the clouds: in bulk at intervals, and at once if a cloud sends a notice of a change (CV7).

Observers decide nothing and own nothing. A changed observation is stored, and wakes the shard, whose owner judges it.
"""

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager

from homeostat.clock import Clock
from homeostat.clouds.port import ChangeNotice, Cloud, Clouds, look_max_s
from homeostat.convergence.known_things import KnownThings, Shard
from homeostat.convergence.limits import busy_interval
from homeostat.kinds.registry import KINDS
from homeostat.model.errors import HomeostatError, Transient
from homeostat.model.observed import Observation, Presence
from homeostat.model.plan import Priority, snapshots_of
from homeostat.observability import metrics, tracing
from homeostat.observability.log_context import about, named
from homeostat.resources.registry import all_types, of_kind, type_of
from homeostat.store.database import Database
from homeostat.store.shards import health, look_schedule, observations, orphans, shards
from homeostat.store.shards.look_schedule import Look
from homeostat.store.shards.observations import ObservedThing, WatchedThing
from homeostat.store.sql import lock_order

LOG = logging.getLogger(__name__)
SNAPSHOTS = frozenset(map(snapshots_of, KINDS))
"""Kinds of snapshots of things."""
_PRESENT = Presence.PRESENT.value
Unseen = tuple[WatchedThing, str]
"""A thing that could not be observed, and the reason."""
SHARDS_MAX = 50
"""Shards observed in one round: at most about 50,000 things."""
TOKENS_MAX = 500
"""Tokens of orphans looked for in one round."""
ALIGNMENT = 6
"""Looks are aligned to this fraction of their interval, so that many of them coincide."""
ALIGNMENT_S_MIN = 1.0
"""Shortest alignment in seconds: looks at short intervals are not aligned."""
IDLE_S = 0.2
"""Pause after a round with nothing due, since another worker was faster."""
REOPEN_S = 1.0
"""Time until a broken stream of notices is opened again."""
SWEEP_S = 1.0
"""Pause after a sweep that found nothing."""
GATHER_S = 0.05
"""Time after a look at noticed things in which further notices are gathered for a common look."""
REASONS_MAX = 5
"""Reasons listed at most why things of a shard could not be observed."""
NOTICES_MAX = 10_000
"""Waiting notices at most."""
AGAIN_S = 1.0
"""Pause before notices are handled again after the database did not answer."""
STOP_S = 5.0
"""Time that stopping waits for the thread; a call of a cloud may not return."""


class Observer:
    """Observer of the things of all shards, and sweeper of orphans. Several may work on one database."""

    def __init__(
        self,
        db: Database,
        clouds: Clouds,
        clock: Clock,
        steady_s: float,
        busy_s: float,
        nudge: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare an observer.

        Args:
            clock: Clock that measures how long calls take.
            steady_s: Seconds between looks at a shard at rest, unless its stack has its own interval.
            busy_s: Seconds between looks at a shard with something in progress.
            nudge: Called when shards may have been woken.
        """
        self._db = db
        self._clouds = clouds
        self._clock = clock
        self._steady_s = steady_s
        self._busy_s = busy_s
        self._nudge = nudge
        self._known = KnownThings()
        self._types = sorted(name for name, kind in all_types().items() if kind.kind not in ("", "stack"))

    def round(self) -> int:
        """Observe all shards that are due; return how many. Unreachable things keep their last observation."""
        with self._db.write() as tx:
            now = tx.now()
            taken = look_schedule.take_for_observation(tx, now, SHARDS_MAX, self._steady_s)
        if taken:
            with tracing.span("round", shards=len(taken)):
                self._look_at(taken, now)
        return len(taken)

    def _look_at(self, taken: Mapping[Shard, float | None], now: float) -> None:
        with self._db.read() as tx:
            looks = look_schedule.looks(tx, taken)
            things = self._known.read(tx, looks, self._types, now)
        busy = {shard: some for shard, some in things.items() if any(thing.busy for thing in some)}
        # The rest of such a shard was seen a moment ago, and is looked at as often as things at rest.
        lately = {shard for shard in busy if _is_recent(looks[shard], taken[shard], now)}
        partly = {shard for shard in lately if look_max_s(self._clouds(busy[shard][0].project)) > 0}
        whole = [thing for shard, some in things.items() if shard not in partly for thing in some]
        unseen = self.look(whole + [thing for shard in partly for thing in _of_kinds_in_progress(busy[shard])])
        blind = _blind(unseen)
        seen = taken.keys() - blind.keys() - partly
        self._looked({**taken, **self._busy_intervals(busy, now)}, seen, blind, now)
        self._nudge()

    def _busy_intervals(self, busy: Mapping[Shard, Sequence[WatchedThing]], now: float) -> dict[Shard, float]:
        """Return the seconds until the next looks at the shards, some of whose things are in progress."""
        intervals = {}
        for shard, things in busy.items():
            waited_s = [now - (thing.acted_at or now) for thing in things if thing.busy]
            project = things[0].project
            longest_s, of_project = look_max_s(self._clouds(project)), self._known.in_progress(project)
            intervals[shard] = busy_interval(self._busy_s, longest_s, waited_s, len(things), of_project)
        return intervals

    def _looked(
        self, taken: Mapping[Shard, float | None], seen: Set[Shard], blind: Mapping[Shard, str], taken_at: float
    ) -> None:
        """Store which shards were observed completely, why others were not, and the time of their next looks.

        Args:
            taken: Shards of the round, each with the seconds until its next look; None for never.
            seen: Shards whose things were all observed.
            blind: Shards with unobserved things, and the reasons.
            taken_at: Start of the round: all observations are from this time or later.
        """
        reasons: dict[str, list[Shard]] = defaultdict(list)
        for shard, reason in blind.items():
            reasons[reason].append(shard)
        intervals: dict[float | None, list[Shard]] = defaultdict(list)
        for shard, interval in taken.items():
            intervals[interval].append(shard)
        with self._db.write() as tx:
            now = tx.now()
            # All shards in order first, since the calls below lock shards of many stacks one after the other.
            lock_order.take(tx, sorted(taken))
            look_schedule.record_look(tx, seen, taken_at)
            for reason, unseen in reasons.items():
                look_schedule.record_blind(tx, unseen, reason)
            for interval, alike in intervals.items():
                look_schedule.reschedule(tx, alike, taken_at, None if interval is None else _aligned(now, interval))

    def sweep(self) -> int:
        """Remove things of abandoned requests that appeared after all (CV18, ADR 0012); return how many."""
        with self._db.read() as tx:
            if not orphans.any_due(tx, tx.now()):
                return 0
        with self._db.write() as tx:
            taken_at = tx.now()
            due = orphans.take_due(tx, taken_at, TOKENS_MAX)
            owned = orphans.owned(tx, [orphan.token for orphan in due])
            # A row has these tokens after all. They are dropped in the same transaction, since a token that is
            # abandoned again later has to be watched again.
            orphans.drop(tx, sorted(owned))
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for orphan in due:
            if orphan.token not in owned:
                groups[orphan.project, orphan.kind].append(orphan.token)
        removed = sum(self._remove(project, kind, tokens, taken_at) for (project, kind), tokens in groups.items())
        metrics.swept(removed)
        return removed

    def _remove(self, project: str, kind: str, tokens: list[str], taken_at: float) -> int:
        """Remove the things with these tokens; return how many.

        The tokens are watched until nothing has been found under them for `orphans.PATIENCE_S`.

        Args:
            taken_at: When the tokens were read; this look begins later.
        """
        cloud = self._clouds(project)
        try:
            looks = cloud.find(kind, tokens)
            present = {token: look.handle for token, look in zip(tokens, looks, strict=True) if look.present}
            # Checked right before the deletion: a stack may have adopted the thing since the tokens were read.
            with self._db.read() as tx:
                removable = orphans.removable(tx, project, present) if present else set()
            leftovers = [handle for token, handle in present.items() if token in removable]
            if leftovers:
                # Snapshots of a deleted stack are removed in this way: they are no leak.
                level = logging.INFO if kind in SNAPSHOTS else logging.WARNING
                LOG.log(level, "removing %d %s that belong to no resource: %s", len(leftovers), kind, leftovers)
                cloud.delete(kind, leftovers)
        except HomeostatError as error:
            LOG.warning("cannot look for late %s of project %s: %s", kind, project, error)
            return self._watch_on(tokens)
        except Exception:
            LOG.exception("cannot look for late %s of project %s: the adapter failed", kind, project)
            return self._watch_on(tokens)
        with self._db.write() as tx:
            missing = [token for token, look in zip(tokens, looks, strict=True) if look.presence is Presence.ABSENT]
            unsure = {token for token, look in zip(tokens, looks, strict=True) if look.presence is Presence.UNKNOWN}
            orphans.record_missing(tx, missing, taken_at)
            orphans.extend(tx, sorted(removable | unsure), tx.now())
        return len(leftovers)

    def _watch_on(self, tokens: list[str]) -> int:
        """Watch these tokens for another full period, since a cloud that does not answer proves nothing. Return 0."""
        with self._db.write() as tx:
            orphans.extend(tx, tokens, tx.now())
        return 0

    def notice(self, seen: Iterable[ChangeNotice]) -> None:
        """Look at the things of change notices."""
        by_kind: dict[str, set[str]] = defaultdict(set)
        for notice in seen:
            by_kind[notice.kind].add(notice.handle)
        if not by_kind:
            return
        names = [name for type_names in of_kind(by_kind).values() for name in type_names]
        with self._db.read() as tx:
            # One query for all kinds; different clouds may use one handle for different things.
            things = observations.by_handle(tx, sorted(set().union(*by_kind.values())), names)
        noticed = [thing for thing in things if thing.handle in by_kind[type_of(thing.type).kind]]
        self.look(noticed)
        self._look_at_siblings(noticed)

    def _look_at_siblings(self, noticed: Sequence[WatchedThing]) -> None:
        """Look at things of the same kind and shard as things that turned out to be absent without our deletion.

        Only these show whether everything of the kind is gone, or the cloud's listing is wrong.
        """
        before = {thing.key for thing in noticed if not thing.busy and thing.presence == Presence.PRESENT}
        if not before:
            return
        with self._db.read() as tx:
            now = observations.by_handle(
                tx, sorted({thing.handle for thing in noticed}), sorted({thing.type for thing in noticed})
            )
            missed = [thing for thing in now if thing.key in before and thing.presence == Presence.ABSENT]
            types = sorted({thing.type for thing in missed})
            siblings = observations.in_shards(tx, _shards(missed), types) if missed else []
        self.look(siblings)

    def look(self, watched: Sequence[WatchedThing], *, hurries: bool = True) -> list[Unseen]:
        """Look at things, with one call for each project and kind; store changes, and wake the shards.

        Args:
            hurries: Whether the health of changed things is checked at once, if a policy covers them.

        Returns:
            The things that could not be observed, each with the reason.
        """
        unseen: list[Unseen] = []
        groups: dict[tuple[str, str], list[WatchedThing]] = defaultdict(list)
        for thing in watched:
            groups[thing.project, type_of(thing.type).kind].append(thing)
        for (project, kind), things in groups.items():
            cloud = self._clouds(project)
            started = self._clock.monotonic()
            try:
                with tracing.span("call", verb="observe", kind=kind, count=len(things), project=project):
                    looks = cloud.observe(kind, [thing.handle for thing in things])
            except Transient as error:
                metrics.looked(kind, len(things), self._clock.monotonic() - started, "transient")
                with _about(things):
                    LOG.warning("cannot look at %d %s of project %s: %s", len(things), kind, project, error)
                unseen += [(thing, str(error)) for thing in things]
                continue
            except Exception as error:
                metrics.looked(kind, len(things), self._clock.monotonic() - started, "bug")
                with _about(things):
                    LOG.exception("cannot look at %d %s of project %s: the adapter failed", len(things), kind, project)
                unseen += [(thing, f"the adapter of {kind} failed: {error!r}") for thing in things]
                continue
            metrics.looked(kind, len(things), self._clock.monotonic() - started)
            looked = list(zip(things, looks, strict=True))
            news = [(thing, look) for thing, look in looked if not _is_same(thing, look)]
            if not news:
                continue
            unseen += [
                (thing, look.reason or "it is unknown") for thing, look in news if look.presence is Presence.UNKNOWN
            ]
            changes = [(thing, look) for thing, look in news if _is_change(thing, look, cloud)]
            metrics.drifted(sum(not thing.busy for thing, _ in changes))
            self._store(observations.with_witness(looked, changes), hurries=hurries)
        return unseen

    def _store(self, changes: Sequence[ObservedThing], *, hurries: bool = True) -> None:
        changes = self._completed(changes)
        if not changes:
            return
        by_stack: dict[str, list[ObservedThing]] = defaultdict(list)
        for change in changes:
            by_stack[change[0].stack_id].append(change)
        seen_at = self._db.agreed_now()
        written = {
            stack_id: observations.encode_with_properties(self._db, stack_id, looks, seen_at)
            for stack_id, looks in by_stack.items()
        }
        with self._db.write() as tx:
            now = tx.now()
            lock_order.take(tx, sorted(_shards([thing for thing, _ in changes])))
            for stack_id, looks in sorted(by_stack.items()):  # the shard before its rows, as a pass takes them
                urgent = min(_urgency(*change) for change in looks)
                shards.wake(tx, stack_id, now, urgent, sorted({thing.shard for thing, _ in looks}))
                observations.record(tx, written[stack_id])
            checked = _shards([thing for thing, _ in changes if thing.checked]) if hurries else set()
            if checked:
                health.request_look(tx, checked, now)
        self._nudge()

    def _completed(self, changes: Sequence[ObservedThing]) -> list[ObservedThing]:
        """Return the observations with the properties last requested of their things; without things that have left."""
        bare = [thing for thing, _ in changes if thing.properties is None]
        if not bare:
            return list(changes)
        with self._db.read() as tx:
            handles, types = {thing.handle for thing in bare}, {thing.type for thing in bare}
            whole = {thing.key: thing for thing in observations.by_handle(tx, sorted(handles), sorted(types))}
        present = [(whole.get(thing.key, thing), look) for thing, look in changes]
        return [(thing, look) for thing, look in present if thing.properties is not None]


def _aligned(now: float, interval_s: float) -> float:
    """Return when to look again after an interval.

    Long intervals end a little early, at times common to many shards: one look at many things costs little more than a
    look at a single thing.
    """
    alignment_s = interval_s / ALIGNMENT
    at = now + interval_s
    return at if alignment_s < ALIGNMENT_S_MIN else at // alignment_s * alignment_s


def _of_kinds_in_progress(things: Sequence[WatchedThing]) -> list[WatchedThing]:
    """Return the things of the kinds with something in progress: a kind is listed as a whole anyway."""
    kinds = {type_of(thing.type).kind for thing in things if thing.busy}
    return [thing for thing in things if type_of(thing.type).kind in kinds]


def _urgency(thing: WatchedThing, look: Observation) -> Priority:
    """Return the urgency of an observation.

    A user waits for things in progress. A thing that is missing or in another state needs healing. Otherwise a property
    has drifted.
    """
    if thing.busy:
        return Priority.USER
    unhealthy = not look.present or look.properties.get("status") != (thing.seen or {}).get("status")
    return Priority.HEAL if unhealthy else Priority.DRIFT


def _blind(unseen: Iterable[Unseen]) -> dict[Shard, str]:
    """Return the shards with unobserved things, and the reasons."""
    reasons: dict[Shard, dict[str, None]] = defaultdict(dict)
    for thing, reason in unseen:
        reasons[thing.stack_id, thing.shard][reason] = None
    return {shard: "; ".join(list(texts)[:REASONS_MAX]) for shard, texts in reasons.items()}


def _shards(things: Iterable[WatchedThing]) -> set[Shard]:
    return {(thing.stack_id, thing.shard) for thing in things}


def _about(things: Sequence[WatchedThing]) -> AbstractContextManager[None]:
    """Set these stacks and resources as the subject of log lines in the context."""
    return about(stack=named(thing.stack_id for thing in things), resource=named(thing.name for thing in things))


def _is_recent(look: Look, interval: float | None, now: float) -> bool:
    """Return whether all things of a shard were observed within its interval."""
    return look.at is not None and now < look.at + (interval or math.inf)


def _is_same(thing: WatchedThing, look: Observation) -> bool:
    """Return whether an observation of a present thing equals the stored one: so it is for nearly all things."""
    return look.presence is Presence.PRESENT and thing.presence == _PRESENT and look.properties == thing.seen


def _is_change(thing: WatchedThing, look: Observation, cloud: Cloud) -> bool:
    """Return whether an observation has to be stored and judged.

    A cloud that lists late may not show a new thing yet: then absence proves nothing.
    """
    early = thing.acted_at is not None and look.seen_at < thing.acted_at + cloud.listing_lag_s
    if look.presence is Presence.ABSENT and early:
        return False
    return observations.differs(thing, look)


class CloudNotices:
    """Threads that follow a cloud's stream of change notices, and have the observer look at the things at once.

    Notices within a moment are handled together: a flood, mostly about foreign things perhaps, costs a few queries. If
    too many wait, the oldest is dropped: its thing is observed at the next regular look. Notices wait while the
    database is unavailable or full.
    """

    def __init__(self, observer: Observer, cloud: Cloud) -> None:
        self._observer = observer
        self._cloud = cloud
        self._stop = threading.Event()
        self._some = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[ChangeNotice, None] = {}
        self._threads = [
            threading.Thread(target=self._follow, name="cloud-notices", daemon=True),
            threading.Thread(target=self._look, name="noticed-things", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._some.set()
        for thread in self._threads:
            thread.join(timeout=STOP_S)

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                for notice in self._cloud.watch(self._stop.is_set):
                    self._add(notice)
                return
            except Exception:
                LOG.exception("the stream of notices broke; it is opened again")
                self._stop.wait(REOPEN_S)

    def _add(self, *notices: ChangeNotice) -> None:
        with self._lock:
            self._waiting.update(dict.fromkeys(notices))
            while len(self._waiting) > NOTICES_MAX:
                del self._waiting[next(iter(self._waiting))]
        self._some.set()

    def _look(self) -> None:
        gathered_until = 0.0
        while not self._stop.is_set():
            self._some.wait()
            # The first notice after a quiet time is handled at once; those that follow are gathered.
            self._stop.wait(max(gathered_until - time.monotonic(), 0.0))
            gathered_until = time.monotonic() + GATHER_S
            self._some.clear()
            with self._lock:
                seen, self._waiting = self._waiting, {}
            try:
                self._observer.notice(seen)
            except Transient as error:
                LOG.warning("%d notices wait: %s", len(seen), error)
                self._stop.wait(AGAIN_S)
                self._add(*seen)
            except Exception:
                LOG.exception("%d notices are lost; their things are seen at the next look", len(seen))
