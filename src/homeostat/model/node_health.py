"""Health of group members as the detections of a health policy find it.

Only `load` and `dump` know the JSON of a member's health.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from homeostat.model.health_policy import HealthPolicy
from homeostat.model.member_names import is_companion
from homeostat.model.status import Word

EVIDENCE_MAX = 300
"""Maximum characters of evidence; the rest is cut off."""
EVERYWHERE, HOST = "the group", "host"
"""Sorts of places of incidents."""
Place = tuple[str, str]
"""Sort of the shared place, such as `host`, and its name."""


class Finding(Word):
    """Result of a look, of a detection, or of all detections together.

    `UNKNOWN` means that nothing could be observed, and is no reason for a recovery.
    """

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Look:
    """Result of a single look of a detection at a member.

    Attributes:
        evidence: The observed facts, in a few words.
        hint: The operation that would restore the member, if its status suggests one: `start`, `unpause`, …
        certain: Whether the finding needs no confirmation by further looks.
        beat: Last heartbeat of the host, if the look finds the host down; the finding counts if several looks find the
            same heartbeat, see `model.hosts`. "" if the look is not about a host.
        anew: Whether earlier looks no longer count, since the host list was blind.
        counted_at: For a look combined from several places, the time when the newest of their looks began; else None.
    """

    finding: Finding
    evidence: str = ""
    hint: str = ""
    certain: bool = False
    beat: str = ""
    anew: bool = False
    counted_at: float | None = None


@dataclass(frozen=True, slots=True)
class Detected:
    """Finding of a detection about a member, over several looks.

    Attributes:
        type: See `DetectionType`.
        since: Time of the change to this finding, in seconds since the epoch.
        evidence: Evidence of the newest look that differs from health.
        hint: See `Look`.
        failures: Consecutive looks with the finding unhealthy.
        successes: Consecutive looks with the finding healthy, counted until `finding` is healthy.
        attempts: Failed probes of a URL in the look in progress; 0 if no look is in progress.
        beat: Heartbeat of a host that is down, as of the newest look, see `Look`.
        still_from: Time from which looks with an unchanged heartbeat count; None without a `beat`.
        counted_at: `Look.counted_at` of the newest look that was counted.
    """

    type: str
    finding: Finding
    since: float
    evidence: str = ""
    hint: str = ""
    failures: int = 0
    successes: int = 0
    attempts: int = 0
    beat: str = ""
    still_from: float | None = None
    counted_at: float | None = None


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Health of a member of a group.

    Attributes:
        finding: Finding of all detections together.
        since: Time of the change to this finding.
        reason: The problem, or why the health is unknown.
        hint: See `Look`.
        detected: Results per detection, in the policy's order.
        turns: Recent times at which the member became unhealthy; several in a short time mean a flapping member.
        again_at: Time of the next probe of a URL within the look in progress, if any.
    """

    finding: Finding
    since: float
    reason: str = ""
    hint: str = ""
    detected: tuple[Detected, ...] = ()
    turns: tuple[float, ...] = ()
    again_at: float | None = None

    @property
    def is_host_down(self) -> bool:
        """Whether a host that is down is the only reason for the member being unhealthy."""
        unhealthy = [detected for detected in self.detected if detected.finding is Finding.UNHEALTHY]
        return bool(unhealthy) and all(detected.beat for detected in unhealthy)

    @property
    def is_doubted(self) -> bool:
        """Whether the newest look of a detection failed, perhaps without a change of its finding yet."""
        return any(detected.attempts > 0 or detected.failures > 0 for detected in self.detected)


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Values of the placeholders in policies; "" if unknown. `address` is the address for probes of the node."""

    name: str = ""
    id: str = ""
    physical_id: str = ""
    address: str = ""
    cluster_name: str = ""
    cluster_id: str = ""


class RecoveryAction(NamedTuple):
    """A recovery action that begins: the columns of its record.

    Attributes:
        name: The member.
        what: The action, in a few words.
        begins: Whether the action is the first of a recovery, or of another round.
        host: The host of the thing; "" if unknown.
    """

    name: str
    what: str
    begins: bool = False
    host: str = ""


class DeclaredHost(NamedTuple):
    """A host declared down to fence a member.

    Attributes:
        name: The fenced member.
        reason: Why the member was fenced.
    """

    host: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartedRecovery:
    """The start of a member's recovery: the time in seconds since the epoch, and the host, "" if unknown."""

    name: str
    at: float
    host: str = ""


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """Health policies and findings of a shard, with the counts that limit its recoveries.

    Attributes:
        policies: Name of a resource -> its policy; "" for the policy of all members.
        nodes: Row key -> health.
        looked_at: When the newest complete look at the members began.
        size: Expected members, in all shards of the group.
        unhealthy: Unhealthy members, in all shards.
        recovered: Recoveries started in the last hour.
        blind: Why the observer doubts itself; "" if it does not.
        paused: Why health checks are off; "" if they are on. Earlier findings do not count after a pause.
        names: Row key -> values of placeholders, if policies call workflows or webhooks.
        begun: Recoveries of members started in the last hour, if any member is unhealthy.
    """

    policies: Mapping[str, HealthPolicy]
    nodes: Mapping[str, NodeHealth] = field(default_factory=dict)
    looked_at: float = 0.0
    size: int = 0
    unhealthy: int = 0
    recovered: int = 0
    blind: str = ""
    paused: str = ""
    names: Mapping[str, NodeNames] = field(default_factory=dict)
    begun: Sequence[StartedRecovery] = ()

    def policy_of(self, name: str) -> HealthPolicy | None:
        """Return the health policy of a resource, if any."""
        return policy_for(self.policies, name)


def policy_for(policies: Mapping[str, HealthPolicy], name: str) -> HealthPolicy | None:
    """Return the health policy of a resource, if any; for `policies` see `ShardHealth`."""
    # The policy of all members is not for their companions, such as a member's entry in a load balancer.
    return policies.get(name) or (None if is_companion(name) else policies.get(""))


def load(stored: Mapping[str, Any]) -> NodeHealth:
    """Return the health of a member from its JSON."""
    detected = tuple(Detected(**{**item, "finding": Finding(item["finding"])}) for item in stored["detected"])
    more = {"finding": Finding(stored["finding"]), "detected": detected, "turns": tuple(stored["turns"])}
    return NodeHealth(**{**stored, **more})


def dump(health: NodeHealth) -> dict[str, Any]:
    """Return the JSON of the health of a member."""
    stored = asdict(health)
    for item in stored["detected"]:
        # Earlier versions, which may run during an upgrade, do not know this field.
        if item["counted_at"] is None:
            del item["counted_at"]
    return stored


@dataclass(frozen=True, slots=True)
class Incident:
    """Members that fail together.

    Attributes:
        place: The place that they share.
        since: When the first member was found unhealthy.
        keys: Keys of their rows.
        helped: Whether a recovery begun since then has helped.
        tried_at: Start of the newest recovery of a member since then, counting only the first of each member; or None.
        host_down: Whether the only finding is that their host is down.
    """

    place: Place
    since: float
    keys: frozenset[str]
    helped: bool
    tried_at: float | None
    host_down: bool = False

    @property
    def summary(self) -> str:
        what, name = self.place
        if self.host_down:
            return f"{what} {name} is called down"
        where = EVERYWHERE if what == EVERYWHERE else f"{what} {name}"
        return f"{len(self.keys)} members of {where} are unhealthy, and none is healthy"
