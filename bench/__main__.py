"""`python -m bench`: prints one JSON object a line: name, value, unit, n."""

import argparse
import json
import math
import multiprocessing
from collections import defaultdict

from bench.rows import bare_row_rate
from bench.stacks import SHAPES, Figure, lifecycle

SIZES = (100, 1_000, 10_000)


def show(name: str, value: float, unit: str, n: int) -> None:
    print(json.dumps({"name": name, "value": round(value, 6), "unit": unit, "n": n}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of resources")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each size; the fastest counts")
    arguments = parser.parse_args()
    by_operation: dict[tuple[str, str], list[Figure]] = defaultdict(list)
    for shape in SHAPES:
        for n in arguments.sizes:
            for figure in best_of(shape, n, arguments.repeat):
                by_operation[shape, figure.operation].append(figure)
                tell(figure)
    for (shape, operation), figures in by_operation.items():
        growth(f"{operation}.{shape}", figures)
    compare(by_operation)
    show("bare_rows", bare_row_rate(10_000), "resources/s", 10_000)


def best_of(shape: str, n: int, repeat: int) -> list[Figure]:
    """The fastest run of each operation, each lifecycle in a process of its own so that memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        runs = [pool.apply(lifecycle, (shape, n)) for _ in range(repeat)]
    return [min(same, key=lambda figure: figure.seconds) for same in zip(*runs, strict=True)]


def tell(figure: Figure) -> None:
    name = f"{figure.operation}.{figure.shape}"
    show(f"{name}.rate", figure.n / figure.seconds, "resources/s", figure.n)
    show(f"{name}.cpu", figure.cpu_s / figure.n, "CPU s/resource", figure.n)
    show(f"{name}.peak_memory", figure.peak_mib, "MiB", figure.n)


def growth(name: str, figures: list[Figure]) -> None:
    """Exponent of the growth between the two largest sizes: 1 is linear. That of CPU time disregards the neighbours."""
    if len(figures) < 2:
        return
    small, large = sorted(figures, key=lambda figure: figure.n)[-2:]
    ratio = math.log(large.n / small.n)
    show(f"{name}.growth", math.log(large.seconds / small.seconds) / ratio, "exponent", large.n)
    show(f"{name}.growth_cpu", math.log(large.cpu_s / small.cpu_s) / ratio, "exponent", large.n)


def compare(by_operation: dict[tuple[str, str], list[Figure]], n: int = 1_000) -> None:
    """What a resource of a chain costs, as a multiple of an independent one."""
    flat = [figure for figure in by_operation["independent", "create"] if figure.n == n]
    chained = [figure for figure in by_operation["chain", "create"] if figure.n == n]
    for one, other in zip(flat, chained, strict=True):
        show("create.chain_to_independent", other.seconds / one.seconds, "ratio", n)
        show("create.chain_to_independent_cpu", other.cpu_s / one.cpu_s, "ratio", n)


if __name__ == "__main__":
    main()
