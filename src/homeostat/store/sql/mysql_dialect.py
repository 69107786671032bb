"""A dialect of SQLAlchemy for MariaDB and MySQL, so that all databases share a schema and statements (ADR 0083).

The differences from SQLAlchemy's own dialect, which the statements of the store rely on:

- A text in a key or an index is a VARCHAR, and a LONGTEXT elsewhere; all compare byte by byte.
- A partial unique index becomes an index on a generated column, which is NULL in the excluded rows.
- ON CONFLICT becomes ON DUPLICATE KEY UPDATE.
- Assignments are ordered to see the old values of the row: these servers execute them in sequence.
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
"""The driver's name in a URL for this dialect."""
COLLATION = "utf8mb4_bin"
KEY_LENGTH = 255
"""Maximum length of a text in a key, in characters: an index holds three such texts, at four bytes per character."""
_IN_TRANSACTION = 1
"""The transaction flag of the status that the server sends with each response."""


class Types(MySQLTypeCompiler):
    """Types of columns."""

    def visit_TEXT(self, type_: Any, type_expression: Any = None, **_: Any) -> str:
        kind = "LONGTEXT"
        if isinstance(type_expression, Column) and is_key(type_expression.table.name, type_expression.name):
            kind = f"VARCHAR({KEY_LENGTH})"
        return f"{kind} CHARACTER SET utf8mb4 COLLATE {COLLATION}"


@cache
def is_key(table: str, column: str) -> bool:
    """Return whether a column is in a key or an index of the schema of this version."""
    known = schema.metadata.tables.get(table)
    if known is None or column not in known.c:
        return False
    definition = known.c[column]
    in_index = any(column in index.columns for index in known.indexes)
    return definition.primary_key or bool(definition.foreign_keys) or in_index


class Definitions(MySQLDDLCompiler):
    """CREATE TABLE and CREATE INDEX."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """Leave out references to stacks: each new row with a reference would wait for a lock on the stack.

        The holder of the lock is a request that waits for a shard, and the pass that stores an event holds the shard:
        a deadlock.
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
        *first, last = (self.preparer.format_column(column) for column in index.columns)
        own = self.preparer.quote(f"{index.name}_key")
        when = self.sql_compiler.process(where, literal_binds=True)
        kind = self.dialect.type_compiler_instance.process(Text(), type_expression=index.columns.values()[-1])
        return (
            f"ALTER TABLE {self.preparer.format_table(index.table)}"
            f" ADD COLUMN {own} {kind} GENERATED ALWAYS AS (CASE WHEN {when} THEN {last} END) STORED,"
            f" ADD UNIQUE INDEX {self.preparer.quote(str(index.name))} ({', '.join([*first, own])})"
        )

    def get_column_default_string(self, column: Column[Any]) -> str | None:
        """Return the default, as an expression: MySQL accepts no other default for a LONGTEXT."""
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
            # The default is the length of the first value: a recursive query would truncate longer later values.
            return f"CHAR({KEY_LENGTH}) CHARACTER SET utf8mb4"
        return super().visit_typeclause(typeclause, type_, **kw)

    def visit_update(self, update_stmt: Update, visiting_cte: Any = None, **kw: Any) -> str:
        return super().visit_update(in_order(update_stmt), visiting_cte, **kw)

    def visit_on_conflict_do_nothing(self, clause: Any, **kw: Any) -> str:
        """Set a column of the key to itself: INSERT IGNORE would ignore all other errors, too."""
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
        reads = {name: _columns_in([value], table) | compared for name, value in wanted.items()}
        for name in assignable(reads):
            column = self.preparer.format_column(table.c[name])
            value = _with_values(wanted[name])
            if value.type._isnull:
                value = value._with_binary_element_type(table.c[name].type)
            new = self.process(value.self_group(), **kw)
            assigned.append(f"{column} = {new if when is None else f'CASE WHEN {when} THEN {new} ELSE {column} END'}")
        return f"ON DUPLICATE KEY UPDATE {', '.join(assigned)}"

    def _inserted_into(self) -> Table:
        table = self.current_executable.table
        assert isinstance(table, Table)
        return table


class _Values(ColumnClause[Any]):
    """The value that an INSERT would have stored in a column."""

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
    """Return an UPDATE in which each assignment sees the old values of the row."""
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
    elements = (element for expression in expressions for element in iterate(expression))
    return {element.name for element in elements if isinstance(element, Column) and element.table is table}


def assignable(reads: Mapping[str, set[str]]) -> list[str]:
    """Return columns in an order that assigns each column after all columns derived from it.

    Args:
        reads: Column -> the source columns of its new value.

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
        """Roll back only inside a transaction: the pool requests a rollback for each returned connection."""
        if dbapi_connection.server_status & _IN_TRANSACTION:
            dbapi_connection.rollback()


registry.register("mysql.homeostat", __name__, "Dialect")
