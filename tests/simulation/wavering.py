"""Users who change a value that no look shows, and take that back, or cancel it, while it is under way."""

import copy

from homeostat.model.errors import Rejected
from homeostat.model.status import Action, Status
from tests.simulation.actors import Api
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.templates import DesiredStack
from tests.simulation.users import Users

UNSEEN = {"OS::Cinder::Volume": "description", "OS::Nova::Server": "metadata", "Sim::Disk": "secret"}
"""Type -> a property that may be changed in place."""
STEPS = (5, 20, 40, 80)
"""Steps after which they change their minds."""
TIMES = 4


class Wavering(Part):
    """Once all trouble is over, users of what is complete waver, and workers are killed and frozen while they do."""

    def __init__(self) -> None:
        self._wavers = False

    def rested(self) -> None:
        if self._wavers:
            return
        self._wavers = True
        desired = self.world.part(Users).desired
        for _ in range(TIMES):
            for stack in self.world.all_stacks():
                complete = stack.status == Status.COMPLETE and stack.action != Action.DELETE
                if complete and stack.id in desired and stack.deleted_at is None and stack.lock is None:
                    self.waver(stack.id)
            self.world.settle()

    def waver(self, stack_id: str) -> None:
        """Change a stack, and take that back, or not."""
        users = self.world.part(Users)
        before = users.desired[stack_id]
        changed = copy.deepcopy(before)
        for each in changed.resources.values():
            name, value = UNSEEN.get(each["type"], ""), f"new {self.rng.randint(0, 1)}"
            if name:
                each["properties"][name] = {"v": value} if name == "metadata" else value
        self._want(stack_id, changed)
        self.go_on(self.rng.choice(STEPS))
        draw = self.rng.random()
        if draw < 0.3:
            self._take_back(stack_id, before)
        else:
            self._want(stack_id, before if draw < 0.8 else users.desired[stack_id])
        if self.rng.random() < 0.3:
            self.world.part(Disturbances).kill()
            self.world.replace_dead()

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.world.step_or_wait(0.0, 0.0, 0.01, 0.1)

    def _want(self, stack_id: str, desired: DesiredStack) -> None:
        self.world.part(Users).want(stack_id, desired, f"update {stack_id[:6]} in what nobody sees {desired}")

    def _take_back(self, stack_id: str, before: DesiredStack) -> None:
        users = self.world.part(Users)

        def cancel(api: Api) -> None:
            try:
                api.stack_service.cancel(stack_id, roll_back=True)
            except Rejected as error:
                self.note(f"refused: {error}")
            else:
                users.desired[stack_id] = before

        users.ask(cancel, f"cancel {stack_id[:6]}")
