"""Writes docs/reference/numbers.md from the files in bench/results: what was to be reached, and what was measured; and
the tables of docs/explanation/beyond-one-database.md.

python -m bench.report
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import partition_page
from bench.pictures import PICTURES, RESULTS, ROOT
from bench.pictures import main as draw

PAGE = ROOT / "docs" / "reference" / "numbers.md"


@dataclass(frozen=True, slots=True)
class Target:
    """One number to reach. figure, n, database — which measurement; limit — at most this, or with `least` at least."""

    what: str
    figure: str
    limit: float
    n: int
    database: str = "sqlite"
    least: bool = False


M = 1_000_000
PG = "postgresql"
MARIADB = "mariadb"
REAL = "openstack"
RESTS = (10, 100, 1_000)
"""Resources at rest on a real OpenStack, and `LOOK_CALLS_MAX` requests of a look at them, however many they are."""
LOOK_CALLS_MAX = 7
TARGETS = (
    Target("Create, independent, SQLite", "create.independent.rate", 8_000, 10_000, least=True),
    Target("Create, independent, neighbours left out", "create.independent.rate_unhindered", 8_000, 10_000, least=True),
    Target("Create, independent, two workers", "create.independent.workers_2.rate", 5_000, 20_000, PG, least=True),
    Target("Two cores by CPU time, two workers", "create.independent.workers_2.by_cpu", 5_000, 20_000, PG, least=True),
    Target("CPU of one resource, SQLite", "create.independent.cpu", 0.25, 10_000),
    Target("CPU of one resource, worker", "create.independent.workers_2.cpu", 0.25, 20_000, PG),
    Target("Share of the bare row traffic", "create.independent.to_bare_rows", 1 / 3, 10_000, least=True),
    Target("Share of the bare row traffic", "create.independent.to_bare_rows", 1 / 3, 10_000, PG, least=True),
    *(
        Target(f"Create, {words}, beside PostgreSQL", f"create.{shape}.to_postgresql", 0.5, 2_000, MARIADB, least=True)
        for shape, words in (("independent", "independent"), ("group", "a group"))
    ),
    *(
        Target(f"Page of {words}: {what}", f"page.{shape}.{figure}", limit, n)
        for shape, words, n in (("independent", "1,000 resources", 1_000), ("group", "a group of 100,000", 100_000))
        for what, figure, limit in (
            ("first paint", "overview.first_paint", 1_000),
            ("all of it shown", "overview.shown", 1_000),
            ("loaded", "overview.loaded", 300),
            ("picture shown", "picture.shown", 1_000),
            ("drawn after an event, 99 %", "drawn_after_event.p99", 100),
        )
    ),
    *(
        Target(f"Growth from 10,000 to 1,000,000: {operation}, {words}", f"{operation}.group.{what}", 1.05, M, kind)
        for kind in ("sqlite", PG)
        for operation in ("create", "delete")
        for what, words in (("growth_cpu", "CPU time"), ("growth", "time"))
    ),
    Target("Peak memory: a million created, changed, deleted", "delete.group.peak_memory", 300, M),
    Target("Peak memory: a million created, changed, deleted", "delete.group.peak_memory", 300, M, PG),
    Target("No-op update of 10,000, CPU", "no_op_update.independent.cpu_seconds", 2, 10_000),
    Target("No-op update of 10,000", "no_op_update.independent.seconds", 2, 10_000),
    Target("No-op update of 10,000", "no_op_update.independent.seconds", 2, 10_000, PG),
    Target("One more member in a million, CPU", "one_change_update.group.cpu_seconds", 1, M),
    Target("One more member in a million", "one_change_update.group.seconds", 1, M),
    Target("One more member in a million", "one_change_update.group.seconds", 1, M, PG),
    Target("Attribute known to dependant started, median", "attribute_to_dependant.p50", 20, 200),
    Target("Attribute known to dependant started, 99 %", "attribute_to_dependant.p99", 250, 200),
    Target("Attribute known to dependant started, median", "attribute_to_dependant.p50", 20, 200, PG),
    Target("Attribute known to dependant started, 99 %", "attribute_to_dependant.p99", 250, 200, PG),
    Target("Small stack while 100,000 are created, median", "small_stack_beside_100000.p50", 2_000, 10),
    Target("Small stack while 100,000 are created, 99 %", "small_stack_beside_100000.p99", 2_000, 10),
    Target("Small stack while 100,000 are created, median", "small_stack_beside_100000.p50", 2_000, 10, PG),
    Target("Small stack while 100,000 are created, 99 %", "small_stack_beside_100000.p99", 2_000, 10, PG),
    *(
        Target(f"API beside a million resources, {words}, 99 %", f"api.{name}.p99", 100, 1_000_000)
        for name, words in (
            ("list_stacks", "list of stacks"),
            ("show_stack", "stack with a group of a million"),
            ("show_group_stack", "stack of the group"),
            ("list_resources", "its one resource, listed"),
            ("show_group", "the group"),
            ("show_member", "one member"),
            ("list_events", "a page of events"),
            ("explain", "explain"),
            ("accept_update", "an update accepted"),
        )
    ),
    *(
        Target(f"API, 50 clients at 100,000 resources, {words}, 99 %", f"crowd_50.{name}.p99", 100, 100_000, kind)
        for kind in ("sqlite", PG)
        for name, words in (
            ("show", "a stack"),
            ("list_stacks", "list of stacks"),
            ("list_resources", "resources of a stack, mostly of 300"),
            ("list_events", "a page of events"),
            ("create", "a create accepted"),
            ("update", "an update accepted"),
            ("update_large", "an update of 300 resources accepted"),
            ("delete", "a delete accepted"),
        )
    ),
    Target("API, 200 clients for 10 minutes, writes lost", "crowd_200.lost", 0, 100_000),
    Target("API, 200 clients for 10 minutes, wrong answers", "crowd_200.refused", 0, 100_000),
    Target("Template of 10,000 read, compiled, checked, planned", "read.all.seconds", 5, 10_000),
    Target("Peak memory of that", "read.all.peak_memory", 300, 10_000),
    Target("Growth of its CPU time from 1,000 resources", "read.all.growth_cpu", 1.1, 10_000),
    Target("API, stack of 300, median", "api.show_stack_of_300.p50", 8, 300),
    Target("API, stack of 300, CPU of client and server", "api.show_stack_of_300.cpu", 8, 300),
    Target("API, resources of a stack of 300, median", "api.list_resources_of_300.p50", 15, 300),
    Target("Metadata of a member, 1,000 of 100,000 reporting a second", "rollout.read.p99", 5, 100_000, PG),
    Target("Reports of members a second, as fast as it goes", "rollout.reports.rate", 2_000, 100_000, PG, least=True),
    Target("Each of them, 99 %", "rollout.reports.p99", 50, 100_000, PG),
    Target("Killed process to its recovery begun, by events, 99 %", "recovery.events.begun.p99", 1_000, 10),
    Target("The same, by polling every 10 s", "recovery.polling.begun.p99", 11_000, 10),
    Target("From there until it is healthy, 99 %", "recovery.events.ended.p99", 3_000, 10),
    Target("Health of 10,000 nodes looked at every 10 s, % of a core", "health.all.cpu", 25, 10_000, PG),
    Target("New definition for the first of 100,000, its step begun, CPU", "definition.step_1.begin", 100, 100_000, PG),
    Target("The member changed", "definition.step_1.change", 100, 100_000, PG),
    Target("Its thing noted, which has to report", "definition.step_1.note", 100, 100_000, PG),
    Target(
        "Old definition for 5,000 of 100,000, from a failing report, CPU", "definition.back.begin", 100, 100_000, PG
    ),
    Target("60 servers with ports and volumes, time beside a script", "openstack.make.to_script", 1.15, 60, REAL),
    Target("Requests that change something, meanwhile", "openstack.make.service.mutating", 1, 60, REAL),
    Target("Requests that only look, meanwhile", "openstack.make.service.reading", 0.2, 60, REAL),
    *(
        Target(f"Requests of a look at {n:,} resources at rest", "openstack.rest.reading", LOOK_CALLS_MAX, n, REAL)
        for n in RESTS
    ),
    Target("Server deleted by hand, seen by a notification", "openstack.heal.notified.seen", 1, 5, REAL),
    Target("Another one requested after that", "openstack.heal.notified.replaced", 1, 5, REAL),
    Target("Server deleted by hand, seen by a look every 10 s", "openstack.heal.unnotified.seen", 10, 5, REAL),
    Target("Another one requested after that", "openstack.heal.unnotified.replaced", 1, 5, REAL),
)

REQUESTS = (
    ("openstack.make.service.mutating", "made by the service, changes", 4),
    ("openstack.make.service.reading", "made by the service, looks", 4),
    ("openstack.make.script.mutating", "made by the script, changes", 4),
    ("openstack.make.script.reading", "made by the script, looks", 4),
    ("openstack.rest.reading", "a look of the service at rest", 1),
)
"""Figure, what it is about, and how many resources one of its `n` is."""

TEXT = """# Numbers

