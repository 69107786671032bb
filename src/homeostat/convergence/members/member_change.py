"""The port between the moves of a rollout and its members: new metadata, or a new definition."""

from dataclasses import dataclass
from typing import Protocol

from homeostat.model.rollout import Rollout, having

CHUNK = 2000
"""Members that one transaction changes."""
BUSY_S = 1.0
"""Time until the next try if the group is being changed, or the stack is locked or suspended."""
POLL_S = 5.0
"""Longest time between two looks at a rollout that waits for members: a process may die after a report."""


@dataclass(frozen=True, slots=True)
class Changing:
    """The members of a step are being changed.

    Attributes:
        rollout: The rollout, to be stored.
        event: The text of an event; "" for none.
    """

    rollout: Rollout
    event: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """All members of a step have the change; attributes as of `Changing`."""

    rollout: Rollout
    event: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The members of a step cannot take the change."""

    reason: str


Progress = Changing | Changed | Failed


class MemberChange(Protocol):
    """The change of a rollout's members, in a transaction that has locked the row of the rollout."""

    @property
    def is_current(self) -> bool:
        """Whether the members can be changed: False once a newer revision of the group is about something else."""

    def is_blocked_by(self, action: str) -> bool:
        """Return whether the change has to wait for the end of an action of the members' stack."""

    def progress(self, rollout: Rollout, now: float) -> Progress:
        """Return the progress of the members of the step."""

    def give(self, rollout: Rollout, now: float) -> Changing | None:
        """Give the change to members up to the target of the step; None if no further member exists."""

    def renew(self, rollout: Rollout, lost: list[str], now: float) -> None:
        """Replace lost members of the step by their successors."""

    def retry(self, rollout: Rollout, now: float) -> Rollout:
        """Give the change again to members of the step that failed to take it."""

    def count(self, rollout: Rollout) -> int:
        """Return how many present members have the change."""

    def take_back(self, rollout: Rollout) -> int:
        """Prepare the way back; return the number of members on it."""

    def end(self, rollout: Rollout, now: float) -> None:
        """Give members the metadata or definition that the end of the rollout requires."""


def extent(rollout: Rollout) -> str:
    return f"{rollout.active} of {max(rollout.total, rollout.active)} members have the new {rollout.what}"


def unchanged(rollout: Rollout) -> str:
    """Return, for users, how an abort leaves the members."""
    return f"{having(rollout.active, 'keeps', 'keep')} the new {rollout.what}, the others the old"
