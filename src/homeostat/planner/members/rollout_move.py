"""The next move of a rollout: a step, a wait, its end, or its failure (RU3, RU4, RU6, RU8). Pure.

Rollouts of metadata and of definitions share this decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.model.rollout import Rollout, StepReport

SAID_MAX = 5
"""Failed members that a reason quotes."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Give the change to so many members in all."""

    target: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """Give the change to further members in the same step: the members that had it vanished before any report."""

    target: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for a report, a person, or the time `due_at`.

    Attributes:
        due_at: When time alone ends the wait; None for never.
        reason: The awaited event, for users.
        reported: Whether the members of the step have reported.
    """

    due_at: float | None
    reason: str
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """A gate said no."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """All members have the change, and have reported."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The answers of the URLs of a rollout to a step.

    Attributes:
        step: The step.
        refused: URLs that said no; "" for none.
        waits: URLs that neither said yes nor no; "" for none.
        asked: Whether the URLs were asked at all.
        urls: The URLs.
    """

    step: int = 0
    refused: str = ""
    waits: str = ""
    asked: bool = True
    urls: Sequence[str] = ()

    def is_about(self, rollout: Rollout) -> bool:
        """Return whether the answers are about the present step, and from the present URLs."""
        return self.step == rollout.step and tuple(self.urls) == tuple(rollout.settings.checks)


Move = Advance | Repeat | Rest | Refuse | Finish


def next_move(rollout: Rollout, report: StepReport, checked: Checked, total: int, now: float) -> Move:
    """Return the next move of a running rollout.

    Args:
        rollout: The rollout.
        report: The reports of the members.
        checked: The answers of its URLs.
        total: Number of members by now.
        now: The time.
    """
    settings = rollout.settings
    refused = refusal(rollout, report, now)
    if refused:
        return Refuse(refused)
    if rollout.step and settings.gates and not report.asked and rollout.active < total:
        reason = f"step {rollout.step}: its members were gone before one of them reported, for {settings.time_s:g} s"
        return Refuse(reason) if _is_late(rollout, now) else Repeat(min(rollout.target, total))
    if rollout.step:
        waits = _waits_for_members(rollout, report, now) or _asks(rollout, checked, now) or _bakes(rollout, now)
        if waits is not None:
            return waits
    # After the waits: the last step is also reported, asked and baked.
    if rollout.step and rollout.active >= total:
        return Finish()
    # After the end of the last step: nothing remains to be approved.
    if rollout.step and settings.approval and rollout.approved < rollout.step:
        return Rest(None, f"step {rollout.step} is done and waits for approval", reported=True)
    return Advance(settings.target(rollout.active, total)) if total else Finish()


def refusal(rollout: Rollout, report: StepReport, now: float) -> str:
    """Return which gate says no, and for which members; "" if none does."""
    if rollout.alarm:
        return f"step {rollout.step}: {rollout.alarm}"
    settings = rollout.settings
    per_step = settings.failures_of_step_max
    reasons = "; ".join(f"{member}: {reason}" for member, reason in list((report.reasons or {}).items())[:SAID_MAX])
    # A user who resumes a held rollout forgives the failures so far.
    if report.failed_in_all > settings.failures_max + rollout.forgiven:
        allowed = f"{settings.failures_max} in all may fail"
        return f"step {rollout.step}: {_members(report.failed_in_all)} failed, {allowed}: {reasons}"
    if report.failed > per_step + rollout.forgiven:
        return f"step {rollout.step}: {_members(report.failed)} of the step failed, {per_step} may fail: {reasons}"
    unreported = bool(report.waiting and settings.gates) and not _is_enough(rollout, report)
    if not unreported or not _is_late(rollout, now):
        return ""
    return (
        f"step {rollout.step}: {report.succeeded} of {_members(report.asked)} reported success within "
        f"{settings.time_s or 0:g} s, {needed(settings.success_share, report.asked)} are needed"
    )


def _asks(rollout: Rollout, checked: Checked, now: float) -> Rest | Refuse | None:
    """Return the move that the URLs of a rollout require; None if all say yes. A URL without an answer says nothing."""
    if not rollout.settings.checks:
        return None
    baked = rollout.reported_at is not None
    if not checked.asked:
        return Rest(now, f"step {rollout.step}: its URLs are asked", reported=baked)
    if checked.refused:
        return Refuse(f"step {rollout.step}: {checked.refused}")
    if not checked.waits:
        return None
    # A URL that said yes may fail to answer while the step bakes: its time begins again after the bake.
    since = rollout.step_at if rollout.reported_at is None else rollout.reported_at + rollout.settings.bake_s
    until = since + (rollout.settings.time_s or 0.0)
    if now >= until:
        return Refuse(f"step {rollout.step}: {checked.waits} by the end of its time")
    return Rest(until, f"step {rollout.step}: {checked.waits}", reported=baked)


def needed(share: float, members: int) -> int:
    """Return the least number of members that is at least this share."""
    # The epsilon makes up for products just above a whole number: 0.07 * 100 is 7.000….
    return min(members, int(share * members + 1 - 1e-9))


def _is_enough(rollout: Rollout, report: StepReport) -> bool:
    """Return whether enough members succeeded for the rollout to proceed without the rest at the end of the time."""
    return report.succeeded >= needed(rollout.settings.success_share, report.asked)


def _is_late(rollout: Rollout, now: float) -> bool:
    time_s = rollout.settings.time_s
    return time_s is not None and now >= rollout.step_at + time_s


def _waits_for_members(rollout: Rollout, report: StepReport, now: float) -> Rest | None:
    if not report.waiting or not rollout.settings.gates:
        return None
    if _is_late(rollout, now):  # enough members have succeeded, or `refusal` would have stopped the rollout
        return None
    due_at = rollout.step_at + (rollout.settings.time_s or 0.0)
    reported = report.asked - report.waiting
    return Rest(due_at, f"step {rollout.step}: {reported} of {_members(report.asked)} have reported")


def _bakes(rollout: Rollout, now: float) -> Rest | None:
    if not rollout.settings.bake_s:
        return None
    due_at = (now if rollout.reported_at is None else rollout.reported_at) + rollout.settings.bake_s
    if due_at <= now:
        return None
    return Rest(due_at, f"step {rollout.step} is done and bakes", reported=True)


def _members(count: int) -> str:
    return f"{count} member" if count == 1 else f"{count} members"
