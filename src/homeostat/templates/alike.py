"""Alike resources of a template: entries of equal text become one object, compiled and checked once."""

from collections.abc import Mapping
from typing import Any

import orjson

from homeostat.model.desired import Definition
from homeostat.templates.tree import is_dynamic

_PLAIN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
"""Only plain data has a text: two values of other types may have the same."""
_KEYS = frozenset(
    ("type", "description", "properties", "metadata", "deletion_policy", "update_policy", "creation_policy")
)


def text_of(tree: Any) -> bytes | None:
    """Return the text of plain data, equal only for equal data of the same order; None for anything else."""
    try:
        return orjson.dumps(tree, option=_PLAIN)
    except TypeError:
        return None


def with_alike_shared(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template in which resources of equal text are one object."""
    shared = dict(document)
    for section in ("resources", "Resources"):
        entries = document.get(section)
        if isinstance(entries, dict):
            first: dict[bytes | None, Any] = {}
            texts = {name: text_of(entry) for name, entry in entries.items()}
            shared[section] = {
                name: entries[name] if text is None else first.setdefault(text, entries[name])
                for name, text in texts.items()
            }
    return shared


def is_alone(entry: Mapping[str, Any], definition: Definition) -> bool:
    """Return whether a definition depends on no other resource and on no place, so that all of its entry are alike."""
    others = (definition.metadata, definition.update_policy, definition.creation_policy)
    return definition.static and not any(map(is_dynamic, others)) and entry.keys() <= _KEYS


def renamed(definition: Definition, name: str) -> Definition:
    """Return the definition of an alike resource. Built directly: `replace` costs several times as much."""
    return Definition(
        name,
        definition.type,
        definition.properties,
        definition.metadata,
        definition.requires,
        definition.deletion_policy,
        definition.update_policy,
        definition.creation_policy,
        definition.description,
        definition.external_id,
        definition.static,
    )
