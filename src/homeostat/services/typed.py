"""Lookup of resource types in a stack."""

import re
from collections.abc import Collection, Iterator

from sqlalchemy import Connection, or_, select

from homeostat.store import schema
from homeostat.store.schema import to_json
from homeostat.store.schema.rows import StackRow
from homeostat.store.stacks import revisions, stacks

ANY = "*"
"""Stands for all types of a service, at the end of a name."""


def found_in(tx: Connection, stack: StackRow, wanted: Collection[str]) -> str | None:
    """Return the first of these types that the stack or a nested one has; None when there is none.

    The resources are searched only if one of the names occurs in the user's input for the root stack. That input
    contains every text that resources are made from, so the check is cheap for stacks without these types.

    Args:
        wanted: Type names; `NS::*` stands for all types of a service.
    """
    if not any(_pattern(wanted).search(text) for text in _texts(tx, stack)):
        return None
    column = schema.resource.c.type
    names = [each for each in wanted if not each.endswith(ANY)]
    services = [each.removesuffix(ANY) for each in wanted if each.endswith(ANY)]
    fits = or_(column.in_(names), *(column.startswith(each, autoescape=True) for each in services))
    chosen = select(column).where(schema.resource.c.stack_id.in_(stacks.tree_of(stack.id)), fits)
    return tx.execute(chosen.order_by(column).limit(1)).scalar()


def _texts(tx: Connection, stack: StackRow) -> Iterator[str]:
    root = stack if stack.parent_id is None else stacks.get(tx, stack.root_id)
    if root is not None:
        desired = revisions.desired_of(tx, root.id, root.revision)
        yield from (to_json(desired.template), to_json(desired.environment), *desired.files.values())


def _pattern(wanted: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(each.removesuffix(ANY)) for each in sorted(wanted)))
