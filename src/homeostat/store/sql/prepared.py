"""Statements that are built once: from call to call only the values in them differ.

To build a statement takes SQLAlchemy several times as long as to run it, and what was built is looked up by all of its
parts before it runs. So what is run all the time is a function that is called once, with a parameter for each value:

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
    """Run what `build` gives, in a transaction, with these values.

    Takes: build — its positional parameters are the values. A parameter takes the type of the column that it meets;
    one that is said to be a `float` may meet none. A collection may only be what `in_` asks about. Keyword-only
    parameters choose the statement itself: each combination of them is built once.
    """
    parameters = inspect.signature(build).parameters.values()
    named = [each for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    values = [bindparam(f"{each.name}_", type_=Float if each.annotation is float else None) for each in named]
    keys = [each.key for each in values]
    built: dict[tuple[tuple[str, Any], ...], Executable] = {}
    make = cast(Callable[..., Executable], build)

    def run(tx: Connection, /, *given: Any, **choice: Any) -> CursorResult[Any]:
        which = tuple(choice.items())
        if which not in built:
            built[which] = make(*values, **choice)
        return tx.execute(built[which], dict(zip(keys, given, strict=True)))

    return cast(Callable[Concatenate[Connection, P], CursorResult[*tuple[Any, ...]]], update_wrapper(run, build))
