"""Checks of a template's clustering resources (profiles, policies, cluster sizes) before any resource exists."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from homeostat.clustering.decisions import health_policy
from homeostat.clustering.decisions.health_policy import Intervals
from homeostat.clustering.decisions.placeholders import fixed_hosts
from homeostat.clustering.decisions.policies import POLICY_TYPES, check_policy, stored_policy
from homeostat.clustering.decisions.profiles import PROFILE_TYPES, check_profile
from homeostat.clustering.decisions.sizes import new_sizes
from homeostat.clustering.decisions.specs import Catalogue, Spec, spec_of_template
from homeostat.model.errors import Rejected, invalid
from homeostat.resources.base import ResourceType
from homeostat.resources.custom_constraints import Path
from homeostat.resources.families.health_policies import HEALTH, policy_spec
from homeostat.resources.families.senlin import CLUSTER, POLICY, PROFILE
from homeostat.resources.schema import UNKNOWN
from homeostat.templates.tree import holds

SPECS: Mapping[str, tuple[str, Catalogue, Callable[[Any], Spec]]] = {
    PROFILE: ("profile type", PROFILE_TYPES, check_profile),
    POLICY: ("policy type", POLICY_TYPES, stored_policy),
}
"""Kind -> name of its types in messages, the types, and the check of a spec."""
SIZES = ("desired_capacity", "min_size", "max_size")


def check_clustering(
    kind: ResourceType, values: Mapping[str, Any], path: Path, interval_min: int
) -> Iterable[tuple[str, Path]]:
    """Check the spec of a profile or policy, a health policy, or the sizes of a cluster, as far as they are known yet.

    Args:
        kind: Type of the resource.
        values: Coerced properties; they may hold `UNKNOWN`.
        path: Path of the resource.
        interval_min: The operator's shortest interval of health checks, in seconds.

    Returns:
        URLs that the service will poll, and their places.

    Raises:
        Rejected: Names the place.
    """
    if kind.kind in SPECS:
        spec = _check_spec(*SPECS[kind.kind], values, (*path, "properties"))
        if spec is not None and spec.type is health_policy.HEALTH:
            return _urls(spec, (*path, "properties", "properties"))
    elif kind.kind == HEALTH and not any(holds(values.get(name), UNKNOWN) for name in ("detection", "recovery")):
        return _urls(_check_health(policy_spec(values), interval_min, (*path, "properties")), (*path, "properties"))
    elif kind.kind == CLUSTER and not any(values.get(name) is UNKNOWN for name in SIZES):
        desired, least, most = (values.get(name) for name in SIZES)
        try:
            new_sizes(desired, least, most)
        except Rejected as error:
            raise invalid(error.detail, *path, "properties", error="Property error") from error
    return ()


def _urls(spec: Spec, path: Path) -> Iterable[tuple[str, Path]]:
    return [(url, (*path, *place)) for url, place in fixed_hosts(spec.properties)]


def _check_health(spec: Mapping[str, Any], interval_min: int, path: Path) -> Spec:
    try:
        return check_policy(spec, Intervals(interval_min))
    except Rejected as error:
        raise invalid(error.detail, *path, error="Property error") from error


def _check_spec(
    word: str, catalogue: Catalogue, check: Callable[[Any], Spec], values: Mapping[str, Any], path: Path
) -> Spec | None:
    name, properties = values.get("type"), values.get("properties") or {}
    if name is UNKNOWN:
        return None
    spec = spec_of_template(str(name), {} if properties is UNKNOWN else properties)
    try:
        catalogue.of_spec(spec)
    except Rejected as error:
        listed = ", ".join(sorted(catalogue.full_names))
        known = f"Unable to find senlin {word} '{name}', available {word}s are {listed}."
        message = known if error.fault == "ResourceNotFound" else error.detail
        raise invalid(message, *path, "type", error="Property error") from error
    if properties is UNKNOWN or holds(properties, UNKNOWN):
        return None
    try:
        return check(spec)
    except Rejected as error:
        raise invalid(error.detail, *path, "properties", error="Property error") from error
