"""Hooks of deletion policies: others are notified before a node goes, and say when it may. Pure.

hook -> waiting(hook, now) -> what a row has of it -> next_step(row, now) -> notify, wait or go
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

RETRY_S = 5.0
"""Seconds until a message is sent again that could not be."""
TERMINATION = "termination"


class Next(StrEnum):
    """What is done next for a node that is to go."""

    NOTIFY = "notify"
    WAIT = "wait"
    GO = "go"


@dataclass(frozen=True, slots=True)
class Step:
    """The next step; `at` is when the one after it is due."""

    next: Next
    at: float


def waiting(hook: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return what the row of an action has of a hook, `{type, params, ends_at, tried, sent}`.

    Args:
        hook: Of a checked deletion policy: type, params, timeout.
        now: The time.
    """
    kept = {"type": hook["type"], "params": dict(hook["params"])}
    return {**kept, "ends_at": now + hook["timeout"], "tried": 0, "sent": False}


def next_step(hook: Mapping[str, Any], now: float) -> Step:
    """Return what is due for a node: it is tried once at least to notify, and the time-out ends everything."""
    if not hook["sent"] and (now < hook["ends_at"] or not hook["tried"]):
        return Step(Next.NOTIFY, min(now + RETRY_S, hook["ends_at"]))
    return Step(Next.GO, now) if now >= hook["ends_at"] else Step(Next.WAIT, hook["ends_at"])


def settings(hook: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a message goes, as the settings of an event sink."""
    if hook["type"] == "zaqar":
        return {"type": "zaqar-queue", "target": hook["params"]["queue"], "ttl": 300}
    return {"type": "webhook", "url": hook["params"]["url"]}


def message(token: str, node_id: str, physical_id: str) -> dict[str, str]:
    """Return what is sent before a node goes, in the form of Senlin's.

    Args:
        token: What the answer has to name: the id of the action that waits.
        node_id: Id of the node.
        physical_id: Id of its server or stack.
    """
    return {
        "lifecycle_action_token": token,
        "node_id": node_id,
        "resource_id": physical_id,
        "lifecycle_transition_type": TERMINATION,
    }
