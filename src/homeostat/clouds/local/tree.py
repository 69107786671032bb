"""The state of the local cloud: one directory a thing, one `thing.json` in it, written whole or not at all.

Several service processes share one tree; what must not interleave happens under `Tree.lock`.

    ROOT/.cloud         the cloud's identity, and below it the kinds that have a directory, a line each
    ROOT/servers/.cloud the identity again, in the directory of each kind
    ROOT/servers/<id>/thing.json …    ROOT/ports/<id>/thing.json    ROOT/snapshots/<id>/…    ROOT/.lock    ROOT/.trash/

A thing is absent only if the directory of its kind is there, carries the mark of this cloud, and has no such thing. A
directory that is away, empty in the place of a mounted one, or cannot be read says nothing about the things in it.
"""

import contextlib
import copy
import fcntl
import hashlib
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from homeostat.model.errors import Terminal, Transient, ambiguous

THING = "thing.json"
MARK = ".cloud"
BUILT_IN = "built-in "
"""Tokens of what the cloud has by itself begin so."""
_NAME_MAX = 200
RACY_S = 0.05
"""What is younger than this when it is looked at may change again without its time stamp changing."""


class Damaged(Transient):
    """The record of one thing cannot be read; the others can."""


class MissingRecord(Damaged):
    """There are data of a thing, and no record."""


@dataclass(frozen=True, slots=True)
class ThingRecord:
    """One thing. spec — as last asked for; facts — what the cloud decided (addresses, power, ids of others).

    project — whose it is, "" for nobody's.
    Neither mapping is ever changed in place: records are shared between threads.
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
        """Every project sees it, and none may change it."""
        return not self.project and self.token.startswith(BUILT_IN)


class Threads:
    """What starts guests side by side, and what copies; for all views of a tree."""

    def __init__(self) -> None:
        self.servers = ThreadPoolExecutor(8, thread_name_prefix="local-server")
        self.copies = ThreadPoolExecutor(4, thread_name_prefix="local-snapshot")
        self.stop = threading.Event()

    def close(self) -> None:
        """What is being copied is given up; it is begun anew when it is asked for again."""
        self.stop.set()
        self.copies.shutdown()
        self.servers.shutdown()


class Tree:
    """Records on disk below `root`. Whatever touches them fails with Transient while the cloud's directory is away.

    private — files of the service that nothing in the cloud may reach.
    project — None: who looks sees everything; else the things of that project and what is built in, and nothing of
    others can be read, changed or replaced.
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
        """ "" until `found` or `recognise`."""
        return self.whole._identity

    def sees(self, record: ThingRecord) -> bool:
        return self.project is None or record.project == self.project or record.is_built_in

    # -- which cloud this is -----------------------------------------------------------------------

    def found(self, kinds: Collection[str], known: str) -> str:
        """Meet the cloud again, or begin a new one where none was known. known — its identity, "" for none yet.

        Gives the identity. Kinds that are new to it get a directory. Fails: Transient when the known one is not here.
        """
        if not known:
            self.root.mkdir(parents=True, exist_ok=True)
        with self._opened(str(self.root), known) as root, _locked(".lock", root):
            lines = self._mark(root)
            identity = self._recognised(lines, known) if known or lines else str(uuid.uuid4())
            new = [kind for kind in sorted(kinds) if kind not in lines[1:]]
            for kind in new:
                os.makedirs(f"{self.root}/{kind}s", exist_ok=True)
                write_whole(f"{self.root}/{kind}s/{MARK}", f"{identity}\n")
            if new or not lines:
                write_whole(f"{self.root}/{MARK}", "\n".join([identity, *lines[1:], *new, ""]))
        self.whole._identity = identity
        return identity

    def recognise(self, known: str = "") -> None:
        """For who only looks: take the cloud for the known one, or, "", for what its directory says it is.

        Fails: Transient when the known one is not here.
        """
        with self._opened(str(self.root), known) as root:
            self.whole._identity = self._recognised(self._mark(root), known)

    def _recognised(self, lines: list[str], known: str) -> str:
        if not lines or (known and lines[0] != known):
            found = f"the mark {lines[0]}" if lines else "no mark"
            raise self._away(f"it carries {found}{f', and not {known}' if known else ''}", known)
        return lines[0]

    def _mark(self, directory: int) -> list[str]:
        """Lines of the mark in a directory; none where there is none."""
        try:
            with open(MARK, encoding="utf-8", opener=_inside(directory)) as file:
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
        """Descriptor of a directory that carries the mark of this cloud. What is asked through it is asked of that very
        directory, whatever is mounted or moved meanwhile."""
        with self._opened(path) as descriptor:
            if not self.identity or self._mark(descriptor)[:1] != [self.identity]:
                raise self._away(f"{path} does not carry the mark {self.identity}")
            yield descriptor

    # -- records -----------------------------------------------------------------------------------

    def directory(self, kind: str, id: str) -> str:
        """Where a thing lives. Any text is a safe id: nothing outside it can be named."""
        return f"{self.root}/{kind}s/{_name(id)}"

    @contextlib.contextmanager
    def lock(self, path: str | None = None) -> Iterator[None]:
        """Exclude other threads and processes; `path` — file to lock, None: the whole tree. Not reentrant."""
        if path is not None:
            with _locked(path):
                yield
            return
        with self._sure(str(self.root)) as root, _locked(".lock", root):
            yield

    def read(self, kind: str, id: str) -> ThingRecord | None:
        """The thing; None where there is none. Fails: Damaged when its record cannot be read, Transient."""
        with self._sure(f"{self.root}/{kind}s") as there:
            record = self._load(there, kind, _name(id))
        return record if record is not None and self.sees(record) else None

    def write(self, record: ThingRecord) -> None:
        """A thing that is nobody's yet becomes one of the project. Fails: Terminal for what is not of the project."""
        if self.project is not None:
            self._refuse_strange(record.kind, record.id)
            record = replace(record, project=record.project or self.project)
        name = _name(record.id)
        with self._sure(f"{self.root}/{record.kind}s") as there:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=there)
            write_whole(f"{name}/{THING}", json.dumps(asdict(record)), inside=there)
            os.utime(there)  # whoever watches looks at this kind again

    def remove(self, kind: str, id: str) -> None:
        """At once as others see it: the directory is moved away; `empty_trash` does what takes time.

        Fails: Terminal for what is not of the project.
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
        """Also of what an earlier process has left there. Not under a lock: others need not wait for it."""
        for entry in scan(f"{self.root}/.trash"):
            remove_tree(entry.path)

    def all(self, kind: str) -> dict[str, ThingRecord]:
        """Every record of a kind by id, oldest first; costs one stat each for those that did not change.

        Fails: Damaged when one of them cannot be read: nothing can be decided without it. Transient.
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
        """Of the directories of the things of a kind. Fails: Transient."""
        with self._sure(f"{self.root}/{kind}s") as there:
            return _listed(there)

    def check(self, kind: str) -> None:
        """Fails: Transient when the directory of this kind is away."""
        with self._sure(f"{self.root}/{kind}s"):
            return

    def _load(self, there: int, kind: str, name: str) -> ThingRecord | None:
        """Parses only what changed since the last time."""
        path = f"{name}/{THING}"
        try:
            stat = os.stat(path, dir_fd=there) if name else None
            if stat is None:
                return None
            signature = (stat.st_ino, stat.st_mtime_ns)
            known = self._known.get(f"{kind}s/{path}")
            if known is not None and known[0] == signature:
                return known[1]
            with open(path, encoding="utf-8", opener=_inside(there)) as file:
                record = ThingRecord(**json.load(file))
        except FileNotFoundError as error:
            self._known.pop(f"{kind}s/{path}", None)
            if _has_data(there, name):
                raise self._damaged(f"{kind}s/{path}", error, MissingRecord) from error
            return None
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(f"{kind}s/{path}", error) from error
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
    return [name for name in os.listdir(there) if name != MARK]


