"""Statements that are built once, on every database."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from sqlalchemy import Select, case, select
from tests.contract.store_cases import add_stack

from homeostat.store import schema
from homeostat.store.database import Database
from homeostat.store.sql.prepared import prepared

stack = schema.stack
built: list[dict[str, bool]] = []


@prepared
def named(names: Sequence[str], project: str, *, newest_first: bool = False) -> Select[Any]:
    """Ids of live stacks."""
    built.append({"newest_first": newest_first})
    chosen = select(stack.c.id).where(stack.c.name.in_(names), stack.c.project == project)
    return chosen.order_by(stack.c.id.desc() if newest_first else stack.c.id)


@prepared
def sooner(at: float | None, limit: float) -> Select[Any]:
    return select(case((stack.c.created_at < limit, stack.c.deadline), else_=at), cast(Any, limit) + 1)


def test_a_statement_is_built_once_and_run_with_any_values(database: Database) -> None:
    for id, name in (("1", "a"), ("2", "b"), ("3", "c")):
        add_stack(database, name, id=id)
    built.clear()
    with database.read() as tx:
        for names, found in ((["a"], ["1"]), (["c", "a"], ["1", "3"]), ([], []), (["%", "a\\'"], []), (["b"], ["2"])):
            assert named(tx, names, "p").scalars().all() == found
        assert named(tx, ["a"], "q").scalars().all() == []
    assert len(built) <= 1


def test_a_choice_is_another_statement(database: Database) -> None:
    for id, name in (("1", "a"), ("2", "b")):
        add_stack(database, name, id=id)
    with database.read() as tx:
        assert named(tx, ["a", "b"], "p", newest_first=True).scalars().all() == ["2", "1"]
        assert named(tx, ["a", "b"], "p").scalars().all() == ["1", "2"]


def test_a_value_that_meets_no_column_is_a_number_and_may_be_none(database: Database) -> None:
    add_stack(database)
    with database.read() as tx:
        assert tuple(sooner(tx, 2.5, 0.0).one()) == (2.5, 1.0)
        assert tuple(sooner(tx, None, 0.0).one()) == (None, 1.0)


def test_a_value_too_few_is_refused(database: Database) -> None:
    with database.read() as tx, pytest.raises(ValueError, match="shorter"):
        named(tx, ["a"])  # type: ignore[call-arg]
