"""What the APIs read: stacks listed, filtered and paged; resources of stacks. All inside the transaction given."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    and_,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
)

from homeostat.store import schema
from homeostat.store.shards.shard_state import Rows, load_where
from homeostat.store.sql.prepared import prepared

NAMES_MAX = 500
"""More names or keys than this are not worth a query of their own: all rows are read then."""

_stack = schema.stack
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class Tags:
    """Wanted tags: all of `every`, one of `some`; not all of `not_every`, none of `none_of`. Empty: no matter."""

    every: Sequence[str] = ()
    some: Sequence[str] = ()
    not_every: Sequence[str] = ()
    none_of: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Which stacks, in which order. project — None for those of all.

    only — column -> values of which the stack has one; order — columns, the id decides what they leave open;
    marker — id of the stack after which to begin (an unknown one counts as none); hidden_tags — stacks with one of
    these are left out; deleted, nested — include such stacks.
    """

    project: str | None
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tags: Tags = Tags()
    hidden_tags: Collection[str] = ()
    deleted: bool = False
    nested: bool = False
    order: Sequence[str] = ("created_at",)
    newest_first: bool = True
    marker: str | None = None
    limit: int | None = None


def stacks_page(tx: Connection, listing: Listing) -> list[Row[Any]]:
    columns = [*(_orderable(_stack.c[name]) for name in listing.order), _stack.c.id]
    chosen = select(_stack).where(*_conditions(listing))
    if listing.marker is not None:
        seen = [] if listing.project is None else [_stack.c.project == listing.project]
        marker = tx.execute(select(*columns).where(_stack.c.id == listing.marker, *seen)).first()
        if marker is not None:
            here, there = tuple_(*columns), tuple_(*(literal(value) for value in marker))
            chosen = chosen.where(here < there if listing.newest_first else here > there)
    chosen = chosen.order_by(*(column.desc() if listing.newest_first else column.asc() for column in columns))
    return list(tx.execute(chosen.limit(listing.limit) if listing.limit else chosen))


def stacks_count(tx: Connection, listing: Listing) -> int:
    """How many there are on all pages."""
    return int(tx.execute(select(func.count()).select_from(_stack).where(*_conditions(listing))).scalar_one())


def _orderable(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Databases disagree on the place of nulls, and comparing with them gives nothing."""
    return func.coalesce(column, 0.0) if column is _stack.c.updated_at else column


def _conditions(listing: Listing) -> list[ColumnElement[bool]]:
    found = [_stack.c.project == listing.project] if listing.project is not None else []
    if not listing.deleted:
        found.append(_stack.c.deleted_at.is_(None))
    if not listing.nested:
        found.append(_stack.c.parent_id.is_(None))
    found += [_stack.c[column].in_(values) for column, values in listing.only.items()]
    tags = listing.tags
    if tags.every:
        found.append(and_(*map(_tagged, tags.every)))
    if tags.some:
        found.append(or_(*map(_tagged, tags.some)))
    if tags.not_every:
        found.append(~and_(*map(_tagged, tags.not_every)))
    none_of = [*tags.none_of, *listing.hidden_tags]
    if none_of:
        found.append(~or_(*map(_tagged, none_of)))
    return found


def _tagged(tag: str) -> ColumnElement[bool]:
    """Tags are a JSON list and hold no commas: `,"tag"` is found in `,"a","tag"]` only where it is one of them."""
    stored = func.coalesce(type_coerce(_stack.c.tags, Text), "[]")
    items = literal(",").concat(func.substr(stored, 2))
    wanted = f",{orjson.dumps(tag).decode()}"
    return func.replace(items, wanted, "") != items


def descendants(tx: Connection, stack: Row[Any], depth: int, *, deleted: bool = False) -> list[Row[Any]]:
    """Live stacks below a stack, down to so many levels, parents first. deleted — those that are deleted, too."""
    if depth <= 0:
        return []
    chosen = (
        select(_stack)
        .where(_stack.c.root_id == stack.root_id, true() if deleted else _stack.c.deleted_at.is_(None))
        .where(_stack.c.depth > stack.depth, _stack.c.depth <= stack.depth + depth)
        .order_by(_stack.c.depth, _stack.c.created_at, _stack.c.id)
    )
    known = {stack.id}
    found = []
    for row in tx.execute(chosen):
        if row.parent_id in known:
            known.add(row.id)
            found.append(row)
    return found


def resources(
    tx: Connection, stack_id: str, names: Collection[str] | None = None, shards: Collection[int] | None = None
) -> Rows:
    """Rows of a stack and their newest observations, by key, in the order they were made.

    Takes: names — only those of these names; shards — only those in these shards.
    """
    where: list[ColumnElement[bool]] = [_resource.c.stack_id == stack_id]
    if names is not None and len(names) <= NAMES_MAX:
        where.append(_resource.c.name.in_(names))
    if shards is not None:
        where.append(_resource.c.shard.in_(shards))
    return load_where(tx, *where)


def observed_properties(
    tx: Connection, stack_id: str, keys: Collection[str] | None = None
) -> dict[str, dict[str, tuple[Any, float]]]:
    """Key of a row -> property -> its observed value and since when it is so (CV1), at least for these rows; None: for
    all of the stack."""
    table = schema.resource_properties_observed
    chosen = select(table.c.id, table.c.prop_name, table.c.prop_value, table.c.since).where(
        table.c.stack_id == stack_id if keys is None or len(keys) > NAMES_MAX else table.c.id.in_(keys)
    )
    found: dict[str, dict[str, tuple[Any, float]]] = {}
    for key, name, value, since in tx.execute(chosen):
        found.setdefault(key, {})[name] = (value, since)
    return found


def looked(tx: Connection, stack_id: str, numbers: Collection[int]) -> dict[int, tuple[float, str]]:
    """Shard -> when it was last looked at as a whole (0.0: never), and why it cannot be now."""
    table = schema.shard
    chosen = select(table.c.number, table.c.looked_at, table.c.blind).where(
        table.c.stack_id == stack_id, table.c.number.in_(numbers)
    )
    return {number: (looked_at or 0.0, blind) for number, looked_at, blind in tx.execute(chosen)}


def described_revision(tx: Connection, stack_id: str) -> int:
    """Newest revision that says something: deleting and rolling back to nothing leave an empty one behind."""
    return int(_described(tx, stack_id).scalar_one() or 0)


@prepared
def _described(stack_id: str) -> Select[Any]:
    table = schema.revision
    return select(func.max(table.c.number)).where(table.c.stack_id == stack_id, table.c.kind != "empty")
