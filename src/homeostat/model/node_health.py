"""Health of the members of a group, as detections of a health policy have found it: values that all layers share.

`load` and `dump` alone know the JSON of a member's health.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from homeostat.model.health_policy import HealthPolicy
from homeostat.model.member_names import stands_beside
from homeostat.model.status import Word

EVIDENCE_MAX = 300
"""Characters of the evidence of a detection; the rest is cut off."""


class Finding(Word):
    """What a look, a detection or all of them together have found.

    `UNKNOWN` means that nothing could be seen, which is no reason to recover anything.
    """

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Look:
    """What one look by a detection has found of one member.

    Attributes:
        evidence: What was seen, in a few words.
        hint: The operation that would bring the member back, where its status says so: `start`, `unpause`, …
        certain: Whether another look would find the same, so that none is needed.
        beat: When its host was heard of last, where this look finds that host down: it counts once that stands still
            over several looks, see `model.hosts`. "" where it says nothing of a host.
        anew: Whether what was counted before does not count any more: who keeps the host did not see.
        counted_at: When the newest of the looks from several places began that this puts together; None for another.
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
    """What one detection has found of one member, over several looks.

    Attributes:
        type: See `DetectionType`.
        since: When it began to find so, in seconds since the epoch.
        evidence: What the newest look has seen that differs.
        hint: See `Look`.
        failures: Looks in a row that found it unhealthy.
        successes: Looks in a row that found it healthy, counted while the finding is another one.
        attempts: How often a URL was asked in vain in this look; 0 where the look is over.
        beat: What the newest look has seen of a host that is down, see `Look`.
        still_from: From when on it counts that this beat stands still; None where none does.
        counted_at: While looks in a row are counted that put together those of several places: that of the newest one
            that has counted, see `Look`.
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
    """Health of one member of a group.

    Attributes:
        finding: What all detections together have found.
        since: When they began to find so.
        reason: What is wrong, or why it is not known.
        hint: See `Look`.
        detected: By each detection of the policy, in its order.
        turns: When it became unhealthy, lately; several turns in a short time are a flapping member.
        again_at: When a URL is asked again for this look; None where none is.
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
        """Whether it was found unhealthy since its host is down, and for nothing else."""
        unhealthy = [each for each in self.detected if each.finding is Finding.UNHEALTHY]
        return bool(unhealthy) and all(each.beat for each in unhealthy)

    @property
    def is_doubted(self) -> bool:
        """Whether the newest look of a detection was not well, though that has not changed its finding yet."""
        return any(each.attempts > 0 or each.failures > 0 for each in self.detected)


@dataclass(frozen=True, slots=True)
class NodeNames:
    """What the placeholders of policies stand for; "" for what is not known.

    Attributes:
        address: Address by which the node is reached.
    """

    name: str = ""
    id: str = ""
    physical_id: str = ""
    address: str = ""
    cluster_name: str = ""
    cluster_id: str = ""


class RecoveryAction(NamedTuple):
    """An action of a recovery that begins: the columns of its record.

    Attributes:
        name: The member.
        what: The action, in a few words.
        begins: Whether it is the first one of a recovery, or of another round of it.
        host: The host that the thing is on; "" where that is not known.
    """

    name: str
    what: str
    begins: bool
    host: str = ""


class DeclaredHost(NamedTuple):
    """A host that is declared down, as the fence of a member has it.

    Attributes:
        host: Its name.
        name: The member that was cut off by it.
        reason: What was found of the member: why it was cut off.
    """

    host: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartedRecovery:
    """A recovery that has begun.

    Attributes:
        name: The member.
        at: When it has begun, in seconds since the epoch.
        host: The host that the member was on then; "" where that is not known.
    """

    name: str
    at: float
    host: str = ""


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """What a health policy says about one shard, and what the brake of its recoveries needs to know.

    Attributes:
        policies: Name of a resource -> its policy; "" for the policy of all members.
        nodes: Row key -> health.
        looked_at: When the newest whole look at the members began.
        size: Expected members, in all shards of the group.
        unhealthy: How many of them are unhealthy, in all shards.
        recovered: How many recoveries have begun in the last hour.
        blind: Why the observer doubts itself; "" where it does not.
        paused: Why health checks are off; "" where they are on. What was found before does not count afterwards.
        names: Row key -> what placeholders stand for, where policies call workflows or webhooks.
        begun: Recoveries of members that have begun in the last hour, where any is unhealthy.
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
        """Return the policy that holds for a resource; None for none."""
        return policy_for(self.policies, name)


def policy_for(policies: Mapping[str, HealthPolicy], name: str) -> HealthPolicy | None:
    """Return the policy that holds for a resource; None for none.

    What stands beside a member, such as its place in a load balancer, is no member.

    Args:
        policies: See `ShardHealth`.
        name: Name of the resource.
    """
    return policies.get(name) or (None if stands_beside(name) else policies.get(""))


def load(stored: Mapping[str, Any]) -> NodeHealth:
    """Return the health of a member from its JSON."""
    detected = tuple(Detected(**{**each, "finding": Finding(each["finding"])}) for each in stored["detected"])
    more = {"finding": Finding(stored["finding"]), "detected": detected, "turns": tuple(stored["turns"])}
    return NodeHealth(**{**stored, **more})


def dump(health: NodeHealth) -> dict[str, Any]:
    """Return the JSON of the health of a member."""
    stored = asdict(health)
    for each in stored["detected"]:
        # A program of an earlier version, which may run beside this one, does not know it.
        if each["counted_at"] is None:
            del each["counted_at"]
    return stored
