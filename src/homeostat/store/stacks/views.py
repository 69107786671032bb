"""Queries of the APIs: lists of stacks, filtered and paged, and resources of stacks."""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
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

from homeostat.model.world import Resource
from homeostat.store import schema
from homeostat.store.database import Transaction
from homeostat.store.schema.rows import StackRow
from homeostat.store.shards.shard_state import Rows, load_stack, of_stack
from homeostat.store.sql import typed
from homeostat.store.sql.prepared import prepared

NAMES_MAX = 500
"""With more names or keys than this, all rows of the stack are read instead of a selection."""

_stack = schema.stack
_resource = schema.resource


@dataclass(frozen=True, slots=True)
class Tags:
    """A filter by tags; an empty list does not filter.

    Attributes:
        every: The stack has all of these.
        some: The stack has at least one of these.
        not_every: The stack lacks at least one of these.
        none_of: The stack has none of these.
    """

    every: Sequence[str] = ()
    some: Sequence[str] = ()
    not_every: Sequence[str] = ()
    none_of: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """A request for a list of stacks.

    Attributes:
        hidden_tags: Stacks with one of these tags are left out.
        order: The columns to sort by; ties are broken by the id.
        marker: The id of the stack after which the page begins; an unknown id is ignored.
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


def stacks_page(tx: Transaction, listing: Listing) -> list[StackRow]:
    """Return a page of a list of stacks."""
    columns = [*(_orderable(_stack.c[name]) for name in listing.order), _stack.c.id]
    chosen = select(_stack).where(*_conditions(listing))
    if listing.marker is not None:
        # Only a marker of the project: a page after a foreign stack would reveal the time of its creation.
        seen = [] if listing.project is None else [_stack.c.project == listing.project]
        marker = tx.execute(select(*columns).where(_stack.c.id == listing.marker, *seen)).first()
        if marker is not None:
            position, start = tuple_(*columns), tuple_(*(literal(value) for value in marker))
            chosen = chosen.where(position < start if listing.newest_first else position > start)
    chosen = chosen.order_by(*(column.desc() if listing.newest_first else column.asc() for column in columns))
    return list(typed.rows(StackRow, tx.execute(chosen.limit(listing.limit) if listing.limit else chosen)))


def stacks_count(tx: Transaction, listing: Listing) -> int:
    """Return the number of stacks on all pages."""
    return int(tx.execute(select(func.count()).select_from(_stack).where(*_conditions(listing))).scalar_one())


def _orderable(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column without NULLs: databases sort NULLs differently, and comparing with NULL is never true."""
    return func.coalesce(column, 0.0) if column is _stack.c.updated_at else column


def _conditions(listing: Listing) -> list[ColumnElement[bool]]:
    conditions = [_stack.c.project == listing.project] if listing.project is not None else []
    if not listing.deleted:
        conditions.append(_stack.c.deleted_at.is_(None))
    if not listing.nested:
        conditions.append(_stack.c.parent_id.is_(None))
    conditions += [_stack.c[column].in_(values) for column, values in listing.only.items()]
    tags = listing.tags
    if tags.every:
        conditions.append(and_(*map(_tagged, tags.every)))
    if tags.some:
        conditions.append(or_(*map(_tagged, tags.some)))
    if tags.not_every:
        conditions.append(~and_(*map(_tagged, tags.not_every)))
    none_of = [*tags.none_of, *listing.hidden_tags]
    if none_of:
        conditions.append(~or_(*map(_tagged, none_of)))
    return conditions


def _tagged(tag: str) -> ColumnElement[bool]:
    """Return the condition that a stack has a tag.

    Tags are stored as a JSON list and contain no commas, so `,"tag"` occurs in `,"a","tag"]` only as a whole item.
    """
    stored = func.coalesce(type_coerce(_stack.c.tags, Text), "[]")
    items = literal(",").concat(func.substr(stored, 2))
    wanted = f",{orjson.dumps(tag).decode()}"
    return func.replace(items, wanted, "") != items


def descendants(tx: Transaction, stack: StackRow, depth: int, *, deleted: bool = False) -> list[StackRow]:
    """Return the stacks nested in a stack, down to `depth` levels, parents first; live ones only unless `deleted`."""
    if depth <= 0:
        return []
    chosen = (
        select(_stack)
        .where(_stack.c.root_id == stack.root_id, true() if deleted else _stack.c.deleted_at.is_(None))
        .where(_stack.c.depth > stack.depth, _stack.c.depth <= stack.depth + depth)
        .order_by(_stack.c.depth, _stack.c.created_at, _stack.c.id)
    )
    known = {stack.id}
    nested = []
    for row in typed.rows(StackRow, tx.execute(chosen)):
        if row.parent_id in known:
            known.add(row.id)
            nested.append(row)
    return nested


