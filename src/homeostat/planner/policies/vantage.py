"""Combined look at a URL from several weighted vantage points. Pure (ADR 0080).

An isolated observer finds all URLs silent. A member is unhealthy if a quorum of vantage points agree that it does not
answer; while the undecided vantage points could still make the quorum, the result is unknown.

Only new results of vantage points count as looks in a row, since they may be combined more often than the vantage
points look.
"""

from collections.abc import Mapping
from dataclasses import replace

from homeostat.model.answers import Detector, Kind
from homeostat.model.health_policy import HealthPolicy
from homeostat.model.node_health import Finding, Look
from homeostat.model.vantage import Seen, VantageLook
from homeostat.planner.policies import verdicts


def combined_look(
    policy: HealthPolicy,
    looks: Mapping[str, VantageLook],
    place: tuple[str, int],
    changed_at: float,
    counted_at: float | None,
    now: float,
) -> Look | None:
    """Return the combined look at a URL of a member; None if it was counted already.

    Args:
        policy: The health policy with the vantage points.
        looks: Name of a vantage point -> its look.
        place: Row key of the member, and number of the detection.
        changed_at: Time of the creation of, or last act on, the member: older looks do not count.
        counted_at: Start of the newest counted look, while looks in a row are being counted.
    """
    result = _combined(policy, looks, place, changed_at, now)
    if result.finding is Finding.UNKNOWN:
        return result
    if counted_at is not None:
        # The finding has to hold by new looks alone: an old look of one vantage point must not be counted
        # with each new look of another.
        anew = {name: look for name, look in looks.items() if look.looked_at is None or look.looked_at > counted_at}
        if _combined(policy, anew, place, changed_at, now).finding is not result.finding:
            return None
    counted_looks = (looks.get(point.name) for point in policy.vantage_points)
    return replace(result, counted_at=max(look.looked_at or 0.0 for look in counted_looks if look is not None))


def _combined(
    policy: HealthPolicy, looks: Mapping[str, VantageLook], place: tuple[str, int], changed_at: float, now: float
) -> Look:
    evidence: dict[Finding, list[tuple[str, str]]] = {finding: [] for finding in Finding}
    weights = dict.fromkeys(Finding, 0)
    for point in policy.vantage_points:
        seen = _seen(policy, looks.get(point.name), place, changed_at, now)
        evidence[seen.finding].append((point.name, seen.evidence))
        weights[seen.finding] += point.weight
    whole, needed = sum(weights.values()), policy.vantage_quorum
    if weights[Finding.UNHEALTHY] >= needed:
        text = f"{weights[Finding.UNHEALTHY]} of {whole}: {_listed(evidence[Finding.UNHEALTHY])}"
        return verdicts.look(Detector.PLACE, Kind.UNHEALTHY, text, certain=True)
    # Even if all unknown vantage points said no, there would be no quorum.
    if weights[Finding.UNHEALTHY] + weights[Finding.UNKNOWN] < needed:
        failed = evidence[Finding.UNHEALTHY]
        return verdicts.look(Detector.PLACE, Kind.HEALTHY, f"fails only from {_listed(failed)}" if failed else "")
    return verdicts.look(Detector.PLACE, Kind.DISAGREED, f"not known from {_listed(evidence[Finding.UNKNOWN])}")


def _seen(
    policy: HealthPolicy, look: VantageLook | None, place: tuple[str, int], changed_at: float, now: float
) -> Seen:
    if look is None or look.looked_at is None:
        return Seen(Finding.UNKNOWN, "no worker there has looked yet")
    if now - look.looked_at > policy.stale_s:
        return Seen(Finding.UNKNOWN, f"no worker there has looked for {now - look.looked_at:.0f} s")
    if look.looked_at < changed_at:
        return Seen(Finding.UNKNOWN, "it was not asked there yet")
    # Vantage points store only failures and doubts: no entry in a valid look means that the URL answered.
    return look.findings.get(place[0], {}).get(place[1], Seen(Finding.HEALTHY))


def _listed(answers: list[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {evidence}" for name, evidence in answers)
