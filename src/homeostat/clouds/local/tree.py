"""The state of the local cloud: a directory for each thing with a `thing.json`, which is replaced atomically.

Several service processes share one tree; what must not interleave happens under `Tree.lock`.

    ROOT/.cloud         the cloud's identity, and below it the kinds that have a directory, one in a line
    ROOT/servers/.cloud the identity again, in the directory of each kind
    ROOT/servers/<id>/thing.json …    ROOT/ports/<id>/thing.json    ROOT/snapshots/<id>/…    ROOT/.lock    ROOT/.trash/

A thing is absent only if the directory of its kind exists, carries the mark of this cloud, and does not contain the
thing. A directory that is missing, unreadable, or an empty mount point says nothing about the things in it.
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
"""Directory of a kind in which a new thing gets its record before it appears under its name."""
BUILT_IN = "built-in "
"""Prefix of the tokens of things that every cloud has from its beginning."""
_NAME_MAX = 200
RACY_S = 0.05
"""Age in seconds below which a file may change again without its time stamp changing."""


class Damaged(Transient):
    """The record of one thing cannot be read; other records can."""


class MissingRecord(Damaged):
    """A thing has data, but no record."""


@dataclass(frozen=True, slots=True)
class ThingRecord:
    """Record of one thing. Its mappings are never changed in place: records are shared between threads.

    Attributes:
        kind: Kind of the cloud port.
        id: Id of the thing.
        token: Token of its creation.
        spec: Object as last requested.
        facts: What the cloud decided (addresses, power, ids of other things).
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
        """Whether every project sees it and none may change it."""
        return not self.project and self.token.startswith(BUILT_IN)


class Threads:
    """Thread pools for starting guests and for copying snapshots, shared by all views of a tree."""

    def __init__(self) -> None:
        self.servers = ThreadPoolExecutor(8, thread_name_prefix="local-server")
        self.copies = ThreadPoolExecutor(4, thread_name_prefix="local-snapshot")
        self.stop = threading.Event()

    def close(self) -> None:
        """Stop the threads; unfinished copies are abandoned, and restarted when the snapshot is requested again."""
        self.stop.set()
        self.copies.shutdown()
        self.servers.shutdown()


