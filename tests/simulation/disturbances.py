"""What befalls processes and clouds: they are killed, frozen, cut off; things are changed and hidden outside."""

import random
from collections import Counter
from typing import Any

from sqlalchemy import select

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import Faults
from homeostat.store import schema
from homeostat.store.shards import shards
from tests.simulation.actors import Process
from tests.simulation.parts import Act, Part
from tests.simulation.watched import WatchedCloud


class Disturbances(Part):
    """hidden — how often each thing was.

    Takes: climate — decides how often what happens; None where other parts of the world say so.
    """

    def __init__(self, climate: random.Random | None = None) -> None:
        self._climate = climate
        self._hidden: Counter[str] = Counter()

    def begin(self) -> None:
        often: list[tuple[float, Act]] = [
            *((1.5, self.kill), (0.7, self.die_inside), (0.7, self.make_flaky), (0.5, self.cut_off)),
            *((1.5, self.freeze), (1.5, self.disturb_thing), (0.7, self._lock), (0.5, self.black_out)),
            *((0.5, self.limit_rate), (1, self._notice), (1, self.wake_twice), (0.7, self.jump_ahead)),
            (0.7, self.set_clock),
        ]
        if self._climate is not None:
            self.world.acts += [(weight * self._climate.choice((0, 1, 1, 3)), act) for weight, act in often]

    def beat(self) -> None:
        for worker in self.world.workers:
            if worker.ready:
                worker.beat()

    def go_on(self, *more: Act) -> None:
        """One step of a world in which little happens beside it. more — what may."""
        self.world.end_outages()
        if self.rng.random() < 0.01:
            self.rng.choice((self.kill, self.die_inside, self.freeze, *more))()
        if self.rng.random() < 0.1:
            self.world.replace_dead()
        self.world.step_or_wait(0.0, 0.0, 0.01, 0.1, 1.0)

    # -- processes ---------------------------------------------------------------------------------------------------

    def _victim(self) -> Process:
        return self.rng.choice(self.world.processes)

    def kill(self) -> None:
        victim = self._victim()
        if victim.alive:
            self.world.happened["kills"] += 1
            victim.kill()
            self.note(f"kill {victim.name}")

    def die_inside(self) -> None:
        victim = self._victim()
        victim.deadly = 0.2
        self.note(f"{victim.name} dies at one of its next transactions")

    def make_flaky(self) -> None:
        victim = self._victim()
        victim.flaky = self.rng.choice((0.0, 0.03, 0.1))
        self.note(f"{victim.name} loses connections: {victim.flaky}")

    def cut_off(self) -> None:
        victim = self._victim()
        victim.cut_off_until = self.clock.time + self.rng.choice((1.0, 6.0, 20.0))
        self.note(f"cut off {victim.name} until {victim.cut_off_until - 1_000_000:.2f}")

    def freeze(self) -> None:
        victim = self._victim()
        victim.frozen_until = self.clock.time + self.rng.choice((1.0, 6.0, 20.0))
        self.note(f"freeze {victim.name} until {victim.frozen_until - 1_000_000:.2f}")

    def set_clock(self) -> None:
        """Forwards or backwards: the clock of one machine."""
        victim = self._victim()
        victim.clock.skew_s = self.rng.choice((-120.0, -10.0, -1.0, 0.0, 1.0, 10.0, 120.0))
        self.note(f"clock of {victim.name} is {victim.clock.skew_s} s ahead")

    def set_database_clock(self) -> None:
        """Forwards or backwards: the clock that all go by. Some worker lives on, and notices it."""
        noticing = [each for each in self.world.workers if each.ready and self.clock.time >= each.cut_off_until]
        if not noticing:
            return
        for worker in noticing:
            worker.beat()
        self.clock.step_s += self.rng.choice((-3600.0, -600.0, -60.0, 60.0, 600.0, 3600.0))
        self.world.happened["clock steps"] += 1
        self.note(f"clock of the database is {self.clock.step_s} s ahead")
        for worker in noticing:
            worker.beat()

    def jump_ahead(self) -> None:
        """A long time passes at once."""
        self.clock.time += self.rng.choice((5.0, 30.0, 90.0, 300.0))

    def wake_twice(self) -> None:
        table = schema.shard
        with self.db.read() as tx:
            places = [tuple(row) for row in tx.execute(select(table.c.stack_id, table.c.number))]
        if places:
            stack_id, number = self.rng.choice(sorted(places))
            for _ in range(2):
                with self.db.write() as tx:
                    shards.wake(tx, stack_id, self.clock.time, self.rng.choice((shards.USER, shards.HEAL)), [number])

    # -- the world outside -------------------------------------------------------------------------------------------

    def _cloud(self) -> WatchedCloud:
        return self.world.clouds[self.rng.choice(self.world.projects)]

    def disturb_thing(self) -> None:
        """An operator removes a thing by hand, stops a server, breaks or changes something."""
        cloud = self._cloud()
        handles = sorted(cloud.things())
        if not handles:
            return
        handle = self.rng.choice(handles)
        changes: list[dict[str, Any]] = [{}, {}, {"description": "by hand"}, {"status": "error", "fault": "by hand"}]
        if handle.startswith("server"):
            changes += [{"status": "stopped", "fault": "its process ended"}, {"metadata": {"by": "hand"}}]
        change = self.rng.choice(changes)
        cloud.change(handle, **change) if change else cloud.vanish(handle)
        self.note(f"{handle}: {change or 'vanishes'}")
        self.sight(handle)

    def _lock(self) -> None:
        """An operator protects a thing from deletion, or lifts that."""
        cloud = self._cloud()
        handles = sorted(cloud.things())
        if handles:
            handle = self.rng.choice(handles)
            cloud.change(handle, locked=self.rng.random() < 0.5)
            self.note(f"{handle} is locked or unlocked")

    def sight(self, handle: str) -> None:
        """The notice of it is lost, comes once, or twice, to those who listen."""
        for _ in range(self.rng.choice((0, 1, 2))):
            worker = self.rng.choice(self.world.workers)
            worker.notices.append(ChangeNotice(handle.rpartition("-")[0], handle))

    def _notice(self) -> None:
        """A cloud says that something has changed; it may well have not."""
        handles = sorted(self._cloud().things())
        self.sight(self.rng.choice(handles) if handles else "server-999999")

    def black_out(self) -> None:
        cloud = self._cloud()
        self.for_a_while(cloud, Faults(unreachable=1.0), "is down")

    def hide(self) -> None:
        """One thing, all of a kind, or all that a cloud has are not found for a while, and come back.

        Twice at most: no request looks for ever for what is not found just then."""
        cloud = self._cloud()
        handles = sorted(handle for handle in cloud.things() if self._hidden[handle] < 2)
        if not handles:
            return
        one = self.rng.choice(handles)
        same = [each for each in handles if each.rpartition("-")[0] == one.rpartition("-")[0]]
        hidden = self.rng.choice(([one], [one], same, handles))
        self._hidden.update(hidden)
        for handle in hidden:
            cloud.hide(handle)
            self.sight(handle)

        def end() -> None:
            for handle in hidden:
                cloud.unhide(handle)

        self.world.until((0.2, 1.0, 3.0, 30.0), end, f"{hidden} are not found")

    def limit_rate(self) -> None:
        cloud = self._cloud()
        self.for_a_while(cloud, Faults(refused=1.0, retry_after_s=self.rng.choice((2.0, 30.0))), "limits rates")

    def for_a_while(self, cloud: WatchedCloud, faults: Faults, story: str) -> None:
        cloud.behaviour.faults = faults

        def end() -> None:
            cloud.behaviour.faults = self.world.usual

        self.world.until((5.0, 30.0, 120.0), end, f"the cloud {story}")
