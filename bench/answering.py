"""How soon the API answers about a large stack, over HTTP on the loopback address."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx

from bench.databases import database_url, kind_of
from bench.engine import Engine
from bench.figures import Figure, quantiles
from bench.shapes import SHAPES
from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings, run, server
from homeostat.clock import AgreedClock, Entropy
from homeostat.store.stacks import stacks, views

PROJECT = "bench"
REQUESTS = 200
SHOWN = 300
"""Resources of the stack that is shown whole."""


def answers(n: int, database: str) -> list[Figure]:
    """Reads of a group of n members and around it, and updates being accepted; no worker runs meanwhile."""
    with database_url(database) as url, contextlib.closing(Engine(url)) as engine:
        large = engine.stack_service.create(PROJECT, None, "large", SHAPES["group"].request(n))
        engine.settle(large)
        small = engine.stack_service.create(PROJECT, None, "small", SHAPES["independent"].request(SHOWN))
        engine.settle(small)
        with engine.db.read() as tx:
            row = stacks.get(tx, large)
            children = views.descendants(tx, row, 1) if row is not None else []
        (group,) = children
        with _serving(engine) as http:
            return _measured(http, engine, n, f"large/{large}", f"{group.name}/{group.id}", f"small/{small}")


def _measured(http: httpx.Client, engine: Engine, n: int, large: str, group: str, small: str) -> list[Figure]:
    database = kind_of(engine.db)
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
    body = {"template": SHAPES["group"].changed(n).template}
    figures = []
    for name, path in reads.items():
        figures += _request(http, name, "GET", path, n, database)
    figures += _request(http, f"show_stack_of_{SHOWN}", "GET", f"stacks/{small}", SHOWN, database)
    figures += _request(http, f"list_resources_of_{SHOWN}", "GET", f"stacks/{small}/resources", SHOWN, database)
    return figures + _request(http, "accept_update", "PUT", f"stacks/{large}", n, database, body)


def _request(
    http: httpx.Client, name: str, method: str, path: str, n: int, database: str, body: object = None
) -> list[Figure]:
    """Many requests, one after the other. Fails: HTTPStatusError."""
    seconds, cpu = [], time.process_time()
    for _ in range(REQUESTS):
        started = time.perf_counter()
        http.request(method, path, json=body).raise_for_status()
        seconds.append(time.perf_counter() - started)
    cpu_s = (time.process_time() - cpu) / REQUESTS
    about = "of the client and the server together"
    return [
        *quantiles(f"api.{name}", seconds, n, database),
        Figure(f"api.{name}.cpu", cpu_s * 1000, "CPU ms", n, database, about),
    ]


@contextlib.contextmanager
def _serving(engine: Engine) -> Iterator[httpx.Client]:
    listening = socket.create_server(("127.0.0.1", 0))
    one = server(engine.db, AgreedClock(engine.db.agreed_now), Entropy(), NoAccess(), ApiSettings())
    thread = threading.Thread(target=run, args=(one, listening), name="api")
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/{PROJECT}/"
        with httpx.Client(base_url=url, timeout=600.0) as http:
            yield http
    finally:
        one.should_exit = True
        thread.join()
        listening.close()
