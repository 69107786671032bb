"""What must not be shown of properties: secrets, and values of parameters that are hidden."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from homeostat.resources.nested import as_given
from homeostat.resources.secrets import SECRET
from homeostat.templates import HIDDEN, UNKNOWN, Compiled

SHORT = 4
"""A hidden text of fewer characters is hidden where it stands alone; a longer one also within others."""
NOT_YET = "(not known yet)"
_READS = ("get_param", "Ref")


@dataclass(frozen=True, slots=True)
class Veil:
    """texts — hidden values; derived — properties, as (resource, property), that are made from hidden parameters."""

    texts: frozenset[str] = frozenset()
    derived: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def over(cls, stack: Row[Any], compiled: Compiled | None) -> "Veil":
        """What hides the secrets of a stack, by its own template; nothing where it has none."""
        return cls() if compiled is None or stack.secret is False else cls().of(compiled)

    def of(self, compiled: Compiled) -> "Veil":
        """With the hidden parameters of one more template."""
        hidden = {name: each for name, each in compiled.parameters.items() if each.schema.hidden}
        texts = {text for each in hidden.values() for text in _texts(each.value)} - {""}
        derived = {
            (resource, prop)
            for resource, properties in _properties(compiled.raw)
            for prop, snippet in properties.items()
            if hidden and not hidden.keys().isdisjoint(_parameters(snippet))
        }
        return Veil(self.texts | texts, self.derived | derived)

    def shown(self, resource: str, name: str, value: Any) -> Any:
        """A property as anybody may see it: plain data, hidden parts as `HIDDEN`, what is not known as `NOT_YET`."""
        if value is UNKNOWN:
            return NOT_YET
        if value not in (None, "") and ((resource, name) in self.derived or SECRET.search(name)):
            return HIDDEN
        return self.plain(value)

    def text(self, text: str) -> str:
        """A sentence without hidden values."""
        for each in sorted(self.texts, key=len, reverse=True):
            if len(each) >= SHORT:
                text = text.replace(each, HIDDEN)
        return text

    def plain(self, value: Any, *, by_name: bool = True) -> Any:
        """Any value as anybody may see it, without properties of ours. by_name — what stands under the name of a secret
        is one."""
        if value is UNKNOWN:
            return NOT_YET
        if isinstance(value, Mapping):
            return {
                key: HIDDEN if by_name and item and SECRET.search(str(key)) else self.plain(item, by_name=by_name)
                for key, item in as_given(value).items()
            }
        if isinstance(value, list | tuple):
            return [self.plain(item, by_name=by_name) for item in value]
        return HIDDEN if self._is_hidden(value) else value

    def _is_hidden(self, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return False
        text = str(value)
        return text in self.texts or any(len(each) >= SHORT and each in text for each in self.texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool) and value is not UNKNOWN:
        yield str(value)


def _properties(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and properties of each resource of a template in either language."""
    for name, entry in (raw.get("resources") or raw.get("Resources") or {}).items():
        properties = (entry.get("properties") or entry.get("Properties")) if isinstance(entry, Mapping) else None
        if isinstance(properties, Mapping):
            yield name, properties


def _parameters(snippet: Any) -> Iterator[str]:
    """Names of parameters that a snippet of a template reads."""
    if isinstance(snippet, Mapping):
        for key, value in snippet.items():
            if key in _READS:
                yield from ([value] if isinstance(value, str) else value[:1] if isinstance(value, list) else [])
            yield from _parameters(value)
    elif isinstance(snippet, list):
        for item in snippet:
            yield from _parameters(item)
