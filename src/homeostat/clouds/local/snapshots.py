"""Snapshots of the local cloud: copies of a volume's data or of a server's disk, which outlive their source.

    snapshots/<id>/  thing.json  lock  data/ (data.new during the copy)

The thread that copies holds the file `lock`. An unfinished copy whose lock is free was lost with its process: it is not
listed, and is restarted when the snapshot is requested again.
"""

import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

from homeostat.clouds.local.family import Family, identity
from homeostat.clouds.local.files import remove_tree
from homeostat.clouds.local.tree import MissingRecord, ThingRecord, Tree
from homeostat.clouds.local.tree_snapshot import TreeSnapshot
from homeostat.clouds.port import Change, Creation, Operation
from homeostat.model.errors import HomeostatError, Terminal
from homeostat.model.plan import snapshots_of

LOG = logging.getLogger(__name__)
KIND = "snapshot"
Source = Callable[[], AbstractContextManager[str]]
"""Context manager that yields the directory to copy, and prevents changes during the copy."""


class Snapshots:
    """Takes snapshots, in a small thread pool."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def take(self, of: ThingRecord, operation: Operation, source: Source) -> None:
        """Start to copy, unless the token's snapshot is being copied or complete.

        Raises:
            Terminal: The operation has no token.
        """
        token = str(operation.arguments.get("token") or "")
        if not token:
            raise Terminal("A snapshot needs a token")
        record = self._tree.read(KIND, identity(KIND, token)) or self._begin(of, token, operation.arguments)
        if record.facts["status"] != "creating":
            return
        # The lock is taken here and released by the copying thread, so that no second copy starts in between.
        held = _hold(self._lock_of(record))
        if held is not None:
            self._tree.threads.copies.submit(self._copy, record, source, held)

    def _begin(self, of: ThingRecord, token: str, arguments: Mapping[str, Any]) -> ThingRecord:
        spec = {"name": arguments.get("name") or of.spec.get("name") or of.id}
        facts = {"status": "creating", "source_kind": of.kind, "source_id": of.id, "size": of.facts.get("size")}
        record = ThingRecord(KIND, identity(KIND, token), token, spec, facts, time.time())
        self._tree.write(record)
        return record

    def _lock_of(self, record: ThingRecord) -> str:
        return f"{self._tree.directory(KIND, record.id)}/lock"

    def _copy(self, record: ThingRecord, source: Source, held: int) -> None:
        data = snapshot_data(self._tree, record.id)
        try:
            if not os.path.isdir(data):
                self._copy_whole(source, data)
            self._note(record, status="available")
        except _Stopped:
            return
        except HomeostatError as error:
            LOG.warning("snapshot %s is given up, and begun anew when it is asked for again: %s", record.id, error)
        except OSError as error:
            self._note(record, status="error", fault=_describe(error))
        finally:
            os.close(held)
            self._tidy(record)

    def _copy_whole(self, source: Source, data: str) -> None:
        partial = f"{data}.new"
        if os.path.isdir(partial):
            remove_tree(partial)
        with source() as directory:
            shutil.copytree(directory, partial, symlinks=True, ignore=_special, copy_function=self._copy_file)
        os.rename(partial, data)

    def _copy_file(self, source: str, target: str) -> None:
        if self._tree.threads.stop.is_set():
            raise _Stopped
        shutil.copy2(source, target, follow_symlinks=False)

    def _note(self, record: ThingRecord, **facts: Any) -> None:
        """Write facts to the record, unless the snapshot was deleted meanwhile."""
        with self._tree.lock():
            if not self._is_deleted(record):
                self._tree.write(replace(record, facts={**record.facts, **facts}))

    def _tidy(self, record: ThingRecord) -> None:
        """Remove the data of a snapshot that was deleted while it was copied."""
        with self._tree.lock():
            if self._is_deleted(record):
                self._tree.remove(KIND, record.id)

    def _is_deleted(self, record: ThingRecord) -> bool:
        """Return whether the record was removed; the copy may have left data without a record."""
        try:
            return self._tree.read(KIND, record.id) is None
        except MissingRecord:
            return True

    def of(self, look: TreeSnapshot, source: ThingRecord) -> dict[str, Any]:
        """Return the field `snapshots` of an object; {} without snapshots."""
        views = [view for record in look.referring(KIND, "source_id", source.id) if (view := self._shown(record))]
        return {"snapshots": views} if views else {}

    def _shown(self, record: ThingRecord) -> dict[str, Any] | None:
        status = record.facts["status"]
        if status == "creating" and not _is_held(self._lock_of(record)):
            return None
        fields = {"id": record.id, "token": record.token, "name": record.spec["name"], "status": status}
        fault = {"fault": record.facts["fault"]} if "fault" in record.facts else {}
        return {**fields, "created_at": record.created_at, **fault}


class SnapshotsOf(Family):
    """Snapshots as a separate kind, which can be observed, found and deleted.

    Attributes:
        source: Kind of their sources.
    """

    source: ClassVar[str]

    def carrying(self, look: TreeSnapshot, token: str) -> ThingRecord | None:
        return self.known_as(look, identity(KIND, token))

    def known_as(self, look: TreeSnapshot, handle: str) -> ThingRecord | None:
        record = look.get(KIND, handle)
        return record if record is not None and record.facts["source_kind"] == self.source else None

    def show(self, look: TreeSnapshot, record: ThingRecord) -> dict[str, Any]:
        return {"id": record.id, "token": record.token, "name": record.spec["name"], "status": record.facts["status"]}

    def begin(self, look: TreeSnapshot, intent: Creation) -> ThingRecord:
        raise Terminal(f"A {self.kind} is made by the operation `snapshot` of a {self.source}")

    def change(self, look: TreeSnapshot, change: Change) -> ThingRecord | None:
        raise Terminal(f"A {self.kind} does not change")


class ServerSnapshots(SnapshotsOf):
    source = "server"
    kind = snapshots_of(source)


class VolumeSnapshots(SnapshotsOf):
    source = "volume"
    kind = snapshots_of(source)


class _Stopped(Exception):
    """The cloud is being closed."""


def snapshot_data(tree: Tree, id: str) -> str:
    return f"{tree.directory(KIND, id)}/data"


def complete_snapshot(tree: Tree, id: str, source_kind: str) -> ThingRecord | None:
    """Return the snapshot with this id if it is complete and of a source of this kind, else None."""
    record = tree.read(KIND, id)
    fits = record is not None and record.facts["status"] == "available" and record.facts["source_kind"] == source_kind
    return record if fits else None


def _hold(path: str) -> int | None:
    """Take a lock; return the descriptor that holds it until closed, or None if the lock is taken."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_held(path: str) -> bool:
    """Return whether a lock is taken.

    The check takes the lock for a moment: a concurrent `take` then assumes a running copy, and has to be retried.
    """
    descriptor = _hold(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def _special(directory: str, names: list[str]) -> list[str]:
    """Return the names that are not copied: sockets, pipes and devices, which hold no data."""
    return [name for name in names if not _has_data(os.lstat(f"{directory}/{name}").st_mode)]


def _has_data(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _describe(error: OSError) -> str:
    """Return the message of an error; for the list of errors of a copy, the first."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        source, _, why = error.args[0][0]
        return f"{source} cannot be copied: {why}"
    return str(error)
