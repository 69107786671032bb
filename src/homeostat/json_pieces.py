"""JSON made piece by piece, so that a long text never exists as a whole.

A value may hold `Items` and `Entries`, whose members are made when it is their turn. What a piece weighs is known
before it is written: a value that is shared a thousand times is written a thousand times, and never at once.
"""

import gc
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from sys import getsizeof
from typing import Any

import orjson

PIECE_BYTES = 128 * 1024
"""Size of a piece: pieces have at least so many bytes, but for the last one."""
TOGETHER = 32
"""Small items of a list that are written at once."""
WEIGHED_TOGETHER = 8
"""Other items that are, where they are light together."""
LIGHT = 64 * 1024
"""Bytes that a value takes in memory, shared parts counted each time, up to which it is written at once."""


class Items:
    """A list whose items are made one by one while it is written.

    Attributes:
        items: The items.
        small: They have no long parts: several are written at once, and none of them is weighed.
    """

    __slots__ = ("items", "small")

    def __init__(self, items: Iterable[Any], *, small: bool = False) -> None:
        self.items = items
        self.small = small


class Entries:
    """A map whose entries (name, value) are made one by one while it is written."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[str, Any]]) -> None:
        self.entries = entries


class Encoded:
    """A value that is JSON already."""

    __slots__ = ("text",)

    def __init__(self, value: Any) -> None:
        self.text = encoded(value)


_LATE = frozenset({Items, Entries, Encoded})
_WALKED = (dict, list, tuple, *_LATE)


def pieces(content: Any) -> Iterator[bytes]:
    """Yield the JSON of a value: together they are its text."""
    gathered: list[bytes] = []
    size = 0
    for part in _parts(content):
        gathered.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered.clear()
            size = 0
    if gathered:
        yield b"".join(gathered)


def is_light(value: Any, most: int = LIGHT) -> bool:
    """Return whether a value takes at most `most` bytes of memory, what is shared counted each time.

    Its JSON has six times as many bytes at the utmost. What has members that are still to be made is not light.
    """
    if type(value) in _LATE:
        return False
    total, level = getsizeof(value), [value]
    while level:
        if total > most:
            return False
        # The collector's view of an object: all keys and values of a map, found at the speed of C.
        below = gc.get_referents(*level)
        total += sum(map(getsizeof, below))
        level = [each for each in below if isinstance(each, _WALKED)]
        if not _LATE.isdisjoint(map(type, level)):
            return False
    return total <= most


def plain(value: Any) -> Any:
    """Return a value with all its members made."""
    if isinstance(value, Entries):
        return {name: plain(item) for name, item in value.entries}
    if isinstance(value, Items):
        return [plain(item) for item in value.items]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def encoded(value: Any) -> bytes:
    """Return a value as JSON, at once; by Python's encoder where integers are beyond 64 bits."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encoded_otherwise(value)


def _encoded_otherwise(value: Any) -> bytes:
    """Return a value with other keys than texts, or with large integers, as JSON: both take their time."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _parts(value: Any) -> Iterator[bytes]:
    if is_light(value):
        yield encoded(value)
    elif isinstance(value, dict):
        yield from _map(value.items())
    elif isinstance(value, Entries):
        yield from _map(value.entries)
    elif isinstance(value, list | tuple):
        yield from _list(value, WEIGHED_TOGETHER)
    elif isinstance(value, Items):
        yield from _list(value.items, TOGETHER if value.small else 1, small=value.small)
    elif isinstance(value, Encoded):
        yield value.text
    else:
        yield encoded(value)


def _map(entries: Iterable[tuple[Any, Any]]) -> Iterator[bytes]:
    before = b"{"
    for name, value in entries:
        yield before + encoded({name: 0})[1:-2]
        yield from _parts(value)
        before = b","
    yield b"{}" if before == b"{" else b"}"


def _list(items: Iterable[Any], together: int, *, small: bool = False) -> Iterator[bytes]:
    before, rest = b"[", iter(items)
    while some := list(islice(rest, together)):
        if len(some) > 1 and (small or is_light(some)):
            yield before + encoded(some)[1:-1]
            before = b","
            continue
        for item in some:
            yield before
            yield from (encoded(item),) if small else _parts(item)
            before = b","
    yield b"[]" if before == b"[" else b"]"
