"""What befalls processes and clouds: they are killed, frozen, cut off; things are changed and hidden outside."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from homeostat.clouds.port import ChangeNotice
from homeostat.clouds.simulated import Faults
from homeostat.store import schema
from homeostat.store.shards import shards
from tests.simulation.actors import Process
from tests.simulation.watched import WatchedCloud
from tests.simulation.world import SimulatedWorld


class DisturbedWorld(SimulatedWorld):
    """A world in which processes die and clouds fail."""

    _ends: list[tuple[float, Callable[[], None]]]
    _hidden: Counter[str]
    _usual: Faults

    def _pass_time(self) -> None:
        """No process has anything to do, or none is there: time passes until something is due or over."""
        times = [self.next_due(), *(at for at, _ in self._ends), *(each.frozen_until for each in self.processes)]
        later = [at for at in times if at is not None and at > self.clock.time]
        if later:
            self.clock.time = min(later)

    def _beat(self) -> None:
        for worker in self.workers:
            if worker.ready:
                worker.beat()

    # -- processes ---------------------------------------------------------------------------------------------------

    def _victim(self) -> Process:
        return self.rng.choice(self.processes)

    def _kill(self) -> None:
        victim = self._victim()
        if victim.alive:
            self.kills += 1
            victim.kill()
            self.note(f"kill {victim.name}")

    def _die_inside(self) -> None:
        victim = self._victim()
        victim.deadly = 0.2
        self.note(f"{victim.name} dies at one of its next transactions")

    def _make_flaky(self) -> None:
        victim = self._victim()
        victim.flaky = self.rng.choice((0.0, 0.03, 0.1))
        self.note(f"{victim.name} loses connections: {victim.flaky}")

    def _cut_off(self) -> None:
        victim = self._victim()
        victim.cut_off_until = self.clock.time + self.rng.choice((1.0, 6.0, 20.0))
        self.note(f"cut off {victim.name} until {victim.cut_off_until - 1_000_000:.2f}")

    def _freeze(self) -> None:
        victim = self._victim()
        victim.frozen_until = self.clock.time + self.rng.choice((1.0, 6.0, 20.0))
        self.note(f"freeze {victim.name} until {victim.frozen_until - 1_000_000:.2f}")

    def _set_clock(self) -> None:
        """Forwards or backwards: the clock of one machine."""
        victim = self._victim()
        victim.clock.skew_s = self.rng.choice((-120.0, -10.0, -1.0, 0.0, 1.0, 10.0, 120.0))
        self.note(f"clock of {victim.name} is {victim.clock.skew_s} s ahead")

    def _set_database_clock(self) -> None:
        """Forwards or backwards: the clock that all go by. Some worker lives on, and notices it."""
        noticing = [each for each in self.workers if each.ready and self.clock.time >= each.cut_off_until]
        if not noticing:
            return
        for worker in noticing:
            worker.beat()
        self.clock.step_s += self.rng.choice((-3600.0, -600.0, -60.0, 60.0, 600.0, 3600.0))
        self.note(f"clock of the database is {self.clock.step_s} s ahead")
        for worker in noticing:
            worker.beat()

    def _jump_ahead(self) -> None:
        """A long time passes at once."""
        self.clock.time += self.rng.choice((5.0, 30.0, 90.0, 300.0))

    def _wake_twice(self) -> None:
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
        return self.clouds[self.rng.choice(self.projects)]

    def _disturb(self) -> None:
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
            worker = self.rng.choice(self.workers)
            worker.notices.append(ChangeNotice(handle.rpartition("-")[0], handle))

    def _notice(self) -> None:
        """A cloud says that something has changed; it may well have not."""
        handles = sorted(self._cloud().things())
        self.sight(self.rng.choice(handles) if handles else "server-999999")

    def _black_out(self) -> None:
        cloud = self._cloud()
        self._for_a_while(cloud, Faults(unreachable=1.0), "is down")

    def _hide(self) -> None:
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
        until = self.clock.time + self.rng.choice((0.2, 1.0, 3.0, 30.0))

        def end() -> None:
            for handle in hidden:
                cloud.unhide(handle)

        self._ends.append((until, end))
        self.note(f"{hidden} are not found until {until - 1_000_000:.2f}")

    def _end_outages(self) -> None:
        over = [end for at, end in self._ends if at <= self.clock.time]
        self._ends = [each for each in self._ends if each[0] > self.clock.time]
        for end in over:
            end()

    def _limit_rate(self) -> None:
        cloud = self._cloud()
        self._for_a_while(cloud, Faults(refused=1.0, retry_after_s=self.rng.choice((2.0, 30.0))), "limits rates")

    def _for_a_while(self, cloud: WatchedCloud, faults: Faults, story: str) -> None:
        cloud.behaviour.faults = faults
        until = self.clock.time + self.rng.choice((5.0, 30.0, 120.0))

        def end() -> None:
            cloud.behaviour.faults = self._usual

        self._ends.append((until, end))
        self.note(f"the cloud {story} until {until - 1_000_000:.2f}")
