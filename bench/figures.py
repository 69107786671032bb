"""What a benchmark gives: figures, each one number with a name, and how they are shown and compared."""

import json
import math
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. n — how many resources it is about; database — `sqlite`, `postgresql` or `mariadb`; about — what
    else there is to know."""

    name: str
    value: float
    unit: str
    n: int
    database: str = "sqlite"
    about: str = ""

    def line(self) -> str:
        each = {**asdict(self), "value": float(f"{self.value:.6g}")}
        return json.dumps({name: value for name, value in each.items() if value != ""})


@dataclass(frozen=True, slots=True)
class Measured:
    """One operation on one stack. seconds — wall clock; cpu_s — of the measuring process; queued_s — how long its
    thread was ready to run and others had the cores; peak_mib — high water mark of its memory so far; statements — sent
    to the database; rows_bytes — size of the database after it."""

    operation: str
    shape: str
    n: int
    database: str
    seconds: float
    cpu_s: float
    queued_s: float
    peak_mib: float
    statements: int
    rows_bytes: int

    def figures(self) -> list[Figure]:
        name = f"{self.operation}.{self.shape}"

        def figure(what: str, value: float, unit: str) -> Figure:
            return Figure(f"{name}.{what}", value, unit, self.n, self.database)

        return [
            figure("seconds", self.seconds, "s"),
            figure("rate", self.n / self.seconds, "resources/s"),
            figure("rate_unhindered", self.n / max(self.seconds - self.queued_s, self.cpu_s), "resources/s"),
            figure("cpu", self.cpu_s / self.n * 1000, "CPU ms/resource"),
            figure("cpu_seconds", self.cpu_s, "CPU s"),
            figure("peak_memory", self.peak_mib, "MiB"),
            figure("statements", self.statements, "statements"),
            figure("database", self.rows_bytes / self.n, "bytes/resource"),
        ]


def growth(measured: Iterable[Measured]) -> list[Figure]:
    """Exponent of the growth from the smallest size of at least 10,000 to the largest: 1 is linear.

    That of CPU time disregards the neighbours on a busy machine.
    """
    alike: dict[tuple[str, str, str], list[Measured]] = {}
    for each in measured:
        alike.setdefault((each.operation, each.shape, each.database), []).append(each)
    figures = []
    for (operation, shape, database), some in alike.items():
        sizes = sorted((each for each in some if each.n >= 10_000), key=lambda each: each.n)
        if len(sizes) < 2:
            continue
        small, large = sizes[0], sizes[-1]
        ratio = math.log(large.n / small.n)
        about = f"from {small.n} to {large.n}"
        for what, before, after in (
            ("growth", small.seconds, large.seconds),
            ("growth_cpu", small.cpu_s, large.cpu_s),
        ):
            name = f"{operation}.{shape}.{what}"
            figures.append(Figure(name, math.log(after / before) / ratio, "exponent", large.n, database, about))
    return figures


def quantiles(name: str, seconds: list[float], n: int, database: str, about: str = "") -> list[Figure]:
    """Median and 99th percentile, in milliseconds."""
    ordered = sorted(seconds)
    found = {"p50": ordered[len(ordered) // 2], "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]}
    return [Figure(f"{name}.{each}", value * 1000, "ms", n, database, about) for each, value in found.items()]


def queued_s() -> float:
    """How long this thread has been ready to run while others had the cores; 0 where the system does not know."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def machine() -> dict[str, Any]:
    """What it was measured on."""
    return {
        "machine": {
            "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
            "cores": _cores(),
            "memory_gib": round(int((_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / 2**20, 1),
            "system": platform.system(),
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
            **{name: version(name) for name in ("SQLAlchemy", "psycopg", "orjson", "taskflow")},
        }
    }


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0))


def load() -> float:
    """How many processes wanted to run in the last minute: the neighbours of the measurement."""
    return float(Path("/proc/loadavg").read_text().split()[0])


def _field(path: str, name: str) -> str:
    """Value of `name : value` in a file of /proc; "" when there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def beside_postgresql(measured: Sequence[Measured]) -> Iterator[Figure]:
    """How fast MariaDB is beside PostgreSQL in the same run: 1 is as fast."""
    other = {(each.operation, each.shape, each.n): each for each in measured if each.database == "postgresql"}
    for each in measured:
        there = other.get((each.operation, each.shape, each.n))
        if each.database == "mariadb" and there is not None:
            name = f"{each.operation}.{each.shape}.to_postgresql"
            yield Figure(name, there.seconds / each.seconds, "ratio", each.n, each.database)
            yield Figure(f"{name}_cpu", there.cpu_s / each.cpu_s, "ratio", each.n, each.database)
