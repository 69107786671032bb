"""What each operation of a service costs on one PostgreSQL: CPU time of its processes and of the server, statements,
transactions that write, and bytes of WAL. The server keeps its own settings: every commit waits for the disk."""

import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import httpx
from sqlalchemy import text
from tests import postgresql

from bench.cpu import cpu_s, cpu_s_of, whole_server_cpu_s
from bench.databases import opened
from bench.figures import Figure, quantiles
from bench.load import MIX, PER_STACK, RATES
from bench.processes import PATIENCE_S, running_workers, wait_for_rest
from bench.serving import pids_of, serving, url_of
from bench.shapes import SHAPES, VERSION, Template
from homeostat.cli.state_directory import State
from homeostat.clock import Entropy
from homeostat.convergence.limits import Limits
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService
from homeostat.store.database import Database

DATABASE = "postgresql"
SAMPLE = 300
"""Stacks that each operation is measured with, where there are so many."""
REQUESTS = 600
"""Reads and signals of each kind."""
CLIENTS = 4
HANDLES = 100
"""Handles that take the signals."""
ROUNDS = 1
"""Looks at each stack at rest in which that is measured."""
LOADED_S = 60.0
"""Seconds of each of the loads of several operations."""
SEED = 1
SETTINGS = (
    "listen_addresses=",
    "shared_preload_libraries=pg_stat_statements",
    "pg_stat_statements.track_utility=off",
    "track_wal_io_timing=on",
)
DESCRIBED = f"{', '.join(SETTINGS)}; on the local disk, through a Unix socket"
RELAXED = (*SETTINGS, "synchronous_commit=off")
SENT = text("SELECT sum(calls) FROM pg_stat_statements")
WRITTEN = text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_wal_insert_lsn() - '0/0'")
SYNCED = text("SELECT wal_sync, wal_sync_time FROM pg_stat_wal")
CONNECTIONS = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'homeostat' AND datname IS NOT NULL")
FOUND = text("SELECT id FROM stack WHERE name = :name AND deleted_at IS NULL")
OPERATIONS: Mapping[str, tuple[str, str, object]] = {
    "show": ("GET", "", None),
    "list_resources": ("GET", "/resources", None),
    "list_events": ("GET", "/events?limit=100", None),
    "no_op_update": ("PATCH", "", {}),
    "delete": ("DELETE", "", None),
}
"""Operation -> method, what follows the address of the stack, and body."""
Spent = Mapping[str, float]
"""What was used so far, by name; the unit is that of `UNITS`."""
UNITS = {
    "api_cpu": ("CPU ms", 1000),
    "worker_cpu": ("CPU ms", 1000),
    "server_cpu": ("CPU ms", 1000),
    "statements": ("statements", 1),
    "transactions": ("transactions", 1),
    "wal": ("bytes", 1),
}
"""Name -> the unit, and how many of it are one of what is counted."""


@contextlib.contextmanager
def server(settings: tuple[str, ...] = SETTINGS) -> Iterator[str]:
    """A PostgreSQL whose files are on the disk. Fails: RuntimeError when there is no PostgreSQL."""
    programs = postgresql.find_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server programs: install the package 'postgresql'")
    with postgresql.running(programs, settings, Path(tempfile.gettempdir())) as url:
        yield url


