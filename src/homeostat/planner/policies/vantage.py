"""What URLs say that are asked from several places, which differ in how much they count. Pure (ADR 0080).

An observer that is cut off finds everything silent. Where so many places as the policy asks for agree that a member
does not answer, it does not; where those that are left could still make it so or not, nothing is known.

Looks in a row are counted by what the places have found anew: together they may be put more often than places look.
"""

from collections.abc import Mapping
from dataclasses import replace

from homeostat.model.answers import Detector, Kind
from homeostat.model.health_policy import HealthPolicy
from homeostat.model.node_health import Finding, Look
from homeostat.model.vantage import Seen, VantageLook
from homeostat.planner.policies import verdicts


def together(
    policy: HealthPolicy,
    looks: Mapping[str, VantageLook],
    place: tuple[str, int],
    changed_at: float,
    counted_at: float | None,
    now: float,
) -> Look | None:
    """Return what all places together have found of one URL of a member; None where that was counted already.

    Args:
        policy: The policy, which names the places.
        looks: Name of a place -> what was found from there.
        place: Row key of the member, and number of the detection.
        changed_at: When the member was made, or acted on last: what was found before says nothing of it.
        counted_at: While looks in a row are counted: when the newest look of a place that has counted began.
        now: The time.
    """
    found = _together(policy, looks, place, changed_at, now)
    if found.finding is Finding.UNKNOWN:
        return found
    if counted_at is not None:
        anew = {name: look for name, look in looks.items() if look.looked_at is None or look.looked_at > counted_at}
        if _together(policy, anew, place, changed_at, now).finding is not found.finding:
            return None
    named = (looks.get(point.name) for point in policy.vantage_points)
    return replace(found, counted_at=max(look.looked_at or 0.0 for look in named if look is not None))


def _together(
    policy: HealthPolicy, looks: Mapping[str, VantageLook], place: tuple[str, int], changed_at: float, now: float
) -> Look:
    said: dict[Finding, list[tuple[str, str]]] = {each: [] for each in Finding}
    weights = dict.fromkeys(Finding, 0)
    for point in policy.vantage_points:
        seen = _seen(policy, looks.get(point.name), place, changed_at, now)
        said[seen.finding].append((point.name, seen.evidence))
        weights[seen.finding] += point.weight
    whole, needed = sum(weights.values()), policy.vantage_quorum
    if weights[Finding.UNHEALTHY] >= needed:
        text = f"{weights[Finding.UNHEALTHY]} of {whole}: {_listed(said[Finding.UNHEALTHY])}"
        return verdicts.look(Detector.PLACE, Kind.UNHEALTHY, text, certain=True)
    if weights[Finding.UNHEALTHY] + weights[Finding.UNKNOWN] < needed:
        failed = said[Finding.UNHEALTHY]
        return verdicts.look(Detector.PLACE, Kind.HEALTHY, f"fails only from {_listed(failed)}" if failed else "")
    return verdicts.look(Detector.PLACE, Kind.DISAGREED, f"not known from {_listed(said[Finding.UNKNOWN])}")


def _seen(
    policy: HealthPolicy, look: VantageLook | None, place: tuple[str, int], changed_at: float, now: float
) -> Seen:
    if look is None or look.looked_at is None:
        return Seen(Finding.UNKNOWN, "no worker there has looked yet")
    if now - look.looked_at > policy.stale_s:
        return Seen(Finding.UNKNOWN, f"no worker there has looked for {now - look.looked_at:.0f} s")
    if look.looked_at < changed_at:
        return Seen(Finding.UNKNOWN, "it was not asked there yet")
    return look.findings.get(place[0], {}).get(place[1], Seen(Finding.HEALTHY))


def _listed(said: list[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {evidence}" for name, evidence in said)
