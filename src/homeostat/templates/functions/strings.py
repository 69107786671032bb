"""Functions that return text."""

import hashlib
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote, urlencode, urlunsplit

from homeostat.templates.tree import Function
from homeostat.templates.weights import Unacceptable

TEXT_MAX = 16 * 1024 * 1024
"""Most characters in the value of one function: replacements multiply, so a small template could fill the memory."""


ITEMS_MAX = 100_000
"""Most items in the value of one function."""
_WORK_MAX = 500_000_000
"""Most characters that `str_replace` may search."""
_PIECE_WORK = 50
"""Characters whose search takes as long as handling one piece of text."""
_SHOWN_MAX = 200
"""Most characters of a value in the message of an error."""


def checked_items(name: str, items: int) -> None:
    """Refuse a value of more than `ITEMS_MAX` items.

    Raises:
        Unacceptable: `items` exceeds the limit.
    """
    if items > ITEMS_MAX:
        raise Unacceptable(f'"{name}" would give more than {ITEMS_MAX} items')


def checked_size(name: str, size: int) -> None:
    """Refuse a value of more than `TEXT_MAX` characters.

    Raises:
        Unacceptable: `size` exceeds the limit.
    """
    if size > TEXT_MAX:
        raise Unacceptable(f'"{name}" would give {size} characters, more than {TEXT_MAX}')


def json_text(value: Any) -> str:
    """Return a value as JSON, formatted as in Heat: sorted keys, a space after commas and colons."""
    return json.dumps(value, sort_keys=True)


def shown(value: Any) -> str:
    """Return a value for the message of an error: as JSON, cut off if it is long."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


class ListJoin(Function):
    """Items of a list of strings as one text, with a delimiter between them."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [delimiter, list]')

    def apply(self, arguments: Any) -> Any:
        delimiter, *lists = arguments
        if not isinstance(delimiter, str):
            raise ValueError(f'The delimiter of "{self.name}" must be a string')
        for items in lists:
            if items is not None and not isinstance(items, list):
                raise ValueError(f'"{self.name}" joins lists, not {shown(items)}')
        texts = []
        size = 0
        for item in chain.from_iterable(items or () for items in lists):
            texts.append(self.text(item))
            size += len(texts[-1]) + len(delimiter)
            checked_size(self.name, size)
        return delimiter.join(texts)

    def text(self, item: Any) -> str:
        if item is None:
            return ""
        if isinstance(item, str):
            return item
        raise ValueError(f'Items of "{self.name}" must be strings, not {shown(item)}')


class ListJoinMany(ListJoin):
    """Items of one or more lists as one text, with a delimiter between them; maps and lists as JSON."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) < 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [delimiter, list, ...]')

    def text(self, item: Any) -> str:
        if isinstance(item, dict | list):
            return json_text(item)
        if item is None or isinstance(item, str):
            return item or ""
        raise ValueError(f'Items of "{self.name}" must be strings, maps or lists, not {shown(item)}')


class StrReplace(Function):
    """A text in which each key of `params` is replaced with its value."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, dict) or not {"template", "params"} <= arguments.keys():
            raise ValueError(f'Arguments to "{self.name}" must be a map with keys "template" and "params"')
        self.check_params(arguments["params"])

    def check_params(self, params: Any) -> None:
        if not isinstance(params, dict | Function):
            raise ValueError(f'The "params" of "{self.name}" must be a map')

    def apply(self, arguments: Any) -> Any:
        template, params = arguments["template"], arguments["params"]
        if not isinstance(template, str):
            raise ValueError(f'The "template" of "{self.name}" must be a string')
        if "" in params:
            raise ValueError(f'"{self.name}" cannot replace an empty text')
        # Longest key first, so that a shorter key cannot break a longer key around it. Pieces at even places are still
        # to be searched; pieces at odd places are inserted values, which must not be searched again.
        pieces = [template]
        size, work = len(template), 0
        for key in sorted(params, key=lambda key: (-len(key), key)):
            work += size + len(pieces) * _PIECE_WORK
            if work > _WORK_MAX:
                message = f'"{self.name}" would take too long: fewer params, or a shorter template, are needed'
                raise Unacceptable(message)
            value = self.text(key, params[key])
            splits = [piece.split(key) if place % 2 == 0 else [piece] for place, piece in enumerate(pieces)]
            count = sum(map(len, splits)) - len(splits)
            if count == 0:
                self.absent(key)
            size += count * (len(value) - len(key))
            checked_size(self.name, size)
            pieces = [piece for parts in splits for piece in _between(parts, value)]
        return "".join(pieces)

    def text(self, key: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str | int | float):
            return str(value)
        raise ValueError(f'The value of "{key}" in "{self.name}" must be a string, number or boolean')

    def absent(self, key: str) -> None:
        """Handle a key that the text does not contain; subclasses may refuse such keys."""


