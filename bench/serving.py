"""The whole service, as people run it, with many clients at once and a full database."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.crowd import CrowdPlan, CrowdResult, crowd
from bench.databases import database_url
from bench.engine import PROJECT, Engine
from bench.figures import Figure, quantiles
from bench.shapes import SHAPES
from homeostat.cli.service import answers
from homeostat.cli.state_directory import State
from homeostat.clouds.local import LocalCloud

STACK = 300
"""Resources of each large stack."""
READ, CHANGED = 40, 10
"""Large stacks that the clients read, and those of them that they update."""
STACKS_MAX = 1_000_000
PATIENCE_S = 300.0
COMPLETE_S = 600.0


def crowded(n: int, database: str, clients: int, seconds: float, pause_s: float, apis: int) -> list[Figure]:
    """Clients at the API of a service whose database has n resources already. Fails: RuntimeError when something that
    was accepted is lost."""
    with database_url(database) as url:
        large, changes = _filled(url, n)
        with serving(url, apis=apis) as state:
            plan = CrowdPlan(clients, seconds, pause_s, large=large, changes=changes)
            result = crowd(url_of(state), plan)
    if result.lost:
        raise RuntimeError(f"{len(result.lost)} lost: {result.lost[:5]}")
    about = f"{clients} clients for {seconds:g} s, {apis} API processes, {pause_s:g} s between requests"
    return list(_figures(result, f"crowd_{clients}", n, database, about))


def _filled(url: str, n: int) -> tuple[tuple[str, ...], tuple[dict[str, object], ...]]:
    """Addresses of the large stacks that are read, and what some of them are updated with."""
    shape = SHAPES["independent"]
    with contextlib.closing(Engine(url)) as engine:
        addresses = []
        for number in range(-(-n // STACK)):
            stack_id = engine.stack_service.create(PROJECT, None, f"large{number}", shape.request(STACK))
            engine.settle(stack_id)
            addresses.append(f"large{number}/{stack_id}")
    chosen = addresses[:: max(1, len(addresses) // READ)][:READ]
    changed: dict[str, object] = {"template": shape.changed(STACK).template}
    return tuple(chosen), (changed,) * min(CHANGED, len(chosen))


@contextlib.contextmanager
def serving(
    database: str, apis: int = 1, workers: int = 1, cloud: str = "simulated", flags: Sequence[str] = ()
) -> Iterator[State]:
    """`homeostat serve` with a database and further flags. Fails: RuntimeError when it does not answer in time."""
    with tempfile.TemporaryDirectory(prefix="homeostat-bench-") as folder:
        arguments = ["serve", "--port", "0", "--cloud", cloud, "--apis", str(apis), "--log-level", "warning"]
        arguments += ["--workers", str(workers), "--stacks-max", str(STACKS_MAX), *flags]
        state = State(Path(folder))
        try:
            with subprocess.Popen(
                [sys.executable, "-m", "homeostat", *arguments], env=environment(folder, database)
            ) as service:
                try:
                    yield _answering(state)
                finally:
                    service.terminate()
        finally:
            if state.cloud.exists():  # its servers outlive the service
                LocalCloud(state.cloud).destroy()


def environment(folder: str, database: str) -> dict[str, str]:
    """Return the variables of a process with a state directory and a database of its own, without keys."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOMEOSTAT_")}
    own = {"STATE_DIR": folder, "DATABASE": database, "ENCRYPTION_KEYS": "none"}
    return kept | {f"HOMEOSTAT_{name}": value for name, value in own.items()}


def _answering(state: State) -> State:
    ends_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at:
        there = state.running()
        if there is not None and answers(there.url):
            return state
        time.sleep(0.1)
    raise RuntimeError("the service does not answer")


def url_of(state: State) -> str:
    """Of the API below the project. Fails: RuntimeError when no service runs."""
    there = state.running()
    if there is None:
        raise RuntimeError("no service runs")
    return f"{there.url}/v1/{PROJECT}"


def pids_of(state: State) -> dict[str, int]:
    """Return the processes of a service: `supervisor`, `api`, `worker`, or `worker-1` and so on if there are many."""
    there = state.running()
    if there is None:
        raise RuntimeError("no service runs")
    return {"supervisor": there.pid, **there.children}


def request(url: str, body: Any = None, method: str | None = None) -> Any:
    """Send a body to a URL, or ask it; return the answer, None without one."""
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(sent) as answer:
        return json.loads(answer.read() or b"null")


def wait_for_all(url: str) -> None:
    """Wait until all stacks are COMPLETE. Fails: RuntimeError when it takes too long."""
    deadline = time.monotonic() + COMPLETE_S
    while any(each["stack_status"] != "CREATE_COMPLETE" for each in request(f"{url}/stacks?limit=100000")["stacks"]):
        if time.monotonic() > deadline:
            raise RuntimeError("the stacks did not become COMPLETE")
        time.sleep(1.0)


def _figures(result: CrowdResult, name: str, n: int, database: str, about: str) -> Iterator[Figure]:
    together = [each for seconds in result.seconds.values() for each in seconds]
    yield from quantiles(f"{name}.all", together, n, database, about)
    for kind, seconds in sorted(result.seconds.items()):
        yield from quantiles(f"{name}.{kind.replace(' ', '_')}", seconds, n, database, about)
    yield Figure(f"{name}.answers", result.answers, "answers", n, database, about)
    yield Figure(f"{name}.refused", len(result.refused), "answers", n, database, "; ".join(result.refused[:3]))
    unanswered = "; ".join(result.unanswered[:3])
    yield Figure(f"{name}.unanswered", len(result.unanswered), "requests", n, database, unanswered)
    yield Figure(f"{name}.lost", len(result.lost), "writes", n, database)
