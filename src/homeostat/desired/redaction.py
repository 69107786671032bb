"""What must not be shown of properties and reasons: secrets, and values of parameters that are hidden."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row

from homeostat.desired.cache import Cache
from homeostat.desired.graphs import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import HomeostatError, Rejected
from homeostat.model.world import StackFacts
from homeostat.resources.nested import as_given
from homeostat.resources.secrets import is_secret, secret_attributes
from homeostat.store.stacks import stacks
from homeostat.store.stacks.stacks import Desired
from homeostat.templates import HIDDEN, UNKNOWN, Compiled
from homeostat.templates.environments import inherited
from homeostat.templates.hidden_parameters import HiddenValues

NOT_YET = "(not known yet)"
KEPT_MAX = 256
_WHOLE, _ATTRIBUTE = ("get_param", "get_resource", "Ref"), ("get_attr", "Fn::GetAtt")
"""Functions that read parameters and resources."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """hidden — values; derived — properties, as (resource, property), that are made from hidden parameters, or from
    attributes that are secrets."""

    hidden: HiddenValues = field(default_factory=HiddenValues)
    derived: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def over(cls, stack: Row[Any], desired: Desired, compiled: Compiled | None) -> "Redaction":
        """What hides the secrets of a stack, by its own revision; nothing where it has none.

        compiled — the template of the revision, None for groups and chains.
        """
        if stack.secret is False:
            return cls()
        veil = cls(inherited(desired.environment))
        return veil if compiled is None else veil.of(compiled)

    def of(self, compiled: Compiled) -> "Redaction":
        """With the hidden parameters of one more template, and the secrets that its resources make."""
        secret = {(name, "") for name, each in compiled.parameters.items() if each.schema.hidden}
        for name, each in compiled.definitions.items():
            secret.update((name, attribute) for attribute in secret_attributes(each.type))
        derived = {
            (resource, prop)
            for resource, properties in _properties(compiled.raw)
            for prop, snippet in properties.items()
            if secret and not secret.isdisjoint(_reads(snippet))
        }
        return Redaction(self.hidden | HiddenValues.of(compiled.parameters), self.derived | derived)

    def __or__(self, other: "Redaction") -> "Redaction":
        return Redaction(self.hidden | other.hidden, self.derived | other.derived)

    def inside(self, resource: str, properties: Mapping[str, Any], *, by_name: bool) -> HiddenValues:
        """What a stack must hide that is made from these properties of a resource. by_name — each of them becomes a
        parameter there: then what is made from a hidden one is hidden as a whole."""
        made = [value for name, value in properties.items() if by_name and (resource, name) in self.derived]
        return self.hidden.among(as_given(properties)) | HiddenValues.within(made)

    def shown(self, resource: str, name: str, value: Any) -> Any:
        """A property as anybody may see it: plain data, hidden parts as `HIDDEN`, what is not known as `NOT_YET`."""
        if value is UNKNOWN:
            return NOT_YET
        if value not in (None, "") and ((resource, name) in self.derived or is_secret(name)):
            return HIDDEN
        return self.plain(value)

    def text(self, text: str) -> str:
        """A sentence without hidden values."""
        return self.hidden.text(text)

    def plain(self, value: Any, *, by_name: bool = True) -> Any:
        """Any value as anybody may see it, without properties of ours. by_name — what stands under the name of a secret
        is one."""
        if value is UNKNOWN:
            return NOT_YET
        if isinstance(value, Mapping):
            return {
                key: HIDDEN if by_name and item and is_secret(str(key)) else self.plain(item, by_name=by_name)
                for key, item in as_given(value).items()
            }
        if isinstance(value, list | tuple):
            return [self.plain(item, by_name=by_name) for item in value]
        return HIDDEN if self.hidden.is_hidden(value) else value


Told = Callable[[str], str]
"""A text -> the same without hidden values."""


def veiled(error: Exception, told: Told) -> Exception:
    """The same error, saying what may be told; itself where that is all."""
    shown = told(str(error))
    if shown == str(error):
        return error
    other: Exception = RuntimeError(f"{type(error).__name__}: {shown}")
    if isinstance(error, HomeostatError):
        other = error.__class__.__new__(error.__class__, shown)
        other.__dict__ |= error.__dict__
    if isinstance(other, Rejected):
        other.detail = told(other.detail)
    return other.with_traceback(error.__traceback__)


class Redactions:
    """Veils over stored revisions, kept in memory: revisions never change. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: Cache[tuple[str, int], Redaction] = Cache(KEPT_MAX)

    def over(self, tx: Connection, stack: StackFacts, more: Iterable[int | None] = ()) -> Redaction:
        """What hides the secrets of a stack, those of its newest revision and of these. None is no revision."""
        veil = Redaction()
        if stack.secret is not False:
            for number in {stack.revision, *more} - {None, 0}:
                veil |= self._of(tx, stack, number or 0)
        return veil

    def _of(self, tx: Connection, stack: StackFacts, number: int) -> Redaction:
        return self._kept.get((stack.id, number), lambda: _made(tx, stack, number))


def _made(tx: Connection, stack: StackFacts, number: int) -> Redaction:
    try:
        desired = stacks.desired_of(tx, stack.id, number)
    except LookupError:  # an old one may be gone, and its values with it
        return Redaction()
    veil = Redaction(inherited(desired.environment))
    if desired.kind != "template":
        return veil
    try:
        return veil.of(compile_desired(desired, Identity(stack.id, stack.name, stack.project), strict=False))
    except Rejected:  # by a newer version of the service: then nothing of it was evaluated either
        return replace(veil, hidden=veil.hidden | HiddenValues.within([desired.parameters]))


def _properties(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and properties of each resource of a template in either language."""
    for name, entry in (raw.get("resources") or raw.get("Resources") or {}).items():
        properties = (entry.get("properties") or entry.get("Properties")) if isinstance(entry, Mapping) else None
        if isinstance(properties, Mapping):
            yield name, properties


def _reads(snippet: Any) -> Iterator[tuple[str, str]]:
    """What a snippet of a template reads: parameters and resources as (name, ""), and (resource, attribute)."""
    if isinstance(snippet, Mapping):
        for key, value in snippet.items():
            parts = value if isinstance(value, list) else [value]
            texts = [part for part in parts[:2] if isinstance(part, str)]
            if key in _WHOLE:
                yield from ((name, "") for name in texts[:1])
            elif key in _ATTRIBUTE and texts:
                yield texts[0], texts[1] if len(texts) > 1 else "show"  # which attribute is not known here: any
            yield from _reads(value)
    elif isinstance(snippet, list):
        for item in snippet:
            yield from _reads(item)
