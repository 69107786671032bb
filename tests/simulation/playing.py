"""One seed after the other: what each gave, and how a failing one is played again. `make seeds` plays many.

    python -m tests.simulation.playing --first 20000000 --seeds 1000 --minutes 30

on all cores (of another ring with --ring health, as its tests are named) tells how far it is and what failed on
standard error, and prints one JSON object at the end: ring, first, seeds (how many were played), failures (seed, error,
replay each), cpu_s, cpu_s_per_seed, elapsed_s, memory_mb. Exit code 1 when any failed. With --regressions those that
failed once are played before them.
"""

import argparse
import json
import logging
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from tests.simulation.regressions import REGRESSIONS
from tests.simulation.trouble import troubled
from tests.simulation.world import World

MAIN = "ring"
"""The ring with every sort of trouble."""
REPORT_EVERY_S = 10.0


class Played(NamedTuple):
    """What one seed gave: the story, and how often what happened."""

    lines: list[str]
    happened: Counter[str]


class Ring:
    """One sort of worlds.

    Takes: name — as its tests are named; world — makes the one of a seed, perhaps with options.
    """

    def __init__(self, name: str, world: Callable[..., World]) -> None:
        self.name = name
        self._world = world
        self.played = cache(self.play)

    def play(self, seed: int, **options: Any) -> Played:
        """Fails: AssertionError with what happened and how to replay it."""
        with with_story(self._world(seed, **options), seed, replay(seed, self.name)) as world:
            world.run()
        return Played(world.story.lines, world.happened)

    def play_until(self, seeds: Iterable[int], at_least: Mapping[str, int], **options: Any) -> None:
        """Play seeds until enough has happened in their worlds together: what one of them holds changes with the
        service. at_least — what has to happen, and how often.

        Fails: AssertionError with what is not enough after all seeds.
        """
        left = dict(at_least)
        for seed in seeds:
            happened = self.played(seed, **options).happened
            left = {name: rest - happened[name] for name, rest in left.items()}
            if all(rest <= 0 for rest in left.values()):
                return
        short = {name: f"{at_least[name] - rest} of {at_least[name]}" for name, rest in left.items() if rest > 0}
        raise AssertionError(f"not enough happens in these worlds: {short}")


RING = Ring(MAIN, troubled)


def seeds_to_play(count: int) -> range:
    """So many, from the first; `HOMEOSTAT_SEEDS=1000` plays more, `HOMEOSTAT_FIRST_SEED=4711` others."""
    first = int(os.environ.get("HOMEOSTAT_FIRST_SEED", "0"))
    return range(first, first + int(os.environ.get("HOMEOSTAT_SEEDS", count)))


def replay(seed: int, ring: str = MAIN) -> str:
    """The command that plays one seed of a ring again."""
    return f"make seeds RING={ring} FIRST={seed} SEEDS=1"


def rings() -> list[str]:
    """The names of all rings: each is a file of tests, one of which plays one seed."""
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    return [file.stem.removeprefix("test_") for file in files if "seeds_to_play(" in file.read_text()]


def player(ring: str) -> Callable[[int], object]:
    """What plays one seed of a ring, and fails where an invariant is broken."""
    if ring == MAIN:
        return RING.play
    tests = vars(import_module(f"tests.simulation.test_{ring}")).values()
    (invariant,) = [test for test in tests if any(mark.args[0] == "seed" for mark in _parametrized(test))]
    return cast(Callable[[int], object], invariant)


def _parametrized(test: object) -> list[Any]:
    return [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]


@contextmanager
def with_story(world: World, seed: int, replay: str = "") -> Iterator[World]:
    """Close a world in the end. replay — the command that plays it again.

    Fails: AssertionError with the seed and all that happened in the world, where what is done with it fails.
    """
    with closing(world):
        try:
            yield world
        except Exception as error:
            again = [f"replay: {replay}"] if replay else []
            lines = [f"seed {seed}: {str(error) or repr(error)}", *world.story.lines, *again]
            raise AssertionError("\n".join(lines)) from error


class Ended(NamedTuple):
    """How one seed ended; error — its first line, empty where nothing was wrong."""

    seed: int
    error: str
    story: str
    cpu_s: float


def _end_of(ring: str, seed: int) -> Ended:
    before = time.process_time()
    try:
        player(ring)(seed)
        error = ""
    except AssertionError as failure:
        error = str(failure)
    return Ended(seed, error.partition("\n")[0], error, time.process_time() - before)


def _quietly() -> None:
    """In each process: what the service logs of its troubles is of no interest here, and its end is up to us."""
    logging.disable(logging.CRITICAL)


def _played(ring: str, seeds: Sequence[int], processes: int, until: float) -> Iterator[Ended]:
    """In any order; no seed is begun after that time. Each process makes place for a new one now and then."""
    with multiprocessing.get_context("spawn").Pool(processes, _quietly, maxtasksperchild=500) as pool:
        for ended in pool.imap_unordered(partial(_end_of, ring), seeds):
            yield ended
            if time.monotonic() > until:
                pool.terminate()
                return


def main() -> int:
    parser = argparse.ArgumentParser(description="Play many seeds of the simulation, on all cores.")
    parser.add_argument("--ring", choices=rings(), default=MAIN, help="which ring (default: the main one)")
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--regressions", action="store_true", help="play the seeds that failed once before them")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    began = reported_at = time.monotonic()
    seeds = [
        *(REGRESSIONS if options.regressions and options.ring == MAIN else ()),
        *range(options.first, options.first + options.seeds),
    ]
    ends: list[Ended] = []
    for ended in _played(options.ring, seeds, options.processes, began + 60.0 * options.minutes):
        ends.append(ended)
        if ended.error:
            print(ended.story, end="\n\n", file=sys.stderr, flush=True)
        if time.monotonic() - reported_at > REPORT_EVERY_S or len(ends) == len(seeds):
            reported_at = time.monotonic()
            failed = sum(bool(each.error) for each in ends)
            print(f"{len(ends)} of {len(seeds)} seeds, {failed} failed", file=sys.stderr, flush=True)
    summary = _summary(options.ring, options.first, ends, time.monotonic() - began)
    print(json.dumps(summary, indent=2))
    return 1 if summary["failures"] else 0


def _summary(ring: str, first: int, ends: list[Ended], elapsed_s: float) -> dict[str, Any]:
    cpu_s = sum(each.cpu_s for each in ends)
    return {
        "ring": ring,
        "first": first,
        "seeds": len(ends),
        "failures": [
            {"seed": each.seed, "error": each.error, "replay": replay(each.seed, ring)}
            for each in sorted(ends)
            if each.error
        ],
        "cpu_s": round(cpu_s, 1),
        "cpu_s_per_seed": round(cpu_s / max(len(ends), 1), 3),
        "elapsed_s": round(elapsed_s, 1),
        "memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    sys.exit(main())
