"""Types of columns, and the encoding of their cells: JSON, encrypted JSON, text without NUL."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Column, Text, TypeDecorator
from sqlalchemy.engine.interfaces import Dialect

from homeostat.store.encryption.encrypted_cells import MARK, Lost, Unreadable, decrypt_text, encrypt_text, keys_of


def to_json(value: Any) -> str:
    """Encode plain data as JSON.

    Data from a cloud that JSON cannot hold is changed: integers of more than 64 bits become text, and broken Unicode is
    replaced.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # Only now: nearly all data encodes at the first attempt, and walking through it costs more than encoding.
        return orjson.dumps(_encodable(value), option=orjson.OPT_NON_STR_KEYS).decode()


def json_size(value: Any) -> int:
    """Return the size of plain data as JSON in bytes; about the size of its cell, which may be encrypted."""
    return len(to_json(value).encode())


def as_stored(value: Any) -> Any:
    """Return plain data as read back from the database."""
    return orjson.loads(to_json(value))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value


class SafeText(TypeDecorator[str]):
    """Text that may come from a cloud: NUL, which PostgreSQL cannot store, is replaced by U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else without_nul(value)


def without_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")


class Cell(str):
    """The text of a cell, encoded (and encrypted if required) before the transaction that stores it.

    Encoding large data takes time, and all writers wait for the end of a transaction.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Codec:
    """The conversion between plain data and the values of a JSON column."""

    load: Callable[[Any], Any]
    dump: Callable[[Any], Any]


class Json(TypeDecorator[Any]):
    """Plain data as JSON text: the same bytes in every database, and faster than the databases' own JSON types.

    Args:
        codec: The type of the values; None for plain data.
    """

    impl = Text
    cache_ok = True

    def __init__(self, codec: Codec | None = None) -> None:
        super().__init__()
        self.codec = codec

    def encoder(self) -> Callable[[Any], str]:
        """Return the function that encodes a value as JSON text."""
        if self.codec is None:
            return to_json
        dump = self.codec.dump
        return lambda value: to_json(dump(value))

    def encode(self, value: Any) -> str:
        return self.encoder()(value)

    def decoder(self) -> Callable[[str], Any]:
        """Return the function that decodes JSON text."""
        if self.codec is None:
            return orjson.loads
        load = self.codec.load
        return lambda text: load(orjson.loads(text))

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return self.encode(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Return the decoder itself: `process_result_value` would double the cost of each cell."""
        if self.codec is None:
            return _from_json
        decode = self.decoder()
        return lambda cell: None if cell is None else decode(cell)


def _from_json(cell: str | None) -> Any:
    return None if cell is None else orjson.loads(cell)


class EncryptedJson(Json):
    """Plain data as JSON text, encrypted if the database has keys (see `encryption.encrypted_cells`).

    A cell that cannot be decrypted is read as `Lost`.

    Args:
        place: `table.column`, which is authenticated with the cell.
        codec: The type of the values; None for plain data.
        always: False if `bulk` encrypts the column only in rows that the caller declares to hold secrets.
    """

    cache_ok = True

    def __init__(self, place: str, codec: Codec | None = None, *, always: bool = True) -> None:
        super().__init__(codec)
        self.place = place
        self.always = always

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return keys_of(dialect).encrypt(self.encode(value), self.place)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        decode = self.decoder()

        def read(cell: str | None) -> Any:
            if cell is None:
                return None
            if not cell.startswith(MARK):
                return decode(cell)
            text = self.decrypted(cell, dialect)
            return text if isinstance(text, Lost) else decode(text)

        return read

    def decrypted(self, cell: str, dialect: Dialect) -> "str | Lost":
        """Return the JSON text of a cell."""
        if not cell.startswith(MARK):
            return cell
        try:
            # The keys are looked up for each cell, since they may be set after the creation of a decoder.
            return keys_of(dialect).decrypt(cell, self.place)
        except Unreadable as error:
            # An exception would fail the whole query, including other rows, which can be read.
            return Lost(error)


class EncryptedText(TypeDecorator[str]):
    """Text that may hold secrets, encrypted if the database has keys.

    Reading a cell that cannot be decrypted raises `Unreadable`.
    """

    impl = Text
    cache_ok = True

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, Cell):
            return value
        return encrypt_text(keys_of(dialect), value, self.place)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else decrypt_text(keys_of(dialect), value, self.place)


def cell_of(dialect: Dialect, column: Column[Any], value: Any) -> Cell:
    """Encode a value that is not None for a column of one of the types above."""
    return Cell(column.type.process_bind_param(value, dialect))  # type: ignore[attr-defined]
