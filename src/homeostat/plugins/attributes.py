"""Attributes of resources: their schemas, and their values as handlers read them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from homeostat.plugins.support import HIDDEN, SupportStatus
from homeostat.resources.schema import Attribute, ValueType
from homeostat.templates.tree import traverse


class Schema:
    """Schema of an attribute.

    Args:
        description: The description for users.
        cache_mode: With `CACHE_NONE` a value is never taken from an earlier observation.
        type: The type of the value, for documentation.
    """

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
        """Return the schema in the form of resource types."""
        kind = ValueType(self.type.lower()) if self.type in self.TYPES else ValueType.ANY
        deprecated = self.support_status.status in ("DEPRECATED", HIDDEN)
        return Attribute(self.description or "", kind, self.cache_mode == self.CACHE_NONE, deprecated)


class Attributes(Mapping[str, Any]):
    """Values of the attributes of one resource, each resolved on first use.

    Args:
        schema: The attributes, by name.
        resolve: Returns the value of an attribute.
    """

    def __init__(self, name: str, schema: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        self._name, self._resolve = name, resolve
        self.schema = schemata(schema)
        self._known: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        """Return the value of an attribute.

        Raises:
            KeyError: The schema has no such attribute.
        """
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
        """Forget the values, so that each is resolved again on its next use."""
        self._known.clear()


def select_from_attribute(value: Any, path: Sequence[Any]) -> Any:
    """Follow a path of keys and indices into the value of an attribute; None if the path does not exist."""
    return traverse(value, path)


def schemata(schema: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schemas by name; an attribute may be given by its description alone."""
    return {name: entry if isinstance(entry, Schema) else Schema(str(entry)) for name, entry in schema.items()}
