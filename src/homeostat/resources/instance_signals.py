"""Signals of instances in CloudFormation templates: in the update policy and in the creation policy.

The keys of `UpdatePolicy.AutoScalingRollingUpdate` about signals and processes, and the section `CreationPolicy`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from homeostat.model.errors import Rejected, invalid
from homeostat.resources.base import Props
from homeostat.resources.schema import (
    UNKNOWN,
    Schema,
    between,
    boolean,
    integer,
    length,
    listing,
    mapping,
    number,
    one_of,
    text,
    with_defaults,
)

DURATION = re.compile(r"PT(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})S)?")
HOUR_S = 3600
WAIT = "PT5M"
"""Default time to wait for signals."""
TIMEOUT_MAX_S = 12 * HOUR_S
COUNT_MAX = 1_000_000

ALARMS, HEALING = "alarms", "healing"
"""Activities that a rolling update can suspend: scaling by signal, and the healing of members."""
PROCESSES: Mapping[str, str] = {
    "AddToLoadBalancer": "",
    "AlarmNotification": ALARMS,
    "AZRebalance": "",
    "HealthCheck": HEALING,
    "InstanceRefresh": "",
    "Launch": "",
    "ReplaceUnhealthy": HEALING,
    "ScheduledActions": "",
    "Terminate": "",
}
"""Name of a process in CloudFormation -> the activity suspended with it; "" for none."""

SIGNAL_FIELDS: Schema = {
    "WaitOnResourceSignals": boolean(
        "Go on once the members of a batch have signalled success; PauseTime is how long they have.", default=False
    ),
    "MinSuccessfulInstancesPercent": number(
        "Share of the members of an update that have to signal success.", default=100, constraints=(between(0, 100),)
    ),
    "SuspendProcesses": listing(
        "What stands still meanwhile: AlarmNotification (scaling by signal), HealthCheck or ReplaceUnhealthy "
        "(healing); the others of CloudFormation's names have no effect.",
        items=text(constraints=(one_of(*PROCESSES),)),
        constraints=(length(0, len(PROCESSES)),),
    ),
}
"""Fields of the section about rolling updates."""

CREATION_FIELDS: Schema = {
    "ResourceSignal": mapping(
        "Signals to wait for.",
        fields={
            "Count": integer("Members that have to signal success.", default=1, constraints=(between(1, COUNT_MAX),)),
            "Timeout": text("How long they have, such as PT10M; at most PT12H.", default=WAIT),
        },
    ),
    "AutoScalingCreationPolicy": mapping(
        "How many of these signals have to be of success.",
        fields={
            "MinSuccessfulInstancesPercent": number(
                "Share of the signals.", default=100, constraints=(between(0, 100),)
            ),
        },
    ),
}
"""Fields of the section `CreationPolicy`."""


def duration_s(value: str, name: str, most_s: int = HOUR_S) -> int:
    """Return the seconds of an ISO 8601 duration.

    Args:
        value: The duration, such as PT1M30S.
        most_s: Longest duration allowed.

    Raises:
        Rejected: The text is not such a duration, or it is too long.
    """
    match = DURATION.fullmatch(value)
    if match is None or not any(match.groups()):
        raise invalid(f"{value[:40]!r} is no time such as PT1M30S", name, error="Property error")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total_s = hours * HOUR_S + minutes * 60 + seconds
    if total_s > most_s:
        hour = "an hour" if most_s == HOUR_S else f"{most_s // HOUR_S} hours"
        raise invalid(f"{value} is more than {hour}: choose less", name, error="Property error")
    return total_s


def pause_of(section: Props) -> str:
    """Return the time between batches, or the time for the signals of a batch, from a section on rolling updates."""
    return str(section.get("PauseTime") or (WAIT if section.get("WaitOnResourceSignals") else "PT0S"))


def check_rolling(section: Props) -> None:
    """Check the section about rolling updates.

    Raises:
        Rejected: The time is invalid, too long, or leaves no time for signals; the error has the name of the property.
    """
    if UNKNOWN in (section.get("PauseTime"), section.get("WaitOnResourceSignals")):
        return
    if not duration_s(pause_of(section), "PauseTime") and section.get("WaitOnResourceSignals"):
        message = "with WaitOnResourceSignals it is how long members have to signal: give more than PT0S"
        raise invalid(message, "PauseTime", error="Property error")


def batches_of(section: Props) -> dict[str, Any]:
    """Return the pauses of a section about rolling updates, in the form of `planner.members.rolling_update`.

    `section` includes defaults.
    """
    seconds, waits = float(duration_s(pause_of(section), "PauseTime")), section["WaitOnResourceSignals"]
    reports = {"timeout": seconds, "percent": float(section["MinSuccessfulInstancesPercent"])}
    paused = suspended(section["SuspendProcesses"] or ())
    return {
        "pause_time": 0.0 if waits else seconds,
        **({"reports": reports} if waits else {}),
        **({"suspended": paused} if paused else {}),
    }


def suspended(processes: Sequence[str]) -> list[str]:
    """Return the activities suspended together with these processes."""
    return sorted({PROCESSES[process] for process in processes} - {""})


def check_creation(section: Props, path: tuple[str | int, ...] = ()) -> None:
    """Check the time in a creation policy, whose values were converted.

    Raises:
        Rejected: The time is invalid, or too long.
    """
    signal = section.get("ResourceSignal")
    timeout = signal.get("Timeout") if isinstance(signal, Mapping) else None
    if timeout in (None, UNKNOWN):
        return
    try:
        seconds = duration_s(str(timeout), "Timeout", TIMEOUT_MAX_S)
        if not seconds:
            raise invalid("members need time to signal: give more than PT0S", "Timeout", error="Property error")
    except Rejected as error:
        raise error.at(*path, "ResourceSignal") from error


def creation_of(section: Props | None) -> dict[str, Any] | None:
    """Return the signals that a creation policy asks for: `{count, timeout, percent}`; None if it asks for none."""
    if not section or section.get("ResourceSignal") is None:
        return None
    complete = with_defaults(CREATION_FIELDS, section)
    signal, among = complete["ResourceSignal"], complete["AutoScalingCreationPolicy"] or {}
    return {
        "count": int(signal["Count"]),
        "timeout": float(duration_s(str(signal["Timeout"]), "Timeout", TIMEOUT_MAX_S)),
        "percent": float(among.get("MinSuccessfulInstancesPercent", 100.0)),
    }
