"""Requests of users for single things: operations, checks and recoveries, as stored in the marks of rows.

A request is carried out once, when the row is idle, and ends with an event. The event's reason ends with the id of the
request, by which the request's result is looked up.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

CHECK, RECREATE = "check", "recreate"
"""Requests that are no operations of the cloud port: to check a thing, and to recreate it."""
ABANDON = "abandon"
"""A request on a node whose profile is a stack: nothing is done, as in Senlin."""
KEEPS: Mapping[str, str] = {"stop": "stopped", "pause": "paused", "suspend": "suspended", "rescue": "rescue"}
"""Operation -> resulting status of the thing, from which it is not healed."""
AT_ONCE = frozenset({"lock", "unlock", "change_password"})
"""Operations that are complete once the cloud has accepted them, and change no status."""


class Aim(StrEnum):
    """Purpose of a request, which determines its texts."""

    OPERATION = "operation"
    RECOVERY = "recovery"
    CHECK = "check"


class Phase(StrEnum):
    """Progress of a request.

    Attributes:
        WAITING: Not begun.
        OPERATING: The operation is intended, or in progress.
        FENCING: The thing is being fenced before its replacement is created.
        RECREATING: The replacement is being created.
    """

    WAITING = ""
    OPERATING = "operating"
    FENCING = "fencing"
    RECREATING = "recreating"


@dataclass(frozen=True, slots=True)
class Before:
    """State of a row before a request began.

    Attributes:
        intent: The intent, as dumped by `model.intent`; None for none.
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
    """A request; times are in seconds since the epoch.

    Attributes:
        operation: An operation of the cloud port, or `CHECK`, `RECREATE` or `ABANDON`.
        at: Time of the request.
        until: When the request times out.
        arguments: Of the operation, secrets encrypted (`store.encryption.encrypted_arguments`). Of `RECREATE`:
            delete_timeout, force, fence.
        by: The requesting user, None if not known.
        if_unwell: Whether to check first, and to do nothing if the thing is healthy.
        begun_at: When work on the request began.
        before: State of the row at that time; None if nothing has to be restored.
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
"""Prefixes of a row's reason after the end of a request."""
_MARKED = re.compile(r" \(request ([0-9a-f-]{36})\)\Z")


def signature(request_id: str) -> str:
    """Return the suffix of the reasons of all events of a request."""
    return f" (request {request_id})"


def signed(request: Request, text: str) -> str:
    return text + signature(request.id)


def plain(reason: str) -> str:
    """Return a reason without the id of a request."""
    return _MARKED.sub("", reason)


def is_signed(reason: str) -> bool:
    """Return whether a reason belongs to an event of a request."""
    return _MARKED.search(reason) is not None


def beginning(request: Request) -> str:
    """Return the reason for a request in progress."""
    if request.aim is Aim.RECOVERY:
        return "Recovery in progress"
    return f"Operation '{request.operation}' in progress"


def success(request: Request, *, was_well: bool = False) -> str:
    """Return the reason for a request that has succeeded; with `was_well`, because nothing had to be done."""
    if request.aim is Aim.CHECK:
        return "Check: Node is ACTIVE."
    if request.aim is Aim.RECOVERY:
        return "Recover: Node is ACTIVE." if was_well else "Recovery succeeded"
    return f"Operation '{request.operation}' succeeded"


def failure(request: Request, why: str) -> str:
    """Return the reason for a request that has failed."""
    if request.aim is Aim.CHECK:
        return f"Check: Node is not ACTIVE. {why}".rstrip()
    if request.aim is Aim.RECOVERY:
        return f"Recovery failed: {why}"
    return f"Operation '{request.operation}' failed: {why}"


def aim_of(reason: str) -> tuple[Aim, str] | None:
    """Return aim and operation of the request that signed a reason; None for an unsigned reason."""
    if not is_signed(reason):
        return None
    match = re.match(r"Operation '(\w+)' ", reason)
    if match is not None:
        return Aim.OPERATION, match[1]
    return (Aim.CHECK, CHECK) if reason.startswith("Check") else (Aim.RECOVERY, "recover")
