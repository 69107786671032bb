"""Streams of change notices: many are looked at together, and those about things of others cost next to nothing."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import pytest

from homeostat.clouds.port import ChangeNotice, Cloud
from homeostat.clouds.simulated import SimulatedCloud
from homeostat.convergence import observer as observers
from homeostat.convergence.observer import CloudNotices, Observer
from homeostat.model.errors import Outage
from homeostat.model.observed import Observation
from tests.component.running import Service, server
from tests.waiting import until

FLOOD = 5000


class Stream:
    """A cloud of which only the notices are used."""

    def __init__(self, notices: list[ChangeNotice]) -> None:
        self.notices = notices
        self.breaks = 0

    def watch(self, stop: Callable[[], bool]) -> Iterator[ChangeNotice]:
        while not stop() and self.notices:
            yield self.notices.pop(0)
            if self.breaks:
                self.breaks -= 1
                raise ConnectionError("the bus is away")


class Looks:
    """An observer that counts."""

    def __init__(self, observer: Observer | None = None) -> None:
        self.batches: list[list[ChangeNotice]] = []
        self._observer = observer

    def notice(self, seen: Iterable[ChangeNotice]) -> None:
        batch = list(seen)
        if self._observer is not None:
            self._observer.notice(batch)
        self.batches.append(batch)

    @property
    def seen(self) -> list[ChangeNotice]:
        return [each for batch in self.batches for each in batch]


def follow(looks: Looks, stream: Stream) -> CloudNotices:
    followed = CloudNotices(cast(Observer, looks), cast(Cloud, stream))
    followed.start()
    return followed


@pytest.mark.shows("CV7")
def test_a_flood_about_things_of_others_costs_few_looks_and_no_call_of_the_cloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    service.create({"a": server()})
    service.rest()
    service.cloud.change(service.servers()[0], status="stopped")
    ours = ChangeNotice("server", service.servers()[0])
    calls: list[Sequence[str]] = []
    observe = SimulatedCloud.observe

    def counted(cloud: SimulatedCloud, kind: str, handles: Sequence[str]) -> list[Observation]:
        calls.append(handles)
        return observe(cloud, kind, handles)

    monkeypatch.setattr(SimulatedCloud, "observe", counted)
    looks = Looks(service.observer)
    strangers = [ChangeNotice("server" if n % 2 else "no such kind", f"other-{n}") for n in range(FLOOD)]
    followed = follow(looks, Stream([*strangers, ours, *strangers]))
    until(lambda: ours in looks.seen)
    followed.stop()
    # Only now: all threads share the single connection of a database in memory.
    assert service.board.job_count == 1
    assert calls == [[ours.handle]]
    assert len(looks.batches) <= FLOOD / 100


class Held(Looks):
    """An observer whose first look takes until `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()

    def notice(self, seen: Iterable[ChangeNotice]) -> None:
        self.begun.set()
        assert self.go.wait(60)
        super().notice(seen)


def numbered(*numbers: int) -> list[ChangeNotice]:
    return [ChangeNotice("server", str(number)) for number in numbers]


def looked_at(*later: int) -> list[str]:
    """The handles of the second look, if these notices come during the first one."""
    looks = Held()
    followed = follow(looks, Stream(numbered(0)))
    try:
        assert looks.begun.wait(60)
        for notice in numbered(*later):
            followed._add(notice)
        looks.go.set()
        until(lambda: len(looks.batches) == 2)
    finally:
        looks.go.set()
        followed.stop()
    return [each.handle for each in looks.batches[1]]


def test_the_first_notice_after_a_quiet_time_is_looked_at_at_once_and_those_that_follow_are_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observers, "GATHER_S", 1e6)
    looks = Looks()
    followed = follow(looks, Stream(numbered(1)))
    until(lambda: looks.seen == numbered(1))
    followed._add(*numbered(2))
    time.sleep(0.1)
    assert looks.seen == numbered(1)
    followed.stop()


def test_the_same_notice_is_looked_at_once() -> None:
    assert looked_at(1, 1, 2, 1) == ["1", "2"]


def test_a_broken_stream_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "REOPEN_S", 0.01)
    stream, looks = Stream(numbered(1, 2)), Looks()
    stream.breaks = 1
    followed = follow(looks, stream)
    until(lambda: looks.seen == numbered(1, 2))
    followed.stop()


def test_where_too_many_wait_the_oldest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "NOTICES_MAX", 3)
    assert looked_at(*range(5)) == ["2", "3", "4"]


class Refusing(Looks):
    """An observer whose database is away, or full, for so many looks."""

    def __init__(self, outages: int) -> None:
        super().__init__()
        self.outages = outages

    def notice(self, seen: Iterable[ChangeNotice]) -> None:
        if self.outages:
            self.outages -= 1
            raise Outage("the database does not answer", "database or disk is full")
        super().notice(seen)


def test_notices_wait_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they are about is seen as soon as that is over, and not only at the next look."""
    monkeypatch.setattr(observers, "AGAIN_S", 0.01)
    notices = [ChangeNotice("server", f"h{number}") for number in range(3)]
    looks = Refusing(outages=5)
    followed = follow(looks, Stream(list(notices)))
    try:
        until(lambda: set(looks.seen) == set(notices), "all notices")
        assert looks.outages == 0
    finally:
        followed.stop()
