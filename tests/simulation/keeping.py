"""Users who take snapshots of stacks, and go back to them."""

import random

from sqlalchemy import select

from homeostat.model.status import Status
from homeostat.store import schema
from tests.simulation.actors import Api
from tests.simulation.disturbances import Disturbances
from tests.simulation.parts import Part
from tests.simulation.users import Users
from tests.simulation.wavering import STEPS, Wavering


class Keepers(Part):
    """Takes: certain — whether they are in all worlds."""

    def __init__(self, *, certain: bool) -> None:
        self._certain = certain

    def begin(self) -> None:
        self._users, self._dice = self.world.part(Users), self.dice("keeper")
        if self._dice.random() < 0.3 or self._certain:
            self.world.acts.append((12.0, self.snapshot))

    def snapshot(self) -> None:
        """Take a snapshot of a stack, go back to one, or be rid of one."""
        stack_id, rng = self._users.stack(), self._dice
        if stack_id is None:
            return
        table = schema.snapshot
        with self.db.read() as tx:
            chosen = select(table.c.id, table.c.stack_id, table.c.status).where(table.c.status != Status.IN_PROGRESS)
            stored = list(tx.execute(chosen.order_by(table.c.id)))
        act, id, stacks = "take", "", self.world.all_stacks()
        complete = {each.id for each in stacks if each.status == Status.COMPLETE and each.deleted_at is None}
        resting = sorted(complete & self._users.desired.keys())
        if resting:
            stack_id = rng.choice(resting)
        if stored and rng.random() < 0.6:
            id, stack_id, status = rng.choice(stored)
            act = rng.choice(("restore", "restore", "delete")) if status == Status.COMPLETE else "delete"
        self.keep(act, stack_id, id, rng)

    def keep(self, act: str, stack_id: str, id: str, rng: random.Random) -> None:
        """Ask for a snapshot to be taken, restored or deleted. rng — chooses the process that is asked."""

        def serve(api: Api) -> None:
            if act == "take":
                api.snapshots.take(stack_id, None)
            elif act == "delete":
                api.snapshots.delete(stack_id, id)
            else:
                api.snapshots.restore(stack_id, id)
                self.world.happened["restored"] += 1

        self._users.ask(serve, f"{act} snapshot {id[:6]} of {stack_id[:6]}", rng)


class KeepingAtRest(Wavering):
    """Once all trouble is over, users take, restore and delete snapshots of what is complete, and change it in between,
    while workers are killed. In the trouble before, nearly every snapshot is refused for what goes on in its stack."""

    def waver(self, stack_id: str) -> None:
        complete = select(schema.snapshot.c.id).filter_by(stack_id=stack_id, status=Status.COMPLETE)
        with self.db.read() as tx:
            ids = sorted(tx.execute(complete).scalars())
        act = self.rng.choice(("take", "change", "restore", "restore", "delete")) if ids else "take"
        if act == "change":
            super().waver(stack_id)
            return
        self.world.part(Keepers).keep(act, stack_id, self.rng.choice(ids) if ids else "", self.rng)
        self.go_on(self.rng.choice(STEPS))
        if self.rng.random() < 0.3:
            self.world.part(Disturbances).kill()
            self.world.replace_dead()
