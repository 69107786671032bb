"""Many clients at once, and processes of the service that die meanwhile: nothing that was accepted is lost."""

import os
import signal
import threading
from pathlib import Path

from bench.crowd import CrowdPlan, crowd
from bench.serving import serving, url_of

from homeostat.cli.state_directory import State
from homeostat.store.database import sqlite_url

PLAN = CrowdPlan(clients=20, seconds=12.0, pause_s=0.2, writes=0.5, least=101)
KILLED = ("worker", "api-1", "worker", "api-2")
"""Processes that are killed, one after the other."""


def test_nothing_that_was_accepted_is_lost(tmp_path: Path) -> None:
    with serving(sqlite_url(tmp_path / "homeostat.db"), apis=2) as state:
        killed = threading.Event()
        killer = threading.Thread(target=_kill, args=(state, killed))
        killer.start()
        outcome = crowd(url_of(state), PLAN)
        killer.join()
    assert killed.is_set()
    assert outcome.lost == []
    assert outcome.writes >= PLAN.least
    assert outcome.refused == []  # connections of a killed process break; no answer is wrong


def _kill(state: State, killed: threading.Event) -> None:
    """A process every few seconds, while the clients are there."""
    for name in KILLED:
        if killed.wait(PLAN.seconds / (len(KILLED) + 1)):
            return
        there = state.running()
        assert there is not None
        os.kill(there.children[name], signal.SIGKILL)
    killed.set()
