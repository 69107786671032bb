"""Changes of a cluster: computed from its stored state, and stored together with a revision of its stack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeostat.clustering.decisions.attached import Attached
from homeostat.clustering.decisions.placement import Placement
from homeostat.clustering.decisions.specs import Spec
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import ClusterRow, NodeRow


class Outdated(Exception):
    """The cluster has changed since it was read: read it again, and compute the change anew."""


@dataclass(frozen=True, slots=True)
class StartedAction:
    """An action that a request has started, and its target."""

    target: str
    action: str


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of the policies that are attached to a cluster.

    Attributes:
        seen: Id of an existing binding -> whether it is enabled: the state from which the change was computed.
        after: The policies attached after the change.
        added: Columns of a new binding; None for none.
        removed: Id of the removed binding; "" for none.
        changed: Id of a binding -> changed columns.
        forgotten: Keys of obsolete placements of nodes.
    """

    seen: Mapping[str, bool]
    after: Sequence[Attached]
    added: Mapping[str, Any] | None = None
    removed: str = ""
    changed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    forgotten: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A change of a cluster.

    Attributes:
        action: The type of the action.
        name: The name of the action.
        inputs: The inputs of the request.
        columns: New values of columns of the cluster.
        added: Number of added nodes.
        leaving: Numbers of the leaving nodes.
        spec: New profile for all nodes, or None.
        at_once: The stack stays as it is.
        batches: Settings of the batches of changed nodes; None for all at once.
        nodes: Columns of all nodes.
        placements: Placements of the added nodes; () if no policy chooses them.
        cooled: Policies whose cooldown begins.
        policies: Change of the attached policies, or None.
        failure: Reason of an action that failed without any change; "" for none.
        joining: Rows of the joining nodes, which have no cluster so far.
        released: Rows of the nodes that leave without being deleted, each into its own stack.
        hook: Lifecycle hook of the nodes in `hooked` (`clustering.decisions.hooks`); None without one.
        hooked: Id of a node to be removed later -> whether the hook applies to it.
        awaited: Ids of waiting actions that continue with this change.
        target: Id of the node to change; "" for the whole cluster.
        one: Columns of the changed or added node.
    """

    action: str
    name: str
    inputs: Mapping[str, Any]
    columns: Mapping[str, Any]
    added: int = 0
    leaving: Sequence[int] = ()
    spec: Spec | None = None
    at_once: bool = False
    batches: Mapping[str, Any] | None = None
    nodes: Mapping[str, Any] | None = None
    placements: Sequence[Placement] = ()
    cooled: Sequence[str] = ()
    policies: PolicyChange | None = None
    failure: str = ""
    joining: Sequence[NodeRow] = ()
    released: Sequence[NodeRow] = ()
    hook: Mapping[str, Any] | None = None
    hooked: Mapping[str, bool] = field(default_factory=dict)
    awaited: Sequence[str] = ()
    target: str = ""
    one: Mapping[str, Any] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """Whether existing nodes join, or leave without being deleted."""
        return bool(self.joining or self.released)


ChangeBuilder = Callable[[Transaction, ClusterRow], ClusterChange]
"""Return the change of a cluster, from its row; raise Rejected."""
