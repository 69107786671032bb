"""Users who take snapshots of stacks that are at rest, change these, and go back."""

from sqlalchemy import select

from homeostat.model.status import Status
from homeostat.store import schema
from tests.simulation.wavering import STEPS, WaveringWorld


class KeepingWorld(WaveringWorld):
    """Once all trouble is over, users take, restore and delete snapshots of what is complete, and change it in between,
    while workers are killed. In the trouble before, nearly every snapshot is refused for what goes on in its stack."""

    def _waver(self, stack_id: str) -> None:
        complete = select(schema.snapshot.c.id).filter_by(stack_id=stack_id, status=Status.COMPLETE)
        with self.db.read() as tx:
            ids = sorted(tx.execute(complete).scalars())
        act = self.rng.choice(("take", "change", "restore", "restore", "delete")) if ids else "take"
        if act == "change":
            super()._waver(stack_id)
            return
        self.keep(act, stack_id, self.rng.choice(ids) if ids else "", self.rng)
        self._go_on(self.rng.choice(STEPS))
        if self.rng.random() < 0.3:
            self._kill()
            self.replace_dead()
