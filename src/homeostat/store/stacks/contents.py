"""The contents of revisions, encoded before the transaction that stores them.

A template with its files may be megabytes long, and on SQLite an open transaction blocks all other writers.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy.engine.interfaces import Dialect

from homeostat.model.group import GroupDefinition
from homeostat.store import schema
from homeostat.store.schema import Cell, cell_of
from homeostat.store.stacks import files
from homeostat.templates.alike import text_of
from homeostat.templates.environments import SINKS


@dataclass(frozen=True, slots=True)
class Content:
    """The desired state of a stack: the content of one of its revisions.

    Attributes:
        kind: `template`, `group`, `chain` or `empty`.
        template: See `schema.revision`.
        parameters: See `schema.revision`.
        environment: See `schema.revision`.
        files: File name -> text.
    """

    kind: str = "empty"
    template: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> GroupDefinition | None:
        """The group defined by a content of kind `group`; None for the other kinds."""
        return GroupDefinition.decoded(self.template) if self.kind == "group" else None

    @property
    def sinks(self) -> Sequence[Mapping[str, Any]]:
        """The settings of the event sinks; they apply if the stack is a root stack."""
        return sinks_of(self.environment)


EMPTY = Content()


class Address(NamedTuple):
    """The address of a content: equal only for equal contents.

    Attributes:
        digest: SHA-256; of a content that cannot be read, the place where it is stored.
        bytes: Length of the texts of the content, without its files.
    """

    digest: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A content as it is stored, with its address.

    Attributes:
        kind: See `Content`.
        decoded: Returns the content.
    """

    kind: str
    address: Address
    decoded: Callable[[], Content]


def address(kind: str, *texts: str | bytes) -> Address:
    """Return the address of a content.

    Args:
        texts: Template, parameters, environment and hashes of the files, as JSON.
    """
    # No JSON text has a NUL.
    whole = b"\0".join(part.encode() if isinstance(part, str) else part for part in (kind, *texts))
    return Address(hashlib.sha256(whole).hexdigest(), len(whole))


def address_of(content: Content) -> Address | None:
    """Return the address that a content will have when it is stored; None if it is not plain data."""
    hashes = files.hashes_of(content.files)
    texts = [text_of(tree) for tree in (content.template, content.parameters, content.environment, hashes)]
    return None if None in texts else address(content.kind, *(text or b"" for text in texts))


def sinks_of(environment: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return environment.get(SINKS) or ()


@dataclass(frozen=True, slots=True)
class EncodedContent:
    """The cells of a content.

    Attributes:
        hashes: The cell of the files' hashes, by name.
        files: The rows of files to store.
    """

    template: Cell
    parameters: Cell
    environment: Cell
    hashes: Cell
    files: files.Rows


def encode(dialect: Dialect, content: Content) -> EncodedContent:
    column = schema.revision.c
    hashes, rows = files.encode(dialect, content.files)
    return EncodedContent(
        encode_template(dialect, content.template),
        cell_of(dialect, column.parameters, content.parameters),
        cell_of(dialect, column.environment, content.environment),
        cell_of(dialect, column.files, hashes),
        rows,
    )


def encode_template(dialect: Dialect, template: Mapping[str, Any]) -> Cell:
    return cell_of(dialect, schema.revision.c.template, template)
