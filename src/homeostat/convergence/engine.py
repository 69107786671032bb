"""The assembly of the engine, for every process that runs passes."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from homeostat.clock import Clock, Entropy
from homeostat.clouds.port import Clouds
from homeostat.convergence.execution.executor import StepExecutor
from homeostat.convergence.execution.recovery_calls import Call, RecoveryCalls
from homeostat.convergence.health_checks.probes import Get
from homeostat.convergence.health_checks.rounds import HealthRounds
from homeostat.convergence.health_checks.vantage_rounds import VantageRounds
from homeostat.convergence.limits import Limits
from homeostat.convergence.members.rollouts import Ask, RolloutEngine
from homeostat.convergence.members.scaling import Scaling
from homeostat.convergence.nested_stacks.execution import NestedStacks
from homeostat.convergence.observer import Observer
from homeostat.convergence.reconciler import Reconciler
from homeostat.convergence.snapshots.collection import SnapshotCollector
from homeostat.convergence.threads.fair_turns import FairTurns
from homeostat.model.health_policy import DEFAULT_VANTAGE
from homeostat.store.database import Database


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that converge the stacks of one database. The engine starts no threads.

    Attributes:
        reconciler: Runs passes over shards.
        executor: Executes the steps of the passes.
        nested_stacks: Executes steps on nested stacks.
        observer: Observes the clouds, and sweeps orphans.
        snapshot_collector: Deletes snapshots.
        scaling: Applies signals that have waited for the end of an action.
        rollouts: Advances rollouts of metadata.
        health: Checks the health of members with health policies.
        vantage: Checks URLs of members from this process's vantage point.
    """

    reconciler: Reconciler
    executor: StepExecutor
    nested_stacks: NestedStacks
    observer: Observer
    snapshot_collector: SnapshotCollector
    scaling: Scaling
    rollouts: RolloutEngine
    health: HealthRounds
    vantage: VantageRounds


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads for concurrent parts of the engine; None for the caller's thread.

    Attributes:
        pool: Run the batches of a pass.
        asking: Call URLs that approve rollouts.
        calling: Call webhooks that recover members.
        probing: Check URLs of members.
    """

    pool: Executor | None = None
    asking: FairTurns | None = None
    calling: FairTurns | None = None
    probing: Executor | None = None


@dataclass(frozen=True, slots=True)
class Urls:
    """Access to URLs named by users; None leaves the calls to separate processes.

    Attributes:
        ask: Calls URLs that approve rollouts.
        get: Checks URLs of members.
        call: Calls webhooks that recover members.
        vantage: Name of this process's vantage point.
    """

    ask: Ask | None = None
    get: Get | None = None
    call: Call | None = None
    vantage: str = DEFAULT_VANTAGE


def build_engine(
    db: Database,
    clouds: Clouds,
    clock: Clock,
    entropy: Entropy,
    limits: Limits,
    threads: Threads = Threads(),
    *,
    nudge: Callable[[], None] = lambda: None,
    urls: Urls = Urls(),
) -> Engine:
    """Put the parts of the engine together.

    Args:
        clock: Clock of decisions and deadlines.
        entropy: Randomness for row keys, ids and generated values.
        nudge: Called when the observer may have woken shards.
        urls: Access to URLs named by users.
    """
    nested_stacks = NestedStacks(db, clock, entropy, limits.stack_timeout_s, limits.depth_max, limits.resources_max)
    calls = RecoveryCalls(clock, urls.call, threads.calling)
    executor = StepExecutor(clouds, nested_stacks, clock, entropy, threads.pool, lambda: db.keys, calls)
    observer = Observer(db, clouds, clock, limits.look_steady_s, limits.look_busy_s, nudge)
    return Engine(
        Reconciler(db, clouds, executor, clock, entropy.keys(), limits, observer.look),
        executor,
        nested_stacks,
        observer,
        SnapshotCollector(db, clouds),
        Scaling(db, clock, limits.resources_max, limits.stack_timeout_s),
        RolloutEngine(db, urls.ask, threads.asking, limits.stack_timeout_s),
        HealthRounds(db, clouds, clock, observer, urls.get, threads.probing, nudge),
        VantageRounds(db, urls.vantage, urls.get, threads.probing),
    )