def resources(
    tx: Transaction, stack_id: str, names: Collection[str] | None = None, shards: Collection[int] | None = None
) -> Rows:
    """Return the resource rows of a stack and their newest observations, by key, in the order they were created.

    Args:
        names: At least the rows of these names; all rows if there are more than `NAMES_MAX` names.
    """
    return load_stack(tx, stack_id, names if names is not None and len(names) <= NAMES_MAX else None, shards)


def are_few(tx: Transaction, stack_id: str, most: int) -> bool:
    """Return whether a stack has at most `most` rows; the count stops there."""
    return int(_count(tx, stack_id, most + 1).scalar_one()) <= most


@prepared
def _count(stack_id: str, limit: int) -> Select[Any]:
    """Count the rows of a stack up to a limit."""
    first = select(_resource.c.key).where(_resource.c.stack_id == stack_id).limit(limit).subquery()
    return select(func.count()).select_from(first)


def stored_bytes(
    tx: Transaction, stack_id: str, names: Collection[str] | None = None, shards: Collection[int] | None = None
) -> dict[str, int]:
    """Return the stored length of the properties and the metadata of a stack's rows, by resource name."""
    lengths: dict[str, int] = {}
    named, placed = names is not None, shards is not None
    for name, length in _lengths(tx, stack_id, list(names or ()), list(shards or ()), named=named, placed=placed):
        lengths[name] = lengths.get(name, 0) + int(length)
    return lengths


@prepared
def _lengths(stack_id: str, names: list[str], shards: list[int], *, named: bool, placed: bool) -> Select[Any]:
    columns = (type_coerce(_resource.c[name], Text) for name in ("properties", "metadata"))
    stored = sum((func.coalesce(func.length(column), 0) for column in columns), literal(0))
    return select(_resource.c.name, stored).where(*of_stack(stack_id, names, shards, named=named, placed=placed))


def other_names(tx: Transaction, stack_id: str, known: Container[str]) -> list[str]:
    """Return the names of a stack's rows that are not in `known`, sorted."""
    names = tx.execute(select(_resource.c.name).distinct().where(_resource.c.stack_id == stack_id)).scalars()
    return sorted(name for name in names if name not in known)


STATE = (
    *("key", "stack_id", "shard", "name", "type", "handle", "revision", "action", "status", "reason"),
    *("replaces", "replaced_by", "born", "template_type", "marks"),
)
"""The columns of a resource's state."""


def states(tx: Transaction, stack_id: str) -> list[Resource]:
    """Return the rows of a stack in the order of their creation: the columns `STATE`, and defaults for the rest."""
    columns = [_resource.c[name] for name in STATE]
    chosen = select(*columns).where(_resource.c.stack_id == stack_id)
    chosen = chosen.order_by(_resource.c.shard, _resource.c.born, _resource.c.key)
    return [Resource(**row._mapping) for row in tx.execute(chosen)]


def observed_properties(
    tx: Transaction, stack_id: str, keys: Collection[str] | None = None
) -> dict[str, dict[str, tuple[Any, float]]]:
    """Return the observed values of properties (CV1).

    Args:
        keys: At least the rows with these keys; None for all of the stack.

    Returns:
        Key of a row -> property -> its observed value, and since when.
    """
    observed: dict[str, dict[str, tuple[Any, float]]] = {}
    whole = keys is None or len(keys) > NAMES_MAX
    for key, name, value, since in _observed(tx, stack_id, [] if whole else list(keys or ()), whole=whole):
        observed.setdefault(key, {})[name] = (value, since)
    return observed


@prepared
def _observed(stack_id: str, keys: list[str], *, whole: bool) -> Select[Any]:
    table = schema.resource_properties_observed
    chosen = select(table.c.id, table.c.prop_name, table.c.prop_value, table.c.since)
    return chosen.where(table.c.stack_id == stack_id if whole else table.c.id.in_(keys))


def shard_observations(tx: Transaction, stack_id: str, numbers: Collection[int]) -> dict[int, tuple[float, str]]:
    """Return when each shard was last observed as a whole (0.0: never), and the reason if the latest attempt failed."""
    rows = _shard_looks(tx, stack_id, list(numbers))
    return {number: (observed_at or 0.0, blind) for number, observed_at, blind in rows}


@prepared
def _shard_looks(stack_id: str, numbers: Collection[int]) -> Select[Any]:
    table = schema.shard
    chosen = select(table.c.number, table.c.looked_at, table.c.blind)
    return chosen.where(table.c.stack_id == stack_id, table.c.number.in_(numbers))


def described_revision(tx: Transaction, stack_id: str) -> int:
    """Return the newest revision that is not empty; 0 if none.

    A deletion, or a rollback to nothing, makes an empty revision the newest; the APIs still show the previous one.
    """
    return int(_described(tx, stack_id).scalar_one() or 0)


@prepared
def _described(stack_id: str) -> Select[Any]:
    table = schema.revision
    return select(func.max(table.c.number)).where(table.c.stack_id == stack_id, table.c.kind != "empty")
