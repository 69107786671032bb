"""All benchmarks: sizes, and the packages whose code each of them measures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bench.answering import answers, lists
from bench.capacity import RELAXED, capacity, drained
from bench.changing import changing
from bench.checking import checking, recovering
from bench.crowding import crowding, felling
from bench.defining import defining
from bench.encryption import encryption
from bench.figures import Figure, Measured, beside_postgresql, growth
from bench.growing import growing
from bench.idling import local, quiet
from bench.instructions import instructions
from bench.lifecycle import best_of
from bench.processes import created_by_workers
from bench.reacting import building, latency, small_beside_large
from bench.reading import reading
from bench.rolling import rolling
from bench.rows import bare_rows, raw_transactions
from bench.serving import crowded
from bench.shapes import SHAPES
from bench.signalling import signalling
from bench.starting import memory, starting
from bench.tiny import tiny
from bench.turns import turns


def _packages(names: str) -> tuple[str, ...]:
    return tuple(f"src/homeostat/{name}" for name in names.split())


PURE = _packages("model planner templates resources kinds services/pipeline")
ENGINE = PURE + _packages("builtin clouds/simulated clouds/port.py convergence desired plugins services store clock.py")
SERVICE = ENGINE + _packages(
    "api cli composition identity message_bus.py notifications observability main.py json_pieces.py"
)
LOCAL = SERVICE + _packages("clouds/local")
OPENSTACK = ENGINE + _packages("clouds/openstack")
DASHBOARD = SERVICE + _packages("dashboard")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run: sizes — numbers of resources; repeat — runs of each, the fastest counts; databases — kinds; seconds
    — of a measurement at rest, or of the crowd; clients, pause_s — of the crowd, see `bench.crowd.CrowdPlan`."""

    sizes: list[int]
    repeat: int
    databases: Sequence[str]
    clients: int
    seconds: float
    pause_s: float

    def each(self) -> Iterator[tuple[int, str]]:
        """Yield every size on every database."""
        return ((n, database) for database in self.databases for n in self.sizes)


