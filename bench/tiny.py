"""Stacks of one resource: what the creation of one takes all processes, and how many statements and transactions."""

import contextlib
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx

from bench.cpu import spent_s
from bench.databases import database_url, opened
from bench.engine import PROJECT, Engine
from bench.figures import Figure
from bench.processes import wait_for_rest
from bench.serving import pids_of, serving, url_of
from bench.shapes import SHAPES

CLIENTS = 8
WARM = 40
"""Stacks before those that count."""
SETTLED_S = 1.0
TINY = SHAPES["independent"].request(1)


def tiny(n: int, database: str) -> Iterator[Figure]:
    """Create n stacks, first with one worker, then with four."""
    all_ms = []
    for workers in (1, 4):
        with (
            database_url(database) as url,
            contextlib.closing(opened(url)) as db,
            serving(url, workers=workers) as state,
            httpx.Client(base_url=f"{url_of(state)}/", timeout=60.0) as http,
            ThreadPoolExecutor(CLIENTS) as pool,
        ):
            numbers = itertools.count()

            def create(_: int, http: httpx.Client = http, numbers: Iterator[int] = numbers) -> None:
                body = {"stack_name": f"s{next(numbers)}", "template": TINY.template}
                http.post("stacks", json=body).raise_for_status()

            def many(count: int, pool: ThreadPoolExecutor = pool) -> None:
                list(pool.map(create, range(count)))
                wait_for_rest(db)
                time.sleep(SETTLED_S)

            many(WARM)
            spent = spent_s(pids_of(state), db, partial(many, n))
        parts = {name.partition("-")[0]: 0.0 for name in spent}
        for name, seconds in spent.items():
            parts[name.partition("-")[0]] += seconds / n * 1000
        about = f"{CLIENTS} clients, {workers} worker processes"
        for name, ms in parts.items():
            yield Figure(f"tiny.workers_{workers}.{name}.cpu", ms, "CPU ms/stack", n, database, about)
        all_ms.append(parts["all"])
    yield Figure("tiny.workers_4.to_one", all_ms[1] / all_ms[0], "ratio", n, database)
    yield from counts(database)


def counts(database: str) -> Iterator[Figure]:
    """Count what is sent to the database in one process, until no pass is due."""
    with database_url(database) as url, contextlib.closing(Engine(url)) as engine:
        for name in ("warm", "counted"):
            sent = engine.statements
            statements, transactions = sent.count, sent.transactions
            engine.stack_service.create(PROJECT, None, name, TINY)
            while engine.passes():
                pass
    yield Figure("tiny.statements", sent.count - statements, "statements", 1, database)
    yield Figure("tiny.transactions", sent.transactions - transactions, "transactions", 1, database)
