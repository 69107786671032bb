"""A process gives memory back that is free in it."""

import threading

import pytest

from homeostat.observability import memory
from homeostat.observability.memory import GROWN, Memory

PIECES = 60_000


def _litter(kept: list[bytes]) -> None:
    """Take much in small pieces, and keep a few of them in between."""
    pieces = [bytes(4000) for _ in range(PIECES)]
    kept += pieces[::500]


@pytest.mark.skipif(memory.allocator() is None or not memory.resident(), reason="the system has no such allocator")
def test_what_is_free_after_heavy_work_goes_back() -> None:
    held, kept = Memory(), list[bytes]()
    before = memory.resident()
    work = threading.Thread(target=_litter, args=(kept,))
    work.start()
    work.join()
    grown = memory.resident() - before
    held.tidy()
    assert kept
    assert grown < GROWN or memory.resident() - before < grown / 2


def test_nothing_is_done_where_little_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([100, 100 + GROWN - 1, 100 + GROWN, 150])
    calls: list[int] = []
    monkeypatch.setattr(memory, "resident", lambda: next(sizes))
    monkeypatch.setattr(memory, "allocator", lambda: lambda pad: calls.append(pad))
    held = Memory()
    assert held.tidy() == 0
    assert calls == []
    assert held.tidy() == GROWN - 50
    assert calls == [0]