class Tree:
    """The records on disk below `root`. Every access raises Transient while the cloud's directory is away.

    Attributes:
        private: Files of the service that nothing in the cloud may reach.
        project: None for a view of everything; else a view of the things of that project and the built-in ones, in
            which those of others can be neither read nor changed nor replaced.
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
        """Identity of the cloud; "" before `found` or `recognise`."""
        return self.whole._identity

    def sees(self, record: ThingRecord) -> bool:
        return self.project is None or record.project == self.project or record.is_built_in

    # -- which cloud this is -----------------------------------------------------------------------

    def found(self, kinds: Collection[str], known: str) -> str:
        """Open the known cloud, or start a new one; kinds that are new to it get a directory.

        Args:
            kinds: Kinds that the cloud should have.
            known: Identity of the known cloud; "" for none.

        Returns:
            Its identity.

        Raises:
            Transient: The known cloud is not in this directory.
        """
        if not known:
            self.root.mkdir(parents=True, exist_ok=True)
        with self._opened(str(self.root), known) as root, file_lock(".lock", root):
            lines = self._mark(root)
            identity = self._recognised(lines, known) if known or lines else str(uuid.uuid4())
            # Kinds that the mark names had a directory: it is not made again, since an empty one would mean that all
            # their things are absent.
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
            known: Identity that it must have; "" for any.

        Raises:
            Transient: The directory is not that cloud.
        """
        with self._opened(str(self.root), known) as root:
            self.whole._identity = self._recognised(self._mark(root), known)

    def _recognised(self, lines: list[str], known: str) -> str:
        if not lines or (known and lines[0] != known):
            found = f"the mark {lines[0]}" if lines else "no mark"
            raise self._away(f"it carries {found}{f', and not {known}' if known else ''}", known)
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

        Accesses through the descriptor concern that very directory, whatever is mounted or moved meanwhile.

        Raises:
            Transient: The directory is away.
        """
        with self._opened(path) as descriptor:
            if not self.identity or self._mark(descriptor)[:1] != [self.identity]:
                raise self._away(f"{path} does not carry the mark {self.identity}")
            yield descriptor

    # -- records -----------------------------------------------------------------------------------

    def directory(self, kind: str, id: str) -> str:
        """Return the directory of a thing. Any text is a safe id: it cannot name a directory elsewhere."""
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
        """Return the record of a thing, None if it does not exist or is not visible in this view.

        Raises:
            Damaged: The record cannot be read.
            Transient: The directory is away.
        """
        with self._sure(f"{self.root}/{kind}s") as there:
            record = self._load(there, kind, _name(id))
        return record if record is not None and self.sees(record) else None

    def write(self, record: ThingRecord) -> None:
        """Write a record, under the lock of the tree; a thing without a project becomes one of this view's project.

        A new thing appears together with its record: a process that dies while it makes one leaves no empty directory.

        Raises:
            Terminal: The thing belongs to another project.
        """
        if self.project is not None:
            self._refuse_strange(record.kind, record.id)
            record = replace(record, project=record.project or self.project)
        name = _name(record.id)
        with self._sure(f"{self.root}/{record.kind}s") as there:
            new = not _exists(name, there)
            home = NEW if new else name
            if new:
                with contextlib.suppress(FileExistsError):  # left by a process that died here
                    os.mkdir(NEW, dir_fd=there)
            write_whole(f"{home}/{THING}", json.dumps(asdict(record)), inside=there)
            if new:
                os.rename(NEW, name, src_dir_fd=there, dst_dir_fd=there)
            os.utime(there)  # tells the watcher that a thing of this kind changed

    def remove(self, kind: str, id: str) -> None:
        """Remove a thing atomically, by moving its directory away; `empty_trash` does the part that takes time.

        Raises:
            Terminal: The thing belongs to another project.
        """
        if self.project is not None:
            self._refuse_strange(kind, id)
        trash = f"{self.root}/.trash"
        with self._sure(f"{self.root}/{kind}s") as there:
            os.makedirs(trash, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.rename(_name(id), f"{trash}/{uuid.uuid4().hex}", src_dir_fd=there)

    def _refuse_strange(self, kind: str, id: str) -> None:
        there = self.whole.read(kind, id)
        if there is not None and there.project != self.project:
            raise Terminal(f"The {kind} {id} is not of this project: it cannot be changed")

    def empty_trash(self) -> None:
        """Remove everything in the trash, also what an earlier process left. Without a lock: others need not wait."""
        for entry in scan(f"{self.root}/.trash"):
            remove_tree(entry.path)

    def all(self, kind: str) -> dict[str, ThingRecord]:
        """Return every record of a kind by id, oldest first; an unchanged record costs one stat.

        Raises:
            Damaged: A record cannot be read; nothing can be decided without it.
            Transient: The directory is away.
        """
        records = []
        with self._sure(f"{self.root}/{kind}s") as there:
            for name in _listed(there):
                with contextlib.suppress(MissingRecord):  # a copy may go on for a moment when its snapshot is deleted
                    records.append(self._load(there, kind, name))
        found = [record for record in records if record is not None]
        found = [record for record in found if self.sees(record)]
        return {record.id: record for record in sorted(found, key=lambda record: record.created_at)}

    def names(self, kind: str) -> list[str]:
        """Return the names of the directories of all things of a kind.

        Raises:
            Transient: The directory of the kind is away.
        """
        with self._sure(f"{self.root}/{kind}s") as there:
            return _listed(there)

    def check(self, kind: str) -> None:
        """Check that the directory of a kind is there.

        Raises:
            Transient: It is away.
        """
        with self._sure(f"{self.root}/{kind}s"):
            return

    def _load(self, there: int, kind: str, name: str) -> ThingRecord | None:
        """Read a record, or return the cached one if the file did not change."""
        path = f"{name}/{THING}"
        try:
            stat = os.stat(path, dir_fd=there) if name else None
            if stat is None:
                return None
            signature = (stat.st_ino, stat.st_mtime_ns)
            known = self._known.get(f"{kind}s/{path}")
            if known is not None and known[0] == signature:
                return known[1]
            with open(path, encoding="utf-8", opener=opener_in(there)) as file:
                record = ThingRecord(**json.load(file))
        except FileNotFoundError as error:
            self._known.pop(f"{kind}s/{path}", None)
            if _has_data(there, name):
                raise self._damaged(f"{kind}s/{path}", error, MissingRecord) from error
            return None
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(f"{kind}s/{path}", error) from error
        # A file that was written just now may change again with the same time stamp: do not cache it.
        if time.time() - stat.st_mtime > RACY_S:
            self._known[f"{kind}s/{path}"] = (signature, record)
        return record

    def _damaged(self, path: str, error: Exception, sort: type[Damaged] = Damaged) -> Damaged:
        place = os.path.dirname(f"{self.root}/{path}")
        return sort(
            f"{self.root}/{path} of the local cloud cannot be read ({error}): bring it back, or, if the thing is lost, "
            f"remove {place}"
        )


def _listed(there: int) -> list[str]:
    return [name for name in os.listdir(there) if name not in (MARK, NEW)]


def _exists(name: str, there: int) -> bool:
    try:
        os.stat(name, dir_fd=there)
    except FileNotFoundError:
        return False
    return True


def _name(id: str) -> str:
    """Return the name of the directory of a thing: its id, quoted, or a hash of it if that is too long."""
    name = quote(id, safe="", errors="replace").replace(".", "%2E")
    return name if len(name) <= _NAME_MAX else hashlib.sha256(id.encode(errors="replace")).hexdigest()


def _has_data(there: int, name: str) -> bool:
    """Return whether a directory without a record belongs to a thing.

    An empty directory, or one with an unfinished record, is what earlier releases left when they died while they made
    a thing; it counts as no thing.
    """
    try:
        with open_directory(name, there) as directory:
            return any(not _is_unfinished(each) for each in os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{THING}.") and name.endswith(".new")