def _name(id: str) -> str:
    """Of the directory of a thing: its id, as far as a file system takes that for a name."""
    name = quote(id, safe="", errors="replace").replace(".", "%2E")
    return name if len(name) <= _NAME_MAX else hashlib.sha256(id.encode(errors="replace")).hexdigest()


def _has_data(there: int, name: str) -> bool:
    """Is there a thing whose record is missing? Whoever died while making one has left an empty directory, or one with
    an unfinished record."""
    try:
        with _descriptor(name, there) as directory:
            return any(not _is_unfinished(each) for each in os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{THING}.") and name.endswith(".new")


@contextlib.contextmanager
def _descriptor(name: str, inside: int) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inside(directory: int) -> Any:
    """For `open`: names are names in this directory."""
    return lambda name, flags: os.open(name, flags, 0o600, dir_fd=directory)


@contextlib.contextmanager
def _locked(path: str, inside: int | None = None) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=inside)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class TreeSnapshot:
    """One consistent look at the tree for the length of a batch: each kind is read at most once. It shows what the
    tree shows; `everything` is for what all projects share, as addresses.

    Take it under `Tree.lock` when something is decided by it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._everything: dict[str, dict[str, ThingRecord]] = {}
        self._kinds: dict[str, dict[str, ThingRecord]] = {}

    def everything(self, kind: str) -> dict[str, ThingRecord]:
        """Of all projects."""
        if kind not in self._everything:
            self._everything[kind] = self._tree.whole.all(kind)
        return self._everything[kind]

    def all(self, kind: str) -> dict[str, ThingRecord]:
        if kind not in self._kinds:
            found = self.everything(kind)
            self._kinds[kind] = {id: record for id, record in found.items() if self._tree.sees(record)}
        return self._kinds[kind]

    def get(self, kind: str, id: str) -> ThingRecord | None:
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

    def _named(self, kind: str, name: str) -> list[ThingRecord]:
        return [record for record in self.all(kind).values() if record.spec.get("name") == name]

    def resolve(self, kind: str, reference: str) -> ThingRecord:
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

    def referring(self, kind: str, fact: str, id: str) -> list[ThingRecord]:
        """Things of `kind` whose fact is `id`, or a list with `id` in it."""
        return [record for record in self.all(kind).values() if _mentions(record.facts.get(fact), id)]

    def outlived(self, record: ThingRecord) -> bool:
        """Was it made for something else alone, which is not there any more? Fails: Damaged, Transient."""
        user = record.facts.get("used_by") if record.facts.get("own") else None
        return user is not None and self._tree.whole.read(*user) is None

    def store(self, record: ThingRecord) -> None:
        self._tree.write(record)
        if self._tree.project is not None:
            record = replace(record, project=record.project or self._tree.project)
        for known in (self._kinds, self._everything):
            if record.kind in known:
                known[record.kind][record.id] = record

    def drop(self, record: ThingRecord) -> None:
        self._tree.remove(record.kind, record.id)
        for known in (self._kinds, self._everything):
            if record.kind in known:
                known[record.kind].pop(record.id, None)


def _mentions(fact: Any, id: str) -> bool:
    return id in fact if isinstance(fact, list) else fact == id


def scan(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def write_whole(path: str, text: str, mode: int = 0o600, inside: int | None = None) -> None:
    """Readers see the old text or the new one, never a part. inside — directory that the path is relative to."""
    temporary = f"{path}.{uuid.uuid4().hex[:8]}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=inside)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path, src_dir_fd=inside, dst_dir_fd=inside)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=inside)
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
