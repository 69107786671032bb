"""Users who change a value that no look shows, and take that back, or cancel it, while it is under way."""

import copy

from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status
from homeostat.services.stacks import StackService
from tests.simulation.templates import DesiredStack
from tests.simulation.trouble import TroubledWorld

UNSEEN = {"OS::Cinder::Volume": "description", "OS::Nova::Server": "metadata", "Sim::Disk": "secret"}
"""Type -> a property that may be changed in place."""
STEPS = (5, 20, 40, 80)
"""Steps after which they change their minds."""
TIMES = 4


class WaveringWorld(TroubledWorld):
    """Once all trouble is over, users of what is complete waver, and workers are killed and frozen while they do.

    wavered — how often users took back what they had asked for a moment before.
    """

    wavered = 0

    def settle(self, within_s: float = 7200.0) -> None:
        super().settle(within_s)
        for _ in range(TIMES):
            for stack in self.all_stacks():
                complete = stack.status == Status.COMPLETE and stack.action != Action.DELETE
                if complete and stack.id in self._desired and stack.deleted_at is None and stack.lock is None:
                    self._waver(stack.id)
            super().settle(within_s)

    def _waver(self, stack_id: str) -> None:
        before = self._desired[stack_id]
        changed = copy.deepcopy(before)
        for each in changed.resources.values():
            name, value = UNSEEN.get(each["type"], ""), f"new {self.rng.randint(0, 1)}"
            if name:
                each["properties"][name] = {"v": value} if name == "metadata" else value
        self._ask(stack_id, changed)
        self._go_on(self.rng.choice(STEPS))
        draw = self.rng.random()
        if draw < 0.3:
            self._take_back(stack_id, before)
        else:
            self._ask(stack_id, before if draw < 0.8 else self._desired[stack_id])
        self.wavered += 1
        if self.rng.random() < 0.3:
            self._kill()
            self.replace_dead()

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            if not self.step():
                self._pass_time()
            self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1))

    def _ask(self, stack_id: str, desired: DesiredStack) -> None:
        def update(stack_service: StackService) -> None:
            stack_service.update(stack_id, desired.request())
            self._desired[stack_id] = desired

        self._request(update, f"update {stack_id[:6]} in what nobody sees {desired}")

    def _take_back(self, stack_id: str, before: DesiredStack) -> None:
        def cancel(stack_service: StackService) -> None:
            try:
                stack_service.cancel(stack_id, roll_back=True)
            except Rejected as error:
                self.note(f"refused: {error}")
            else:
                self._desired[stack_id] = before

        self._request(cancel, f"cancel {stack_id[:6]}")
