"""What attacks have in common: they run one after the other beside a neighbour who keeps working, and what they cost
the processes of the service is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tests.attack.service import MEMORY_MAX_MB, READ_S, SMALL_STACK_S, Attacked, Neighbour
from tests.waiting import until

SMALL_STACKS = 3


class Named(Protocol):
    @property
    def name(self) -> str: ...


One = TypeVar("One", bound=Named)


@dataclass(slots=True)
class Outcome:
    """Of one attack. figures — printed with `-s`; wrong — what was not as promised."""

    figures: str = ""
    wrong: list[str] = field(default_factory=list)


def withstood(attacked: Attacked, attacks: Sequence[One], act: Callable[[Attacked, One], Outcome]) -> None:
    """Run all attacks against one service: each finds what the one before has left behind."""
    with Neighbour(attacked).living() as neighbour:
        wrong = [line for one in attacks for line in _measured(attacked, one, act)]
        until(lambda: len(neighbour.stacks) >= SMALL_STACKS, "some small stacks of the neighbour")
    assert wrong == []
    reads, stacks = (neighbour.percentile(times, 99) for times in (neighbour.reads, neighbour.stacks))
    print(f"{len(neighbour.reads)} reads: {reads * 1000:.0f} ms; {len(neighbour.stacks)} small stacks: {stacks:.1f} s")
    assert neighbour.errors == []
    assert reads <= READ_S
    assert stacks <= SMALL_STACK_S


def _measured(attacked: Attacked, one: One, act: Callable[[Attacked, One], Outcome]) -> list[str]:
    """What went wrong."""
    attacked.forget_peaks()
    before = attacked.pids()
    outcome = act(attacked, one)
    if attacked.pids() != before:
        return [f"{one.name}: {line}" for line in (*outcome.wrong, "a process has died")]
    peaks = attacked.peaks_mb()
    print(f"{one.name}: {', '.join(f'{name} {peak:.0f} MB' for name, peak in peaks.items())}; {outcome.figures}")
    heavy = [f"{peaks}"] if max(peaks.values()) > MEMORY_MAX_MB else []
    return [f"{one.name}: {line}" for line in (*outcome.wrong, *heavy)]
