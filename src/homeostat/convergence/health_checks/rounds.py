"""Rounds of health checks: the members of due shards are looked at, and changes are stored.

Clouds are observed in bulk, with one call for each project and kind; URLs are called concurrently. A round only finds:
the shard's owner, who is woken, decides about recoveries.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection
from concurrent.futures import Executor

from homeostat.clock import Clock
from homeostat.clouds.port import Clouds
from homeostat.convergence.facts.health_policies import policies
from homeostat.convergence.facts.inside_stacks import things_below, unwell
from homeostat.convergence.health_checks.asking import Place, Round, ask, urls_of
from homeostat.convergence.health_checks.hosts import look_at_hosts
from homeostat.convergence.health_checks.probes import Get
from homeostat.convergence.observer import Observer
from homeostat.model.answers import Detector, Kind
from homeostat.model.health_policy import DetectionType, HealthPolicy
from homeostat.model.member_names import is_companion, member_of_name
from homeostat.model.node_health import Finding, Look, NodeHealth
from homeostat.model.observed import Condition, Observation, Presence
from homeostat.model.plan import Priority
from homeostat.model.status import Action, Status
from homeostat.observability import metrics
from homeostat.planner.policies import detection, vantage, verdicts
from homeostat.planner.policies.detection import Member
from homeostat.resources.base import Thing
from homeostat.resources.nested import STACK
from homeostat.resources.registry import all_types, type_of
from homeostat.store.database import Database
from homeostat.store.shards import declared_hosts, health, observations, shards, vantage_looks
from homeostat.store.shards.health import Shard, Taken, WatchedMember
from homeostat.store.sql import lock_order

SHARDS_MAX = 20
"""Shards of one round: at most about 20,000 members."""
SOON_S, SOON_PART = 1.0, 0.1
"""Time until the next look while members are being created: the minimum, and as a part of the interval."""
JITTER = 0.1
"""Part of the interval by which a look may come sooner, so that members created together are not called together."""
CHANGES = frozenset({Action.CREATE, Action.UPDATE, Action.CHECK, Action.RESUME})
"""Actions whose end starts a member's grace period. The check of a recovered member is complete at the end of CHECK."""
UNASKABLE = "it could not be asked: this worker asks no URLs"
PLACE_KIND = "pool_member"
"""Kind of the place of a member in a load balancer."""


