"""What a request makes of a cluster: a plan, which is made from what is stored, and stored together with a revision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.clustering.specs import Spec


class Outdated(Exception):
    """The cluster has changed since it was read: it is read again."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a request has begun."""

    target: str
    action: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of a cluster.

    Attributes:
        action: What is done.
        name: The name of the action.
        inputs: What was asked for.
        columns: New values of columns of the cluster.
        added: How many nodes are added.
        leaving: Numbers of the nodes that leave.
        spec: Another profile for all nodes; None for no other.
        at_once: The stack stays as it is.
        batches: How nodes are changed; None for all at once.
        nodes: Columns of all nodes.
        zones: Availability zones of the nodes that are added; () where no policy chooses them.
        cooled: Policies whose cooldown begins.
        grace_s: Seconds for which the nodes that leave stay.
        joining: Rows of the nodes without a cluster that become its nodes.
        released: Rows of the nodes that leave it and stay, each in a stack of its own.
        hook: Who is notified before the nodes `hooked` go, see `clustering.hooks`; None where none are.
        hooked: Ids of nodes that go later -> whether others are notified before.
        awaited: Ids of actions that have waited, and go on with this.
        target: The node that it is about; "" for the cluster as a whole.
        one: Columns of the node that it is about, or that is added.
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
    zones: Sequence[str] = ()
    cooled: Sequence[str] = ()
    grace_s: int = 0
    joining: Sequence[Row[Any]] = ()
    released: Sequence[Row[Any]] = ()
    hook: Mapping[str, Any] | None = None
    hooked: Mapping[str, bool] = field(default_factory=dict)
    awaited: Sequence[str] = ()
    target: str = ""
    one: Mapping[str, Any] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """Whether nodes join or leave that stay."""
        return bool(self.joining or self.released)


Planner = Callable[[Connection, Row[Any]], Plan]
"""Return what to do with a cluster, whose row is given; raise Rejected."""
