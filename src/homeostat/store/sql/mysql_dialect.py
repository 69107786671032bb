"""How the one schema and the one set of statements are said to MariaDB and MySQL: a dialect of SQLAlchemy (ADR 0083).

It differs from SQLAlchemy's own in what the statements of the store rely on:

- A text that a key or an index names is a VARCHAR, any other one a LONGTEXT; all compare byte by byte.
- A unique index of some rows only is one on a generated column, which is NULL in all other rows.
- ON CONFLICT is said as ON DUPLICATE KEY UPDATE.
- Assignments are put in an order in which each sees the row as it was: these servers carry out one after the other.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Column, Table, Text, update
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mysql.base import MySQLCompiler, MySQLDDLCompiler, MySQLTypeCompiler
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.sql.dml import Update
from sqlalchemy.sql.elements import ColumnClause
from sqlalchemy.sql.selectable import Alias
from sqlalchemy.sql.visitors import iterate, replacement_traverse

from homeostat.model.errors import Bug
from homeostat.store import schema

DRIVER = "mysql+homeostat"
"""The name in place of that of the driver, in a URL for this dialect."""
COLLATION = "utf8mb4_bin"
KEY_LENGTH = 255
"""Characters of a text in a key: three of them, at four bytes each, are what an index may hold."""
_IN_TRANSACTION = 1
"""The flag of the status that the server sends with each answer."""


class Types(MySQLTypeCompiler):
    """Types of columns."""

    def visit_TEXT(self, type_: Any, type_expression: Any = None, **_: Any) -> str:
        kind = "LONGTEXT"
        if isinstance(type_expression, Column) and is_key(type_expression.table.name, type_expression.name):
            kind = f"VARCHAR({KEY_LENGTH})"
        return f"{kind} CHARACTER SET utf8mb4 COLLATE {COLLATION}"


@cache
def is_key(table: str, column: str) -> bool:
    """Return whether the schema of this version has this column in a key or an index."""
    known = schema.metadata.tables.get(table)
    if known is None or column not in known.c:
        return False
    found = known.c[column]
    return found.primary_key or bool(found.foreign_keys) or any(column in index.columns for index in known.indexes)


class Definitions(MySQLDDLCompiler):
    """CREATE TABLE and CREATE INDEX."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Leave out references to stacks: each new row with one would wait for the user who has locked it.

        That is a user who wants a shard, which the pass has that stores an event: they would wait for each other.
        """
        if constraint.elements[0].target_fullname.startswith(f"{schema.stack.name}."):
            return None
        return super().visit_foreign_key_constraint(constraint, **kw)

    def visit_create_index(self, create: Any, *args: Any, **kw: Any) -> Any:
        index = create.element
        where = index.dialect_options["postgresql"].get("where")
        if where is None or not index.unique:
            return super().visit_create_index(create, *args, **kw)
        assert isinstance(index.table, Table)
        *first, last = (self.preparer.format_column(each) for each in index.columns)
        own = self.preparer.quote(f"{index.name}_key")
        when = self.sql_compiler.process(where, literal_binds=True)
        kind = self.dialect.type_compiler_instance.process(Text(), type_expression=index.columns.values()[-1])
        return (
            f"ALTER TABLE {self.preparer.format_table(index.table)}"
            f" ADD COLUMN {own} {kind} GENERATED ALWAYS AS (CASE WHEN {when} THEN {last} END) STORED,"
            f" ADD UNIQUE INDEX {self.preparer.quote(str(index.name))} ({', '.join([*first, own])})"
        )

    def get_column_default_string(self, column: Column[Any]) -> str | None:
        """Return the default, as an expression: MySQL knows no other one of a LONGTEXT."""
        default = super().get_column_default_string(column)
        return (
            f"({default})"
            if default is not None and isinstance(column.type.dialect_impl(self.dialect), Text)
            else default
        )

    def post_create_table(self, table: Table) -> str:
        return f"{super().post_create_table(table)} ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE {COLLATION}"


class Statements(MySQLCompiler):
    """SELECT, INSERT and UPDATE."""

    def visit_typeclause(self, typeclause: Any, type_: Any = None, **kw: Any) -> str | None:
        if isinstance(typeclause.type, Text):
            # Without a length it would be that of the value: a recursive query cuts what comes later to it.
            return f"CHAR({KEY_LENGTH}) CHARACTER SET utf8mb4"
        return super().visit_typeclause(typeclause, type_, **kw)

    def visit_update(self, update_stmt: Update, visiting_cte: Any = None, **kw: Any) -> str:
        return super().visit_update(in_order(update_stmt), visiting_cte, **kw)

    def visit_on_conflict_do_nothing(self, clause: Any, **kw: Any) -> str:
        """Set a column of the key to what it is: INSERT IGNORE would ignore all other mistakes, too."""
        key = self._inserted_into().primary_key.columns[0]
        name = self.preparer.format_column(key)
        return f"ON DUPLICATE KEY UPDATE {name} = {name}"

    def visit_on_conflict_do_update(self, clause: Any, **kw: Any) -> str:
        table, where = self._inserted_into(), clause.update_whereclause
        values = dict(clause.update_values_to_set)
        wanted = {str(getattr(key, "name", key)): value for key, value in values.items()}
        when = None if where is None else self.process(_with_values(where), **kw)
        compared = set() if where is None else _columns_in([where], table)
        assigned = []
        for name in assignable({each: _columns_in([value], table) | compared for each, value in wanted.items()}):
            column = self.preparer.format_column(table.c[name])
            value = _with_values(wanted[name])
            if value.type._isnull:
                value = value._with_binary_element_type(table.c[name].type)
            said = self.process(value.self_group(), **kw)
            assigned.append(f"{column} = {said if when is None else f'CASE WHEN {when} THEN {said} ELSE {column} END'}")
        return f"ON DUPLICATE KEY UPDATE {', '.join(assigned)}"

    def _inserted_into(self) -> Table:
        table = self.current_executable.table
        assert isinstance(table, Table)
        return table


class _Values(ColumnClause[Any]):
    """The value of a column that an INSERT would have given it."""

    __visit_name__ = "values_of"
    inherit_cache = False


def _visit_values_of(self: MySQLCompiler, element: _Values, **_: Any) -> str:
    return f"VALUES({self.preparer.quote(element.name)})"


Statements.visit_values_of = _visit_values_of  # type: ignore[attr-defined]


def _with_values(expression: Any) -> Any:
    """Replace the columns of PostgreSQL's `excluded`."""

    def values(element: Any, **_: Any) -> Any:
        table = getattr(element, "table", None)
        if isinstance(element, ColumnClause | Column) and isinstance(table, Alias) and table.name == "excluded":
            return _Values(element.name, element.type)
        return None

    return replacement_traverse(expression, {}, values)


