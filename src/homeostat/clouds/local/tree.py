"""The state of the local cloud: one directory a thing, one `thing.json` in it, written whole or not at all.

Several service processes share one tree; what must not interleave happens under `Tree.lock`.

    ROOT/servers/<id>/thing.json …    ROOT/ports/<id>/thing.json    ROOT/snapshots/<id>/…    ROOT/.lock    ROOT/.trash/
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from homeostat.model.errors import Terminal, ambiguous

THING = "thing.json"
_RACY_S = 0.05
"""A file younger than this when it was read may change again without its time stamp changing."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing. spec — as last asked for; facts — what the cloud decided (addresses, power, ids of others).

    Neither mapping is ever changed in place: records are shared between threads.
    """

    kind: str
    id: str
    token: str
    spec: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    created_at: float = 0.0


class Tree:
    """Records on disk below `root` (made if missing)."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self._known: dict[str, tuple[tuple[int, int], Record]] = {}

    def directory(self, kind: str, id: str) -> str:
        """Where a thing lives. Any text is a safe id: nothing outside it can be named."""
        return f"{self.root}/{kind}s/{quote(id, safe='').replace('.', '%2E')}"

    @contextlib.contextmanager
    def lock(self, path: str | None = None) -> Iterator[None]:
        """Exclude other threads and processes; `path` — file to lock, None: the whole tree. Not reentrant."""
        descriptor = os.open(path or f"{self.root}/.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self, kind: str, id: str) -> Record | None:
        return self._load(self.directory(kind, id))

    def write(self, record: Record) -> None:
        directory = self.directory(record.kind, record.id)
        os.makedirs(directory, exist_ok=True)
        write_whole(f"{directory}/{THING}", json.dumps(asdict(record)))

    def remove(self, kind: str, id: str) -> None:
        """At once as others see it: the directory is moved away; `empty_trash` does what takes time."""
        trash = f"{self.root}/.trash"
        os.makedirs(trash, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.directory(kind, id), f"{trash}/{uuid.uuid4().hex}")

    def empty_trash(self) -> None:
        """Also of what an earlier process has left there. Not under a lock: others need not wait for it."""
        for entry in scan(f"{self.root}/.trash"):
            remove_tree(entry.path)

    def all(self, kind: str) -> dict[str, Record]:
        """Every record of a kind by id, oldest first; costs one stat each for those that did not change."""
        records = [record for entry in scan(f"{self.root}/{kind}s") if (record := self._load(entry.path))]
        records.sort(key=lambda record: record.created_at)
        return {record.id: record for record in records}

    def _load(self, directory: str) -> Record | None:
        """Parses only what changed since the last time."""
        path = f"{directory}/{THING}"
        try:
            stat = os.stat(path)
            signature = (stat.st_ino, stat.st_mtime_ns)
            known = self._known.get(path)
            if known is not None and known[0] == signature:
                return known[1]
            with open(path, encoding="utf-8") as file:
                record = Record(**json.load(file))
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(path, None)
            return None
        if time.time() - stat.st_mtime > _RACY_S:
            self._known[path] = (signature, record)
        return record


class Look:
    """One consistent look at the tree for the length of a batch: each kind is read at most once.

    Take it under `Tree.lock` when something is decided by it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._kinds: dict[str, dict[str, Record]] = {}

    def all(self, kind: str) -> dict[str, Record]:
        if kind not in self._kinds:
            self._kinds[kind] = self._tree.all(kind)
        return self._kinds[kind]

    def get(self, kind: str, id: str) -> Record | None:
        if kind in self._kinds:
            return self._kinds[kind].get(id)
        return self._tree.read(kind, id)

    def called(self, kind: str, reference: str) -> str | None:
        """Id of the thing of this id or name. Fails: Rejected when several have the name."""
        if self.get(kind, reference) is not None:
            return reference
        named = self._named(kind, reference)
        if len(named) > 1:
            raise ambiguous(reference)
        return named[0].id if named else None

    def _named(self, kind: str, name: str) -> list[Record]:
        return [record for record in self.all(kind).values() if record.spec.get("name") == name]

    def resolve(self, kind: str, reference: str) -> Record:
        """By id or else by name. Fails: Terminal when nothing or more than one thing is called so."""
        found = self.get(kind, reference)
        if found is not None:
            return found
        named = self._named(kind, reference)
        if len(named) == 1:
            return named[0]
        if named:
            raise Terminal(f"{len(named)} things of kind {kind} are named {reference!r}: refer to one by its id")
        known = sorted({record.spec.get("name") or record.id for record in self.all(kind).values()})
        raise Terminal(f"There is no {kind} {reference!r}; known are: {', '.join(known[:20]) or 'none'}")

    def referring(self, kind: str, fact: str, id: str) -> list[Record]:
        """Things of `kind` whose fact is `id`, or a list with `id` in it."""
        return [record for record in self.all(kind).values() if _mentions(record.facts.get(fact), id)]

    def store(self, record: Record) -> None:
        self._tree.write(record)
        if record.kind in self._kinds:
            self._kinds[record.kind][record.id] = record

    def drop(self, record: Record) -> None:
        self._tree.remove(record.kind, record.id)
        if record.kind in self._kinds:
            self._kinds[record.kind].pop(record.id, None)


def _mentions(fact: Any, id: str) -> bool:
    return id in fact if isinstance(fact, list) else fact == id


def scan(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def write_whole(path: str, text: str, mode: int = 0o600) -> None:
    """Readers see the old text or the new one, never a part."""
    temporary = f"{path}.{uuid.uuid4().hex[:8]}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def remove_tree(path: str) -> None:
    """Also through directories that a guest has made unreadable; somebody else may be removing the same."""

    def unlock_and_retry(remove: Any, failed: str, error: Any) -> None:
        if isinstance(error[1], FileNotFoundError):
            return
        os.chmod(os.path.dirname(failed), 0o700)
        if os.path.isdir(failed) and not os.path.islink(failed):
            os.chmod(failed, 0o700)
            shutil.rmtree(failed)
        else:
            remove(failed)

    shutil.rmtree(path, onerror=unlock_and_retry)
