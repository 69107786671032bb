"""The brake on recoveries, which considers the whole group before a recovery begins. Pure (ADR 0072).

The brake prevents the replacement of many members at once for a cause that recoveries cannot fix: a blind observer, an
unreachable cloud, a bad image.
"""

from homeostat.model.health_policy import HealthPolicy
from homeostat.model.node_health import Incident, ShardHealth
from homeostat.model.waiting import Waiting, Why
from homeostat.model.world import Resource
from homeostat.planner.policies.incidents import waits_for_first

EXAMINED_S = 5.0
"""Seconds between two examinations of the reports of sibling shards."""


def postpone_recovery(
    policy: HealthPolicy, health: ShardHealth, incident: Incident | None, row: Resource, reason: str, now: float
) -> Waiting | None:
    """Return why no recovery of a member begins now; None if it may.

    Args:
        health: Facts about the whole group.
        incident: The incident of the member, if any.
        row: The unhealthy member.
        reason: Reason of its finding.
    """
    text = _over_limit(policy, health)
    if not text:
        waiting = waits_for_first(policy, incident, now)
        if waiting is None:
            return None
        pause, due_at = waiting
        # The first member may be in another shard, which does not report its recovery.
        due_at = min(due_at, now + EXAMINED_S)
        return Waiting(row.name, Why.POSTPONED, (), f"{reason}; {pause}", row.updated_at, due_at, row.key)
    why = Why.BLIND if health.blind else Why.POSTPONED
    by = "" if not health.blind else "the observer seeing anything again"
    return Waiting(row.name, why, (), f"{reason}; {text}", row.updated_at, now + EXAMINED_S, row.key, by=by)


def _over_limit(policy: HealthPolicy, health: ShardHealth) -> str:
    if health.blind:
        return health.blind
    if policy.max_unhealthy and health.unhealthy > policy.most_recovered(health.size):
        many = f"{health.unhealthy} of {health.size} members are unhealthy"
        return f"{many}, more than max_unhealthy ({policy.max_unhealthy}): none is recovered"
    if policy.per_hour and health.recovered >= policy.per_hour:
        return f"{health.recovered} recoveries began in the last hour, as many as max_per_hour allows"
    return ""
