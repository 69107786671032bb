"""Which partition a project goes to: how full the fullest gets, and how many partitions it takes so that all fit."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from statistics import fmean

ZIPF = 1.0
"""Exponent of the sizes of projects: the one of rank r has 1 / r ** ZIPF of what the largest has."""
PROJECTS = 2_000
SEEDS = range(10)
COUNT_MAX = 200
Placing = Callable[[Sequence[float], int, int], list[float]]
"""Shares of the projects, number of partitions, seed -> share of each partition."""


@cache
def shares(projects: int = PROJECTS, exponent: float = ZIPF) -> Sequence[float]:
    """What share of all resources each project has, the largest first."""
    weights = [1 / rank**exponent for rank in range(1, projects + 1)]
    return tuple(each / sum(weights) for each in weights)


def by_hash(of: Sequence[float], count: int, seed: int) -> list[float]:
    """The hash of a project's id says where it is: anywhere, whatever its size."""
    found, random = [0.0] * count, Random(seed)
    for share in of:
        found[random.randrange(count)] += share
    return found


def by_load(of: Sequence[float], count: int, seed: int) -> list[float]:
    """A new project goes to the partition that has the least; projects come in any order, as large as they will be."""
    order = list(of)
    Random(seed).shuffle(order)
    return _to_the_least(order, count)


def by_moves(of: Sequence[float], count: int, seed: int) -> list[float]:
    """Projects are moved until the largest are spread, and the others fill what is left."""
    del seed
    return _to_the_least(of, count)


def _to_the_least(of: Sequence[float], count: int) -> list[float]:
    found = [(0.0, number) for number in range(count)]
    for share in of:
        least, number = found[0]
        heapq.heapreplace(found, (least + share, number))
    return [share for share, _ in found]


PLACINGS: Mapping[str, Placing] = {"by hash": by_hash, "by load": by_load, "by load, and moved": by_moves}


@cache
def fullest(name: str, count: int) -> tuple[float, float]:
    """Mean and worst share of the fullest partition, over the seeds."""
    found = [max(PLACINGS[name](shares(), count, seed)) for seed in SEEDS]
    return fmean(found), max(found)


def partitions(name: str, resources: float, limit: float) -> int | None:
    """How many partitions it takes so that the fullest fits, whatever the seed; None if no number does."""
    if shares()[0] * resources > limit:  # a project is not split
        return None
    first = max(1, -(-int(resources) // int(limit)))
    return next((n for n in range(first, COUNT_MAX) if fullest(name, n)[1] * resources <= limit), None)
