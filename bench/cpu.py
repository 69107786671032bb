"""CPU time and memory of processes: of this machine's, and of the server of a database."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sqlalchemy import text

from homeostat.store.database import Database

TICKS = os.sysconf("SC_CLK_TCK")
PIDS = text("SELECT pid FROM pg_stat_activity WHERE pid != pg_backend_pid()")
SESSIONS = text("SELECT pid FROM pg_stat_activity WHERE application_name = 'homeostat' AND pid != pg_backend_pid()")


def cpu_s_of(pid: int) -> float:
    """Return the CPU time of a process so far, with its threads that have ended; 0 for a process that has ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) makes it: to the nanosecond
    return 0.0


def cpu_s(pids: Iterable[int]) -> float:
    return sum(map(cpu_s_of, pids))


def spent_s(pids: Mapping[str, int], db: Database, act: Callable[[], object]) -> dict[str, float]:
    """Return the CPU time of some processes during an act, by name, with that of the `database` and of `all`."""
    before, server_s = {name: cpu_s_of(pid) for name, pid in pids.items()}, whole_server_cpu_s(db)
    act()
    spent = {name: cpu_s_of(pid) - before[name] for name, pid in pids.items()}
    spent["database"] = whole_server_cpu_s(db) - server_s
    return {**spent, "all": sum(spent.values())}


def sessions_cpu_s(db: Database) -> float:
    """Return the CPU time of the server's sessions so far; they live as long as the connections of the workers."""
    with db.read() as tx:
        return cpu_s(tx.execute(SESSIONS).scalars())


def whole_server_cpu_s(db: Database) -> float:
    """Return the CPU time of the database server so far, also of sessions that have ended; 0 for SQLite."""
    if db.is_sqlite:
        return 0.0
    with db.read() as tx:
        if db.engine.dialect.name == "mysql":
            return cpu_s_of(int(Path(tx.execute(text("SELECT @@pid_file")).scalar_one()).read_text()))
        own = int(tx.execute(text("SELECT pg_backend_pid()")).scalar_one())
        live_s = cpu_s([own, *tx.execute(PIDS).scalars()])
    ended = _stat(int(_stat(own)[1]))[13:15]
    return live_s + sum(map(int, ended)) / TICKS


def memory_mib(pid: int, what: str = "VmRSS") -> float:
    """Return the memory of a process: `VmRSS` — now; `VmHWM` — the most so far, without what started it."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{what}:"))) / 1024


def is_running(pid: int) -> bool:
    """Return whether a thread of a process runs, or waits for a core or a disk."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return any(task.read_text().rpartition(")")[2].split()[0] in "RD" for task in tasks)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name: state, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
