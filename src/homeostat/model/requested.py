"""What users have asked of single things: operations, checks and recoveries, as the marks of rows store them.

Each is carried out once, when nothing else goes on with the row, and ends with one event, whose reason ends with the id
of the request: by it the request is found again.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

CHECK, RECREATE = "check", "recreate"
"""Requests that are no operations of the cloud port: to look at a thing, and to make it anew."""
ABANDON = "abandon"
"""To leave a stack to itself: nothing is done, as in Senlin."""
KEEPS: Mapping[str, str] = {"stop": "stopped", "pause": "paused", "suspend": "suspended", "rescue": "rescue"}
"""Operation -> the status that the thing then keeps, and from which it is not healed."""
AT_ONCE = frozenset({"lock", "unlock", "change_password"})
"""Operations that are done once the cloud has accepted them, and change no status."""


class Aim(StrEnum):
    """What a request is for; its texts follow from it."""

    OPERATION = "operation"
    RECOVERY = "recovery"
    CHECK = "check"


class Phase(StrEnum):
    """How far a request is.

    Attributes:
        WAITING: Nothing was begun.
        OPERATING: The operation is intended, or goes on.
        FENCING: The thing is being cut off before another one is made.
        RECREATING: Another thing is being made in its place.
    """

    WAITING = ""
    OPERATING = "operating"
    FENCING = "fencing"
    RECREATING = "recreating"


@dataclass(frozen=True, slots=True)
class Before:
    """What a row was before a request began.

    Attributes:
        intent: Its intent, as `model.intent` dumps it; None for none.
        kept: See `model.marks.Marks`.
    """

    action: str
    status: str
    reason: str
    intent: Mapping[str, Any] | None = None
    acted_at: float | None = None
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request; times are in seconds since the epoch.

    Attributes:
        id: Id of the request.
        operation: An operation of the cloud port, or `CHECK`, `RECREATE` or `ABANDON`.
        at: When it was made.
        until: When it fails.
        aim: What it is for.
        arguments: Of the operation; secret ones are encrypted (`store.encryption.encrypted_arguments`). Of `RECREATE`:
            delete_timeout, force, fence.
        by: User who made it, None if not known.
        if_unwell: Whether to look first, and to do nothing where the thing is well.
        begun_at: When it was begun.
        before: What the row was then; None where nothing has to be restored.
    """

    id: str
    operation: str
    at: float
    until: float
    aim: Aim = Aim.OPERATION
    arguments: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None
    if_unwell: bool = False
    phase: Phase = Phase.WAITING
    begun_at: float | None = None
    before: Before | None = None

    def begun(self, phase: Phase, now: float, before: Before | None = None) -> "Request":
        return replace(self, phase=phase, begun_at=self.begun_at or now, before=before or self.before)


def load(stored: Mapping[str, Any]) -> Request:
    before = stored.get("before")
    enums = {"aim": Aim(stored["aim"]), "phase": Phase(stored["phase"])}
    return Request(**{**stored, **enums, "before": None if before is None else Before(**before)})


def dump(request: Request) -> dict[str, Any]:
    return asdict(request)


# -- texts -------------------------------------------------------------------------------------------------------------

ENDS = ("Operation '", "Recovery ", "Recover: ")
"""How the reasons of a row begin with which something has ended that a user had asked for."""
_MARKED = re.compile(r" \(request ([0-9a-f-]{36})\)\Z")


def signature(request_id: str) -> str:
    """Return the end of the reason of every event of a request."""
    return f" (request {request_id})"


def signed(request: Request, text: str) -> str:
    return text + signature(request.id)


def plain(reason: str) -> str:
    """Return a reason without the id of a request."""
    return _MARKED.sub("", reason)


def is_signed(reason: str) -> bool:
    """Return whether a reason is that of an event of a request."""
    return _MARKED.search(reason) is not None


def beginning(request: Request) -> str:
    """Return what is said of a request that goes on."""
    if request.aim is Aim.RECOVERY:
        return "Recovery in progress"
    return f"Operation '{request.operation}' in progress"


def success(request: Request, *, was_well: bool = False) -> str:
    """Return what is said of a request that has succeeded; `was_well`: since there was nothing to do."""
    if request.aim is Aim.CHECK:
        return "Check: Node is ACTIVE."
    if request.aim is Aim.RECOVERY:
        return "Recover: Node is ACTIVE." if was_well else "Recovery succeeded"
    return f"Operation '{request.operation}' succeeded"


def failure(request: Request, why: str) -> str:
    """Return what is said of a request that has failed."""
    if request.aim is Aim.CHECK:
        return f"Check: Node is not ACTIVE. {why}".rstrip()
    if request.aim is Aim.RECOVERY:
        return f"Recovery failed: {why}"
    return f"Operation '{request.operation}' failed: {why}"


def aim_of(reason: str) -> tuple[Aim, str] | None:
    """Return what a signed reason is about, and the name of the operation; None for any other reason."""
    if not is_signed(reason):
        return None
    found = re.match(r"Operation '(\w+)' ", reason)
    if found is not None:
        return Aim.OPERATION, found[1]
    return (Aim.CHECK, CHECK) if reason.startswith("Check") else (Aim.RECOVERY, "recover")
