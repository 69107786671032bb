"""Outlook of a rollout: the awaited event, the time limit, and a user's options (RU8). Pure."""

from dataclasses import dataclass
from enum import StrEnum

from homeostat.model.rollout import Rollout, RolloutState, Steering


class Awaited(StrEnum):
    """Event that a rollout waits for.

    Attributes:
        WORKER: The next pass of a worker.
        STACK: The end of a lock or suspension of its stack.
        HANDLES: The creation of the handles that its members signal to.
        MEMBERS: The change or replacement of the members of its step.
        REPORTS: The reports of the members of its step, or their time limit.
        CHECKS: The answers of the URLs that check its step, or their time limit.
        BAKE_TIME: The end of the bake time after a step.
        APPROVAL: A user's approval of its step.
        USER: A user's decision how to go on.
        NOTHING: The rollout has ended.
    """

    WORKER = "worker"
    STACK = "stack"
    HANDLES = "handles"
    MEMBERS = "members"
    REPORTS = "reports"
    CHECKS = "checks"
    BAKE_TIME = "bake_time"
    APPROVAL = "approval"
    USER = "user"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Outlook:
    """Outlook of a rollout.

    Attributes:
        awaits: The awaited event.
        due_at: When time alone ends the waiting, in seconds since the epoch; None if never.
        released_by: The awaited event in words, for users.
        steering: A user's options now.
    """

    awaits: Awaited
    due_at: float | None
    released_by: str
    steering: tuple[Steering, ...]


def outlook(rollout: Rollout, now: float, *, frozen: bool = False, reported: bool = False) -> Outlook:
    """Return the outlook of a rollout.

    Args:
        frozen: Whether its stack is locked or suspended.
        reported: Whether all members of its step are known to have reported.
    """
    awaits, due_at = _awaited(rollout, now, frozen)
    if awaits is Awaited.REPORTS and rollout.settings.checks and (reported or not rollout.settings.gates):
        awaits = Awaited.CHECKS
    steering = possible(rollout)
    return Outlook(awaits, due_at, _released_by(rollout, awaits, steering), steering)


def possible(rollout: Rollout) -> tuple[Steering, ...]:
    """Return a user's options in the state of a rollout."""
    return tuple(verb for verb in Steering if rollout.state in verb.states and _asks_for(rollout, verb))


def extent(rollout: Rollout) -> str:
    """Return the progress of a rollout in words."""
    return f"{rollout.active} of {max(rollout.total, rollout.active)} members have the new {rollout.what}"


def _asks_for(rollout: Rollout, steering: Steering) -> bool:
    pending = rollout.settings.approval and rollout.approved < rollout.step
    return steering is not Steering.APPROVE or pending


def _awaited(rollout: Rollout, now: float, frozen: bool) -> tuple[Awaited, float | None]:
    state = RolloutState(rollout.state)
    if state.ended:
        return Awaited.NOTHING, None
    if state is not RolloutState.RUNNING:
        return Awaited.USER, None
    if frozen:
        return Awaited.STACK, None
    return _running(rollout, now)


def _running(rollout: Rollout, now: float) -> tuple[Awaited, float | None]:
    """Return the event and time that a running rollout waits for, in accordance with `rollout_move.next_move`."""
    settings = rollout.settings
    if rollout.unbegun:
        return Awaited.HANDLES, None
    if rollout.giving is not None:
        return Awaited.MEMBERS, None
    if not rollout.step or rollout.active < rollout.target:
        return Awaited.WORKER, None
    if rollout.reported_at is None:
        ends_at = None if settings.time_s is None else rollout.step_at + settings.time_s
        return (Awaited.WORKER, None) if ends_at is None or ends_at <= now else (Awaited.REPORTS, ends_at)
    baked_at = rollout.reported_at + settings.bake_s
    if settings.bake_s and baked_at > now:
        return Awaited.BAKE_TIME, baked_at
    if settings.approval and rollout.approved < rollout.step and rollout.active < rollout.total:
        return Awaited.APPROVAL, None
    return Awaited.WORKER, None


def _released_by(rollout: Rollout, awaits: Awaited, steering: tuple[Steering, ...]) -> str:
    commands = f"(homeostat rollout {', '.join(verb.command for verb in steering)})"
    step = f"step {rollout.step}"
    return {
        Awaited.WORKER: "a worker taking it up",
        Awaited.STACK: "the stack being unlocked or resumed",
        Awaited.HANDLES: f"the handles being ready to which its members signal, or a user {commands}",
        Awaited.MEMBERS: f"the members of {step} being changed, or a user {commands}",
        Awaited.REPORTS: f"the reports of the members of {step}, the end of their time, or a user {commands}",
        Awaited.CHECKS: f"the answers of the URLs in its checks, the end of their time, or a user {commands}",
        Awaited.BAKE_TIME: f"the end of the time after {step}, or a user {commands}",
        Awaited.APPROVAL: f"a user who approves {step}, or decides otherwise {commands}",
        Awaited.USER: f"a user who decides how it goes on {commands}",
        Awaited.NOTHING: "",
    }[awaits]