@dataclass(frozen=True, slots=True)
class Subject:
    """A service that runs, and how to ask what it uses; resting — what it uses in a second in which it only looks."""

    state: State
    db: Database
    http: httpx.Client
    handles: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    resting: dict[str, float] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def spent(self) -> Spent:
        pids = pids_of(self.state)
        cpu = {f"{name}_cpu": cpu_s_of(pids[name]) for name in ("api", "worker")}
        return {**cpu, **of_server(self.db)}

    def together(self, operation: str, names: list[str]) -> None:
        """Do one thing to each of these stacks, as several clients, and wait until all of them are at rest."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(partial(self.send, operation), names))
        self.wait()

    def send(self, operation: str, name: str) -> None:
        """Send one request. Fails: HTTPStatusError unless it is accepted."""
        if operation == "create":
            self._request("POST", "stacks", {"stack_name": name, "template": _template("made")})
        elif operation == "update_of_one":
            self._request("PUT", self._path(name), {"template": _template(f"changed {next(self.numbers)}")})
        elif operation == "signal":
            number = next(self.numbers)
            signal = {"id": str(number), "status": "SUCCESS", "data": "done"}
            self._request("POST", f"{self.handles[0]}/resources/h{number % HANDLES}/signal", signal)
        else:
            method, below, body = OPERATIONS[operation]
            self._request(method, f"{self._path(name)}{below}", body)
            if operation == "delete":
                del self.paths[name]  # another one may get the name

    def add_handles(self, name: str) -> None:
        """Create the stack that takes signals from now on."""
        resources = {f"h{number}": {"type": "OS::Heat::WaitConditionHandle"} for number in range(HANDLES)}
        template = {"heat_template_version": VERSION, "resources": resources}
        self._request("POST", "stacks", {"stack_name": name, "template": template})
        self.wait()
        self.handles[:] = [self._path(name)]

    def wait(self) -> None:
        wait_for_rest(self.db)

    def _request(self, method: str, path: str, body: object) -> None:
        self.http.request(method, path, json=body).raise_for_status()

    def _path(self, name: str) -> str:
        """Return the address of a stack, below the project."""
        if name not in self.paths:
            with self.db.read() as tx:
                self.paths[name] = f"stacks/{name}/{tx.execute(FOUND, {'name': name}).scalar_one()}"
        return self.paths[name]


def _template(description: str) -> Template:
    """Return a stack of volumes, of which one is described so."""
    volume = {"type": "OS::Cinder::Volume", "properties": {"size": 1}}
    described = {"type": "OS::Cinder::Volume", "properties": {"size": 1, "description": description}}
    resources = {**{f"r{number}": volume for number in range(1, PER_STACK)}, "r0": described}
    return {"heat_template_version": VERSION, "resources": resources}


def of_server(db: Database) -> dict[str, float]:
    with db.read() as tx:
        statements = float(tx.execute(SENT).scalar_one())
        transactions, wal = tx.execute(WRITTEN).one()
    used = {"server_cpu": whole_server_cpu_s(db), "statements": statements}
    return {**used, "transactions": float(transactions), "wal": float(wal)}


def capacity(sizes: list[int]) -> Iterator[Figure]:
    """Fill one database up to each of the sizes, the smallest first, and measure every operation there."""
    with server() as url, contextlib.closing(opened(url)) as db:
        _count_statements(db)
        with serving(url) as state, httpx.Client(base_url=f"{url_of(state)}/", timeout=PATIENCE_S) as http:
            subject = Subject(state, db, http)
            empty = _at_rest(subject)
            for name, value in empty.items():
                unit, many = UNITS[name]
                yield Figure(f"capacity.idle.{name}", value * many, f"{unit}/s", 0, DATABASE, "no stack yet")
            made = 0
            for n in sorted(sizes):
                yield from _at_size(subject, made, n, empty)
                made = n
            yield from _tables(db, made)


def _count_statements(db: Database) -> None:
    with db.write() as tx:
        tx.execute(text("CREATE EXTENSION pg_stat_statements"))


def _at_size(subject: Subject, made: int, n: int, empty: Spent) -> Iterator[Figure]:
    names = [f"s{number}" for number in range(made // PER_STACK, n // PER_STACK)]
    subject.together("create", ["warm"])
    yield from _figures("create", n, len(names), _used(subject, lambda: subject.together("create", names)))
    with subject.db.read() as tx:
        yield Figure("capacity.connections", tx.execute(CONNECTIONS).scalar_one(), "connections", n, DATABASE)
    seconds = ROUNDS * Limits().look_steady_s
    looks = {name: (value - empty[name]) * seconds for name, value in _at_rest(subject).items()}
    yield from _figures("look", n, n // PER_STACK * ROUNDS, looks)
    sample = names[:SAMPLE]
    for operation in ("no_op_update", "update_of_one"):
        used = _used(subject, lambda operation=operation: subject.together(operation, sample))  # type: ignore[misc]
        yield from _figures(operation, n, len(sample), used)
    subject.add_handles(f"handles{n}")
    many = list(itertools.islice(itertools.cycle(sample), REQUESTS))
    for operation in ("show", "list_resources", "list_events", "signal"):
        used = _used(subject, lambda operation=operation: subject.together(operation, many))  # type: ignore[misc]
        yield from _figures(operation, n, len(many), used)
    for rate in RATES:
        yield from _loaded(subject, n, rate, sample)
    extra = [f"extra{number}" for number in range(SAMPLE)]
    subject.together("create", extra)
    yield from _figures("delete", n, len(extra), _used(subject, lambda: subject.together("delete", extra)))
    subject.together("delete", ["warm", f"handles{n}"])


def _loaded(subject: Subject, n: int, rate: float, sample: list[str]) -> Iterator[Figure]:
    """All operations at once, at times that do not depend on the answers; looks go on meanwhile."""
    random, due_s = Random(SEED), 0.0
    plan: list[tuple[float, str]] = []
    while (due_s := due_s + random.expovariate(rate)) < LOADED_S:
        plan.append((due_s, random.choices([*MIX], [*MIX.values()])[0]))
    spare = [f"spare{number}" for number in range(sum(operation == "delete" for _, operation in plan))]
    subject.together("create", spare)
    waiting, read_s = iter(spare), list[float]()

    def send(operation: str, name: str, due_at: float) -> None:
        subject.send(operation, name)
        if operation == "show":
            read_s.append(time.monotonic() - due_at)

    before, began = subject.spent(), time.monotonic()
    with ThreadPoolExecutor(CLIENTS * 4) as pool:
        sent = []
        for number, (due_s, operation) in enumerate(plan):
            time.sleep(max(0.0, began + due_s - time.monotonic()))
            name = {"create": f"load{number}", "delete": ""}.get(operation) or sample[number % len(sample)]
            name = next(waiting) if operation == "delete" else name
            sent.append(pool.submit(send, operation, name, began + due_s))
        for each in sent:
            each.result()
    subject.wait()
    passed_s = time.monotonic() - began
    used = {name: value - before[name] for name, value in subject.spent().items()}
    made = [f"load{number}" for number, (_, operation) in enumerate(plan) if operation == "create"]
    about = f"{len(plan)} requests in {passed_s:.1f} s, {n // PER_STACK} stacks at rest"
    name = f"capacity.load_{rate:g}"
    yield Figure(f"{name}.seconds", passed_s, "s", n, DATABASE, about)
    for operation in MIX:
        count = sum(each == operation for _, each in plan)
        yield Figure(f"{name}.count.{operation}", count, "requests", n, DATABASE, about)
    for what, value in used.items():
        unit, many = UNITS[what]
        yield Figure(f"{name}.{what}", value * many, unit, n, DATABASE, about)
    yield from quantiles(f"{name}.show", read_s, n, DATABASE, about)
    subject.together("delete", made)


def _used(subject: Subject, act: Callable[[], None]) -> Spent:
    """What is used beyond what is used at rest in the same time."""
    before, began = subject.spent(), time.monotonic()
    act()
    used, passed_s = subject.spent(), time.monotonic() - began
    return {name: used[name] - before[name] - passed_s * subject.resting.get(name, 0.0) for name in used}


def _at_rest(subject: Subject) -> Spent:
    """What is used in a second, after all stacks were looked at once: a whole number of looks at each."""
    time.sleep(Limits().look_steady_s + 5.0)
    subject.resting.clear()
    seconds = ROUNDS * Limits().look_steady_s
    used = _used(subject, lambda: time.sleep(seconds))
    subject.resting.update({name: value / seconds for name, value in used.items()})
    return dict(subject.resting)


def _figures(operation: str, n: int, count: int, used: Spent) -> Iterator[Figure]:
    for name, value in used.items():
        unit, many = UNITS[name]
        about = f"{count} of them, one API process and one worker"
        yield Figure(f"capacity.{operation}.{name}", value * many / count, f"{unit}/operation", n, DATABASE, about)


def _tables(db: Database, n: int) -> Iterator[Figure]:
    """Bytes of all tables for each row of a resource, and of the largest ones, indexes included."""
    tables = (
        "SELECT relname, pg_total_relation_size(relid) AS bytes FROM pg_catalog.pg_statio_user_tables "
        "ORDER BY bytes DESC"
    )
    with db.read() as tx:
        parts = tx.execute(text(tables)).all()
        rows = tx.execute(text("SELECT count(*) FROM resource")).scalar_one()
    about = f"{rows} rows of resources, stacks of {PER_STACK}; some of them updated twice"
    for name, value in (("all", sum(value for _, value in parts)), *parts[:6]):
        yield Figure(f"capacity.bytes.{name}", value / rows, "bytes/resource", n, DATABASE, about)


def drained(n: int, workers: int, settings: tuple[str, ...] = SETTINGS) -> list[Figure]:
    """Workers create a backlog of stacks that was accepted before they started."""
    with server(settings) as url, contextlib.closing(opened(url)) as db:
        _count_statements(db)
        stack_service = StackService(db, Entropy(), Quotas(stacks_max=n))
        shape = SHAPES["independent"]
        for number in range(n // PER_STACK):
            stack_service.create("bench", None, f"s{number}", shape.request(PER_STACK))
        with db.write() as tx:
            tx.execute(text("SELECT pg_stat_reset_shared('wal')"))
        with running_workers(url, workers) as processes:
            before, before_s, started = of_server(db), cpu_s(processes), time.perf_counter()
            wait_for_rest(db)
            seconds, workers_s = time.perf_counter() - started, cpu_s(processes) - before_s
            used = {name: value - before[name] for name, value in of_server(db).items()}
            with db.read() as tx:
                connections = tx.execute(CONNECTIONS).scalar_one()
        with db.read() as tx:  # sessions that have ended have reported all that they did
            syncs, sync_ms = tx.execute(SYNCED).one()
    name = f"drain.{'relaxed' if settings is RELAXED else 'durable'}.workers_{workers}"
    about = f"{workers} worker processes, {n // PER_STACK} stacks of {PER_STACK}"
    return [
        Figure(f"{name}.rate", n / seconds, "resources/s", n, DATABASE, about),
        Figure(f"{name}.worker_cpu", workers_s / n * 1000, "CPU ms/resource", n, DATABASE, about),
        Figure(f"{name}.server_cpu", used["server_cpu"] / n * 1000, "CPU ms/resource", n, DATABASE, about),
        Figure(f"{name}.transactions", used["transactions"] / n, "transactions/resource", n, DATABASE, about),
        Figure(f"{name}.wal", used["wal"] / n, "bytes/resource", n, DATABASE, about),
        Figure(f"{name}.syncs", syncs / used["transactions"], "syncs/transaction", n, DATABASE, about),
        Figure(f"{name}.sync", sync_ms / max(syncs, 1), "ms/sync", n, DATABASE, about),
        Figure(f"{name}.connections", connections, "connections", n, DATABASE, about),
    ]
