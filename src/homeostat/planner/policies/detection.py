"""Detection: findings about a member of a group by the looks of a health policy. Pure (ADR 0072).

Each detection has its own finding; their combination is healthy, unhealthy or unknown. An invisible member is unknown,
never unhealthy. After its creation, change or recovery polling does not count for the grace time of the policy. A
flapping member needs more failed, and more healthy, looks in a row with each turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from homeostat.kinds.compute import SERVER
from homeostat.model import hosts
from homeostat.model.answers import Kind
from homeostat.model.health_policy import Detection, DetectionType, HealthPolicy
from homeostat.model.node_health import EVIDENCE_MAX, Detected, Finding, Look, NodeHealth
from homeostat.model.observed import Observation, Presence
from homeostat.planner.policies import verdicts

FLAPPING_S = 3600.0
"""Time for which a turn to unhealthy counts."""
TURNS_MAX = 4
"""Maximum number of turns that count: each doubles the number of looks in a row."""
CONVERGE = "converge"
"""The operation that restores lost or broken resources of a stack, and changes nothing else."""
LOST = "it does not exist any more"

_STOPPED = {"stopped": "start", "lost": "reboot"}
_POLLED = {"error": "", "soft_deleted": "restore", **_STOPPED}
_HEARD = {**_POLLED, "paused": "unpause"}
"""Unhealthy server statuses, when polled and when notified by the cloud -> operation that repairs the server, or ""."""

_BALANCED = {
    "error": (Kind.UNHEALTHY, "in ERROR: it does not pass the health monitor"),
    "online": (Kind.HEALTHY, "online"),
    "degraded": (Kind.HEALTHY, "degraded"),
    "no_monitor": (Kind.NOT_COVERED, "not checked: the pool has no health monitor"),
    "offline": (Kind.NOT_COVERED, "offline: it, or the load balancer, is switched off"),
    "draining": (Kind.BUSY, "draining"),
}
"""Operating status of a pool member -> answer. Only a failing health monitor means that a member is unhealthy."""


@dataclass(frozen=True, slots=True)
class Member:
    """Facts for detection about a member of a group.

    Attributes:
        kind: Kind in the cloud port.
        observation: The newest observation, if any.
        well_since: Time of its creation, last change or recovery, in seconds since the epoch.
        condition: For kinds other than servers: whether its type judges the member as working; None if unknown.
    """

    kind: str
    observation: Observation | None
    well_since: float
    condition: bool | None = None


def by_status(member: Member, detection: DetectionType) -> Look:
    """Return the look at a member by its status in the cloud."""
    kind, evidence, hint = _status_of(member, detection)
    return verdicts.look(detection, kind, evidence, hint)


def _status_of(member: Member, detection: DetectionType) -> tuple[Kind, str, str]:
    """Return the kind of the cloud's answer, the evidence, and the operation that would help."""
    seen = member.observation
    if seen is None:
        return Kind.NOT_LOOKED, "it was not looked at yet", ""
    if seen.presence is Presence.UNKNOWN:
        return Kind.OUT_OF_SIGHT, seen.reason, ""
    if not seen.present:
        return Kind.GONE, LOST, ""
    status = str(seen.properties.get("status", ""))
    evidence = f"its status is {status}" if status else ""
    if member.kind != "server":
        if member.condition is None:
            return Kind.UNCLEAR, evidence, ""
        return Kind.HEALTHY if member.condition else Kind.UNHEALTHY, evidence, ""
    if status in SERVER.statuses.busy:  # unreachable among them: the cloud cannot ask its host
        return Kind.BUSY, evidence, ""
    words = _HEARD if detection is DetectionType.EVENTS else _POLLED
    if status in words:
        fault = str(seen.properties.get("fault") or "")
        return Kind.UNHEALTHY, f"{evidence}: {fault}" if fault else evidence, words[status]
    if status in _HEARD:
        evidence = f"{evidence}, which counts only when the cloud tells of it ({DetectionType.EVENTS})"
    return Kind.HEALTHY if status in SERVER.statuses.words else Kind.UNCLEAR, evidence, ""


