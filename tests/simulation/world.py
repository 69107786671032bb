"""One simulated world, made from a seed: its processes, database and clouds, whose turn it is, and its rest."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from unittest.mock import patch

from sqlalchemy import Table, select

from homeostat.clock import Entropy
from homeostat.clouds.simulated import CloudBehaviour, Faults
from homeostat.convergence.engine import Urls
from homeostat.desired import members
from homeostat.identity.stack_users import StackUsers
from homeostat.model.status import Status
from homeostat.plugins.resource import Resource
from homeostat.store import schema
from homeostat.store.builtin import records, stack_users
from homeostat.store.builtin.stack_users import DEPARTED_QUEUE, DEPARTED_USER, QUEUE, STACK_USER
from homeostat.store.database import Database
from homeostat.store.shards import brakes, orphans
from homeostat.store.sql import group_commit
from tests.simulation.actors import Actor, Api, Process, Turn, VirtualClock, Worker
from tests.simulation.invariants import check_rest, reasons
from tests.simulation.parts import Act, Part
from tests.simulation.watched import WatchedCloud, WatchedDatabase
from tests.simulation.watching import Watcher

NEXT = """
    SELECT (SELECT min(max(wake_at, lease_until)) FROM shard WHERE wake_at IS NOT NULL),
    (SELECT min(observe_at) FROM shard), (SELECT min(health_at) FROM shard),
    (SELECT min(look_at) FROM forsaken), (SELECT min(due_at) FROM snapshot)
    """
MOVING = f"""
    SELECT EXISTS (SELECT 1 FROM stack WHERE status = '{Status.IN_PROGRESS}')
    OR EXISTS (SELECT 1 FROM shard WHERE wake_at IS NOT NULL) OR EXISTS (SELECT 1 FROM forsaken)
    OR EXISTS (SELECT 1 FROM snapshot WHERE due_at IS NOT NULL)
    """
PATIENCE_S = 90.0
"""How long late requests are watched for: longer than anybody is frozen."""
STEADY_S = 45.0
"""How long everything must have been at rest: two rounds of looking."""
STEPS_MAX = 200_000
"""Steps until everything must be at rest. Members that report take 40 a second, and a resource that waits for ever ends
with its stack's time, and once more with that of the rollback."""
CROWDED = 20_000
"""Steps after which less time passes with each: looks at very many stacks would take all of it."""
OF_SERVERS = (STACK_USER, DEPARTED_USER, QUEUE, DEPARTED_QUEUE)
"""Kinds of records of what servers use, which belong to the thing of their resource."""
AnyPart = TypeVar("AnyPart", bound=Part)


@dataclass(slots=True)
class Story:
    """What happened, for a failing seed: one line an act of a user, a fault or a crash."""

    lines: list[str] = field(default_factory=list)

    def note(self, now: float, text: str) -> None:
        self.lines.append(f"{now - 1_000_000:8.2f}  {text}")


