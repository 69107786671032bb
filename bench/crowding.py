"""The CPU time of a creation on a crowded machine beside that on a quiet one, and the deletion of a large tree."""

import contextlib
import multiprocessing
import time
from collections.abc import Iterator

from bench.cpu import cpu_s
from bench.databases import database_url, opened
from bench.figures import Figure
from bench.lifecycle import best_of
from bench.processes import complete, running_workers, wait_for_rest
from bench.shapes import SHAPES
from homeostat.clock import Entropy
from homeostat.services.quotas import Quotas
from homeostat.services.stacks import StackService

OTHERS = 20


def crowding(n: int, database: str, repeat: int) -> Iterator[Figure]:
    """Create n resources with and without twenty busy processes beside it, in turns."""
    ratios = []
    for _ in range(repeat):
        alone, crowded = (_create_s(n, database, count) for count in (0, OTHERS))
        ratios.append(crowded / alone)
    about = f"{OTHERS} busy processes; median of {', '.join(f'{each:.3f}' for each in sorted(ratios))}"
    yield Figure("create.crowded.to_alone", sorted(ratios)[len(ratios) // 2], "ratio", n, database, about)


def _create_s(n: int, database: str, others: int) -> float:
    context = multiprocessing.get_context("spawn")
    busy = [context.Process(target=_be_busy, daemon=True) for _ in range(others)]
    for each in busy:
        each.start()
    try:
        return best_of("independent", n, 1, database)[0].cpu_s
    finally:
        for each in busy:
            each.terminate()
            each.join()


def _be_busy() -> None:
    while True:
        pass


def felling(n: int, database: str) -> Iterator[Figure]:
    """Delete a tree of n nested stacks, by a worker process."""
    with contextlib.ExitStack() as context:
        url = context.enter_context(database_url(database))
        db = context.enter_context(contextlib.closing(opened(url)))
        pids = context.enter_context(running_workers(url, 1))
        stacks = StackService(db, Entropy(), Quotas(resources_max=10 * n))
        tree = stacks.create("bench", None, "tree", SHAPES["tree"].request(n))
        complete(db, [tree])
        before_s, began = cpu_s(pids), time.monotonic()
        stacks.delete(tree)
        wait_for_rest(db)
        seconds, cpu = time.monotonic() - began, cpu_s(pids) - before_s
    yield Figure("delete.tree.worker.seconds", seconds, "s", n, database)
    yield Figure("delete.tree.worker.cpu", cpu, "CPU s", n, database)
