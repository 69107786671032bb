"""The bar: bytecodes and statements of a few operations, which a change may not raise or lower by chance.

`bench/bar.json` has the figures of the last commit, by the Python that counted them. A machine's speed, and its other
work, do not count: time, randomness and hashes are fixed. Work in C does not count either; statements stand for most of
it, and `python -m bench --only instructions` counts all of it with valgrind, in many minutes.

python -m bench.bar [--write]
"""

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from bench.databases import database_url
from bench.engine import PROJECT, Engine
from bench.shapes import SHAPES
from homeostat.api.access.auth import NoAccess
from homeostat.api.server import ApiSettings, server
from homeostat.clock import Entropy

STORED = Path(__file__).with_name("bar.json")
ALLOWED = 0.03
FLAT, WARM = 300, 20
"""Resources of the flat stack, and of the one before it, for which modules are loaded and statements are built."""
SHOWN = 20
BEGIN_S, STEP_S = 1_700_000_000.0, 1e-5
Counts = dict[str, int]


class Ticks:
    """A clock that goes on by a little whenever it is read."""

    def __init__(self) -> None:
        self._reads = itertools.count()

    def now(self) -> float:
        return BEGIN_S + self.monotonic()

    def monotonic(self) -> float:
        return next(self._reads) * STEP_S


def codes_of(act: Callable[[], object]) -> int:
    """Return how many bytecodes an act runs, in this thread and in those that begin meanwhile."""
    codes = itertools.count()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            next(codes)  # one call in C: no thread comes between
        return trace

    before = sys.gettrace(), threading.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])
    return next(codes)


def counted() -> Counts:
    """Count each operation once, after a round that does not count."""
    with database_url("sqlite") as url:
        engine = Engine(url, clock=Ticks(), entropy=Entropy(Random(1).randbytes))
        for flat in (WARM, FLAT):
            counts = _round(engine, flat)
        engine.close()
    return counts


def _round(engine: Engine, flat: int) -> Counts:
    stacks, shape, sent = engine.stack_service, SHAPES["independent"], engine.statements
    ids: list[str] = []
    counts: Counts = {}

    def count(name: str, act: Callable[[], object]) -> None:
        before = sent.count
        counts[f"{name}, bytecodes"] = codes_of(act)
        counts[f"{name}, statements"] = sent.count - before

    def create(n: int) -> None:
        ids.append(stacks.create(PROJECT, None, f"{flat}-{n}", shape.request(n)))
        engine.rest()

    def change() -> None:
        stacks.update(ids[0], shape.changed(flat))
        engine.rest()

    def show() -> None:
        asyncio.run(_get(app, f"/v1/{PROJECT}/stacks/{flat}-1/{ids[1]}"))

    count(f"create a stack of {flat}", lambda: create(flat))
    count("change one of them", change)
    count("create a stack of one", lambda: create(1))
    app = server(engine.db, Ticks(), engine.entropy, NoAccess(), ApiSettings()).config.app
    show()
    count(f"show it {SHOWN} times", show)
    return counts


async def _get(app: Any, path: str) -> None:
    """Ask the application, without a network. Fails: RuntimeError unless it answers 200."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8004),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    for _ in range(SHOWN):
        sent.clear()
        await app(dict(scope), receive, send)
        if sent[0]["status"] != 200:
            raise RuntimeError(f"{path} was answered with {sent}")


def compared(before: Counts, now: Counts) -> tuple[list[str], bool]:
    """Return a line for each count, and whether all are as they were."""
    lines, same = [], True
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, 0), now.get(name, 0)
        change = new / old - 1 if old else float("inf")
        is_same = abs(new - old) <= ALLOWED * old
        same &= is_same
        lines.append(f"{'   ' if is_same else '!! '}{name}: {old:,} -> {new:,} ({change:+.1%})")
    return lines, same


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bar", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the counts as those of the commit to come")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        print(json.dumps(counted()))
        return 0
    python = str(sys.implementation.cache_tag)
    stored: dict[str, Counts] = json.loads(STORED.read_text())
    if python not in stored and not arguments.write:
        print(f"{STORED.name} has no counts of {python}, so none are compared")
        return 0
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-W", "ignore", "-m", "bench.bar", "--count"]
    counts: Counts = json.loads(subprocess.run(command, env=fixed, check=True, stdout=subprocess.PIPE).stdout)
    lines, same = compared(stored.get(python, {}), counts)
    print(f"Bytecodes of {python} and statements, without work in C:", *lines, sep="\n")
    if arguments.write:
        STORED.write_text(json.dumps({**stored, python: counts}, indent=2) + "\n")
    elif not same:
        print(
            f"More than {ALLOWED:.0%} away. If the change is meant to cost or save this, say so in its message, run\n"
            "`make bar ARGS=--write`, and commit bench/bar.json with it. Otherwise look for what does more."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
