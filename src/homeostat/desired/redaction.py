"""Redaction of properties and reasons: secrets, and values of hidden parameters, are never output."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeostat.desired.cache import Cache
from homeostat.desired.compiling import compile_desired
from homeostat.model.desired import Identity
from homeostat.model.errors import HomeostatError, Rejected
from homeostat.model.world import StackFacts
from homeostat.resources.nested import public_properties
from homeostat.resources.secrets import is_secret, secret_attributes
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions
from homeostat.store.stacks.contents import Content
from homeostat.templates import HIDDEN, UNKNOWN, Compiled
from homeostat.templates.environments import inherited
from homeostat.templates.hidden_parameters import HiddenValues

NOT_YET = "(not known yet)"
"""Placeholder for a value that is known only once another resource exists."""
CACHE_MAX = 256
"""Redactions of revisions kept in memory."""
_WHOLE, _ATTRIBUTE = ("get_param", "get_resource", "Ref"), ("get_attr", "Fn::GetAtt")
"""Names of functions, in either template language, that read a parameter or resource, or an attribute."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """The values and properties of a stack that have to be hidden in output.

    Attributes:
        hidden: Values to hide wherever they occur.
        derived: (resource, property) of properties derived from hidden parameters or secret attributes. They are hidden
            as a whole, since a function may have changed the value beyond recognition.
    """

    hidden: HiddenValues = field(default_factory=HiddenValues)
    derived: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def over(cls, stack: StackRow, content: Content, compiled: Compiled | None) -> "Redaction":
        """Return the redaction of one revision of a stack; an empty one if the stack has no secrets.

        Args:
            compiled: The revision's template, compiled; None for groups and chains.
        """
        if stack.secret is False:
            return cls()
        redaction = cls(inherited(content.environment))
        return redaction if compiled is None else redaction.of(compiled)

    def of(self, compiled: Compiled) -> "Redaction":
        """Return this redaction, extended by a template's hidden parameters and its resources' secret attributes."""
        secret = {(name, "") for name, parameter in compiled.parameters.items() if parameter.schema.hidden}
        for name, definition in compiled.definitions.items():
            secret.update((name, attribute) for attribute in secret_attributes(definition.type))
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
        """Return the hidden values of a nested stack that is made from the properties of a resource.

        Args:
            by_name: Whether each property becomes a parameter of the nested stack. Then derived values are hidden as a
                whole there, too.
        """
        values = [value for name, value in properties.items() if by_name and (resource, name) in self.derived]
        return self.hidden.among(public_properties(properties)) | HiddenValues.within(values)

    def shown(self, resource: str, name: str, value: Any) -> Any:
        """Return a property redacted: plain data, hidden parts as `HIDDEN`, values not known yet as `NOT_YET`."""
        if value is UNKNOWN:
            return NOT_YET
        if value not in (None, "") and ((resource, name) in self.derived or is_secret(name)):
            return HIDDEN
        return self.plain(value)

    def text(self, text: str) -> str:
        """Return a sentence without hidden values."""
        return self.hidden.text(text)

    def plain(self, value: Any, *, by_name: bool = True) -> Any:
        """Return any value redacted, without the service's internal properties.

        Args:
            value: Plain data, perhaps with `UNKNOWN` in it.
            by_name: Whether to hide values under keys that suggest secrets (`password`, …).
        """
        if value is UNKNOWN:
            return NOT_YET
        if isinstance(value, Mapping):
            return {
                key: HIDDEN if by_name and item and is_secret(str(key)) else self.plain(item, by_name=by_name)
                for key, item in public_properties(value).items()
            }
        if isinstance(value, list | tuple):
            return [self.plain(item, by_name=by_name) for item in value]
        return HIDDEN if self.hidden.is_hidden(value) else value


Redact = Callable[[str], str]
"""A function that removes hidden values from a text."""


def redacted(error: Exception, redact: Redact) -> Exception:
    """Return an error of the same class with a redacted message; the error itself if there is nothing to hide."""
    text = redact(str(error))
    if text == str(error):
        return error
    other: Exception = RuntimeError(f"{type(error).__name__}: {text}")
    # Not by a call of the class, since the arguments differ. The attributes (fault, path, retry_after_s) are copied.
    if isinstance(error, HomeostatError):
        other = error.__class__.__new__(error.__class__, text)
        other.__dict__ |= error.__dict__
    if isinstance(other, Rejected):
        other.detail = redact(other.detail)
    return other.with_traceback(error.__traceback__)


class Redactions:
    """Cache of the redactions of stored revisions, which never change. Safe to share between threads."""

    def __init__(self) -> None:
        self._cache: Cache[tuple[str, int], Redaction] = Cache(CACHE_MAX)

    def over(self, tx: Transaction, stack: StackFacts, more: Iterable[int | None] = ()) -> Redaction:
        """Return the redaction of a stack for its newest revision, and for the revisions in `more`.

        None and 0 in `more` stand for no revision.
        """
        redaction = Redaction()
        if stack.secret is not False:
            for number in {stack.revision, *more} - {None, 0}:
                redaction |= self._of(tx, stack, number or 0)
        return redaction

    def _of(self, tx: Transaction, stack: StackFacts, number: int) -> Redaction:
        return self._cache.get((stack.id, number), lambda: _redaction_of(tx, stack, number))


def _redaction_of(tx: Transaction, stack: StackFacts, number: int) -> Redaction:
    try:
        content = revisions.content_of(tx, stack.id, number)
    except LookupError:  # an old revision may have been purged, and its values with it
        return Redaction()
    redaction = Redaction(inherited(content.environment))
    if content.kind != "template":
        return redaction
    try:
        return redaction.of(compile_desired(content, Identity(stack.id, stack.name, stack.project), strict=False))
    except Rejected:
        # This version of the service rejects a template that an earlier version accepted. Which parameters are hidden
        # is unknown, so all are; and since the template cannot be evaluated, it yields no other secrets.
        return replace(redaction, hidden=redaction.hidden | HiddenValues.within([content.parameters]))


def _properties(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and properties of each resource of a template in either language."""
    for name, entry in (raw.get("resources") or raw.get("Resources") or {}).items():
        properties = (entry.get("properties") or entry.get("Properties")) if isinstance(entry, Mapping) else None
        if isinstance(properties, Mapping):
            yield name, properties


def _reads(snippet: Any) -> Iterator[tuple[str, str]]:
    """Yield the reads of a snippet: parameters and resources as (name, ""), and (resource, attribute)."""
    if isinstance(snippet, Mapping):
        for key, value in snippet.items():
            parts = value if isinstance(value, list) else [value]
            texts = [part for part in parts[:2] if isinstance(part, str)]
            if key in _WHOLE:
                yield from ((name, "") for name in texts[:1])
            elif key in _ATTRIBUTE and texts:
                yield texts[0], texts[1] if len(texts) > 1 else "show"  # without a name all attributes are read
            yield from _reads(value)
    elif isinstance(snippet, list):
        for item in snippet:
            yield from _reads(item)
