"""Cells of the database that only the holders of a key can read (ADR 0036).

A sealed cell is text, `enc:v1:<id of the key>:<base64>`, in the place of the plain text, which no JSON begins like: so
sealed and plain rows live side by side, and a service that is given keys reads what was written before.

Sealing is AES-SIV: authenticated, and the same text gives the same cell. So it can be compared in SQL with what is
there already, needs no random numbers that could ever repeat, and tells nothing but that two cells of a column are the
same. The name of the column is authenticated with it: a cell that somebody moves to another column cannot be read
there.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from sqlalchemy.engine.interfaces import Dialect

from homeostat.model.errors import HomeostatError

MARK = "enc:v1:"
ID_LENGTH = 8
KEY_BYTES = 64
_FOREIGN = "enc:"
_ESCAPED = "enc:plain:"


class Unreadable(HomeostatError):
    """A cell cannot be read: its key is not there, or it is not what was written. The rest of the database can be."""


class Keyring:
    """Keys, the newest first: that one seals, all of them open. Safe to share between threads.

    Takes: keys — of `KEY_BYTES` bytes each; sealing — False: new cells are written plain.
    """

    def __init__(self, keys: Sequence[bytes] = (), *, sealing: bool = True) -> None:
        self._set(keys, sealing)

    def _set(self, keys: Sequence[bytes], sealing: bool) -> None:
        known = {key_id(key): AESSIV(key) for key in keys}
        newest = next(iter(known), "") if sealing else ""
        # One assignment: threads that seal meanwhile see the old keys or the new ones.
        self._state: tuple[Mapping[str, AESSIV], str] = (known, newest)

    @property
    def newest(self) -> str:
        """Id of the key that seals; "" where new cells are plain."""
        return self._state[1]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all keys, the newest first."""
        return tuple(self._state[0])

    def look_again(self) -> None:
        """A key is missing: see whether it has come meanwhile."""

    def seal(self, text: str, place: str) -> str:
        """place — `table.column`."""
        known, newest = self._state
        if not newest:
            return text
        sealed = known[newest].encrypt(text.encode(), [place.encode()])
        return f"{MARK}{newest}:{base64.b64encode(sealed).decode()}"

    def open(self, cell: str, place: str) -> str:
        """Fails: Unreadable naming what cannot be read, and why."""
        key, _, encoded = cell[len(MARK) :].partition(":")
        if not cell.startswith(MARK) or len(key) != ID_LENGTH:
            raise Unreadable(f"{place} holds a cell that this version does not know how to read ({cell[:16]}…)")
        if key not in self._state[0]:
            self.look_again()
        cipher = self._state[0].get(key)
        if cipher is None:
            remedy = "put it back into the file of keys (see `homeostat keys status`)"
            raise Unreadable(f"{place} cannot be read: it is sealed with key {key}, which is not there; {remedy}")
        try:
            return cipher.decrypt(binascii.a2b_base64(encoded), [place.encode()]).decode()
        except (InvalidTag, ValueError) as error:
            remedy = "restore the row from a backup"
            raise Unreadable(f"{place} cannot be read: the cell was changed by somebody else; {remedy}") from error


class Lost(Mapping[str, Any]):
    """What stands for a cell that cannot be read: whoever asks anything of it is told why. So one lost key stops only
    those who need what it has sealed. Fails: everything with Unreadable."""

    def __init__(self, why: Unreadable) -> None:
        self._why = why

    @property
    def why(self) -> str:
        return str(self._why)

    def __getitem__(self, key: str) -> Any:
        raise Unreadable(self.why)

    def __iter__(self) -> Iterator[str]:
        raise Unreadable(self.why)

    def __len__(self) -> int:
        raise Unreadable(self.why)

    def __contains__(self, key: object) -> bool:
        raise Unreadable(self.why)

    def __bool__(self) -> bool:
        raise Unreadable(self.why)

    def __eq__(self, other: object) -> bool:
        raise Unreadable(self.why)

    def __hash__(self) -> int:
        return id(self)


def key_id(key: bytes) -> str:
    """What tells keys apart and gives nothing away."""
    return hashlib.sha256(key).hexdigest()[:ID_LENGTH]


def is_sealed(cell: str) -> bool:
    return cell.startswith(MARK)


NO_KEYS = Keyring()
_RINGS: WeakKeyDictionary[Dialect, Keyring] = WeakKeyDictionary()


def use_keys(dialect: Dialect, keys: Keyring) -> None:
    """All connections of this engine seal and open with these keys: columns know their dialect only."""
    _RINGS[dialect] = keys


def keys_of(dialect: Dialect) -> Keyring:
    return _RINGS.get(dialect, NO_KEYS)


# -- text that users write, which might look like a sealed cell --------------------------------------------------------


def seal_text(keys: Keyring, text: str, place: str) -> str:
    """Any text at all, sealed where there are keys."""
    sealed = keys.seal(text, place)
    return f"{_ESCAPED}{text}" if sealed is text and text.startswith(_FOREIGN) else sealed


def open_text(keys: Keyring, cell: str, place: str) -> str:
    """Fails: Unreadable."""
    if cell.startswith(_ESCAPED):
        return cell[len(_ESCAPED) :]
    return keys.open(cell, place) if cell.startswith(_FOREIGN) else cell
