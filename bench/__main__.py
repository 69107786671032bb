"""Measures Homeostat: prints one JSON object a line, the machine first, then a figure each."""

import argparse
import sys
import time

from bench.benchmarks import BENCHES, Wanted
from bench.capacity import DESCRIBED
from bench.databases import KINDS, SETTINGS
from bench.records import Row, head, row_of, write

EPILOG = """
Examples:
  python -m bench --write                             the table of costs, on all databases, into bench/results
  python -m bench --quick                             the same at small sizes: does each benchmark work?
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
QUICK_S = 3.0


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:17} {'* ' if bench.usual else '  '}{bench.what}" for name, bench in BENCHES.items())
    made = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"{__doc__}\n\nBenchmarks, those of the table of costs with *:\n{names}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = [name for name, bench in BENCHES.items() if bench.usual]
    made.add_argument("--only", nargs="+", choices=BENCHES, default=usual, help="default: the table of costs")
    made.add_argument("--sizes", type=int, nargs="+", help="numbers of resources; default: those of each benchmark")
    made.add_argument("--repeat", type=int, default=3, help="runs of each size; the fastest counts")
    made.add_argument("--database", choices=KINDS, nargs="+", default=KINDS, help="default: all")
    made.add_argument("--clients", type=int, default=50, help="of the crowd; default: 50")
    made.add_argument("--seconds", type=float, default=30.0, help="length of a measurement at rest, or of the crowd")
    made.add_argument("--pause", type=float, default=1.0, help="seconds between requests of one; default: 1")
    made.add_argument("--minutes", type=float, default=30.0, help="begin no further benchmark later; default: 30")
    made.add_argument("--quick", action="store_true", help="small sizes, once")
    made.add_argument("--write", action="store_true", help="keep the figures in bench/results")
    return made


def main() -> None:
    arguments = parser().parse_args()
    settings = {kind: SETTINGS[kind] for kind in arguments.database} | {"capacity": DESCRIBED}
    first, ends_at = head(settings), time.monotonic() + arguments.minutes * 60
    print(first, flush=True)
    for name in arguments.only:
        bench = BENCHES[name]
        if time.monotonic() > ends_at:
            print(f"{name} was not begun: {arguments.minutes:g} minutes are over", file=sys.stderr)
            continue
        wanted = Wanted(
            sizes=arguments.sizes or list(bench.quick if arguments.quick else bench.sizes),
            repeat=1 if arguments.quick else arguments.repeat,
            databases=arguments.database,
            clients=arguments.clients,
            seconds=QUICK_S if arguments.quick else arguments.seconds,
            pause_s=arguments.pause,
        )
        rows: list[Row] = []
        for figure in bench.run(wanted):
            rows.append(row_of(figure, name, bench.code))
            print(rows[-1].line(), flush=True)
        if arguments.write:
            write(name, first, rows)


if __name__ == "__main__":
    main()
