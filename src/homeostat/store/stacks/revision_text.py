"""Revisions, encoded before the transaction that stores them.

A template with its files may be megabytes long, and on SQLite an open transaction blocks all other writers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine.interfaces import Dialect

from homeostat.store import schema
from homeostat.store.schema import Cell, cell_of
from homeostat.store.stacks import files

Parts = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any], Mapping[str, str]]
"""Template, parameters, environment, and texts of files by their names."""


@dataclass(frozen=True, slots=True)
class EncodedRevision:
    """The encoded content of a revision.

    Attributes:
        of: The source objects.
        hashes: The cell of the files' hashes, by name.
        files: The rows of files to store.
    """

    of: Parts
    template: Cell
    parameters: Cell
    environment: Cell
    hashes: Cell
    files: files.Rows

    def encodes(self, parts: Parts) -> bool:
        """Return whether these very objects are the source.

        Identity suffices, and comparing megabytes would cost as much as encoding them.
        """
        return all(part is source for part, source in zip(parts, self.of, strict=True))


def encode(dialect: Dialect, parts: Parts) -> EncodedRevision:
    template, parameters, environment, texts = parts
    column = schema.revision.c
    hashes, rows = files.encode(dialect, texts)
    return EncodedRevision(
        parts,
        cell_of(dialect, column.template, template),
        cell_of(dialect, column.parameters, parameters),
        cell_of(dialect, column.environment, environment),
        cell_of(dialect, column.files, hashes),
        rows,
    )
