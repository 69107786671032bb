"""Servers about to be changed in ways that do not show in the cloud's list of changes (ADR 0100)."""

import threading
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Delete, Select, delete, select

from homeostat.clock import passed
from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.sql.prepared import prepared

_changed = schema.changed_server
KEPT_S = 900.0
"""Seconds for which notes are returned."""
FORGET_S = 3600.0
"""Interval in which each process deletes older notes, in seconds."""


class ChangedServers:
    """The notes of all processes. Safe to share between threads."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._forgotten_at = passed()

    def note(self, project: str, handle: str) -> None:
        """Note that a server is about to be changed."""
        self._forget_old()
        with self._db.write() as tx:
            at = tx.now()
            new = tx.insert(_changed).values(project=project, handle=handle, at=at)
            tx.execute(new.on_conflict_do_update(index_elements=["project", "handle"], set_={"at": at}))

    def ages(self, project: str) -> Mapping[str, float]:
        """Return handle -> seconds since the last note, for the notes of a project not older than `KEPT_S`."""
        with self._db.read() as tx:
            now = tx.now()
            return {row.handle: max(now - row.at, 0.0) for row in _since(tx, project, now - KEPT_S)}

    def _forget_old(self) -> None:
        with self._lock:
            if passed() < self._forgotten_at + FORGET_S:
                return
            self._forgotten_at = passed()
        with self._db.write() as tx:
            _forget(tx, tx.now() - FORGET_S)


@prepared
def _since(project: str, at: float) -> Select[Any]:
    return select(_changed.c.handle, _changed.c.at).where(_changed.c.project == project, _changed.c.at >= at)


@prepared
def _forget(before: float) -> Delete:
    return delete(_changed).where(_changed.c.at < before)
