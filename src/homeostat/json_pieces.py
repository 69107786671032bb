"""Streaming JSON encoder: a long text never exists as a whole.

A value may hold `Items` and `Entries`, whose members are created lazily. A value is measured before it is encoded, each
shared part as often as it occurs, so even a part repeated a thousand times is never encoded at once.
"""

import gc
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from sys import getsizeof
from typing import Any

import orjson

PIECE_BYTES = 128 * 1024
"""Minimum bytes of a piece, except the last."""
TOGETHER = 32
"""Small items of a list encoded at once."""
WEIGHED_TOGETHER = 8
"""Items of unknown size encoded at once, if they are light together."""
LIGHT = 64 * 1024
"""Maximum memory of a value encoded at once, in bytes, counting shared parts each time."""


class Items:
    """A list whose items are created lazily, while the list is written.

    Attributes:
        small: No item has long parts: several are written at once, without measuring.
    """

    __slots__ = ("items", "small")

    def __init__(self, items: Iterable[Any], *, small: bool = False) -> None:
        self.items = items
        self.small = small


class Entries:
    """A map whose entries (name, value) are created lazily, while the map is written."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[str, Any]]) -> None:
        self.entries = entries


class Encoded:
    """A value already encoded as JSON."""

    __slots__ = ("text",)

    def __init__(self, value: Any) -> None:
        self.text = encoded(value)


_LATE = frozenset({Items, Entries, Encoded})
_WALKED = (dict, list, tuple, *_LATE)


def pieces(content: Any) -> Iterator[bytes]:
    """Yield the JSON text of a value in pieces."""
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
    """Return whether a value takes at most `most` bytes of memory, counting shared parts each time.

    The JSON has at most six times as many bytes. Values with lazy members are not light.
    """
    if type(value) in _LATE:
        return False
    total, level = getsizeof(value), [value]
    while level:
        if total > most:
            return False
        # All keys and values of maps, at the speed of C.
        below = gc.get_referents(*level)
        total += sum(map(getsizeof, below))
        level = [child for child in below if isinstance(child, _WALKED)]
        if not _LATE.isdisjoint(map(type, level)):
            return False
    return total <= most


def plain(value: Any) -> Any:
    """Return a value with all lazy members created."""
    if isinstance(value, Entries):
        return {name: plain(item) for name, item in value.entries}
    if isinstance(value, Items):
        return [plain(item) for item in value.items]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def encoded(value: Any) -> bytes:
    """Return a value as JSON, at once; by Python's encoder if integers exceed 64 bits."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encoded_otherwise(value)


def _encoded_otherwise(value: Any) -> bytes:
    """Encode a value with keys that are no texts, or with large integers: both are slow."""
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
        yield before + encoded({name: 0})[1:-2]  # the key and its colon: orjson encodes keys of maps only
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
