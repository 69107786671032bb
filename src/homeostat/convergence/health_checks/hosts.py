"""Observation of the hosts of servers: hosts of members, and hosts that fences have declared down."""

import logging
from collections import defaultdict

from homeostat.clouds.port import Clouds
from homeostat.convergence.health_checks.asking import Round
from homeostat.model.errors import HomeostatError
from homeostat.model.health_policy import DetectionType
from homeostat.model.observed import Observation, Presence
from homeostat.store.database import Database
from homeostat.store.shards import declared_hosts

LOG = logging.getLogger(__name__)
Seen = dict[tuple[str, str], Observation]
"""Project and name of a host -> its observation."""


def look_at_hosts(db: Database, clouds: Clouds, current: Round) -> Seen:
    """Observe the hosts of servers, with one call for each project; note in the round which are not declared down."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for row in current.members.values():
        policy, host = current.policy(row), str((row.object or {}).get("host") or "")
        asks = policy is not None and any(detection.type is DetectionType.HYPERVISOR for detection in policy.detections)
        if host and asks:
            wanted[current.project(row)].add(host)
    projects = {shard[0]: entry.project for shard, entry in current.taken.items() if entry.whole}
    with db.read() as tx:
        declared = declared_hosts.of_stacks(tx, sorted(projects))
    for stack_id, host in declared:
        wanted[projects[stack_id]].add(host)
    seen: Seen = {}
    for project, names in wanted.items():
        seen |= {(project, look.handle): look for look in _looks(clouds, project, sorted(names))}
    current.lifted = [host for host in declared if _is_lifted(seen[projects[host[0]], host[1]])]
    return seen


def _looks(clouds: Clouds, project: str, names: list[str]) -> list[Observation]:
    try:
        return list(clouds(project).observe("hypervisor", names))
    except HomeostatError as error:
        LOG.warning("cannot look at the hosts of project %s: %s", project, error)
        reason = str(error)
    except Exception as error:  # such as a cloud that has no hosts to show
        LOG.exception("cannot look at the hosts of project %s: the adapter failed", project)
        reason = f"the adapter of hypervisor failed: {error!r}"
    return [Observation(Presence.UNKNOWN, name, reason=reason) for name in names]


def _is_lifted(seen: Observation) -> bool:
    """Return whether a host is not declared down: it is observed as up again, or does not exist any more."""
    absent = seen.presence is Presence.ABSENT
    return absent or (seen.present and not seen.properties.get("forced_down"))