def in_order(statement: Update) -> Update:
    """Return an UPDATE in which each assignment sees the row as it was."""
    values: Mapping[Any, Any] | None = statement._values
    if not values or len(values) < 2 or not isinstance(statement.table, Table):
        return statement
    table = statement.table
    wanted = {table.c[getattr(column, "name", column)].name: value for column, value in values.items()}
    order = assignable({name: _columns_in([value], table) for name, value in wanted.items()})
    ordered = ((table.c[name], wanted[name]) for name in order)
    return update(table).where(*statement._where_criteria).ordered_values(*ordered)


def _columns_in(expressions: Iterable[Any], table: Table) -> set[str]:
    """Return the columns of a table that expressions read."""
    found = (each for expression in expressions for each in iterate(expression))
    return {each.name for each in found if isinstance(each, Column) and each.table is table}


def assignable(reads: Mapping[str, set[str]]) -> list[str]:
    """Return columns in an order in which each is assigned after all others that read it.

    Args:
        reads: Column -> the columns that its new value is made from.

    Raises:
        Bug: There is no such order.
    """
    left, order = dict(reads), list[str]()
    while left:
        free = [name for name in left if not any(name in read for other, read in left.items() if other != name)]
        if not free:
            raise Bug(f"in no order of these assignments each sees the row as it was: {', '.join(left)}")
        order.append(free[0])
        del left[free[0]]
    return order


class Dialect(MySQLDialect_pymysql):
    """MariaDB and MySQL by PyMySQL, in autocommit: the backend begins transactions itself."""

    supports_statement_cache = True
    statement_compiler = Statements  # type: ignore[assignment]
    ddl_compiler = Definitions
    type_compiler_cls = Types

    def do_commit(self, dbapi_connection: Any) -> None:
        if dbapi_connection.server_status & _IN_TRANSACTION:
            dbapi_connection.commit()

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back, unless there is nothing to: the pool asks for it with each connection that it gets back."""
        if dbapi_connection.server_status & _IN_TRANSACTION:
            dbapi_connection.rollback()


registry.register("mysql.homeostat", __name__, "Dialect")
