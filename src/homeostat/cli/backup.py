"""The commands `backup`, `restore` and `untracked`, with their flags.

Imports are inside the functions, since client commands must start without loading the database's code.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from homeostat.cli import state_archive
from homeostat.cli.confirmation import confirm
from homeostat.cli.errors import OK, Problem, Usage
from homeostat.cli.flags import Commands, add_encryption_keys, add_operator_command, add_yes
from homeostat.cli.operator_commands import open_database, state_of
from homeostat.cli.output import console, write_json
from homeostat.cli.settings import NO_KEYS
from homeostat.cli.state_archive import Manifest
from homeostat.cli.state_directory import State

if TYPE_CHECKING:
    from homeostat.store.database import Database

SERVERS = (
    "the database is no SQLite file: copy it with its own tool (pg_dump, mariadb-dump), and the file of keys apart, as "
    "docs/howto/back-up.md has it"
)


def backup(arguments: Namespace) -> int:
    """Write an archive of a state directory; its service may be running."""
    state = state_of(arguments)
    now = datetime.now(UTC)
    target: Path = arguments.file or Path(f"homeostat-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    source, keys = _database_file(arguments, state), _keys_file(arguments, state)
    if not source.exists():
        raise Problem(f"there is no database {source}: name it with --database, or its --state-dir")
    if target.exists():
        raise Problem(f"there is a file {target} already: choose another name")
    with tempfile.TemporaryDirectory(dir=source.parent, prefix=".backup-") as work:
        copy = Path(work, state_archive.DATABASE)
        state_archive.copy_database(source, copy)
        with contextlib.closing(_opened(copy)) as db:
            manifest = _manifest(db, state, now, with_keys=keys.exists() and not arguments.without_keys)
        cloud = state.cloud if manifest.cloud else None
        _write_whole(target, manifest, copy, keys if manifest.keys else None, cloud)
    size = target.stat().st_size
    if arguments.json:
        write_json({"file": str(target), "size": size, "manifest": asdict(manifest)})
    else:
        content = "database and keys" if manifest.keys else "database, without keys"
        console().print(f"{target}: {content}{' and local cloud' if cloud else ''}, {size:,} bytes", soft_wrap=True)
    return OK


def _write_whole(target: Path, manifest: Manifest, database: Path, keys: Path | None, cloud: Path | None) -> None:
    """Write an archive, readable by its owner only, under a temporary name until it is complete."""
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as out:
            partial = Path(out.name)
            try:
                state_archive.write(out, manifest, database, keys, cloud)
                out.flush()
                os.fsync(out.fileno())
                _name(partial, target)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise Problem(f"{target} cannot be written: {error}") from error


def _name(partial: Path, target: Path) -> None:
    """Rename a file without overwriting another."""
    try:
        os.link(partial, target)  # unlike a rename, fails if the target exists
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise
        partial.rename(target)  # some file systems have no links


def _manifest(db: "Database", state: State, now: datetime, *, with_keys: bool) -> Manifest:
    from homeostat.store.operation.workers import VERSION

    heads, identity = db.schema_status().heads, _cloud_in(state, "") if state.cloud.is_dir() else ""
    return Manifest(VERSION, now.isoformat(timespec="seconds"), heads, identity, with_keys)


def _cloud_in(state: State, known: str) -> str:
    """Return the identity of the local cloud in a state directory.

    Args:
        known: The expected identity; "" for any.

    Raises:
        Problem: The cloud is missing, or has another identity.
    """
    from homeostat.clouds.local.tree import Tree
    from homeostat.model.errors import Transient

    tree = Tree(state.cloud)
    try:
        tree.recognise(known)
    except Transient as error:
        remedy = f"bring it back, move {state.cloud} away, or choose another --state-dir"
        raise Problem(f"the local cloud is not the one that is expected: {remedy}: {error}") from error
    return tree.identity


def restore(arguments: Namespace) -> int:
    """Replace the content of a state directory by an archive."""
    state = state_of(arguments)
    target, keys = _database_file(arguments, state), _keys_file(arguments, state)
    with state.claim(interrupted=True):
        if target.exists() and not arguments.yes:
            question = f"This puts the archive in the place of {target}, which is kept beside it. Go on?"
            refusal = f"there is a database {target}: allow it with -y to put the archive in its place"
            confirm(question, refusal, "nothing was changed")
        with tempfile.TemporaryDirectory(dir=state.root, prefix=".unpacking-") as work:
            unpacked = Path(work, "state")
            unpacked.mkdir(mode=0o700)
            manifest = _unpacked(arguments.file, unpacked)
            _check(unpacked, manifest, state)
            rmtree(state.restoring, ignore_errors=True)
            unpacked.rename(state.restoring)  # from here on a service refuses to start until all is in its place
        aside = _put(state, target, keys)
        rmtree(state.restoring)
    return _report(arguments, state, manifest, aside)


def _unpacked(file: Path, work: Path) -> Manifest:
    try:
        with file.open("rb") as archive:
            return state_archive.unpack(archive, work)
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}") from error


def _check(work: Path, manifest: Manifest, state: State) -> None:
    """Check that this version can use the content of an archive.

    Raises:
        Problem: The database is damaged or of another version, or the local cloud is not the expected one.
    """
    database = work / state_archive.DATABASE
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        result = str(error)
    if result != "ok":
        raise Problem(f"the database in the archive is damaged: {result}")
    with contextlib.closing(_opened(database)) as db:
        schema = db.schema_status()
        if schema.outdating:
            raise Problem(f"the archive is of version {manifest.version}, which is newer: install that version first")
        if schema.unreleased:
            raise Problem("the archive is from before version 0.1.0: restore it with the version that made it")
    if manifest.cloud and state.cloud.exists():
        _cloud_in(state, manifest.cloud)


def _put(state: State, target: Path, keys: Path) -> Path | None:
    """Move the unpacked files to their places; return the directory with the replaced files, if any."""
    database, new_keys, cloud = (
        state.restoring / name for name in (state_archive.DATABASE, state_archive.KEYS, state_archive.CLOUD)
    )
    existing = [*target.parent.glob(f"{target.name}*"), *([keys] if new_keys.exists() and keys.exists() else [])]
    aside = None
    if existing:
        prefix = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-"
        aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
        for path in existing:
            shutil.move(path, aside / path.name)
    if cloud.is_dir() and not state.cloud.exists():
        cloud.rename(state.cloud)
    if new_keys.exists():
        shutil.move(new_keys, keys)
    shutil.move(database, target)
    return aside


def _report(arguments: Namespace, state: State, manifest: Manifest, aside: Path | None) -> int:
    """Print the result, with the things in the cloud that are newer than the archive."""
    from homeostat.cli import untracked

    newer: list[untracked.Untracked] = []
    with contextlib.closing(open_database(arguments)) as db:
        usable = db.schema_status().usable
        if usable:
            newer = [*untracked.untracked_things(db, state.cloud)]
    if arguments.json:
        kept = None if aside is None else str(aside)
        write_json({"manifest": asdict(manifest), "kept": kept, "untracked": [asdict(thing) for thing in newer]})
        return OK
    out = console()
    out.print(f"The state of {manifest.created_at} is restored.")
    if aside is not None:
        out.print(f"What was there is kept in {aside}", soft_wrap=True)
    if not usable:
        out.print("It is of an earlier version: migrate it, and see `homeostat untracked`.")
    if newer:
        out.print(f"The cloud has {len(newer)} things that no stack has now:")
        for thing in newer:
            out.print(f"  {thing.kind} {thing.id} {thing.name}".rstrip(), soft_wrap=True)
        out.print(untracked.remedies(newer), soft_wrap=True)
    return OK


def show_untracked(arguments: Namespace) -> int:
    """List, describe or delete things of the local cloud that belong to no stack."""
    from homeostat.cli import untracked

    state = state_of(arguments)
    with contextlib.closing(open_database(arguments)) as db:
        if arguments.adoption_file is not None:
            return untracked.write_adoption(db, state.cloud, arguments.in_project, arguments.adoption_file)
        if arguments.delete or arguments.delete_all:
            ids, project = arguments.delete or (), arguments.in_project
            return untracked.delete(db, state.cloud, ids, project, yes=arguments.yes, as_json=arguments.json)
        return untracked.show(db, state.cloud, arguments.in_project, as_json=arguments.json)


def _database_file(arguments: Namespace, state: State) -> Path:
    """Return the file of the database.

    Raises:
        Usage: The database is not SQLite.
    """
    with contextlib.closing(open_database(arguments)) as db:
        name = db.engine.url.database
        if not db.is_sqlite or not name:
            raise Usage(SERVERS)
        return Path(name).absolute()


def _keys_file(arguments: Namespace, state: State) -> Path:
    from homeostat.cli import key_commands

    chosen = arguments.encryption_keys
    return key_commands.key_file("" if chosen == NO_KEYS else chosen, state.root)


def _opened(file: Path) -> "Database":
    import time

    from homeostat.store.database import Database, sqlite_url

    return Database(sqlite_url(file), time.time)


# -- flags -------------------------------------------------------------------------------------------------------------


def add_commands(commands: Commands) -> None:
    command = add_operator_command(
        commands,
        backup,
        "backup",
        "homeostat backup\n  homeostat backup /backups/monday.tar.gz --without-keys\n\n"
        "The file is for its owner alone: the keys in it open the secrets in it. With PostgreSQL and MariaDB use\n"
        "their own tools.",
    )
    command.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="file to write (default: homeostat-TIME.tar.gz)"
    )
    command.add_argument("--without-keys", action="store_true", help="leave the keys out, if you keep them elsewhere")
    add_encryption_keys(command)
    command = add_operator_command(
        commands,
        restore,
        "restore",
        "homeostat restore monday.tar.gz\n  homeostat restore monday.tar.gz -y --state-dir /srv/other\n\n"
        "The service must not run. The present state is moved into another directory. An existing local cloud\n"
        "stays as it is: stacks of the backup find their resources there.",
    )
    command.add_argument("file", metavar="FILE", type=Path, help="file that `homeostat backup` wrote")
    add_yes(command)
    add_encryption_keys(command)
    command = add_operator_command(
        commands,
        show_untracked,
        "untracked",
        "homeostat untracked\n  homeostat untracked --adoption-file found.yaml\n  homeostat untracked --delete ID -y",
    )
    command.add_argument("--in-project", metavar="NAME", default="", help="only things of this project")
    add_yes(command)
    acts = command.add_mutually_exclusive_group()
    acts.add_argument("--adoption-file", metavar="FILE", type=Path, help="write a file by which a stack can adopt them")
    acts.add_argument("--delete", metavar="ID", action="append", help="delete this thing; may be repeated")
    acts.add_argument("--delete-all", action="store_true", help="delete all of them that were not kept on purpose")
