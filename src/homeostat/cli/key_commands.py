"""Encryption keys of the database's secrets: load, generate, count, rotate."""

import logging
import time
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from homeostat.cli import pictures
from homeostat.cli.errors import FAILED, OK, Problem, Usage
from homeostat.cli.output import console, write_json
from homeostat.cli.settings import NO_KEYS
from homeostat.cli.state_directory import State
from homeostat.model.errors import Transient, in_detail
from homeostat.store.database import Database
from homeostat.store.encryption import key_rotation, keyfile
from homeostat.store.encryption.keyfile import KeyFile

LOG = logging.getLogger(__name__)


def key_file(chosen: str, state: Path) -> Path:
    """Return the path of the key file. Raise Usage for the choice `none`."""
    if chosen == NO_KEYS:
        raise Usage("--encryption-keys none: name the key file")
    return Path(chosen).expanduser().absolute() if chosen else State(state).keys


def use_keys(db: Database, chosen: str, state: Path) -> None:
    """Let the database encrypt secrets.

    Creates the first key if no file was chosen and the database is SQLite, used by this machine only.

    Raises:
        Usage: The key file cannot be used, or has to be named.
        Problem: The database holds secrets whose key is lost.
    """
    check_choice(db, chosen)
    path = Path(chosen).expanduser().absolute() if chosen and chosen != NO_KEYS else None
    if path is None and not chosen and db.is_sqlite:
        path = State(state).keys
        if not path.exists():
            _check_plain(db, f"the file {path} is gone")
            _make(path)
    if path is None:
        _check_plain(db, "there are no --encryption-keys")
        return
    keys = _read(path)
    db.use_keys(keys)
    needed = _key_in_use(db)
    if needed and needed not in keys.ids:
        LOG.warning("some secrets are encrypted with key %s, which is not in %s: homeostat keys status", needed, path)


def check_choice(db: Database, chosen: str) -> None:
    """Make sure that secrets are stored as plain text only by an explicit choice.

    Raises:
        Usage: No keys are named, and none can be created: processes on other machines would need the same keys.
    """
    if not chosen and not db.is_sqlite:
        raise Usage(
            "secrets would be stored as plain text: make a key file (homeostat keys generate --encryption-keys FILE), "
            "and give it to all processes with --encryption-keys FILE; or allow plain text with --encryption-keys none"
        )


def _make(path: Path) -> None:
    try:
        LOG.info("made %s with key %s, which encrypts secrets: keep a copy of it", path, keyfile.generate(path))
    except FileExistsError:
        LOG.info("another process has made %s", path)
    except OSError as error:
        raise Problem(f"the key file {path} cannot be made: {error.strerror}") from error


def _check_plain(db: Database, why: str) -> None:
    """Raise Problem when the database holds encrypted secrets, since there is no key at all."""
    needed = _key_in_use(db)
    if needed:
        raise Problem(
            f"the database holds secrets encrypted with key {needed}, and {why}: put the key file back; if it is lost "
            "for good, make another one (homeostat keys generate): everything that is not encrypted goes on"
        )


def _key_in_use(db: Database) -> str:
    """Return the id of a key in use; "" for none, and if the database does not answer, which is waited for later."""
    try:
        with db.read() as tx:
            return key_rotation.key_in_use(tx)
    except Transient as error:
        LOG.warning("starting all the same: %s", error)
        return ""


def _read(path: Path) -> KeyFile:
    try:
        keys = KeyFile(path)
        if keyfile.is_open_to_others(path):
            LOG.warning("others than its owner can read %s: chmod 600", path)
    except OSError as error:
        remedy = "make one with: homeostat keys generate"
        raise Usage(f"--encryption-keys {path}: {error.strerror}; {remedy}") from error
    except ValueError as error:
        raise Usage(f"--encryption-keys {error}") from error
    return keys


def read_keys(db: Database, chosen: str, state: Path) -> None:
    """Load the existing keys, for commands that only read. Raise Usage for a file that cannot be used."""
    path = State(state).keys if chosen in ("", NO_KEYS) else key_file(chosen, state)
    if chosen not in ("", NO_KEYS) or path.exists():
        db.use_keys(_read(path))


