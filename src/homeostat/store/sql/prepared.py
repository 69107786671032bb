"""Statements that are built once: between calls only their values differ (ADR 0055).

SQLAlchemy takes several times as long to build a statement as to run it, and then looks up the compiled form by all
parts of the statement. So a statement that runs all the time is a function that is called once, with a parameter for
each value:
    @prepared
    def _by_id(stack_id: str) -> Select[Any]:
        return select(stack).where(stack.c.id == stack_id)

    _by_id(tx, "7f3a…").first()
"""

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, cast

from sqlalchemy import Connection, CursorResult, Executable, Float, bindparam

P = ParamSpec("P")


def prepared(build: Callable[P, Executable]) -> Callable[Concatenate[Connection, P], CursorResult[*tuple[Any, ...]]]:
    """Turn a function that builds a statement into a function that runs it in a transaction, with these values.

    Args:
        build: Its positional parameters are the values. A parameter has the type of the column that it is compared with
            or assigned to; a parameter annotated as `float` needs no such column. A collection may only be the argument
            of `in_`. Keyword-only parameters choose the statement itself: each combination is built once. The form of
            the statement must not depend on a value: None compared with a column is not `IS NULL`.
    """
    parameters = inspect.signature(build).parameters.values()
    named = [parameter for parameter in parameters if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    # With a suffix, since SQLAlchemy reserves parameters with the names of assigned columns.
    values = [bindparam(f"{value.name}_", type_=Float if value.annotation is float else None) for value in named]
    keys = [parameter.key for parameter in values]
    built: dict[tuple[tuple[str, Any], ...], Executable] = {}
    make = cast(Callable[..., Executable], build)

    def run(tx: Connection, /, *arguments: Any, **choice: Any) -> CursorResult[Any]:
        which = tuple(choice.items())
        if which not in built:
            built[which] = make(*values, **choice)
        return tx.execute(built[which], dict(zip(keys, arguments, strict=True)))

    return cast(Callable[Concatenate[Connection, P], CursorResult[*tuple[Any, ...]]], update_wrapper(run, build))
