"""A rollout of metadata to the members of a large group: what its steps cost, and reports and reads meanwhile."""

import itertools
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import func, select

from bench.cpu import whole_server_cpu_s
from bench.databases import Statements, database_url, opened
from bench.engine import PROJECT
from bench.figures import Figure, quantiles
from bench.shapes import VERSION, Template
from bench.signalled import Signalled, no_scaling
from homeostat.builtin.group_metadata import VirtualLocation, instance_metadata
from homeostat.builtin.signals import Signals
from homeostat.services.pipeline.request import StackRequest
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.stacks import rollouts

STEPS = ("1", "1%", "5%", "20%", "100%")
READ_IN = "20%"
"""The step during which metadata are read."""
REPORTERS = 2
"""Processes that take reports, with as many threads each."""
THREADS = 8
READS = 2000
WARM_S = 0.5
"""Seconds in which the processes that report build their statements, before metadata are read."""
READ_RATE = 500.0
"""Metadata read a second: each of 100,000 members every 200 seconds."""
GENTLE_RATE = 1000.0
"""Reports a second while metadata are read: half of what has to be taken, so that a core is free for the readers."""


def template(n: int, value: str) -> Template:
    member = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}
    group = {"count": n, "resource_def": member, "metadata_update_pattern": "canary"}
    condition = {"handle": {"get_resource": "handle"}, "timeout": 40_000}
    resources: Template = {
        "group": {"type": "OS::Heat::ResourceGroup", "metadata": {"v": value}, "properties": group},
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {"type": "OS::Heat::WaitCondition", "properties": condition, "depends_on": ["group"]},
    }
    return {"heat_template_version": VERSION, "resources": resources}


class Rolling(Signalled):
    """One stack with a group at rest, whose metadata is about to change. made — the template of a size and a value, or
    another one, of which another value is to be rolled out."""

    def __init__(self, url: str, n: int, made: Callable[[int, str], Template] = template) -> None:
        super().__init__(url, made(n, "1"), resources_max=10 * n)
        self.signal(None)
        self.rest()
        self.stack_service.update(self.id, StackRequest(made(n, "2")))
        self.rest()
        with self.db.read() as tx:
            (self.key,) = rollouts.of_stack(tx, self.id)

    def waiting(self) -> list[str]:
        """Instance ids of the members that have not reported."""
        table = schema.active_metadata_updates
        with self.db.read() as tx:
            return list(tx.execute(select(table.c.instance_id).where(table.c.status == "")).scalars())

    def go_on(self) -> int:
        """Begin the next step; return how many members it has."""
        before = self._active()
        while True:
            self.engine.rollouts.advance(self.key)
            with self.db.read() as tx:
                rollout = rollouts.of_group(tx, self.key)
            if rollout is None or rollout.active >= rollout.target:
                return self._active() - before

    def conclude(self) -> None:
        """End the rollout, all of whose members have reported. Fails: RuntimeError unless it succeeds."""
        self.engine.rollouts.advance(self.key)
        self.rest()
        with self.db.read() as tx:
            if rollouts.of_group(tx, self.key) is not None:
                raise RuntimeError("the rollout has not ended")

    def _active(self) -> int:
        with self.db.read() as tx:
            return int(tx.execute(select(func.count()).select_from(schema.active_metadata_updates)).scalar_one())


@dataclass(frozen=True, slots=True)
class Took:
    """What one process measured: each — seconds of each; seconds — the whole of it; cpu_s — its CPU time; statements —
    sent to the database."""

    each: list[float]
    seconds: float
    cpu_s: float
    statements: int


def reports(url: str, handle: str, members: Sequence[str], rate: float = math.inf) -> Took:
    """Let members report, several at once. rate — at most so many a second, at even distances; else as fast as it goes.

    A report that begins late, since those before it took long, counts from when it should have begun.
    """
    db = opened(url)
    signals = Signals(db, no_scaling, lambda _: None)  # the steps are measured apart

    def report(number: int, member: str) -> float:
        before = time.perf_counter()
        if rate < math.inf:
            planned = began + number / rate
            time.sleep(max(0.0, planned - before))
            before = planned
        signals.native(PROJECT, "signal_handle", handle, {"status": "SUCCESS", "data": member})
        return time.perf_counter() - before

    sent = Statements(db)
    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(THREADS) as pool:
        took = list(pool.map(report, itertools.count(), members))
    spent = Took(took, time.perf_counter() - began, time.process_time() - cpu, sent.count)
    db.close()
    return spent


