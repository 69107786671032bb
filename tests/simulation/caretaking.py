"""Users who suspend and lock stacks for a while, and free everything in the end."""

from typing import Any

from homeostat.model.status import Action
from homeostat.services.actions import ConvergenceSettings, StackActions
from tests.simulation.hooks import Wardens
from tests.simulation.parts import Part
from tests.simulation.users import Users, goes_on

BOUND = """SELECT 1 FROM stack WHERE deleted_at IS NULL
    AND (lock IS NOT NULL OR suspended OR NOT converge OR coalesce(exceptions, 'null') NOT IN ('null', '{}')) LIMIT 1"""


class Caretakers(Part):
    """Takes: certain — whether they suspend and lock stacks in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain
        self._unswitched: set[str] = set()

    def begin(self) -> None:
        self._users = self.world.part(Users)
        if self.dice("caretaker").random() < 0.3 or self._certain:
            self.world.acts += [(8.0, self._maintain), (5.0, self._lock), (5.0, self._unlock)]

    def _maintain(self) -> None:
        stack_id, suspends = self._users.resting(), self.rng.random() < 0.5
        if stack_id is not None:
            action = Action.SUSPEND if suspends else Action.RESUME
            self._users.ask(lambda api: api.actions.begin(stack_id, action), f"{action.lower()} {stack_id[:6]}")

    def _lock(self) -> None:
        """Perhaps for a while."""
        stack_id, level = self._users.resting(), self.rng.choice(("all", "all", "stacks"))
        ends = self.rng.choice((None, None, self.clock.time + 30.0))
        if stack_id is not None:
            self.lock(stack_id, level, ends, f"lock {stack_id[:6]} {level} {ends}")

    def lock(self, stack_id: str, level: str, ends: float | None, story: str) -> None:
        lock = {"level": level, "owner": None, "owner_id": None, "reason": None, "at": 0.0, "expires_at": ends}
        self._users.ask(lambda api: api.actions.lock(stack_id, lock, lambda _: True), story)

    def _unlock(self) -> None:
        stack_id = self._users.resting()
        if stack_id is not None:
            self._users.ask(lambda api: api.actions.unlock(stack_id, lambda _: True), f"unlock {stack_id[:6]}")

    # -- the end -----------------------------------------------------------------------------------------------------

    def calmed(self) -> None:
        self._unswitched = {stack.id for stack in self.world.all_stacks()}
        self.free()

    def last_word(self) -> None:
        """They clear all hooks, and free all, which may have been held back by a request that was served late."""
        self.world.part(Wardens).clear_all()
        self.free()

    def free(self) -> None:
        """Unlock what is locked, resume what is suspended, and switch convergence on, as soon as that may be. Nested
        stacks follow, but for those that were retained when their resource went: these are resumed by themselves."""
        if not (self._unswitched or self.db.raw.execute(BOUND).fetchone()):
            return
        actions, stacks = StackActions(self.db, 900.0), self.world.all_stacks
        for stack in stacks():
            if stack.deleted_at is not None:
                self._unswitched.discard(stack.id)
                continue
            if stack.lock is None and (stack.id in self._unswitched or not stack.converge or stack.exceptions):
                exceptions: dict[str, dict[str, Any]] = {key: {} for key in stack.exceptions or {}}
                actions.switch(stack.id, ConvergenceSettings({"converge": True, "observe_s": None}, exceptions))
                self._unswitched.discard(stack.id)
            retained = stack.id in self.world.watcher.retained and stack.lock is None
            busy = [each for each in stacks() if stack.id in (each.id, each.root_id) and goes_on(each)]
            if (stack.parent_id is not None and not retained) or busy:
                continue
            if stack.lock is not None:
                self.note(f"unlock {stack.name} at last")
                actions.unlock(stack.id, lambda _: True)
            elif stack.suspended:
                self.note(f"resume {stack.name} at last")
                actions.begin(stack.id, Action.RESUME)
