"""Resources that all policies of a cluster together add to its stack. Pure."""

from collections.abc import Iterable

from homeostat.clustering.decisions import affinity, choices, load_balancing
from homeostat.clustering.decisions.attached import Attached, PolicyResources, of_type
from homeostat.clustering.decisions.policy_types import AFFINITY, DELETION, LOAD_BALANCING
from homeostat.resources.group_limits import DRAIN_MAX_S


def grace_s(policies: Iterable[Attached]) -> int:
    """Return the seconds that leaving nodes wait before their deletion."""
    deletion = of_type(policies, DELETION.name)
    return min(choices.deletion_rule(deletion.spec).grace_s, DRAIN_MAX_S) if deletion is not None else 0


def policy_resources(policies: Iterable[Attached], *, leaving: bool = False) -> PolicyResources:
    """Return the resources that the policies of a cluster add to its stack.

    Args:
        policies: All attached policies, also disabled ones.
        leaving: Whether nodes leave with the revision.
    """
    attached = list(policies)
    grace = grace_s(attached)
    parts = []
    balancing = of_type(attached, LOAD_BALANCING.name, enabled=False)
    if balancing is not None:
        parts.append(load_balancing.policy_resources(balancing, grace))
    placing = of_type(attached, AFFINITY.name, enabled=False)
    if placing is not None:
        parts.append(affinity.policy_resources(placing))
    return PolicyResources(
        {name: definition for part in parts for name, definition in part.resources.items()},
        [companion for part in parts for companion in part.companions],
        next((part.server_group for part in parts if part.server_group is not None), None),
        max([part.drain_s for part in parts if part.companions] + ([grace] if leaving else []), default=0),
    )
