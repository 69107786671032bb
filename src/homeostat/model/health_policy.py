"""Health policies as the engine reads them: when a member of a group is unhealthy, and what recovers it.

`clustering.health_policy` makes them from the specs of users.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DetectionType(StrEnum):
    """Ways to see that a node is unhealthy."""

    EVENTS = "LIFECYCLE_EVENTS"
    STATUS = "NODE_STATUS_POLLING"
    URL = "NODE_STATUS_POLL_URL"
    HYPERVISOR = "HYPERVISOR_STATUS_POLLING"
    BALANCER = "LB_STATUS_POLLING"


class Built(StrEnum):
    """Actions that this service carries out itself."""

    REBOOT = "REBOOT"
    REBUILD = "REBUILD"
    RECREATE = "RECREATE"
    EVACUATE = "EVACUATE"


AFTER_FENCING = frozenset({Built.RECREATE, Built.EVACUATE})
"""Actions that make a node run elsewhere: it is cut off before, as its policy says."""


CALL_S = 600
"""Seconds that a workflow, or a webhook, may take unless its policy says otherwise."""


class ActionType(StrEnum):
    """Who carries out an action of a recovery."""

    BUILT_IN = "BUILT_IN"
    WORKFLOW = "MISTRAL_WORKFLOW"
    WEBHOOK = "WEBHOOK"


class Fence(StrEnum):
    """What is cut off before a node is recovered."""

    COMPUTE = "COMPUTE"
    NETWORK = "NETWORK"
    STORAGE = "STORAGE"


class Mode(StrEnum):
    """What happens to a node that is unhealthy."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    AUTOMATIC = "automatic"


class Preserved(StrEnum):
    """What a node that is made again keeps."""

    NAME = "name"
    PORTS = "ports"
    ADDRESSES = "addresses"
    VOLUMES = "volumes"


LATE_S = 30.0
"""Seconds by which the second look that was missed may be late."""
VANTAGE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What the name of a place looks like."""
DEFAULT_VANTAGE = "default"
"""Name of the place of workers that are not told another one."""


@dataclass(frozen=True, slots=True)
class VantagePoint:
    """A place from which the URLs of nodes are asked: that of the workers that were started with its name.

    Attributes:
        weight: How much what is found there counts.
    """

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Detection:
    """One way to see that a node is unhealthy.

    Attributes:
        url: URL with placeholders; "" where the type has none.
        response: Regular expression that a good answer matches somewhere.
        attempts: How often the URL is asked before the node counts as unhealthy, at least 1.
        pause_s: Seconds between these attempts.
        disabled_is_down: Whether a host that is switched off for new servers counts as down.
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
    """One action of a recovery.

    Attributes:
        name: One of `Built`, or the name of the workflow or webhook.
        params: With defaults, and with placeholders.
        timeout_s: Seconds that a workflow, or a webhook, may take.
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
        grace_s: Seconds after a change of a node in which it is not judged.
        quorum: So many polling modes must fail.
        actions: Tried one by one; there is at least one.
        max_unhealthy: Most unhealthy nodes that are recovered: a count, or a share such as `40%`; "" for any number.
        failures: Looks in a row that have to fail until a node is unhealthy.
        successes: Looks in a row that have to be well until it is healthy again.
        canary_url: URL that the observer asks to see whether it can see anything; "" for none.
        verify_s: Seconds that a node has to become healthy after an action, before the next one is tried.
        per_hour: Most recoveries begun in an hour; 0 for any number.
        by_hint: Whether the operation that the status suggests is tried first: a stopped server is started.
        inside_first: Whether what is unwell in a node that is a stack is converged first.
        quarantine: Whether a node that is made again is kept, cut off, instead of being deleted.
        one_first: Whether of members that fail together one is recovered first.
        vantage_points: Places from which URLs are asked; none for whichever worker looks.
        vantage_quorum: Weight of the places that must find a URL failed.
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
        return tuple(each for each in self.detections if each.type is not DetectionType.EVENTS)

    @property
    def has_calls(self) -> bool:
        """Whether workflows or webhooks are among its actions."""
        return any(each.type is not ActionType.BUILT_IN for each in self.actions)

    @property
    def takes_events(self) -> bool:
        return any(each.type is DetectionType.EVENTS for each in self.detections)

    @property
    def stale_s(self) -> float:
        """Age in seconds from which a look says nothing any more: two were missed."""
        return 2 * self.interval_s + LATE_S

    def is_unhealthy(self, failed: int) -> bool:
        """Return whether a node is unhealthy of which so many polling modes have failed."""
        return bool(self.polled) and failed >= self.quorum

    def most_recovered(self, size: int) -> int:
        """Return how many unhealthy nodes of a cluster of `size` are recovered; with more, none is.

        A share of a small cluster is one node at least.
        """
        if not self.max_unhealthy:
            return size
        if self.max_unhealthy.endswith("%"):
            return max(1, size * int(self.max_unhealthy[:-1]) // 100)
        return int(self.max_unhealthy)
