"""Policies that are attached to a cluster, and what they put into its stack beside its nodes. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.specs import Spec
from homeostat.model.errors import Rejected

NAME_SHOWN = 8
"""Characters of the id of a policy in the names of its resources."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A policy that is attached to a cluster.

    Attributes:
        id: Of the policy.
        spec: Checked.
        state: What the service keeps of it (`cluster_policy.state`):
            `name`: what the names of its things are made of: the name that the cluster had, or that of a server group;
            `below`: only nodes with numbers below this one take part, since it is switched off;
            `group`: id of the server group that is taken;
            `home`: regions of the policy that this service itself is.
    """

    id: str
    spec: Spec
    enabled: bool = True
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """Its type without a version."""
        return self.spec.type.name

    def resource(self, what: str) -> str:
        """Return the name of one of its resources in the stack of the cluster."""
        return f"{what}-{self.id[:NAME_SHOWN]}"


@dataclass(frozen=True, slots=True)
class PolicyResources:
    """What the policies of a cluster put into its stack.

    Attributes:
        resources: Resources beside the group of nodes, by name.
        nodes: Entries of what stands beside nodes in their stack (`resources.groups`).
        server_group: Reference of the server group of nodes that were placed in one; None where there is none.
        drain_s: Seconds for which nodes stay once they have left what stands beside them.
    """

    resources: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[Mapping[str, Any]] = ()
    server_group: Any = None
    drain_s: int = 0


def of_type(policies: Iterable[Attached], type_name: str, *, enabled: bool = True) -> Attached | None:
    """Return the policy of a type; None where there is none, or where it is switched off and that counts."""
    found = (each for each in policies if each.type == type_name and (each.enabled or not enabled))
    return next(found, None)


def resource(type_name: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of a template, without properties that are null."""
    return {"type": type_name, "properties": {name: value for name, value in properties.items() if value is not None}}


def taken(type_name: str, handle: str) -> dict[str, Any]:
    """Return a resource of a template that stands for a thing that exists, and that is left as it is."""
    return {"type": type_name, "external_id": handle}


def reference(name: str) -> dict[str, str]:
    return {"get_resource": name}


def refused(message: str) -> Rejected:
    """Return the error for a request that a policy does not let pass."""
    return Rejected("BadRequest", message)
