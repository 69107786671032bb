"""Lookup of resource types in a stack."""

import re
from collections.abc import Collection, Iterator

from sqlalchemy import or_, select

from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema import to_json
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions, stacks

ANY = "*"
"""Wildcard at the end of a type name: all types of a service."""


def found_in(tx: Transaction, stack: StackRow, wanted: Collection[str]) -> str | None:
    """Return the first of these types that the stack or a nested stack has; None if there are no such resources.

    The resources are searched only if the user's input for the root stack, from which all resources are made, contains
    one of the names. So the check is cheap for stacks without these types.

    Args:
        wanted: Type names; `NS::*` stands for all types of a service.
    """
    if not any(_pattern(wanted).search(text) for text in _texts(tx, stack)):
        return None
    column = schema.resource.c.type
    names = [name for name in wanted if not name.endswith(ANY)]
    services = [name.removesuffix(ANY) for name in wanted if name.endswith(ANY)]
    fits = or_(column.in_(names), *(column.startswith(name, autoescape=True) for name in services))
    chosen = select(column).where(schema.resource.c.stack_id.in_(stacks.tree_of(stack.id)), fits)
    return tx.execute(chosen.order_by(column).limit(1)).scalar()


def _texts(tx: Transaction, stack: StackRow) -> Iterator[str]:
    root = stack if stack.parent_id is None else stacks.get(tx, stack.root_id)
    if root is not None:
        content = revisions.content_of(tx, root.id, root.revision)
        yield from (to_json(content.template), to_json(content.environment), *content.files.values())


def _pattern(wanted: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(name.removesuffix(ANY)) for name in sorted(wanted)))
