"""Archives of a state directory: a compressed tar file with a consistent copy of a service's files.

    manifest.json   version and content             homeostat.db    the database
    keys            the keys of its secrets         cloud/…         the local cloud: records and data

The database is copied before the cloud: a thing created in between is only in the cloud, and can be adopted or deleted.
In the opposite order, the copy would have rows whose things lack their data.
"""

import io
import json
import os
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import IO

from homeostat.cli.errors import Problem

FORMAT = 1
MANIFEST, DATABASE, KEYS, CLOUD = "manifest.json", "homeostat.db", "keys", "cloud"
MANIFEST_MAX = 64 * 1024
HELD_MAX = 1 << 20
"""Bytes of a file kept in memory during its copy; larger copies are spooled to disk."""
PASSING = (".lock", ".trash", ".new")
"""Transient entries of the local cloud, which are left out."""
DAMAGED = (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, TypeError)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Version and content of an archive.

    Attributes:
        version: Version of the program that wrote the archive.
        created_at: Begin of the backup, ISO 8601 in UTC.
        schema: Newest revisions of the schema of the database.
        cloud: Identity of the local cloud; "" for none.
        keys: Whether the keys are included.
        format: Version of this format.
    """

    version: str
    created_at: str
    schema: tuple[str, ...]
    cloud: str
    keys: bool
    format: int = FORMAT


# -- writing -----------------------------------------------------------------------------------------------------------


def copy_database(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of an SQLite database, during concurrent writes.

    Raises:
        Problem: The database cannot be read.
    """
    try:
        connection = sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            connection.execute("VACUUM INTO ?", (str(target),))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Problem(f"the database {source} cannot be copied: {error}") from error


def write(archive: IO[bytes], manifest: Manifest, database: Path, keys: Path | None, cloud: Path | None) -> None:
    """Write an archive.

    Args:
        database: A copy of the database.
        keys: The file of keys; None to leave them out.
        cloud: Directory of the local cloud; None for none.
    """
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=6) as tar:
        text = json.dumps(asdict(manifest), indent=1).encode()
        _add(tar, MANIFEST, io.BytesIO(text))
        for name, path in ((DATABASE, database), (KEYS, keys)):
            if path is not None:
                with path.open("rb") as file:
                    _add(tar, name, file)
        if cloud is not None:
            for path in _below(cloud):
                _add_path(tar, f"{CLOUD}/{path.relative_to(cloud)}", path)


def _below(root: Path) -> Iterator[Path]:
    """Yield the entries of a directory tree, directories before their entries."""
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in PASSING)
        yield from (Path(directory, name) for name in (*names, *sorted(files)) if name not in PASSING)


def _add_path(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """Add a file, directory or link; skip other types, such as sockets, and files deleted meanwhile."""
    try:
        if path.is_symlink():
            _add_entry(tar, name, tarfile.SYMTYPE, os.readlink(path))
        elif path.is_dir():
            _add_entry(tar, name, tarfile.DIRTYPE)
        elif path.is_file():
            with path.open("rb") as file:
                _add(tar, name, file, executable=bool(os.fstat(file.fileno()).st_mode & 0o100))
    except FileNotFoundError:
        return


def _add_entry(tar: tarfile.TarFile, name: str, kind: bytes, link: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, link, 0o700
    tar.addfile(entry)


def _add(tar: tarfile.TarFile, name: str, file: IO[bytes], *, executable: bool = False) -> None:
    # tar needs the size in advance, and the file may grow meanwhile: copy it first.
    with tempfile.SpooledTemporaryFile(HELD_MAX) as held:
        copyfileobj(file, held)
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = held.seek(0, os.SEEK_END), 0o700 if executable else 0o600
        held.seek(0)
        tar.addfile(entry, held)


# -- reading -----------------------------------------------------------------------------------------------------------


def unpack(archive: IO[bytes], target: Path) -> Manifest:
    """Unpack an untrusted archive into a new directory, writing nothing outside of it, and return the manifest.

    Raises:
        Problem: The file is no archive of a state directory, is damaged, or of a newer format.
    """
    links: list[tuple[Path, str]] = []
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as tar:
            manifest = _manifest(tar)
            for entry in tar:
                if entry.name == MANIFEST:
                    continue
                place = _place(target, entry.name)
                if entry.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                elif entry.issym():
                    links.append((place, entry.linkname))
                elif entry.isreg():
                    _unpack_file(tar, entry, place)
                else:
                    raise Problem(f"the archive has {entry.name}, which is neither a file nor a directory nor a link")
            for place, link in links:  # last, so that no file is written through a link
                os.symlink(link, place)
    except DAMAGED as error:
        raise Problem(f"the archive cannot be read: {error}") from error
    if not (target / DATABASE).is_file():
        raise Problem("the archive has no database in it: it is damaged")
    return manifest


def _manifest(tar: tarfile.TarFile) -> Manifest:
    first = tar.next()
    file = tar.extractfile(first) if first is not None and first.isreg() and first.name == MANIFEST else None
    if first is None or file is None or first.size > MANIFEST_MAX:
        raise Problem("the file is no archive of `homeostat backup`")
    stored = json.loads(file.read())
    if not isinstance(stored, dict):
        raise Problem("the file is no archive of `homeostat backup`")
    if stored.get("format") != FORMAT:
        raise Problem(
            f"the archive has the format {stored.get('format')}: use version {stored.get('version')} or newer"
        )
    return Manifest(**{**stored, "schema": tuple(stored["schema"])})


def _place(target: Path, name: str) -> Path:
    """Return the target path of an archive entry.

    Raises:
        Problem: The name is not that of a part of a state directory.
    """
    path = PurePosixPath(name)
    known = path.parts in ((DATABASE,), (KEYS,)) or path.parts[:1] == (CLOUD,)
    if not known or path.is_absolute() or ".." in path.parts:
        raise Problem(f"the archive has {name}, which is no part of a state directory")
    return target / path


def _unpack_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    file = tar.extractfile(entry)
    assert file is not None, "a regular file has content"
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, entry.mode & 0o700 | 0o600)
    with os.fdopen(descriptor, "wb") as out:
        copyfileobj(file, out)
