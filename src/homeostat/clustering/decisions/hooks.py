"""Lifecycle hooks of deletion policies: a notification before a node is deleted, which an answer releases. Pure.

hook -> waiting(hook, now) -> what a row has of it -> next_step(row, now) -> notify, wait or go
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

RETRY_S = 5.0
"""Seconds between attempts to send a message."""
TERMINATION = "termination"


class Next(StrEnum):
    """The kind of the next step for a node to delete."""

    NOTIFY = "notify"
    WAIT = "wait"
    GO = "go"


@dataclass(frozen=True, slots=True)
class Step:
    """The next step; `at` is the time of the step after it."""

    next: Next
    at: float


def waiting(hook: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return the state of a hook for the row of an action: `{type, params, ends_at, tried, sent}`.

    Args:
        hook: The hook of a checked deletion policy: type, params, timeout.
    """
    settings = {"type": hook["type"], "params": dict(hook["params"])}
    return {**settings, "ends_at": now + hook["timeout"], "tried": 0, "sent": False}


def next_step(hook: Mapping[str, Any], now: float) -> Step:
    """Return the due step for a node: at least one attempt to notify, and release at the timeout in any case."""
    if not hook["sent"] and (now < hook["ends_at"] or not hook["tried"]):
        return Step(Next.NOTIFY, min(now + RETRY_S, hook["ends_at"]))
    return Step(Next.GO, now) if now >= hook["ends_at"] else Step(Next.WAIT, hook["ends_at"])


def settings(hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target of the message, as the settings of an event sink."""
    if hook["type"] == "zaqar":
        return {"type": "zaqar-queue", "target": hook["params"]["queue"], "ttl": 300}
    return {"type": "webhook", "url": hook["params"]["url"]}


def message(token: str, node_id: str, physical_id: str) -> dict[str, str]:
    """Return the message before the deletion of a node, in Senlin's format.

    Args:
        token: Token for the answer: the id of the waiting action.
        physical_id: Id of the node's server or stack.
    """
    return {
        "lifecycle_action_token": token,
        "node_id": node_id,
        "resource_id": physical_id,
        "lifecycle_transition_type": TERMINATION,
    }
