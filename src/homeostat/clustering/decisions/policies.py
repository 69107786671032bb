"""Policies: rules of a cluster for changes of its size, and for unhealthy nodes. Pure.

`check_policy` makes a `Spec` from the user's input. `policy_kind` has the order in which policies act, their actions,
and the clusters that they fit.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from homeostat.clustering.decisions import detection_forms, health_policy, policy_types
from homeostat.clustering.decisions.health_policy import HEALTH, Intervals
from homeostat.clustering.decisions.profiles import SERVER_PROFILE
from homeostat.clustering.decisions.specs import Catalogue, Spec, SpecType
from homeostat.model.health_policy import HealthPolicy
from homeostat.resources.group_limits import DRAIN_MAX_S
from homeostat.resources.schema import text

POLICIES_MAX = 1000
"""Cached health policies."""
_SIZES = ("CLUSTER_SCALE_OUT", "CLUSTER_SCALE_IN", "CLUSTER_RESIZE", "NODE_CREATE")
_HEALTH = (
    "CLUSTER_RECOVER",
    "CLUSTER_DEL_NODES",
    "CLUSTER_SCALE_IN",
    "CLUSTER_RESIZE",
    "CLUSTER_UPDATE",
    "CLUSTER_REPLACE_NODES",
    "NODE_DELETE",
)
_JOINING = ("ADD_NODES", "SCALE_OUT", "RESIZE", "REPLACE_NODES")
_LEAVING = ("DEL_NODES", "SCALE_IN", "RESIZE", "REPLACE_NODES")


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """How policies of a type act.

    Attributes:
        priority: Policies of a cluster act in this order, the smallest first.
        before, after: Actions before, and after, which policies act.
        data_key: Key of the data in a binding.
        data_version: Version of the data.
        check: Checks beyond the schema, or None.
        servers_only: Whether policies fit clusters of servers only.
        singleton: Whether a cluster has at most one policy of the type, of any version.
    """

    type: SpecType
    priority: int
    before: frozenset[str]
    after: frozenset[str]
    data_key: str
    data_version: str = "1.0"
    check: policy_types.Check | None = None
    servers_only: bool = False
    singleton: bool = True


def _kind(spec_type: SpecType, priority: int, key: str, before: Iterable[str], **more: Any) -> PolicyKind:
    after = frozenset(more.pop("after", ()))
    return PolicyKind(spec_type, priority, frozenset(before), after, key, **more)


_KINDS = (
    _kind(
        policy_types.SCALING,
        100,
        "ScalingPolicy",
        ("CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"),
        after=("CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"),
        check=policy_types.check_scaling,
        singleton=False,
    ),
    _kind(policy_types.BATCH, 200, "BatchPolicy", ("CLUSTER_UPDATE",)),
    _kind(policy_types.REGION_PLACEMENT, 200, "RegionPlacementPolicy", _SIZES, check=policy_types.check_places),
    _kind(
        policy_types.ZONE_PLACEMENT,
        300,
        "ZonePlacementPolicy",
        _SIZES,
        check=policy_types.check_places,
        servers_only=True,
    ),
    _kind(
        policy_types.AFFINITY,
        300,
        "AffinityPolicy",
        ("CLUSTER_SCALE_OUT", "CLUSTER_RESIZE", "NODE_CREATE"),
        check=policy_types.check_affinity,
        servers_only=True,
    ),
    _kind(
        policy_types.DELETION,
        400,
        "DeletionPolicy",
        ("CLUSTER_SCALE_IN", "CLUSTER_DEL_NODES", "CLUSTER_RESIZE", "NODE_DELETE"),
        data_version="1.1",
        check=policy_types.check_deletion,
    ),
    _kind(
        policy_types.LOAD_BALANCING,
        500,
        "LoadBalancingPolicy",
        (*(f"CLUSTER_{name}" for name in _LEAVING), "NODE_DELETE"),
        after=(*(f"CLUSTER_{name}" for name in _JOINING), "NODE_CREATE", "NODE_RECOVER"),
        data_version="1.3",
        check=policy_types.check_load_balancing,
        servers_only=True,
    ),
    _kind(HEALTH, 600, "HealthPolicy", _HEALTH, after=_HEALTH, data_version="1.2"),
)
_BY_NAME: Mapping[str, PolicyKind] = {kind.type.name: kind for kind in _KINDS}
POLICY_TYPES = Catalogue("policy_type", tuple(kind.type for kind in _KINDS), {"description": text(default="")})


def policy_kind(full_name: str) -> PolicyKind:
    """Return how policies of a type act.

    Args:
        full_name: Type with its version.

    Raises:
        Rejected: ResourceNotFound.
    """
    return _BY_NAME[POLICY_TYPES.find(full_name)[0].name]


STORED = Intervals(0, 2**31)
"""Limits for stored policies: the operator's limits applied when they were created, and may have changed since."""