BY_OBSERVATION: Mapping[DetectionType, Callable[[Member], Look]] = {
    DetectionType.STATUS: partial(by_status, detection=DetectionType.STATUS),
    DetectionType.EVENTS: partial(by_status, detection=DetectionType.EVENTS),
}
"""Detections that need only the observation of a member, without another request."""


def with_inside(seen: Look, detection: DetectionType, inside: str) -> Look:
    """Return the look at a member that is a nested stack, including its unhealthy resources.

    Args:
        seen: The look at the stack's own status.
        inside: The absent or broken resources in the stack; "" for none.
    """
    if not inside or seen.finding is Finding.UNKNOWN:
        return seen
    return verdicts.look(detection, Kind.UNHEALTHY, inside, CONVERGE)


def by_hypervisor(member: Member, hypervisor: Observation | None, detection: Detection) -> Look:
    """Return the look at a server by the state of its host.

    Args:
        hypervisor: Observation of the host; None if the cloud does not name the host.
    """
    kind, evidence = _host_of(member, hypervisor, detection)
    look = verdicts.look(DetectionType.HYPERVISOR, kind, evidence)
    # Looks in a row must not be counted across a gap in which the host may have worked.
    if kind in (Kind.BLIND, Kind.OUT_OF_SIGHT):
        return replace(look, anew=True)
    if hypervisor is None or kind is not Kind.UNHEALTHY or hypervisor.properties.get("state") != hosts.DOWN:
        return look
    forced = bool(hypervisor.properties.get("forced_down"))
    return replace(look, beat=hosts.beat_of(hypervisor.properties.get("updated_at"), forced_down=forced))


def _host_of(member: Member, hypervisor: Observation | None, detection: Detection) -> tuple[Kind, str]:
    """Return the kind of the answer about a server's host, and the evidence."""
    seen = member.observation
    if seen is not None and not seen.present and seen.presence is not Presence.UNKNOWN:
        return Kind.GONE, LOST
    if hypervisor is None:
        return Kind.NOT_COVERED, "the cloud does not tell its host"
    if hypervisor.presence is Presence.UNKNOWN:
        return Kind.OUT_OF_SIGHT, hypervisor.reason or "its host could not be looked at"
    if not hypervisor.present:
        return Kind.GONE, f"its host {hypervisor.handle} does not exist any more"
    state, status = (str(hypervisor.properties.get(name, "")) for name in ("state", "status"))
    if state == hosts.DOWN:
        return _silent(hypervisor)
    if status == "disabled" and detection.disabled_is_down:
        return Kind.UNHEALTHY, f"its host {hypervisor.handle} is disabled"
    return Kind.HEALTHY if state == "up" else Kind.UNCLEAR, f"its host is {state or 'in no known state'}"


def _silent(hypervisor: Observation) -> tuple[Kind, str]:
    """Return the kind of the answer about a host reported down, and the evidence."""
    name, properties = hypervisor.handle, hypervisor.properties
    if properties.get("blind"):
        return Kind.BLIND, f"its host {name} is called down, and that does not count: {properties['blind']}"
    heard = hosts.beat_text(properties.get("updated_at"))
    since = f", heard of last at {heard}" if heard else ""
    if properties.get("forced_down"):
        return Kind.UNHEALTHY, f"its host {name} is declared down{since}; once it works again, {hosts.to_lift(name)}"
    return Kind.UNHEALTHY, f"its host {name} is down{since}"


def by_balancer(place: Observation | None) -> Look:
    """Return the look at a member by its load balancer.

    Args:
        place: Observation of its pool member; None if there is none.
    """
    if place is None or place.presence is Presence.ABSENT:
        return verdicts.look(DetectionType.BALANCER, Kind.GONE, "it has no place in the pool of a load balancer")
    if place.presence is Presence.UNKNOWN:
        reason = place.reason or "its place in the pool could not be looked at"
        return verdicts.look(DetectionType.BALANCER, Kind.OUT_OF_SIGHT, reason)
    word = str(place.properties.get("operating_status") or "")
    kind, text = _BALANCED.get(word, (Kind.UNCLEAR, "in no known state"))
    return verdicts.look(DetectionType.BALANCER, kind, f"in the pool of its load balancer it is {text}")


