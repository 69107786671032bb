"""Affinity policies: the server group of new nodes. Pure.

The group is a resource of the cluster's stack, either created there or an existing group. Nodes refer to it by a
property that is used only when a server is created: a change of the group does not change existing servers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.clustering.decisions.attached import Attached, PolicyResources, reference, resource, taken

GROUP = "servergroup"
_TYPE = "OS::Nova::ServerGroup"


def group_name(policy: Mapping[str, Any], hints: Mapping[str, Any] | None = None) -> str:
    """Return the name of the server group that a policy uses if it exists; "" if the policy always creates its group.

    Args:
        policy: Properties of the policy.
        hints: Scheduler hints of the profile, used if the policy names no group.
    """
    return str(policy["servergroup"]["name"] or (hints or {}).get("group") or "")


def group_problem(policy: Mapping[str, Any], policies: Sequence[str]) -> str:
    """Return why an existing server group cannot be used; "" if it can.

    Args:
        policy: Properties of the policy.
        policies: The policies of the group.
    """
    required = policy["servergroup"]["policies"]
    if required in policies:
        return ""
    existing = ", ".join(policies) or "none"
    return f"Policies specified ({required}) doesn't match that of the existing servergroup ({existing})."


def resource_name(policy: Attached) -> str:
    """Return the name of the server group in the stack of the cluster."""
    return policy.resource(GROUP)


def policy_resources(policy: Attached) -> PolicyResources:
    """Return the resources that a policy, enabled or not, adds to the stack of its cluster."""
    name, group = resource_name(policy), policy.spec.properties["servergroup"]
    existing = policy.state.get("group")
    new = resource(_TYPE, name=policy.state.get("name") or None, policies=[group["policies"]])
    return PolicyResources({name: taken(_TYPE, existing) if existing else new}, server_group=reference(name))


def shown(policy: Attached, handles: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of the binding; `handles` maps names of resources in the stack of the cluster to their ids."""
    return {
        "servergroup_id": handles.get(resource_name(policy)) or None,
        "inherited_group": bool(policy.state.get("group")),
    }