class HealthRounds:
    """Looks at members with health policies. Several may work on one database."""

    def __init__(
        self,
        db: Database,
        clouds: Clouds,
        clock: Clock,
        observer: Observer,
        get: Get | None = None,
        pool: Executor | None = None,
        nudge: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare the rounds.

        Args:
            clock: Clock that measures how long rounds take.
            observer: Observes the things of shards.
            get: Calls URLs; None if this process calls none.
            pool: Threads for the calls; None for the caller's thread.
            nudge: Called when shards may have been woken.
        """
        self._db, self._clouds, self._clock, self._observer = db, clouds, clock, observer
        self._get, self._pool, self._nudge = get, pool, nudge
        self._types = sorted(name for name, kind in all_types().items() if kind.kind not in ("", "stack"))

    def round(self) -> int:
        """Look at the members of all shards that are due; return how many shards."""
        with self._db.write() as tx:
            now = tx.now()
            due = {(entry.stack_id, entry.number): entry for entry in health.take(tx, now, SHARDS_MAX)}
        due = self._without_paused(due, now)
        if not due:
            return 0
        began = self._clock.monotonic()
        with self._db.read() as tx:
            checks = health.checks_of(tx, sorted({stack_id for stack_id, _ in due}))
        read = {stack_id: policies(stored) for stack_id, stored in checks.items()}
        current = Round(due, now, now + health.TAKEN_S, checks, read)
        self._see(current)
        self._hear(current)
        self._keep(current)
        self._ask(current)
        self._store(current)
        metrics.checked(len(current.looks), self._clock.monotonic() - began)
        self._nudge()
        return len(due)

    def _without_paused(self, due: dict[Shard, Taken], now: float) -> dict[Shard, Taken]:
        """Return the shards whose checks are on; the checks of the rest resume once their members are removed."""
        with self._db.read() as tx:
            off = health.paused(tx, sorted({stack_id for stack_id, _ in due})) if due else set()
        skipped = sorted(shard for shard in due if shard[0] in off)
        if skipped:
            with self._db.write() as tx:
                lock_order.take(tx, skipped)
                for shard in skipped:
                    health.pause(tx, shard, now, now + SOON_S)
        return {shard: entry for shard, entry in due.items() if shard[0] not in off}

    def _keep(self, current: Round) -> None:
        """Take the shards for longer, since the looks may have taken long."""
        with self._db.write() as tx:
            before, current.until = current.until, tx.now() + health.TAKEN_S
            health.keep(tx, current.taken, before, current.until)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _see(self, current: Round) -> None:
        """Observe the things in their clouds if all are due, and read the observations of the members."""
        whole = [shard for shard, entry in current.taken.items() if entry.whole]
        with self._db.read() as tx:
            watched = observations.in_shards(tx, whole, self._types) if whole else []
        if watched:
            # No hurry: the new observations are judged by this round itself.
            current.unseen = {thing.key: reason for thing, reason in self._observer.look(watched, hurries=False)}
        with self._db.read() as tx:
            for row in health.members_of(tx, sorted(current.taken)):
                if current.policy(row) is not None:
                    current.members[row.key] = row
                elif is_companion(row.name) and type_of(row.type).kind == PLACE_KIND:
                    current.places[row.stack_id, member_of_name(row.name)] = row
        self._see_inside(current)

    def _see_inside(self, current: Round) -> None:
        """Observe the contents of members that are stacks, if all are due."""
        tops = {
            row.handle: row.key
            for row in current.members.values()
            if row.handle and type_of(row.type).kind == STACK and current.taken[row.stack_id, row.shard].whole
        }
        if not tops:
            return
        with self._db.read() as tx:
            watched, shards_below = things_below(tx, tops)
        for thing, reason in self._observer.look(watched):
            key = tops[shards_below[thing.stack_id, thing.shard]]
            current.unseen.setdefault(key, f"{thing.name} inside: {reason}")
        with self._db.read() as tx:
            current.inside = {tops[top]: problem for top, problem in unwell(tx, tops, current.now).items()}

    def _hear(self, current: Round) -> None:
        """Note the looks by the status of each member, and by the state of its host."""
        hosts = look_at_hosts(self._db, self._clouds, current)
        for key, row in current.members.items():
            policy = current.policy(row)
            if policy is None or not current.taken[row.stack_id, row.shard].whole:
                continue
            member = _member(row, current.unseen.get(key, ""))
            for number, detected_by in enumerate(policy.detections):
                if detected_by.type in detection.BY_OBSERVATION:
                    look = _made(row) or detection.BY_OBSERVATION[detected_by.type](member)
                    current.looks[key][number] = detection.with_inside(
                        look, detected_by.type, current.inside.get(key, "")
                    )
                elif detected_by.type is DetectionType.HYPERVISOR:
                    host = str((row.object or {}).get("host") or "")
                    seen = hosts.get((current.project(row), host)) if host else None
                    current.looks[key][number] = detection.by_hypervisor(member, seen, detected_by)
                elif detected_by.type is DetectionType.BALANCER:
                    current.looks[key][number] = _made(row) or _balanced(current, row)
                elif not row.handle and row.status == Status.FAILED:  # any other member's URL is called, see `_ask`
                    current.looks[key][number] = verdicts.look(
                        Detector.CREATION, Kind.UNHEALTHY, row.reason, certain=True
                    )

    # -- asking ------------------------------------------------------------------------------------------------------

    def _ask(self, current: Round) -> None:
        """Call the URLs of members, or read the looks of vantage points if a policy names some."""
        named = {
            stack_id
            for stack_id, by_name in current.policies.items()
            if any(policy.vantage_points for policy in by_name.values())
        }
        due = {place for row in current.members.values() for place in _due_urls(current, row)}
        if named:
            self._take_from_elsewhere(current, named, due)
        elsewhere = {key for key, row in current.members.items() if _has_vantage_points(current, row)}
        own_places = {place for place in due if place[0] not in elsewhere}
        if self._get is None:
            looks = dict.fromkeys(own_places, verdicts.look(DetectionType.URL, Kind.NO_DETECTOR, UNASKABLE))
        else:
            looks = ask(current, own_places, self._get, self._pool)
        for (key, number), look in looks.items():
            current.looks[key][number] = look

    def _take_from_elsewhere(self, current: Round, stacks: Collection[str], due: Collection[Place]) -> None:
        """Note the combined looks of the vantage points, weighted by the policies."""
        these = sorted(shard for shard in current.taken if shard[0] in stacks)
        names = {
            stack_id: sorted(
                {point.name for policy in current.policies[stack_id].values() for point in policy.vantage_points}
            )
            for stack_id in stacks
        }
        with self._db.write() as tx:
            lock_order.take(tx, these)
            holding = health.checks_of(tx, sorted(stacks))
            # If the policy was detached meanwhile, a new row would never be removed.
            for shard in (shard for shard in these if holding.get(shard[0]) == current.checks[shard[0]]):
                vantage_looks.set_vantages(tx, shard, names[shard[0]], current.now)
            looks_of = vantage_looks.of_shards(tx, these)
        for key, number in due:
            row = current.members[key]
            policy = current.policy(row)
            if policy is not None and policy.vantage_points:
                looks = looks_of.get((row.stack_id, row.shard), {})
                counted_at = _counted_at(row, policy, number)
                look = vantage.combined_look(policy, looks, (key, number), _changed_at(row), counted_at, current.now)
                if look is not None:
                    current.looks[key][number] = look

    # -- storing -----------------------------------------------------------------------------------------------------

    def _store(self, current: Round) -> None:
        """Store the findings, wake the shards with changes, and set when the shards are due next."""
        changed: list[tuple[str, str, int, NodeHealth]] = []
        woken: dict[str, set[int]] = defaultdict(set)
        again: dict[Shard, float] = {}
        for key, row in current.members.items():
            shard, node = (row.stack_id, row.shard), _found(current, row)
            if node is not None and node != row.health:
                changed.append((key, *shard, node))
            if _is_news(row, node):
                woken[row.stack_id].add(row.shard)
            if node is not None and node.again_at is not None:
                again[shard] = min(again.get(shard, node.again_at), node.again_at)
        with self._db.write() as tx:
            now = tx.now()
            lock_order.take(tx, sorted(current.taken))
            declared_hosts.forget(tx, current.lifted, current.now)
            # Findings of policies that were detached or changed meanwhile do not count.
            holding = health.checks_of(tx, sorted({change[1] for change in changed})) if changed else {}
            health.store(tx, [change for change in changed if holding.get(change[1]) == current.checks[change[1]]])
            for stack_id, numbers in sorted(woken.items()):
                shards.wake(tx, stack_id, now, Priority.HEAL, sorted(numbers))
            for shard, entry in sorted(current.taken.items()):
                if not current.policies.get(shard[0]):
                    health.stop_checks(tx, shard, current.until)
                    continue
                next_at = self._next(current, shard) if entry.whole else entry.next_at
                due_at = min(next_at, again.get(shard, next_at))
                health.release(tx, shard, current.until, due_at, next_at, current.now if entry.whole else None)

    def _next(self, current: Round, shard: Shard) -> float:
        """Return when the next full look at a shard is due."""
        interval_s = min(policy.interval_s for policy in current.policies[shard[0]].values())
        quiet = [_is_quiet(row) for row in current.members.values() if (row.stack_id, row.shard) == shard]
        if quiet and all(quiet):
            return current.now + interval_s * (1 - JITTER * _share(shard, current.now))
        # A member that is being created, or was just recovered, is looked at soon instead of after a full interval.
        return current.now + min(interval_s, max(SOON_S, interval_s * SOON_PART))


def _is_quiet(row: WatchedMember) -> bool:
    """Return whether no change of a member is expected: it is created, and no recovery action is to be verified."""
    recovery = row.marks.recovery if row.marks is not None else None
    return row.handle != "" and (recovery is None or recovery.acted_at is None)


def _has_vantage_points(current: Round, row: WatchedMember) -> bool:
    policy = current.policy(row)
    return policy is not None and bool(policy.vantage_points)


def _due_urls(current: Round, row: WatchedMember) -> list[Place]:
    """Return the due URLs of a member: all in a full look, else only URLs with further attempts."""
    whole = current.taken[row.stack_id, row.shard].whole
    health_of = row.health
    again = health_of is not None and health_of.again_at is not None and health_of.again_at <= current.now
    return [
        (row.key, number)
        for number, _ in urls_of(current, row)
        if whole or (again and health_of is not None and health_of.detected[number].attempts > 0)
    ]


def _share(shard: Shard, now: float) -> float:
    """Return a number between 0 and 1 that differs between shards, and from look to look."""
    return zlib.crc32(f"{shard} {now:.2f}".encode()) / 2**32


def _found(current: Round, row: WatchedMember) -> NodeHealth | None:
    """Return the health of a member after the looks of this round; unchanged if it was not looked at."""
    policy = current.policy(row)
    if policy is None or row.key not in current.looks:
        before: NodeHealth | None = row.health
        return before
    return detection.health_after(policy, _member(row), current.looks[row.key], row.health, current.now)


def _is_news(row: WatchedMember, node: NodeHealth | None) -> bool:
    """Return whether the owner of a member has to decide again."""
    # A recovery action has ended, and this look shows whether it has helped.
    if row.marks is not None and row.marks.recovery is not None:
        return True
    if node is None or row.health is None:
        return node is not None
    # The owner disregards findings from before an act on the member, or from before an absence of all workers: such a
    # finding is confirmed by this look.
    if node.finding is Finding.UNHEALTHY and (row.marks is None or row.marks.unhealthy is None):
        return True
    return node.finding is not row.health.finding or node.reason != row.health.reason


def _member(row: WatchedMember, unseen: str = "") -> Member:
    """Return a member as detection needs it.

    Args:
        row: Row of the member.
        unseen: Why the member could not be observed: then its last observation does not count.
    """
    kind, seen = type_of(row.type), _seen(row, unseen)
    condition = None
    if seen is not None and kind.kind != "server":
        judged = kind.judge(Thing(row.key, row.name, row.name, {}, seen, row.handle), seen.seen_at)
        known = judged.condition not in (Condition.UNKNOWN, Condition.PENDING)
        condition = judged.condition in (Condition.READY, Condition.DRIFTED) if known else None
    return Member(kind.kind, seen, _well_since(row), condition)


def _balanced(current: Round, row: WatchedMember) -> Look:
    """Return the load balancer's verdict on a member."""
    place = current.places.get((row.stack_id, row.name))
    if place is None:
        return detection.by_balancer(None)
    # The place of the predecessor says nothing about a member, which gets its own place once it is well.
    if place.created_at < row.created_at:
        return verdicts.look(
            DetectionType.BALANCER, Kind.HEALTHY, "it is on its way into the pool of its load balancer"
        )
    return detection.by_balancer(_seen(place, current.unseen.get(place.key, "")))


def _seen(row: WatchedMember, unseen: str) -> Observation | None:
    """Return the observation of a row's thing; None if there is none yet."""
    if unseen:
        return Observation(Presence.UNKNOWN, row.handle, reason=unseen)
    if row.presence is None:
        return None
    reason = row.seen_reason or ""
    return Observation(Presence(row.presence), row.handle, row.object or {}, row.seen_at or 0.0, reason)


def _well_since(row: WatchedMember) -> float:
    """Return when a member was last created, changed, resumed or recovered; a member in recovery has no grace.

    A member that is being created is not judged by polling, however long it waits for its predecessor's deletion.
    """
    if row.action == Action.CREATE and row.status == Status.IN_PROGRESS:
        return math.inf
    unwell = row.marks is not None and (row.marks.unhealthy is not None or row.marks.recovery is not None)
    changed = row.status == Status.COMPLETE and row.action in CHANGES and not unwell
    return float(row.updated_at if changed else row.created_at)


def _changed_at(row: WatchedMember) -> float:
    """Return when a member was last created, changed or recovered, which may have resolved earlier findings."""
    recovery = row.marks.recovery if row.marks is not None else None
    unwell = row.marks is not None and row.marks.unhealthy is not None
    changed = row.status == Status.COMPLETE and row.action in CHANGES - {Action.CHECK} and not unwell
    acted = recovery is not None and recovery.acted_at is not None
    return float(row.updated_at if changed or acted else row.created_at)


def _counted_at(row: WatchedMember, policy: HealthPolicy, number: int) -> float | None:
    """Return the start of the newest vantage look counted in the present series; None without a series."""
    known = row.health.detected if row.health is not None else ()
    counted_at: float | None = known[number].counted_at if len(known) == len(policy.detections) else None
    return counted_at


def _made(row: WatchedMember) -> Look | None:
    """Return the look at a member without a thing: not judged during creation, unhealthy after its failure."""
    if row.handle:
        return None
    if row.status == Status.FAILED:
        return verdicts.look(Detector.CREATION, Kind.UNHEALTHY, row.reason)
    return verdicts.look(Detector.CREATION, Kind.BUSY, "it is being made")
