"""A whole service in a single thread on virtual time, with fault injection into calls of the cloud."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, func, select

from homeostat.clock import Entropy
from homeostat.clouds import port
from homeostat.clouds.port import Answer, Change, ChangeNotice, Cloud, Operation
from homeostat.convergence.engine import build_engine
from homeostat.convergence.jobs.board import ShardBoard, ShardJob
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.model.errors import Uncertain
from homeostat.model.observed import Observation
from homeostat.model.status import Status, joined
from homeostat.resources.base import Thing
from homeostat.resources.registry import resource_type
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.shards import shard_state
from homeostat.store.stacks import stacks

PROJECT = "project"
LEASE_S = 5.0


class Crash(BaseException):
    """The death of the worker at this point, as with kill -9; a BaseException, so that no code catches it."""


class Clock:
    """Virtual time, which the bench moves."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@dataclass(frozen=True, slots=True)
class Setting:
    """The environment of a cloud; `now` returns the virtual time in seconds since the epoch."""

    now: Callable[[], float]
    db: Database
    project: str = PROJECT


Making = Callable[[Setting], Cloud]


class StruckCloud:
    """A cloud that counts its calls, and can inject a fault.

    Attributes:
        crash_at: The point at which the worker dies; -1 for none. Points are before and after each call.
        lose_at: The mutating call whose answers are lost; -1 for none.
        points: Number of points passed.
        acts: Number of mutating calls.
        called: Verbs of the mutating calls.
        tokens: All tokens ever used, each with its kind.
        handles: All handles ever used, each with its kind.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.name = cloud.name
        self.kinds = cloud.kinds
        self.listing_lag_s = cloud.listing_lag_s
        self.crash_at = self.lose_at = -1
        self.points = self.acts = 0
        self.called: list[str] = []
        self.tokens: set[tuple[str, str]] = set()
        self.handles: set[tuple[str, str]] = set()

    def begin(self, crash_at: int = -1, lose_at: int = -1) -> None:
        """Restart the counters, and set the next fault."""
        self.crash_at, self.lose_at = crash_at, lose_at
        self.points = self.acts = 0
        self.called = []

    def _point(self) -> None:
        self.points += 1
        if self.points - 1 == self.crash_at:
            raise Crash

    def _acted(self, verb: str, kind: str, act: Callable[[], list[Answer]]) -> list[Answer]:
        self._point()
        self.called.append(verb)
        self.acts += 1
        answers = act()
        self.handles |= {
            (kind, answer.handle) for answer in answers if isinstance(answer, Observation) and answer.handle
        }
        self._point()
        if self.acts - 1 == self.lose_at:
            return [Uncertain("the answer was lost") for _ in answers]
        return answers

    def observe(self, kind: str, handles: Sequence[str]) -> list[Observation]:
        self._point()
        looks = self._cloud.observe(kind, handles)
        self._point()
        return looks

    def find(self, kind: str, tokens: Sequence[str]) -> list[Observation]:
        self._point()
        looks = self._cloud.find(kind, tokens)
        self._point()
        return looks

    def resolve(self, kind: str, names: Sequence[str]) -> list[str | None]:
        return self._cloud.resolve(kind, names)

    def create(self, kind: str, intents: Sequence[port.Creation]) -> list[Answer]:
        self.tokens |= {(kind, intent.token) for intent in intents}
        return self._acted("create", kind, lambda: self._cloud.create(kind, intents))

    def update(self, kind: str, changes: Sequence[Change]) -> list[Answer]:
        return self._acted("update", kind, lambda: self._cloud.update(kind, changes))

    def delete(self, kind: str, handles: Sequence[str]) -> list[Answer]:
        return self._acted("delete", kind, lambda: self._cloud.delete(kind, handles))

    def operate(self, kind: str, operations: Sequence[Operation]) -> list[Answer]:
        return self._acted("operate", kind, lambda: self._cloud.operate(kind, operations))

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        return self._cloud.watch(stop)

    def close(self) -> None:
        self._cloud.close()

    def present(self) -> list[tuple[str, str]]:
        """Return kind and handle of each existing thing that was created here."""
        existing: set[tuple[str, str]] = set()
        for kind in {kind for kind, _ in (*self.tokens, *self.handles)}:
            tokens = sorted(token for its_kind, token in self.tokens if its_kind == kind)
            handles = sorted(handle for its_kind, handle in self.handles if its_kind == kind)
            looks = [*self._cloud.find(kind, tokens), *self._cloud.observe(kind, handles)]
            existing |= {(kind, look.handle) for look in looks if look.present}
        return sorted(existing)


class Bench:
    """The service; `make` creates its cloud."""

    def __init__(self, make: Making) -> None:
        self.clock = Clock()
        self.db = Database("sqlite://", self.clock.now)
        schema.metadata.create_all(self.db.engine)
        self.cloud = StruckCloud(make(Setting(self.clock.now, self.db)))
        numbers = iter(range(1, 1_000_000))
        entropy = Entropy(lambda size: next(numbers).to_bytes(size, "big"))
        limits = Limits(lease_s=LEASE_S, slice_s=1e9)
        self.stack_service = StackService(self.db, entropy, Quotas())
        self._engine = build_engine(self.db, lambda _project: self.cloud, self.clock, entropy, limits)
        self._board = ShardBoard("shards", {"database": self.db, "lease_s": LEASE_S})

    # -- users -------------------------------------------------------------------------------------------------------

    def create(self, resources: Mapping[str, Any], name: str = "stack") -> str:
        """Request a stack of these resources, without working on it yet, and return its id."""
        return self.stack_service.create(PROJECT, None, name, self._intent(resources))

    def update(self, stack_id: str, resources: Mapping[str, Any]) -> None:
        self.stack_service.update(stack_id, self._intent(resources))

    def delete(self, stack_id: str) -> None:
        self.stack_service.delete(stack_id)

    def _intent(self, resources: Mapping[str, Any]) -> StackRequest:
        return StackRequest(
            {"heat_template_version": "2018-08-31", "resources": dict(resources)}, disable_rollback=True
        )

    # -- the service -------------------------------------------------------------------------------------------------

    def live(self, seconds: float) -> None:
        """Advance time from due time to due time; a new worker follows a dead worker."""
        end = self.clock.time + seconds
        while self.clock.time < end:
            try:
                self._work()
                self._engine.observer.round()
                self._engine.observer.sweep()
                self._work()
            except Crash:
                # The dead worker's lease has to expire before the next worker can claim the shard.
                self.clock.time += LEASE_S + 1
                continue
            at = self._next()
            if at is None or at > end:
                self.clock.time = end
                return
            self.clock.time = max(at, self.clock.time + 0.01)

    def rest(self, within_s: float = 3600.0) -> None:
        """Advance time until no stack is in progress.

        Raises:
            AssertionError: A stack is in progress after `within_s` seconds.
        """
        end = self.clock.time + within_s
        while True:
            self.live(1.0)
            busy = [stack for stack in self._stacks() if stack.status == Status.IN_PROGRESS]
            if not busy:
                return
            assert self.clock.time < end, f"{busy[0].action} is still in progress after {within_s} s: {self.reasons()}"

    def _work(self, passes_max: int = 1000) -> None:
        for _ in range(passes_max):
            if self._board.job_count == 0:
                return
            job: ShardJob = next(self._board.iterjobs())
            self._board.claim(job, "worker")
            run_pass(self._engine.reconciler, job)
        raise AssertionError(f"more than {passes_max} passes in one moment: it never comes to rest")

    def _next(self) -> float | None:
        table = schema.shard
        claimable = case((table.c.wake_at < table.c.lease_until, table.c.lease_until), else_=table.c.wake_at)
        with self.db.read() as tx:
            wake = tx.execute(select(func.min(claimable)).where(table.c.wake_at.is_not(None))).scalar_one()
            look = tx.execute(select(func.min(table.c.observe_at))).scalar_one()
        return min((float(at) for at in (wake, look) if at is not None), default=None)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _stacks(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.stack).where(schema.stack.c.deleted_at.is_(None))))

    def state(self, stack_id: str) -> str:
        with self.db.read() as tx:
            row = stacks.get(tx, stack_id)
        return joined(row.action, row.status) if row is not None else ""

    def things(self, stack_id: str) -> dict[str, Thing]:
        """Return the resources of a stack, by name, in the form for their types."""
        with self.db.read() as tx:
            rows, seen = shard_state.load_rows(tx, stack_id, 0)
        things = {}
        for row in rows.values():
            kind = resource_type(row.type)
            things[row.name] = Thing(
                row.key, row.name, row.name, kind.complete(row.properties), seen[row.key].observation, row.handle
            )
        return things

    def reasons(self) -> list[str]:
        """Return the states and reasons of incomplete resources."""
        with self.db.read() as tx:
            table = schema.resource
            rows = tx.execute(select(table.c.name, table.c.action, table.c.status, table.c.reason))
            return [
                f"{row.name} {joined(row.action, row.status)}: {row.reason}" for row in rows if row.status != "COMPLETE"
            ]
