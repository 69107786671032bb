"""What seems to be gone all at once: doubts that end by themselves, and users who say that it is gone indeed."""

from collections import Counter
from typing import Any

from homeostat.convergence.facts.healing_brake import doubts
from homeostat.model.observed import Presence
from homeostat.model.status import Action, Status
from homeostat.services.actions import StackActions
from tests.simulation.parts import Part

MISSING = f"SELECT DISTINCT stack_id FROM resource_observed WHERE presence = '{Presence.ABSENT.value}'"
RESTRICTED = "is restricted for resource"
"""In the reason of a stack: its environment forbids what a request needs."""
AGREED_MAX = 5
"""So often a user says of one stack in the end that what seems to be gone is gone."""
PATIENCE_S = 900.0
"""So long people in some worlds wait for a doubt to end by itself, which takes it ten minutes where it may."""


class Doubters(Part):
    """Users of a world after its calm. amid_updates — whether they speak while their stack is updated."""

    amid_updates = False

    def __init__(self) -> None:
        self._agrees_at = 0.0
        self._agreed: Counter[str] = Counter()
        self._doubted: dict[str, float] = {}

    def begin(self) -> None:
        """Half of them give doubts the time to end by themselves."""
        self._agrees_at = PATIENCE_S if self.dice("patient").random() < 0.5 else 0.0

    def calmed(self) -> None:
        """From now on they may agree."""
        self._agrees_at += self.clock.time
        self._agreed.clear()

    def last_word(self) -> None:
        self.agree()

    def agree(self) -> None:
        """A user says that what is nowhere to be seen is gone indeed, perhaps only after a while, and says so a few
        times at most: what waits for something else besides stays doubted."""
        missing = {stack_id for (stack_id,) in self.db.raw.execute(MISSING)}
        roots = self._roots(missing)
        if self.clock.time < self._agrees_at:
            return
        for stack in self.world.all_stacks():
            asked = stack.id in roots or (stack.id in missing and self._is_out_of_reach(stack, roots))
            if asked and self._is_free(stack) and self._agreed[stack.id] < AGREED_MAX:
                self._agreed[stack.id] += 1
                self.note(f"converge {stack.name} at last")
                StackActions(self.db, 900.0).converge(stack.id)

    def _is_out_of_reach(self, stack: Any, roots: set[str]) -> bool:
        """Does no request to its root come there, since an environment forbids to update what is above it? The root
        says so, and a user turns to the nested stack itself."""
        return any(
            each.id == stack.root_id and each.id in roots and RESTRICTED in each.reason
            for each in self.world.all_stacks()
        )

    def _roots(self, missing: set[str]) -> set[str]:
        """Of which stacks something is nowhere to be seen. Counts the doubts that have ended by themselves."""
        roots: set[str] = set()
        if missing:
            with self.db.read() as tx:
                roots = {root for each in doubts(tx) for root in each.stacks}
        now = self.clock.time
        ended = self._doubted.keys() - roots - self._agreed.keys()
        self.world.happened["proved"] += sum(now - self._doubted[each] > PATIENCE_S / 2.0 for each in ended)
        self._doubted = {each: self._doubted.get(each, now) for each in roots}
        return roots

    def _is_free(self, stack: Any) -> bool:
        """May a user converge it now?"""
        if stack.deleted_at is not None or stack.lock is not None or stack.suspended:
            return False
        amid = self.amid_updates and stack.action in (Action.UPDATE, Action.ROLLBACK)
        return bool(stack.status != Status.IN_PROGRESS or amid)
