"""Writes docs/reference/numbers.md from the files in bench/results: what was to be reached, and what was measured; and
the tables of docs/explanation/beyond-one-database.md.

python -m bench.report
"""

from collections.abc import Iterator
from functools import cache

from bench import partition_page
from bench.benchmarks import BENCHES
from bench.databases import KINDS
from bench.pictures import PICTURES
from bench.pictures import main as draw
from bench.records import RESULTS, ROOT, NoHistory, Row, is_changed, is_known, machines, rows
from bench.targets import COSTS, TARGETS, Cost, Target

PAGE = ROOT / "docs" / "reference" / "numbers.md"


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

Measured on

{machines}

with {load} that wanted the cores. Read seconds and rates with the load in
mind; figures of CPU time and ratios of two measurements of one run are hardly touched by it.

Each figure has the commit and the day of its measurement. Once the code of the packages that it is about has changed,
comments and docstrings aside, the page says `unmeasured since`, with the old figure.

## What a change costs

`make bench` measures all of it, in half an hour.

| what | to reach | SQLite | PostgreSQL | MariaDB |
|---|---|---|---|---|
{costs}

## Other figures

| what | database | to reach | measured |
|---|---|---|---|
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
HEAD = """| operation | database | resources | seconds | CPU s | MiB at most | statements | bytes each | measured |
|---|---|---|---|---|---|---|---|---|
"""


def page() -> str:
    pictures = "\n\n".join(f"![{each.title}](../images/{each.file})" for each in PICTURES)
    return TEXT.format(
        machines=_machines(),
        load=_load(),
        costs="\n".join(map(_cost, COSTS)),
        table="\n".join(map(_row, TARGETS)),
        pictures=pictures,
        group=HEAD + _sizes("group"),
        nested=HEAD + _sizes("nested"),
        requests="\n".join(_requests()),
        notes=(RESULTS / "notes.md").read_text().strip(),
    )


def has_history() -> bool:
    """Return whether this checkout knows the code of all figures."""
    return all(is_known(row.commit) for row in rows() if row.commit)


def standing(row: Row) -> str:
    """Return "" for a figure of the code that is here, else why it is not one.

    Raises:
        NoHistory: This folder does not know the code that was measured.
    """
    if not row.commit:
        return f"of {row.date[:10]}, with code that was not committed"
    return f"since {_when(row)}" if is_changed(row.commit, BENCHES[row.bench].code) else ""


def _cost(cost: Cost) -> str:
    limits = dict.fromkeys(_number(cost.on(kind).limit) for kind in KINDS)
    cells = (_measured(cost.on(kind)) for kind in KINDS)
    return f"| {cost.what} | ≤ {' or '.join(limits)} {cost.unit} | {' | '.join(cells)} |"


def _row(target: Target) -> str:
    word = "≥" if target.least else "≤"
    return f"| {target.what} | {target.database} | {word} {_number(target.limit)} | {_measured(target)} |"


def _measured(target: Target) -> str:
    """Return the figure and the verdict; none about code that is not here."""
    row = _newest().get((target.figure, target.n, target.database))
    if row is None:
        return "unmeasured"
    value = f"{_number(row.value)} {row.unit}"
    try:
        changed = standing(row)
    except NoHistory:
        return f"{value} at {_when(row)}, which this checkout does not know"
    if changed:
        return f"unmeasured {changed}, then {value}"
    reached = row.value >= target.limit if target.least else row.value <= target.limit
    return f"{value} at load {row.load:.0f}: " + ("reached" if reached else _missed(*sorted((row.value, target.limit))))


@cache
def _newest() -> dict[tuple[str, int, str], Row]:
    return {(row.name, row.n, row.database): row for row in rows()}


def _when(row: Row) -> str:
    return f"{row.date[:10]} (`{row.commit}`)"


def _missed(smaller: float, larger: float) -> str:
    return f"**missed** by a factor of {larger / smaller:.2f}" if smaller else "**missed**"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _machines() -> str:
    programs = ("python", "sqlite", "SQLAlchemy", "psycopg", "orjson", "taskflow")
    sentences = (
        f"{one['cores']} cores ({one['cpu']}), {one['memory_gib']} GiB, {one['system']}; "
        + ", ".join(f"{name} {one[name]}" for name in programs)
        for one in machines()
    )
    return "\n".join(f"- {sentence}" for sentence in dict.fromkeys(sentences))


def _load() -> str:
    loads = [row.load for row in rows()]
    return f"between {min(loads):.0f} and {max(loads):.0f} other processes"


def _sizes(shape: str) -> str:
    """One line an operation, database and size."""
    columns = ("seconds", "cpu_seconds", "peak_memory", "statements", "database")
    table: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in rows():
        operation, _, rest = row.name.partition(".")
        what = rest.removeprefix(f"{shape}.")
        if rest.startswith(f"{shape}.") and what in columns:
            table.setdefault((operation, row.database, row.n), {})[what] = row
    return "\n".join(
        f"| {operation.replace('_', ' ')} | {database} | {n:,} | "
        + " | ".join(_number(columns_of[name].value) for name in columns)
        + f" | {_when(columns_of[columns[0]])} |"
        for (operation, database, n), columns_of in sorted(table.items(), key=lambda each: each[0][1:])
    )


def _requests() -> Iterator[str]:
    """One line for each count of requests, with what was requested."""
    for figure, words, many in REQUESTS:
        for row in rows():
            if row.name == figure:
                which = row.about.replace("|", "\\|")
                yield f"| {words} | {many * row.n:,} | {_number(row.value)} {row.unit} | {which} |"


def main() -> None:
    draw()
    PAGE.write_text(page(), encoding="utf-8")
    partition_page.main()


if __name__ == "__main__":
    main()
