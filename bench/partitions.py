"""How far one database goes, and how many partitions more would take: a model by the costs that `bench.capacity`
measured, and a simulation of one partition.

A partition is a whole service: one database with its API processes and workers. The page
`docs/explanation/beyond-one-database.md` has the results.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import accumulate

from bench.load import MIX, PER_STACK, RATES
from bench.queueing import Act, Cores, Log, Timeline, Visit, visit
from bench.records import rows

READS = frozenset({"show", "list_resources", "list_events"})
LOOK = "look"
ROUND = 50
"""Stacks that are looked at together, as by the observer."""
INTERVAL_S = 60.0
"""Seconds between two looks at a stack at rest."""
REQUESTS_PER_RESOURCE = 20 / 100_000
"""Requests a second of users and their servers for each resource."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation takes: seconds of a core of each kind, transactions that write, and bytes of WAL."""

    api_s: float
    worker_s: float
    server_s: float
    transactions: float
    wal: float

    @property
    def in_request(self) -> float:
        """Share that is spent before the request is answered; the rest follows in workers."""
        return self.api_s / (self.api_s + self.worker_s) if self.api_s else 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What a server of a database is assumed to give; put in your own.

    Attributes:
        cores: Cores of the database server.
        speed: Speed of one of them, of the API's and of the workers', in cores of the machine that was measured.
        sync_s: How long a sync of the log takes, with a standby that confirms it.
        wal_bytes_s: Bytes of WAL a second that the disk, the archive and the standby take.
        connections: Connections that it serves.
        share: How much of anything is planned to be used; the rest is for peaks.
    """

    cores: int = 32
    speed: float = 1.0
    sync_s: float = 0.001
    wal_bytes_s: float = 100e6
    connections: int = 500
    share: float = 0.6


@cache
def measured() -> Mapping[tuple[str, int], float]:
    """Name and n -> value."""
    return {(row.name, row.n): row.value for row in rows() if row.bench == "capacity"}


def sizes() -> list[int]:
    return sorted({n for name, n in measured() if name == "capacity.create.api_cpu"})


def in_burst(operation: str, n: int | None = None) -> Cost:
    """What an operation took among many of its kind, in a database with n resources; None: with the most."""
    n = sizes()[-1] if n is None else n

    def value(what: str) -> float:
        return max(0.0, measured()[f"capacity.{operation}.{what}", n])

    api_ms, worker_ms, server_ms = value("api_cpu"), value("worker_cpu"), value("server_cpu")
    return Cost(api_ms / 1000, worker_ms / 1000, server_ms / 1000, value("transactions"), value("wal"))


@cache
def cost(operation: str) -> Cost:
    """What an operation takes that comes by itself: more than in a burst, as the lower of the mixed loads showed."""
    each, more = in_burst(operation), alone()
    return replace(
        each, api_s=each.api_s * more.api, worker_s=each.worker_s * more.worker, server_s=each.server_s * more.server
    )


def idle() -> Cost:
    """What a service with one worker takes in a second with nothing to do."""
    return in_burst("idle", 0)


@dataclass(frozen=True, slots=True)
class Load:
    """What a partition has to do.

    Attributes:
        resources: Resources at rest, in stacks of `PER_STACK`.
        requests_s: Requests a second.
        interval_s: Seconds between two looks at a stack.
        mix: Operation -> its share of the requests.
    """

    resources: float
    requests_s: float
    interval_s: float = INTERVAL_S
    mix: Mapping[str, float] = field(default_factory=lambda: MIX)

    @classmethod
    def of(cls, resources: float, interval_s: float = INTERVAL_S) -> "Load":
        return cls(resources, resources * REQUESTS_PER_RESOURCE, interval_s)

    def rates(self) -> dict[str, float]:
        """Operation -> how many a second."""
        looks = {LOOK: self.resources / PER_STACK / self.interval_s}
        return looks | {name: self.requests_s * share for name, share in self.mix.items()}


@dataclass(frozen=True, slots=True)
class Demand:
    """What a load takes: cores of each kind, transactions and bytes of WAL a second."""

    api: float
    worker: float
    server: float
    transactions: float
    wal: float


def demand(load: Load, of: Callable[[str], Cost] = cost) -> Demand:
    costs = [(rate, of(operation)) for operation, rate in load.rates().items()] + [(1.0, idle())]

    def total(of: Callable[[Cost], float]) -> float:
        return sum(rate * of(each) for rate, each in costs)

    return Demand(
        total(lambda each: each.api_s),
        total(lambda each: each.worker_s),
        total(lambda each: each.server_s),
        total(lambda each: each.transactions),
        total(lambda each: each.wal),
    )


def mixed(rate: float) -> tuple[Load, Demand]:
    """One of the loads of several operations: what it was, and what it took."""
    n, start = sizes()[-1], f"capacity.load_{rate:g}."
    of = {name.removeprefix(start): value for (name, at), value in measured().items() if at == n}
    counts = {name: of[f"count.{name}"] for name in MIX}
    total, seconds = sum(counts.values()), of["seconds"]
    cores = (of[f"{what}_cpu"] / 1000 / seconds for what in ("api", "worker", "server"))
    api, worker, server = cores
    load = Load(n, total / seconds, mix={name: count / total for name, count in counts.items()})
    return load, Demand(api, worker, server, of["transactions"] / seconds, of["wal"] / seconds)


@cache
def alone() -> Demand:
    """How many times as much operations take that come by themselves, by the lower one of the mixed loads."""
    load, took = mixed(min(RATES))
    said, always = demand(load, in_burst), idle()
    return Demand(
        (took.api - always.api_s) / (said.api - always.api_s),
        (took.worker - always.worker_s) / (said.worker - always.worker_s),
        (took.server - always.server_s) / (said.server - always.server_s),
        took.transactions / said.transactions,
        took.wal / said.wal,
    )


def connections_of_process() -> float:
    """Connections that one more worker takes."""
    found = {n: value for (name, n), value in measured().items() if name == "drain.durable.workers_8.connections"}
    n = next(iter(found))
    return (found[n] - measured()["drain.durable.workers_1.connections", n]) / 7


def used(load: Load, machine: Machine) -> dict[str, float]:
    """Share of each thing of the server that a load uses.

    A sync takes all transactions that wait for it. The share of the log is that of one sync for each transaction: the
    most it can be, which only fast disks need not fear.
    """
    takes = demand(load)
    processes = (math.ceil(cores / machine.speed / machine.share) for cores in (takes.api, takes.worker))
    return {
        "cores of the server": takes.server / machine.speed / machine.cores,
        "bytes of WAL": takes.wal / machine.wal_bytes_s,
        "connections": sum(processes) * connections_of_process() / machine.connections,
        "one sync for each transaction": takes.transactions * machine.sync_s,
    }


SOFT = frozenset({"one sync for each transaction"})
"""What is not a limit: transactions that wait share a sync."""


def limit(machine: Machine, of: Callable[[float], Load] = Load.of) -> tuple[float, str]:
    """Return how many resources fit with the planned share of the server, and what is used up then."""
    low, high = 1.0, 1e9
    for _ in range(60):
        middle = (low + high) / 2
        if max(_hard(of(middle), machine).values()) > machine.share:
            high = middle
        else:
            low = middle
    full = _hard(of(low), machine)
    return low, max(full, key=lambda name: full[name])


def _hard(load: Load, machine: Machine) -> dict[str, float]:
    return {name: share for name, share in used(load, machine).items() if name not in SOFT}


class Partition:
    """One database with its API processes and workers, in a simulation.

    Attributes:
        answered: When each request was answered, what it was for, and how long it took.
        refused: When requests came while the database was away; each is sent again some seconds later.
    """

    def __init__(self, timeline: Timeline, machine: Machine, load: Load) -> None:
        takes = demand(load)
        speed = machine.speed
        self._timeline, self._load = timeline, load
        # As many API processes and workers as keep to the planned share, too: they are easy to add.
        self.api = Cores(timeline, max(1, math.ceil(takes.api / speed / machine.share)))
        self.worker = Cores(timeline, max(1, math.ceil(takes.worker / speed / machine.share)))
        self.server = Cores(timeline, machine.cores)
        self.log = Log(timeline, machine.sync_s)
        self._costs = {name: _scaled(cost(name), 1 / speed) for name in (LOOK, *MIX)}
        self.answered: list[tuple[float, str, float]] = []
        self.refused: list[float] = []
        self.is_away = False
        self.owed = 0
        self._looking = 0

    def start(self, requests_s: float | None = None) -> None:
        """Let users and looks begin."""
        rate = self._load.requests_s if requests_s is None else requests_s
        names, shares = [*self._load.mix], list(accumulate(self._load.mix.values()))
        random = self._timeline.random

        def arrive() -> None:
            self._timeline.after(random.expovariate(rate), arrive)
            self.request(random.choices(names, cum_weights=shares)[0])

        def due() -> None:
            self._timeline.after(ROUND / self._load.rates()[LOOK], due)
            self.owed += ROUND
            self.look()

        self._timeline.after(random.expovariate(rate), arrive)
        self._timeline.after(random.random() * ROUND / self._load.rates()[LOOK], due)

    def look(self) -> None:
        """Begin the looks that are due, as many at a time as there are workers."""
        each = self._costs[LOOK]
        while self.owed >= ROUND and self._looking < self.worker.count and not self.is_away:
            self.owed -= ROUND
            self._looking += 1
            parts = max(1, round(ROUND * each.transactions / PARTS))
            work = self._work(each, ROUND, parts, ROUND * each.transactions > 0.5)
            visit(work, self._looked)

    def _looked(self) -> None:
        self._looking -= 1
        self.look()

    def request(self, operation: str, then: Act = lambda: None) -> None:
        """Take a request; `then` is what follows once workers have done what it asks for."""
        began, each = self._timeline.now, self._costs[operation]
        if self.is_away:
            self.refused.append(began)
            again = partial(self.request, operation, then)
            self._timeline.after(AGAIN_S * (0.5 + self._timeline.random.random()), again)
            return
        writes: list[Visit] = [] if operation in READS else [self.log.commit]
        stops: list[Visit] = [
            partial(self.api.serve, each.api_s / 2),
            partial(self.server.serve, each.server_s * each.in_request),
            *writes,
            partial(self.api.serve, each.api_s / 2),
        ]

        def answered() -> None:
            self.answered.append((self._timeline.now, operation, self._timeline.now - began))
            behind = round(each.transactions) - 1
            if behind > 0:
                rest = replace(each, server_s=each.server_s * (1 - each.in_request))
                visit(self._work(rest, 1, behind, True), then)
            else:
                then()

        visit(stops, answered)

    def _work(self, each: Cost, many: int, parts: int, writes: bool) -> list[Visit]:
        """Return the stops of workers: in so many transactions, one after the other."""
        stops: list[Visit] = [
            partial(self.worker.serve, each.worker_s * many / parts),
            partial(self.server.serve, each.server_s * many / parts),
        ]
        return [*stops, self.log.commit] * parts if writes else stops * parts


PARTS = 10
"""Transactions of looks that the simulation takes for one."""
AGAIN_S = 10.0
"""Mean time after which a refused request is sent again."""


def _scaled(each: Cost, by: float) -> Cost:
    return replace(each, api_s=each.api_s * by, worker_s=each.worker_s * by, server_s=each.server_s * by)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a simulation of one partition gave: cores of each kind that were busy, the share of time in which the log
    was synced, transactions a second and for each sync, and how long it took to show a stack."""

    api: float
    worker: float
    server: float
    log: float
    transactions: float
    together: float
    p50_ms: float
    p99_ms: float


def played(load: Load, machine: Machine, seconds: float, seed: int = 1) -> Seen:
    """Play one partition."""
    timeline = Timeline(seed)
    one = Partition(timeline, machine, load)
    one.start()
    timeline.run(seconds)
    api, worker, server, log = (each.busy_s / seconds for each in (one.api, one.worker, one.server, one.log))
    together = one.log.transactions / max(1, one.log.syncs)
    # The first fifth does not count: nothing waited when it began.
    return Seen(
        api, worker, server, log, one.log.transactions / seconds, together, *shown_ms(one, seconds / 5, seconds)
    )


def shown_ms(one: Partition, since: float, until: float) -> tuple[float, float]:
    """Median and 99th percentile of the time to show a stack, in milliseconds."""
    times = sorted(took for at, operation, took in one.answered if operation == "show" and since <= at < until)
    if not times:
        return math.nan, math.nan
    return times[len(times) // 2] * 1000, times[min(len(times) - 1, int(len(times) * 0.99))] * 1000
