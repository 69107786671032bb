"""The page about partitions says what the model and the simulation give, and these agree with what was measured."""

from statistics import fmean

import pytest
from bench import partition_page, partitions, placing
from bench.load import RATES
from bench.pictures import IMAGES
from bench.queueing import Cores, Log, Timeline

WITHIN = 0.25
"""How far what is simulated may be from what was measured."""


def test_the_page_and_its_pictures_are_what_the_simulation_says() -> None:
    assert partition_page.PAGE.read_text(encoding="utf-8") == partition_page.page(), "run `python -m bench.report`"
    for file, drawn in partition_page.pictures().items():
        assert (IMAGES / file).read_text(encoding="utf-8") == drawn, "run `python -m bench.report`"


def test_the_page_has_every_table() -> None:
    written = [found[2] for found in partition_page.BLOCK.finditer(partition_page.PAGE.read_text(encoding="utf-8"))]
    assert sorted(written) == sorted(partition_page.BLOCKS)


def test_the_higher_load_takes_what_is_simulated() -> None:
    """What the lower one took made the costs of single operations those of operations that come by themselves."""
    parts = partition_page.checked(max(RATES))
    assert {part: said for part, (_, said) in parts.items()} == {
        part: pytest.approx(took, rel=WITHIN) for part, (took, _) in parts.items()
    }


def test_the_growth_from_one_load_to_the_other_is_the_measured_one() -> None:
    low, high = (partition_page.checked(rate) for rate in sorted(RATES))
    for part, (took, said) in high.items():
        assert said / low[part][1] == pytest.approx(took / low[part][0], rel=WITHIN), part


def test_a_queue_of_random_jobs_is_as_long_as_theory_says() -> None:
    """Poisson arrivals at one core that is busy half of the time take twice as long as their service."""
    timeline, took = Timeline(1), list[float]()
    core = Cores(timeline, 1)

    def arrive() -> None:
        began = timeline.now
        core.serve(1.0, lambda: took.append(timeline.now - began))
        timeline.after(timeline.random.expovariate(0.5), arrive)

    arrive()
    timeline.run(40_000)
    assert core.busy_s / timeline.now == pytest.approx(0.5, rel=0.05)
    assert fmean(took) == pytest.approx(2.0, rel=0.1)


def test_transactions_that_wait_share_a_sync() -> None:
    timeline, ended = Timeline(1), list[float]()
    log = Log(timeline, 1.0)
    for at in (0.0, 0.1, 0.9):
        timeline.after(at, lambda: log.commit(lambda: ended.append(timeline.now)))
    timeline.run(10.0)
    assert ended == [1.0, 2.0, 2.0]
    assert (log.syncs, log.transactions) == (2, 3)


def test_the_same_seed_plays_the_same() -> None:
    load = partitions.Load.of(100_000)
    machine = partitions.Machine(cores=2)
    assert partitions.played(load, machine, 2.0, seed=7) == partitions.played(load, machine, 2.0, seed=7)
    assert partitions.played(load, machine, 2.0, seed=7) != partitions.played(load, machine, 2.0, seed=8)


@pytest.mark.parametrize("name", placing.PLACINGS)
def test_every_project_is_in_one_partition(name: str) -> None:
    assert sum(placing.PLACINGS[name](placing.shares(), 4, 1)) == pytest.approx(1.0)


def test_a_project_that_fits_nowhere_is_not_split() -> None:
    largest = placing.shares()[0]
    assert placing.partitions("by load, and moved", 1_000, 1_000 * largest * 0.99) is None
    assert placing.partitions("by load, and moved", 1_000, 1_000 * largest * 1.01) is not None
