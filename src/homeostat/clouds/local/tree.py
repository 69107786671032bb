"""The state of the local cloud: a directory per object with a `thing.json`, which is replaced atomically.

Several service processes share a tree; operations that must not interleave run under `Tree.lock`.

    ROOT/.cloud         the cloud's identity, and below it the kinds that have a directory, one in a line
    ROOT/servers/.cloud the identity again, in the directory of each kind
    ROOT/servers/<id>/thing.json …    ROOT/ports/<id>/thing.json    ROOT/snapshots/<id>/…    ROOT/.lock    ROOT/.trash/

An object is absent only if the directory of its kind exists, carries the mark of this cloud, and does not contain the
object. A missing or unreadable directory, or an empty mount point, says nothing about its objects.
"""

import contextlib
import copy
import hashlib
import json
import os
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from homeostat.clouds.local.files import file_lock, open_directory, opener_in, remove_tree, scan, write_whole
from homeostat.model.errors import Terminal, Transient

THING = "thing.json"
MARK = ".cloud"
NEW = ".new"
"""Directory of a kind in which a new object gets its record before it appears under its name."""
BUILT_IN = "built-in "
"""Prefix of the tokens of objects that every cloud has from its beginning."""
_NAME_MAX = 200
RACY_S = 0.05
"""Age in seconds below which a file may change again without a change of its time stamp."""


class Damaged(Transient):
    """The record of an object cannot be read; other records can."""


class MissingRecord(Damaged):
    """An object has data, but no record."""


@dataclass(frozen=True, slots=True)
class ThingRecord:
    """Record of an object. Its mappings are never changed in place: records are shared between threads.

    Attributes:
        kind: Kind of the cloud port.
        id: Id of the object.
        token: Token of its creation.
        spec: Object as last requested.
        facts: Decisions of the cloud (addresses, power, ids of other objects).
        created_at: Seconds since the epoch.
        project: Project that owns it; "" for none.
    """

    kind: str
    id: str
    token: str
    spec: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    project: str = ""

    @property
    def is_built_in(self) -> bool:
        """Whether every project sees the object and none may change it."""
        return not self.project and self.token.startswith(BUILT_IN)


class Threads:
    """Thread pools for starting guests and for copying snapshots, shared by all views of a tree."""

    def __init__(self) -> None:
        self.servers = ThreadPoolExecutor(8, thread_name_prefix="local-server")
        self.copies = ThreadPoolExecutor(4, thread_name_prefix="local-snapshot")
        self.stop = threading.Event()

    def close(self) -> None:
        """Stop the threads; unfinished copies are abandoned, and restarted at the next request for the snapshot."""
        self.stop.set()
        self.copies.shutdown()
        self.servers.shutdown()


