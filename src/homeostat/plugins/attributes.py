"""Schemas of attributes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.plugins.support import HIDDEN, SupportStatus
from homeostat.resources.schema import Attribute, Kind
from homeostat.templates.tree import traverse


class Schema:
    """Takes: description; support_status; cache_mode — a value with CACHE_NONE is never served from an old look; type —
    of the value, for documentation."""

    CACHE_LOCAL, CACHE_NONE = "cache_local", "cache_none"
    STRING, MAP, LIST, INTEGER, BOOLEAN = TYPES = ("String", "Map", "List", "Integer", "Boolean")

    def __init__(
        self,
        description: str | None = None,
        support_status: SupportStatus | None = None,
        cache_mode: str = CACHE_LOCAL,
        type: str | None = None,
    ) -> None:
        self.description = description
        self.support_status = support_status or SupportStatus()
        self.cache_mode = cache_mode
        self.type = type

    def attribute(self) -> Attribute:
        """As resource types have it."""
        kind = Kind(self.type.lower()) if self.type in self.TYPES else Kind.ANY
        deprecated = self.support_status.status in ("DEPRECATED", HIDDEN)
        return Attribute(self.description or "", kind, self.cache_mode == self.CACHE_NONE, deprecated)


class Attributes(Mapping[str, Any]):
    """Values of the attributes of one resource, asked for when they are read, and once each.

    Takes: name — of the resource; schema — attributes by name; resolve — gives the value of one.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        self._name, self._resolve = name, resolve
        self.schema = schemata(schema)
        self._known: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        """Fails: KeyError for an attribute that the schema does not have."""
        if key not in self.schema:
            raise KeyError(f"{self._name}: Invalid attribute {key}")
        if key not in self._known:
            self._known[key] = self._resolve(key)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema)

    def __len__(self) -> int:
        return len(self.schema)

    def __contains__(self, key: object) -> bool:
        return key in self.schema

    def reset_resolved_values(self) -> None:
        """What is read from now on is asked for anew."""
        self._known.clear()


def select_from_attribute(value: Any, path: Sequence[Any]) -> Any:
    """What a path of keys and indices leads to inside the value of an attribute; None where it leads nowhere."""
    return traverse(value, path)


def schemata(schema: Mapping[str, Any]) -> dict[str, Schema]:
    """An attribute may be described by its text alone."""
    return {name: each if isinstance(each, Schema) else Schema(str(each)) for name, each in schema.items()}
