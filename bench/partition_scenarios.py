"""What may happen to a service of several partitions, played: one is away, one is emptied, one project is hot."""

from dataclasses import dataclass
from functools import partial

from bench.load import PER_STACK
from bench.partitions import ROUND, Load, Machine, Partition, shown_ms
from bench.queueing import Timeline, visit

SMALL = 8
"""Cores of the servers that are played here, so that a minute of them is played in a second."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Of several partitions one is away for some seconds.

    Attributes:
        refused: Requests that it did not take.
        before_ms, meanwhile_ms, after_ms: 99th percentile of showing a stack in the others before and meanwhile, and in
            this one in the seconds after its return.
        caught_up_s: Seconds from its return until every look that was due had been taken.
    """

    refused: int
    before_ms: float
    meanwhile_ms: float
    after_ms: float
    caught_up_s: float


def outage(load: Load, machine: Machine, away_s: float, settle_s: float = 10.0, seed: int = 1) -> Outage:
    """Play two partitions, of which the second one goes away."""
    timeline = Timeline(seed)
    other, this = Partition(timeline, machine, load), Partition(timeline, machine, load)
    other.start()
    this.start()
    timeline.run(settle_s)
    this.is_away = True
    timeline.run(settle_s + away_s)
    this.is_away = False
    this.look()
    returned_at, caught_up_at = timeline.now, 0.0
    while not caught_up_at:
        timeline.run(timeline.now + 0.25)
        if this.owed < 2 * ROUND:
            caught_up_at = timeline.now
    timeline.run(max(timeline.now, returned_at + settle_s))
    return Outage(
        len(this.refused),
        shown_ms(other, settle_s / 5, settle_s)[1],
        shown_ms(other, settle_s, returned_at)[1],
        shown_ms(this, returned_at, returned_at + settle_s)[1],
        caught_up_at - returned_at,
    )


@dataclass(frozen=True, slots=True)
class Emptied:
    """Stacks move from one partition to another, some of them at a time.

    Attributes:
        stacks_s: Stacks that move in a second.
        hours: How long all of them take at that.
        p99_ms: Of showing a stack of the partition that they move to.
        server: Share of that one's server that is busy.
    """

    stacks_s: float
    hours: float
    p99_ms: float
    server: float


def emptied(load: Load, machine: Machine, side_by_side: int, seconds: float, seed: int = 1) -> Emptied:
    """Play the moves: show and export a stack, abandon it; adopt it on the other side, and look whether it is well."""
    timeline = Timeline(seed)
    old, new = Partition(timeline, machine, load), Partition(timeline, machine, load)
    moved = 0

    def move() -> None:
        stops = [
            partial(old.request, "show"),
            partial(old.request, "list_resources"),
            partial(old.request, "delete"),
            partial(new.request, "create"),
            partial(new.request, "no_op_update"),
        ]
        visit(stops, done)

    def done() -> None:
        nonlocal moved
        moved += 1
        move()

    old.start()
    new.start()
    for _ in range(side_by_side):
        move()
    timeline.run(seconds)
    rate = moved / seconds
    p99 = shown_ms(new, seconds / 5, seconds)[1]
    return Emptied(rate, load.resources / PER_STACK / rate / 3600, p99, new.server.busy_s / new.server.count / seconds)


def hot(load: Load, machine: Machine, times: float, seconds: float, seed: int = 1) -> tuple[float, float]:
    """Median and 99th percentile for all projects of a partition, when one sends `times` as much as all others."""
    timeline = Timeline(seed)
    one = Partition(timeline, machine, load)
    one.start(load.requests_s * (1 + times))
    timeline.run(seconds)
    return shown_ms(one, seconds / 5, seconds)
