"""Findings of health policies about a member, and the progress of its recovery, for users. Pure."""

from datetime import UTC, datetime
from typing import Any

from homeostat.model.marks import BY_HINT, NO_MARKS, Marks
from homeostat.model.node_health import NodeHealth

Wire = dict[str, Any]


def described(health: NodeHealth, marks: Marks | None) -> Wire:
    """Return the health of a member as users see it.

    Returns:
        `finding`, `since`, `reason`, `detected` (the finding of each detection), and `recovery` during a recovery.
    """
    wire: Wire = {
        "finding": health.finding.value,
        "since": timestamp(health.since),
        "reason": health.reason,
        "detected": [
            {
                "type": detected.type,
                "finding": detected.finding.value,
                "since": timestamp(detected.since),
                "evidence": detected.evidence,
            }
            for detected in health.detected
        ],
    }
    recovery = (marks or NO_MARKS).recovery
    if recovery is not None:
        wire["recovery"] = {
            "step": 0 if recovery.step == BY_HINT else recovery.step + 1,
            "begun_at": timestamp(recovery.begun_at),
            "tried": list(recovery.tried),
            "fenced": list(recovery.fenced),
            "rounds": recovery.rounds,
        }
    return wire


def timestamp(seconds: float) -> str:
    """Return a time as users see it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
