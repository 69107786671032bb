"""Statuses of clusters, nodes and actions with their reasons, and the names of actions. Pure."""

from collections.abc import Iterable
from enum import StrEnum

from homeostat.clustering.decisions.sizes import Sizes


class ClusterStatus(StrEnum):
    INIT = "INIT"
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"
    RESIZING = "RESIZING"
    DELETING = "DELETING"
    CHECKING = "CHECKING"
    RECOVERING = "RECOVERING"
    OPERATING = "OPERATING"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class NodeStatus(StrEnum):
    INIT = "INIT"
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"
    DELETING = "DELETING"
    RECOVERING = "RECOVERING"
    OPERATING = "OPERATING"
    WARNING = "WARNING"
    ERROR = "ERROR"


class ActionStatus(StrEnum):
    INIT = "INIT"
    WAITING = "WAITING"
    READY = "READY"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    WAITING_LIFECYCLE_COMPLETION = "WAITING_LIFECYCLE_COMPLETION"
    SUSPENDED = "SUSPENDED"

    @property
    def is_final(self) -> bool:
        return self in (ActionStatus.SUCCEEDED, ActionStatus.FAILED, ActionStatus.CANCELLED)


NOT_BEGUN = (ActionStatus.WAITING, ActionStatus.READY, ActionStatus.WAITING_LIFECYCLE_COMPLETION)
"""Statuses of actions that have no revision yet."""
OPEN = (ActionStatus.RUNNING, *NOT_BEGUN)
"""Stored statuses of actions that may be in progress: an action can have ended before its end is stored."""

BUSY_CLUSTER = frozenset(
    {ClusterStatus.CREATING, ClusterStatus.UPDATING, ClusterStatus.DELETING, ClusterStatus.RECOVERING}
)
"""Statuses in which a cluster is deleted by force only."""
BUSY_NODE = frozenset({NodeStatus.CREATING, NodeStatus.UPDATING, NodeStatus.DELETING, NodeStatus.RECOVERING})
"""Statuses in which a node is deleted by force only."""


class ClusterAction(StrEnum):
    CREATE = "CLUSTER_CREATE"
    DELETE = "CLUSTER_DELETE"
    UPDATE = "CLUSTER_UPDATE"
    ADD_NODES = "CLUSTER_ADD_NODES"
    DEL_NODES = "CLUSTER_DEL_NODES"
    RESIZE = "CLUSTER_RESIZE"
    CHECK = "CLUSTER_CHECK"
    RECOVER = "CLUSTER_RECOVER"
    REPLACE_NODES = "CLUSTER_REPLACE_NODES"
    SCALE_OUT = "CLUSTER_SCALE_OUT"
    SCALE_IN = "CLUSTER_SCALE_IN"
    ATTACH_POLICY = "CLUSTER_ATTACH_POLICY"
    DETACH_POLICY = "CLUSTER_DETACH_POLICY"
    UPDATE_POLICY = "CLUSTER_UPDATE_POLICY"
    OPERATION = "CLUSTER_OPERATION"


class NodeAction(StrEnum):
    CREATE = "NODE_CREATE"
    DELETE = "NODE_DELETE"
    UPDATE = "NODE_UPDATE"
    JOIN = "NODE_JOIN"
    LEAVE = "NODE_LEAVE"
    CHECK = "NODE_CHECK"
    RECOVER = "NODE_RECOVER"
    OPERATION = "NODE_OPERATION"


EVALUATED = frozenset(ClusterAction) - {
    ClusterAction.DELETE,
    ClusterAction.ATTACH_POLICY,
    ClusterAction.DETACH_POLICY,
    ClusterAction.UPDATE_POLICY,
}
"""Actions after which the status of a cluster is computed from its nodes."""
ACTION_NAMES = frozenset({*ClusterAction, *NodeAction})
NEVER_REFUSED = frozenset({ClusterAction.DELETE, NodeAction.DELETE, NodeAction.OPERATION})
"""Actions that start even if another action on the same target is in progress."""

