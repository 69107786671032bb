"""Health policies as the engine reads them: how unhealthy members of a group are detected and recovered.

`clustering.decisions.health_policy` builds them from users' specs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DetectionType(StrEnum):
    """Ways to detect an unhealthy node."""

    EVENTS = "LIFECYCLE_EVENTS"
    STATUS = "NODE_STATUS_POLLING"
    URL = "NODE_STATUS_POLL_URL"
    HYPERVISOR = "HYPERVISOR_STATUS_POLLING"
    BALANCER = "LB_STATUS_POLLING"


class Built(StrEnum):
    """Recovery actions that this service carries out itself."""

    REBOOT = "REBOOT"
    REBUILD = "REBUILD"
    RECREATE = "RECREATE"
    EVACUATE = "EVACUATE"


AFTER_FENCING = frozenset({Built.RECREATE, Built.EVACUATE})
"""Actions that start a node elsewhere. Before them, the node is fenced as its policy says."""


CALL_S = 600
"""Seconds that a workflow, or a webhook, may take unless its policy says otherwise."""


class ActionType(StrEnum):
    """Executor of a recovery action."""

    BUILT_IN = "BUILT_IN"
    WORKFLOW = "MISTRAL_WORKFLOW"
    WEBHOOK = "WEBHOOK"


class Fence(StrEnum):
    """Fencing of a node before its recovery."""

    COMPUTE = "COMPUTE"
    NETWORK = "NETWORK"
    STORAGE = "STORAGE"


class Mode(StrEnum):
    """Treatment of an unhealthy node."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    AUTOMATIC = "automatic"


class Preserved(StrEnum):
    """Properties that a recreated node keeps."""

    NAME = "name"
    PORTS = "ports"
    ADDRESSES = "addresses"
    VOLUMES = "volumes"


LATE_S = 30.0
"""Tolerated delay of a check, in seconds."""
VANTAGE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Regular expression of a vantage point's name."""
DEFAULT_VANTAGE = "default"
"""Vantage point of workers started without a name for it."""


@dataclass(frozen=True, slots=True)
class VantagePoint:
    """A place from which URLs of nodes are probed, by the workers started with its name.

    Attributes:
        weight: Weight of findings from this place.
    """

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Detection:
    """A detection of unhealthy nodes.

    Attributes:
        url: URL with placeholders; "" for types without URL.
        response: Regular expression that is searched for in the body of a good response.
        attempts: Probes of the URL before the node counts as unhealthy, at least 1.
        pause_s: Seconds between these attempts.
        disabled_is_down: Whether a host counts as down if it is disabled for new servers.
    """

    type: DetectionType
    url: str = ""
    verify_tls: bool = True
    no_answer_is_unhealthy: bool = True
    response: str = ""
    attempts: int = 3
    pause_s: int = 3
    disabled_is_down: bool = False


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """A recovery action.

    Attributes:
        name: A `Built`, or the name of the workflow or webhook.
        params: With defaults filled in, and with placeholders.
        timeout_s: Seconds that a workflow or webhook may take.
    """

    type: ActionType
    name: str
    params: Mapping[str, Any]
    timeout_s: int = CALL_S


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """A health policy as the engine reads it.

    Attributes:
        interval_s: Seconds between checks.
        grace_s: Seconds after a change of a node during which findings do not count.
        quorum: Number of polling detections that must fail.
        actions: Tried in order; never empty.
        max_unhealthy: Limit of unhealthy nodes for recovery: a count, or a share such as `40%`; "" for no limit.
        failures: Consecutive failed checks until a node is unhealthy.
        successes: Consecutive successful checks until a node is healthy again.
        canary_url: URL by which the observer checks its own network; "" for none.
        verify_s: Seconds for a node to become healthy after an action, before the next action.
        per_hour: Limit of recoveries started in an hour; 0 for no limit.
        by_hint: Whether the operation suggested by the status is tried first: a stopped server is started.
        inside_first: Whether a node that is a stack has its unhealthy resources converged first.
        quarantine: Whether the old node is fenced and kept after its recreation, instead of deleted.
        one_first: Whether a single member is recovered first if several fail together.
        vantage_points: Places that probe URLs; empty for the worker that makes the check.
        vantage_quorum: Total weight of the places that must find a URL failed.
    """

    interval_s: int
    grace_s: int
    quorum: int
    detections: tuple[Detection, ...]
    actions: tuple[RecoveryAction, ...]
    fencing: tuple[Fence, ...]
    delete_timeout_s: int
    force_recreate: bool
    mode: Mode
    max_unhealthy: str
    preserve: frozenset[Preserved]
    failures: int = 1
    successes: int = 1
    canary_url: str = ""
    verify_s: int = 120
    per_hour: int = 0
    by_hint: bool = False
    quarantine: bool = False
    inside_first: bool = True
    one_first: bool = True
    vantage_points: tuple[VantagePoint, ...] = ()
    vantage_quorum: int = 0

    @property
    def polled(self) -> tuple[Detection, ...]:
        return tuple(detection for detection in self.detections if detection.type is not DetectionType.EVENTS)

    @property
    def has_calls(self) -> bool:
        """Whether workflows or webhooks are among its actions."""
        return any(action.type is not ActionType.BUILT_IN for action in self.actions)

    @property
    def stale_s(self) -> float:
        """Age in seconds at which a look is stale: two intervals were missed."""
        return 2 * self.interval_s + LATE_S

    def is_unhealthy(self, failed: int) -> bool:
        """Return whether a node is unhealthy if `failed` polling detections have failed."""
        return bool(self.polled) and failed >= self.quorum

    def most_recovered(self, size: int) -> int:
        """Return the number of unhealthy nodes, in a cluster of `size`, above which none is recovered.

        A share is at least one node.
        """
        if not self.max_unhealthy:
            return size
        if self.max_unhealthy.endswith("%"):
            return max(1, size * int(self.max_unhealthy[:-1]) // 100)
        return int(self.max_unhealthy)
