"""Measures Homeostat: prints one JSON object a line, the machine first, then a figure each."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.answering import answers
from bench.capacity import DESCRIBED, RELAXED, capacity, drained
from bench.checking import checking, recovering
from bench.databases import KINDS, SETTINGS
from bench.defining import defining
from bench.encryption import encryption
from bench.figures import Figure, Measured, beside_postgresql, growth, machine
from bench.growing import growing
from bench.idling import idling
from bench.instructions import instructions
from bench.lifecycle import best_of
from bench.processes import created_by_workers, idle
from bench.reacting import latency, small_beside_large
from bench.reading import reading
from bench.rolling import rolling
from bench.rows import bare_rows
from bench.serving import crowded
from bench.shapes import SHAPES
from bench.signalling import signalling
from bench.turns import turns

EPILOG = """
Examples:
  python -m bench                                     everything, at modest sizes
  python -m bench --only group --sizes 10000 100000 1000000 --repeat 1
  python -m bench --only independent rows --database postgresql
  python -m bench --only capacity --database postgresql --sizes 5000 20000
  python -m bench --only openstack-making --sizes 60  with the OpenStack of the tests up, see CONTRIBUTING.md

A name is <operation>.<shape>.<what>: create.group.cpu is CPU time of the measuring process for each resource created.
`growth` is the exponent between the smallest size of at least 10,000 and the largest: 1 is linear. On a busy machine
look at `cpu`, `growth_cpu` and `rate_unhindered` (without the time in which others had the cores); the neighbours spoil
`seconds` and `rate`, and make CPU time vary by a fifth. `--only instructions --sizes 300` tells two commits apart that
differ by a percent; it takes some minutes. A million resources take some minutes, too.
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to run: sizes — numbers of resources; repeat — runs of each, the fastest counts; databases — kinds; clients,
    seconds, pause_s — of the crowd, see `bench.crowd.CrowdPlan`."""

    sizes: list[int]
    repeat: int
    databases: list[str]
    clients: int = 50
    seconds: float = 60.0
    pause_s: float = 0.5


Bench = Callable[[Wanted], Iterator[Figure]]


def lifecycles(shape: str) -> Bench:
    def run(wanted: Wanted) -> Iterator[Figure]:
        measured: list[Measured] = []
        for database in wanted.databases:
            for n in wanted.sizes:
                for each in best_of(shape, n, wanted.repeat, database):
                    measured.append(each)
                    yield from each.figures()
        yield from growth(measured)
        yield from beside_postgresql(measured)

    return run


def rows(wanted: Wanted) -> Iterator[Figure]:
    """Besides the bare row traffic, what share of it the create of independent resources reaches in the same run."""
    for database in wanted.databases:
        for n in wanted.sizes:
            wall, cpu = min(bare_rows(n, database) for _ in range(wanted.repeat))
            created = best_of("independent", n, wanted.repeat, database)[0]
            yield Figure("bare_rows.rate", n / wall, "resources/s", n, database)
            yield Figure("bare_rows.cpu", cpu / n * 1000, "CPU ms/resource", n, database)
            yield Figure("create.independent.to_bare_rows", wall / created.seconds, "ratio", n, database)
            yield Figure("create.independent.to_bare_rows_cpu", cpu / created.cpu_s, "ratio", n, database)


def per_size(figures: Callable[[int, str], Iterable[Figure]]) -> Bench:
    def run(wanted: Wanted) -> Iterator[Figure]:
        for database in wanted.databases:
            for n in wanted.sizes:
                yield from figures(n, database)

    return run


def recoveries(wanted: Wanted) -> Iterator[Figure]:
    """At one size."""
    for database in wanted.databases:
        yield from recovering(database)


def workers(wanted: Wanted) -> Iterator[Figure]:
    """Always on PostgreSQL; of several runs the one that was done first counts."""
    for n in wanted.sizes:
        for count in (1, 2, 4):
            runs = [created_by_workers(n, count, "independent") for _ in range(wanted.repeat)]
            yield from max(runs, key=lambda figures: figures[0].value)


def counted(wanted: Wanted) -> Iterator[Figure]:
    """On SQLite."""
    for shape in ("independent", "group"):
        for n in wanted.sizes:
            yield from instructions(shape, n)


def read(wanted: Wanted) -> Iterator[Figure]:
    """No database takes part."""
    yield from reading(wanted.sizes, wanted.repeat)


def together(wanted: Wanted) -> Iterator[Figure]:
    """A service with two API processes."""
    for database in wanted.databases:
        for n in wanted.sizes:
            yield from crowded(n, database, wanted.clients, wanted.seconds, wanted.pause_s, 2)


def resting(wanted: Wanted) -> Iterator[Figure]:
    for database in wanted.databases:
        for n in wanted.sizes:
            yield from idle(n, database, wanted.seconds)
            yield from idling(max(2, n // 5), database, wanted.seconds)


def at_rest(wanted: Wanted) -> Iterator[Figure]:
    for database in wanted.databases:
        for n in wanted.sizes:
            yield from encryption(n, wanted.repeat, database)


def of_one_database(wanted: Wanted) -> Iterator[Figure]:
    """Always on PostgreSQL. The smallest size is also that of the backlog which several workers create."""
    yield from capacity(wanted.sizes)
    for count in (1, 2, 4, 8):
        yield from drained(min(wanted.sizes), count)
    yield from drained(min(wanted.sizes), 2, RELAXED)


def of_the_dashboard(wanted: Wanted) -> Iterator[Figure]:
    from bench.dashboard import pages

    yield from per_size(pages)(wanted)


def real_making(wanted: Wanted) -> Iterator[Figure]:
    """Sizes are numbers of servers, each with a port and a volume."""
    from bench import openstack

    for n in wanted.sizes:
        yield from openstack.making(n, wanted.repeat)


def real_resting(wanted: Wanted) -> Iterator[Figure]:
    from bench import openstack

    yield from openstack.resting(wanted.sizes)


def real_healing(wanted: Wanted) -> Iterator[Figure]:
    """Of as many servers as there shall be runs."""
    from bench import openstack

    yield from openstack.healing(wanted.repeat)


BENCHES: dict[str, tuple[str, Bench]] = {
    **{name: (shape.what, lifecycles(name)) for name, shape in SHAPES.items()},
    "read": ("reading, compiling and checking a template, and the first decisions about it", read),
    "rows": ("the bare row traffic, and what share of it creating reaches", rows),
    "encryption": (
        "what it costs that secrets are encrypted, and what it costs those who have none",
        at_rest,
    ),
    "instructions": ("independent resources and a group, counted by valgrind: for small sizes", counted),
    "workers": ("1, 2 and 4 worker processes on PostgreSQL create resources in several stacks", workers),
    "idle": ("what a worker, and a whole service, costs that has nothing to do but to look", resting),
    "latency": ("from an attribute being known to the dependant being started, on a cloud", per_size(latency)),
    "beside": ("small stacks while a large one is being created", per_size(small_beside_large)),
    "growing": ("stacks in a group that are deleted before they were begun, beside making them", per_size(growing)),
    "turns": ("how long others have to wait to write", per_size(turns)),
    "crowd": ("many clients at once, at a service with that many resources already", together),
    "openstack-making": (
        "servers with ports and volumes on the real OpenStack of the tests, beside a script",
        real_making,
    ),
    "openstack-rest": ("requests to it while nothing happens; best --sizes 10 100 1000", real_resting),
    "openstack-healing": ("servers of it that are deleted by hand", real_healing),
    "rollout": ("a canary of new metadata over the members of a group, who all report", per_size(rolling)),
    "signals": ("one more small signal, after that many small ones and after large ones", per_size(signalling)),
    "health": ("a group of nodes whose status is polled every ten seconds", per_size(checking)),
    "recovery": ("servers of the local cloud are killed, until a health policy has recovered them", recoveries),
    "definition": ("a canary of a new definition over the members of a group, and its way back", per_size(defining)),
    "capacity": ("what PostgreSQL spends on each operation, and with 1 to 8 workers; half an hour", of_one_database),
    "dashboard": (
        "the page of a stack of 1,000 and of a group, in Chromium: best --sizes 1000 100000",
        of_the_dashboard,
    ),
    "api": ("reads and accepted updates over HTTP about a group", per_size(answers)),
}
RARE = frozenset({"instructions", "capacity", "dashboard"})
"""What takes long, and is to be asked for."""


def main() -> None:
    usual = [name for name in BENCHES if name not in RARE and not name.startswith("openstack")]
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"{__doc__}\n\nBenchmarks:\n"
        + "\n".join(f"  {name:17} {what}" for name, (what, _) in BENCHES.items()),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=BENCHES,
        default=usual,
        help="names; default: all but instructions, capacity and openstack-…",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], help="numbers of resources")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each size; the fastest counts")
    parser.add_argument("--database", choices=KINDS, nargs="+", default=["sqlite"], help="default: sqlite")
    parser.add_argument("--clients", type=int, default=50, help="of the crowd; default: 50")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the crowd stays; default: 60")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between requests of one; default: 1")
    arguments = parser.parse_args()
    of_crowd = (arguments.clients, arguments.seconds, arguments.pause)
    wanted = Wanted(arguments.sizes, arguments.repeat, arguments.database, *of_crowd)
    settings = {kind: SETTINGS[kind] for kind in wanted.databases}
    if "capacity" in arguments.only:
        settings["capacity"] = DESCRIBED
    print(json.dumps({**machine(), "settings": settings}), flush=True)
    for name in arguments.only:
        for figure in BENCHES[name][1](wanted):
            print(figure.line(), flush=True)


if __name__ == "__main__":
    main()
