"""Schemas of attributes."""

from collections.abc import Mapping
from typing import Any

from homeostat.plugins.support import HIDDEN, SupportStatus
from homeostat.resources.schema import Attribute, Kind


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


def schemata(schema: Mapping[str, Any]) -> dict[str, Schema]:
    """An attribute may be described by its text alone."""
    return {name: each if isinstance(each, Schema) else Schema(str(each)) for name, each in schema.items()}
