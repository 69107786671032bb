"""A whole service in one thread on virtual time: passes, observer and a simulated cloud over SQLite in memory."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlsplit

from sqlalchemy import Engine, select

from homeostat.builtin.cloud import Records
from homeostat.builtin.member_reports import MemberReports, report
from homeostat.builtin.server_agents import ServerAgents
from homeostat.builtin.signals import Signals
from homeostat.clock import Entropy
from homeostat.clouds.combined import JoinedCloud
from homeostat.clouds.simulated import CloudBehaviour, SimulatedCloud
from homeostat.clustering.resources.api import ClusteringResources
from homeostat.clustering.resources.cloud import ClusteringResourceClouds
from homeostat.convergence.engine import Threads, Urls, build_engine
from homeostat.convergence.jobs.board import ShardBoard, ShardJob
from homeostat.convergence.jobs.conductor import run_pass
from homeostat.convergence.limits import Limits
from homeostat.convergence.nested_stacks.attributes import READ, WeightBudget
from homeostat.desired.graphs import DesiredGraphs
from homeostat.model.limits import DEPTH_MAX
from homeostat.model.observed import Observation, Presence
from homeostat.model.status import Status, joined, resource_may
from homeostat.notifications.delivery import Deliverer
from homeostat.notifications.sinks import SinkKind, Sinks
from homeostat.resources.base import Thing
from homeostat.resources.registry import kind_of, resource_type
from homeostat.services.actions import StackActions
from homeostat.services.explainer import Explainer
from homeostat.services.pipeline.prerequisites import Prerequisites
from homeostat.services.pipeline.request import StackRequest
from homeostat.services.quotas import Quotas
from homeostat.services.snapshots import Snapshots
from homeostat.services.stacks import StackService
from homeostat.services.transfer import StackTransfer
from homeostat.store import schema
from homeostat.store.builtin import records
from homeostat.store.database import Database
from homeostat.store.encryption.encrypted_cells import Keyring
from homeostat.store.shards import fair_queue
from homeostat.store.stacks import stacks
from tests import upcoming
from tests.simulation.actors import VirtualClock
from tests.simulation.watched import empty, raw

PROJECT = "p"
URL = "http://api.test:8004"
LIMITS = Limits(slice_s=1e9)


class Memory(Database):
    """A database in memory. What one of them has compiled the next need not compile."""

    first: Engine | None = None

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        super().__init__(url, now)
        first = Memory.first = Memory.first or self.engine
        self.engine.dialect = first.dialect
        self.engine.update_execution_options(compiled_cache=first._compiled_cache)
        self.use_keys(Keyring())


class Service:
    """Takes: behaviour — of the cloud; cloud — instead of a simulated one; installed — further kinds of event sinks;
    depth_max — levels of nested stacks; urls — how it reaches those that users name."""

    def __init__(
        self,
        behaviour: CloudBehaviour | None = None,
        *,
        cloud: Callable[[VirtualClock], SimulatedCloud] | None = None,
        pool: Executor | None = None,
        installed: Sequence[SinkKind] = (),
        depth_max: int = DEPTH_MAX,
        urls: Urls = Urls(),
    ) -> None:
        self.clock = VirtualClock()
        self.db = Memory("sqlite://", self.clock.now)
        with self.db.engine.connect() as connection:
            empty().backup(raw(connection))
        self.cloud = cloud(self.clock) if cloud is not None else SimulatedCloud(self.clock.now, behaviour)
        numbers = iter(range(1, 1_000_000))
        entropy = Entropy(lambda size: next(numbers).to_bytes(size, "big"))
        sinks = Sinks(self.clouds, installed=installed)
        existing = Prerequisites(self.clouds, self.clock.now, self.clock.now)
        self.stack_service = StackService(
            self.db, entropy, Quotas(depth_max=depth_max), prerequisites=existing, sinks=sinks
        )
        self.actions = StackActions(self.db, 3600.0)
        self.snapshots = Snapshots(self.db, self.stack_service)
        self.moving = StackTransfer(self.db, self.stack_service)
        self.deliverer = Deliverer(self.db, sinks, self.clock)
        self.records = Records(self.db, entropy, URL)
        clustering = ClusteringResources(self.db, self.stack_service, URL, None)
        self.things = ClusteringResourceClouds(self.db, entropy, lambda: clustering)
        limits = replace(LIMITS, depth_max=depth_max)
        engine = build_engine(self.db, self.clouds, self.clock, entropy, limits, Threads(pool), urls=urls)
        self.reconciler, self.executor, self.nested_stacks = engine.reconciler, engine.executor, engine.nested_stacks
        self.observer, self.snapshot_collector = engine.observer, engine.snapshot_collector
        self.scaling, self.rollouts, self.health = engine.scaling, engine.rollouts, engine.health
        self.signals = Signals(self.db, self.scaling.signal, self.rollouts.advance)
        self.reports = MemberReports(self.db)
        self.board = ShardBoard(
            "shards", {"database": self.db, "lease_s": LIMITS.lease_s, "lost": self.reconciler.lost}
        )

    def clouds(self, project: str) -> JoinedCloud:
        """What a project sees."""
        own = (self.records.of(project), self.things.of(project))
        return JoinedCloud(ServerAgents(self.cloud, self.records, self.db, project), *own)

    # -- users -------------------------------------------------------------------------------------------------------

    def begin(self, resources: dict[str, Any], name: str = "web", **options: Any) -> str:
        """A stack of these resources, of which nothing is done yet. options — of the intent."""
        options.setdefault("disable_rollback", True)
        return self.stack_service.create(PROJECT, None, name, StackRequest(template(resources), **options))

    def create(self, resources: dict[str, Any], **options: Any) -> str:
        """The same; what can be done at once is done."""
        stack_id = self.begin(resources, **options)
        self.work()
        return stack_id

    def adopt(self, document: Any, name: str = "moved", **options: Any) -> str:
        """A stack of what a document names; what can be done at once is done."""
        stack_id = self.moving.adopt(PROJECT, None, name, StackRequest(**options), document)
        self.work()
        return stack_id

    def update(self, stack_id: str, resources: dict[str, Any], **options: Any) -> None:
        self.stack_service.update(stack_id, StackRequest(template(resources), **options))
        self.work()

    def delete(self, stack_id: str) -> None:
        self.stack_service.delete(stack_id)
        self.work()

    def signal(self, stack_id: str, name: str, body: dict[str, Any] | None = None, **words: Any) -> Any:
        """Signal a resource, as the API does it for a user who may act in the project."""
        row = self.row(stack_id, name)
        answer = self.signals.native(PROJECT, kind_of(row.type), row.handle, words or body)
        self.work()
        return answer

    def report_member(self, stack_id: str, group: str, member: str, status: str = "SUCCESS", said: str = "") -> None:
        """Report how a member of a group is, as the API does it for a user who may act in the project."""
        self.reports.take(self.row(stack_id, group).key, replace(report(member, status), reason=said))
        self.work()

    def put(self, url: str, body: dict[str, Any] | None, method: str = "PUT") -> Any:
        """Signal at a signed address."""
        parts = urlsplit(url)
        answer = self.signals.signed(method, unquote(parts.path), dict(parse_qsl(parts.query)), body)
        self.work()
        return answer

    def attribute(self, stack_id: str, name: str, attribute: str) -> Any:
        """Of a resource, as the API shows it."""
        row, seen = self.row(stack_id, name), self.seen(stack_id, name)
        kind = resource_type(row.type)
        if kind.kind in READ:
            with self.db.read() as tx:
                seen = {**seen, **READ[kind.kind](tx, row.handle, WeightBudget())}
        look = Observation(Presence.PRESENT, row.handle, seen)
        thing = Thing(row.key, name, name, kind.complete(row.properties), look, row.handle)
        return kind.attribute(thing, attribute)

    # -- the service -------------------------------------------------------------------------------------------------

    def claim(self) -> ShardJob:
        """The first job there is. Fails: StopIteration when there is none."""
        job: ShardJob = next(self.board.iterjobs())
        self.board.claim(job, "w")
        return job

    def die_after_nested_act(self) -> None:
        """Run a pass whose worker dies right after it has acted on a nested stack."""
        execute = self.nested_stacks.execute

        def dies_afterwards(*arguments: Any) -> Any:
            execute(*arguments)
            raise KeyboardInterrupt

        job = self.claim()
        with patch.object(self.nested_stacks, "execute", dies_afterwards):
            try:
                run_pass(self.reconciler, job)
            except KeyboardInterrupt:
                return
        raise AssertionError("the pass has not acted on a nested stack")

    def work(self, passes_max: int = 200) -> None:
        """Run all passes that are due now."""
        for _ in range(passes_max):
            with self.db.read() as tx:
                if fair_queue.due_in(tx, self.clock.now(), 1.0) > 0:
                    return
            run_pass(self.reconciler, self.claim())
        raise AssertionError(f"more than {passes_max} passes without an end; due: {self.due()}")

    def live(self, seconds: float) -> None:
        """Let time pass, from one due time to the next."""
        end = self.clock.time + seconds
        while True:
            self.work()
            self.observer.round()
            while self.health.round():
                self.work()
            self.observer.sweep()
            self.snapshot_collector.round()
            self.scaling.round()
            while self.rollouts.round():
                self.work()
            self.deliverer.round()
            self.work()
            at = self._next()
            if at is None or at > end:
                self.clock.time = end
                return
            self.clock.time = max(at, self.clock.time + 0.01)

    def rest(self, within_s: float = 300.0) -> None:
        """Let time pass until no stack is in progress. Fails: AssertionError when one still is after so long."""
        end = self.clock.time + within_s
        while any(each.status == Status.IN_PROGRESS for each in self.stacks()):
            if self.clock.time >= end:
                raise AssertionError(f"still in progress after {within_s:.0f} s: {'; '.join(self.hindered())}")
            self.live(1.0)

    def due(self) -> list[str]:
        """Shards that want a pass now, and since when."""
        table = schema.shard
        chosen = select(table.c.stack_id, table.c.number, table.c.wake_at, table.c.reason)
        with self.db.read() as tx:
            rows = list(tx.execute(chosen.where(table.c.wake_at <= self.clock.now()).order_by(table.c.wake_at)))
        return [f"{each.stack_id}/{each.number} since {each.wake_at:.2f} {each.reason}".strip() for each in rows]

    def hindered(self) -> list[str]:
        """Stacks in progress, each with what its resources wait for and when it is due again."""
        found = []
        with self.db.read() as tx:
            for stack in (each for each in self.stacks() if each.status == Status.IN_PROGRESS):
                page = Explainer(tx, DesiredGraphs(), self.clock.now()).page(stack, limit=10)
                waits = [each.explanation for each in page.explanations]
                why = [f"{each.name}: {each.why} ({each.reason}), due {each.due_at}" for each in waits]
                found.append(f"{stack.name} {joined(stack.action, stack.status)} [{'; '.join(why) or page.waiting}]")
        return found

    def _next(self) -> float | None:
        with self.db.read() as tx:
            times = (
                upcoming.next_wake(tx),
                upcoming.next_observation(tx),
                upcoming.next_delivery(tx),
                upcoming.next_deletion(tx),
                upcoming.next_rollout(tx),
                upcoming.next_health_check(tx),
            )
        return min((at for at in times if at is not None), default=None)

    # -- looking -----------------------------------------------------------------------------------------------------

    def stacks(self) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.stack).order_by(schema.stack.c.depth, schema.stack.c.created_at)))

    def stack(self, stack_id: str) -> Any:
        with self.db.read() as tx:
            return stacks.get(tx, stack_id)

    def state(self, stack_id: str) -> str:
        row = self.stack(stack_id)
        return joined(row.action, row.status)

    def child(self) -> Any:
        """The one live nested stack; of those in it, nothing is said."""
        live = [each for each in self.stacks() if each.parent_id is not None and each.deleted_at is None]
        (found,) = [each for each in live if each.parent_id == each.root_id]
        return found

    def rows(self, stack_id: str) -> list[Any]:
        with self.db.read() as tx:
            return list(tx.execute(select(schema.resource).where(schema.resource.c.stack_id == stack_id)))

    def shards(self, stack_id: str) -> list[Any]:
        with self.db.read() as tx:
            table = schema.shard
            return list(tx.execute(select(table).where(table.c.stack_id == stack_id).order_by("number")))

    def row(self, stack_id: str, name: str) -> Any:
        (found,) = [each for each in self.rows(stack_id) if each.name == name]
        return found

    def states(self, stack_id: str) -> dict[str, str]:
        return {each.name: joined(each.action, each.status) for each in self.rows(stack_id)}

    def story(self, stack_id: str, name: str | None = None) -> list[str]:
        """Events of the stack and its resources, or of one of them, in order."""
        table = schema.event
        with self.db.read() as tx:
            found = list(tx.execute(select(table).where(table.c.stack_id == stack_id).order_by(table.c.seq)))
        return [f"{each.name} {joined(each.action, each.status)}" for each in found if name in (None, each.name)]

    def has_valid_history(self, stack_id: str, name: str) -> bool:
        """Return whether the events of a resource are changes of state that a resource may make."""
        states = [(event.action, event.status) for event in self.events(stack_id, name)]
        return all(resource_may(*each) for each in pairwise([("INIT", "COMPLETE"), *states]))

    def events(self, stack_id: str, name: str) -> list[Any]:
        """Of a resource, in order."""
        table = schema.event
        mine = (table.c.stack_id == stack_id, table.c.name == name)
        with self.db.read() as tx:
            return list(tx.execute(select(table).where(*mine).order_by(table.c.seq)))

    def seen(self, stack_id: str, name: str) -> Any:
        """The object of a resource as it was last seen."""
        key = self.row(stack_id, name).key
        table = schema.resource_observed
        with self.db.read() as tx:
            return tx.execute(select(table.c.object).where(table.c.key == key)).scalar_one()

    def records_of(self, kind: str) -> list[Any]:
        """Records of this kind, oldest first."""
        with self.db.read() as tx:
            return records.listed(tx, kind, PROJECT)

    def servers(self) -> list[str]:
        return sorted(self.cloud.things("server"))


def template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": resources}


def server(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Nova::Server", "properties": {"image": "i", "flavor": "small", **properties}}


def volume(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Cinder::Volume", "properties": {"size": 1, **properties}}


def double(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::TestResource", "properties": properties}


def group(count: Any, member: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": member or server(name="m%index%"), **properties},
    }


def handle(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::WaitConditionHandle", "properties": properties}


def condition(name: str = "handle", **properties: Any) -> dict[str, Any]:
    """Waits at the handle of this name."""
    given = {"handle": {"get_resource": name}, "timeout": 60, **properties}
    return {"type": "OS::Heat::WaitCondition", "properties": given}