Run = Callable[[Wanted], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark.

    Attributes:
        what: The subject, in words.
        run: Measures.
        code: Files and folders whose code is measured.
        sizes: Numbers of resources, unless others are wanted.
        quick: The same for a look at whether it works.
        usual: Part of the table of costs.
    """

    what: str
    run: Run
    code: tuple[str, ...] = ENGINE
    sizes: tuple[int, ...] = (1_000, 10_000)
    quick: tuple[int, ...] = (100,)
    usual: bool = False


def each_size(figures: Callable[[int, str, Wanted], Iterable[Figure]]) -> Run:
    def run(wanted: Wanted) -> Iterator[Figure]:
        for n, database in wanted.each():
            yield from figures(n, database, wanted)

    return run


def per_size(figures: Callable[[int, str], Iterable[Figure]]) -> Run:
    return each_size(lambda n, database, _: figures(n, database))


def timed(figures: Callable[[int, str, float], Iterable[Figure]]) -> Run:
    return each_size(lambda n, database, wanted: figures(n, database, wanted.seconds))


def repeated(figures: Callable[[int, str, int], Iterable[Figure]]) -> Run:
    return each_size(lambda n, database, wanted: figures(n, database, wanted.repeat))


def lifecycles(shape: str) -> Run:
    def run(wanted: Wanted) -> Iterator[Figure]:
        measured: list[Measured] = []
        for n, database in wanted.each():
            for each in best_of(shape, n, wanted.repeat, database):
                measured.append(each)
                yield from each.figures()
        yield from growth(measured)
        yield from beside_postgresql(measured)

    return run


def rows(wanted: Wanted) -> Iterator[Figure]:
    """Besides the bare row traffic and the driver alone, what share of the former creating reaches in the same run."""
    for n, database in wanted.each():
        wall, cpu = min(bare_rows(n, database) for _ in range(wanted.repeat))
        created = best_of("independent", n, wanted.repeat, database)[0]
        yield Figure("bare_rows.rate", n / wall, "resources/s", n, database)
        yield Figure("bare_rows.cpu", cpu / n * 1000, "CPU ms/resource", n, database)
        yield Figure("create.independent.to_bare_rows", wall / created.seconds, "ratio", n, database)
        yield Figure("create.independent.to_bare_rows_cpu", cpu / created.cpu_s, "ratio", n, database)
        wall, cpu = min(raw_transactions(n, database) for _ in range(wanted.repeat))
        yield Figure("raw_transactions.rate", n / wall, "transactions/s", n, database)
        yield Figure("raw_transactions.cpu", cpu / n * 1000, "CPU ms/transaction", n, database)


def workers(wanted: Wanted) -> Iterator[Figure]:
    """Always on PostgreSQL; of several runs the one that was done first counts."""
    for n in wanted.sizes:
        cpu = {}
        for count in (1, 2, 4):
            runs = [created_by_workers(n, count, "independent") for _ in range(wanted.repeat)]
            best = max(runs, key=lambda figures: figures[0].value)
            cpu[count] = best[1].value
            yield from best
        yield Figure("create.independent.workers_4.to_one", cpu[4] / cpu[1], "ratio", n, "postgresql")


def counted(wanted: Wanted) -> Iterator[Figure]:
    """On SQLite."""
    for shape in ("independent", "group"):
        for n in wanted.sizes:
            yield from instructions(shape, n)


def of_one_database(wanted: Wanted) -> Iterator[Figure]:
    """Always on PostgreSQL. The smallest size is also that of the backlog which several workers create."""
    yield from capacity(wanted.sizes)
    for count in (1, 2, 4, 8):
        yield from drained(min(wanted.sizes), count)
    yield from drained(min(wanted.sizes), 2, RELAXED)


def of_the_dashboard(wanted: Wanted) -> Iterator[Figure]:
    from bench.dashboard import pages

    yield from per_size(pages)(wanted)


def openstack(part: str) -> Run:
    """Sizes are numbers of servers, each with a port and a volume; of healing the runs."""

    def run(wanted: Wanted) -> Iterator[Figure]:
        from bench import openstack

        parts: dict[str, Callable[[], Iterator[Figure]]] = {
            "making": lambda: (each for n in wanted.sizes for each in openstack.making(n, wanted.repeat)),
            "rest": lambda: openstack.resting(wanted.sizes),
            "healing": lambda: openstack.healing(wanted.repeat),
        }
        return parts[part]()

    return run


def together(n: int, database: str, wanted: Wanted) -> Iterable[Figure]:
    """A service with two API processes."""
    return crowded(n, database, wanted.clients, wanted.seconds, wanted.pause_s, 2)


def recoveries(wanted: Wanted) -> Iterator[Figure]:
    for database in wanted.databases:
        yield from recovering(database)


FLAT, QUICK_FLAT = (10_000,), (60,)
TABLE = {
    "start": Bench("CPU time of the start of each process", lambda w: starting(w.repeat), SERVICE, (1,), (1,)),
    "rows": Bench("the bare row traffic, the driver alone, and what share creating reaches", rows, sizes=(2_000,)),
    "tiny": Bench("stacks of one resource, by eight clients", per_size(tiny), SERVICE, (400,), (16,)),
    "latency": Bench("from an attribute to its dependant", per_size(latency), sizes=(200, 10_000), quick=(20,)),
    "change": Bench("a change, or none, in a flat stack", per_size(changing), SERVICE, FLAT, QUICK_FLAT),
    "show": Bench("the list of all stacks, and a tiny one", per_size(lists), SERVICE, (1_000,), (20,)),
    "api": Bench("reads and accepted updates over HTTP about a group", per_size(answers), SERVICE, (1_000,), (50,)),
    "building": Bench(
        "servers that are being built",
        each_size(lambda n, db, w: building(n, db, w.seconds)),
        sizes=FLAT,
        quick=QUICK_FLAT,
    ),
    "memory": Bench("memory of a worker before and after a large stack", per_size(memory), SERVICE, FLAT, QUICK_FLAT),
    "crowded": Bench("creating beside twenty busy processes", repeated(crowding), sizes=(3_000,)),
    "felling": Bench("the deletion of a tree of nested stacks", per_size(felling), sizes=(2_000,), quick=(20,)),
    "workers": Bench("1, 2 and 4 worker processes on PostgreSQL", workers, sizes=(4_000,), quick=(80,)),
    "quiet": Bench(
        "a worker beside quiet stacks of volumes",
        timed(quiet),
        sizes=(1_000,),
        quick=(10,),
    ),
}
RARE = {
    **{name: Bench(shape.what, lifecycles(name)) for name, shape in SHAPES.items()},
    "read": Bench(
        "reading, compiling and checking a template, and the first decisions about it",
        lambda wanted: reading(wanted.sizes, wanted.repeat),
        PURE,
    ),
    "encryption": Bench("what it costs that secrets are encrypted, or could be", repeated(encryption)),
    "instructions": Bench("independent resources and a group, counted by valgrind", counted, sizes=(300,), quick=(20,)),
    "idle": Bench(
        "what a whole service with the local cloud costs that has nothing to do",
        timed(local),
        LOCAL,
    ),
    "beside": Bench("small stacks while a large one is being created", per_size(small_beside_large)),
    "growing": Bench("stacks in a group that are deleted before they were begun", per_size(growing)),
    "turns": Bench("how long others have to wait to write", per_size(turns)),
    "crowd": Bench("many clients at once, at a service with that many resources already", each_size(together), SERVICE),
    "openstack-making": Bench(
        "servers with ports and volumes on the real OpenStack of the tests, beside a script",
        openstack("making"),
        OPENSTACK,
        (60,),
    ),
    "openstack-rest": Bench("requests to it while nothing happens", openstack("rest"), OPENSTACK, (10, 100, 1_000)),
    "openstack-healing": Bench("servers of it that are deleted by hand", openstack("healing"), OPENSTACK),
    "rollout": Bench("a canary of new metadata over the members of a group, who all report", per_size(rolling)),
    "signals": Bench("one more small signal, after many small ones and after large ones", per_size(signalling)),
    "health": Bench("a group of nodes whose status is polled every ten seconds", per_size(checking), SERVICE),
    "recovery": Bench("servers of the local cloud are killed, until they are recovered", recoveries, LOCAL),
    "definition": Bench("a canary of a new definition over a group, and its way back", per_size(defining)),
    "capacity": Bench("what PostgreSQL spends on each operation; half an hour", of_one_database, SERVICE),
    "dashboard": Bench(
        "the page of a stack of 1,000 and of a group, in Chromium", of_the_dashboard, DASHBOARD, (1_000, 100_000)
    ),
}
BENCHES = {**{name: replace(bench, usual=True) for name, bench in TABLE.items()}, **RARE}
