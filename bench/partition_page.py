"""Writes the tables and pictures of docs/explanation/beyond-one-database.md: what `bench.capacity` measured, and what
the model and the simulation make of it.

python -m bench.partition_page
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from bench.load import MIX, PER_STACK, RATES
from bench.partition_scenarios import SMALL, emptied, hot, outage
from bench.partitions import (
    INTERVAL_S,
    LOOK,
    Load,
    Machine,
    Seen,
    alone,
    idle,
    in_burst,
    limit,
    measured,
    mixed,
    played,
    sizes,
    used,
)
from bench.pictures import IMAGES, Picture, Points, svg
from bench.placing import PLACINGS, fullest, partitions, shares
from bench.records import ROOT

PAGE = ROOT / "docs" / "explanation" / "beyond-one-database.md"
BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LARGE, MEDIUM = Machine(), Machine(cores=SMALL)
INTERVALS = (10.0, 60.0, 300.0)
SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
WORKERS = (1, 2, 4, 8)
TOTALS = (2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000)
COUNTS = (2, 4, 8, 16)
AWAY_S = 10.0
SECONDS = 8.0
"""What is played of each load."""
LATENCY = Picture(
    "partition-latency.svg",
    f"Time to show a stack, by resources of one partition ({SMALL} cores)",
    "",
    "ms",
    "resources",
    "median",
)
COUNTED = Picture("partition-count.svg", "Partitions by resources in all (32 cores each)", "", "", "resources", "none")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(each) for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def words(name: str) -> str:
    return name.replace("_", " ").replace("no op", "no-op")


def costs() -> str:
    """What each operation takes with the most resources, and how that has grown."""
    few, many = sizes()[0], sizes()[-1]
    compared = few < many

    def row(operation: str) -> list[str]:
        now, before = in_burst(operation), in_burst(operation, few)
        grown = now.server_s / before.server_s if before.server_s else 1.0
        statements = measured()[f"capacity.{operation}.statements", many]
        seconds = (now.api_s, now.worker_s, now.server_s)
        counts = map(shown, (statements, now.transactions, now.wal))
        return [words(operation), *(shown(each * 1000) for each in seconds), *counts, *([f"{grown:.2f}"] * compared)]

    head = (
        "operation on a stack",
        "API, CPU ms",
        "worker, CPU ms",
        "PostgreSQL, CPU ms",
        "statements",
        "transactions that write",
        "bytes of WAL",
        *([f"PostgreSQL, to that at {few:,} resources"] * compared),
    )
    return table(head, map(row, ("create", LOOK, *(name for name in MIX if name != "create"))))


def rest() -> str:
    nothing = idle()
    n = sizes()[-1]
    tables = {name.rpartition(".")[2]: value for (name, _), value in measured().items() if ".bytes." in name}
    whole = tables.pop("all")
    parts = ", ".join(f"{words(name)} {shown(value)}" for name, value in tables.items())
    api_ms, worker_ms, server_ms = (shown(each * 1000) for each in (nothing.api_s, nothing.worker_s, nothing.server_s))
    return (
        f"With {n:,} resources the database has {shown(whole)} bytes for each, events of all that was done included: "
        f"{parts}. A service with one worker and no stack takes {api_ms} CPU ms a second in the API, {worker_ms} in "
        f"the worker and {server_ms} in PostgreSQL."
    )


def growth() -> str:
    """A backlog that 1 to 8 workers take."""
    values = measured()
    n = next(n for name, n in values if name == "drain.durable.workers_1.rate")

    def row(name: str, what: str) -> list[str]:
        parts = ("worker_cpu", "server_cpu", "transactions", "wal", "syncs", "connections")
        return [what, *(shown(values[f"{name}.{part}", n]) for part in parts)]

    head = (
        "workers",
        "workers, CPU ms a resource",
        "PostgreSQL, CPU ms a resource",
        "transactions a resource",
        "bytes of WAL a resource",
        "syncs a transaction",
        "connections",
    )
    rows = [row(f"drain.durable.workers_{count}", str(count)) for count in WORKERS]
    return table(head, [*rows, row("drain.relaxed.workers_2", "2, `synchronous_commit=off`")])


def checked(rate: float) -> dict[str, tuple[float, float]]:
    """What a load of several operations took, in parts: as measured, and as the simulation says."""
    load, took = mixed(rate)
    seen, always = played(load, MEDIUM, 600.0), idle()
    return {
        "API, CPU ms/s": (took.api * 1000, (seen.api + always.api_s) * 1000),
        "worker, CPU ms/s": (took.worker * 1000, (seen.worker + always.worker_s) * 1000),
        "PostgreSQL, CPU ms/s": (took.server * 1000, (seen.server + always.server_s) * 1000),
        "transactions that write, a second": (took.transactions, seen.transactions + always.transactions),
    }


def check() -> str:
    low, high = (checked(rate) for rate in RATES)
    rows = []
    for part, (took, said) in high.items():
        grew, said_grew = took / low[part][0], said / low[part][1]
        rows.append((part, *map(shown, (took, said)), f"{said / took:.2f}", f"{grew:.2f}", f"{said_grew:.2f}"))
    rates = " to ".join(f"{mixed(rate)[0].requests_s:.1f}" for rate in RATES)
    head = ("part", "measured", "simulated", "ratio", f"growth from {rates} requests/s, measured", "simulated")
    return table(head, rows)


def factors() -> str:
    more = alone()
    return (
        f"Operations that come by themselves take {more.api:.2f} times as much CPU time of the API as in a burst, "
        f"{more.worker:.2f} times of the workers, and {more.server:.2f} times of PostgreSQL."
    )


def limits() -> str:
    """How much fits, and how much of each thing is used then."""
    rows = []
    for machine in (MEDIUM, Machine(cores=16), LARGE, Machine(cores=64)):
        for interval_s in INTERVALS:
            resources = limit(machine, lambda n, interval_s=interval_s: Load.of(n, interval_s))[0]  # type: ignore[misc]
            load = Load.of(resources, interval_s)
            creates = load.rates()["create"] * PER_STACK
            share = (f"{each:.0%}" for each in used(load, machine).values())
            amounts = (f"{rounded(resources):,}", shown(load.requests_s), shown(creates))
            rows.append((machine.cores, f"{interval_s:g}", *amounts, *share))
    head = ("cores", "look every, s", "resources", "requests/s", "of them created, resources/s")
    return table((*head, *used(Load.of(1.0), LARGE)), rows)


def rounded(value: float) -> int:
    """Two digits: no more is known."""
    return int(float(f"{value:.2g}"))


@cache
def curve() -> Mapping[int, Seen]:
    """Resources of a partition -> what is seen, up to beyond what is planned."""
    full = limit(MEDIUM)[0]
    return {rounded(full * share): played(Load.of(rounded(full * share)), MEDIUM, SECONDS) for share in SHARES}


def loads() -> str:
    def row(resources: int, seen: Seen) -> Iterable[object]:
        cores = f"{seen.server / SMALL:.0%}"
        return (f"{resources:,}", cores, f"{seen.log:.0%}", *map(shown, (seen.together, seen.p50_ms, seen.p99_ms)))

    head = ("resources", "cores of the server", "log", "transactions a sync", "show, median, ms", "show, 99 %, ms")
    return table(head, (row(*each) for each in curve().items()))


def placing() -> str:
    rows = []
    for name in PLACINGS:
        rows.append((name, *(" to ".join(f"{each * count:.2f}" for each in fullest(name, count)) for count in COUNTS)))
    return table(("projects are placed", *(f"{count} partitions" for count in COUNTS)), rows)


def counts() -> str:
    full = {machine.cores: limit(machine)[0] for machine in (MEDIUM, LARGE)}

    def row(resources: int) -> Iterable[object]:
        found = (partitions(name, resources, most) for most in full.values() for name in PLACINGS)
        return (f"{resources:,}", shown(Load.of(resources).requests_s), *(each or "–" for each in found))

    head = (f"{cores} cores, {name}" for cores in full for name in PLACINGS)
    return table(("resources in all", "requests/s", *head), map(row, TOTALS))


def away() -> str:
    full = limit(MEDIUM)[0]
    rows = []
    for share in (0.5, 1.0):
        of = outage(Load.of(full * share), MEDIUM, AWAY_S)
        times = map(shown, (of.before_ms, of.meanwhile_ms, of.after_ms, of.caught_up_s))
        rows.append((f"{share:.0%}", f"{of.refused:,}", *times))
    head = (
        "of what is planned",
        "requests refused",
        "the others before, 99 %, ms",
        "the others meanwhile, 99 %, ms",
        "this one in the ten seconds after, 99 %, ms",
        "s until all looks were caught up",
    )
    return table(head, rows)


def empty() -> str:
    load = Load.of(limit(MEDIUM)[0] * 0.7)
    rows = []
    for many in (2, 8, 32):
        of = emptied(load, MEDIUM, many, SECONDS)
        rows.append((many, shown(of.stacks_s), shown(of.hours), f"{of.server:.0%}", shown(of.p99_ms)))
    head = ("at a time", "stacks/s", "hours for all", "cores of the server they move to", "show there, 99 %, ms")
    stacks = f"{rounded(load.resources / PER_STACK):,}"
    return f"{stacks} stacks, and a partition to move them to with as many.\n\n{table(head, rows)}"


def burst() -> str:
    load = Load.of(limit(MEDIUM)[0] * 0.7)
    rows = [(f"{times:g}", *map(shown, hot(load, MEDIUM, times, SECONDS))) for times in (0.0, 0.5, 1.0, 2.0)]
    head = ("one sends, to all others", "show, median, ms", "show, 99 %, ms")
    return table(head, rows)


def assumed() -> str:
    one = LARGE
    return table(
        ("assumed", "value"),
        (
            ("cores of the database server", f"{one.cores}, each as fast as those measured"),
            ("a sync of the log, a standby confirms it", f"{one.sync_s * 1000:g} ms"),
            ("WAL that disk, archive and standby take", f"{one.wal_bytes_s / 1e6:g} MB/s"),
            ("connections", one.connections),
            ("share of anything that is planned to be used", f"{one.share:.0%}"),
            ("resources of a stack", PER_STACK),
            ("looks at a stack at rest", f"every {INTERVAL_S:g} s"),
            ("requests", f"{Load.of(100_000).requests_s:g} a second for 100,000 resources"),
            ("their kinds", ", ".join(f"{words(name)} {share:.0%}" for name, share in MIX.items())),
            ("sizes of projects", f"{len(shares()):,} projects after Zipf; the largest has {shares()[0]:.0%} of all"),
        ),
    )


BLOCKS: Mapping[str, Callable[[], str]] = {
    each.__name__: each
    for each in (costs, rest, growth, factors, check, assumed, limits, loads, placing, counts, away, empty, burst)
}


def page() -> str:
    """The page as it stands, with its tables anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{_block(found[2])}\n\n{found[3]}", PAGE.read_text(encoding="utf-8"))


@cache
def _block(name: str) -> str:
    return BLOCKS[name]()


@cache
def pictures() -> Mapping[str, str]:
    """Name of a file in docs/images -> what is in it."""
    times = {f"show, {what}": list[tuple[float, float]]() for what in ("99 %", "median")}
    for resources, seen in curve().items():
        times["show, 99 %"].append((resources, seen.p99_ms))
        times["show, median"].append((resources, seen.p50_ms))
    full = limit(LARGE)[0]
    found: dict[str, Points] = {}
    for name in PLACINGS:
        points = [(total, partitions(name, total, full)) for total in TOTALS]
        found[name] = [(total, count) for total, count in points if count]
    return {LATENCY.file: svg(LATENCY, times), COUNTED.file: svg(COUNTED, found)}


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    for file, drawn in pictures().items():
        (IMAGES / file).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
