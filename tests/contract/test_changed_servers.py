"""What one worker notes of servers that it is about to change, all others know."""

import contextlib
import time

import pytest

from homeostat.clouds.openstack import changed_servers as port
from homeostat.store.database import Database
from homeostat.store.operation import changed_servers
from homeostat.store.operation.changed_servers import KEPT_S, ChangedServers


def test_what_one_process_notes_another_one_reads(database: Database) -> None:
    one = ChangedServers(database)
    with contextlib.closing(Database(database.url, time.time)) as of_another:
        other = ChangedServers(of_another)
        one.note("p", "s")
        one.note("q", "t")
        assert other.ages("p") == {"s": pytest.approx(0.0, abs=5.0)}
        other.note("p", "s")
        assert [*one.ages("p")] == ["s"]
        assert one.ages("r") == {}


def test_notes_are_given_out_for_some_minutes_and_removed_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = ChangedServers(database)
    noted.note("p", "s")
    monkeypatch.setattr(database, "now_of", lambda tx: time.time() + KEPT_S + 60.0)
    assert noted.ages("p") == {}
    monkeypatch.setattr(database, "now_of", lambda tx: time.time() + 3 * changed_servers.FORGET_S)
    monkeypatch.setattr(noted, "_forgotten_at", -changed_servers.FORGET_S)
    noted.note("p", "t")
    monkeypatch.undo()
    assert [*noted.ages("p")] == ["t"]


def test_notes_are_kept_for_as_long_as_looks_need_them() -> None:
    assert KEPT_S == port.KEPT_S
