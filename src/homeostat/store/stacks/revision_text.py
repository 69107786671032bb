"""What a revision says, written out as the database takes it.

A template with its files may be megabytes, and on SQLite everybody who writes waits for whoever holds the write turn.
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
    """of — what it was written out from; hashes — of files, by name; files — rows that are to be stored."""

    of: Parts
    template: Cell
    parameters: Cell
    environment: Cell
    hashes: Cell
    files: files.Rows

    def says(self, parts: Parts) -> bool:
        """Was it written out from these very objects?"""
        return all(mine is other for mine, other in zip(self.of, parts, strict=True))


def write_out(dialect: Dialect, parts: Parts) -> EncodedRevision:
    template, parameters, environment, texts = parts
    column = schema.revision.c
    hashes, rows = files.write_out(dialect, texts)
    return EncodedRevision(
        parts,
        cell_of(dialect, column.template, template),
        cell_of(dialect, column.parameters, parameters),
        cell_of(dialect, column.environment, environment),
        cell_of(dialect, column.files, hashes),
        rows,
    )
