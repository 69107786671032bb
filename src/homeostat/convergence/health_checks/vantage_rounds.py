"""Rounds from one vantage point: URLs of members are called for the policies that name this point.

The verdict over all vantage points is left to the rounds of health checks, see `planner.policies.vantage`.
"""

from collections import defaultdict
from concurrent.futures import Executor

from homeostat.convergence.facts.health_policies import policies
from homeostat.convergence.health_checks.asking import Place, Round, ask, is_askable, urls_of
from homeostat.convergence.health_checks.probes import Get
from homeostat.model.health_policy import Detection, HealthPolicy
from homeostat.model.node_health import EVIDENCE_MAX, Finding, Look
from homeostat.model.vantage import Seen, VantageLook
from homeostat.store.database import Database
from homeostat.store.shards import health, vantage_looks
from homeostat.store.shards.health import TAKEN_S, Shard, Taken, WatchedMember
from homeostat.store.shards.vantage_looks import TakenLook

SHARDS_MAX = 20
"""Shards of one round."""
UNASKED = Seen(Finding.UNKNOWN, "it is being made or changed")


class VantageRounds:
    """Calls URLs from one vantage point. Several workers may serve a vantage point on one database."""

    def __init__(self, db: Database, name: str, get: Get | None = None, pool: Executor | None = None) -> None:
        """Prepare the rounds.

        Args:
            name: Name of the vantage point.
            get: Calls URLs; None if this process calls none.
            pool: Threads for the calls; None for the caller's thread.
        """
        self._db, self._name, self._get, self._pool = db, name, get, pool

    def round(self) -> int:
        """Call the URLs of all shards that are due; return how many shards."""
        if self._get is None:
            return 0
        with self._db.write() as tx:
            now = tx.now()
            taken = {
                (entry.stack_id, entry.number): entry for entry in vantage_looks.take(tx, self._name, now, SHARDS_MAX)
            }
        if not taken:
            return 0
        with self._db.read() as tx:
            checks = health.checks_of(tx, sorted({stack_id for stack_id, _ in taken}))
            shards = {
                shard: Taken(*shard, entry.project, entry.whole, entry.whole_at) for shard, entry in taken.items()
            }
            read = {stack_id: policies(stored) for stack_id, stored in checks.items()}
            current = Round(shards, now, now + TAKEN_S, checks, read)
            for row in health.members_of(tx, sorted(taken)):
                policy = current.policy(row)
                if policy is not None and self._is_named(policy):
                    current.members[row.key] = row
        # Outside of any transaction, since URLs of users may answer slowly.
        due = {place for row in current.members.values() for place in _due(current, row, taken)}
        answers = ask(current, due, self._get, self._pool)
        self._store(current, taken, answers)
        return len(taken)

    def _is_named(self, policy: HealthPolicy) -> bool:
        return any(point.name == self._name for point in policy.vantage_points)

    def _store(self, current: Round, taken: dict[Shard, TakenLook], answers: dict[Place, Look]) -> None:
        results: dict[Shard, dict[str, dict[int, Seen]]] = defaultdict(lambda: defaultdict(dict))
        again: dict[Shard, float] = {}
        for row in current.members.values():
            shard = (row.stack_id, row.shard)
            policy = current.policy(row)
            for number, detection in enumerate(policy.detections if policy is not None else ()):
                seen = _seen(taken[shard], row, number, detection, answers)
                if seen is None or (seen.finding is Finding.HEALTHY and not seen.attempts):
                    continue
                results[shard][row.key][number] = seen
                if 0 < seen.attempts < detection.attempts:
                    due_at = current.now + detection.pause_s
                    again[shard] = min(again.get(shard, due_at), due_at)
        with self._db.write() as tx:
            for shard, entry in sorted(taken.items()):
                named = [policy for policy in current.policies.get(shard[0], {}).values() if self._is_named(policy)]
                if not named:
                    vantage_looks.forget(tx, self._name, shard, current.until)
                    continue
                interval_s = min(policy.interval_s for policy in named)
                whole_at = current.now + interval_s if entry.whole else entry.whole_at
                look = VantageLook(current.now if entry.whole else entry.before.looked_at, results[shard])
                due_at = min(whole_at, again.get(shard, whole_at))
                vantage_looks.store(tx, self._name, shard, current.until, due_at, whole_at, look)


def _due(current: Round, row: WatchedMember, taken: dict[Shard, TakenLook]) -> list[Place]:
    """Return the due URLs of a member: all in a full look, else only URLs with further attempts."""
    look_row = taken[row.stack_id, row.shard]
    before = look_row.before.findings.get(row.key, {})
    return [
        (row.key, number)
        for number, detection in urls_of(current, row)
        if look_row.whole or (number in before and 0 < before[number].attempts < detection.attempts)
    ]


def _seen(
    taken: TakenLook, row: WatchedMember, number: int, detection: Detection, answers: dict[Place, Look]
) -> Seen | None:
    """Return the look at one URL after this round; None for a detection without URL."""
    if not detection.url:
        return None
    before = taken.before.findings.get(row.key, {}).get(number, Seen(Finding.HEALTHY))
    look = answers.get((row.key, number))
    if look is None:
        return UNASKED if taken.whole and not is_askable(row) else before
    evidence = look.evidence[:EVIDENCE_MAX]
    if look.finding is not Finding.UNHEALTHY:
        return Seen(look.finding, evidence)
    attempts = min(before.attempts + 1, detection.attempts)
    finding = before.finding if attempts < detection.attempts else Finding.UNHEALTHY
    return Seen(finding, evidence, attempts)
