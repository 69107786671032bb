"""How soon the API answers about a large stack, over HTTP on the loopback address, and with how much CPU time."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import httpx

from bench.cpu import cpu_s_of
from bench.databases import database_url
from bench.engine import PROJECT, Engine
from bench.figures import Figure, quantiles
from bench.serving import pids_of, serving, url_of
from bench.shapes import SHAPES
from homeostat.services.quotas import Quotas
from homeostat.store.stacks import stacks, views

REQUESTS = 100
SHOWN = 300
"""Resources of the stack that is shown whole; it has two events of each."""


def answers(n: int, database: str) -> Iterator[Figure]:
    """Read a group of n members and around it, and let updates be accepted."""
    with database_url(database) as url:
        large, group, small = _filled(url, n)
        reads = {
            "list_stacks": "stacks?limit=20",
            "show_stack": f"stacks/{large}",
            "show_group_stack": f"stacks/{group}",
            "list_resources": f"stacks/{large}/resources",
            "show_group": f"stacks/{large}/resources/group",
            "show_member": f"stacks/{group}/resources/{n // 2}",
            "list_events": f"stacks/{group}/events?limit=100",
            "explain": f"stacks/{large}/explain",
        }
        parts = {"show_stack": "", "list_resources": "/resources", "list_events": f"/events?limit={2 * SHOWN}"}
        with _client(url) as asked:
            for name, path in reads.items():
                yield from asked(name, "GET", path, n, database)
            for name, below in parts.items():
                yield from asked(f"{name}_of_{SHOWN}", "GET", f"stacks/{small}{below}", SHOWN, database)
            body = {"template": SHAPES["group"].changed(n).template}
            yield from asked("accept_update", "PUT", f"stacks/{large}", n, database, body)


def lists(n: int, database: str) -> Iterator[Figure]:
    """List n stacks, and show one of them."""
    with database_url(database) as url:
        with contextlib.closing(Engine(url, Quotas(stacks_max=n))) as engine:
            for number in range(n):
                last = engine.stack_service.create(PROJECT, None, f"s{number}", SHAPES["independent"].request(1))
            engine.settle(last)
        with _client(url) as asked:
            yield from asked("list_all_stacks", "GET", f"stacks?limit={n}", n, database)
            yield from asked("show_tiny_stack", "GET", f"stacks/s{n - 1}/{last}", n, database)


def _filled(url: str, n: int) -> tuple[str, str, str]:
    """Return the addresses of a stack with a group of n, of the group's stack, and of a stack of `SHOWN`."""
    with contextlib.closing(Engine(url)) as engine:
        made = engine.stack_service.create(PROJECT, None, "large", SHAPES["group"].request(n))
        engine.settle(made)
        small = engine.stack_service.create(PROJECT, None, "small", SHAPES["independent"].request(SHOWN))
        engine.settle(small)
        with engine.db.read() as tx:
            row = stacks.get(tx, made)
            (group,) = views.descendants(tx, row, 1) if row is not None else []
    return f"large/{made}", f"{group.name}/{group.id}", f"small/{small}"


class _Asked:
    """Sends many alike requests to a service, one after the other."""

    def __init__(self, http: httpx.Client, api: int) -> None:
        self._http, self._api = http, api

    def __call__(self, name: str, method: str, path: str, n: int, database: str, body: Any = None) -> Iterator[Figure]:
        self._http.request(method, path, json=body).raise_for_status()
        seconds, before = [], cpu_s_of(self._api)
        for _ in range(REQUESTS):
            started = time.perf_counter()
            self._http.request(method, path, json=body).raise_for_status()
            seconds.append(time.perf_counter() - started)
        cpu_ms = (cpu_s_of(self._api) - before) / REQUESTS * 1000
        yield from quantiles(f"api.{name}", seconds, n, database)
        yield Figure(f"api.{name}.cpu", cpu_ms, "CPU ms", n, database, "of the API process")


@contextlib.contextmanager
def _client(url: str) -> Iterator[_Asked]:
    with (
        serving(url, flags=("--resources-max", "2000000")) as state,
        httpx.Client(base_url=f"{url_of(state)}/", timeout=600.0, follow_redirects=True) as http,
    ):
        yield _Asked(http, pids_of(state)["api"])