def stored_policy(spec: Any) -> Spec:
    """Return the checked form of a stored policy."""
    return check_policy(spec, STORED)


def stored_health_policy(spec: Mapping[str, Any]) -> HealthPolicy:
    """Return the health policy of a stored spec; cached by content."""
    return _health_policy(json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=POLICIES_MAX)
def _health_policy(text: str) -> HealthPolicy:
    return health_policy.health_policy(stored_policy(json.loads(text)))


def check_policy(spec: Any, intervals: Intervals | None = None) -> Spec:
    """Check the spec of a policy.

    Args:
        intervals: Limits of the operator for the interval of health checks; None for Senlin's limits.

    Raises:
        Rejected: ESchema, ResourceNotFound or InvalidSpec.
    """
    spec_type, _ = POLICY_TYPES.of_spec(spec)
    if spec_type is HEALTH:
        return health_policy.check(lambda before: POLICY_TYPES.check(spec, before), intervals or Intervals())
    checked = POLICY_TYPES.check(spec)
    check = _BY_NAME[spec_type.name].check
    if check is not None:
        check(checked.properties)
    return checked


def attach_problem(policy: Spec, profile: str, attached: Iterable[str], region: str = "") -> str:
    """Return why a policy cannot be attached to a cluster; "" if it can.

    Args:
        policy: Checked.
        profile: Type of the cluster's profile, with its version.
        attached: Types, with versions, of the attached policies.
        region: Region in the profile; "" for the service's own.
    """
    kind = policy_kind(policy.full_name)
    names = {full_name: POLICY_TYPES.find(full_name)[0].name for full_name in attached}
    same = sorted(full_name for full_name, name in names.items() if name == kind.type.name)
    if kind.singleton and same:
        return (
            f"Only one instance of policy type ({kind.type.name}) can be attached to a cluster, but another instance "
            f"({same[0]}) is found attached to the cluster already."
        )
    if kind.servers_only and profile != SERVER_PROFILE:
        return f"Policy not applicable on profile type: {profile}"
    if kind.type is not HEALTH:
        return _place_problem(kind.type, {*names.values()}, region) or _grace_problem(policy)
    health = health_policy.health_policy(policy)
    problem = health_policy.problem_on(health, profile, profile == SERVER_PROFILE)
    balanced = policy_types.LOAD_BALANCING.name in names.values()
    if not problem and not balanced and any(full_name.type == "LB_STATUS_POLLING" for full_name in health.detections):
        return (
            "Detection mode LB_STATUS_POLLING needs a policy of type senlin.policy.loadbalance; attach that one first."
        )
    return problem


def _place_problem(spec_type: SpecType, beside: set[str], region: str) -> str:
    """Return why a load balancing or placement policy conflicts with the regions of the nodes; "" if it does not."""
    apart = {policy_types.LOAD_BALANCING.name, policy_types.REGION_PLACEMENT.name}
    if spec_type.name in apart and beside & apart:
        return (
            "Policies for load balancing and for placement by region cannot be attached to one cluster: " + ONE_REGION
        )
    if spec_type is policy_types.LOAD_BALANCING and region:
        return f"Policy not applicable: the nodes are in the region {region}, and {ONE_REGION}"
    return ""


ONE_REGION = "a load balancer leads to nodes of its own region only"


def _grace_problem(policy: Spec) -> str:
    grace_s = policy.properties["grace_period"] if policy.type is policy_types.DELETION else 0
    return f"A grace_period of at most {DRAIN_MAX_S} seconds is possible." if grace_s > DRAIN_MAX_S else ""


def binding_data(policy: Spec, resources: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the data of a binding, as Senlin shows them; None for a policy without data.

    Args:
        resources: Data about the resources of a load balancing or affinity policy.
    """
    kind = policy_kind(policy.full_name)
    data = detection_forms.binding_data(policy) if kind.type is HEALTH else resources
    return None if data is None else {kind.data_key: {"version": kind.data_version, "data": dict(data)}}


__all__ = [
    "POLICY_TYPES",
    "Intervals",
    "PolicyKind",
    "attach_problem",
    "binding_data",
    "check_policy",
    "policy_kind",
]
