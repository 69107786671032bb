"""Where the token of a creation travels, since OpenStack's services know no idempotency tokens (CV18).

A thing carries its token from the first moment on, in a place that the service stores with the creation and shows in
its lists: tags, metadata, the description, the name, or the id itself. So one list finds what a lost answer made.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from homeostat.clouds.openstack.service import Wire
from homeostat.model.errors import Terminal

PREFIX = "homeostat:"
KEY = "homeostat_token"
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "homeostat:things-of-openstack")
FILTER_MAX = 50
"""Tokens in one query: its address must not become too long."""


class TokenPlace(Protocol):
    """Place of the token in a thing of one kind."""

    words: str
    """For the documentation."""
    field: str
    """Field of the service that has it; "" where no change of a thing can lose it."""

    def write(self, body: Wire, token: str) -> Wire:
        """Return the body of a creation with the token in it."""

    def read(self, thing: Wire) -> str:
        """Return the token of a thing; "" if it has none."""

    def hide(self, thing: Wire) -> Wire:
        """Return a thing as its user meant it, without the token."""

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the queries whose lists together have all things with these tokens, perhaps among others."""


class InTags:
    """The token is a tag, beside those of the user."""

    def __init__(self, field: str = "tags", query: str = "tags-any") -> None:
        self.words = "a tag"
        self.field = field
        self._query = query

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, self.field: [*(body.get(self.field) or ()), PREFIX + token]}

    def read(self, thing: Wire) -> str:
        found = (each for each in thing.get(self.field) or () if each.startswith(PREFIX))
        return next(found, PREFIX).removeprefix(PREFIX)

    def hide(self, thing: Wire) -> Wire:
        return {**thing, self.field: [each for each in thing.get(self.field) or () if not each.startswith(PREFIX)]}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        if not self._query:
            return [{}]
        return [{self._query: ",".join(PREFIX + each for each in some)} for some in _portions(tokens)]


class InMetadata:
    """The token is an entry of the metadata, beside those of the user."""

    def __init__(self, field: str = "metadata") -> None:
        self.words = f"the entry `{KEY}` of {field}"
        self.field = field

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, self.field: {**(body.get(self.field) or {}), KEY: token}}

    def read(self, thing: Wire) -> str:
        return str((thing.get(self.field) or {}).get(KEY, ""))

    def hide(self, thing: Wire) -> Wire:
        return {**thing, self.field: {k: v for k, v in (thing.get(self.field) or {}).items() if k != KEY}}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return [{}]


class InField:
    """The token is a field of its own, which the service keeps without knowing it."""

    def __init__(self) -> None:
        self.words = f"the field `{KEY}`"
        self.field = ""

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, KEY: token}

    def read(self, thing: Wire) -> str:
        return str(thing.get(KEY) or "")

    def hide(self, thing: Wire) -> Wire:
        return {name: value for name, value in thing.items() if name != KEY}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return [{}]


class InText:
    """The token is the end of a text, after what the user wrote there, to the last space of it."""

    _END = re.compile(r" ?\[homeostat:([^\]\s]*)\]$")

    def __init__(self, field: str = "description", limit: int = 255) -> None:
        """Choose the field, and the most characters that the service stores there."""
        self.words = f"the end of the {field}"
        self.field = field
        self._limit = limit

    def write(self, body: Wire, token: str) -> Wire:
        """Return the body of a creation with the token in it.

        Raises:
            Terminal: The text of the user leaves no room for it.
        """
        mark = f" [{PREFIX}{token}]"
        text = str(body.get(self.field) or "")
        room = self._limit - len(mark)
        if len(text) > room:
            raise Terminal(f"{self.field}: it has {len(text)} characters, and may have {room} on this cloud")
        return {**body, self.field: text + mark if text else mark.lstrip()}

    def read(self, thing: Wire) -> str:
        found = self._END.search(thing.get(self.field) or "")
        return found[1] if found else ""

    def hide(self, thing: Wire) -> Wire:
        return {**thing, self.field: self._END.sub("", thing.get(self.field) or "")}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return [{}]


class InDescription(InText):
    """The token is the end of the description, until that is changed; then it is a tag, where things have tags."""

    def __init__(self) -> None:
        super().__init__()
        self.words = "the end of the description; a tag once that was changed, where there are tags"
        self._tags = InTags()

    def read(self, thing: Wire) -> str:
        return super().read(thing) or self._tags.read(thing)


class AsId:
    """The id is chosen by this service, from the token."""

    words = "the id, which is made from it"
    field = ""

    def __init__(self, id_field: str = "id") -> None:
        self._id_field = id_field

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, self._id_field: self.id_of(token)}

    @staticmethod
    def id_of(token: str) -> str:
        return str(uuid.uuid5(NAMESPACE, token))

    def read(self, thing: Wire) -> str:
        """Return "": a token cannot be told from an id; `Collection.find` asks for the id."""
        return ""

    def hide(self, thing: Wire) -> Wire:
        return thing

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return []


class Joined:
    """There is no place: the thing joins two others, and making it twice makes it once."""

    words = "none: it is what it joins, and making it again changes nothing"
    field = ""

    def write(self, body: Wire, token: str) -> Wire:
        return body

    def read(self, thing: Wire) -> str:
        return ""

    def hide(self, thing: Wire) -> Wire:
        return thing

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return []


class Unmade(Joined):
    """There is no place: things of the kind are not made here."""

    words = "none: it is only looked at"


def _portions(tokens: Sequence[str]) -> list[Sequence[str]]:
    return [tokens[start : start + FILTER_MAX] for start in range(0, len(tokens), FILTER_MAX)]
