"""What the start of each process takes, and the memory of a worker before and after a large stack."""

import contextlib
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from bench.cpu import cpu_s, is_running, memory_mib
from bench.databases import database_url, opened
from bench.figures import Figure
from bench.processes import wait_for_rest
from bench.serving import environment, pids_of, request, serving, url_of
from bench.shapes import SHAPES

LOOK_S = 0.5
QUIET_S = 0.01
"""CPU seconds in `LOOK_S` below which a process that was started rests."""
RESTS = 4
"""Looks, one after the other, at which it did not run."""
PATIENCE_S = 600.0
REST_S = 10.0
"""Seconds after a stack's creation in which a worker may give memory back."""


def starting(repeat: int) -> Iterator[Figure]:
    """Start each process several times: CPU time until it rests; the least counts."""
    yield Figure("start.help.cpu", min(_help_s() for _ in range(repeat)), "CPU s", 1)
    for name in ("api", "worker"):
        yield Figure(f"start.{name}.cpu", min(_started_s(name) for _ in range(repeat)), "CPU s", 1)
    yield Figure("start.serve.cpu", min(_served_s() for _ in range(repeat)), "CPU s", 1, about="all of its processes")


def memory(n: int, database: str) -> Iterator[Figure]:
    """Measure a worker of a service before and after it creates a stack of n resources."""
    with (
        database_url(database) as url,
        contextlib.closing(opened(url)) as db,
        serving(url, flags=("--resources-max", "2000000")) as state,
    ):
        pids = pids_of(state)
        _rested_s(list(pids.values()))
        before = memory_mib(pids["worker"])
        yield Figure("memory.worker.rest", before, "MiB", n, database)
        request(f"{url_of(state)}/stacks", {"stack_name": "s", "template": SHAPES["independent"].request(n).template})
        wait_for_rest(db)
        time.sleep(REST_S)
        after = memory_mib(pids["worker"])
    about = f"{REST_S:.0f} s after the creation of a stack of {n}"
    yield Figure("memory.worker.after", after, "MiB", n, database, about)
    yield Figure("memory.worker.after_to_rest", after / before, "ratio", n, database, about)


def _help_s() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "homeostat", "--help"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _started_s(name: str) -> float:
    """Start one process of a service on a migrated database."""
    with database_url("sqlite") as url, tempfile.TemporaryDirectory() as folder:
        opened(url).close()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            flags = {"api": ["--fd", str(listening.fileno())], "worker": []}[name]
            command = [sys.executable, "-m", "homeostat", name, *flags]
            with _running(command, environment(folder, url), listening.fileno()) as process:
                return _rested_s([process.pid])


@contextlib.contextmanager
def _running(command: Sequence[str], variables: dict[str, str], descriptor: int) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(command, env=variables, pass_fds=(descriptor,)) as process:
        try:
            yield process
        finally:
            process.terminate()


def _served_s() -> float:
    with database_url("sqlite") as url:
        opened(url).close()
        with serving(url) as state:
            return _rested_s(list(pids_of(state).values()))


def _rested_s(pids: Sequence[int]) -> float:
    """Return the CPU time of some processes once they rest. Fails: RuntimeError when they do not.

    A process that waits for a core of a busy machine does not rest.
    """
    deadline, before, rests = time.monotonic() + PATIENCE_S, 0.0, 0
    while rests < RESTS:
        if time.monotonic() > deadline:
            raise RuntimeError("a process did not come to rest after its start")
        time.sleep(LOOK_S)
        now = cpu_s(pids)
        rests = rests + 1 if now - before < QUIET_S and not any(map(is_running, pids)) else 0
        before = now
    return before
