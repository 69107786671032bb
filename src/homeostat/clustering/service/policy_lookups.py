"""What policies name that is outside of the service: server groups and regions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clouds.heat_api import REGION_KIND
from homeostat.clouds.port import Cloud
from homeostat.clouds.regions import OWN
from homeostat.clustering.decisions import affinity
from homeostat.clustering.decisions.policy_types import AFFINITY, REGION_PLACEMENT
from homeostat.clustering.decisions.specs import Spec
from homeostat.model.errors import Rejected
from homeostat.model.observed import Presence

GROUP_KIND = "server_group"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of what a policy names.

    Attributes:
        state: What has to be remembered of it, see `clustering.attached`.
        problem: Why the policy cannot be attached; "" if it can.
    """

    state: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def look_up(cloud: Cloud | None, policy: Spec, profile: Spec) -> Found:
    """Look up what a policy names.

    Args:
        cloud: As the project of the cluster sees it; None where nothing is looked up.
        policy: Checked.
        profile: Profile of the cluster, checked.

    Raises:
        Transient: The cloud does not answer.
    """
    if policy.type is AFFINITY:
        return _server_group(cloud, policy.properties, profile.properties.get("scheduler_hints"))
    if policy.type is REGION_PLACEMENT:
        return _regions(cloud, [each["name"] for each in policy.properties["regions"]])
    return Found()


def _server_group(cloud: Cloud | None, policy: Mapping[str, Any], hints: Mapping[str, Any] | None) -> Found:
    name = affinity.group_name(policy, hints)
    if cloud is None or not name or GROUP_KIND not in cloud.kinds:
        return Found({"name": name})
    try:
        (handle,) = cloud.resolve(GROUP_KIND, [name])
    except Rejected as error:  # several groups have the name
        return Found(problem=error.detail)
    if handle is None:
        return Found({"name": name})
    (seen,) = cloud.observe(GROUP_KIND, [handle])
    if seen.presence is not Presence.PRESENT:
        return Found({"name": name})
    problem = affinity.group_problem(policy, list(seen.properties.get("policies") or ()))
    return Found({"name": name, "group": handle}, problem)


def _regions(cloud: Cloud | None, names: Sequence[str]) -> Found:
    """Return which of the regions are this service's own; one that it does not know is a problem."""
    others = [name for name in names if name != OWN]
    known: Sequence[str | None] = [None] * len(others)
    if cloud is not None and REGION_KIND in cloud.kinds and others:
        known = cloud.resolve(REGION_KIND, others)
    by_name = {OWN: OWN, **dict(zip(others, known, strict=True))}
    unknown = [name for name in names if by_name[name] is None]
    if unknown:
        return Found(problem=f"region {unknown[0]} is not known here; the operator adds it with --region")
    return Found({"home": [name for name in names if by_name[name] == OWN]})
