"""Places from which URLs are asked (ADR 0080): which of them have workers, and what policies say of them."""

import random
from collections.abc import Collection, Sequence
from typing import Any

from homeostat.model.health_policy import DEFAULT_VANTAGE, DetectionType, HealthPolicy

Spec = dict[str, Any]
PLACES = (DEFAULT_VANTAGE, "b", "c")
"""Places with workers, in worlds that have several."""
NOWHERE = "nowhere"
"""A place without any."""
DUE = "SELECT vantage, min(due_at) FROM vantage_look GROUP BY vantage"


def places_of(seed: int) -> tuple[str, ...]:
    """Half of all worlds have several."""
    return PLACES if random.Random(f"places {seed}").random() < 0.5 else PLACES[:1]


def with_places(spec: Spec, rng: random.Random, places: Sequence[str]) -> Spec:
    """A policy whose URLs are asked from any of these places, which may differ in how much they count."""
    names = rng.sample(places, rng.randint(1, len(places)))
    if rng.random() < 0.15:
        names.append(NOWHERE)
    points: list[Spec] = [{"name": each, **rng.choice(({}, {}, {"weight": 2}))} for each in names]
    whole = sum(each.get("weight", 1) for each in points)
    quorum: Spec = rng.choice(({}, {}, {"vantage_quorum": rng.randint(1, whole)}))
    return _with_points(spec, points, quorum)


def asked_from(spec: Spec, places: Collection[str]) -> Spec:
    """The policy without the places that have no workers, and with half of those that are left as its quorum."""
    points = spec["properties"]["detection"].get("vantage_points", [])
    return _with_points(spec, [each for each in points if each["name"] in places], {})


def _with_points(spec: Spec, points: Sequence[Spec], quorum: Spec) -> Spec:
    detection = {key: value for key, value in spec["properties"]["detection"].items() if "vantage" not in key}
    detection |= {"vantage_points": points, **quorum} if points else {}
    return {**spec, "properties": {**spec["properties"], "detection": detection}}


def asks_urls(spec: Spec) -> bool:
    return any(each["type"] == DetectionType.URL for each in spec["properties"]["detection"]["detection_modes"])


def are_staffed(policy: HealthPolicy, places: Collection[str]) -> bool:
    """Has each place of a policy workers?"""
    return all(each.name in places for each in policy.vantage_points)
