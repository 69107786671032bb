"""Policies attached to a cluster, and the resources that they add to its stack. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.specs import Spec
from homeostat.model.group import Companion

NAME_SHOWN = 8
"""Characters of the id of a policy in the names of its resources."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A policy that is attached to a cluster.

    Attributes:
        id: Of the policy.
        spec: Checked.
        state: Its stored state (`cluster_policy.state`):
            `name`: base of the names of its resources: the cluster's name when attached, or a server group's;
            `below`: only nodes with lower numbers take part, since the policy was disabled;
            `group`: id of an existing server group in use;
            `home`: regions of the policy that are this service's own.
    """

    id: str
    spec: Spec
    enabled: bool = True
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The type without a version."""
        return self.spec.type.name

    def resource(self, part: str) -> str:
        """Return the name of a resource of the policy in the stack of the cluster."""
        return f"{part}-{self.id[:NAME_SHOWN]}"


@dataclass(frozen=True, slots=True)
class PolicyResources:
    """Resources that the policies of a cluster add to its stack.

    Attributes:
        resources: Further resources of the stack, besides the group of nodes: name -> definition.
        companions: Companion resources of the nodes.
        server_group: Reference of the server group of the nodes; None without one.
        drain_s: Seconds for which nodes stay after the deletion of their companion resources.
    """

    resources: Mapping[str, Any] = field(default_factory=dict)
    companions: Sequence[Companion] = ()
    server_group: Any = None
    drain_s: int = 0


def of_type(policies: Iterable[Attached], type_name: str, *, enabled: bool = True) -> Attached | None:
    """Return the policy of a type; None if missing, or if `enabled` is set and it is disabled."""
    matches = (policy for policy in policies if policy.type == type_name and (policy.enabled or not enabled))
    return next(matches, None)


def resource(type_name: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of a template, without properties that are null."""
    return {"type": type_name, "properties": {name: value for name, value in properties.items() if value is not None}}


def taken(type_name: str, handle: str) -> dict[str, Any]:
    """Return a resource of a template for an existing object of the cloud, which stays unchanged."""
    return {"type": type_name, "external_id": handle}


def reference(name: str) -> dict[str, str]:
    return {"get_resource": name}