def health_after(
    policy: HealthPolicy,
    member: Member,
    looks: Mapping[int, Look],
    before: NodeHealth | None,
    now: float,
) -> NodeHealth:
    """Return the health of a member after a round of looks.

    Args:
        looks: Number of a detection -> its look; a detection without a look keeps its finding.
        before: Former health; None for a member that was never looked at.
    """
    # Findings are matched by the number of their detection: with more or fewer detections all start anew.
    known = before.detected if before is not None and len(before.detected) == len(policy.detections) else None
    turns = tuple(at for at in (before.turns if before is not None else ()) if at > now - FLAPPING_S)
    # The first turn is no flapping.
    factor = 2 ** min(max(len(turns) - 1, 0), TURNS_MAX)
    detected, needs_another = [], False
    for number, detection in enumerate(policy.detections):
        earlier = known[number] if known is not None else Detected(detection.type, Finding.UNKNOWN, now)
        look = looks.get(number)
        result = earlier if look is None else _counted(look, _detected(policy, detection, look, earlier, factor, now))
        needs_another = needs_another or result.attempts > 0
        detected.append(result)
    was_unhealthy = before is not None and before.finding is Finding.UNHEALTHY
    finding, reason, hint = _combined(policy, member, detected, now, was_unhealthy=was_unhealthy)
    if before is not None and before.finding is finding:
        since = before.since
    else:
        since = now
        if finding is Finding.UNHEALTHY and before is not None:
            turns = (*turns, now)[-TURNS_MAX:]
    pause_s = min(
        (detection.pause_s for detection in policy.detections if detection.type is DetectionType.URL), default=0
    )
    return NodeHealth(finding, since, reason, hint, tuple(detected), turns, now + pause_s if needs_another else None)


def is_recovering(policy: HealthPolicy, node: NodeHealth) -> bool:
    """Return whether an unhealthy member is healthy by its newest looks, but too few in a row."""
    unhealthy = [detected for detected in node.detected if detected.finding is Finding.UNHEALTHY]
    still = [detected for detected in unhealthy if detected.successes == 0]
    events = any(detected.type == DetectionType.EVENTS for detected in still)
    return len(still) < len(unhealthy) and not events and not policy.is_unhealthy(len(still))


def _counted(look: Look, detected: Detected) -> Detected:
    """Return a finding with the time of the last counted look of the vantage points, while looks are being counted."""
    counts = detected.successes > 0 if detected.finding is Finding.UNHEALTHY else detected.failures > 0
    counted_at = detected.counted_at if look.counted_at is None else look.counted_at
    return replace(detected, counted_at=counted_at if counts else None)


def _detected(
    policy: HealthPolicy, detection: Detection, look: Look, before: Detected, factor: int, now: float
) -> Detected:
    evidence = look.evidence[:EVIDENCE_MAX]
    # A heartbeat from before the gap proves nothing either.
    if look.anew:
        return replace(
            _as(before, Finding.UNKNOWN, now, evidence, ""), failures=0, attempts=0, beat="", still_from=None
        )
    if look.finding is Finding.UNKNOWN:
        # The attempts of a look are consecutive: earlier attempts belong to another look.
        return replace(_as(before, Finding.UNKNOWN, now, evidence, ""), attempts=0)
    if look.finding is Finding.HEALTHY:
        if before.finding is Finding.UNHEALTHY and before.successes + 1 < policy.successes * factor:
            return replace(before, successes=before.successes + 1, failures=0, attempts=0)
        well = _as(before, Finding.HEALTHY, now, evidence, "")
        return replace(well, failures=0, successes=0, attempts=0, beat="", still_from=None)
    if look.beat:
        return _host_down(policy, look, before, factor, now)
    asks_again = detection.type is DetectionType.URL and before.finding is not Finding.UNHEALTHY and not look.certain
    if asks_again and before.attempts + 1 < detection.attempts:
        return replace(before, attempts=before.attempts + 1)
    failures, needed = before.failures + 1, 1
    if detection.type is not DetectionType.EVENTS:
        needed = policy.failures * factor
    if before.finding is not Finding.UNHEALTHY and failures < needed:
        return replace(before, failures=failures, attempts=0, evidence=evidence)
    # Counting on would store each look at an unhealthy member.
    counted = failures if failures <= needed else before.failures
    unhealthy = _as(before, Finding.UNHEALTHY, now, evidence, look.hint)
    return replace(unhealthy, failures=counted, successes=0, attempts=0)