def reads(db: Database, stack_id: str, members: Sequence[str]) -> Took:
    """Read the metadata of members at even distances; one that begins late counts from when it should have begun."""
    sent, took = Statements(db), []
    began, cpu = time.perf_counter(), time.process_time()
    for number in range(READS):
        before = began + number / READ_RATE
        time.sleep(max(0.0, before - time.perf_counter()))
        with db.single_read() as tx:
            if instance_metadata(tx, stack_id, VirtualLocation("group", members[number % len(members)])) is None:
                raise RuntimeError("a member has no metadata")
        took.append(time.perf_counter() - before)
    return Took(took, time.perf_counter() - began, time.process_time() - cpu, sent.count)


def rolling(n: int, database: str) -> Iterator[Figure]:
    """A canary over n members, all of whom report success."""
    with database_url(database) as url, _reporters() as pool:
        run = Rolling(url, n)
        took: list[Took] = []
        server_s = 0.0
        for step in STEPS:
            began, cpu = time.perf_counter(), time.process_time()
            members = run.go_on()
            spent, cpu_s = time.perf_counter() - began, time.process_time() - cpu
            about = f"{members} members, {cpu_s / max(members, 1) * 1000:.3g} CPU ms each"
            yield Figure(f"rollout.step_{step}.seconds", spent, "s", n, database, about)
            waiting, before_s = run.waiting(), whole_server_cpu_s(run.db)
            rate = GENTLE_RATE / REPORTERS if step == READ_IN else math.inf
            parts: list[Future[Took]] = [
                pool.submit(reports, url, run.handle, waiting[place::REPORTERS], rate) for place in range(REPORTERS)
            ]
            if step == READ_IN:
                yield from _reading(run, n, database, waiting)
            done = [part.result() for part in parts]
            if step == STEPS[-1]:
                took, server_s = done, whole_server_cpu_s(run.db) - before_s
            if run.waiting():
                raise RuntimeError(f"{len(run.waiting())} reports were lost")
        yield from _reported(took, server_s, n, database)
        run.conclude()
        run.close()


def _reported(took: Sequence[Took], server_s: float, n: int, database: str) -> Iterator[Figure]:
    """What the reports of the last step took, in all of whose time members report as fast as it goes."""
    name = "rollout.reports"
    latencies = [each for part in took for each in part.each]
    rate = len(latencies) / max(part.seconds for part in took)
    cpu_s = sum(part.cpu_s for part in took)
    statements = sum(part.statements for part in took) / len(latencies)
    yield Figure(f"{name}.rate", rate, "reports/s", n, database, f"in {REPORTERS} processes of {THREADS} threads each")
    yield from quantiles(name, latencies, n, database)
    yield Figure(f"{name}.cpu", cpu_s / len(latencies) * 1000, "CPU ms/report", n, database)
    yield Figure(f"{name}.server_cpu", server_s / len(latencies) * 1000, "CPU ms/report", n, database)
    by_cpu = 2 * len(latencies) / (cpu_s + server_s)
    yield Figure(f"{name}.by_cpu", by_cpu, "reports/s", n, database, "what two cores could do by these CPU times")
    yield Figure(f"{name}.statements", statements, "statements/report", n, database)


def _reading(run: Rolling, n: int, database: str, members: Sequence[str]) -> Iterator[Figure]:
    time.sleep(WARM_S)
    took = reads(run.db, run.id, members)
    about = f"{READ_RATE:,.0f} a second, while {GENTLE_RATE:,.0f} members report a second; "
    about += f"{took.statements / READS:.3g} statements each"
    yield from quantiles("rollout.read", took.each, n, database, about)


def _reporters() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(REPORTERS, mp_context=multiprocessing.get_context("spawn"))
