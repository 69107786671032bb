"""The file of keys that encrypt secrets: one key a line, the newest first (see `encrypted_cells`)."""

import base64
import binascii
import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from homeostat.store.encryption.encrypted_cells import KEY_BYTES, Keyring, key_id

LOG = logging.getLogger(__name__)
PLAIN = "plain"
"""A first line that keeps new cells plain, so that processes without the keys can read them."""
LOOK_S = 1.0
"""Time within which a process notices a change of the file."""
_HEAD = "# Keys that encrypt secrets in the database, the newest first. Without them, what they encrypted is lost."


class KeyFile(Keyring):
    """The keys of a file, which is checked again from time to time, and when a key is missing.

    If the file becomes invalid or unreadable later, this is logged, and the keys read last stay in use.

    Raises:
        ValueError: A line is wrong; the message names it.
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._stamp = _stamp(path)
        keys, encrypting = read_keys(path)
        super().__init__(keys, encrypting=encrypting)

    def encrypt(self, text: str, place: str) -> str:
        if self._monotonic() >= self._look_at:
            self.reload()
        return super().encrypt(text, place)

    def reload(self) -> None:
        with self._lock:
            self._look_at = self._monotonic() + LOOK_S
            try:
                stamp = _stamp(self.path)
                if stamp != self._stamp:
                    # Stored before reading: an invalid file is reported once, and read again when it changes.
                    self._stamp = stamp
                    keys, encrypting = read_keys(self.path)
                    self._set(keys, encrypting)
            except (OSError, ValueError) as error:
                LOG.warning("going on with the keys that were read before: %s", error)


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_keys(path: Path) -> tuple[list[bytes], bool]:
    """Return the keys, the newest first, and whether they encrypt new cells.

    Raises:
        ValueError: A line is wrong; the message names it.
        OSError: The file cannot be read.
    """
    keys: list[bytes] = []
    encrypting = True
    for number, line in enumerate(path.read_text(encoding="ascii", errors="replace").splitlines(), 1):
        word = line.strip()
        if word == PLAIN and not keys and encrypting:
            encrypting = False
        elif word and not word.startswith("#"):
            keys.append(_key(word, f"{path}, line {number}"))
    if not keys:
        raise ValueError(f"{path} holds no key; make one with: homeostat keys generate")
    return keys, encrypting


def _key(word: str, place: str) -> bytes:
    """Decode a key.

    Raises:
        ValueError: The word is not a key. The message does not show the word, which may be a mistyped key.
    """
    remedy = f"expected the base64 form of {KEY_BYTES} bytes, as `homeostat keys generate` makes it"
    try:
        key = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{place} is no key: {remedy}") from error
    if len(key) != KEY_BYTES:
        raise ValueError(f"{place} is no key: it has {len(key)} bytes; {remedy}")
    return key


def generate(path: Path) -> str:
    """Create a file with a new key, readable by its owner only, and return the key's id.

    Raises:
        FileExistsError: The file exists already.
        OSError: The file cannot be written.
    """
    key = secrets.token_bytes(KEY_BYTES)
    with _temporary(path, [key]) as temporary:
        # A link, not a rename: fails if another process was faster, since its key must not be overwritten.
        os.link(temporary, path)
    return key_id(key)


def add_key(path: Path) -> str:
    """Insert a new key as the first, atomically, and return its id.

    Raises:
        ValueError: A line of the file is wrong.
        OSError: The file cannot be read or written.
    """
    key = secrets.token_bytes(KEY_BYTES)
    keys, _ = read_keys(path)
    with _temporary(path, [key, *keys]) as temporary:
        os.replace(temporary, path)
    return key_id(key)


@contextlib.contextmanager
def _temporary(path: Path, keys: Sequence[bytes]) -> Iterator[Path]:
    """Write a complete temporary file in the same directory and sync it to disk; remove it at the end.

    A key must be on disk before its first use: otherwise a power failure could lose the key of stored cells.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    lines = [_HEAD, *(base64.b64encode(key).decode() for key in keys)]
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        yield temporary
        # The new name of the file is data of the directory, which needs a sync as well.
        _sync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_open_to_others(path: Path) -> bool:
    """Return whether users other than the owner may access the file."""
    return bool(path.stat().st_mode & 0o077)