def _host_down(policy: HealthPolicy, look: Look, before: Detected, factor: int, now: float) -> Detected:
    """Return the finding of a detection whose newest look reports the host down (ADR 0093).

    A host is down after several such looks in a row without a heartbeat in between. A host with a heartbeat is not
    down, even if it was declared down.
    """
    evidence, needed = look.evidence[:EVIDENCE_MAX], max(policy.failures, hosts.LOOKS) * factor
    if hosts.has_beaten(before.beat, look.beat):
        text = f"it is heard of again: {evidence}"[:EVIDENCE_MAX]
        beats = _as(before, Finding.UNKNOWN, now, text, "") if before.finding is Finding.UNHEALTHY else before
        return replace(beats, failures=1, successes=0, attempts=0, beat=look.beat, still_from=now)
    patience_s = hosts.STILL_S
    # After an outage of the control plane all hosts look silent until their agents have reconnected.
    if before.still_from is None and before.finding is Finding.UNKNOWN:
        patience_s = hosts.AFTER_BLIND_S
    still_from = now + patience_s - hosts.STILL_S if before.still_from is None else before.still_from
    failures = before.failures + 1
    if before.finding is not Finding.UNHEALTHY and (failures < needed or now < still_from + hosts.STILL_S):
        counted = replace(before, evidence=evidence, attempts=0, beat=look.beat, still_from=still_from)
        return replace(counted, failures=min(failures, needed))
    unhealthy = replace(_as(before, Finding.UNHEALTHY, now, evidence, look.hint), beat=look.beat, still_from=still_from)
    return replace(unhealthy, failures=min(failures, needed), successes=0, attempts=0)


def _as(before: Detected, finding: Finding, now: float, evidence: str, hint: str) -> Detected:
    since = before.since if before.finding is finding else now
    return replace(before, finding=finding, since=since, evidence=evidence, hint=hint)


def _combined(
    policy: HealthPolicy, member: Member, detected: Sequence[Detected], now: float, *, was_unhealthy: bool
) -> tuple[Finding, str, str]:
    """Return the combined finding of all detections, the reason, and the operation that would help.

    A healthy look, such as the first look after the grace time, never makes a member unhealthy.
    """
    from_events = [result for result in detected if result.type == DetectionType.EVENTS]
    from_polling = [result for result in detected if result.type != DetectionType.EVENTS]
    failed, notified = (
        [result for result in some if result.finding is Finding.UNHEALTHY and (was_unhealthy or result.successes == 0)]
        for some in (from_polling, from_events)
    )
    unknown = [result for result in detected if result.finding is Finding.UNKNOWN]
    graced = now < member.well_since + policy.grace_s
    counts = policy.is_unhealthy(len(failed)) and not graced
    if notified or counts:
        causes = [*notified, *(failed if counts else ())]
        return Finding.UNHEALTHY, _evidence_of(causes), next((result.hint for result in causes if result.hint), "")
    if unknown and not any(result.finding is Finding.HEALTHY for result in detected):
        return Finding.UNKNOWN, _evidence_of(unknown), ""
    # Unknown detections may hide failures. An unreachable URL always outweighs a healthy status; an unknown host or
    # load balancer counts only in addition to a failure.
    unseen = unknown if failed else [result for result in unknown if result.type == DetectionType.URL]
    if unseen and policy.is_unhealthy(len(failed) + len(unseen)) and not graced:
        return Finding.UNKNOWN, _evidence_of([*failed, *unseen]), ""
    return Finding.HEALTHY, "", ""


def _evidence_of(detected: Sequence[Detected]) -> str:
    return "; ".join(f"{result.type}: {result.evidence}" for result in detected)[: 2 * EVIDENCE_MAX]
