"""Affinity policies: the server group that new nodes are made in. Pure.

The group is a resource of the cluster's stack, made there or taken. A node that was placed in it refers to it by a
property that counts only when a server is made: another group, or none, changes no server that there is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clustering.decisions.attached import Attached, PolicyResources, reference, resource, taken

GROUP = "servergroup"
_TYPE = "OS::Nova::ServerGroup"


def group_name(policy: Mapping[str, Any], hints: Mapping[str, Any] | None = None) -> str:
    """Return the name of the server group that a policy takes if it exists; "" where it makes one of its own.

    Args:
        policy: Properties of the policy.
        hints: Hints to the scheduler of the profile, which count where the policy has no name.
    """
    return str(policy["servergroup"]["name"] or (hints or {}).get("group") or "")


def group_problem(policy: Mapping[str, Any], policies: Sequence[str]) -> str:
    """Return why a server group that exists cannot be taken; "" if it can.

    Args:
        policy: Properties of the policy.
        policies: The policies of the group.
    """
    wanted = policy["servergroup"]["policies"]
    if wanted in policies:
        return ""
    existing = ", ".join(policies) or "none"
    return f"Policies specified ({wanted}) doesn't match that of the existing servergroup ({existing})."


def resource_name(policy: Attached) -> str:
    """Return the name of the server group in the stack of the cluster."""
    return policy.resource(GROUP)


def policy_resources(policy: Attached) -> PolicyResources:
    """Return what a policy puts into the stack of its cluster, also while it is switched off."""
    name, group = resource_name(policy), policy.spec.properties["servergroup"]
    existing = policy.state.get("group")
    made = resource(_TYPE, name=policy.state.get("name") or None, policies=[group["policies"]])
    return PolicyResources({name: taken(_TYPE, existing) if existing else made}, server_group=reference(name))


def shown(policy: Attached, handles: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of the binding; `handles` are ids of resources by their names in the stack of the cluster."""
    return {
        "servergroup_id": handles.get(resource_name(policy)) or None,
        "inherited_group": bool(policy.state.get("group")),
    }
