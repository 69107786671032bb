"""New metadata for members of a group: rows list the members that read them (RU5)."""

from dataclasses import dataclass, replace

from homeostat.convergence.members.member_change import CHUNK, Changed, Changing, Progress, extent
from homeostat.model.rollout import Rollout
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.store.database import Transaction
from homeostat.store.stacks import rollout_members, rollouts, stacks


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A change of members' metadata."""

    tx: Transaction
    is_current: bool = True

    def is_blocked_by(self, action: str) -> bool:
        return action not in NON_CHANGING_ACTIONS

    def progress(self, rollout: Rollout, now: float) -> Progress:
        if rollout.active >= rollout.target:
            return Changed(rollout)
        return self._activated(rollout, now)

    def give(self, rollout: Rollout, now: float) -> Changing | None:
        changing = self._activated(rollout, now)
        return changing if changing.rollout.active > rollout.active else None

    def _activated(self, rollout: Rollout, now: float) -> Changing:
        """Give the metadata to a chunk of the members of the step: a short transaction delays no writer."""
        wanted = max(min(rollout.target - rollout.active, CHUNK), 0)
        members = stacks.get(self.tx, rollout.members)
        shards = 0 if members is None else int(members.shards)
        activated, place = rollout_members.activate(self.tx, rollout, shards, wanted)
        active = rollout.active + len(activated)
        filled = replace(rollout, active=active, place=place, due_at=now)
        if len(activated) < wanted:
            # Missing members are being made, or were deleted: in the end the group gives its metadata to the new ones.
            filled = replace(filled, target=active, total=active)
        if active < filled.target:
            return Changing(filled)
        reason = f"step {rollout.step}: {extent(filled)}"
        return Changing(replace(filled, reason=reason), reason)

    def renew(self, rollout: Rollout, lost: list[str], now: float) -> None:
        rollout_members.drop(self.tx, rollout, lost)

    def retry(self, rollout: Rollout, now: float) -> Rollout:
        return rollout

    def count(self, rollout: Rollout) -> int:
        return rollout_members.count_reached(self.tx, rollout)

    def take_back(self, rollout: Rollout) -> int:
        return rollouts.deactivate(self.tx, rollout.key)

    def end(self, rollout: Rollout, now: float) -> None:
        """Do nothing: the row of the group gets the metadata, or not (`planner.lifecycle.rollouts`)."""
