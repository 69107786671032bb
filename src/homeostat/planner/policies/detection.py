"""Detection: what the looks of a health policy say about a member of a group. Pure (ADR 0072).

Each detection has a finding of its own; together they are healthy, unhealthy or unknown. What cannot be seen is
unknown, never unhealthy. After a member was made, changed or recovered, polling has no say for the grace of the policy.
One that becomes unhealthy again and again has to fail, and to be well, for more looks in a row each time.
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
"""Time for which it counts that a member became unhealthy."""
TURNS_MAX = 4
"""Turns that count at most: the looks that are needed double with each."""
CONVERGE = "converge"
"""The operation that brings back what is lost or broken in a stack, and changes nothing else."""
LOST = "it does not exist any more"

_STOPPED = {"stopped": "start", "lost": "reboot"}
_POLLED = {"error": "", "soft_deleted": "restore", **_STOPPED}
_HEARD = {**_POLLED, "paused": "unpause"}
"""Status words of servers: those that are unhealthy when polled, and when the cloud tells of a change; each with the
operation that brings the server back, "" where none does."""

_BALANCED = {
    "error": (Kind.UNHEALTHY, "in ERROR: it does not pass the health monitor"),
    "online": (Kind.HEALTHY, "online"),
    "degraded": (Kind.HEALTHY, "degraded"),
    "no_monitor": (Kind.NOT_COVERED, "not checked: the pool has no health monitor"),
    "offline": (Kind.NOT_COVERED, "offline: it, or the load balancer, is switched off"),
    "draining": (Kind.BUSY, "draining"),
}
"""Operating status of a place in a pool -> what it says. Only a health monitor that fails says that a member is ill."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group, as far as detection needs it.

    Attributes:
        kind: Its kind in the cloud port.
        observation: What was last seen of it; None if nothing was.
        well_since: When it was made, or last changed or recovered, in seconds since the epoch.
        condition: For other kinds than servers: whether the judgement of its type is that it works; None where that is
            not known.
    """

    kind: str
    observation: Observation | None
    well_since: float
    condition: bool | None = None


def by_status(member: Member, detection: DetectionType) -> Look:
    """Return what the status of a member says, as its cloud tells it."""
    kind, evidence, hint = _status_of(member, detection)
    return verdicts.look(detection, kind, evidence, hint)


def _status_of(member: Member, detection: DetectionType) -> tuple[Kind, str, str]:
    """Return the kind of what the cloud tells, the evidence, and the operation that would help."""
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
"""Detection -> what it says by what the cloud shows of a member, without another request."""


def with_inside(seen: Look, detection: DetectionType, inside: str) -> Look:
    """Return the look at a member that is a stack, with what is unwell in it.

    Args:
        seen: What its own status says.
        detection: The detection.
        inside: What is gone or broken in it; "" for nothing.
    """
    if not inside or seen.finding is Finding.UNKNOWN:
        return seen
    return verdicts.look(detection, Kind.UNHEALTHY, inside, CONVERGE)


def by_hypervisor(member: Member, hypervisor: Observation | None, detection: Detection) -> Look:
    """Return what the state of its host says about a server.

    Args:
        member: The server.
        hypervisor: What was seen of its host; None where it has none.
        detection: The detection.
    """
    kind, evidence = _host_of(member, hypervisor, detection)
    look = verdicts.look(DetectionType.HYPERVISOR, kind, evidence)
    if kind in (Kind.BLIND, Kind.OUT_OF_SIGHT):
        return replace(look, anew=True)
    if hypervisor is None or kind is not Kind.UNHEALTHY or hypervisor.properties.get("state") != hosts.DOWN:
        return look
    forced = bool(hypervisor.properties.get("forced_down"))
    return replace(look, beat=hosts.beat_of(hypervisor.properties.get("updated_at"), forced_down=forced))


def _host_of(member: Member, hypervisor: Observation | None, detection: Detection) -> tuple[Kind, str]:
    """Return the kind of what is seen of the host of a server, and the evidence."""
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
    """Return the kind of what is seen of a host that is called down, and the evidence."""
    name, properties = hypervisor.handle, hypervisor.properties
    if properties.get("blind"):
        return Kind.BLIND, f"its host {name} is called down, and that does not count: {properties['blind']}"
    heard = hosts.beat_text(properties.get("updated_at"))
    since = f", heard of last at {heard}" if heard else ""
    if properties.get("forced_down"):
        return Kind.UNHEALTHY, f"its host {name} is declared down{since}; once it works again, {hosts.to_lift(name)}"
    return Kind.UNHEALTHY, f"its host {name} is down{since}"


def by_balancer(place: Observation | None) -> Look:
    """Return what a load balancer says about a member.

    Args:
        place: What was seen of its place in the pool; None where it has none.
    """
    if place is None or place.presence is Presence.ABSENT:
        return verdicts.look(DetectionType.BALANCER, Kind.GONE, "it has no place in the pool of a load balancer")
    if place.presence is Presence.UNKNOWN:
        reason = place.reason or "its place in the pool could not be looked at"
        return verdicts.look(DetectionType.BALANCER, Kind.OUT_OF_SIGHT, reason)
    word = str(place.properties.get("operating_status") or "")
    kind, text = _BALANCED.get(word, (Kind.UNCLEAR, "in no known state"))
    return verdicts.look(DetectionType.BALANCER, kind, f"in the pool of its load balancer it is {text}")


def found(
    policy: HealthPolicy,
    member: Member,
    looks: Mapping[int, Look],
    before: NodeHealth | None,
    now: float,
) -> NodeHealth:
    """Return the health of a member after a round of looks.

    Args:
        policy: The policy.
        member: The member.
        looks: Number of a detection -> what it has seen; those without a look keep what they have found.
        before: Its health before; None for a member that was never looked at.
        now: The time.
    """
    known = before.detected if before is not None and len(before.detected) == len(policy.detections) else None
    turns = tuple(at for at in (before.turns if before is not None else ()) if at > now - FLAPPING_S)
    # The first turn is no flapping.
    factor = 2 ** min(max(len(turns) - 1, 0), TURNS_MAX)
    detected, again = [], False
    for number, detection in enumerate(policy.detections):
        earlier = known[number] if known is not None else Detected(detection.type, Finding.UNKNOWN, now)
        look = looks.get(number)
        one = earlier if look is None else _counted(look, _detected(policy, detection, look, earlier, factor, now))
        again = again or one.attempts > 0
        detected.append(one)
    was_unhealthy = before is not None and before.finding is Finding.UNHEALTHY
    finding, reason, hint = _together(policy, member, detected, now, was_unhealthy=was_unhealthy)
    if before is not None and before.finding is finding:
        since = before.since
    else:
        since = now
        if finding is Finding.UNHEALTHY and before is not None:
            turns = (*turns, now)[-TURNS_MAX:]
    pause_s = min(
        (detection.pause_s for detection in policy.detections if detection.type is DetectionType.URL), default=0
    )
    return NodeHealth(finding, since, reason, hint, tuple(detected), turns, now + pause_s if again else None)


def is_mending(policy: HealthPolicy, node: NodeHealth) -> bool:
    """Return whether an unhealthy member would be healthy if the newest looks alone counted: too few were well yet."""
    unhealthy = [detected for detected in node.detected if detected.finding is Finding.UNHEALTHY]
    still = [detected for detected in unhealthy if detected.successes == 0]
    events = any(detected.type == DetectionType.EVENTS for detected in still)
    return len(still) < len(unhealthy) and not events and not policy.is_unhealthy(len(still))


def _counted(look: Look, one: Detected) -> Detected:
    """Return what was found, with when places had looked last for it, as long as looks in a row are counted."""
    counts = one.successes > 0 if one.finding is Finding.UNHEALTHY else one.failures > 0
    counted_at = one.counted_at if look.counted_at is None else look.counted_at
    return replace(one, counted_at=counted_at if counts else None)


def _detected(
    policy: HealthPolicy, detection: Detection, look: Look, before: Detected, factor: int, now: float
) -> Detected:
    evidence = look.evidence[:EVIDENCE_MAX]
    if look.anew:
        return replace(
            _as(before, Finding.UNKNOWN, now, evidence, ""), failures=0, attempts=0, beat="", still_from=None
        )
    if look.finding is Finding.UNKNOWN:
        # The attempts of a look follow one another: those before this one belong to another look.
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
    # Counting on would store each look at what is unhealthy already.
    counted = failures if failures <= needed else before.failures
    unhealthy = _as(before, Finding.UNHEALTHY, now, evidence, look.hint)
    return replace(unhealthy, failures=counted, successes=0, attempts=0)


def _host_down(policy: HealthPolicy, look: Look, before: Detected, factor: int, now: float) -> Detected:
    """Return what looks find together of which the newest calls a host down (ADR 0093).

    That counts once several looks in a row have found so, between which the host has not beaten. One that was declared
    down and beats is not down, no matter who has declared that.
    """
    evidence, needed = look.evidence[:EVIDENCE_MAX], max(policy.failures, hosts.LOOKS) * factor
    if hosts.has_beaten(before.beat, look.beat):
        text = f"it is heard of again: {evidence}"[:EVIDENCE_MAX]
        beats = _as(before, Finding.UNKNOWN, now, text, "") if before.finding is Finding.UNHEALTHY else before
        return replace(beats, failures=1, successes=0, attempts=0, beat=look.beat, still_from=now)
    patience_s = hosts.STILL_S
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


def _together(
    policy: HealthPolicy, member: Member, detected: Sequence[Detected], now: float, *, was_unhealthy: bool
) -> tuple[Finding, str, str]:
    """Return what all detections together have found, why, and the operation that would help.

    No member becomes unhealthy by a look that was well, such as the first one after its grace.
    """
    heard = [result for result in detected if result.type == DetectionType.EVENTS]
    polled = [result for result in detected if result.type != DetectionType.EVENTS]
    failed, told = (
        [result for result in some if result.finding is Finding.UNHEALTHY and (was_unhealthy or result.successes == 0)]
        for some in (polled, heard)
    )
    unknown = [result for result in detected if result.finding is Finding.UNKNOWN]
    graced = now < member.well_since + policy.grace_s
    counts = policy.is_unhealthy(len(failed)) and not graced
    if told or counts:
        guilty = [*told, *(failed if counts else ())]
        return Finding.UNHEALTHY, _said(guilty), next((result.hint for result in guilty if result.hint), "")
    if unknown and not any(result.finding is Finding.HEALTHY for result in detected):
        return Finding.UNKNOWN, _said(unknown), ""
    # As many more could have failed as could not be seen. A URL that could not be asked always says more than a status
    # that is well; a host, or a load balancer, that says nothing does so only beside what has failed.
    unseen = unknown if failed else [result for result in unknown if result.type == DetectionType.URL]
    if unseen and policy.is_unhealthy(len(failed) + len(unseen)) and not graced:
        return Finding.UNKNOWN, _said([*failed, *unseen]), ""
    return Finding.HEALTHY, "", ""


def _said(detected: Sequence[Detected]) -> str:
    return "; ".join(f"{result.type}: {result.evidence}" for result in detected)[: 2 * EVIDENCE_MAX]
