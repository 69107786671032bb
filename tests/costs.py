"""What tests cost: `make test-costs` runs them with this plug-in, and prints the CPU seconds of files and fixtures.

With `-p tests.costs` and HOMEOSTAT_TEST_COSTS=FILE each test and each fixture appends a line of JSON to the file:
`test` or `fixture`, `cpu_s` (with all processes below the one that runs the tests), `elapsed_s`, `memory_mb` (resident,
of that one alone, at the end). `python -m tests.costs FILE` sums them up.
"""

import argparse
import ctypes
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FILE = os.environ.get("HOMEOSTAT_TEST_COSTS", "")
FIXTURE_MIN_S = 0.02
"""Fixtures that cost less are left out."""
PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1024**2


@dataclass(slots=True)
class Costs:
    """Since `start`."""

    cpu_s: float
    elapsed_s: float

    @staticmethod
    def start() -> "Costs":
        return Costs(_cpu_s(), time.monotonic())

    def append(self, least_s: float = 0.0, **names: str) -> None:
        """Append them to the file, unless they are less than that."""
        cpu_s, elapsed_s = _cpu_s() - self.cpu_s, time.monotonic() - self.elapsed_s
        if max(cpu_s, elapsed_s) < least_s:
            return
        memory_mb = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_MB
        line = {**names, "cpu_s": round(cpu_s, 3), "elapsed_s": round(elapsed_s, 3), "memory_mb": round(memory_mb)}
        with Path(FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _cpu_s() -> float:
    """Of this process and of all below it, ended or not."""
    return time.process_time() + sum(os.times()[2:4]) + sum(_cpu_s_of(pid) for pid in _children(os.getpid()))


_ended: dict[int, float] = {}
"""CPU seconds of processes that have ended, and that nothing collects: thousands, after thousands of tests."""


def _cpu_s_of(pid: int) -> float:
    if pid in _ended:
        return _ended[pid]
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    cpu_s = sum(map(int, fields[10:14])) / _TICKS
    if state == "Z":
        _ended[pid] = cpu_s
        return cpu_s
    return cpu_s + sum(_cpu_s_of(child) for child in _children(pid))


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:
            continue


# -- the plug-in -------------------------------------------------------------------------------------------------------


def pytest_configure() -> None:
    """Keep processes that outlive their parents below this one."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    costs = Costs.start()
    try:
        return (yield)
    finally:
        costs.append(test=item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    costs = Costs.start()
    try:
        return (yield)
    finally:
        costs.append(FIXTURE_MIN_S, fixture=f"{fixturedef.argname} ({fixturedef.scope})")


# -- the summary -------------------------------------------------------------------------------------------------------


def main() -> None:
    arguments = argparse.ArgumentParser(description="Sum up what tests have cost.")
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--top", type=int, default=25, help="how many lines of each table")
    options = arguments.parse_args()
    lines = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    tests = [each for each in lines if "test" in each]
    print(f"{len(tests)} tests: {sum(each['cpu_s'] for each in tests):.0f} s of CPU time")
    _table("directories", tests, lambda each: "/".join(each["test"].split("::")[0].split("/")[:2]), options.top)
    _table("files", tests, lambda each: each["test"].split("::")[0], options.top)
    _table("tests", tests, lambda each: each["test"], options.top)
    _table("fixtures", [each for each in lines if "fixture" in each], lambda each: each["fixture"], options.top)


def _table(title: str, lines: list[Any], name_of: Callable[[Any], str], top: int) -> None:
    groups = defaultdict(list)
    for each in lines:
        groups[name_of(each)].append(each)
    print(f"\n{title:100} {'times':>6} {'CPU s':>8} {'elapsed s':>9} {'MB':>6}")
    for name, group in sorted(groups.items(), key=lambda pair: -sum(each["cpu_s"] for each in pair[1]))[:top]:
        cpu_s, elapsed_s = (sum(each[key] for each in group) for key in ("cpu_s", "elapsed_s"))
        memory_mb = max(each["memory_mb"] for each in group)
        print(f"{name[:100]:100} {len(group):6} {cpu_s:8.1f} {elapsed_s:9.1f} {memory_mb:6}")


if __name__ == "__main__":
    main()
