"""Cells of the database that can be read only with a key (ADR 0036).

An encrypted cell is the text `enc:v1:<id of the key>:<base64>` instead of the plain text. No JSON text begins like
this, so encrypted and plain rows can coexist, and a service that gets keys still reads older rows.

Cells are encrypted with AES-SIV, which is authenticated and deterministic. So encrypted cells can be compared in SQL,
no nonce can ever repeat, and a reader without the key learns only which cells of a column are equal. The name of the
column is authenticated with the cell: a cell moved to another column cannot be read there.
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
    """A cell cannot be read, since its key is missing or the cell was altered; other cells are not affected."""


class Keyring:
    """Keys for cells: the newest key encrypts, all keys decrypt. Safe to share between threads.

    Args:
        keys: The keys, the newest first, of `KEY_BYTES` bytes each.
        encrypting: False if new cells are stored in plain text.
    """

    def __init__(self, keys: Sequence[bytes] = (), *, encrypting: bool = True) -> None:
        self._set(keys, encrypting)

    def _set(self, keys: Sequence[bytes], encrypting: bool) -> None:
        known = {key_id(key): AESSIV(key) for key in keys}
        newest = next(iter(known), "") if encrypting else ""
        # A single assignment, so that concurrent threads see either the old keys or the new ones.
        self._state: tuple[Mapping[str, AESSIV], str] = (known, newest)
        # Members of a group have equal properties, and equal cells: in a row, they are decrypted only once.
        self._latest: dict[str, tuple[str, str]] = {}

    @property
    def newest(self) -> str:
        """The id of the key that encrypts; "" if new cells are plain."""
        return self._state[1]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys, the newest first."""
        return tuple(self._state[0])

    def reload(self) -> None:
        """Check whether a missing key has been added meanwhile; for subclasses that can."""

    def encrypt(self, text: str, place: str) -> str:
        """Return the cell for a text; the text itself if the keys do not encrypt.

        Args:
            place: `table.column`.
        """
        # Read once: another thread may replace the keys between two reads.
        known, newest = self._state
        if not newest:
            return text
        encrypted = known[newest].encrypt(text.encode(), [place.encode()])
        return f"{MARK}{newest}:{base64.b64encode(encrypted).decode()}"

    def decrypt(self, cell: str, place: str) -> str:
        """Return the plain text of an encrypted cell.

        Args:
            place: `table.column`.

        Raises:
            Unreadable: The message names the column and the reason.
        """
        latest = self._latest
        before = latest.get(place)
        if before is not None and before[0] == cell:
            return before[1]
        key, _, encoded = cell[len(MARK) :].partition(":")
        if not cell.startswith(MARK) or len(key) != ID_LENGTH:
            raise Unreadable(f"{place} holds a cell that this version does not know how to read ({cell[:16]}…)")
        if key not in self._state[0]:
            self.reload()
        cipher = self._state[0].get(key)
        if cipher is None:
            remedy = "put it back into the file of keys (see `homeostat keys status`)"
            raise Unreadable(f"{place} cannot be read: it is encrypted with key {key}, which is not there; {remedy}")
        try:
            text = cipher.decrypt(binascii.a2b_base64(encoded), [place.encode()]).decode()
        except (InvalidTag, ValueError) as error:
            remedy = "restore the row from a backup"
            raise Unreadable(
                f"{place} cannot be read: the cell was changed from outside the service; {remedy}"
            ) from error
        latest[place] = (cell, text)
        return text


class Lost(Mapping[str, Any]):
    """The value of an unreadable cell: every use raises `Unreadable` with the reason.

    So a lost key stops only code that needs a value encrypted with this key, but not a query that merely selects the
    value.
    """

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
        # A class with __eq__ is not hashable by default, but rows that contain the value have to be.
        return id(self)


def key_id(key: bytes) -> str:
    """Return an id that distinguishes a key without revealing it."""
    return hashlib.sha256(key).hexdigest()[:ID_LENGTH]


def is_encrypted(cell: str) -> bool:
    return cell.startswith(MARK)


NO_KEYS = Keyring()
_RINGS: WeakKeyDictionary[Dialect, Keyring] = WeakKeyDictionary()


def use_keys(dialect: Dialect, keys: Keyring) -> None:
    """Make all connections of an engine encrypt and decrypt with these keys.

    The keys are stored by dialect, since a column's type gets nothing else when it encodes or decodes a value.
    """
    _RINGS[dialect] = keys


def keys_of(dialect: Dialect) -> Keyring:
    return _RINGS.get(dialect, NO_KEYS)


# -- texts of users, which might look like encrypted cells -------------------------------------------------------------


def encrypt_text(keys: Keyring, text: str, place: str) -> str:
    """Return the cell for any text, encrypted if there are keys.

    A plain text that looks like an encrypted cell is escaped.
    """
    encrypted = keys.encrypt(text, place)
    return f"{_ESCAPED}{text}" if encrypted is text and text.startswith(_FOREIGN) else encrypted


def decrypt_text(keys: Keyring, cell: str, place: str) -> str:
    """Return the text of a cell made by `encrypt_text`.

    Raises:
        Unreadable: The cell cannot be decrypted.
    """
    if cell.startswith(_ESCAPED):
        return cell[len(_ESCAPED) :]
    return keys.decrypt(cell, place) if cell.startswith(_FOREIGN) else cell