def _between(parts: list[str], value: str) -> list[str]:
    joined = [parts[0]]
    for part in parts[1:]:
        joined += (value, part)
    return joined


class StrReplaceJson(StrReplace):
    """A text in which each key of `params` is replaced with its value; maps and lists as JSON."""

    def text(self, key: str, value: Any) -> str:
        return json_text(value) if isinstance(value, dict | list) else super().text(key, value)


class StrReplaceStrict(StrReplaceJson):
    """As str_replace, but each key must be in the text."""

    def absent(self, key: str) -> None:
        raise ValueError(f'"{self.name}": the template does not have the param "{key}"')


class StrReplaceVeryStrict(StrReplaceStrict):
    """As str_replace, but each key must be in the text, and no value may be empty."""

    def text(self, key: str, value: Any) -> str:
        text = super().text(key, value)
        if value is None or value in ("", [], {}):
            raise ValueError(f'"{self.name}": the value of the param "{key}" is empty')
        return text


class StrSplit(Function):
    """A text split at a delimiter into a list, or one item of that list."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) not in (2, 3):
            raise ValueError(f'Arguments to "{self.name}" must be of the form [delimiter, string] or with an index')

    def apply(self, arguments: Any) -> Any:
        delimiter, text, *index = arguments
        if not isinstance(delimiter, str) or not delimiter:
            raise ValueError(f'The delimiter of "{self.name}" must be a string that is not empty')
        if text is None:
            return None
        if not isinstance(text, str):
            raise ValueError(f'"{self.name}" splits a string, not {shown(text)}')
        checked_items(self.name, text.count(delimiter) + 1)
        parts = text.split(delimiter)
        if not index:
            return parts
        try:
            return parts[int(index[0])]
        except IndexError:
            raise ValueError(f'"{self.name}": there is no item {index[0]} in {len(parts)}') from None
        except (TypeError, ValueError):
            raise ValueError(f'"{self.name}": the index {shown(index[0])} is not an integer') from None


class Digest(Function):
    """Hash of a text by any algorithm of hashlib, in hexadecimal."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, list) or len(arguments) != 2:
            raise ValueError(f'Arguments to "{self.name}" must be of the form [algorithm, string]')

    def apply(self, arguments: Any) -> Any:
        algorithm, text = arguments
        if not isinstance(algorithm, str) or algorithm not in hashlib.algorithms_available:
            known = ", ".join(sorted(hashlib.algorithms_available))
            raise ValueError(f'The algorithm of "{self.name}" must be one of: {known}')
        if not isinstance(text, str):
            raise ValueError(f'"{self.name}" takes a string, not {shown(text)}')
        try:
            digest = hashlib.new(algorithm, text.encode("latin-1"), usedforsecurity=False)
        except UnicodeEncodeError:
            raise ValueError(f'"{self.name}" takes letters of Latin-1 only, not {shown(text)}') from None
        if digest.digest_size == 0:
            raise ValueError(f'"{self.name}" cannot use {algorithm}, whose digests have no fixed length')
        return digest.hexdigest()


_URL_PARTS = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")


class MakeUrl(Function):
    """A URL from its parts, each escaped as it needs to be."""

    def check(self, arguments: Any) -> None:
        if not isinstance(arguments, dict):
            raise ValueError(f'Arguments to "{self.name}" must be a map of: {", ".join(_URL_PARTS)}')
        for key in arguments:
            if key not in _URL_PARTS:
                raise ValueError(f'"{self.name}" does not know "{key}", only: {", ".join(_URL_PARTS)}')

    def apply(self, arguments: Any) -> Any:
        texts = {part: self.text(part, arguments.get(part)) for part in _URL_PARTS if part != "query"}
        if ":" in texts["scheme"]:
            raise ValueError(f'The scheme of "{self.name}" must not contain ":"')
        path = quote(texts["path"], safe="/")
        return urlunsplit(
            (texts["scheme"], self.authority(texts), path, self.query(arguments), quote(texts["fragment"], safe=""))
        )

    def text(self, part: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str | int | float):
            return str(value)
        raise ValueError(f'The {part} of "{self.name}" must be a string')

    def query(self, arguments: Mapping[str, Any]) -> str:
        query = arguments.get("query") or {}
        if not isinstance(query, dict):
            raise ValueError(f'The query of "{self.name}" must be a map')
        return urlencode({key: self.text("query", value) for key, value in query.items()}, safe="/")

    def authority(self, texts: Mapping[str, str]) -> str:
        user = quote(texts["username"], safe="")
        if texts["password"]:
            user += ":" + quote(texts["password"], safe="")
        host = texts["host"]
        host = f"[{host.strip('[]')}]" if ":" in host else quote(host, safe="")
        port = texts["port"]
        if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
            raise ValueError(f'The port of "{self.name}" must be a number from 1 to 65535, not {port}')
        return (f"{user}@" if user else "") + host + (f":{port}" if port else "")