What Homeostat was built to reach, and what was measured. This page is written by `python -m bench.report` from the
files in `bench/results`; `make bench` measures anew (`python -m bench --help`).

{machine}

Read seconds and rates with the load in mind: {load} Figures of CPU time and ratios of two measurements of one run are
hardly touched by that.

| what | database | to reach | measured | |
|---|---|---|---|---|
{table}

What the other numbers of the design are about is shown by tests: workers that are killed go on within seconds and lose
nothing (`tests/real`, `tests/simulation`), and servers of the local cloud that die are seen and healed
(`tests/contract/test_local_cloud.py`).

## Requests to a real OpenStack

The OpenStack of the tests: real services, with fake guests, wires and disks behind their drivers. Servers, ports,
volumes and attachments are made; servers, ports, volumes and key pairs are at rest.

| what | resources | requests | which |
|---|---|---|---|
{requests}

## Why some are missed

{notes}

## Growth

A group of alike resources from ten thousand to a million members. A million are a thousand shards; a worker holds a few
of them at a time, so its memory follows the shard and not the stack. A member more, or an update that changes nothing,
costs the same in a group of any size.

{pictures}

{group}

The shape `nested` is a group of nested stacks of 100 resources each, every one with a template, a revision and a life
of its own.

{nested}
"""
HEAD = """| operation | database | resources | seconds | CPU s | peak memory, MiB | statements | bytes a resource |
|---|---|---|---|---|---|---|---|
"""


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(RESULTS.glob("*.jsonl")) for line in path.read_text().splitlines()]


def page() -> str:
    everything = lines()
    found = {(each["name"], each["n"], each["database"]): each for each in everything if "name" in each}
    machines = [each["machine"] for each in everything if "machine" in each]
    rows = [_row(target, found) for target in TARGETS]
    pictures = "\n\n".join(f"![{each.title}](../images/{each.file})" for each in PICTURES)
    return TEXT.format(
        machine=_machine(machines),
        load=_load(machines),
        table="\n".join(rows),
        pictures=pictures,
        group=HEAD + _sizes(everything, "group"),
        nested=HEAD + _sizes(everything, "nested"),
        requests="\n".join(_requests(everything)),
        notes=(RESULTS / "notes.md").read_text().strip(),
    )


def _row(target: Target, found: Mapping[tuple[str, int, str], Mapping[str, Any]]) -> str:
    each = found.get((target.figure, target.n, target.database))
    word = "≥" if target.least else "≤"
    if each is None:
        return f"| {target.what} | {target.database} | {word} {_number(target.limit)} | not measured | |"
    value, unit = float(each["value"]), each["unit"]
    reached = value >= target.limit if target.least else value <= target.limit
    verdict = "reached" if reached else _missed(*sorted((value, target.limit)))
    reach = f"{word} {_number(target.limit)} {unit}"
    return f"| {target.what} | {target.database} | {reach} | {_number(value)} {unit} | {verdict} |"


def _missed(smaller: float, larger: float) -> str:
    return f"**missed** by a factor of {larger / smaller:.2f}" if smaller else "**missed**"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _machine(machines: Sequence[Mapping[str, Any]]) -> str:
    one = machines[0]
    programs = ("python", "sqlite", "SQLAlchemy", "psycopg", "orjson", "taskflow")
    versions = ", ".join(f"{name} {one[name]}" for name in programs)
    return f"Measured on {one['cores']} cores ({one['cpu']}), {one['memory_gib']} GiB, {one['system']}; {versions}."


def _load(machines: Sequence[Mapping[str, Any]]) -> str:
    loads = [each["load"] for each in machines]
    return (
        f"when the runs began, between {min(loads):.0f} and {max(loads):.0f} other processes\nwanted the "
        f"{machines[0]['cores']} cores."
    )


def _sizes(everything: Sequence[Mapping[str, Any]], shape: str) -> str:
    """One line an operation, database and size."""
    columns = ("seconds", "cpu_seconds", "peak_memory", "statements", "database")
    table: dict[tuple[str, str, int], dict[str, float]] = {}
    for each in everything:
        operation, _, rest = each.get("name", "").partition(".")
        what = rest.removeprefix(f"{shape}.")
        if rest.startswith(f"{shape}.") and what in columns:
            table.setdefault((operation, each["database"], each["n"]), {})[what] = each["value"]
    return "\n".join(
        f"| {operation.replace('_', ' ')} | {database} | {n:,} | "
        + " | ".join(_number(values[name]) for name in columns)
        + " |"
        for (operation, database, n), values in table.items()
    )


def _requests(everything: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each count of requests, with what was requested."""
    for figure, words, many in REQUESTS:
        for each in everything:
            if each.get("name") == figure:
                which = each.get("about", "").replace("|", "\\|")
                yield f"| {words} | {many * each['n']:,} | {_number(each['value'])} {each['unit']} | {which} |"


def main() -> None:
    draw()
    PAGE.write_text(page(), encoding="utf-8")
    partition_page.main()


if __name__ == "__main__":
    main()