def generate(path: Path, *, as_json: bool) -> int:
    """Create a key file. Raise Problem if the file exists already: its keys may be in use."""
    try:
        key = keyfile.generate(path)
    except FileExistsError:
        raise Problem(f"{path} is there already: change keys with homeostat keys rotate") from None
    except OSError as error:
        raise Problem(f"{path} cannot be made: {error.strerror}") from error
    if as_json:
        write_json({"file": str(path), "key": key})
    else:
        console().print(f"Made {path} with key {key}. Keep a copy of it apart from the backups of the database.")
    return OK


def status(db: Database, path: Path, *, as_json: bool) -> int:
    """Print the keys and the numbers of cells encrypted with each.

    Returns:
        Exit code; 1 when a needed key is missing.
    """
    cells = _counts(db)
    ids = db.keys.ids
    lost = sorted(set(cells) - set(ids) - {key_rotation.PLAIN})
    if as_json:
        write_json({"file": str(path), "keys": list(ids), "newest": db.keys.newest, "cells": cells, "lost": lost})
    else:
        rows = [[key, str(cells.get(key, 0)), _role(key, db)] for key in [*ids, *lost, key_rotation.PLAIN]]
        console().print(pictures.table(("key", "cells", ""), rows))
    return FAILED if lost else OK


def _role(key: str, db: Database) -> str:
    if key == key_rotation.PLAIN:
        return "not encrypted"
    if key not in db.keys.ids:
        return "lost: put it back into the key file, or these stay unreadable"
    return "encrypts what is written now" if key == db.keys.newest else "only decrypts"


def rotate(db: Database, path: Path, *, same_key: bool, as_json: bool) -> int:
    """Add a key and encrypt all cells with it.

    With `same_key`, only encrypt cells not yet encrypted with the newest key; if the file begins with `plain`, decrypt
    all cells for good.

    Returns:
        Exit code; 1 when some cells cannot be read.

    Raises:
        Problem: The database cannot be used.
        Usage: The key file cannot be used.
    """
    _counts(db)
    _read(path)
    if not same_key:
        try:
            keyfile.add_key(path)
        except OSError as error:
            raise Problem(f"{path} cannot be changed: {error.strerror}") from error
        # After this time every process has loaded the new key, so none encrypts with the old key behind the sweep.
        time.sleep(2 * keyfile.LOOK_S)
    keys = _read(path)
    db.use_keys(keys)
    try:
        done = key_rotation.reencrypt(db, lambda table, rows: LOG.info("%s: %d rows looked at", table, rows))
    except (Transient, SQLAlchemyError) as error:
        raise Problem(f"it stopped; go on with: homeostat keys rotate --same-key ({in_detail(error)})") from error
    cells = _counts(db)
    old = {key: cells[key] for key in keys.ids if key in cells and key != keys.newest}
    if as_json:
        result = {"key": keys.newest, "encrypted": done.cells, "lost": dict(done.lost), "left": old}
        write_json(result)
    else:
        how = f"Encrypted {done.cells} cells with key {keys.newest}" if keys.newest else f"Decrypted {done.cells} cells"
        console().print(f"{how}.")
        for why, count in done.lost.items():
            console().print(f"{count} times: {why}")
        if not old:
            console().print("No cell needs an older key any more; older backups do.")
    return FAILED if done.lost or old else OK


def _counts(db: Database) -> dict[str, int]:
    """Return the number of cells by key. Raise Problem for a database that cannot be used."""
    if db.missing_file:
        raise Problem(f"there is no database {db.missing_file}: name it with --database, or its --state-dir")
    try:
        if not db.schema_status().usable:
            raise Problem("the database is of another version: `homeostat doctor` says more")
        with db.read() as tx:
            return key_rotation.counts(tx)
    except (Transient, SQLAlchemyError) as error:
        raise Problem(f"the database cannot be used, look at --database: {in_detail(error)}") from error
