"""What was seen of the world, apart from what should be (CV1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Presence(StrEnum):
    """Absent, unknown and unreachable are different answers; the last two are both `UNKNOWN` here."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at one thing.

    handle — the cloud's own id; properties — the cloud's object as plain data in the words of `clouds/port.py`
    (empty unless present); seen_at — seconds since the epoch; reason — why it is absent or unknown, for people;
    not_found — the answer to a deletion: ABSENT, and there was nothing to delete.
    """

    presence: Presence
    handle: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    seen_at: float = 0.0
    reason: str = ""
    not_found: bool = False

    @property
    def present(self) -> bool:
        return self.presence is Presence.PRESENT


class Condition(StrEnum):
    """How an observation compares with what should be."""

    READY = "ready"
    PENDING = "pending"
    DRIFTED = "drifted"
    BROKEN = "broken"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Remedy(StrEnum):
    """The right action for a condition that will not pass by itself (CV13).

    RECREATE removes the broken thing and makes another, REPLACE makes another and removes it then.
    """

    WAIT = "wait"
    OPERATE = "operate"
    UPDATE = "update"
    RECREATE = "recreate"
    REPLACE = "replace"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a resource type on an observation.

    operation — with `Remedy.OPERATE`, the operation of the cloud port (`start`, `reboot`, …);
    drifted — with `Condition.DRIFTED`, the names of the properties that differ; due_at — with PENDING, when time alone
    will make it ready (seconds since the epoch), else None.
    """

    condition: Condition
    reason: str = ""
    remedy: Remedy = Remedy.WAIT
    operation: str = ""
    drifted: tuple[str, ...] = ()
    due_at: float | None = None


READY = Verdict(Condition.READY)
