"""Decisions by the reports of a batch: begin the next batch, wait, or fail the update. Pure.

Each member that a batch has made or changed reports success or failure, as CloudFormation's `WaitOnResourceSignals` and
`CreationPolicy` define. The revision of the group's stack names the reports (`model.group.Reports`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.model.group import Reports
from homeostat.planner.members.rollout_move import needed

NAMED_MAX = 5
"""Members that a reason names of each kind."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The reports of a batch since it began.

    Attributes:
        succeeded: How many members reported success, and no failure.
        failed: Name of each member that reported a failure -> its reason.
        silent: Names of members without a report.
    """

    succeeded: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    silent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoOn:
    """Begin the next batch, or end the action."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for further reports, until the time `due_at`."""

    due_at: float


@dataclass(frozen=True, slots=True)
class Refuse:
    """Too few members have reported success, or too many a failure; `refusal` says why."""


Verdict = GoOn | Rest | Refuse


def verdict(asked: Reports, tally: Tally, due_at: float, now: float) -> Verdict:
    """Decide about a batch that is at rest.

    Args:
        asked: The reports that its members have to send.
        tally: The reports so far.
        due_at: The end of the time for reports.
        now: The time.
    """
    allowed = asked.total - _needed(asked)
    failed, silent = asked.lost + len(tally.failed), _silent(asked, tally)
    # Failures decide at once; silence counts as failure only at the end of the time.
    late = now >= due_at
    if failed > allowed or (late and failed + silent > allowed):
        return Refuse()
    return Rest(due_at) if silent and not late else GoOn()


def after(asked: Reports, tally: Tally) -> Reports:
    """Return the reports for the next batch, with the sums of all batches so far."""
    lost = asked.lost + len(tally.failed) + len(tally.silent)
    return replace(asked, succeeded=asked.succeeded + tally.succeeded, lost=lost)


def _needed(asked: Reports) -> int:
    return needed(asked.percent / 100, asked.total)


def _silent(asked: Reports, tally: Tally) -> int:
    """Return how many reports are missing."""
    if asked.count is None:
        return len(tally.silent)
    return max(0, asked.count - tally.succeeded - len(tally.failed))


def refusal(asked: Reports, tally: Tally) -> str:
    """Return why the update stops: first in the words of CloudFormation, which scripts look for."""
    succeeded, percent = asked.succeeded + tally.succeeded, asked.percent
    batch = "" if asked.count is not None else f" batch {asked.number}:"
    faults = [
        f"{name} failed: {reason}" if reason else f"{name} failed" for name, reason in _some(tally.failed.items())
    ]
    faults += [f"and {len(tally.failed) - NAMED_MAX} more failed"] if len(tally.failed) > NAMED_MAX else []
    silent = _silent(asked, tally)
    if silent:
        named = ", ".join(_some(tally.silent)) + (", …" if len(tally.silent) > NAMED_MAX else "")
        within = f"within {asked.timeout:g} s"
        missing = f"{silent} of {len(tally.silent)} ({named})" if silent < len(tally.silent) else named
        faults.append(f"{missing or silent} did not report {within}")
    if asked.lost:
        faults.append(f"{asked.lost} of earlier batches did not report success")
    return (
        f"Received {succeeded} SUCCESS signal(s) out of {asked.total}. Unable to satisfy {percent:g}% "
        f"MinSuccessfulInstancesPercent requirement, which needs {_needed(asked)}:{batch} {'; '.join(faults)}"
    )


def _some(items: Any) -> list[Any]:
    return list(items)[:NAMED_MAX]
