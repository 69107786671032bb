"""YAML text -> plain data, built from parser events. Used by `parser` alone.

The composer of the library recurses without a limit in C code: a line of 200,000 dashes would end the process.
This parser is also stricter than YAML: keys are text as written, tags beyond the JSON types are refused, timestamps
stay text, and numbers are finite.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events
from yaml.constructor import SafeConstructor

DEPTH_MAX = 100
"""Most levels of nesting; real templates have less than 30."""
NODES_MAX = 1_000_000
"""Most values in a document; each alias counts as a full copy of its value, so aliases cannot multiply unseen."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = (None, "!", f"{_TAG}map", f"{_TAG}seq")


def parse_yaml(text: str) -> Any:
    """Parse the one document in `text`; None if the text is empty.

    Raises:
        ValueError: The text is not YAML, or breaks a bound; the message names line and column.
    """
    loader = _LOADER(text)
    builder = _Builder(loader.resolve)
    try:
        while not isinstance(event := loader.get_event(), events.StreamEndEvent):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _error(": ".join(filter(None, (error.context, error.problem))), error.problem_mark) from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()
    return builder.document


def _error(problem: str, mark: Any) -> ValueError:
    return ValueError(f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem)


def _scalar(construct: Callable[..., Any]) -> Callable[[str], Any]:
    constructor = SafeConstructor()
    return lambda text: construct(constructor, yaml.ScalarNode("", text))


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    f"{_TAG}str": str,
    f"{_TAG}timestamp": str,
    f"{_TAG}value": str,
    f"{_TAG}merge": str,
    f"{_TAG}null": lambda _text: None,
    f"{_TAG}bool": _scalar(SafeConstructor.construct_yaml_bool),
    f"{_TAG}int": _scalar(SafeConstructor.construct_yaml_int),
    f"{_TAG}float": _scalar(SafeConstructor.construct_yaml_float),
}


@dataclass(frozen=True, slots=True)
class _Built:
    """A finished value.

    Attributes:
        nodes: Number of values in it, itself included.
        depth: Levels of collections in it; 0 for a scalar.
    """

    value: Any
    nodes: int = 1
    depth: int = 0


@dataclass(slots=True)
class _Open:
    """A collection being built.

    Attributes:
        key: Key of a map whose value comes next; None for a list, or if a key comes next.
        merging: Whether the key is `<<`.
        merged: Maps referenced by `<<`; they fill in missing keys.
    """

    value: Any
    anchor: str | None
    nodes: int = 1
    depth: int = 1
    key: str | None = None
    merging: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class _Builder:
    """Builder of one document from its events; open collections are kept in a list, so nesting costs no recursion."""

    def __init__(self, resolve: Callable[..., str]) -> None:
        self.resolve = resolve
        self.open: list[_Open] = []
        self.anchors: dict[str, _Built] = {}
        self.document: Any = None
        self.documents = 0

    def take(self, event: Any) -> None:
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def start_document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise _error("expected a single document", event.start_mark)

    def start_collection(self, event: Any) -> None:
        if self.open and self.open[-1].wants_key:
            raise _error("a map or list cannot be a key", event.start_mark)
        if event.tag not in _COLLECTIONS:
            raise _error(f"the tag {event.tag} is not supported", event.start_mark)
        # An anchor may be defined again: within its new value the old value must not be visible.
        self.anchors.pop(event.anchor, None)
        self.open.append(_Open({} if isinstance(event, events.MappingStartEvent) else [], event.anchor))
        self.check_depth(0, event)

    def end_collection(self, event: Any) -> None:
        done = self.open.pop()
        for mapping in done.merged:
            for key, value in mapping.items():
                done.value.setdefault(key, value)
        built = _Built(done.value, done.nodes, done.depth)
        if done.anchor is not None:
            self.anchors[done.anchor] = built
        self.add(built, event)

    def alias(self, event: Any) -> None:
        built = self.anchors.get(event.anchor)
        if built is not None:
            self.add(built, event)
            return
        within = any(collection.anchor == event.anchor for collection in self.open)
        problem = "stands for what contains it" if within else "is not defined"
        raise _error(f"the alias {event.anchor} {problem}", event.start_mark)

    def scalar(self, event: Any) -> None:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.resolve(yaml.ScalarNode, event.value, event.implicit)
        if self.open and self.open[-1].wants_key:
            self.open[-1].key = event.value
            self.open[-1].merging = tag == f"{_TAG}merge"
            built = _Built(event.value)
        else:
            built = _Built(_scalar_value(tag, event))
            self.add(built, event)
        if event.anchor is not None:
            self.anchors[event.anchor] = built

    def add(self, built: _Built, event: Any) -> None:
        """Put a finished value in its place: at the end of a list, under the pending key, or at the top."""
        if not self.open:
            self.document = built.value
            return
        parent = self.open[-1]
        parent.nodes += built.nodes
        parent.depth = max(parent.depth, built.depth + 1)
        if parent.nodes > NODES_MAX:
            raise _error(f"it holds more than {NODES_MAX} values", event.start_mark)
        self.check_depth(built.depth, event)
        if isinstance(parent.value, list):
            parent.value.append(built.value)
        elif parent.key is None:
            parent.key = _alias_key(built.value, event)
        elif parent.merging:
            parent.merged += _merged(built.value, event)
            parent.key = None
        else:
            parent.value[parent.key] = built.value
            parent.key = None

    def check_depth(self, below: int, event: Any) -> None:
        if len(self.open) + below > DEPTH_MAX:
            raise _error(f"it is nested more than {DEPTH_MAX} levels deep", event.start_mark)


def _scalar_value(tag: str, event: Any) -> Any:
    try:
        value = _SCALARS[tag](event.value)
        if not isinstance(value, float) or math.isfinite(value):
            return value
        problem = f"{event.value[:40]!r} is not a finite number"
    except KeyError:
        problem = f"{event.value[:40]!r} cannot be read as {tag}"
    except (ValueError, IndexError) as error:
        problem = f"{event.value[:40]!r} is not a number: {error}"
    raise _error(problem, event.start_mark)


def _alias_key(value: Any, event: Any) -> str:
    if isinstance(value, str):
        return value
    raise _error("an alias used as a key must stand for text", event.start_mark)


def _merged(value: Any, event: Any) -> list[dict[str, Any]]:
    maps = value if isinstance(value, list) else [value]
    if all(isinstance(item, dict) for item in maps):
        return maps
    raise _error("<< takes a map or a list of maps", event.start_mark)


_STEPS: Mapping[type, Callable[[_Builder, Any], None]] = {
    events.DocumentStartEvent: _Builder.start_document,
    events.MappingStartEvent: _Builder.start_collection,
    events.SequenceStartEvent: _Builder.start_collection,
    events.MappingEndEvent: _Builder.end_collection,
    events.SequenceEndEvent: _Builder.end_collection,
    events.AliasEvent: _Builder.alias,
    events.ScalarEvent: _Builder.scalar,
}
