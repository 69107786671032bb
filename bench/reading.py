"""What a large template costs before anything is made: reading its text, compiling, checking, the first decisions."""

import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.cpu import memory_mib
from bench.figures import Figure
from bench.shapes import VERSION
from homeostat.model.desired import Identity
from homeostat.model.world import StackFacts, World
from homeostat.planner import Frontier
from homeostat.services.pipeline.checking import check
from homeostat.store.stacks.contents import Content
from homeostat.templates import compile_template, parse_template

IDENTITY = Identity("00000000-0000-4000-8000-000000000001", "bench", "bench")
STAGES = ("yaml", "json", "compile", "check", "plan")
NOT_OF_ALL = ("yaml",)
"""A template is read once, as JSON or YAML: the sum has the text that clients send."""


@dataclass(frozen=True, slots=True)
class Read:
    """One template of n resources. seconds, cpu_s — of each stage; peak_mib — of the process, the program included."""

    n: int
    seconds: dict[str, float]
    cpu_s: dict[str, float]
    peak_mib: float

    def figures(self) -> Iterator[Figure]:
        for stage in STAGES:
            yield Figure(f"read.{stage}.seconds", self.seconds[stage], "s", self.n)
            yield Figure(f"read.{stage}.cpu", self.cpu_s[stage] / self.n * 1000, "CPU ms/resource", self.n)
        yield Figure("read.all.seconds", total(self.seconds), "s", self.n, about="json, compile, check and plan")
        yield Figure("read.all.peak_memory", self.peak_mib, "MiB", self.n, about="all stages and the program itself")


def total(stages: dict[str, float]) -> float:
    return sum(spent for stage, spent in stages.items() if stage not in NOT_OF_ALL)


def reading(sizes: list[int], repeat: int) -> Iterator[Figure]:
    """Figures of each size, the run that took the least CPU time; and how the time grows over all sizes."""
    best = [min((_in_a_process(n) for _ in range(repeat)), key=lambda each: total(each.cpu_s)) for n in sorted(sizes)]
    for each in best:
        yield from each.figures()
    small, large = best[0], best[-1]
    if large.n > small.n:
        ratio = math.log(large.n / small.n)
        about = f"from {small.n} to {large.n}"
        for stage in STAGES:
            exponent = math.log(large.cpu_s[stage] / small.cpu_s[stage]) / ratio
            yield Figure(f"read.{stage}.growth_cpu", exponent, "exponent", large.n, about=about)
        exponent = math.log(total(large.cpu_s) / total(small.cpu_s)) / ratio
        yield Figure("read.all.growth_cpu", exponent, "exponent", large.n, about=about)


def _in_a_process(n: int) -> Read:
    """In a process of its own, so that its peak of memory is that of this template."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(read, 1).result()  # what is loaded when it is first needed
        return pool.submit(read, n).result()


def read(n: int) -> Read:
    """Read, compile, check and plan a template of n resources that do not depend on each other."""
    one = {"type": "OS::Heat::TestResource", "properties": {"value": "v"}}
    as_json = json.dumps({"heat_template_version": VERSION, "resources": {f"r{i}": one for i in range(n)}})
    as_yaml = f"heat_template_version: {VERSION}\nresources:\n" + "".join(
        f"  r{i}:\n    type: OS::Heat::TestResource\n    properties:\n      value: v\n" for i in range(n)
    )
    seconds: dict[str, float] = {}
    cpu_s: dict[str, float] = {}

    def timed(stage: str, act: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        found = act()
        seconds[stage], cpu_s[stage] = time.perf_counter() - wall, time.process_time() - cpu
        return found

    timed("yaml", lambda: parse_template(as_yaml, size_max=len(as_yaml)))
    document = timed("json", lambda: parse_template(as_json, size_max=len(as_json)))
    compiled = timed("compile", lambda: compile_template(document, identity=IDENTITY))
    definitions = timed("check", lambda: check(compiled, Content("template", document)))
    facts = StackFacts(IDENTITY.stack_id, "bench", "bench", 1, "CREATE", "IN_PROGRESS")
    keys = (f"k{number:011d}" for number in count(1))
    steps = timed("plan", lambda: Frontier(World(facts, 0, definitions), keys).steps(0.0, n))
    if len(steps) != n:
        raise RuntimeError(f"{len(steps)} of {n} resources can be made at once, not all")
    return Read(n, seconds, cpu_s, memory_mib(os.getpid(), "VmHWM"))
