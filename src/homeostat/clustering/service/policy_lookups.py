"""External references in policies: server groups, regions and URLs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clouds.heat_api import REGION_KIND
from homeostat.clouds.outbound import Outbound
from homeostat.clouds.port import Cloud
from homeostat.clouds.regions import OWN
from homeostat.clustering.decisions import affinity
from homeostat.clustering.decisions.health_policy import HEALTH
from homeostat.clustering.decisions.placeholders import fixed_hosts
from homeostat.clustering.decisions.policy_types import AFFINITY, REGION_PLACEMENT
from homeostat.clustering.decisions.specs import Path, Spec
from homeostat.model.errors import Rejected
from homeostat.model.observed import Presence

GROUP_KIND = "server_group"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The result of the lookup of a policy's references.

    Attributes:
        state: Entries for the stored state of the policy, see `decisions.attached`.
        problem: Why the policy cannot be attached; "" if it can.
    """

    state: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def look_up(cloud: Cloud | None, policy: Spec, profile: Spec) -> Lookup:
    """Look up the server group or the regions in a policy.

    Args:
        cloud: The cloud of the cluster's project; None to look up nothing.
        policy: A checked policy.
        profile: The checked profile of the cluster.

    Raises:
        Transient: The cloud does not answer.
    """
    if policy.type is AFFINITY:
        return _server_group(cloud, policy.properties, profile.properties.get("scheduler_hints"))
    if policy.type is REGION_PLACEMENT:
        return _regions(cloud, [region["name"] for region in policy.properties["regions"]])
    return Lookup()


def _server_group(cloud: Cloud | None, policy: Mapping[str, Any], hints: Mapping[str, Any] | None) -> Lookup:
    name = affinity.group_name(policy, hints)
    if cloud is None or not name or GROUP_KIND not in cloud.kinds:
        return Lookup({"name": name})
    try:
        (handle,) = cloud.resolve(GROUP_KIND, [name])
    except Rejected as error:  # several groups have the name
        return Lookup(problem=error.detail)
    if handle is None:
        return Lookup({"name": name})
    (observation,) = cloud.observe(GROUP_KIND, [handle])
    if observation.presence is not Presence.PRESENT:
        return Lookup({"name": name})
    problem = affinity.group_problem(policy, list(observation.properties.get("policies") or ()))
    return Lookup({"name": name, "group": handle}, problem)


def _regions(cloud: Cloud | None, names: Sequence[str]) -> Lookup:
    """Return the regions that are this service's own; an unknown region is a problem."""
    others = [name for name in names if name != OWN]
    known: Sequence[str | None] = [None] * len(others)
    if cloud is not None and REGION_KIND in cloud.kinds and others:
        known = cloud.resolve(REGION_KIND, others)
    by_name = {OWN: OWN, **dict(zip(others, known, strict=True))}
    unknown = [name for name in names if by_name[name] is None]
    if unknown:
        return Lookup(problem=f"region {unknown[0]} is not known here; the operator adds it with --region")
    return Lookup({"home": [name for name in names if by_name[name] == OWN]})


def forbidden_url(spec: Spec, outbound: Outbound) -> tuple[str, Path] | None:
    """Return problem and path of the first URL of a health policy that the service may not call, or None."""
    if spec.type is not HEALTH:
        return None
    for url, path in fixed_hosts(spec.properties):
        try:
            outbound.check_now(url)
        except ValueError as error:
            return f"{url}: {error}", path
    return None
