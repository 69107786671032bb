"""What a rollout changes of its members: the port between the moves of a rollout and the two kinds of it."""

from dataclasses import dataclass
from typing import Protocol

from homeostat.model.rollout import Rollout, having

CHUNK = 2000
"""Members that one transaction changes."""
BUSY_S = 1.0
"""Time until a rollout is tried again whose group is being changed, or whose stack is locked or suspended."""
POLL_S = 5.0
"""Longest time between two looks at a rollout whose members are waited for: a process may die after a report."""


@dataclass(frozen=True, slots=True)
class Changing:
    """The members of a step are being changed.

    Attributes:
        rollout: The rollout, to be stored.
        event: The text of an event about it; "" for none.
    """

    rollout: Rollout
    event: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """All members of a step have what is new; attributes as of `Changing`."""

    rollout: Rollout
    event: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The members of a step cannot have what is new."""

    reason: str


Progress = Changing | Changed | Failed


class MemberChange(Protocol):
    """The change of one rollout's members, in a transaction that has locked the row of the rollout."""

    @property
    def is_current(self) -> bool:
        """Whether the members can be changed: False once a newer revision of the group is about something else."""

    def is_blocked_by(self, action: str) -> bool:
        """Return whether it has to wait for the end of an action of the stack of the members."""

    def progress(self, rollout: Rollout, now: float) -> Progress:
        """Return how far the members of the step are."""

    def give(self, rollout: Rollout, now: float) -> Changing | None:
        """Give what is new to as many members as the target of the step says; None if no further member is there."""

    def renew(self, rollout: Rollout, gone: list[str], now: float) -> None:
        """Follow members of the step that have gone."""

    def retry(self, rollout: Rollout, now: float) -> Rollout:
        """Give what is new once more to members of the step that could not have it."""

    def count(self, rollout: Rollout) -> int:
        """Return how many members have what is new; those that have gone since do not count."""

    def take_back(self, rollout: Rollout) -> int:
        """Prepare that members get the old again; return how many do."""

    def end(self, rollout: Rollout, now: float) -> None:
        """Give members what the end of their rollout leads to."""


def extent(rollout: Rollout) -> str:
    return f"{rollout.active} of {max(rollout.total, rollout.active)} members have the new {rollout.what}"


def unchanged(rollout: Rollout) -> str:
    """Return how the members are left if a rollout ends where it is."""
    return f"{having(rollout.active, 'keeps', 'keep')} the new {rollout.what}, the others the old"
