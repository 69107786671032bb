"""The classes of rows say what the tables say, and a result is compared with the class that it is said to have."""

from inspect import getmembers, isclass
from types import NoneType
from typing import Any, NamedTuple, Union, get_args, get_type_hints

import pytest
from sqlalchemy import Column, Table, TypeDecorator, select

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.schema import Json, rows
from homeostat.store.sql import typed

CLASSES = {
    name: kind
    for name, kind in getmembers(rows, isclass)
    if kind.__module__ == rows.__name__ and hasattr(kind, "_fields")
}


def table_of(name: str) -> Table:
    """Return the table of a class: `snapshot_part` of `SnapshotPartRow`."""
    words = "".join(f"_{each.lower()}" if each.isupper() else each for each in name.removesuffix("Row"))
    found: Table = getattr(schema, words.removeprefix("_"))
    return found


def type_of(column: Column[Any]) -> Any:
    """Return the Python type of the cells of a column, without None; Any for plain data."""
    kind = column.type
    if isinstance(kind, Json):
        return Any if kind.codec is None else get_type_hints(kind.codec.load)["return"]
    return kind.impl_instance.python_type if isinstance(kind, TypeDecorator) else kind.python_type


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_rows_has_the_columns_of_its_table(name: str) -> None:
    columns = {column.name: type_of(column) for column in table_of(name).columns}
    assert list(CLASSES[name]._fields) == list(columns)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_of_rows_has_the_types_of_its_table(name: str) -> None:
    wanted = {
        column.name: Union[type_of(column), None] if column.nullable else type_of(column)  # noqa: UP007 - of values
        for column in table_of(name).columns
    }
    said = get_type_hints(CLASSES[name])
    assert {each: NoneType in get_args(kind) for each, kind in said.items()} == {
        each: NoneType in get_args(kind) for each, kind in wanted.items()
    }
    assert said == wanted


class Named(NamedTuple):
    id: str
    name: str


def test_a_result_of_other_columns_than_its_class_is_noticed_by_the_tests(database: Database) -> None:
    table = schema.stack
    with database.read() as tx:
        assert typed.rows(Named, tx.execute(select(table.c.id, table.c.name))).all() == []
        with pytest.raises(AssertionError, match="Named"):
            typed.rows(Named, tx.execute(select(table.c.name, table.c.id)))