class World:
    """Everything of one seed; its parts say what happens to it and what must hold (see `parts`).

    acts — events with their weights; happened — how often what did; ends — what is over at a time; usual — the faults
    that its clouds always have.

    Takes: projects — each has a cloud of its own; workers, apis — processes; members_per_shard — of groups; few —
    things that may be absent without a doubt; plugin_types — plug-ins, by type; cloud_type — what its clouds are.
    """

    def __init__(
        self,
        seed: int,
        behaviour: CloudBehaviour | None = None,
        parts: Sequence[Part] = (),
        *,
        projects: tuple[str, ...] = ("p",),
        workers: int = 1,
        apis: int = 1,
        members_per_shard: int = members.MEMBERS_PER_SHARD,
        few: int = brakes.FEW,
        plugin_types: Mapping[str, type[Resource]] | None = None,
        cloud_type: type[WatchedCloud] = WatchedCloud,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.story = Story()
        self.projects = projects
        self.members_per_shard = members_per_shard
        self.few = few
        self.plugin_types = plugin_types or {}
        self.db = WatchedDatabase(self.clock.database, self.clock.monotonic)
        weather = behaviour or CloudBehaviour()
        self.clouds = {
            project: cloud_type(self.clock.now, replace(weather), seed + place, 1000 * place + 1)
            for place, project in enumerate(projects)
        }
        self.usual = weather.faults
        self.watcher = Watcher(self.db, list(self.clouds.values()))
        self.db.on_commit = self._committed
        self.entropy = Entropy(self.rng.randbytes)
        self.acts: list[tuple[float, Act]] = []
        self.happened: Counter[str] = Counter()
        self.ends: list[tuple[float, Act]] = []
        self.mended: set[str] = set()
        self._superseded = 0
        self._asked_at = -1
        self._next: float | None = None
        self._tables: dict[str, list[Any]] = {}
        self._read_at = -1
        self._born = 0
        self.parts = list(parts)
        for part in self.parts:
            part.world = self
        self.workers = [self._worker() for _ in range(workers)]
        self.apis = [self._api() for _ in range(apis)]
        for part in self.parts:
            part.begin()

    def part(self, kind: type[AnyPart]) -> AnyPart:
        """The part of this kind."""
        return next(part for part in self.parts if isinstance(part, kind))

    # -- processes ---------------------------------------------------------------------------------------------------

    def _worker(self) -> Worker:
        self._born += 1
        urls = next((urls for part in self.parts if (urls := part.urls()) is not None), Urls())
        worker = Worker(f"w{self._born}", self, urls)
        for part in self.parts:
            part.hired(worker)
        return worker

    def stack_users(self, db: Database) -> StackUsers | None:
        """The users that a worker with this database makes for servers."""
        return next((users for part in self.parts if (users := part.stack_users(db)) is not None), None)

    def _api(self) -> Api:
        self._born += 1
        return Api(f"a{self._born}", self)

    def add_api(self) -> None:
        self.apis.append(self._api())

    @property
    def processes(self) -> list[Process]:
        return [*self.workers, *self.apis]

    @property
    def serving(self) -> list[Api]:
        """The API processes that are alive."""
        return [api for api in self.apis if api.alive]

    def replace_dead(self) -> None:
        for place, worker in enumerate(self.workers):
            if not worker.alive:
                self._superseded += worker.superseded
                self.workers[place] = self._worker()
        for place, api in enumerate(self.apis):
            if not api.alive:
                self.apis[place] = self._api()

    def note(self, text: str) -> None:
        self.story.note(self.clock.time, text)

    # -- going on ----------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Let one thread that has something to do go on to its next call. False: none has."""
        choice = self._choose()
        if choice is None:
            return False
        process, actor = choice
        process.step(actor)
        self.check()
        return True

    def step_or_wait(self, *pauses_s: float, rng: random.Random | None = None) -> None:
        """One step, or time until something is due; and one of these pauses after it. rng — chooses that one."""
        if not self.step():
            self.pass_time()
        self.clock.time += (rng or self.rng).choice(pauses_s)

    def go_on(self, rng: random.Random) -> None:
        """One step, before which a worker may be killed or frozen, and some time after it. rng — decides that."""
        if rng.random() < 0.02:
            victim = rng.choice(self.workers)
            if rng.random() < 0.5:
                victim.kill()
                self.note(f"kill {victim.name}")
            else:
                victim.frozen_until = self.clock.time + rng.choice((1.0, 6.0, 20.0))
        if rng.random() < 0.2:
            self.replace_dead()
        self.step()
        self.clock.time += rng.choice((0.0, 0.01, 0.1, 1.0))

    def act(self) -> None:
        """Let something happen."""
        (act,) = self.rng.choices([act for _, act in self.acts], [weight for weight, _ in self.acts])
        act()

    def pass_time(self) -> None:
        """No process has anything to do, or none is there: time passes until something is due or over."""
        if any(part.pass_time() for part in reversed(self.parts)):
            return
        times = [self.next_due(), *(at for at, _ in self.ends), *(each.frozen_until for each in self.processes)]
        later = [at for at in times if at is not None and at > self.clock.time]
        if later:
            self.clock.time = min(later)

    def end_outages(self) -> None:
        """What was for a while is over, where its time has come."""
        over = [end for at, end in self.ends if at <= self.clock.time]
        self.ends = [each for each in self.ends if each[0] > self.clock.time]
        for end in over:
            end()

    def end_all(self) -> None:
        """All that was for a while is over."""
        for _, end in self.ends:
            end()
        self.ends.clear()

    def until(self, lengths_s: Sequence[float], end: Act, story: str) -> None:
        """Something is so for one of these times."""
        until = self.clock.time + self.rng.choice(lengths_s)
        self.ends.append((until, end))
        self.note(f"{story} until {until - 1_000_000:.2f}")

    def _choose(self) -> tuple[Process, Actor] | None:
        """Who is in the middle of something goes first, mostly; then those for whom something is due."""
        actors = [(process, actor) for process in self.processes if process.ready for actor in process.actors]
        busy = [each for each in actors if not each[1].idle]
        if busy and self.rng.random() < 0.8:
            return self.rng.choice(busy)
        at = self.next_due()
        due = at is not None and at <= self.clock.time
        idle = [each for each in actors if each[1].idle and each[0].wanted(due=due)]
        chosen = idle or busy
        return self.rng.choice(chosen) if chosen else None

    def next_due(self) -> float | None:
        """When the next pass, look or sweep is due."""
        if self._asked_at != self.watcher.commits:
            self._asked_at = self.watcher.commits
            times = self.db.raw.execute(NEXT).fetchone()
            self._next = min((at for at in times if at is not None), default=None)
        times = [self._next, *(part.next_due() for part in self.parts)]
        return min((at for at in times if at is not None), default=None)

    def _committed(self) -> None:
        self.watcher.committed()
        for part in self.parts:
            part.committed()

    def check(self) -> None:
        """Nothing is wrong so far. Fails: AssertionError."""
        doubled = [each for cloud in self.clouds.values() for each in cloud.doubled]
        assert not doubled, f"created twice: {doubled}"
        touched = [handle for cloud in self.clouds.values() for handle in cloud.touched]
        assert not touched, f"not ours, and yet something was done to it: {touched}"
        assert not self.watcher.wrong, "; ".join(self.watcher.wrong)
        for part in self.parts:
            part.check()

    # -- rest --------------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """The end of all faults: the clouds are well, no process dies or freezes, users stop."""
        for part in reversed(self.parts):
            part.calm()
        for cloud in self.clouds.values():
            cloud.behaviour.faults = Faults()
            cloud.behaviour.quota = None
        for process in self.processes:
            process.calm()
        self.replace_dead()
        self.note("calm")
        for part in self.parts:
            part.calmed()

    def settle(self) -> None:
        """Go on without faults until everything is at rest, for all parts. Fails: AssertionError."""
        self.rest()
        for part in self.parts:
            part.rested()

    def rest(self, within_s: float = 7200.0) -> None:
        """Go on without faults until everything has been at rest for a while. Fails: AssertionError."""
        self.replace_dead()  # with no worker alive, nothing would come to rest
        end = self.clock.time + within_s
        rested_at: float | None = None
        for number in range(STEPS_MAX):
            if not self.step():
                if self._moving():
                    rested_at = None
                elif rested_at is None:
                    rested_at = self.clock.time
                elif self.clock.time - rested_at > STEADY_S:
                    break
                if self.clock.time > end:
                    break
                self._jump(rested_at)
            self.clock.time += self.rng.choice((0.0, 0.0, 0.01, 0.1)) / (1.0 if number < CROWDED else 10.0)
        else:
            raise AssertionError(f"not at rest after {STEPS_MAX} steps: {'; '.join(self._due())}")
        check_rest(self)
        left = {handle: thing for handle, thing in self.things().items() if thing.get("locked")}
        assert not left, f"still locked: {left}"

    def _jump(self, rested_at: float | None) -> None:
        """No thread has anything to do: let time pass until one has."""
        for part in reversed(self.parts):
            part.last_word()
        at = self.next_due()
        rested = None if rested_at is None else rested_at + STEADY_S + 1.0
        times = [time for time in (at, rested) if time is not None]
        self.clock.time = max(min(times, default=self.clock.time + 1.0), self.clock.time)

    def _moving(self) -> bool:
        """Is a stack in progress, a pass due, or a thread in the middle of something?"""
        acting = any(not actor.idle for process in self.processes for actor in process.actors)
        moving = acting or bool(self.db.raw.execute(MOVING).fetchone()[0])
        return moving or any(part.is_moving() for part in self.parts)

    def _due(self) -> list[str]:
        """What keeps it from coming to rest: stacks in progress, shards that are due, busy actors."""
        moving = [each for each in self.all_stacks() if each.status == Status.IN_PROGRESS]
        found = [f"{each.name} is {each.action}_{each.status}: {reasons(self, each)}" for each in moving]
        names = {each.id: each.name for each in self.all_stacks()}
        due = [each for each in self._all(schema.shard) if each.wake_at is not None]
        found += [f"{names[each.stack_id]}/{each.number} is due at {each.wake_at:.2f} {each.reason}" for each in due]
        actors = [actor for process in self.processes for actor in process.actors if not actor.idle]
        return found + [f"{type(each).__name__} is busy" for each in actors]

    def run(self) -> None:
        with (
            patch.object(members, "MEMBERS_PER_SHARD", self.members_per_shard),
            patch.object(orphans, "PATIENCE_S", PATIENCE_S),
            patch.object(stack_users, "PATIENCE_S", PATIENCE_S),
            patch.object(brakes, "FEW", self.few),
            patch.object(group_commit, "Turn", Turn),
        ):
            for part in self.parts:
                part.disturb()
            self.calm()
            self.settle()
        for part in self.parts:
            part.ended()
        superseded = self._superseded + sum(worker.superseded for worker in self.workers)
        self.happened.update(superseded=superseded, **self.watcher.counts())

    def close(self) -> None:
        """All processes end, and the database closes: a thread that rests, or a trigger, keeps the world in memory."""
        for process in self.processes:
            process.kill()
        self.db.close()

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def retained(self) -> set[str]:
        spared = self.watcher.spared
        late = {handle for cloud in self.clouds.values() for handle in cloud.carrying(spared)}
        return self.watcher.retained | late | {each.id for each in self.records() if each.token in spared}

    @property
    def let_go(self) -> set[str]:
        return self.watcher.let_go

    @property
    def went(self) -> set[tuple[str, str]]:
        return self.watcher.went

    def things(self) -> dict[str, dict[str, Any]]:
        """Everything there is in all clouds, and what the service keeps for resources: handle -> object."""
        outside = {handle: thing for cloud in self.clouds.values() for handle, thing in cloud.things().items()}
        kept = (each for each in self.records() if each.kind not in OF_SERVERS and records.key_of(each.token))
        return {**outside, **{each.id: {} for each in kept}}

    def copies(self) -> list[dict[str, Any]]:
        """What the clouds keep for snapshots of all sorts."""
        return [each for cloud in self.clouds.values() for each in cloud.all_snapshots()]

    def records(self) -> list[Any]:
        return self._all(schema.record)

    def rows(self) -> list[Any]:
        return self._all(schema.resource)

    def all_stacks(self) -> list[Any]:
        return self._all(schema.stack)

    def _all(self, table: Table) -> list[Any]:
        """Rows of a table, read once a commit."""
        if self._read_at != self.watcher.commits:
            self._read_at = self.watcher.commits
            self._tables.clear()
        if table.name not in self._tables:
            with self.db.read() as tx:
                self._tables[table.name] = list(tx.execute(select(table)))
        return self._tables[table.name]