_CLUSTER_STARTS = {
    ClusterAction.CREATE: (ClusterStatus.CREATING, "Creation in progress"),
    ClusterAction.UPDATE: (ClusterStatus.UPDATING, "Update in progress"),
    ClusterAction.DELETE: (ClusterStatus.DELETING, "Deletion in progress."),
    ClusterAction.CHECK: (ClusterStatus.CHECKING, "Check in progress"),
    ClusterAction.RECOVER: (ClusterStatus.RECOVERING, "Recovery in progress"),
    ClusterAction.OPERATION: (ClusterStatus.OPERATING, "Operation {operation} in progress"),
    ClusterAction.RESIZE: (ClusterStatus.RESIZING, "Cluster resize started."),
    ClusterAction.SCALE_OUT: (ClusterStatus.RESIZING, "Cluster scale out started."),
    ClusterAction.SCALE_IN: (ClusterStatus.RESIZING, "Cluster scale in started."),
}
_NODE_STARTS = {
    NodeAction.CREATE: (NodeStatus.CREATING, "Creation in progress"),
    NodeAction.DELETE: (NodeStatus.DELETING, "Deletion in progress"),
    NodeAction.UPDATE: (NodeStatus.UPDATING, "Update in progress"),
    NodeAction.RECOVER: (NodeStatus.RECOVERING, "Recovery in progress"),
    NodeAction.OPERATION: (NodeStatus.OPERATING, "Operation '{operation}' in progress"),
}
DONE = "Action completed successfully."
PROCESSED = "The action is being processed."
WAITING = "Waiting for depended actions."
FAILED = "Action execution failed"
CANCELLED = "Action execution cancelled"
ADOPTED = "Node adopted successfully"
NOT_BALANCED = "Failed in adding node into lb pool."
STILL_BALANCED = "Failed in removing node from lb pool."


def cluster_at_start(action: str, operation: str = "") -> tuple[ClusterStatus, str] | None:
    """Return status and reason of a cluster when an action on it starts; None if they stay.

    Args:
        operation: Name of the operation, for CLUSTER_OPERATION.
    """
    start = _CLUSTER_STARTS.get(ClusterAction(action))
    return None if start is None else (start[0], start[1].format(operation=operation))


def node_at_start(action: str, operation: str = "") -> tuple[NodeStatus, str] | None:
    """Return status and reason of a node when an action on it starts; None if they stay.

    Args:
        operation: Name of the operation, for NODE_OPERATION.
    """
    start = _NODE_STARTS.get(NodeAction(action))
    return None if start is None else (start[0], start[1].format(operation=operation))


def evaluated(action: str, node_states: Iterable[str], sizes: Sizes) -> tuple[ClusterStatus, str]:
    """Return status and reason of a cluster whose members are at rest.

    Args:
        action: The action that triggers the evaluation.
        node_states: Status of each member.
    """
    active = sum(status == NodeStatus.ACTIVE for status in node_states)
    if active < sizes.min_size:
        status, place = ClusterStatus.ERROR, f"below min_size ({sizes.min_size})"
    elif active < sizes.desired:
        status, place = ClusterStatus.WARNING, f"below desired_capacity ({sizes.desired})"
    elif sizes.max_size < 0 or active <= sizes.max_size:
        status, place = ClusterStatus.ACTIVE, f"equal or above desired_capacity ({sizes.desired})"
    else:
        status, place = ClusterStatus.WARNING, f"above max_size ({sizes.max_size})"
    return status, f"{action}: number of active nodes is {place}."


_OWN_NAMES = {
    ClusterAction.ATTACH_POLICY: "attach_policy",
    ClusterAction.DETACH_POLICY: "detach_policy",
    ClusterAction.UPDATE_POLICY: "update_policy",
}
ID_SHOWN = 8
"""Characters of an id in the name of an action."""


def action_name(action: str, target: str, operation: str = "") -> str:
    """Return the name of an action.

    Args:
        target: Id of the cluster or node.
        operation: Name of the operation, for CLUSTER_OPERATION and NODE_OPERATION.
    """
    start = _OWN_NAMES[ClusterAction(action)] if action in _OWN_NAMES else action.lower()
    if operation:
        start = f"{start.partition('_')[0]}_{operation}"
    return f"{start}_{target[:ID_SHOWN]}"


def webhook_action_name(receiver: str) -> str:
    """Return the name of an action that a webhook starts."""
    return f"webhook_{receiver[:ID_SHOWN]}"


def refused_by_policy(policy: str, why: str) -> str:
    """Return the reason of an action on a cluster that a policy has refused."""
    return f"Policy check failure: Failed policy '{policy}': {why}"
