"""Observed state, kept apart from the desired state (CV1)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from homeostat.model.record import record
from homeostat.model.status import Word


class Presence(Word):
    """Whether a look found the thing.

    `ABSENT` means a clear answer of the cloud that the thing does not exist. Any other answer means `UNKNOWN`, which
    is no reason to create or delete anything.
    """

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@record
class Observation:
    """Result of a look at a thing.

    Attributes:
        handle: The cloud's id.
        properties: The cloud's object as plain data in the words of `clouds.port`; empty unless present.
        seen_at: Seconds since the epoch.
        reason: Why the thing is absent or unknown, for users.
        not_found: As the answer to a deletion: the thing was ABSENT before.
        unfinished: As the answer to a creation: a necessary further request has failed.
    """

    presence: Presence
    handle: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    seen_at: float = 0.0
    reason: str = ""
    not_found: bool = False
    unfinished: bool = False

    @property
    def present(self) -> bool:
        return self.presence is Presence.PRESENT


class Condition(Word):
    """Result of comparing an observation with the desired state."""

    READY = "ready"
    PENDING = "pending"
    DRIFTED = "drifted"
    BROKEN = "broken"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Remedy(Word):
    """The right action for a condition that does not pass by itself (CV13).

    RECREATE deletes the broken thing, then creates a new thing; REPLACE creates first and deletes afterwards. MANUAL
    leaves the remedy to the user.
    """

    WAIT = "wait"
    OPERATE = "operate"
    UPDATE = "update"
    RECREATE = "recreate"
    REPLACE = "replace"
    MANUAL = "manual"


@record
class Verdict:
    """Judgement of a resource type on an observation.

    Attributes:
        reason: Why the thing is not READY, for users.
        operation: With `Remedy.OPERATE`, the operation of the cloud port (`start`, `reboot`, …).
        drifted: With `Condition.DRIFTED`, the names of the properties that differ.
        due_at: With `Condition.PENDING`, when time alone makes the thing ready (seconds since the epoch), else None.
    """

    condition: Condition
    reason: str = ""
    remedy: Remedy = Remedy.WAIT
    operation: str = ""
    drifted: tuple[str, ...] = ()
    due_at: float | None = None


READY = Verdict(Condition.READY)
