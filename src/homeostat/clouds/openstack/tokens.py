"""Place of the creation token, since OpenStack's services have no idempotency tokens (CV18).

From its creation on, an object carries its token in a place that the service stores with the creation and shows in its
lists: tags, metadata, the description, the name, or the id itself. So one list finds the object of a lost answer.
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
"""Tokens in one query, to limit the length of the URL."""


class TokenPlace(Protocol):
    """Place of the token in objects of a kind."""

    words: str
    """For the documentation."""
    field: str
    """Field of the service with the token; "" if no update of an object can lose it."""

    def write(self, body: Wire, token: str) -> Wire:
        """Return the body of a creation with the token added."""

    def read(self, thing: Wire) -> str:
        """Return the token of an object; "" if absent."""

    def hide(self, thing: Wire) -> Wire:
        """Return an object as its user specified it, without the token."""

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return queries whose lists together contain all objects with these tokens."""


class InTags:
    """The token is a tag, next to the user's tags."""

    def __init__(self, field: str = "tags", query: str = "tags-any") -> None:
        self.words = "a tag"
        self.field = field
        self._query = query

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, self.field: [*(body.get(self.field) or ()), PREFIX + token]}

    def read(self, thing: Wire) -> str:
        tags = (tag for tag in thing.get(self.field) or () if tag.startswith(PREFIX))
        return next(tags, PREFIX).removeprefix(PREFIX)

    def hide(self, thing: Wire) -> Wire:
        return {**thing, self.field: [tag for tag in thing.get(self.field) or () if not tag.startswith(PREFIX)]}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        if not self._query:
            return [{}]
        return [{self._query: ",".join(PREFIX + token for token in portion)} for portion in _portions(tokens)]


class InMetadata:
    """The token is an entry of the metadata, next to the user's entries."""

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
    """The token is an extra field, which the service stores without knowing it."""

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
    """The token is the end of a text, after the user's own text, which is kept to its last space."""

    _END = re.compile(r" ?\[homeostat:([^\]\s]*)\]$")

    def __init__(self, field: str = "description", limit: int = 255) -> None:
        """Choose the field, and the maximum number of characters that the service stores in the field."""
        self.words = f"the end of the {field}"
        self.field = field
        self._limit = limit

    def write(self, body: Wire, token: str) -> Wire:
        """Return the body of a creation with the token added.

        Raises:
            Terminal: The user's text leaves no room for the token.
        """
        mark = f" [{PREFIX}{token}]"
        text = str(body.get(self.field) or "")
        room = self._limit - len(mark)
        if len(text) > room:
            raise Terminal(f"{self.field}: it has {len(text)} characters, and may have {room} on this cloud")
        return {**body, self.field: text + mark if text else mark.lstrip()}

    def read(self, thing: Wire) -> str:
        match = self._END.search(thing.get(self.field) or "")
        return match[1] if match else ""

    def hide(self, thing: Wire) -> Wire:
        return {**thing, self.field: self._END.sub("", thing.get(self.field) or "")}

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return [{}]


class InDescription(InText):
    """The token is the end of the description until a user changes it; then a tag, if the kind has tags."""

    def __init__(self) -> None:
        super().__init__()
        self.words = "the end of the description; once a user changes it, a tag if the kind has tags"
        self._tags = InTags()

    def read(self, thing: Wire) -> str:
        return super().read(thing) or self._tags.read(thing)


class AsId:
    """The id of the object is derived from the token."""

    words = "the id, which is derived from it"
    field = ""

    def __init__(self, id_field: str = "id") -> None:
        self._id_field = id_field

    def write(self, body: Wire, token: str) -> Wire:
        return {**body, self._id_field: self.id_of(token)}

    @staticmethod
    def id_of(token: str) -> str:
        return str(uuid.uuid5(NAMESPACE, token))

    def read(self, thing: Wire) -> str:
        """Return "": the token cannot be computed from an id; `Collection.find` looks up the id instead."""
        return ""

    def hide(self, thing: Wire) -> Wire:
        return thing

    def filters(self, tokens: Sequence[str]) -> list[Mapping[str, Any]]:
        return []


class Joined:
    """No token: the object only joins two further objects, and creating it twice has no effect."""

    words = "none: creating it again changes nothing"
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
    """No token: objects of the kind are not created here."""

    words = "none: it is only read"


def _portions(tokens: Sequence[str]) -> list[Sequence[str]]:
    return [tokens[start : start + FILTER_MAX] for start in range(0, len(tokens), FILTER_MAX)]
