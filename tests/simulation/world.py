"""One simulated world, made from a seed: users, workers, observers, a cloud with faults, crashes, and its laws."""

import random
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from homeostat.api.intake import Intake, Intent, Quotas
from homeostat.clouds.simulated import Faults, SimulatedCloud, Weather
from homeostat.convergence.clock import Entropy
from homeostat.model.errors import Rejected
from homeostat.model.status import Status
from homeostat.store import schema, stacks
from homeostat.store.database import Database
from tests.simulation.actors import SimulatedWorker, VirtualClock
from tests.simulation.invariants import check_rest, check_step
from tests.simulation.templates import grow, mutate

PROJECT = "p"


@dataclass(slots=True)
class Story:
    """What happened, for a failing seed: one line an act of a user, a fault or a crash."""

    lines: list[str] = field(default_factory=list)

    def tell(self, now: float, text: str) -> None:
        self.lines.append(f"{now - 1_000_000:8.2f}  {text}")


class SimulatedWorld:
    """Everything of one seed. `run` first makes trouble for a while, then stops the faults and demands rest."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.story = Story()
        self.db = Database("sqlite://", self.clock.now)
        schema.metadata.create_all(self.db.engine)
        self.cloud = SimulatedCloud(self.clock.now, self._weather(), seed)
        self.entropy = Entropy(self.rng.randbytes)
        self.intake = Intake(self.db, self.clock, self.entropy, Quotas(timeout_s=3600.0))
        self.workers = [self._worker(number) for number in range(self.rng.randint(1, 3))]
        self.templates: dict[str, dict[str, Any]] = {}
        self.kills = 0
        self.superseded = 0
        self._rested_at: float | None = None
        self._born = len(self.workers)

    def _weather(self) -> Weather:
        rng = self.rng
        faults = Faults(
            unreachable=rng.choice((0.0, 0.05)),
            refused=rng.choice((0.0, 0.1)),
            lost=rng.choice((0.0, 0.1)),
            error=rng.choice((0.0, 0.1)),
        )
        return Weather(
            build_s=rng.choice((0.0, 3.0)),
            delete_s=rng.choice((0.0, 2.0)),
            listing_lag_s=rng.choice((0.0, 2.0)),
            idempotent=rng.random() < 0.5,
            faults=faults,
        )

    def _worker(self, number: int) -> SimulatedWorker:
        return SimulatedWorker(f"w{number}", self.db, self.cloud, self.clock, self.entropy, self.rng)

    # -- the two phases ----------------------------------------------------------------------------------------------

    def run(self, troubled_steps: int = 400, calm_steps: int = 6000) -> None:
        self._create()
        for _ in range(troubled_steps):
            self._trouble()
            self._advance()
            check_step(self)
        self._calm()
        for step in range(calm_steps):
            self._advance(calm=True)
            if step % 10 == 9 and self._resting():
                break
        check_rest(self)

    def _advance(self, *, calm: bool = False) -> None:
        """Let one worker go on to its next call, or let time pass."""
        ready = [w for w in self.workers if w.alive and w.frozen_until <= self.clock.time]
        if ready and self.rng.random() < 0.9:
            self.rng.choice(ready).step()
        self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1, 0.5 if calm else 1.0))

    def _calm(self) -> None:
        """The end of all faults: the cloud is well, nobody dies or freezes, users go home."""
        self.cloud.weather.faults = Faults()
        for worker in self.workers:
            worker.deadly = 0.0
            worker.frozen_until = 0.0
        if not any(worker.alive for worker in self.workers):
            self._replace_dead()
        self.story.tell(self.clock.time, "calm")

    # -- trouble -----------------------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        draw = self.rng.random()
        if draw < 0.02:
            self._create()
        elif draw < 0.06:
            self._update()
        elif draw < 0.075:
            self._delete()
        elif draw < 0.10:
            self._kill()
        elif draw < 0.12:
            self._freeze()
        elif draw < 0.14:
            self._disturb()
        elif draw < 0.15:
            self.clock.time += self.rng.choice((5.0, 30.0, 90.0))
        elif draw < 0.17:
            self._replace_dead()

    def _create(self) -> None:
        name = f"s{len(self.templates)}"
        template = grow(self.rng)
        rollback = self.rng.random() < 0.5
        stack_id = self.intake.create(
            PROJECT,
            None,
            name,
            Intent(template, disable_rollback=not rollback, timeout_mins=self.rng.choice((None, None, 1))),
        )
        self.templates[stack_id] = template
        self.story.tell(self.clock.time, f"create {name} rollback={rollback} {template['resources']}")

    def _update(self) -> None:
        stack_id = self.rng.choice(sorted(self.templates))
        template = mutate(self.rng, self.templates[stack_id])
        try:
            self.intake.update(stack_id, Intent(template))
        except Rejected as error:
            self.story.tell(self.clock.time, f"update refused: {error}")
            return
        self.templates[stack_id] = template
        self.story.tell(self.clock.time, f"update {stack_id[:6]} {template['resources']}")

    def _delete(self) -> None:
        stack_id = self.rng.choice(sorted(self.templates))
        try:
            self.intake.delete(stack_id)
        except Rejected:
            return
        self.story.tell(self.clock.time, f"delete {stack_id[:6]}")

    def _kill(self) -> None:
        victim = self.rng.choice(self.workers)
        if not victim.alive:
            return
        self.kills += 1
        if self.rng.random() < 0.3:
            victim.deadly = 0.5
            self.story.tell(self.clock.time, f"{victim.name} dies inside one of its next transactions")
        else:
            victim.kill()
            self.story.tell(self.clock.time, f"kill {victim.name}")

    def _freeze(self) -> None:
        victim = self.rng.choice(self.workers)
        victim.frozen_until = self.clock.time + self.rng.choice((1.0, 6.0, 20.0))
        self.story.tell(self.clock.time, f"freeze {victim.name} until {victim.frozen_until - 1_000_000:.2f}")

    def _replace_dead(self) -> None:
        for place, worker in enumerate(self.workers):
            if not worker.alive:
                self.superseded += worker.superseded
                self.workers[place] = self._worker(self._born)
                self._born += 1

    def _disturb(self) -> None:
        """Somebody removes a thing by hand, or stops a server."""
        handles = sorted(self.cloud.things())
        if not handles:
            return
        handle = self.rng.choice(handles)
        if handle.startswith("server") and self.rng.random() < 0.5:
            self.cloud.change(handle, status="stopped", fault="its process ended")
            self.story.tell(self.clock.time, f"stop {handle}")
        else:
            self.cloud.vanish(handle)
            self.story.tell(self.clock.time, f"vanish {handle}")

    # -- looking -----------------------------------------------------------------------------------------------------

    def _resting(self) -> bool:
        """Nothing in progress and nothing due, and a full round of looking has passed since the faults stopped."""
        with self.db.read() as tx:
            busy = tx.execute(select(schema.stack.c.id).where(schema.stack.c.status == Status.IN_PROGRESS)).first()
            due = tx.execute(select(schema.shard.c.number).where(schema.shard.c.wake_at.is_not(None))).first()
            late = tx.execute(select(schema.forsaken.c.token)).first()
        if busy is not None or due is not None:
            self._rested_at = None
            return False
        if self._rested_at is None:
            self._rested_at = self.clock.time
        if late is not None:
            self.clock.time += 5.0
            return False
        return self.clock.time - self._rested_at > 45.0

    def rows(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.resource)))

    def all_stacks(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.stack)))

    def desired(self, stack_id: str, number: int) -> stacks.Desired:
        with self.db.read() as tx:
            return stacks.desired_of(tx, stack_id, number)