class Tree:
    """The records on disk below `root`. Every access raises Transient while the cloud's directory is away.

    Attributes:
        private: Files of the service that user data of servers must not reach.
        project: None for a view of everything; else a view of the project's own and the built-in objects, in which
            foreign objects can be neither read nor changed nor replaced.
        whole: The tree with the view of everything.
    """

    def __init__(self, root: Path, private: Collection[Path] = ()) -> None:
        self.root = root.resolve()
        self.private = sorted({str(self.root), *(str(path.resolve()) for path in private)})
        self.project: str | None = None
        self.whole = self
        self.threads = Threads()
        self._identity = ""
        self._known: dict[str, tuple[tuple[int, int], ThingRecord]] = {}

    def of(self, project: str) -> "Tree":
        view = copy.copy(self)
        view.project = project
        return view

    @property
    def identity(self) -> str:
        """Identity of the cloud; "" before `open_or_start` or `recognise`."""
        return self.whole._identity

    def sees(self, record: ThingRecord) -> bool:
        return self.project is None or record.project == self.project or record.is_built_in

    # -- which cloud this is -----------------------------------------------------------------------

    def open_or_start(self, kinds: Collection[str], known: str) -> str:
        """Open the known cloud, or start a new one; kinds that are new to the cloud get a directory.

        Args:
            kinds: Kinds that the cloud should have.
            known: Identity of the known cloud; "" for none.

        Returns:
            The identity of the cloud.

        Raises:
            Transient: The known cloud is not in this directory.
        """
        if not known:
            self.root.mkdir(parents=True, exist_ok=True)
        with self._opened(str(self.root), known) as root, file_lock(".lock", root):
            lines = self._mark(root)
            identity = self._recognised(lines, known) if known or lines else str(uuid.uuid4())
            # Kinds in the mark had a directory. A missing one is not created again: an empty directory would mean that
            # all objects of the kind are absent.
            new = [kind for kind in sorted(kinds) if kind not in lines[1:]]
            for kind in new:
                os.makedirs(f"{self.root}/{kind}s", exist_ok=True)
                write_whole(f"{self.root}/{kind}s/{MARK}", f"{identity}\n")
            if new or not lines:
                write_whole(f"{self.root}/{MARK}", "\n".join([identity, *lines[1:], *new, ""]))
        self.whole._identity = identity
        return identity

    def recognise(self, known: str = "") -> None:
        """Open a cloud to read it, without changing anything.

        Args:
            known: Required identity of the cloud; "" for any.

        Raises:
            Transient: The directory does not hold this cloud.
        """
        with self._opened(str(self.root), known) as root:
            self.whole._identity = self._recognised(self._mark(root), known)

    def _recognised(self, lines: list[str], known: str) -> str:
        if not lines or (known and lines[0] != known):
            mark = f"the mark {lines[0]}" if lines else "no mark"
            raise self._away(f"it carries {mark}{f', and not {known}' if known else ''}", known)
        return lines[0]

    def _mark(self, directory: int) -> list[str]:
        """Return the lines of the mark in a directory (a descriptor); none if there is no mark."""
        try:
            with open(MARK, encoding="utf-8", opener=opener_in(directory)) as file:
                return file.read().split()
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise self._away(str(error)) from error

    def _away(self, why: str, known: str = "") -> Transient:
        restart = f"mkdir -p {self.root}; echo {known or self.identity or 'IDENTITY'} > {self.root}/{MARK}"
        return Transient(
            f"the directory {self.root} of the local cloud is away: {why}. It is looked for again until it is back. "
            f"If it is lost for good, begin it anew, with nothing in it: {restart}"
        )

    @contextlib.contextmanager
    def _opened(self, path: str, known: str = "") -> Iterator[int]:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise self._away(str(error), known) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _sure(self, path: str) -> Iterator[int]:
        """Open a directory that carries the mark of this cloud.

        Accesses through the descriptor concern this very directory, despite concurrent mounts or moves.

        Raises:
            Transient: The directory is away.
        """
        with self._opened(path) as descriptor:
            if not self.identity or self._mark(descriptor)[:1] != [self.identity]:
                raise self._away(f"{path} does not carry the mark {self.identity}")
            yield descriptor

    # -- records -----------------------------------------------------------------------------------

    def directory(self, kind: str, id: str) -> str:
        """Return the directory of an object. Any text is a safe id: it cannot name a directory elsewhere."""
        return f"{self.root}/{kind}s/{_name(id)}"

    @contextlib.contextmanager
    def lock(self, path: str | None = None) -> Iterator[None]:
        """Exclude other threads and processes from a file, or, without `path`, from the whole tree. Not reentrant."""
        if path is not None:
            with file_lock(path):
                yield
            return
        with self._sure(str(self.root)) as root, file_lock(".lock", root):
            yield

    def read(self, kind: str, id: str) -> ThingRecord | None:
        """Return the record of an object; None if it does not exist or is not visible in this view.

        Raises:
            Damaged: The record cannot be read.
            Transient: The directory is away.
        """
        with self._sure(f"{self.root}/{kind}s") as home:
            record = self._load(home, kind, _name(id))
        return record if record is not None and self.sees(record) else None

    def write(self, record: ThingRecord) -> None:
        """Write a record, under the lock of the tree; a record without a project gets the view's project.

        A new object appears together with its record: a crash during its creation leaves no empty directory.

        Raises:
            Terminal: The object belongs to another project.
        """
        if self.project is not None:
            self._refuse_strange(record.kind, record.id)
            record = replace(record, project=record.project or self.project)
        name = _name(record.id)
        with self._sure(f"{self.root}/{record.kind}s") as parent:
            new = not _exists(name, parent)
            home = NEW if new else name
            if new:
                with contextlib.suppress(FileExistsError):  # left by a process that died here
                    os.mkdir(NEW, dir_fd=parent)
            write_whole(f"{home}/{THING}", json.dumps(asdict(record)), inside=parent)
            if new:
                os.rename(NEW, name, src_dir_fd=parent, dst_dir_fd=parent)
            os.utime(parent)  # shows the watcher that an object of this kind changed

    def remove(self, kind: str, id: str) -> None:
        """Remove an object atomically, by moving its directory away; `empty_trash` does the slow part.

        Raises:
            Terminal: The object belongs to another project.
        """
        if self.project is not None:
            self._refuse_strange(kind, id)
        trash = f"{self.root}/.trash"
        with self._sure(f"{self.root}/{kind}s") as parent:
            os.makedirs(trash, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.rename(_name(id), f"{trash}/{uuid.uuid4().hex}", src_dir_fd=parent)

    def _refuse_strange(self, kind: str, id: str) -> None:
        record = self.whole.read(kind, id)
        if record is not None and record.project != self.project:
            raise Terminal(f"The {kind} {id} is not of this project: it cannot be changed")

    def empty_trash(self) -> None:
        """Delete everything in the trash, even remains of an earlier process. Without a lock: no request waits."""
        for entry in scan(f"{self.root}/.trash"):
            remove_tree(entry.path)

    def all(self, kind: str) -> dict[str, ThingRecord]:
        """Return every record of a kind by id, oldest first; an unchanged record costs one stat.

        Raises:
            Damaged: A record cannot be read; nothing can be decided without it.
            Transient: The directory is away.
        """
        records = []
        with self._sure(f"{self.root}/{kind}s") as parent:
            for name in _listed(parent):
                with contextlib.suppress(MissingRecord):  # a copy may still run when its snapshot is deleted
                    records.append(self._load(parent, kind, name))
        visible = [record for record in records if record is not None and self.sees(record)]
        return {record.id: record for record in sorted(visible, key=lambda record: record.created_at)}

    def names(self, kind: str) -> list[str]:
        """Return the names of the directories of all objects of a kind.

        Raises:
            Transient: The directory of the kind is away.
        """
        with self._sure(f"{self.root}/{kind}s") as parent:
            return _listed(parent)

    def check(self, kind: str) -> None:
        """Check that the directory of a kind exists.

        Raises:
            Transient: The directory is away.
        """
        with self._sure(f"{self.root}/{kind}s"):
            return

    def _load(self, parent: int, kind: str, name: str) -> ThingRecord | None:
        """Read a record, or return the cached one if the file did not change."""
        path = f"{name}/{THING}"
        try:
            stat = os.stat(path, dir_fd=parent) if name else None
            if stat is None:
                return None
            signature = (stat.st_ino, stat.st_mtime_ns)
            known = self._known.get(f"{kind}s/{path}")
            if known is not None and known[0] == signature:
                return known[1]
            with open(path, encoding="utf-8", opener=opener_in(parent)) as file:
                record = ThingRecord(**json.load(file))
        except FileNotFoundError as error:
            self._known.pop(f"{kind}s/{path}", None)
            if _has_data(parent, name):
                raise self._damaged(f"{kind}s/{path}", error, MissingRecord) from error
            return None
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(f"{kind}s/{path}", error) from error
        # A file written just now may change again with the same time stamp: do not cache it.
        if time.time() - stat.st_mtime > RACY_S:
            self._known[f"{kind}s/{path}"] = (signature, record)
        return record

    def _damaged(self, path: str, error: Exception, sort: type[Damaged] = Damaged) -> Damaged:
        place = os.path.dirname(f"{self.root}/{path}")
        return sort(
            f"{self.root}/{path} of the local cloud cannot be read ({error}): bring it back, or, if the thing is lost, "
            f"remove {place}"
        )


def _listed(parent: int) -> list[str]:
    return [name for name in os.listdir(parent) if name not in (MARK, NEW)]


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _name(id: str) -> str:
    """Return the name of the directory of an object: the quoted id, or a hash of it if too long."""
    name = quote(id, safe="", errors="replace").replace(".", "%2E")
    return name if len(name) <= _NAME_MAX else hashlib.sha256(id.encode(errors="replace")).hexdigest()


def _has_data(parent: int, name: str) -> bool:
    """Return whether a directory without a record belongs to an object.

    Earlier releases that died during a creation left an empty directory, or one with an unfinished record; such a
    directory does not count.
    """
    try:
        with open_directory(name, parent) as directory:
            return any(not _is_unfinished(entry) for entry in os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{THING}.") and name.endswith(".new")
