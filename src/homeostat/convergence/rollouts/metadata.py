"""New metadata for members of a group: rows that say which members read them (RU5)."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from homeostat.convergence.rollouts.member_change import CHUNK, Changed, Changing, Progress, extent
from homeostat.model.rollout import Rollout
from homeostat.model.stack_actions import NON_CHANGING_ACTIONS
from homeostat.store.stacks import rollout_members, rollouts, stacks


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """A change of members' metadata."""

    tx: Connection
    is_current: bool = True

    def is_blocked_by(self, action: str) -> bool:
        return action not in NON_CHANGING_ACTIONS

    def progress(self, rollout: Rollout, now: float) -> Progress:
        if rollout.active >= rollout.target:
            return Changed(rollout)
        return self._activated(rollout, now)

    def give(self, rollout: Rollout, now: float) -> Changing | None:
        given = self._activated(rollout, now)
        return given if given.rollout.active > rollout.active else None

    def _activated(self, rollout: Rollout, now: float) -> Changing:
        """Give the metadata to members of the step, so many at a time that others need not wait."""
        wanted = max(min(rollout.target - rollout.active, CHUNK), 0)
        members = stacks.get(self.tx, rollout.members)
        shards = 0 if members is None else int(members.shards)
        found, place = rollout_members.activate(self.tx, rollout, shards, wanted)
        active = rollout.active + len(found)
        filled = replace(rollout, active=active, place=place, due_at=now)
        if len(found) < wanted:
            # Fewer than counted: some are being made, or have gone. They get the metadata of the group in the end.
            filled = replace(filled, target=active, total=active)
        if active < filled.target:
            return Changing(filled)
        reason = f"step {rollout.step}: {extent(filled)}"
        return Changing(replace(filled, reason=reason), reason)

    def renew(self, rollout: Rollout, gone: list[str], now: float) -> None:
        rollout_members.drop(self.tx, rollout, gone)

    def retry(self, rollout: Rollout, now: float) -> Rollout:
        return rollout

    def count(self, rollout: Rollout) -> int:
        return rollout_members.count_reached(self.tx, rollout)

    def take_back(self, rollout: Rollout) -> int:
        return rollouts.deactivate(self.tx, rollout.key)

    def end(self, rollout: Rollout, now: float) -> None:
        """Nothing is left to do: the row of the group gets the metadata, or not (`planner.lifecycle.rollouts`)."""
