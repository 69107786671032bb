"""Redaction: the values of hidden parameters, and their removal from all output for users. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from homeostat.model.errors import Rejected
from homeostat.templates.parameters import HIDDEN, Parameter
from homeostat.templates.tree import UNKNOWN

SHORT = 4
"""Hidden texts of fewer characters are redacted only as a whole value; longer ones also within longer texts."""


@dataclass(frozen=True, slots=True)
class HiddenValues:
    """Hidden values of a stack, as texts."""

    texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter]) -> "HiddenValues":
        """Collect the values of the hidden parameters."""
        return cls.within(parameter.value for parameter in parameters.values() if parameter.schema.hidden)

    @classmethod
    def within(cls, values: Iterable[Any]) -> "HiddenValues":
        """Collect all texts and numbers in trees of plain data."""
        return cls(frozenset(text for value in values for text in texts_in(value)) - {""})

    def __or__(self, other: "HiddenValues") -> "HiddenValues":
        return HiddenValues(self.texts | other.texts)

    def is_hidden(self, value: Any) -> bool:
        """Return whether a text or number is hidden, or contains a hidden text of at least `SHORT` characters."""
        if not self.texts or value is None or isinstance(value, bool):
            return False
        text = str(value)
        return text in self.texts or any(len(hidden) >= SHORT and hidden in text for hidden in self.texts)

    def among(self, tree: Any) -> "HiddenValues":
        """Return the hidden values that occur anywhere in a tree of plain data."""
        held = set(texts_in(tree))
        long = {hidden for hidden in self.texts - held if len(hidden) >= SHORT and any(hidden in text for text in held)}
        return HiddenValues((self.texts & held) | long)

    def plain(self, tree: Any) -> Any:
        """Return a tree of plain data with hidden values replaced by `HIDDEN`."""
        if isinstance(tree, Mapping):
            return {key: self.plain(item) for key, item in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.plain(item) for item in tree]
        return HIDDEN if self.is_hidden(tree) else tree

    def text(self, text: str) -> str:
        """Redact a sentence, including hidden values quoted as in Python, JSON and URLs."""
        if not self.texts:
            return text
        # Longest first: a shorter hidden text within a longer one would leave the rest of the longer one visible.
        for hidden in sorted(self.texts, key=len, reverse=True):
            if len(hidden) >= SHORT:
                for form in (hidden, repr(hidden)[1:-1], json.dumps(hidden)[1:-1], quote(hidden, safe="")):
                    text = text.replace(form, HIDDEN)
        return text

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Redact the Rejected errors that leave the `with` block."""
        try:
            yield
        except Rejected as error:
            redacted = self._redacted(error)
            if str(redacted) == str(error):
                raise
            raise redacted from None  # a traceback would quote the original error

    def _redacted(self, error: Rejected) -> Rejected:
        path = [self.text(part) if isinstance(part, str) else part for part in error.path]
        return Rejected(error.fault, self.text(error.detail), error=error.error, path=path)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a tree of plain data, without the keys of maps."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
    elif value is not None and not isinstance(value, bool) and value is not UNKNOWN:
        yield str(value)
